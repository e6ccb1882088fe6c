//! A table as text: words to the left, numbers on their decimal point.

use super::field::Field;
use super::fit::{Fit, Head};
use super::layout::{Layout, width};
use super::text::{Text, Tone};
use crate::model::{Cell, Rank};
use wiregauge_plan::written::escaped;

/// Between two columns. A field holds no two spaces in a row, so this separates them.
const GAP: &str = "  ";

/// A table. Its lines each end in a newline.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    heads: Vec<Head>,
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    /// A table without rows, of which the first column says which row it is.
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = T>) -> Grid {
        let head = |(at, text): (usize, T)| {
            let (text, rank) =
                (escaped(&text.into()), if at == 0 { Rank::Label } else { Rank::Main });
            Head { names: vec![text.clone()], text, rank, ..Head::default() }
        };
        Grid::of(heads.into_iter().enumerate().map(head))
    }

    pub(super) fn of(heads: impl IntoIterator<Item = Head>) -> Grid {
        Grid { heads: heads.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row. Fields that it lacks are shown as `-`, since a line has all its fields; so is
    /// an empty one.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().collect();
        row.resize(self.heads.len(), Cell::None);
        self.rows.push(row);
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().map(move |row| &row[column])
    }

    /// Whether all of it stands beside each other.
    pub(super) fn is_whole(&self, layout: &Layout) -> bool {
        layout.width.is_none_or(|width| self.fit(width, layout).is_whole())
    }

    fn fit(&self, width: usize, layout: &Layout) -> Fit<'_> {
        let columns = self.heads.iter().enumerate();
        let columns = columns.map(|(at, head)| (head, self.cells(at).collect()));
        Fit::new(&columns.collect::<Vec<_>>(), width, layout)
    }

    /// Its lines, and how many columns did not fit.
    pub fn text(&self, layout: &Layout) -> (Text, usize) {
        match layout.width {
            None => (self.for_programs(layout), 0),
            Some(width) => self.fit(width, layout).text(),
        }
    }

    /// Lines whose fields are two spaces or more apart, each with a field for each error.
    fn for_programs(&self, layout: &Layout) -> Text {
        let mut columns = Vec::new();
        for (at, head) in self.heads.iter().enumerate() {
            if head.rank != Rank::Label && !layout.has_named(&head.names) {
                continue;
            }
            let (values, errors): (Vec<Field>, Vec<Field>) =
                self.cells(at).map(Field::and_error).unzip();
            columns.push(aligned(&head.text, &values));
            if head.with_error {
                columns.push(aligned("±", &errors));
            }
        }
        let mut text = Text::default();
        for line in 0..=self.rows.len() {
            for (at, column) in columns.iter().enumerate() {
                text.push(Tone::Plain, if at == 0 { "" } else { GAP });
                let (tone, field) = &column[line];
                text.push(*tone, field);
            }
            text.end_line();
        }
        text
    }
}

/// The lines of a column, its head first, all of one width: to the left among words, among numbers
/// to the right.
fn aligned(head: &str, fields: &[Field]) -> Vec<(Tone, String)> {
    let fraction = fields.iter().map(Field::fraction).max().unwrap_or(0);
    let on_point = |field: &Field| match field.is_number {
        false => field.value.clone(),
        true => format!("{}{}", field.value, " ".repeat(fraction - field.fraction())),
    };
    let tones = std::iter::once(Tone::Head).chain(fields.iter().map(|field| field.tone));
    let lines = std::iter::once(head.to_owned()).chain(fields.iter().map(on_point));
    let lines: Vec<(Tone, String)> = tones.zip(lines).collect();
    let widest = lines.iter().map(|(_, line)| width(line)).max().unwrap_or(0);
    let is_number = fields.iter().any(|field| field.is_number);
    let placed = |(tone, line): (Tone, String)| {
        let room = " ".repeat(widest - width(&line));
        (tone, if is_number { room + &line } else { line + &room })
    };
    lines.into_iter().map(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(grid: &Grid) -> String {
        grid.text(&Layout::default()).0.to_string()
    }

    #[test]
    fn decimal_points_stand_under_each_other() {
        let mut grid = Grid::new(["name", "p50 us", "n"]);
        grid.row(["a".into(), Cell::fixed(15.32, 2), Cell::Count(10)]);
        grid.row(["bcd".into(), Cell::fixed(5.0, 0), Cell::Count(10_000)]);
        grid.row(["e".into(), Cell::fixed(0.1243, 4), Cell::TooSmall]);
        assert_eq!(
            plain(&grid),
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
        assert_eq!(plain(&grid), "a  b           c\n-  two spaces  -\n");
    }

    #[test]
    fn columns_stand_below_each_other_whatever_is_escaped() {
        let mut grid = Grid::new(["name", "n"]);
        grid.row(["a".into(), Cell::Count(1)]);
        grid.row(["\u{1b}[2J".into(), Cell::Count(10)]);
        assert_eq!(plain(&grid), "name        n\na           1\n\\u{1b}[2J  10\n");
        let narrow = grid.text(&Layout::of_width(20)).0.to_string();
        assert_eq!(narrow, plain(&grid));
    }

    proptest! {
        #[test]
        fn fields_can_be_told_apart_whatever_they_hold(
            rows in prop::collection::vec(prop::collection::vec("[ a-z0-9.±\n-]{0,9}", 3), 1..5),
            numbers in prop::collection::vec(-1e6f64..1e6, 5),
        ) {
            let mut grid = Grid::new(["first", "second", "third", "fourth"]);
            for (row, number) in rows.iter().zip(numbers) {
                let cells = row.iter().map(|text| Cell::from(text.as_str()));
                grid.row(cells.chain([Cell::number(number)]));
            }
            let text = plain(&grid);
            prop_assert_eq!(text.lines().count(), rows.len() + 1);
            for line in text.lines() {
                let fields = line.split("  ").filter(|field| !field.trim().is_empty()).count();
                prop_assert_eq!(fields, 4, "{:?}", line);
                prop_assert!(!line.starts_with(' ') && !line.ends_with(' '));
            }
        }
    }
}
