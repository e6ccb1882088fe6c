//! Columns: words to the left, numbers on their decimal point.

use crate::report::model::{Cell, Figure};
use crate::report::number::{at_point, fixed, with_error};
use std::fmt;

/// Between two columns. A field holds no two spaces in a row, so this separates them.
const GAP: &str = "  ";

/// One field: words, or a number as shown, which is aligned on its point, or on its end where it
/// has none.
#[derive(Clone, Debug)]
pub(super) struct Field {
    text: String,
    is_number: bool,
}

impl Field {
    /// The text with single spaces only, since columns are two apart; `-` if it is empty.
    pub(super) fn new(text: &str, is_number: bool) -> Field {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = if words.is_empty() { "-".to_owned() } else { words.join(" ") };
        Field { text, is_number }
    }

    pub(super) fn none() -> Field {
        Field::new("", false)
    }

    /// A cell, and its error.
    pub(super) fn of(cell: &Cell) -> (Field, Field) {
        let words = |text| (Field::new(text, false), Field::none());
        let number = |text: String| (Field::new(&text, true), Field::none());
        match cell {
            Cell::None => (Field::none(), Field::none()),
            Cell::Text(text) => words(text),
            Cell::Count(n) | Cell::Size(n) => number(n.to_string()),
            Cell::TooSmall => words("n too small"),
            Cell::NotComputed => words("not computed"),
            Cell::Bad(cell) => Field::of(cell),
            Cell::Figure(Figure { value, scale, decimals: Some(decimals), .. }) => {
                number(fixed(value.0 * scale, *decimals))
            }
            Cell::Figure(Figure { value, interval, scale, .. }) => {
                let (value, error) = with_error(value.0, *interval, *scale);
                // An interval has two points; it stands under no other.
                let error = error
                    .map_or_else(Field::none, |error| Field::new(&error, error.starts_with('±')));
                (Field::new(&value, true), error)
            }
        }
    }

    /// Characters from the point on.
    fn fraction(&self) -> usize {
        if self.is_number { at_point(&self.text).1.chars().count() } else { 0 }
    }
}

/// A table. Printed as lines that each end in a newline.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<Field>>,
}

impl Grid {
    /// A table without rows.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Grid {
        Grid { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Fields that it lacks are shown as `-`, since a line has all its fields; so is
    /// an empty one.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.fields(cells.into_iter().map(|cell| Field::of(&cell).0));
    }

    pub(super) fn fields(&mut self, fields: impl IntoIterator<Item = Field>) {
        let mut row: Vec<Field> = fields.into_iter().collect();
        row.resize(self.head.len(), Field::none());
        self.rows.push(row);
    }

    /// The lines of a column, its head first, all of one width: to the left among words, among
    /// numbers to the right.
    fn column(&self, index: usize) -> Vec<String> {
        let cells = || self.rows.iter().map(|row| &row[index]);
        let fraction = cells().map(Field::fraction).max().unwrap_or(0);
        let on_point = |cell: &Field| match cell.is_number {
            false => cell.text.clone(),
            true => format!("{}{}", cell.text, " ".repeat(fraction - cell.fraction())),
        };
        let lines: Vec<String> =
            std::iter::once(self.head[index].clone()).chain(cells().map(on_point)).collect();
        let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let placed = |line: String| match cells().any(|cell| cell.is_number) {
            true => format!("{line:>width$}"),
            false => format!("{line:<width$}"),
        };
        lines.into_iter().map(placed).collect()
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

    fn number(text: &str) -> Field {
        Field::new(text, true)
    }

    fn words(text: &str) -> Field {
        Field::new(text, false)
    }

    #[test]
    fn decimal_points_stand_under_each_other() {
        let mut grid = Grid::new(["name", "p50 us", "n"]);
        grid.fields([words("a"), number("15.32"), number("10")]);
        grid.fields([words("bcd"), number("5"), number("10000")]);
        grid.fields([words("e"), number("0.1243"), words("n too small")]);
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
                let first = words(&cells.next().unwrap_or_default());
                grid.fields(std::iter::once(first).chain(cells.map(|t| Field::new(&t, numbers))));
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
