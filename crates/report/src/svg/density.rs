//! Latency over time: every sample of a run is counted in a cell, the largest of each column a dot.

use super::axis::tick;
use super::canvas::{Anchor, Canvas, EDGE, FAINT, GRID, LETTER, LINE, PALETTE, WIDTH, width};
use crate::curves::{BINS_PER_DECADE, Column, Density};
use crate::model::Unit;
use std::collections::BTreeMap;

/// Shades between the least and the largest count.
const SHADES: usize = 8;
const HEIGHT: f64 = 220.0;
const NOTE: &str = "Rounds one after the other, each from its own start. The stronger the colour, \
                    the more messages (logarithmic); the dots are the largest of each column.";

/// The rounds of one run.
pub fn density(title: &str, rounds: &[&Density]) -> String {
    let columns: Vec<&Column> = rounds.iter().flat_map(|round| &round.columns).collect();
    let rows = || columns.iter().flat_map(|column| column.cells.keys().copied());
    let top_row = f64::from(rows().max().unwrap_or(1)) + 6.0;
    let low_row = f64::from(rows().min().unwrap_or(0)) - 3.0;
    let (mut canvas, top) = Canvas::titled(title);
    let bottom = top + HEIGHT;
    let (left, right) = (EDGE + width("100 ms", LETTER) + LETTER, WIDTH - EDGE);
    let row = |row: f64| top + (top_row - row) * HEIGHT / (top_row - low_row);
    let per_column = (right - left) / columns.len().max(1) as f64;

    levels(&mut canvas, [low_row, top_row], [left, right], row);
    let high = HEIGHT / (top_row - low_row);
    canvas.push(format_args!(
        "<g transform=\"translate({left:.2} {top:.2}) scale({per_column:.5} {high:.5})\" \
         fill=\"none\" stroke=\"{}\">\n",
        PALETTE[0]
    ));
    for (shade, d) in shades(&columns, top_row) {
        let opacity = 0.2 + 0.8 * (shade + 1) as f64 / SHADES as f64;
        canvas.push(format_args!("<path d=\"{d}\" stroke-opacity=\"{opacity:.2}\"/>\n"));
    }
    canvas.body += "</g>\n";
    largest(
        &mut canvas,
        &columns,
        |at| left + (at as f64 + 0.5) * per_column,
        |ns| row(ns.log10() * f64::from(BINS_PER_DECADE)),
    );
    let mut first = 0;
    for round in rounds {
        let x = |column: usize| left + column as f64 * per_column;
        let (from, to) = (x(first), x(first + round.columns.len()));
        first += round.columns.len();
        canvas.push(format_args!(
            "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\" \
             fill=\"none\" stroke=\"{FAINT}\"/>\n",
            to - from
        ));
        let middle = (from + to) / 2.0;
        let [name, long] =
            [format!("round {}", round.round), tick(Unit::Time, round.end_ns - round.start_ns)];
        let name = if width(&name, LETTER) < to - from { name } else { round.round.to_string() };
        canvas.text(middle, bottom + LINE, Anchor::Middle, &name);
        if width(&long, LETTER) < to - from {
            canvas.text(middle, bottom + 2.0 * LINE, Anchor::Middle, &long);
        }
    }
    canvas.finish(title, NOTE, bottom + 2.0 * LINE + 2.0 * EDGE)
}

/// The latencies at the left edge.
fn levels(
    canvas: &mut Canvas,
    [low, high]: [f64; 2],
    [left, right]: [f64; 2],
    row: impl Fn(f64) -> f64,
) {
    let bins = f64::from(BINS_PER_DECADE);
    let steps: &[f64] = match (high - low) / bins {
        decades if decades > 2.5 => &[1.0],
        decades if decades > 1.2 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    };
    let all = (0..12).flat_map(|k| steps.iter().map(move |m| m * 10f64.powi(k)));
    for ns in all {
        let at = ns.log10() * bins;
        if at < low || at > high {
            continue;
        }
        let y = row(at);
        canvas.push(format_args!("<path d=\"M{left:.1} {y:.1}H{right:.1}\" stroke=\"{GRID}\"/>\n"));
        canvas.text(left - 6.0, y + LETTER * 0.35, Anchor::End, &tick(Unit::Time, ns));
    }
}

/// The cells of each shade as a path, one unit for a column and for a row.
fn shades(columns: &[&Column], top_row: f64) -> BTreeMap<usize, String> {
    let counts = || columns.iter().flat_map(|column| column.cells.values());
    let most = (counts().copied().max().unwrap_or(1).max(1) as f64).ln_1p();
    let shade = |n: u64| (((n as f64).ln_1p() / most * SHADES as f64) as usize).min(SHADES - 1);
    let mut cells: Vec<(usize, u32, usize)> = columns
        .iter()
        .enumerate()
        .flat_map(|(at, column)| column.cells.iter().map(move |(row, n)| (*n, *row, at)))
        .map(|(n, row, at)| (shade(n), row, at))
        .collect();
    cells.sort_unstable();
    let mut paths: BTreeMap<usize, String> = BTreeMap::new();
    // Neighbours of one shade in one row are one stroke.
    let same = |a: &(usize, u32, usize), b: &(usize, u32, usize)| {
        a.0 == b.0 && a.1 == b.1 && a.2 + 1 == b.2
    };
    for stroke in cells.chunk_by(same) {
        let (shade, row, from) = stroke[0];
        let y = top_row - f64::from(row) - 0.5;
        *paths.entry(shade).or_default() += &format!("M{from} {y}h{}", stroke.len());
    }
    paths
}

/// The largest of each column, and those that were lost at the upper edge.
fn largest(
    canvas: &mut Canvas,
    columns: &[&Column],
    x: impl Fn(usize) -> f64,
    y: impl Fn(f64) -> f64,
) {
    let all = || columns.iter().enumerate();
    let dots = all().filter(|(_, column)| column.max_ns > 0.0);
    let dots: String =
        dots.map(|(at, column)| format!("M{:.1} {:.1}h0", x(at), y(column.max_ns))).collect();
    let pen = format!("stroke=\"{}\" stroke-width=\"2\" stroke-linecap=\"round\"", PALETTE[1]);
    if !dots.is_empty() {
        canvas.push(format_args!("<path d=\"{dots}\" fill=\"none\" {pen}/>\n"));
    }
    let found = all().max_by(|(_, a), (_, b)| a.max_ns.total_cmp(&b.max_ns));
    let Some((at, column)) = found.filter(|(_, column)| column.max_ns > 0.0) else { return };
    let text = format!("largest {}", crate::number::time(column.max_ns));
    let (x, y) = (x(at), y(column.max_ns));
    let is_right = x > WIDTH * 0.65;
    let (dx, anchor) = if is_right { (-8.0, Anchor::End) } else { (8.0, Anchor::Start) };
    canvas.text(x + dx, y + LETTER * 0.35, anchor, &text);
    let lost: u64 = columns.iter().map(|column| column.lost).sum();
    if lost > 0 {
        let text = format!("{} lost", crate::number::count(lost));
        canvas.text(WIDTH - 2.0 * EDGE, y - LINE, Anchor::End, &text);
    }
}
