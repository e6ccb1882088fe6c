//! The lines of a graph: each figure of ours with the published ones beside it.

use crate::number::quantile_name;
use crate::scale::Scale;
use crate::view::names;
use wiregauge_base::units::Bytes;
use wiregauge_figures::record::schema::{Metric, RateMetric, Record, Run};
use wiregauge_plan::Study;
use wiregauge_plan::study::{Axis, Graph, GraphKind, Point, Reference};
use wiregauge_stats::compare::{Estimate, difference};
use wiregauge_stats::limit::Figure;
use wiregauge_stats::{Interval, Summary, Value};

/// Above this share of missed steps a point of a surface is marked: less was sent than its rate
/// says, and its latencies are of the steps that were not missed.
pub const MANY_MISSED: f64 = 0.1;

/// One figure of a graph.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The series.
    pub series: &'a str,
    /// The run.
    pub run: &'a Run,
    /// What its case is called among others of its series that the axes do not tell apart, such as
    /// operations; empty where there are none.
    pub of_series: String,
    /// Its metric.
    pub metric: &'a str,
    /// Its place on each of the graph's [`columns`]; NaN where that was not measured.
    pub at: Vec<f64>,
    /// The figure in ns, B/s, msg/s or what else its metric is in, with its interval; `None`: n too
    /// small, or not measured.
    pub figure: Option<(f64, Option<Interval>)>,
    /// Published figures of the same size.
    pub beside: Vec<Beside<'a>>,
}

impl Line<'_> {
    /// The series, and which of its cases.
    pub fn name(&self) -> String {
        match self.of_series.is_empty() {
            true => self.series.into(),
            false => format!("{}, {}", self.series, self.of_series),
        }
    }

    /// Its place on the first axis.
    pub fn x(&self) -> f64 {
        self.at.first().copied().unwrap_or(f64::NAN)
    }

    /// Its distribution; `None`: it is a rate.
    pub fn summary(&self) -> Option<&Summary> {
        self.run.summary(Metric::from_name(self.metric)?)
    }

    /// Rounds of its rate.
    pub fn rounds(&self) -> usize {
        let rate = RateMetric::from_name(self.metric).and_then(|metric| self.run.rate(metric));
        rate.map_or(0, |rate| rate.rounds.len())
    }

    /// Whether its run has given anything at all.
    pub fn is_measured(&self) -> bool {
        self.run.rounds.iter().any(|round| round.samples > 0)
    }

    /// The share of its run's steps that were missed, of a stream.
    pub fn missed(&self) -> Option<f64> {
        rate_of(self.run, RateMetric::Missed)
    }
}

/// A published figure beside one of ours.
#[derive(Clone, Debug)]
pub struct Beside<'a> {
    /// Where it comes from.
    pub reference: &'a Reference,
    /// The figure, in the same unit as ours.
    pub figure: &'a Point,
    /// Ours over it.
    pub ratio: Option<f64>,
}

/// The name of what a graph shows: `half_rtt p50`, `bandwidth`; of several metrics that of any.
pub fn shown(graph: &Graph) -> String {
    let name = if graph.also.is_empty() { &graph.metric } else { "figure" };
    match (scale(graph), graph.over.is_empty()) {
        (Scale::Time, _) if !graph.less.is_empty() => {
            return format!("{name} {} difference", quantile_name(graph.quantile));
        }
        (Scale::Time, _) => {}
        (_, false) => return format!("{name} {} ratio", quantile_name(graph.quantile)),
        _ if graph.above => return format!("{name} above the threshold"),
        _ if graph.each_way => return format!("{name} each way"),
        _ => return name.to_owned(),
    }
    format!("{name} {}", quantile_name(graph.quantile))
}

/// What a graph's figures are in.
pub fn scale(graph: &Graph) -> Scale {
    match () {
        _ if graph.above => Scale::Share,
        _ if !graph.over.is_empty() => Scale::Ratio,
        _ => Scale::of(&graph.metric),
    }
}

