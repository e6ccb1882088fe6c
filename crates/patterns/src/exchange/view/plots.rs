//! The plots of an exchange: rates over time, and those of an incast by its senders.

use super::super::slots::Rule;
use super::seen::{Seen, figure};
use crate::prelude::*;
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::model::Point;
use wiregauge_figures::view::number::short;

/// The rates of connections or nodes over the first round, and their sum.
pub fn over_time(seen: &Seen<'_>) -> Option<Plot> {
    let found = &seen.details.over_time;
    let bins = found.rates.first()?.len();
    let unit = byte_rate::or(ByteRateUnit::Megabytes);
    let points = |rates: &[f64], name: &str| -> Vec<Point> {
        let point = |(bin, rate): (usize, &f64)| {
            let x = bin as f64 * found.seconds;
            let text = format!("{name}: {} {}", short(rate * unit.factor()), unit.name());
            Point { x, y: *rate, to: Some(x + found.seconds), text, ..Point::default() }
        };
        rates.iter().enumerate().map(point).collect()
    };
    let name = |(from, to): &(Option<u32>, u32)| match from {
        Some(from) => format!("{} to {}", seen.name(*from), seen.name(*to)),
        None => format!("to {}", seen.name(*to)),
    };
    let names = found.lines.iter().map(name);
    let line = |(number, (name, rates)): (usize, (String, &Vec<f64>))| {
        let points = points(rates, &name);
        Series { name, style: Style::Steps, colour: Some(number + 1), points, ..Series::default() }
    };
    let sum: Vec<f64> =
        (0..bins).map(|bin| found.rates.iter().filter_map(|one| one.get(bin)).sum()).collect();
    let all = Series {
        name: "sum".into(),
        style: Style::Steps,
        colour: Some(0),
        points: points(&sum, "sum"),
        ..Series::default()
    };
    let lines = names.zip(&found.rates).enumerate().map(line);
    let end = bins as f64 * found.seconds;
    let what = if found.lines.iter().any(|line| line.0.is_some()) { "connection" } else { "node" };
    let note = format!("Payload that arrived of each {what}, and their sum, in the first round.");
    let most = sum.iter().copied().fold(0.0, f64::max);
    let id = format!("exchange-time-{}", seen.run.index);
    let title = format!("Rate over time, {}", seen.run.label);
    let series = std::iter::once(all).chain(lines).collect();
    Some(Plot {
        x: Axis::linear("time", Unit::Seconds, [0.0, end]),
        y: Axis {
            factor: Some(unit.factor()),
            ..Axis::linear(unit.name(), Unit::BytesPerSecond, [0.0, most * 1.1])
        },
        series,
        ..Plot::new(id, title, note, 340)
    })
}

/// What the receiver of an incast gets, by its senders.
pub fn by_degree(runs: &[Seen<'_>]) -> Option<Plot> {
    let own: Vec<&Seen<'_>> = runs.iter().filter(|one| one.spec.rule == Rule::Incast).collect();
    let unit = byte_rate::or(ByteRateUnit::Megabytes);
    let alike = |a: &&Seen<'_>, b: &&Seen<'_>| {
        let key = |one: &Seen<'_>| {
            let case = &one.run.case;
            (case.transport, case.wait, one.spec.mean, one.spec.chaotic, one.spec.slot)
        };
        key(a) == key(b)
    };
    let groups = grouped(own, alike);
    if groups.iter().all(|group| group.len() < 2) {
        return None;
    }
    let point = |seen: &&Seen<'_>| {
        let (y, interval) = figure(&seen.details.nodes.first()?.receives);
        let text =
            format!("{} senders: {} {}", seen.spec.degree, short(y * unit.factor()), unit.name());
        let x = f64::from(seen.spec.degree);
        Some(Point { x, y, text, ..Point::default() }.within(interval))
    };
    let series = |(number, group): (usize, &Vec<&Seen<'_>>)| {
        let first = group.first()?;
        let name = format!("{} {}", first.run.case.transport, first.spec.mean);
        let mut points: Vec<Point> = group.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Some(Series { name, colour: Some(number), points, ..Series::default() })
    };
    let series: Vec<Series> = groups.iter().enumerate().filter_map(series).collect();
    let all = || series.iter().flat_map(|one| &one.points);
    let (most_x, most_y) = (
        all().map(|point| point.x).fold(0.0, f64::max),
        all().map(|point| point.y).fold(0.0, f64::max),
    );
    Some(Plot {
        x: Axis::linear("senders", Unit::Count, [0.0, most_x + 1.0]),
        y: Axis {
            factor: Some(unit.factor()),
            ..Axis::linear(unit.name(), Unit::BytesPerSecond, [0.0, most_y * 1.1])
        },
        series,
        ..Plot::new(
            "exchange-incast",
            "Incast by senders",
            "Payload that arrived at the one receiver.",
            320,
        )
    })
}
