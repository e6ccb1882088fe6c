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
    pub fn text(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Number(text) => text,
        }
    }

    /// Characters before the point, and from the point on.
    fn parts(&self) -> (usize, usize) {
        let (whole, fraction) = at_point(self.text());
        (whole.chars().count(), fraction.chars().count())
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

/// The width of a column, and the place of its decimal point.
#[derive(Clone, Copy, Default)]
struct Column {
    numbers: bool,
    /// Characters before the point.
    whole: usize,
    /// Characters from the point on.
    fraction: usize,
    width: usize,
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

    /// The names of its columns.
    pub fn head(&self) -> &[String] {
        &self.head
    }

    /// Its rows, each with as many fields.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn column(&self, index: usize) -> Column {
        let mut column = Column::default();
        let cells = self.rows.iter().filter_map(|row| row.get(index));
        for cell in cells {
            if let Cell::Number(_) = cell {
                let (whole, fraction) = cell.parts();
                column.numbers = true;
                column.whole = column.whole.max(whole);
                column.fraction = column.fraction.max(fraction);
            }
            column.width = column.width.max(cell.text().chars().count());
        }
        let head = self.head.get(index).map_or(0, |head| head.chars().count());
        column.width = column.width.max(head).max(column.whole + column.fraction);
        column
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

impl Column {
    fn head(self, text: &str) -> String {
        self.placed(text, 0)
    }

    fn cell(self, cell: &Cell) -> String {
        let after = match cell {
            Cell::Number(_) => self.fraction - cell.parts().1.min(self.fraction),
            Cell::Text(_) => 0,
        };
        self.placed(cell.text(), after)
    }

    /// To the left among words; among numbers to the right, with so many spaces after it.
    fn placed(self, text: &str, after: usize) -> String {
        let rest = self.width.saturating_sub(text.chars().count() + after);
        match self.numbers {
            true => format!("{}{text}{}", " ".repeat(rest), " ".repeat(after)),
            false => format!("{text}{}", " ".repeat(rest)),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<Column> = (0..self.head.len()).map(|index| self.column(index)).collect();
        let head = columns.iter().zip(&self.head).map(|(column, text)| column.head(text));
        writeln!(f, "{}", head.collect::<Vec<_>>().join(GAP).trim_end())?;
        for row in &self.rows {
            let cells = columns.iter().zip(row).map(|(column, cell)| column.cell(cell));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join(GAP).trim_end())?;
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
