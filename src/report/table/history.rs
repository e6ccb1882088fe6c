//! A history: a line for each figure, one for each change of its level, and what else changed.

use super::{Layout, Text, Tone, section};
use crate::record::schema::Severity;
use crate::report::history::{Change, History, Point, Series};
use crate::report::model::{Cell, OfRun, Table, figure, number, text};
use crate::report::number::PERCENT;

/// Conditions of a change that are printed: the worst.
const MOST_CONDITIONS: usize = 5;

impl OfRun for &Series {}
impl OfRun for (&Series, &Change) {}

/// All of it.
pub fn whole(history: &History, layout: &Layout) -> Text {
    let value = |series: &Series, point: Option<&Point>| {
        point.map(|one| Cell::figure(one.value.0, one.interval, series.scale.factor()))
    };
    let fields = [
        text("run", |one: &&Series| one.runs.clone()),
        text("figure", |one: &&Series| one.figure.clone()),
        text("unit", |one: &&Series| one.scale.unit()),
        number("records", "", |one: &&Series| Cell::Count(one.points.len() as u64)),
        figure("first", "", move |one: &&Series| value(one, one.points.first())),
        figure("last", "", move |one: &&Series| value(one, one.points.last())),
        number("changes", "", |one: &&Series| Cell::Count(one.changes.len() as u64)),
    ];
    let table = Table::of(&history.series, fields).unwrap_or_default();
    let all = history.series.iter();
    let changes: Vec<(&Series, &Change)> =
        all.flat_map(|series| series.changes.iter().map(move |change| (series, change))).collect();
    let mut text = section::table(&table, layout, "").unwrap_or_default();
    if changes.is_empty() {
        text.append(layout.sentence("no figure changed its level", Tone::Plain));
        return text;
    }
    text.end_line();
    text.append(table_of_changes(&changes, layout));
    text.append(conditions(&changes, layout));
    text
}

fn table_of_changes(changes: &[(&Series, &Change)], layout: &Layout) -> Text {
    let level = |series: &Series, value: f64| Cell::figure(value, None, series.scale.factor());
    let fields = [
        text("changed at", |(_, change): &(&Series, &Change)| change.directory.clone()),
        text("run", |(series, _): &(&Series, &Change)| series.runs.clone()),
        text("figure", |(series, _): &(&Series, &Change)| series.figure.clone()),
        text("unit", |(series, _): &(&Series, &Change)| series.scale.unit()),
        number("before", "", move |(series, change): &(&Series, &Change)| {
            level(series, change.before.0)
        }),
        number("after", "", move |(series, change): &(&Series, &Change)| {
            level(series, change.after.0)
        }),
        figure("change %", "", |(_, change): &(&Series, &Change)| {
            Cell::figure(change.relative.0, change.interval, PERCENT)
        }),
    ];
    let table = Table::of(changes.to_vec(), fields).unwrap_or_default();
    section::table(&table, layout, "").unwrap_or_default()
}

/// What else changed with the levels, once for each record.
fn conditions(changes: &[(&Series, &Change)], layout: &Layout) -> Text {
    let mut text = Text::default();
    let mut seen = Vec::new();
    for (_, change) in changes.iter().filter(|(_, change)| !change.conditions.is_empty()) {
        if seen.contains(&&change.directory) {
            continue;
        }
        seen.push(&change.directory);
        let worth = change.conditions.iter().filter(|one| one.severity > Severity::Note);
        for one in worth.take(MOST_CONDITIONS) {
            let [a, b] = one.shown();
            let line = format!("differs since {}: {}: {a} -> {b}", change.directory, one.what);
            text.append(layout.sentence(&line, Tone::Plain));
        }
    }
    text
}
