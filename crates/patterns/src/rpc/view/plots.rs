//! The plots of `rpc`: slowdowns and times over the lengths of a workload, and the tail of the
//! short ones.

use super::super::workload::Workload;
use super::sent::{Length, Sent, explained};
use crate::prelude::*;
use wiregauge_figures::view::model::Point;
use wiregauge_figures::view::number::{PERCENT, bytes, count, quantile_name, short, time};

/// Labels along the axis of lengths.
const TICKS: u32 = 10;

/// The plots: those of each workload, whose lengths are the axis, and the tail of the short ones.
pub(super) fn of(runs: &[Sent<'_>]) -> Vec<Plot> {
    let workloads = grouped(runs, |a, b| a.rpc.workload.steps == b.rpc.workload.steps);
    let several = workloads.len() > 1;
    let mut plots = Vec::new();
    for (at, own) in workloads.iter().enumerate() {
        let name = &own[0].rpc.workload.name;
        let of = if several { format!(", {name}") } else { String::new() };
        let number = if at == 0 { String::new() } else { format!("-{}", at + 1) };
        plots.extend(plots_of(own).into_iter().map(|mut plot| {
            plot.title.push_str(&of);
            plot.id.push_str(&number);
            plot
        }));
    }
    plots.extend(tail(runs));
    plots
}

/// How much each length is slowed down, and how long each takes.
fn plots_of(runs: &[&Sent<'_>]) -> Vec<Plot> {
    let loaded: Vec<&Sent<'_>> = runs.iter().copied().filter(|sent| !sent.rpc.unloaded).collect();
    let Some(some) = loaded.iter().find(|sent| sent.lengths.sizes.len() > 1) else {
        return Vec::new();
    };
    let x = axis(&some.rpc.workload);
    let plot = |id: &str, title: &str, note: String, label: &str, unit, series| {
        let (x, y) = (x.clone(), Axis::log(label, unit));
        Plot { x, y, series, ..Plot::new(id, title, note, 340) }
    };
    let metric = some.lengths.metric;
    let times = if metric == Metric::Rtt { "Round trips" } else { "Responses" };
    let mut plots = Vec::new();
    if loaded.iter().any(|sent| sent.lengths().any(|row| row.base_ns() > Some(0.0))) {
        let mut by: Vec<&str> = loaded.iter().map(|sent| explained(sent.rpc.slowdown)).collect();
        by.dedup();
        let note = format!("Of each request: {}. p50 solid, p99 dashed.", by.join(", or "));
        let ratio = |row: &Length<'_>, ns: f64| ns / row.base_ns().unwrap_or(f64::NAN);
        let series = steps(&loaded, ratio, |v| format!("{}×", short(v)));
        let title = "Slowdown against message size";
        plots.push(plot("rpc-slowdown", title, note, "slowdown", Unit::Times, series));
    }
    let note = format!("{times}. p50 solid, p99 dashed.");
    let series = steps(runs, |_, ns| ns, time);
    let title = "Time against message size";
    plots.push(plot("rpc-time", title, note, metric.name(), Unit::Time, series));
    plots
}

/// Linear in the number of messages, so that each length is as wide as its share.
fn axis(workload: &Workload) -> Axis {
    let ticks: Vec<f64> = (0..=TICKS).map(|tick| f64::from(tick) / f64::from(TICKS)).collect();
    let size = |share: &f64| {
        let reaches = |(_, up_to): &&(Bytes, f64)| *up_to >= share - 1e-9;
        let found = workload.steps.iter().find(reaches).or(workload.steps.last());
        found.map_or(String::new(), |(size, _)| bytes(size.0))
    };
    Axis {
        label: "message size, by the share of messages that are no longer".into(),
        labels: ticks.iter().map(size).collect(),
        ticks,
        ..Axis::default().between(0.0, 1.0)
    }
}

/// A step for each length of each run, `value` of its quantiles.
fn steps(
    runs: &[&Sent<'_>],
    value: impl Fn(&Length<'_>, f64) -> f64,
    shown: impl Fn(f64) -> String,
) -> Vec<Series> {
    let mut all = Vec::new();
    for (at, sent) in runs.iter().enumerate() {
        for (dash, p) in [0.5, 0.99].into_iter().enumerate() {
            let name = quantile_name(p);
            let (mut points, mut before) = (Vec::new(), 0.0);
            for row in sent.lengths() {
                // By the workload, for unloaded requests too, of which each length is as frequent.
                let step =
                    sent.rpc.workload.steps.iter().find(|step| step.0.0 == u64::from(row.of.size));
                let to = step.map_or(row.of.share, |step| step.1);
                let x = std::mem::replace(&mut before, to);
                let found = row.of.summary.quantile(p);
                let found = found.and_then(|quantile| quantile.value);
                let y = found.map_or(f64::NAN, |ns| value(&row, ns.0));
                if !(y > 0.0 && y.is_finite()) {
                    continue;
                }
                let lost = match row.of.summary.lost {
                    0 => String::new(),
                    lost => format!(", {lost} lost"),
                };
                let (size, n) = (bytes(row.of.size.into()), count(row.of.summary.count));
                let text = format!("{size}: {name} {}, n = {n}{lost}", shown(y));
                points.push(Point { x, to: Some(to), y, text, ..Point::default() });
            }
            let name = format!("{} {name}", sent.run.label);
            let (style, colour) = (Style::Path, Some(at));
            all.push(Series { name, style, colour, dash, points, ..Series::default() });
        }
    }
    all
}

/// The fraction of the short requests that took longer.
fn tail<'r>(runs: &'r [Sent<'r>]) -> Option<Plot> {
    let own = || {
        let short =
            |sent: &'r Sent<'r>| sent.lengths.short.as_ref().filter(|one| one.tail.len() > 1);
        runs.iter().filter_map(move |sent| Some((sent, short(sent)?)))
    };
    let longest = own().map(|(_, short)| short.longest).max()?;
    let series = own().enumerate().map(|(at, (sent, short_ones))| {
        let n = count(sent.run.summary(Metric::Short).map_or(0, |summary| summary.count));
        let usable = short_ones.tail.iter().filter(|(ns, above)| *above > 0.0 && ns.is_finite());
        let point = |&(ns, above): &(f64, f64)| Point {
            x: ns,
            y: above,
            text: format!("{} % took longer than {}, n = {n}", short(PERCENT * above), time(ns)),
            ..Point::default()
        };
        let (name, style, colour) = (sent.run.label.clone(), Style::Path, Some(at));
        Series { name, style, colour, points: usable.map(point).collect(), ..Series::default() }
    });
    let series: Vec<Series> = series.collect();
    let lowest = series.iter().flat_map(|one| &one.points).map(|point| point.y);
    let lowest = lowest.fold(1.0, f64::min);
    let note = format!(
        "The shortest tenth of all requests, up to {}. Lost ones took longer than all.",
        bytes(longest.into())
    );
    Some(Plot {
        x: Axis::log("time", Unit::Time),
        y: Axis::log("took longer", Unit::None).between(lowest / 1.5, 1.0),
        series,
        ..Plot::new("rpc-short", "Short requests: the share that took longer", note, 340)
    })
}
