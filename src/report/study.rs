//! What the graphs of a study show: each figure of ours with the published ones beside it.
//!
//! Takes a record; gives lines. Both the terminal's tables and the page's are made of them.

use crate::plan::Study;
use crate::plan::study::{Graph, Reference};
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::stats::Interval;
use crate::units::Bytes;

/// One figure of a graph.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The series.
    pub series: &'a str,
    /// The run.
    pub run: &'a Run,
    /// The figure in ns, B/s or msg/s with its interval; `None`: n too small, or not measured.
    pub figure: Option<(f64, Option<Interval>)>,
    /// Published figures of the same size.
    pub beside: Vec<Beside<'a>>,
}

impl Line<'_> {
    /// Whether its run has given anything at all.
    pub fn is_measured(&self) -> bool {
        self.run.rounds.iter().any(|round| round.samples > 0)
    }
}

/// A published figure beside one of ours.
#[derive(Clone, Debug)]
pub struct Beside<'a> {
    /// Where it comes from.
    pub reference: &'a Reference,
    /// The figure in the same unit as ours.
    pub value: f64,
    /// Ours over it.
    pub ratio: Option<f64>,
}

/// What a graph's figures are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Shown in us.
    Time,
    /// Shown in MB/s.
    Bytes,
    /// Shown in thousands of messages per second.
    Messages,
}

impl Scale {
    /// That of a metric by its name.
    pub fn of(metric: &str) -> Scale {
        match RateMetric::from_name(metric) {
            None => Scale::Time,
            Some(RateMetric::Bandwidth) => Scale::Bytes,
            Some(_) => Scale::Messages,
        }
    }

    /// The unit in which it is shown.
    pub fn unit(self) -> &'static str {
        match self {
            Scale::Time => "us",
            Scale::Bytes => "MB/s",
            Scale::Messages => "k msg/s",
        }
    }

    /// What turns ns, B/s or msg/s into that unit.
    pub fn factor(self) -> f64 {
        match self {
            Scale::Time | Scale::Messages => 1e-3,
            Scale::Bytes => 1e-6,
        }
    }
}

/// The name of what a graph shows: `half_rtt p50`, `bandwidth`.
pub fn shown(graph: &Graph) -> String {
    match Scale::of(&graph.metric) {
        Scale::Time => {
            let percent = graph.quantile * 100.0;
            // 99.9 has no neat binary form.
            format!("{} p{}", graph.metric, (percent * 1e6).round() / 1e6)
        }
        Scale::Bytes | Scale::Messages => graph.metric.clone(),
    }
}

/// The lines of a graph: by series in the order of the graph, then by size.
pub fn lines<'a>(record: &'a Record, study: &'a Study, graph: &'a Graph) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for series in &graph.series {
        let cases = study.cases(series);
        let of = |run: &&Run| {
            cases.contains(&run.index) && graph.size.is_none_or(|size| size == run.case.size)
        };
        let mut runs: Vec<&Run> = record.runs.iter().filter(of).collect();
        runs.sort_by_key(|run| run.case.size);
        lines.extend(runs.into_iter().map(|run| {
            let figure = figure(run, graph);
            Line { series, run, figure, beside: beside(graph, series, run.case.size, figure) }
        }));
    }
    lines
}

fn figure(run: &Run, graph: &Graph) -> Option<(f64, Option<Interval>)> {
    if let Some(metric) = RateMetric::from_name(&graph.metric) {
        let found = run.rates.iter().find(|figure| figure.metric == metric)?;
        return Some((found.rate.value, found.rate.interval)).filter(|(v, _)| !v.is_nan());
    }
    let summary = run.summary(Metric::from_name(&graph.metric)?)?;
    let found = summary.quantiles.iter().find(|q| q.p == graph.quantile)?;
    Some((found.value?.0, found.interval))
}

fn beside<'a>(
    graph: &'a Graph,
    series: &str,
    size: Bytes,
    figure: Option<(f64, Option<Interval>)>,
) -> Vec<Beside<'a>> {
    // Published figures are medians; beside another quantile they would mislead.
    let same = graph.quantile == 0.5 || Scale::of(&graph.metric) != Scale::Time;
    let own = |reference: &&Reference| {
        same && reference.beside.as_deref().is_none_or(|name| name == series)
    };
    let mut found = Vec::new();
    for reference in graph.references.iter().filter(own) {
        let point = reference.points.iter().find(|p| p.size.is_none_or(|s| s == size));
        if let Some(point) = point {
            let ratio = figure.map(|(value, _)| value / point.value);
            found.push(Beside { reference, value: point.value, ratio });
        }
    }
    found
}
