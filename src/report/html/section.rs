//! Sections, tables and matrices as HTML, and what the scripts need to draw the plots.

use super::escape;
use super::number::{aligned, fraction, plain, shown};
use crate::report::model::{
    Cell, Column, Data, Figure, HeatMap, Note, Plot, Row, Section, Surface, Table,
};
use crate::report::number::{bytes, count};
use crate::stats::Interval;
use serde::Serialize;

/// Most names of which the cells of a matrix show their numbers; of more they are in the cells'
/// titles.
const MOST_NUMBERS: usize = 24;

/// A section with all below its title; empty where there is nothing.
pub fn section(section: &Section) -> String {
    if section.is_empty() {
        return String::new();
    }
    let (id, title) = (escape(&section.id), escape(&section.title));
    format!(
        "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{title}</h2>\n{}{}\
         </section>\n",
        notes(&section.notes),
        body(section)
    )
}

fn body(section: &Section) -> String {
    let mut out = String::new();
    if !section.plots.is_empty() || !section.surfaces.is_empty() {
        let id = escape(&section.id);
        let class = if section.plots.len() > 1 { " class=\"grid\"" } else { "" };
        out.push_str(&format!("<div data-plots=\"{id}\"{class}></div>\n"));
    }
    section.tables.iter().for_each(|one| out.push_str(&table(one)));
    section.maps.iter().for_each(|one| out.push_str(&map(one)));
    let parts: String = section.parts.iter().map(part).collect();
    if !parts.is_empty() {
        out.push_str(&format!("<div class=\"grid\">\n{parts}</div>\n"));
    }
    out
}

/// A part of a section: its plot carries its title.
fn part(part: &Section) -> String {
    let class = if part.surfaces.is_empty() { "graph" } else { "graph wide" };
    format!(
        "<div class=\"{class}\" id=\"{}\">\n<noscript><h3>{}</h3></noscript>\n{}{}</div>\n",
        escape(&part.id),
        escape(&part.title),
        body(part),
        notes(&part.notes)
    )
}

fn notes(notes: &[Note]) -> String {
    let shown = notes.iter().filter(|note| note.show.on_page());
    let items: String = shown.map(|note| format!("<li>{}</li>", escape(&note.text))).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>\n") }
}

/// A table with its caption and notes.
pub fn table(table: &Table) -> String {
    if !table.show.on_page() || table.rows.is_empty() {
        return String::new();
    }
    let caption = Some(&table.caption).filter(|caption| caption.show.on_page());
    let caption = caption.map_or_else(String::new, |caption| escape(&caption.text));
    let id = if table.id.is_empty() { "" } else { &format!(" id=\"{}\"", escape(&table.id)) };
    let columns = columns(table);
    let heads: String = columns.iter().map(head).collect();
    let rows: String = table.rows.iter().map(|one| row(one, &columns)).collect();
    let shown = match (caption.is_empty(), table.folded) {
        (false, false) => format!("<caption><span>{caption}</span></caption>\n"),
        _ => String::new(),
    };
    let body = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table{id} \
         class=\"figures\">\n{shown}<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n</div>\n",
        if caption.is_empty() { "Figures" } else { &caption }
    );
    let notes = notes(&table.notes);
    match table.folded {
        true => format!("<details><summary>{caption}</summary>\n{notes}{body}</details>\n"),
        false => body + &notes,
    }
}

/// A column with its position and what its cells have in common.
struct Place<'a> {
    column: &'a Column,
    at: usize,
    /// Characters of its longest fraction, the point included.
    fraction: usize,
    /// Whether its cells carry a unit of their own.
    has_sizes: bool,
}

fn columns(table: &Table) -> Vec<Place<'_>> {
    let shown = table.columns.iter().enumerate().filter(|(_, column)| column.show.on_page());
    let place = |(at, column)| {
        let cells = || table.rows.iter().filter_map(move |row| row.cells.get(at));
        let fraction = cells().map(width).max().unwrap_or(0);
        let has_sizes = cells().any(|cell| matches!(cell, Cell::Size(_)));
        Place { column, at, fraction, has_sizes }
    };
    shown.map(place).collect()
}

fn width(cell: &Cell) -> usize {
    match cell {
        Cell::Figure(Figure { value, scale, decimals, .. }) => {
            fraction(&shown(value.0 * scale, *decimals))
        }
        Cell::Bad(cell) => width(cell),
        _ => 0,
    }
}

