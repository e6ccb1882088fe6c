//! The slowest messages, each as an icicle: the message, its two ways, who works, the stages.

use crate::escape::escaped;
use crate::number::{PERCENT, fixed, time};
use std::fmt::Write;
use wiregauge_figures::explain::{Explanation, NO_CPU, SlowMessage, StageFigures};
use wiregauge_figures::record::schema::Record;

/// Width and height of a bar in the drawing's own units, of which a character takes some 6.5.
const WIDTH: f64 = 900.0;
const ROW: f64 = 20.0;
const CHARACTER: f64 = 6.5;
/// Rows: the message, its ways, who works, the stages.
const ROWS: f64 = 4.0;
/// Degrees of the colour circle between two stages: neighbours are far apart.
const HUE: usize = 47;

/// A message that can be opened.
pub struct Message {
    /// Which, how long, and why.
    pub title: String,
    /// The drawing.
    pub svg: String,
    /// Its stages: name, time, share, CPU.
    pub stages: Vec<[String; 4]>,
}

/// The slowest messages, the slowest first; none where nothing was explained.
pub fn messages(record: &Record) -> Vec<Message> {
    let Some(found) = &record.explanation else { return Vec::new() };
    found.slowest.iter().map(|one| message(found, one)).collect()
}

fn message(found: &Explanation, one: &SlowMessage) -> Message {
    let who = match one.cause.who.as_str() {
        "" => String::new(),
        who => format!(" ({who})"),
    };
    let covered = match one.covered {
        0.0 => String::new(),
        share => format!(", {} % of what it took above the median", fixed(share * PERCENT, 0)),
    };
    let title = format!(
        "{}: message {} of round {}: {}{who}{covered}",
        time(one.total_ns),
        one.sequence,
        one.round,
        one.cause.cause.name()
    );
    let own = found.stages.iter().zip(&one.stages);
    let stages = own.map(|(stage, (ns, cpu))| {
        let share = fixed(ns / one.total_ns * PERCENT, 1);
        let cpu = if *cpu == u32::from(NO_CPU) { "-".to_owned() } else { cpu.to_string() };
        [format!("{} {}", arrow(stage), stage.name), time(*ns), share, cpu]
    });
    Message { title, svg: drawing(found, one), stages: stages.collect() }
}

fn arrow(stage: &StageFigures) -> &'static str {
    if stage.leg == 0 { "→" } else { "←" }
}

/// The end that works in a stage.
fn end(stage: &StageFigures) -> &'static str {
    if (stage.leg == 0) == stage.sends { "client" } else { "server" }
}

/// The bars of a message, row by row; bars of a row that belong together are one.
fn drawing(found: &Explanation, one: &SlowMessage) -> String {
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" class=\"icicle\" font-size=\"11\">",
        ROWS * ROW
    );
    let whole = [(0.0, one.total_ns, "message".to_owned(), 210)];
    row(&mut svg, 0.0, one.total_ns, whole);
    let mut at = 0.0;
    let stages: Vec<(f64, f64, &StageFigures)> = found
        .stages
        .iter()
        .zip(&one.stages)
        .map(|(stage, (ns, _))| {
            let from = at;
            at += ns;
            (from, *ns, stage)
        })
        .collect();
    let way = |stage: &StageFigures| match stage.leg {
        0 => ("client to server".to_owned(), 150),
        _ => ("server to client".to_owned(), 30),
    };
    row(&mut svg, 1.0, one.total_ns, joined(&stages, way));
    let works = |stage: &StageFigures| match end(stage) {
        "client" => ("client".to_owned(), 190),
        _ => ("server".to_owned(), 330),
    };
    row(&mut svg, 2.0, one.total_ns, joined(&stages, works));
    let bars = stages
        .iter()
        .enumerate()
        .map(|(number, (from, ns, stage))| (*from, *ns, stage.name.clone(), number * HUE % 360));
    row(&mut svg, 3.0, one.total_ns, bars);
    svg + "</svg>"
}

/// Neighbours of one name as one bar.
fn joined(
    stages: &[(f64, f64, &StageFigures)],
    name: impl Fn(&StageFigures) -> (String, usize),
) -> Vec<(f64, f64, String, usize)> {
    let mut bars: Vec<(f64, f64, String, usize)> = Vec::new();
    for (from, ns, stage) in stages {
        let (name, hue) = name(stage);
        match bars.last_mut() {
            Some(last) if last.2 == name => last.1 += ns,
            _ => bars.push((*from, *ns, name, hue)),
        }
    }
    bars
}

fn row(
    svg: &mut String,
    row: f64,
    total_ns: f64,
    bars: impl IntoIterator<Item = (f64, f64, String, usize)>,
) {
    let scale = WIDTH / total_ns.max(1.0);
    for (from, ns, name, hue) in bars {
        let (x, width, y) = (from * scale, ns * scale, row * ROW);
        let name = escaped(&name);
        let title = format!("{name}: {}", time(ns));
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<g><title>{title}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" \
             height=\"{}\" fill=\"hsl({hue} 55% 70%)\"/>",
            ROW - 1.0
        );
        if name.chars().count() as f64 * CHARACTER + 6.0 < width {
            let _ = write!(svg, "<text x=\"{:.2}\" y=\"{}\">{name}</text>", x + 3.0, y + 14.0);
        }
        svg.push_str("</g>");
    }
}