/// The columns before the figures in the table of a graph: its axes, or the size.
pub fn columns(kind: GraphKind) -> &'static [Axis] {
    if kind.axes().is_empty() { &[Axis::Size] } else { kind.axes() }
}

/// The place of a run on the axes of a graph.
fn at(run: &Run, kind: GraphKind) -> Vec<f64> {
    let of = |axis: &Axis| match axis {
        Axis::Answered => rate_of(run, RateMetric::MessageRate).unwrap_or(f64::NAN),
        _ => run.case.on_axis(*axis).unwrap_or(f64::NAN),
    };
    columns(kind).iter().map(of).collect()
}

/// The lines of a graph: by series in the order of the graph, then by metric, then along the axis,
/// or by size.
pub fn lines<'a>(record: &'a Record, study: &'a Study, graph: &'a Graph) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for series in &graph.series {
        let cases = study.cases(series);
        let of = |run: &&Run| {
            cases.contains(&run.index)
                && !run.case.is_preparation
                && graph.size.is_none_or(|size| size == run.case.size)
        };
        let mut runs: Vec<&Run> = record.runs.iter().filter(of).collect();
        runs.sort_by(|a, b| {
            let (x, y) = (at(a, graph.kind), at(b, graph.kind));
            let mut along = x.iter().zip(&y).map(|(a, b)| a.total_cmp(b));
            let differs = along.find(|order| order.is_ne());
            differs.unwrap_or_else(|| a.case.size.cmp(&b.case.size))
        });
        let names = names_within(&runs);
        for metric in graph.metrics() {
            lines.extend(runs.iter().zip(&names).map(|(run, name)| {
                let figure = shown_figure(record, study, graph, series, run, metric);
                let figure =
                    figure.map(|figure| if graph.each_way { half(figure) } else { figure });
                let beside = match metric == graph.metric {
                    true => beside(graph, series, run.case.size, figure),
                    false => Vec::new(),
                };
                let of_series = name.clone();
                Line { series, run, of_series, metric, at: at(run, graph.kind), figure, beside }
            }));
        }
    }
    lines
}

/// What the cases of a series are called where some are alike in all that an axis can have.
fn names_within(runs: &[&Run]) -> Vec<String> {
    let axes = [Axis::Size, Axis::Values, Axis::Rate, Axis::Clients, Axis::Connections];
    let place = |run: &Run| axes.map(|axis| run.case.on_axis(axis));
    let are_alike =
        |(at, run): (usize, &&Run)| runs[..at].iter().any(|other| place(other) == place(run));
    match runs.iter().enumerate().any(are_alike) {
        true => names::words_apart(runs),
        false => vec![String::new(); runs.len()],
    }
}

/// Whether a graph's figures are of messages of one size: not those of a workload's many lengths,
/// where the size of a case is its longest.
pub fn is_of_one_size(graph: &Graph) -> bool {
    let metric = graph.metric.as_str();
    metric != Metric::Short.name() && metric != RateMetric::Slowdown.name()
}

