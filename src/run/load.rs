//! What a round of `load` cost: CPU time a message, and what the server's pools were waited for.

use super::figures::RunSoFar;
use super::search;
use crate::clock::{TickSpan, Timebase};
use crate::control::protocol::Outcome;
use crate::plan::{Case, Load, Pattern, Plan};
use crate::record::schema::RateFigure;
use crate::run::round::Part;
use crate::sample::histogram::LiveHistogram;
use crate::sample::recorder::Beyond;
use crate::stats::knee::Point;
use crate::stats::rate::{Delivered, rate};
use crate::stats::{Metric, RateMetric};
use crate::units::MessageRate;
use std::collections::BTreeMap;

/// What the first thread of an end has brought home.
fn first(parts: &[Part]) -> Option<&Outcome> {
    parts.first()?.outcome.as_ref()
}

/// Requests for which there was no row, by size, under the metric that they were counted as.
pub(super) fn beyond(beyond: &Beyond, base: &Timebase) -> BTreeMap<Metric, LiveHistogram> {
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

/// The cases that a search wants next, over each transport, way to wait and size, each with the
/// position of the run from which it follows.
pub(super) fn more(plan: &Plan, runs: &[RunSoFar]) -> Vec<(usize, Case)> {
    let shares = runs.iter().enumerate().flat_map(|(number, run)| {
        let carried = Some(run.capacity()).filter(|rate| rate.is_finite() && *rate > 0.0);
        let shares = |rate| run.case.shares(MessageRate(rate));
        let cases = carried.map(shares).unwrap_or_default();
        let is_new = |case: &Case| runs.iter().all(|run| run.case != *case);
        cases.into_iter().filter(is_new).map(move |case| (number, case)).collect::<Vec<_>>()
    });
    let mut cases: Vec<(usize, Case)> = shares.collect();
    // A study has no search: its closed loops are points of their own.
    let searched = runs.iter().enumerate().filter(|(_, run)| run.case.rpc.is_none());
    let searched = searched.filter(|(_, run)| !run.case.schedule.is_open());
    for (number, first) in searched.filter(|_| plan.study.is_none()) {
        let case = &first.case;
        let is_of = |run: &&RunSoFar| {
            let other = &run.case;
            !other.load.probe
                && (other.transport, other.wait, other.size, other.ends)
                    == (case.transport, case.wait, case.size, case.ends)
        };
        let points: Vec<Point> = runs
            .iter()
            .filter(is_of)
            .filter_map(|run| run.point(plan.search.slo.map_or(0.99, |slo| slo.quantile)))
            .collect();
        let rates = match points.is_empty() {
            true => search::grid(first.capacity()),
            false => search::next(&points, plan.search.slo),
        };
        let point = |rate| Case {
            schedule: plan.search.arrivals.at(MessageRate(rate)),
            load: Load { clients: 0, ..case.load },
            ..case.clone()
        };
        cases.extend(rates.into_iter().map(|rate| (number, point(rate))));
    }
    cases
}

/// The metric under which a metric's requests without a row were counted.
pub(super) fn counted_as(metric: Metric) -> Metric {
    match metric {
        Metric::Response | Metric::Lateness => metric,
        _ => Metric::Service,
    }
}

/// Costs of each round, as work over what it was done for.
#[derive(Default)]
pub(super) struct Costs(BTreeMap<RateMetric, Vec<Delivered>>);

impl Costs {
    /// Takes one round.
    pub(super) fn take(
        &mut self,
        case: &Case,
        client: &[Part],
        server: &[Part],
        answered: u64,
        of_server: &Timebase,
    ) {
        if case.pattern != Pattern::Load || answered == 0 {
            return;
        }
        let ends = [(RateMetric::CpuClient, client), (RateMetric::CpuServer, server)];
        for (metric, parts) in ends {
            let outcomes = parts.iter().filter_map(|part| part.outcome.as_ref());
            self.add(metric, outcomes.map(|outcome| outcome.usage.cpu_ns).sum(), answered);
        }
        let pools = first(server).filter(|_| case.load.buffers.is_some());
        let Some(pool) = pools.map(|outcome| outcome.pool) else { return };
        let ns = |ticks: i64| of_server.span(TickSpan(ticks));
        self.add(RateMetric::BufferTime, ns(pool.buffer_ticks), pool.reads);
        self.add(RateMetric::EmptyPollTime, ns(pool.empty_ticks), pool.reads);
        self.add(RateMetric::FullPollTime, ns(pool.full_ticks), pool.reads);
        self.add(RateMetric::EmptyPolls, pool.empty_polls as f64, pool.reads);
        self.add(RateMetric::FullPolls, pool.full_polls as f64, pool.reads);
        self.add(RateMetric::CompletionsPerPoll, pool.completions as f64, pool.full_polls);
        self.add(RateMetric::RequestsPerPoll, pool.reads as f64, pool.request_polls);
        let waited = pool.buffer_empty_ticks + pool.buffer_full_ticks;
        self.add(RateMetric::BufferPollTime, ns(waited), pool.reads);
        self.add(RateMetric::BufferEmptyPollTime, ns(pool.buffer_empty_ticks), pool.reads);
        self.add(RateMetric::BufferFullPollTime, ns(pool.buffer_full_ticks), pool.reads);
    }

    fn add(&mut self, metric: RateMetric, work: f64, of: u64) {
        if of > 0 {
            self.0.entry(metric).or_default().push(Delivered { work, seconds: of as f64 });
        }
    }

    /// The figures over all rounds: all work over all that it was done for.
    pub(super) fn figures(&self) -> impl Iterator<Item = RateFigure> {
        self.0.iter().map(|(metric, rounds)| RateFigure {
            metric: *metric,
            unit: unit(*metric).into(),
            rate: rate(rounds),
        })
    }
}

fn unit(metric: RateMetric) -> &'static str {
    match metric {
        RateMetric::CpuClient | RateMetric::CpuServer => "ns/msg",
        RateMetric::CompletionsPerPoll | RateMetric::RequestsPerPoll => "1/poll",
        RateMetric::EmptyPolls | RateMetric::FullPolls => "1/read",
        _ => "ns/read",
    }
}
