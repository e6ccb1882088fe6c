//! A section as text: each table as a [`Grid`], a matrix as one or as its range, notes a line each.

use super::fit::Head;
use super::grid::Grid;
use super::layout::{Columns, Layout};
use super::text::{Text, Tone};
use crate::model::{Cell, Column, HeatMap, Note, Section, Table};
use crate::number::short;
use wiregauge_base::units::counted;

/// Of commands without a choice of columns.
pub const VERBOSE: &str = "--verbose";
/// Most names of which a matrix is printed: more do not fit a terminal, and the page has them.
const MOST: usize = 16;
/// The report of a run has all columns in its page.
const PAGE: &str = "--columns all, or the page";

/// The blocks of sections: first the tables that answer the question.
pub fn blocks(sections: &[Section], layout: &Layout) -> Vec<Text> {
    let results = sections.iter().flat_map(|section| &section.results);
    let results = results.filter_map(|one| table(one, layout, PAGE));
    results.chain(sections.iter().flat_map(|one| section(one, layout))).collect()
}

fn section(section: &Section, layout: &Layout) -> Vec<Text> {
    let tables = section.tables.iter().filter_map(|one| table(one, layout, PAGE));
    let maps = section.maps.iter().filter(|one| one.show.on_terminal());
    let maps = maps.map(|one| map(one, layout));
    let mut blocks: Vec<Text> = tables.chain(maps).collect();
    let mut notes = notes(&section.notes, layout);
    match blocks.first_mut() {
        Some(first) => {
            notes.append(std::mem::take(first));
            *first = notes;
        }
        None if notes.is_empty() => {}
        None => blocks.push(notes),
    }
    blocks.extend(section.parts.iter().flat_map(|part| self::section(part, layout)));
    blocks
}

fn notes(notes: &[Note], layout: &Layout) -> Text {
    let mut text = Text::default();
    let shown = notes.iter().filter(|note| note.show.on_terminal());
    shown.for_each(|note| text.append(layout.sentence(&note.text, Tone::Head)));
    text
}

/// The columns of sections that a terminal can show, each with its names.
pub fn columns(sections: &[Section]) -> Vec<Vec<String>> {
    let of_table = |table: &Table| shown(table).map(|column| Head::from(column).names).collect();
    let of_section = |section: &Section| -> Vec<Vec<String>> {
        let tables = section.results.iter().chain(&section.tables);
        let tables = tables.filter(|table| table.show.on_terminal() && !table.rows.is_empty());
        let own = tables.flat_map(|table| -> Vec<Vec<String>> { of_table(table) });
        own.chain(columns(&section.parts)).collect()
    };
    sections.iter().flat_map(of_section).collect()
}

fn shown(table: &Table) -> impl Iterator<Item = &Column> {
    table.columns.iter().filter(|column| column.show.on_terminal())
}

/// A table with its caption and its notes; `None` where the terminal does not show it, or it has no
/// column that was asked for. `elsewhere`: what shows the columns that do not
/// fit.
pub fn table(table: &Table, layout: &Layout, elsewhere: &str) -> Option<Text> {
    if !table.show.on_terminal() || table.rows.is_empty() {
        return None;
    }
    let heads: Vec<Head> = shown(table).map(Head::from).collect();
    if !heads.iter().any(|head| layout.has_named(&head.names)) {
        return None;
    }
    let mut grid = Grid::of(heads);
    for row in &table.rows {
        let cells = row.cells.iter().zip(&table.columns);
        grid.row(
            cells.filter(|(_, column)| column.show.on_terminal()).map(|(cell, _)| cell.clone()),
        );
    }
    let caption = std::slice::from_ref(&table.caption);
    let mut text = match table.caption.text.is_empty() {
        true => Text::default(),
        false => notes(caption, layout),
    };
    let (lines, left_out) = grid.text(layout);
    text.append(lines);
    if left_out > 0 {
        let more = counted(left_out, "more column");
        let more = format!("{more}: {elsewhere}");
        text.append(layout.sentence(&more, Tone::Plain));
    }
    text.append(notes(&table.notes, layout));
    Some(text)
}

