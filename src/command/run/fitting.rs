//! Whether the graphs of a study can show what its series measure.

use crate::command::CommandError;
use crate::loops::role::is_one_sided;
use crate::plan::study::file::{GraphAsked, StudyFile};
use crate::plan::study::{Axis, GraphKind};
use crate::plan::{Case, Pattern, Request};
use crate::report::scale::Scale;
use crate::stats::{Metric, RateMetric};

/// Refuses a graph of what a series does not measure, or against what its cases do not have.
pub(super) fn check(
    parsed: &StudyFile,
    requests: &[(String, Request)],
) -> Result<(), CommandError> {
    let wrong = |asked: &GraphAsked, sentence: String| {
        Err(Box::new(parsed.written.wrong(&asked.metric_place, sentence)).into())
    };
    for asked in &parsed.graphs {
        if let Some(sentence) = unlike(asked) {
            return wrong(asked, sentence);
        }
        let shown = |name: &String| asked.graph.series.contains(name);
        for (series, request) in requests.iter().filter(|(series, _)| shown(series)) {
            let plan = request.clone().plan()?;
            let mut cases = plan.cases.iter().flat_map(Case::shown);
            if let Some(sentence) = cases.find_map(|case| lacks(asked, series, &case)) {
                return wrong(asked, sentence);
            }
        }
    }
    Ok(())
}

/// Metrics that cannot stand in one graph, or not in one of this kind.
fn unlike(asked: &GraphAsked) -> Option<String> {
    let graph = &asked.graph;
    let is_distribution = matches!(graph.kind, GraphKind::Cdf | GraphKind::Histogram);
    if is_distribution && RateMetric::from_name(&graph.metric).is_some() {
        let (kind, metric) = (graph.kind.name(), &graph.metric);
        return Some(format!("{kind} shows how a latency is spread, and '{metric}' is none"));
    }
    let unit = |metric: &str| Scale::of(metric).unit();
    let other = graph.also.iter().find(|also| unit(also) != unit(&graph.metric))?;
    Some(format!(
        "'{other}' is in {} and '{}' in {}; the metrics of a graph have one unit",
        unit(other),
        graph.metric,
        unit(&graph.metric)
    ))
}

/// What a case of a series lacks for a graph.
fn lacks(asked: &GraphAsked, series: &str, case: &Case) -> Option<String> {
    let measured = measured(case);
    if let Some(metric) = asked.graph.metrics().find(|metric| !measured.contains(metric)) {
        return Some(format!(
            "'{series}' does not measure '{metric}'; it measures {}",
            measured.join(", ")
        ));
    }
    let has = |axis: &Axis| match axis {
        Axis::Answered => measured.contains(&RateMetric::MessageRate.name()),
        _ => axis.of(case).is_some(),
    };
    let kind = asked.graph.kind;
    let axis = kind.axes().iter().find(|axis| !has(axis))?;
    Some(format!(
        "{} needs a {}, which '{series}' does not have; it is for {}",
        kind.name(),
        axis.what(),
        axis.of_what()
    ))
}

/// The metrics of a case, distributions first.
fn measured(case: &Case) -> Vec<&'static str> {
    let names = |rates: &[RateMetric]| -> Vec<&'static str> {
        rates.iter().map(|rate| rate.name()).collect()
    };
    if case.pattern == Pattern::Bandwidth {
        return names(&[RateMetric::Bandwidth, RateMetric::MessageRate]);
    }
    let mut metrics = match case.stream {
        Some(_) => Metric::OF_STREAM.to_vec(),
        None => Metric::of(case.pattern, &case.schedule, is_one_sided(case)),
    };
    if matches!(case.pattern, Pattern::Latency | Pattern::Oneway) && case.stream.is_none() {
        let more = [Metric::Post, Metric::Complete];
        metrics.extend(more.into_iter().filter(|one| !metrics.contains(one)).collect::<Vec<_>>());
    }
    let mut all: Vec<&str> = metrics.into_iter().map(Metric::name).collect();
    if case.schedule.is_open() {
        all.extend(names(&[RateMetric::OfferedRate, RateMetric::AchievedRate]));
    }
    if case.schedule.is_open() || case.pattern == Pattern::Load {
        all.extend(names(&[RateMetric::MessageRate]));
    }
    if case.rpc.is_some() {
        let own = [Metric::Short.name(), RateMetric::Slowdown.name()];
        all.extend(own.into_iter().chain([RateMetric::Bandwidth.name()]));
    }
    if case.stream.is_some() {
        all.extend(names(&[RateMetric::Ceiling, RateMetric::Missed]));
    }
    if case.pattern == Pattern::Load {
        all.extend(names(&[RateMetric::CpuClient, RateMetric::CpuServer]));
    }
    if case.load.buffers.is_some() {
        all.extend(names(&RateMetric::OF_POOLS));
    }
    all
}
