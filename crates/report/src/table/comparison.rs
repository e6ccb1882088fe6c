//! A comparison of two runs: the answer, the verdicts, the differences, and what else differs.

use super::{Grid, Layout, Text, Tone, section, warnings};
use crate::comparison::{Comparison, Condition, Line};
use crate::model::{Cell, OfRun, Table, figure, number, text};
use crate::number::PERCENT;
use crate::warnings::grouped;
use wiregauge_stats::{Difference, Missing};

/// Sentences of runs, and conditions, that are printed before the others are counted.
const MOST_LINES: usize = 16;

impl OfRun for &Line {}

/// All that a comparison says.
pub fn whole(all: &Comparison, layout: &Layout) -> Text {
    let mut text = Text::default();
    for answer in all.answers.iter().take(MOST_LINES) {
        let line = format!("{}: {}", answer.runs, answer.sentence);
        text.append(layout.sentence(&line, Tone::Plain));
    }
    text.append(more(all.answers.len(), "more are in the table below", layout));
    for limit in &all.limits {
        let line = format!("limit {} ({}): {}", limit.limit, limit.runs, limit.sentence);
        text.append(layout.sentence(&line, Tone::Plain));
    }
    if !all.rows.is_empty() {
        text.end_line();
        text.append(differences(&all.rows, layout));
    }
    if !all.conditions.is_empty() {
        text.end_line();
        text.append(conditions(&all.conditions, layout));
    }
    let found = all.warnings.iter().map(|warning| (warning, None));
    text.append(warnings(&grouped(found), layout));
    text
}

/// What differs beside the figures, the worst first.
fn conditions(all: &[Condition], layout: &Layout) -> Text {
    let mut grid = Grid::new(["differs", "severity", "A", "B"]);
    for one in all.iter().take(MOST_LINES) {
        let [a, b] = one.shown();
        grid.row([one.what.as_str().into(), one.severity.name().into(), a.into(), b.into()]);
    }
    let (mut text, _) = grid.text(layout);
    text.append(more(all.len(), "more differ: --json lists all", layout));
    text
}

/// A line that counts what is not shown.
fn more(all: usize, what: &str, layout: &Layout) -> Text {
    match all.saturating_sub(MOST_LINES) {
        0 => Text::default(),
        others => layout.sentence(&format!("{others} {what}"), Tone::Plain),
    }
}

/// The table.
fn differences<'a>(lines: &'a [Line], layout: &Layout) -> Text {
    let plain = |value: f64, scale| Cell::figure(value, None, scale);
    let fields = [
        text("run", |line: &&'a Line| line.runs.as_str()),
        text("figure", |line: &&'a Line| line.figure.as_str()),
        text("unit", |line: &&Line| line.scale.unit()),
        number("A", "", move |line: &&Line| cell(line, |found, scale| plain(found.a.0, scale))),
        number("B", "", move |line: &&Line| cell(line, |found, scale| plain(found.b.0, scale))),
        figure("B - A", "", |line: &&Line| {
            cell(line, |found, scale| Cell::figure(found.absolute.0, found.interval, scale))
        }),
        figure("B - A %", "", |line: &&Line| {
            let relative = |found: &Difference| {
                Some(Cell::figure(found.relative?.0, found.relative_interval, PERCENT))
            };
            line.difference.as_ref().and_then(relative)
        }),
        text("differs", |line: &&Line| differs(line)),
    ];
    let table = Table::of(lines, fields).unwrap_or_default();
    section::table(&table, layout, "").unwrap_or_default()
}

/// The difference and its interval; empty where only one of the two was measured.
fn cell(line: &Line, of: impl Fn(&Difference, f64) -> Cell) -> Cell {
    line.difference.as_ref().map_or(Cell::None, |found| of(found, line.scale.factor()))
}

fn differs(line: &Line) -> Cell {
    match (&line.difference, line.missing) {
        (Some(found), _) if found.excludes_zero() => "yes".into(),
        (Some(Difference { interval: Some(_), .. }), _) => "not shown".into(),
        (Some(_), _) => "not known".into(),
        (None, Some(Missing::BothInfinite)) => "both infinite".into(),
        (None, _) => Cell::TooSmall,
    }
}