fn map(map: &HeatMap, layout: &Layout) -> Text {
    let names = map.names.len();
    let mut text =
        layout.sentence(&format!("{}, in {}: {}", map.title, map.unit, map.axes), Tone::Head);
    let mut grid = Grid::new(std::iter::once("host").chain(map.names.iter().map(String::as_str)));
    for (row, name) in map.names.iter().enumerate() {
        let cell = |column| match map.cell(row, column) {
            Some(cell) => Cell::figure(cell.value.0, None, map.scale),
            None => Cell::None,
        };
        grid.row(std::iter::once(name.as_str().into()).chain((0..names).map(cell)));
    }
    // Its columns are hosts, and no figures that could be left out.
    let whole = &Layout { columns: Columns::default(), ..layout.clone() };
    if names <= MOST && grid.is_whole(whole) {
        text.append(grid.text(whole).0);
        return text;
    }
    let range = map.range().map_or("nothing was measured".into(), |(low, high)| {
        format!("{} to {}", short(low * map.scale), short(high * map.scale))
    });
    let range = format!("{names} rows and columns, {range}; the page shows all");
    text.append(layout.sentence(&range, Tone::Plain));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HeatCell, OfRun, Show, figure, number, text};
    use wiregauge_stats::{Interval, Value};

    struct Row(f64);

    impl OfRun for Row {}

    fn made() -> Table {
        let around = |v: f64| Interval { low: Value(0.9 * v), high: Value(1.1 * v) };
        let time = move |Row(v): &Row| match v {
            v if v.is_nan() => Cell::TooSmall,
            v => Cell::figure(*v, Some(around(*v)), 1e-3),
        };
        let fields = [
            text("name", |Row(v): &Row| if v.is_nan() { Cell::None } else { "a  b".into() }),
            number("size", "B", |_: &Row| Cell::Size(65536)),
            number("n", "", |_: &Row| Cell::Count(10_000)).show(Show::Page),
            figure("p50", "us", time),
            number("share", "%", |_: &Row| Cell::fixed(12.0, 2).bad_if(true)),
        ];
        let table = Table::of([Row(1500.0), Row(f64::NAN)], fields).unwrap();
        table.caption(Note::new("above", Show::Page)).notes(["below\nit"])
    }

    #[test]
    fn a_table_has_a_field_for_each_error_and_leaves_out_what_the_page_alone_shows() {
        let text = table(&made(), &Layout::default(), "").unwrap().to_string();
        let expected = "name  size B       p50 us      ±  share %\n\
                        a b    65536        1.500  ±0.15    12.00\n\
                        -      65536  n too small      -    12.00\n\
                        below it\n";
        assert_eq!(text, expected);
        assert_eq!(table(&made().show(Show::Page), &Layout::default(), ""), None);
    }

    #[test]
    fn the_tables_that_answer_the_question_come_first() {
        let mut one = Section::new("one", "One");
        one.notes = vec!["graph: one".into(), Note::new("hidden", Show::Page)];
        one.tables = vec![made()];
        let two = Section { results: vec![made()], ..Section::new("two", "Two") };
        let blocks = blocks(&[one, two], &Layout::default());
        let blocks: Vec<String> = blocks.iter().map(Text::to_string).collect();
        assert!(blocks[0].starts_with("name") && blocks[1].starts_with("graph: one\nname"));
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn a_large_matrix_is_its_range() {
        let mut small = HeatMap { title: "p50".into(), scale: 1e-3, ..HeatMap::default() };
        small.names = ["here", "there"].map(String::from).to_vec();
        small.cells.insert((0, 1), HeatCell { value: Value(2500.0), interval: None, run: 3 });
        let text = |map: &HeatMap| super::map(map, &Layout::default()).to_string();
        let rows: Vec<String> = text(&small).lines().map(String::from).collect();
        assert_eq!(rows[2].split_whitespace().collect::<Vec<_>>(), ["here", "-", "2.500"]);
        small.names = vec![String::new(); MOST + 1];
        assert!(
            text(&small).ends_with("17 rows and columns, 2.500 to 2.500; the page shows all\n")
        );
    }
}