fn head(place: &Place<'_>) -> String {
    let Column { head, unit, is_number, .. } = place.column;
    let class = if *is_number { " class=\"n\"" } else { "" };
    let unit = match unit.as_str() {
        "" => String::new(),
        _ if place.has_sizes => String::new(),
        unit => format!("<small>{}</small>", escape(unit)),
    };
    format!("<th scope=\"col\"{class}>{}{unit}</th>", escape(head))
}

fn row(row: &Row, columns: &[Place<'_>]) -> String {
    let run = row.run.map_or_else(String::new, |run| format!(" data-run=\"{run}\""));
    let mark = if row.incomplete { " <span class=\"bad\">incomplete</span>" } else { "" };
    let cells: String = columns
        .iter()
        .enumerate()
        .map(|(number, place)| {
            let cell = row.cells.get(place.at).unwrap_or(&Cell::None);
            match number {
                0 => format!("<th scope=\"row\">{}{mark}</th>", content(cell, place)),
                _ => field(cell, place),
            }
        })
        .collect();
    format!("<tr{run}>{cells}</tr>\n")
}

fn field(cell: &Cell, place: &Place<'_>) -> String {
    let mut class = Vec::new();
    class.extend(place.column.is_number.then_some("n"));
    class.extend(place.column.is_prose.then_some("text"));
    class.extend((*cell == Cell::None).then_some("none"));
    class.extend(matches!(cell, Cell::Bad(_)).then_some("bad"));
    let class = match class.is_empty() {
        true => String::new(),
        false => format!(" class=\"{}\"", class.join(" ")),
    };
    format!("<td{class} data-k=\"{}\">{}</td>", escape(&place.column.key), content(cell, place))
}

fn content(cell: &Cell, place: &Place<'_>) -> String {
    match cell {
        Cell::None => "–".into(),
        Cell::Text(text) => escape(text),
        Cell::Count(n) => format!("<data value=\"{n}\">{}</data>", count(*n)),
        Cell::Size(n) => format!("<data value=\"{n}\">{}</data>", bytes(*n)),
        Cell::TooSmall => "<span class=\"small\">n too small</span>".into(),
        Cell::NotComputed => "<span class=\"small\">not computed</span>".into(),
        Cell::Bad(cell) => content(cell, place),
        Cell::Figure(figure) => {
            let text = shown(figure.value.0 * figure.scale, figure.decimals);
            let mut out = aligned(figure.value.0, &text, place.fraction);
            if place.column.with_error {
                out.push_str(&interval(figure.interval, figure.scale));
            }
            if !figure.note.is_empty() {
                out.push_str(&format!("<span class=\"ci\">{}</span>", escape(&figure.note)));
            }
            out
        }
    }
}

/// Both bounds of an interval, small, below its figure.
fn interval(interval: Option<Interval>, scale: f64) -> String {
    match interval {
        None => "<span class=\"ci\">no interval</span>".to_owned(),
        Some(Interval { low, high }) => format!(
            "<span class=\"ci\" data-low=\"{}\" data-high=\"{}\">{} – {}</span>",
            plain(low.0),
            plain(high.0),
            shown(low.0 * scale, None),
            shown(high.0 * scale, None)
        ),
    }
}

fn map(map: &HeatMap) -> String {
    let names = &map.names;
    let with_numbers = names.len() <= MOST_NUMBERS;
    let head = |name: &String| match with_numbers {
        true => format!("<th scope=\"col\" class=\"n\">{}</th>", escape(name)),
        false => format!("<th scope=\"col\" title=\"{}\"></th>", escape(name)),
    };
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n\
         <table class=\"heat{1}\">\n<caption>{0}, in {2}: {3}; the darker, the worse</caption>\n\
         <thead><tr><td></td>{4}</tr></thead>\n<tbody>\n",
        escape(&map.title),
        if with_numbers { "" } else { " dense" },
        escape(&map.unit),
        escape(&map.axes),
        names.iter().map(head).collect::<String>()
    );
    for (row, name) in names.iter().enumerate() {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape(name)));
        for column in 0..names.len() {
            out.push_str(&heat_cell(map, row, column, with_numbers));
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody>\n</table>\n</div>\n"
}

