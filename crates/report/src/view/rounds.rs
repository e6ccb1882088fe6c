//! Rounds side by side: each round a dot, the figure of all with its interval a box behind them. In
//! per cent of that figure, so that 1 % is as visible at 100 ns as at 100 us.

use super::figures::{self, Figure};
use super::names::names;
use crate::model::{Axis, Data, Plot, Point, Section, Series, Style, Unit, bounds, fields};
use crate::number::{PERCENT, fixed, interval, time};
use crate::scale::Scale;
use serde_json::{Value as Json, json};
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::{RateMetric, Record, Run};
use wiregauge_stats::{Interval, Value};

/// Most runs that are named; more are numbered.
const NAMED: usize = 12;
/// A plot of latencies and one of bandwidths; `None` where there are neither.
pub fn section(record: &Record) -> Option<Section> {
    let mut section = Section::new("rounds", "Rounds side by side");
    let note = "Boxes: the 95 % interval of a typical round.";
    let latency =
        format!("Each dot is a round: its p50, and its p99 where it has enough samples. {note}");
    let rate = format!("Each dot is a round. {note}");
    let speed = |value: f64| Scale::Bytes.text(value);
    let latencies = record.runs.iter().flat_map(figures::quantiles).collect();
    let bandwidth = |run| figures::rate(run, RateMetric::Bandwidth);
    let bandwidths = record.runs.iter().filter_map(bandwidth).collect();
    add(&mut section, "latency", "Latency", latency, latencies, time);
    add(&mut section, "bandwidth", "Bandwidth", rate, bandwidths, speed);
    section.filled()
}

fn add(
    section: &mut Section,
    id: &str,
    title: &str,
    note: String,
    figures: Vec<Figure<'_>>,
    shown: impl Fn(f64) -> String,
) {
    if figures.iter().all(|figure| figure.rounds.is_empty()) {
        return;
    }
    let mut runs: Vec<&Run> = figures.iter().map(|figure| figure.run).collect();
    runs.dedup_by_key(|run| run.index);
    let names = each_once(figures.iter().map(|figure| figure.name.as_str()));
    let slot = 0.84 / names.len() as f64;
    let mut series = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let aside = (at as f64 - (names.len() - 1) as f64 / 2.0) * slot;
        let (mut boxes, mut dots) = (Vec::new(), Vec::new());
        for figure in figures.iter().filter(|figure| figure.name == *name) {
            let own = runs.iter().position(|run| run.index == figure.run.index).unwrap_or(0);
            let middle = own as f64 + aside;
            boxes.extend(interval_box(figure, middle, &shown));
            dots.extend(rounds(figure, middle, slot, &shown));
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
        x: Axis::names(labels(&runs), 0.5),
        y: Axis::linear("difference to a typical round", Unit::Difference, [-reach, reach]),
        series,
        ..Plot::new(format!("rounds-{id}"), title, note, 330)
    };
    section.draw(plot, data(&figures));
}

/// How far a value is from that of a typical round, in per cent.
fn part(figure: &Figure<'_>, value: f64) -> f64 {
    PERCENT * (value / figure.value - 1.0)
}

fn is_usable(figure: &Figure<'_>) -> bool {
    figure.value > 0.0 && figure.value.is_finite()
}

fn interval_box(figure: &Figure<'_>, x: f64, shown: &impl Fn(f64) -> String) -> Option<Point> {
    let bound = |of: fn(&Interval) -> f64| {
        let bound = part(figure, figure.interval.as_ref().map_or(figure.value, of));
        Some(bound).filter(|bound| bound.is_finite())
    };
    let text = format!(
        "{}, {}: {} {} over {} rounds",
        figure.run.label,
        figure.name,
        shown(figure.value),
        interval(figure.value, figure.interval, shown),
        figure.rounds.len()
    );
    let (low, high) = (bound(|both| both.low.0), bound(|both| both.high.0));
    is_usable(figure).then(|| Point { x, low, high, text, ..Point::default() })
}

fn rounds(figure: &Figure<'_>, x: f64, slot: f64, shown: &impl Fn(f64) -> String) -> Vec<Point> {
    let count = figure.rounds.len();
    let step = slot * 0.8 / count.max(1) as f64;
    let point = |(round, value): (usize, &f64)| {
        let y = Some(part(figure, *value)).filter(|y| y.is_finite() && is_usable(figure))?;
        let sign = if y > 0.0 { "+" } else { "" };
        let (label, name) = (&figure.run.label, &figure.name);
        let away = fixed(y, 2);
        let text = format!("{label}, {name}: round {round}: {}, {sign}{away} %", shown(*value));
        let x = x + (round as f64 - (count as f64 - 1.0) / 2.0) * step;
        Some(Point { x, y, text, ..Point::default() })
    };
    figure.rounds.iter().enumerate().filter_map(point).collect()
}

/// What distinguishes the runs; if there is no room, their numbers.
fn labels(runs: &[&Run]) -> Vec<String> {
    match runs.len() > NAMED {
        true => runs.iter().map(|run| format!("#{}", run.index)).collect(),
        false => names(runs),
    }
}

fn data(figures: &[Figure<'_>]) -> Data {
    let rows = figures.iter().flat_map(|figure| {
        let row = |round: Json, value: f64, interval| {
            let [low, high] = bounds(interval);
            let (run, value) = (figure.run, Value(value));
            fields![run.index, run.label, figure.name, round, value, low, high]
        };
        let rounds = figure.rounds.iter().enumerate();
        let rounds = rounds.map(move |(at, value)| row(json!(at), *value, None));
        std::iter::once(row(json!("all"), figure.value, figure.interval)).chain(rounds)
    });
    Data::new("run label figure round value low high", rows)
}
