//! Messages for which there was no row: their latencies were counted in histograms, in ticks.

use crate::clock::Timebase;
use crate::sample::histogram::LiveHistogram;
use crate::sample::recorder::Beyond;
use crate::stats::Metric;
use std::collections::BTreeMap;

/// The histograms by the metric that they were counted as.
pub(super) fn histograms(beyond: &Beyond, base: &Timebase) -> BTreeMap<Metric, LiveHistogram> {
    let all = [
        (Metric::Service, &beyond.service),
        (Metric::Response, &beyond.response),
        (Metric::Lateness, &beyond.lateness),
    ];
    let live = all.into_iter().filter_map(|(metric, sparse)| {
        // The agent counted in ticks; what a tick is is known here.
        let mut sparse = sparse.clone()?;
        sparse.unit_ns = base.ns_per_tick;
        Some((metric, LiveHistogram::from_sparse(&sparse).ok()?))
    });
    live.collect()
}

/// The metric under which a metric's messages without a row were counted.
pub(super) fn counted_as(metric: Metric) -> Metric {
    match metric {
        Metric::Response | Metric::Lateness => metric,
        _ => Metric::Service,
    }
}