fn heat_cell(map: &HeatMap, row: usize, column: usize, with_number: bool) -> String {
    let Some(cell) = map.cell(row, column) else {
        return if row == column { "<td></td>" } else { "<td class=\"none\">–</td>" }.into();
    };
    let text = shown(cell.value.0 * map.scale, None);
    format!(
        "<td class=\"n\" data-run=\"{}\" style=\"--heat:{:.3}\" title=\"{} to {}: {text} {}\">\
         <data value=\"{}\">{}</data></td>",
        cell.run,
        map.heat(cell.value.0),
        escape(&map.names[row]),
        escape(&map.names[column]),
        escape(&map.unit),
        plain(cell.value.0),
        if with_number { text.as_str() } else { "" }
    )
}

/// What the scripts draw of a section.
#[derive(Serialize)]
struct Drawn<'a> {
    id: &'a str,
    plots: &'a [Plot],
    surfaces: &'a [Surface],
    data: &'a [Data],
}

/// The plots of sections and of their parts, as JSON.
pub fn plots(sections: &[Section]) -> String {
    fn collect<'a>(sections: &'a [Section], drawn: &mut Vec<Drawn<'a>>) {
        for Section { id, plots, surfaces, data, parts, .. } in sections {
            drawn.push(Drawn { id, plots, surfaces, data });
            collect(parts, drawn);
        }
    }
    let mut drawn = Vec::new();
    collect(sections, &mut drawn);
    drawn.retain(|one| !one.plots.is_empty() || !one.surfaces.is_empty());
    serde_json::to_string(&drawn).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{HeatCell, Show, figure, number, text};
    use crate::stats::Value;

    struct Row(f64);

    impl crate::report::model::OfRun for Row {
        fn is_complete(&self) -> bool {
            self.0.is_finite()
        }
    }

    #[test]
    fn figures_keep_their_exact_values_and_align_on_the_point() {
        let interval = Interval { low: Value(90.0), high: Value(f64::INFINITY) };
        let fields = [
            text("<name>", |_: &Row| "<b>"),
            figure("p50", "us", move |row: &Row| Cell::figure(row.0, Some(interval), 1e-3)),
            number("lost", "", |_: &Row| Cell::lost(1000)),
            number("n", "", |_: &Row| Cell::Count(1)).show(Show::Terminal),
        ];
        let html = table(&Table::of([Row(100.0), Row(f64::INFINITY)], fields).unwrap());
        assert!(html.contains("&lt;name&gt;") && html.contains("<th scope=\"row\">&lt;b&gt;</th>"));
        assert!(html.contains("<data value=\"100\">0<span class=\"f5\">.1000</span></data>"));
        assert!(html.contains("data-low=\"90\" data-high=\"inf\">0.0900 – ∞</span>"), "{html}");
        assert!(html.contains("<data value=\"inf\">∞<span class=\"f5\"></span></data>"), "{html}");
        assert!(html.contains("<td class=\"n bad\" data-k=\"lost\"><data value=\"1000\">"));
        assert_eq!(html.matches("incomplete").count(), 1);
        assert!(!html.contains("data-k=\"n\""));
    }

    #[test]
    fn a_matrix_is_darkest_where_it_is_worst() {
        let mut one = HeatMap { unit: "MB/s".into(), scale: 1e-6, ..HeatMap::default() };
        one.more_is_better = true;
        one.names = ["a", "<b>"].map(String::from).to_vec();
        for (row, value) in [(0, 1e9), (1, 4e9)] {
            one.insert(HeatCell { row, column: 1 - row, value: Value(value), run: row as u32 });
        }
        let html = map(&one);
        assert!(html.contains("--heat:1.000\" title=\"a to &lt;b&gt;: 1000 MB/s\""), "{html}");
        assert!(html.contains("--heat:0.000\" title=\"&lt;b&gt; to a: 4000 MB/s\""), "{html}");
    }

    #[test]
    fn a_section_without_anything_is_nothing_and_its_parts_are_drawn_too() {
        assert_eq!(section(&Section::new("empty", "Empty")), "");
        let mut whole = Section::new("study", "A study");
        let mut part = Section::new("graph-0", "A graph");
        part.plots = vec![Plot { id: "study-0".into(), ..Plot::default() }];
        whole.parts = vec![part];
        assert!(section(&whole).contains("<div data-plots=\"graph-0\"></div>"));
        assert!(plots(&[whole]).starts_with("[{\"id\":\"graph-0\",\"plots\":[{\"id\":\"study-0\""));
        assert_eq!(plots(&[Section::new("empty", "Empty")]), "[]");
    }
}
