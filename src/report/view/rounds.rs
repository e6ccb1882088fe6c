//! Rounds side by side: each round a dot, the figure of all with its interval a box behind them. In
//! per cent of that figure, so that 1 % is as visible at 100 ns as at 100 us.

use crate::record::schema::{RateMetric, Record, Run};
use crate::report::curves::headline;
use crate::report::model::{Axis, Data, Field, Plot, Point, Section, Series, Style, Unit, fields};
use crate::report::number::{
    MEGABYTES, PERCENT, bytes, fixed, interval, quantile_name, short, time,
};
use crate::stats::Interval;

/// Most runs that are named; more are numbered.
const NAMED: usize = 12;
/// The quantiles of each latency.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// The rounds of one figure of a run.
struct Group<'a> {
    run: &'a Run,
    name: String,
    pooled: f64,
    interval: Option<Interval>,
    /// NaN where a round has too few samples.
    rounds: Vec<f64>,
}

/// A plot of latencies and one of bandwidths; `None` where there are neither.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("rounds", "Rounds side by side");
    let note = "Boxes: the 95 % interval of all rounds together.";
    let latency =
        format!("Each dot is a round: its p50, and its p99 where it has enough samples. {note}");
    let rate = format!("Each dot is a round. {note}");
    let megabytes = |value: f64| format!("{} MB/s", short(value * MEGABYTES));
    add(&mut section, "latency", "Latency", latency, latencies(record), time);
    add(&mut section, "bandwidth", "Bandwidth", rate, bandwidths(record), megabytes);
    section.filled()
}

fn latencies(record: &Record) -> Vec<Group<'_>> {
    let of = |run| {
        let summary = Run::summary(run, headline(run)?)?;
        let group = move |p| {
            let at = summary.quantiles.iter().position(|quantile| quantile.p == p)?;
            let found = &summary.quantiles[at];
            let value = |round: &crate::stats::RoundSummary| {
                round.quantiles.get(at).copied().flatten().map_or(f64::NAN, |value| value.0)
            };
            Some(Group {
                run,
                name: quantile_name(p),
                pooled: found.value.map_or(f64::NAN, |value| value.0),
                interval: found.interval,
                rounds: summary.rounds.iter().map(value).collect(),
            })
        };
        Some(QUANTILES.into_iter().filter_map(group))
    };
    record.runs.iter().filter_map(of).flatten().collect()
}

fn bandwidths(record: &Record) -> Vec<Group<'_>> {
    let of = |run| {
        let (metric, rate) = (RateMetric::Bandwidth, Run::rate(run, RateMetric::Bandwidth)?);
        let (pooled, interval, rounds) = (rate.value, rate.interval, rate.rounds.clone());
        Some(Group { run, name: metric.name().into(), pooled, interval, rounds })
    };
    record.runs.iter().filter_map(of).collect()
}

fn add(
    section: &mut Section,
    id: &str,
    title: &str,
    note: String,
    groups: Vec<Group<'_>>,
    shown: impl Fn(f64) -> String,
) {
    if groups.iter().all(|group| group.rounds.is_empty()) {
        return;
    }
    let mut runs: Vec<&Run> = groups.iter().map(|group| group.run).collect();
    runs.dedup_by_key(|run| run.index);
    let mut names: Vec<&str> = Vec::new();
    for group in &groups {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    let slot = 0.84 / names.len() as f64;
    let mut series = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let aside = (at as f64 - (names.len() - 1) as f64 / 2.0) * slot;
        let (mut boxes, mut dots) = (Vec::new(), Vec::new());
        for group in groups.iter().filter(|group| group.name == *name) {
            let own = runs.iter().position(|run| run.index == group.run.index).unwrap_or(0);
            let middle = own as f64 + aside;
            boxes.extend(pooled(group, middle, &shown));
            dots.extend(rounds(group, middle, slot, &shown));
        }
        let made = |style, points, hidden| Series {
            name: (*name).into(),
            style,
            colour: Some(at),
            half: Some(slot * 0.45),
            hidden: hidden || names.len() == 1,
            points,
            ..Series::default()
        };
        series.extend([made(Style::Box, boxes, false), made(Style::Dots, dots, true)]);
    }
    let points = series.iter().flat_map(|one| &one.points);
    let ends = points.flat_map(|point| [Some(point.y), point.low, point.high]).flatten();
    let reach = ends.map(f64::abs).fold(1.0, f64::max) * 1.15;
    let plot = Plot {
        id: format!("rounds-{id}"),
        title: title.into(),
        note,
        height: 330,
        x: Axis::names(labels(&runs), 0.5),
        y: Axis::linear("difference to all rounds together", Unit::Difference, [-reach, reach]),
        series,
        ..Plot::default()
    };
    section.draw(plot, data(&groups));
}

