//! The distributions of runs: cumulative, and their tails.

use crate::curves::Curve;
use crate::model::{
    Axis, Curve as Drawn, CurveKind, Data, Mark, Plot, Series, Style, Unit, fields,
};
use crate::number::{quantile_name, span};
use wiregauge_base::options::each_once;
use wiregauge_figures::record::schema::{Metric, Record, Run};
use wiregauge_stats::Value;

const TAIL: &str = "Share of messages at least this slow. A line that is flat up to the edge has \
                    lost messages.";
const BODY: &str = "Cumulative share of messages, up to p99.9.";
const HEIGHT: u32 = 360;
/// From the edges of a curve to those of the plot.
const ROOM: f64 = 1.25;
/// The transports' lines differ in colour, and these in dashes.
const WAITS: [&str; 3] = ["busy", "block", "adaptive"];

/// The tail and the cumulative distribution of these curves. `styles`: a name, a colour and a dash
/// of each.
pub fn plots(id: &str, styles: &[(String, usize, usize)], curves: &[&Curve]) -> [Plot; 2] {
    let series = |kind: CurveKind| {
        let one = |((name, colour, dash), curve): (&(String, usize, usize), &&Curve)| Series {
            name: name.clone(),
            style: Style::Steps,
            colour: Some(*colour),
            dash: *dash,
            curve: Some(Drawn { run: curve.run, metric: curve.metric.name().into(), kind }),
            ..Series::default()
        };
        styles.iter().zip(curves).map(one).collect()
    };
    let latency = Axis::log("latency", Unit::Time);
    let most = curves.iter().map(|curve| curve.count).max().unwrap_or(1).max(10);
    let tail = Plot {
        x: tail_range(curves)
            .map_or(latency.clone(), |[low, high]| latency.clone().between(low, high)),
        y: tail_axis(most),
        series: series(CurveKind::Ccdf),
        ..Plot::new(format!("ccdf-{id}"), "Tail (CCDF)", TAIL, HEIGHT)
    };
    let shares = (0..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
    let body = Plot {
        x: latency,
        y: Axis { ticks: shares, ..Axis::linear("cumulative share", Unit::Share, [0.0, 1.02]) },
        series: series(CurveKind::Cdf),
        ..Plot::new(format!("cdf-{id}"), "Cumulative (CDF)", BODY, HEIGHT)
    };
    [tail, body]
}

/// What the buttons below plots save: every order statistic that is kept.
pub fn data(styles: &[(String, usize, usize)], curves: &[Curve]) -> Data {
    let rows = styles.iter().zip(curves).flat_map(|((name, ..), curve)| {
        let ranked = curve.ranks.iter().zip(&curve.values);
        let (metric, count, lost) = (curve.metric.name(), curve.count, curve.lost);
        ranked.map(move |(rank, value)| fields![name, metric, count, lost, rank, Value(*value)])
    });
    Data::new("record metric count lost rank latency_ns", rows)
}

/// Those of a record's runs by each metric.
pub fn of_record(record: &Record, curves: &[Curve]) -> Vec<Plot> {
    let metrics = each_once(curves.iter().map(|curve| curve.metric));
    let error_ns = record.instrument.error_ns;
    let one = |metric: Metric| {
        let own: Vec<&Curve> = curves.iter().filter(|curve| curve.metric == metric).collect();
        let styles = styles(record, &own, curves);
        plots(metric.name(), &styles, &own).map(|mut plot| {
            plot.title = format!("{}, {}", metric.name(), plot.title);
            let inside = plot.x.range.is_none_or(|[low, _]| error_ns > low);
            let text = format!("instrument error {}", span(error_ns));
            let mark = Mark { name: text.clone(), text, x: Some(error_ns), ..Mark::default() };
            if error_ns > 0.0 && error_ns.is_finite() && inside {
                plot.marks.push(Mark { y: plot.y.range.map(|[_, high]| high), ..mark });
            }
            plot
        })
    };
    metrics.into_iter().flat_map(one).collect()
}

/// The name, the colour and the dash of each curve, as the page has them: by transport and wait
/// where these tell all runs apart, else in turn.
fn styles(record: &Record, own: &[&Curve], all: &[Curve]) -> Vec<(String, usize, usize)> {
    let run = |index: u32| record.runs.iter().find(|run| run.index == index);
    let drawn = each_once(all.iter().map(|curve| curve.run));
    let of = |run: &Run| (run.case.transport.name(), run.case.wait.name());
    let pairs = each_once(drawn.iter().filter_map(|index| run(*index)).map(of));
    let transports = each_once(pairs.iter().map(|(transport, _)| *transport));
    let by_name = pairs.len() == drawn.len() && transports.len() > 1;
    let style = |curve: &&Curve| {
        let found = run(curve.run);
        let name = found.map_or(format!("run {}", curve.run), |run| run.label.clone());
        let turn = drawn.iter().position(|index| *index == curve.run).unwrap_or(0);
        match found.map(of).filter(|_| by_name) {
            Some((transport, wait)) => {
                let colour = transports.iter().position(|one| *one == transport).unwrap_or(0);
                (name, colour, WAITS.iter().position(|one| *one == wait).unwrap_or(0))
            }
            None => (name, turn, 0),
        }
    };
    own.iter().map(style).collect()
}

/// From the smallest to the largest sample that arrived.
fn tail_range(curves: &[&Curve]) -> Option<[f64; 2]> {
    let usable = curves.iter().flat_map(|curve| &curve.values).copied().filter(|v| *v > 0.0);
    let (low, high) = crate::model::extent(usable)?;
    Some([low * 0.85, high * ROOM])
}

/// Shares down to one message of this many, named by their quantiles.
fn tail_axis(most: u64) -> Axis {
    let decades = (1..).take_while(|k| 10f64.powi(*k) <= most as f64 * 1.4);
    let shares: Vec<f64> = [1.0, 0.5].into_iter().chain(decades.map(|k| 10f64.powi(-k))).collect();
    let name = |share: &f64| match share {
        share if *share >= 1.0 => "all".to_owned(),
        share if *share < 9e-6 => format!("1 in 1e{:.0}", -share.log10()),
        share => quantile_name(1.0 - share),
    };
    let labels = shares.iter().map(name).collect();
    let range = [0.7 / most as f64, 1.15];
    Axis { ticks: shares, labels, ..Axis::log("share at least this slow", Unit::Share) }
        .between(range[0], range[1])
}
