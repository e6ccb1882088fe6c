//! What a bandwidth round shows: bytes and messages that arrived, by the receiver's clock.

use super::{Bandwidth, Direction, Spec, window};
use crate::pattern::prelude::*;
use crate::run::rates::figure;
use crate::sample::join::{End, sample};

impl PatternAnalysis for Bandwidth {
    fn samples(&self, case: &Case, _: usize, rows: [&[Row]; 2], times: Times<'_>) -> Vec<Sample> {
        let [client, server] = rows;
        let back = || marks(case, client, &[], Flags::REVERSE, times.client);
        let there = |sent| marks(case, server, sent, Flags::default(), times.server);
        match case.spec::<Spec>().direction {
            Direction::Bi => there(&[]).into_iter().chain(back()).collect(),
            Direction::Uni if case.is_one_sided() => {
                marks(case, client, client, Flags::default(), times.client)
            }
            Direction::Uni if times.apart => there(&[]),
            Direction::Uni => there(client),
        }
    }

    fn metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Complete]
    }

    fn rates(&self, _: &Case) -> Vec<RateMetric> {
        vec![RateMetric::Bandwidth, RateMetric::MessageRate]
    }

    fn arrivals(&self, case: &Case) -> Arrivals {
        match case.spec::<Spec>().direction {
            Direction::Bi => Arrivals::AtBoth,
            Direction::Uni if case.is_one_sided() => Arrivals::AtClient,
            Direction::Uni => Arrivals::AtServer,
        }
    }

    fn is_rate(&self) -> bool {
        true
    }

    fn complete_thread_counts(&self, case: &Case, _: &[Sample], counts: &mut Counts) {
        counts.warmup = case.warmup.min(counts.sent);
    }

    fn work(&self, seen: &RoundSeen<'_>) -> Work {
        Work { posted: None, delivered: delivered(seen) }
    }

    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        let (work, size) = (&run.work.delivered, run.case.size.0 as f64);
        vec![
            figure(RateMetric::Bandwidth, "B/s", work, size),
            figure(RateMetric::MessageRate, "msg/s", work, 1.0),
        ]
    }
}

/// One sample for every `stride` messages that arrived: it has the stamps of the last.
fn marks(case: &Case, rows: &[Row], sent: &[Row], flag: Flags, time: End<'_>) -> Vec<Sample> {
    let stride = case.stride();
    let of = |(number, row): (usize, &Row)| {
        let submit = sent.get(number).map_or(Ticks(0), |row| row.submit);
        let both = Row { submit, ..*row };
        let last = (number as u64 + 1) * stride - 1;
        sample(case.size, last, &both, [Ticks(0), row.receive], row.flags.with(flag), time)
    };
    rows.iter().enumerate().map(of).collect()
}

/// What was delivered between the first stamp that counts and the last, in the time that all
/// threads and both ways share. The clocks of two hosts are not compared, so between hosts each way
/// has a time of its own, and the rates are added.
fn delivered(seen: &RoundSeen<'_>) -> Delivered {
    let mut ways: [BTreeMap<u32, Vec<f64>>; 2] = Default::default();
    for sample in &seen.samples.samples {
        let way = usize::from(sample.flags.has(Flags::REVERSE));
        let flow = ways[way].entry(sample.thread).or_default();
        // Of the warm-up the last stamp counts: it begins what comes after.
        if sample.flags.has(Flags::WARMUP) {
            flow.clear();
        }
        flow.push(sample.receive_ns);
    }
    let stride = seen.case.stride() as f64;
    let [there, back] = ways.map(|flows| flows.into_values().collect::<Vec<_>>());
    if back.is_empty() || !seen.case.topology.is_between_hosts() {
        return window::delivered(&[there, back].concat(), stride);
    }
    let [there, back] = [there, back].map(|flows| window::delivered(&flows, stride));
    let seconds = there.seconds.min(back.seconds);
    let rate = |way: Delivered| if seconds > 0.0 { way.work / way.seconds } else { 0.0 };
    Delivered { work: (rate(there) + rate(back)) * seconds, seconds }
}