/// How far a value is from that of all rounds, in per cent.
fn part(group: &Group<'_>, value: f64) -> f64 {
    PERCENT * (value / group.pooled - 1.0)
}

fn is_usable(group: &Group<'_>) -> bool {
    group.pooled > 0.0 && group.pooled.is_finite()
}

fn pooled(group: &Group<'_>, x: f64, shown: &impl Fn(f64) -> String) -> Option<Point> {
    let bound = |of: fn(&Interval) -> f64| {
        let bound = part(group, group.interval.as_ref().map_or(group.pooled, of));
        Some(bound).filter(|bound| bound.is_finite())
    };
    let text = format!(
        "{}, {}: {} {} over {} rounds",
        group.run.label,
        group.name,
        shown(group.pooled),
        interval(group.interval, shown),
        group.rounds.len()
    );
    let (low, high) = (bound(|both| both.low.0), bound(|both| both.high.0));
    is_usable(group).then(|| Point { x, low, high, text, ..Point::default() })
}

fn rounds(group: &Group<'_>, x: f64, slot: f64, shown: &impl Fn(f64) -> String) -> Vec<Point> {
    let count = group.rounds.len();
    let step = slot * 0.8 / count.max(1) as f64;
    let point = |(round, value): (usize, &f64)| {
        let y = Some(part(group, *value)).filter(|y| y.is_finite() && is_usable(group))?;
        let sign = if y > 0.0 { "+" } else { "" };
        let (label, name) = (&group.run.label, &group.name);
        let away = fixed(y, 2);
        let text = format!("{label}, {name}: round {round}: {}, {sign}{away} %", shown(*value));
        let x = x + (round as f64 - (count as f64 - 1.0) / 2.0) * step;
        Some(Point { x, y, text, ..Point::default() })
    };
    group.rounds.iter().enumerate().filter_map(point).collect()
}

/// What tells the runs apart, a line each; where there is no room, the number of the run.
fn labels(runs: &[&Run]) -> Vec<String> {
    if runs.len() > NAMED {
        return runs.iter().map(|run| format!("#{}", run.index)).collect();
    }
    let waits = runs.windows(2).any(|two| two[0].case.wait != two[1].case.wait);
    let sizes = runs.windows(2).any(|two| two[0].case.size != two[1].case.size);
    let label = |run: &&Run| {
        let mut words = vec![run.case.transport.name().to_owned()];
        words.extend(waits.then(|| run.case.wait.name().to_owned()));
        words.extend(sizes.then(|| bytes(run.case.size.0)));
        words.join("\n")
    };
    runs.iter().map(label).collect()
}

fn data(groups: &[Group<'_>]) -> Data {
    let mut data = Data::new("run label figure round value low high");
    for group in groups {
        let row = |round: Field, value: f64, [low, high]: [Field; 2]| {
            fields![group.run.index, &group.run.label, &group.name, round, value, low, high]
        };
        data.rows.push(row("all".into(), group.pooled, Field::bounds(group.interval)));
        let rounds = group.rounds.iter().enumerate();
        let none = || [Field::none(), Field::none()];
        data.rows.extend(rounds.map(|(at, value)| row((at as u64).into(), *value, none())));
    }
    data
}
