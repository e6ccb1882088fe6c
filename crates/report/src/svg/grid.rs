//! Figures over two dimensions: each in its cell, the larger or the worse the stronger.

use super::axis::tick_of;
use super::canvas::{
    ADVANCE, Anchor, BAD, Canvas, EDGE, FAINT, LETTER, LINE, PALETTE, TEXT, WIDTH, width,
};
use crate::model::{HeatMap, Surface, distinct};
use crate::number;

/// Cells are at most so high and at least so high.
const HIGHEST: f64 = 44.0;
const LOWEST: f64 = 14.0;
/// Cells of a matrix of more names than this have no numbers.
const MOST_NUMBERS: usize = 24;
/// And of more than this one no intervals, whose letters would be too small.
const MOST_INTERVALS: usize = 6;

/// One cell: its text, how strong its colour is from 0 to 1, and what is wrong with it.
struct Cell {
    text: String,
    /// Its interval, where there is one.
    interval: String,
    strength: Option<f64>,
    flag: String,
}

/// A title, the names of columns and of rows, and what both are.
struct Grid<'a> {
    title: &'a str,
    note: &'a str,
    columns: Vec<String>,
    rows: Vec<String>,
    axes: [String; 2],
}

/// A figure over two axes, seen from above; the first row is the lowest value.
pub fn surface(surface: &Surface) -> String {
    let xs = distinct(surface.points.iter().map(|p| p.x));
    let mut ys = distinct(surface.points.iter().map(|p| p.y));
    ys.reverse();
    let height = |z: f64| if surface.z.log { z.ln() } else { z };
    let usable = surface.points.iter().filter_map(|p| p.z).map(height);
    let ends = crate::model::extent(usable);
    let cell = |row: usize, column: usize| {
        let point = surface.points.iter().find(|p| p.x == xs[column] && p.y == ys[row])?;
        let strength = point.z.zip(ends).map(|(z, (low, high))| match high > low {
            true => (height(z) - low) / (high - low),
            false => 0.5,
        });
        let text = point.z.map_or("–".into(), |z| tick_of(&surface.z, z));
        Some(Cell { text, interval: String::new(), strength, flag: point.flag.clone() })
    };
    let grid = Grid {
        title: &surface.title,
        note: &surface.note,
        columns: xs.iter().map(|v| tick_of(&surface.x, *v)).collect(),
        rows: ys.iter().map(|v| tick_of(&surface.y, *v)).collect(),
        axes: [surface.x.label.clone(), surface.y.label.clone()],
    };
    grid.draw(cell)
}

/// A matrix of names.
pub fn matrix(map: &HeatMap) -> String {
    let has_numbers = map.names.len() <= MOST_NUMBERS;
    let has_intervals = map.has_intervals() && map.names.len() <= MOST_INTERVALS;
    let cell = |row: usize, column: usize| {
        let found = map.cell(row, column)?;
        let text = match has_numbers {
            true => number::on_page(found.value.0 * map.scale, None),
            false => String::new(),
        };
        let interval = found.interval.filter(|_| has_intervals);
        let interval = interval
            .map_or(String::new(), |both| number::interval_on_page(found.value.0, both, map.scale));
        Some(Cell { text, interval, strength: Some(map.heat(found.value.0)), flag: String::new() })
    };
    let with = if has_intervals { ", with 95 % intervals" } else { "" };
    let title = format!("{}, in {}{with}", map.title, map.unit);
    let note = format!("{}; the darker, the worse", map.axes);
    let grid = Grid {
        title: &title,
        note: &note,
        columns: map.names.clone(),
        rows: map.names.clone(),
        axes: [note.clone(), String::new()],
    };
    grid.draw(cell)
}

impl Grid<'_> {
    fn draw(&self, cell: impl Fn(usize, usize) -> Option<Cell>) -> String {
        let (mut canvas, top) = Canvas::titled(self.title);
        let widest = |names: &[String]| names.iter().map(|n| width(n, LETTER)).fold(0.0, f64::max);
        let [below, beside] = &self.axes;
        let aside = if beside.is_empty() { 0.0 } else { LINE + 2.0 };
        let left = EDGE + aside + widest(&self.rows).min(WIDTH * 0.5) + 6.0;
        let wide = (WIDTH - EDGE - left) / self.columns.len().max(1) as f64;
        let high = (wide * 0.6).clamp(LOWEST, HIGHEST);
        for (row, name) in self.rows.iter().enumerate() {
            let y = top + row as f64 * high;
            canvas.text(left - 6.0, y + high / 2.0 + LETTER * 0.35, Anchor::End, name);
            for column in 0..self.columns.len() {
                if let Some(cell) = cell(row, column) {
                    cell.draw(&mut canvas, [left + column as f64 * wide, y, wide, high]);
                }
            }
        }
        let floor = top + self.rows.len() as f64 * high;
        let is_level = widest(&self.columns) < wide - 4.0;
        for (column, name) in self.columns.iter().enumerate() {
            let x = left + (column as f64 + 0.5) * wide;
            match is_level {
                true => canvas.text(x, floor + LINE, Anchor::Middle, name),
                false => canvas.upright(x + LETTER * 0.35, floor + 6.0, Anchor::End, name),
            }
        }
        let mut end = floor + if is_level { LINE } else { widest(&self.columns) + 10.0 };
        if !below.is_empty() {
            end += LINE;
            canvas.text((left + WIDTH) / 2.0, end + 2.0, Anchor::Middle, below);
        }
        if !beside.is_empty() {
            canvas.upright(EDGE + LETTER, (top + floor) / 2.0, Anchor::Middle, beside);
        }
        canvas.finish(self.title, self.note, end + 2.0 * EDGE)
    }
}

impl Cell {
    fn draw(&self, canvas: &mut Canvas, [x, y, wide, high]: [f64; 4]) {
        let opacity = self.strength.map_or(0.0, |strength| 0.08 + 0.57 * strength.clamp(0.0, 1.0));
        let is_bad = !self.flag.is_empty();
        let edge = if is_bad { BAD } else { "#ffffff" };
        canvas.push(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" \
             fill-opacity=\"{opacity:.2}\" stroke=\"{edge}\" stroke-width=\"1.5\"/>\n",
            x + 1.0,
            y + 1.0,
            wide - 2.0,
            high - 2.0,
            PALETTE[0]
        ));
        let fits = |text: &str| (wide - 6.0) / (text.chars().count().max(1) as f64 * ADVANCE);
        let lines = [(&self.text, TEXT), (&self.interval, TEXT), (&self.flag, BAD)];
        let lines: Vec<_> = lines.into_iter().filter(|(text, _)| !text.is_empty()).collect();
        let fits = lines.iter().map(|(text, _)| fits(text)).fold(f64::INFINITY, f64::min);
        let letter = LETTER.min(fits).min((high - 2.0) / lines.len().max(1) as f64);
        let first = y + high / 2.0 - letter * 1.1 * (lines.len() as f64 - 1.0) / 2.0;
        for (at, (text, colour)) in lines.iter().enumerate() {
            canvas.push(format_args!("<g font-size=\"{letter:.1}\" fill=\"{colour}\">"));
            let line = first + at as f64 * letter * 1.1 + letter * 0.35;
            canvas.text(x + wide / 2.0, line, Anchor::Middle, text);
            canvas.body += "</g>\n";
        }
        if self.strength.is_none() && self.text.is_empty() {
            canvas.push(format_args!("<g fill=\"{FAINT}\">"));
            canvas.text(x + wide / 2.0, y + high / 2.0, Anchor::Middle, "–");
            canvas.body += "</g>\n";
        }
    }
}
