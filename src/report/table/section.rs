//! A section as text: each table as a [`Grid`], a matrix as one or as its range, notes a line each.

use super::grid::{Cell as Field, Grid};
use crate::report::model::{Cell, Figure, HeatMap, Note, Section, Table};
use crate::report::number::{fixed, short, with_error};

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
        grid.row(shown.flat_map(|(cell, column)| {
            let (value, error) = fields(cell);
            std::iter::once(value).chain(column.with_error.then_some(error))
        }));
    }
    let caption = notes(std::slice::from_ref(&table.caption));
    let caption = if table.caption.text.is_empty() { "" } else { &caption };
    Some(format!("{caption}{grid}{}", notes(&table.notes)))
}

/// A cell, and its error.
fn fields(cell: &Cell) -> (Field, Field) {
    let alone = |field| (field, Field::none());
    match cell {
        Cell::None => alone(Field::none()),
        Cell::Text(text) => alone(Field::Text(text.clone())),
        Cell::Count(n) | Cell::Size(n) => alone(Field::count(*n)),
        Cell::TooSmall => alone("n too small".into()),
        Cell::NotComputed => alone("not computed".into()),
        Cell::Bad(cell) => fields(cell),
        Cell::Figure(Figure { value, scale, decimals: Some(decimals), .. }) => {
            alone(Field::Number(fixed(value.0 * scale, *decimals)))
        }
        Cell::Figure(Figure { value, interval, scale, .. }) => {
            let (value, error) = with_error(value.0, *interval, *scale);
            (Field::Number(value), error.map_or_else(Field::none, Field::Number))
        }
    }
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
            Some(cell) => Field::Number(short(cell.value.0 * map.scale)),
            None => Field::none(),
        };
        grid.row(std::iter::once(name.as_str().into()).chain((0..names).map(cell)));
    }
    out + &grid.to_string()
}