/// Whether rows of a series differ in their rates, and the axes do not say so.
pub fn rates_differ(graph: &Graph, lines: &[Line<'_>]) -> bool {
    let rate = |line: &Line<'_>| line.run.case.on_axis(Axis::Rate);
    let differ =
        |two: &[Line<'_>]| two[0].series == two[1].series && rate(&two[0]) != rate(&two[1]);
    !columns(graph.kind).contains(&Axis::Rate) && lines.windows(2).any(differ)
}

fn rate_of(run: &Run, metric: RateMetric) -> Option<f64> {
    Some(Figure::Rate(metric).estimate(run)?.value)
}

/// What a graph shows of a run of a series.
fn shown_figure(
    record: &Record,
    study: &Study,
    graph: &Graph,
    series: &str,
    run: &Run,
    metric: &str,
) -> Option<(f64, Option<Interval>)> {
    if graph.above {
        let summary = run.summary(Metric::from_name(metric)?)?;
        let count = summary.count as f64;
        return (count > 0.0).then(|| (summary.above_threshold as f64 / count, None));
    }
    let own = figure(run, metric, graph.quantile);
    let parts = graph.parts_of(series);
    if !parts.is_empty() {
        let of = |part: &String| {
            let cases = study.cases(part);
            let is_alike = |run: &&Run| cases.contains(&run.index);
            let mut runs = record.runs.iter().filter(is_alike);
            let run = runs.find(|other| other.case.size == run.case.size)?;
            figure(run, metric, graph.quantile)
        };
        let rest = parts.iter().try_fold(own?, |rest, part| {
            let found = difference(of(part)?, rest)?;
            Some(Estimate::from((found.absolute.0, found.interval)))
        })?;
        return Some((rest.value, rest.interval));
    }
    let shown = own.map(|own| (own.value, own.interval));
    let Some(base) = graph.base_of(series) else { return shown };
    let cases = study.cases(base);
    // That of the same place in a sweep.
    let axes = [Axis::Size, Axis::Values, Axis::Rate, Axis::Clients, Axis::Connections];
    let base = record.runs.iter().find(|other| {
        let is_alike = axes.iter().all(|axis| run.case.on_axis(*axis) == other.case.on_axis(*axis));
        cases.contains(&other.index) && is_alike
    });
    let base = figure(base?, metric, graph.quantile)?;
    let found = difference(base, own?)?;
    let more = |value: Value| Value(value.0 + 1.0);
    let interval = found.relative_interval;
    let interval = interval.map(|i| Interval { low: more(i.low), high: more(i.high) });
    Some((found.relative?.0 + 1.0, interval))
}

fn figure(run: &Run, metric: &str, quantile: f64) -> Option<Estimate> {
    let figure = match RateMetric::from_name(metric) {
        Some(metric) => Figure::Rate(metric),
        None if quantile >= 1.0 => Figure::Max(Metric::from_name(metric)?),
        None => Figure::Quantile(Metric::from_name(metric)?, quantile),
    };
    figure.estimate(run)
}

/// One way of a rate of both: rates of both ways are sums.
fn half((value, interval): (f64, Option<Interval>)) -> (f64, Option<Interval>) {
    let halved = |Interval { low, high }: Interval| Interval {
        low: Value(low.0 / 2.0),
        high: Value(high.0 / 2.0),
    };
    (value / 2.0, interval.map(halved))
}

fn beside<'a>(
    graph: &'a Graph,
    series: &str,
    size: Bytes,
    figure: Option<(f64, Option<Interval>)>,
) -> Vec<Beside<'a>> {
    let found = references(graph).filter(|reference| is_beside(reference, series));
    let found = found.filter_map(|reference| {
        let published = reference.points.iter().find(|p| p.size.is_none_or(|s| s == size))?;
        let ratio = figure.map(|(value, _)| value / published.value);
        Some(Beside { reference, figure: published, ratio })
    });
    found.collect()
}

/// A published median beside another quantile of ours would mislead.
pub fn references(graph: &Graph) -> impl Iterator<Item = &Reference> {
    let is_time = Scale::of(&graph.metric) == Scale::Time && !graph.above;
    graph.references.iter().filter(move |one| !is_time || one.quantile == graph.quantile)
}

/// Whether a reference is compared with a series.
pub fn is_beside(reference: &Reference, series: &str) -> bool {
    reference.beside.as_deref().is_none_or(|name| name == series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_half_of_both() {
        let interval = Interval { low: Value(90.0), high: Value(110.0) };
        let halved = Interval { low: Value(45.0), high: Value(55.0) };
        assert_eq!(half((100.0, Some(interval))), (50.0, Some(halved)));
    }
}
