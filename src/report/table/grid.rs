//! Columns: words to the left, numbers on their decimal point.

use crate::report::number::at_point;
use std::fmt;

/// Between two columns. A field holds no two spaces in a row, so this separates them.
const GAP: &str = "  ";

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number as shown: it is aligned on its point, or on its end where it has none.
    Number(String),
}

impl Cell {
    /// An empty field.
    pub fn none() -> Cell {
        Cell::Text("-".into())
    }

    /// A whole number.
    pub fn count(n: u64) -> Cell {
        Cell::Number(n.to_string())
    }

    /// As shown.
    fn text(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Number(text) => text,
        }
    }

    /// Characters from the point on.
    fn fraction(&self) -> usize {
        match self {
            Cell::Text(_) => 0,
            Cell::Number(text) => at_point(text).1.chars().count(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// A table. Printed as lines that each end in a newline.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    /// A table without rows.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Grid {
        Grid { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Fields that it lacks are shown as `-`, since a line has all its fields; so is
    /// an empty one.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().map(one_field).collect();
        row.resize(self.head.len(), Cell::none());
        self.rows.push(row);
    }

    /// The lines of a column, its head first, all of one width: to the left among words, among
    /// numbers to the right.
    fn column(&self, index: usize) -> Vec<String> {
        let cells = || self.rows.iter().map(|row| &row[index]);
        let fraction = cells().map(Cell::fraction).max().unwrap_or(0);
        let on_point = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Number(text) => format!("{text}{}", " ".repeat(fraction - cell.fraction())),
        };
        let lines: Vec<String> =
            std::iter::once(self.head[index].clone()).chain(cells().map(on_point)).collect();
        let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let placed = |line: String| match cells().any(|cell| matches!(cell, Cell::Number(_))) {
            true => format!("{line:>width$}"),
            false => format!("{line:<width$}"),
        };
        lines.into_iter().map(placed).collect()
    }
}

/// A field's text without anything that would part it in two.
fn one_field(cell: Cell) -> Cell {
    let words: Vec<&str> = cell.text().split_whitespace().collect();
    let text = if words.is_empty() { "-".to_owned() } else { words.join(" ") };
    match cell {
        Cell::Text(_) => Cell::Text(text),
        Cell::Number(_) => Cell::Number(text),
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = (0..self.head.len()).map(|index| self.column(index)).collect();
        for line in 0..=self.rows.len() {
            let fields: Vec<&str> = columns.iter().map(|column| column[line].as_str()).collect();
            writeln!(f, "{}", fields.join(GAP).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Cell {
        Cell::Number(text.into())
    }

    #[test]
    fn decimal_points_stand_under_each_other() {
        let mut grid = Grid::new(["name", "p50 us", "n"]);
        grid.row(["a".into(), number("15.32"), number("10")]);
        grid.row(["bcd".into(), number("5"), number("10000")]);
        grid.row(["e".into(), number("0.1243"), "n too small".into()]);
        assert_eq!(
            grid.to_string(),
            "name   p50 us            n\n\
             a     15.32             10\n\
             bcd    5             10000\n\
             e      0.1243  n too small\n"
        );
    }

    #[test]
    fn a_line_has_all_its_fields() {
        let mut grid = Grid::new(["a", "b", "c"]);
        grid.row(["".into(), "two  spaces".into()]);
        assert_eq!(grid.to_string(), "a  b           c\n-  two spaces  -\n");
    }

    proptest! {
        #[test]
        fn fields_can_be_told_apart_whatever_they_hold(
            rows in prop::collection::vec(prop::collection::vec("[ a-z0-9.±\n-]{0,9}", 3), 1..5),
            numbers: bool,
        ) {
            let mut grid = Grid::new(["first", "second", "third"]);
            for row in &rows {
                let mut cells = row.iter().cloned();
                let first = Cell::Text(cells.next().unwrap_or_default());
                let others = cells.map(|t| if numbers { Cell::Number(t) } else { Cell::Text(t) });
                grid.row(std::iter::once(first).chain(others));
            }
            let text = grid.to_string();
            prop_assert_eq!(text.lines().count(), rows.len() + 1);
            for line in text.lines() {
                let fields = line.split("  ").filter(|field| !field.trim().is_empty()).count();
                prop_assert_eq!(fields, 3, "{:?}", line);
                prop_assert!(!line.starts_with(' ') && !line.ends_with(' '));
            }
        }
    }
}
