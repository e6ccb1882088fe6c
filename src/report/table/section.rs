//! A section as text: each table as a [`Grid`], a matrix as one or as its range, notes a line each.

use super::grid::{Field, Grid};
use crate::report::model::{Cell, HeatMap, Note, Section, Table};
use crate::report::number::short;

/// Most names of which a matrix is printed: more do not fit a terminal, and the page has them.
const MOST: usize = 16;

/// The blocks of sections: first the tables that answer the question.
pub fn blocks(sections: &[Section]) -> Vec<String> {
    let results = sections.iter().flat_map(|section| &section.results).filter_map(table);
    results.chain(sections.iter().flat_map(section)).collect()
}

fn section(section: &Section) -> Vec<String> {
    let mut blocks: Vec<String> =
        section.tables.iter().filter_map(table).chain(section.maps.iter().map(map)).collect();
    let notes = notes(&section.notes);
    match blocks.first_mut() {
        Some(first) => first.insert_str(0, &notes),
        None if notes.is_empty() => {}
        None => blocks.push(notes),
    }
    blocks.extend(section.parts.iter().flat_map(self::section));
    blocks
}

fn notes(notes: &[Note]) -> String {
    let shown = notes.iter().filter(|note| note.show.on_terminal());
    shown.map(|note| format!("{}\n", note.text.replace('\n', " "))).collect()
}

/// A table with its caption and its notes; `None` where the terminal does not show it.
pub fn table(table: &Table) -> Option<String> {
    if !table.show.on_terminal() || table.rows.is_empty() {
        return None;
    }
    let shown: Vec<bool> = table.columns.iter().map(|one| one.show.on_terminal()).collect();
    let columns = table.columns.iter().filter(|column| column.show.on_terminal());
    let mut grid = Grid::new(columns.flat_map(|column| {
        let head = format!("{} {}", column.head, column.unit).trim().to_owned();
        std::iter::once(head).chain(column.with_error.then(|| "±".to_owned()))
    }));
    for row in &table.rows {
        let cells = row.cells.iter().zip(&table.columns).zip(&shown);
        let shown = cells.filter(|(_, shown)| **shown).map(|(both, _)| both);
        grid.fields(shown.flat_map(|(cell, column)| {
            let (value, error) = Field::of(cell);
            std::iter::once(value).chain(column.with_error.then_some(error))
        }));
    }
    let caption = notes(std::slice::from_ref(&table.caption));
    let caption = if table.caption.text.is_empty() { "" } else { &caption };
    Some(format!("{caption}{grid}{}", notes(&table.notes)))
}

fn map(map: &HeatMap) -> String {
    let names = map.names.len();
    let out = format!("{}, in {}: {}\n", map.title, map.unit, map.axes);
    if names > MOST {
        let range = map.range().map_or("nothing was measured".into(), |(low, high)| {
            format!("{} to {}", short(low * map.scale), short(high * map.scale))
        });
        return format!("{out}{names} hosts, {range}; the page shows all\n");
    }
    let mut grid = Grid::new(std::iter::once("host").chain(map.names.iter().map(String::as_str)));
    for (row, name) in map.names.iter().enumerate() {
        let cell = |column| match map.cell(row, column) {
            Some(cell) => Cell::figure(cell.value.0, None, map.scale),
            None => Cell::None,
        };
        grid.row(std::iter::once(name.as_str().into()).chain((0..names).map(cell)));
    }
    out + &grid.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{HeatCell, OfRun, Show, figure, number, text};
    use crate::stats::{Interval, Value};

    impl OfRun for f64 {}

    fn made() -> Table {
        let around = |v: f64| Interval { low: Value(0.9 * v), high: Value(1.1 * v) };
        let time = move |v: &f64| match v {
            v if v.is_nan() => Cell::TooSmall,
            v => Cell::figure(*v, Some(around(*v)), 1e-3),
        };
        let fields = [
            text("name", |v: &f64| if v.is_nan() { Cell::None } else { "a  b".into() }),
            number("size", "B", |_: &f64| Cell::Size(65536)),
            number("n", "", |_: &f64| Cell::Count(10_000)).show(Show::Page),
            figure("p50", "us", time),
            number("share", "%", |_: &f64| Cell::fixed(12.0, 2).bad_if(true)),
        ];
        let table = Table::of([1500.0, f64::NAN], fields).unwrap();
        table.caption(Note::new("above", Show::Page)).notes(["below\nit"])
    }

    #[test]
    fn a_table_has_a_field_for_each_error_and_leaves_out_what_the_page_alone_shows() {
        let text = table(&made()).unwrap();
        let expected = "name  size B       p50 us      ±  share %\n\
                        a b    65536        1.500  ±0.15    12.00\n\
                        -      65536  n too small      -    12.00\n\
                        below it\n";
        assert_eq!(text, expected);
        assert_eq!(table(&made().show(Show::Page)), None);
    }

    #[test]
    fn the_tables_that_answer_the_question_come_first() {
        let mut one = Section::new("one", "One");
        one.notes = vec!["graph: one".into(), Note::new("hidden", Show::Page)];
        one.tables = vec![made()];
        let two = Section { results: vec![made()], ..Section::new("two", "Two") };
        let blocks = blocks(&[one, two]);
        assert!(blocks[0].starts_with("name") && blocks[1].starts_with("graph: one\nname"));
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn a_large_matrix_is_its_range() {
        let mut small = HeatMap { title: "p50".into(), scale: 1e-3, ..HeatMap::default() };
        small.names = ["here", "there"].map(String::from).to_vec();
        small.cells.insert((0, 1), HeatCell { value: Value(2500.0), run: 3 });
        let rows: Vec<String> = map(&small).lines().map(String::from).collect();
        assert_eq!(rows[2].split_whitespace().collect::<Vec<_>>(), ["here", "-", "2.500"]);
        small.names = vec![String::new(); MOST + 1];
        assert!(map(&small).ends_with("17 hosts, 2.500 to 2.500; the page shows all\n"));
    }
}
