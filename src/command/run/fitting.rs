//! Whether the graphs of a study can show what its series measure.

use crate::command::CommandError;
use crate::pattern::registry;
use crate::plan::study::file::{GraphAsked, StudyFile};
use crate::plan::study::{Axis, GraphKind};
use crate::plan::{Case, Request};
use crate::report::scale::Scale;
use crate::stats::{Metric, RateMetric};
use crate::transport::Traffic;

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
            let mut cases = plan.cases.iter().flat_map(|case| case.pattern.shown(case));
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
        return Some(format!(
            "{kind} shows the distribution of a latency, and '{metric}' is not a latency"
        ));
    }
    let is_latency = Metric::from_name(&graph.metric).is_some();
    let is_each = graph.kind.axes().len() < 2 && !is_distribution;
    let shows = [graph.above, !graph.over.is_empty(), !graph.less.is_empty()];
    let shows = shows.into_iter().filter(|is_shown| *is_shown).count();
    if shows > 0 && !(is_each && graph.also.is_empty() && is_latency) {
        return Some(
            "above, over and less are for one latency, in bars or against something".into(),
        );
    }
    if shows > 1 {
        return Some("above, over and less show different things: write one graph for each".into());
    }
    let unit = |metric: &str| Scale::of(metric).unit();
    let other = graph.also.iter().find(|also| unit(also) != unit(&graph.metric))?;
    Some(format!(
        "'{other}' is in {} and '{}' in {}: the metrics of a graph must have the same unit",
        unit(other),
        graph.metric,
        unit(&graph.metric)
    ))
}

/// What a case of a series lacks for a graph.
fn lacks(asked: &GraphAsked, series: &str, case: &Case) -> Option<String> {
    let measured = registry::analysis(case.pattern.name()).map(|own| own.measured(case));
    let measured = measured.unwrap_or_default();
    if let Some(metric) = asked.graph.metrics().find(|metric| !measured.contains(metric)) {
        let use_one = measured.join(", ");
        return Some(format!("'{series}' does not measure '{metric}': use {use_one}"));
    }
    let is_both_ways = case.profile().traffic == Traffic::Both;
    let is_halved = ["bandwidth", "message_rate"].contains(&asked.graph.metric.as_str());
    if asked.graph.each_way && !(is_both_ways && is_halved) {
        return Some(format!(
            "each-way is for bandwidth or message_rate with direction bi: not for '{series}'"
        ));
    }
    let has = |axis: &Axis| match axis {
        Axis::Answered => measured.contains(&RateMetric::MessageRate.name()),
        _ => case.on_axis(*axis).is_some(),
    };
    let kind = asked.graph.kind;
    let axis = kind.axes().iter().find(|axis| !has(axis))?;
    let ([what, of_what], kind) = (axis.words(), kind.name());
    Some(format!("{kind} needs a {what}, which '{series}' does not have; it is for {of_what}"))
}
