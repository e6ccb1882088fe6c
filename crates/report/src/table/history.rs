//! A history: a line for each figure, one for each change of its level, and what else changed.

use super::section::{self, VERBOSE};
use super::{Layout, Text, Tone};
use crate::history::{Change, History, Point, Series};
use crate::model::{Cell, OfRun, Rank, Table, figure, number, text};
use crate::number::{PERCENT, percent, signed};
use std::cmp::Reverse;
use wiregauge_base::options::each_once;
use wiregauge_base::units::counted;
use wiregauge_figures::record::schema::Severity;

/// Conditions of a change that are printed: the worst.
const MOST_CONDITIONS: usize = 5;

/// A change, and the series in which it is.
#[derive(Clone, Copy)]
struct Changed<'a>(&'a Series, &'a Change);

impl OfRun for &Series {}
impl OfRun for Changed<'_> {}

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
    let changes: Vec<Changed<'_>> = all
        .flat_map(|series| series.changes.iter().map(move |change| Changed(series, change)))
        .collect();
    let mut text = layout.sentence(&answer(history, &changes), Tone::Plain);
    // Figures without a change are many, and say the same.
    if layout.verbose || layout.width.is_none() {
        text.end_line();
        text.append(section::table(&table, layout, VERBOSE).unwrap_or_default());
    } else {
        text.append(layout.sentence("all figures: --verbose", Tone::Plain));
    }
    if changes.is_empty() {
        return text;
    }
    text.end_line();
    text.append(table_of_changes(&changes, layout));
    text.append(conditions(&changes, layout));
    text
}

/// Says how many figures changed their level, and the largest change of the last one.
fn answer(history: &History, changes: &[Changed<'_>]) -> String {
    let all = counted(history.series.len(), "figure");
    let records = history.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let records = counted(records, "record");
    let changed = history.series.iter().filter(|series| !series.changes.is_empty()).count();
    let last = changes.iter().max_by(|Changed(_, a), Changed(_, b)| {
        let by_share = a.relative.0.abs().total_cmp(&b.relative.0.abs());
        a.at.cmp(&b.at).then(by_share)
    });
    match last {
        None => format!("no change of a level shown in {all} of {records}"),
        Some(Changed(series, change)) => format!(
            "{changed} of {all} of {records} changed their level; last at {}: {} {} by {} %",
            change.directory,
            series.runs,
            series.figure,
            signed(percent(change.relative.0.abs()), change.relative.0)
        ),
    }
}

fn table_of_changes(changes: &[Changed<'_>], layout: &Layout) -> Text {
    let level = |series: &Series, value: f64| Cell::figure(value, None, series.scale.factor());
    let fields = [
        text("changed at", |Changed(_, change): &Changed<'_>| change.directory.clone()),
        text("run", |Changed(series, _): &Changed<'_>| series.runs.clone()),
        text("figure", |Changed(series, _): &Changed<'_>| series.figure.clone()),
        text("unit", |Changed(series, _): &Changed<'_>| series.scale.unit()).rank(Rank::More),
        number("before", "", move |Changed(series, change): &Changed<'_>| {
            level(series, change.before.0)
        })
        .rank(Rank::More),
        number("after", "", move |Changed(series, change): &Changed<'_>| {
            level(series, change.after.0)
        })
        .rank(Rank::More),
        figure("change %", "", |Changed(_, change): &Changed<'_>| {
            Cell::figure(change.relative.0, change.interval, PERCENT)
        }),
    ];
    let table = Table::of(changes.to_vec(), fields).unwrap_or_default();
    section::table(&table, layout, VERBOSE).unwrap_or_default()
}

/// What else changed with the levels: of each record that of all its changes, the worst.
fn conditions(changes: &[Changed<'_>], layout: &Layout) -> Text {
    let mut text = Text::default();
    for directory in each_once(changes.iter().map(|Changed(_, change)| change.directory.as_str())) {
        let of_record = changes.iter().filter(|Changed(_, change)| change.directory == directory);
        let mut worth = each_once(of_record.flat_map(|Changed(_, change)| &change.conditions));
        worth.retain(|one| one.severity > Severity::Note);
        worth.sort_by_key(|one| Reverse(one.severity));
        for one in worth.into_iter().take(MOST_CONDITIONS) {
            let [a, b] = one.shown();
            let line = format!("changed at {directory}: {}: {a} -> {b}", one.what);
            text.append(layout.sentence(&line, Tone::Plain));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Condition;
    use crate::scale::Scale;
    use wiregauge_stats::Value;

    fn series(directory: &str, conditions: &[(Severity, &str)]) -> Series {
        let condition = |(severity, what): &(Severity, &str)| Condition {
            severity: *severity,
            what: (*what).to_owned(),
            a: "1".to_owned(),
            b: "2".to_owned(),
        };
        let change = Change {
            at: 5,
            directory: directory.to_owned(),
            before: Value(1.0),
            after: Value(2.0),
            relative: Value(1.0),
            interval: None,
            conditions: conditions.iter().map(condition).collect(),
        };
        Series {
            runs: "latency".to_owned(),
            figure: "rtt.p50".to_owned(),
            scale: Scale::of_rate(wiregauge_stats::RateMetric::Slowdown),
            points: Vec::new(),
            changes: vec![change],
        }
    }

    #[test]
    fn conditions_are_those_of_all_changes_of_a_record() {
        use Severity::{Note, Severe, Warning};
        let all = [
            series("07", &[(Note, "seed")]),
            series("07", &[(Warning, "kernel"), (Warning, "wiregauge"), (Note, "rounds")]),
            series("07", &[(Severe, "host"), (Warning, "kernel")]),
            series("08", &[(Warning, "kernel")]),
        ];
        let changes: Vec<_> = all.iter().map(|one| Changed(one, &one.changes[0])).collect();
        let text = conditions(&changes, &Layout::default()).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "changed at 07: host: 1 -> 2",
                "changed at 07: kernel: 1 -> 2",
                "changed at 07: wiregauge: 1 -> 2",
                "changed at 08: kernel: 1 -> 2",
            ]
        );
        let many = ["a", "b", "c", "d", "e", "f"].map(|what| series("07", &[(Warning, what)]));
        let changes: Vec<_> = many.iter().map(|one| Changed(one, &one.changes[0])).collect();
        let text = conditions(&changes, &Layout::default()).to_string();
        assert_eq!(text.lines().count(), MOST_CONDITIONS);
    }
}
