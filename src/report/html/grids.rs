//! What the terminal's tables say of streams, of points of `load` and of pools, beyond the page's
//! main table: what was missed, what was offered, what a buffer cost.

use super::escape;
use crate::record::schema::Record;
use crate::report::table::{Cell, Grid, load, stream};

/// The section; empty where there are no such runs.
pub fn section(record: &Record) -> String {
    // A line for each of many pairs would hide what the matrix shows.
    let grids = match record.plan.pairs {
        Some(_) => [None, None, None, None],
        None => [
            stream::grid(record).map(|grid| ("Steps of streams", grid)),
            load::points(record).map(|grid| ("Points of load", grid)),
            load::probes(record).map(|grid| (load::PROBES, grid)),
            load::pools(record).map(|grid| ("The server's pools", grid)),
        ],
    };
    let tables: String = grids.iter().flatten().map(|(title, grid)| table(title, grid)).collect();
    if tables.is_empty() {
        return tables;
    }
    format!(
        "<section id=\"grids\" aria-labelledby=\"h-grids\">\n\
         <h2 id=\"h-grids\">Steps, points and pools</h2>\n{tables}</section>\n"
    )
}

fn table(title: &str, grid: &Grid) -> String {
    let title = escape(title);
    let kind = |index: usize| {
        let is_number = |row: &Vec<Cell>| matches!(row.get(index), Some(Cell::Number(_)));
        if grid.rows().iter().any(is_number) { " class=\"n\"" } else { "" }
    };
    let heads = grid.head().iter().enumerate();
    let heads: String = heads
        .map(|(index, head)| format!("<th scope=\"col\"{}>{}</th>", kind(index), escape(head)))
        .collect();
    let row = |cells: &Vec<Cell>| {
        let cells = cells.iter().enumerate();
        let cells =
            cells.map(|(index, cell)| format!("<td{}>{}</td>", kind(index), escape(cell.text())));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = grid.rows().iter().map(row).collect();
    format!(
        "<h3>{title}</h3>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n<table>\n\
         <thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}
