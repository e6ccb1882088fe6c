//! What messages one way show: both ends' rows are joined by their numbers.

use super::{Oneway, Spec};
use crate::clock::Ticks;
use crate::pattern::latency;
use crate::plan::Case;
use crate::record::schema::RateFigure;
use crate::report::view::PatternView;
use crate::run::analysis::{Arrivals, Collector, PatternAnalysis, RoundSeen, RunSoFar};
use crate::run::rates::Rates;
use crate::sample::arena::Row;
use crate::sample::join::{Times, sample};
use crate::sample::{Flags, Sample};
use crate::stats::{Metric, RateMetric};
use crate::units::Bytes;
use std::any::Any;
use std::collections::BTreeMap;

/// Its distributions are shown as those of any pattern.
impl PatternView for Oneway {}

impl PatternAnalysis for Oneway {
    fn samples(&self, case: &Case, _: usize, rows: [&[Row]; 2], times: Times<'_>) -> Vec<Sample> {
        samples(case.size, rows, times)
    }

    fn metrics(&self, case: &Case) -> Vec<Metric> {
        match case.schedule.is_open() {
            false => vec![Metric::OneWay, Metric::Transfer, Metric::Complete],
            true => vec![Metric::OneWay, Metric::Response, Metric::Service, Metric::Lateness],
        }
    }

    fn measured(&self, case: &Case) -> Vec<&'static str> {
        let mut metrics = self.metrics(case);
        let more = [Metric::Post, Metric::Complete];
        metrics.extend(more.into_iter().filter(|one| !metrics.contains(one)).collect::<Vec<_>>());
        let rates = if case.schedule.is_open() { &SCHEDULED[..] } else { &[] };
        let names = metrics.into_iter().map(Metric::name);
        names.chain(rates.iter().map(|rate| rate.name())).collect()
    }

    fn arrivals(&self, case: &Case) -> Arrivals {
        if case.is_one_sided() { Arrivals::AtClient } else { Arrivals::AtServer }
    }

    fn is_one_way(&self) -> bool {
        true
    }

    fn needs_a_row_for_each_message(&self) -> bool {
        true
    }

    fn collector(&self, case: &Case) -> Box<dyn Collector> {
        match case.schedule.is_open() {
            true => Box::<Scheduled>::default(),
            false => Box::new(latency::Nothing),
        }
    }

    fn method_notes(&self, case: &Case) -> BTreeMap<String, String> {
        latency::batching(case.spec::<Spec>().burst)
    }
}

/// The rates of what a schedule sends.
pub(in crate::pattern) const SCHEDULED: [RateMetric; 3] =
    [RateMetric::OfferedRate, RateMetric::AchievedRate, RateMetric::MessageRate];

/// Gathers what was offered, sent and delivered.
#[derive(Default)]
struct Scheduled(Rates);

impl Collector for Scheduled {
    fn take(&mut self, seen: &RoundSeen<'_>) {
        self.0.take(seen);
    }

    fn rates(&self, run: &RunSoFar) -> Vec<RateFigure> {
        self.0.figures(run.case().schedule)
    }

    fn work(&self) -> Option<&Rates> {
        Some(&self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The samples of messages that a client sends and a server receives.
pub(in crate::pattern) fn samples(
    size: Bytes,
    [client, server]: [&[Row]; 2],
    times: Times<'_>,
) -> Vec<Sample> {
    let sent = client.iter().enumerate();
    let joined = sent.map(|(sequence, row)| {
        let there = server.get(sequence).copied().unwrap_or_default();
        // Whether the answer was lost says nothing of the way there.
        let own = Flags(row.flags.0 & Flags::WARMUP.with(Flags::MISSED).0);
        let arrived = Flags(there.flags.0 & !Flags::WARMUP.0);
        let is_lost = there.receive.0 == 0 && !own.has(Flags::MISSED);
        let lost = if is_lost { Flags::LOST } else { Flags::default() };
        let flags = own.with(arrived).with(lost);
        // Of a message that has arrived, the server's row has the time that was in it.
        let stamps = [there.submit, Ticks(0)];
        let mut joined = sample(size, sequence as u64, row, stamps, flags, times.client);
        joined.receive_ns = times.server.stamp(there.receive);
        joined
    });
    joined.collect()
}
