//! What a round of an exchange shows: what arrived, when it was sent and when it was to be.

use super::Exchange;
use super::execution::warmup;
use super::spec::Spec;
use super::summary::{Gathered, Window, number};
use crate::prelude::*;
use wiregauge_analysis::pattern::Completion;
use wiregauge_analysis::rates::figure;
use wiregauge_analysis::result::RoundResult;
use wiregauge_figures::record::schema::RoundEnd;

impl PatternAnalysis for Exchange {
    /// The samples of what a node received: intended and submit by the sender's clock.
    fn samples(
        &self,
        case: &Case,
        thread: usize,
        [rows, _]: [&[Row]; 2],
        times: Times<'_>,
    ) -> Vec<Sample> {
        let (spec, stride) = (case.spec::<Spec>(), case.profile().stride);
        let nodes = case.topology.ranks.len();
        let mut counts = vec![0u64; nodes];
        let sample = |row: &Row| {
            // What a node reports is not believed.
            let from = row.order.checked_sub(1).filter(|from| (*from as usize) < nodes)?;
            let count = counts.get_mut(from as usize)?;
            let own = number(from, *count);
            let lengths = spec.lengths(case.seed, [from, thread as u32]);
            let messages = *count * stride..(*count + 1) * stride;
            *count += 1;
            let bytes: u64 = messages.map(|one| lengths.of(one) as u64).sum();
            let sender = times.node(from as usize);
            let sent = |ticks| if times.are_common() { sender.stamp(ticks) } else { f64::NAN };
            let (intended, submit) = (sent(row.intended), sent(row.submit));
            let receive = times.node(thread).stamp(row.receive);
            let stamps = [intended, submit, f64::NAN, receive, f64::NAN];
            Some(Sample::new(own, (bytes / stride) as u32, stamps, row.flags))
        };
        rows.iter().filter_map(sample).collect()
    }

    fn metrics(&self, case: &Case) -> Vec<Metric> {
        match case.spec::<Spec>().chaotic {
            true => vec![Metric::OneWay],
            false => vec![Metric::OneWay, Metric::Lateness],
        }
    }

    fn more_metrics(&self, case: &Case) -> Vec<Metric> {
        self.metrics(case)
    }

    fn rates(&self, _: &Case) -> Vec<RateMetric> {
        vec![RateMetric::Bandwidth, RateMetric::LinkBandwidth, RateMetric::MessageRate]
    }

    fn is_rate(&self) -> bool {
        true
    }

    fn complete_thread_counts(&self, case: &Case, samples: &[Sample], counts: &mut Counts) {
        let warm = samples.iter().filter(|sample| sample.flags.has(Flags::WARMUP)).count() as u64;
        counts.warmup = warm * case.profile().stride;
        // A node may send more than it receives: only all together tell what is missing.
        (counts.lost, counts.unfinished) = (0, 0);
    }

    fn complete_counts(&self, case: &Case, finished: &RoundResult, all: &mut Counts) {
        // What a node that was lost has sent is known by the others alone.
        let mut nodes = finished.ranks.iter().flat_map(|rank| &rank.threads);
        if nodes.any(|node| node.outcome.is_none()) {
            all.sent = all.sent.max(all.received).max(all.warmup);
        }
        let missing = all.sent.saturating_sub(all.received);
        match case.transport.loses(&case.settings) {
            true => all.lost = missing,
            false => all.unfinished = missing,
        }
    }

    fn work(&self, seen: &RoundSeen<'_>) -> Work {
        let window = window(seen);
        let inside = seen.samples.samples.iter().filter(|one| window.holds(one.receive_ns));
        let work = inside.count() as f64 * seen.case.profile().stride as f64;
        Work {
            offered: None,
            posted: None,
            delivered: Delivered { work, seconds: window.seconds() },
        }
    }

    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        let gathered = run.collected::<Gathered>();
        let bytes = gathered.map(|all| all.delivered(|one| one.bytes.values().sum()));
        let links = run.case.spec::<Spec>().links(run.case.topology.ranks.len() as u32);
        let delivered = &bytes.unwrap_or_default();
        vec![
            figure(RateMetric::Bandwidth, "B/s", delivered, 1.0),
            figure(RateMetric::LinkBandwidth, "B/s", delivered, 1.0 / f64::from(links)),
            figure(RateMetric::MessageRate, "msg/s", &run.work.delivered, 1.0),
        ]
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::new(Gathered::default())
    }

    fn complete(&self, _: &Plan, runs: &[RunSoFar], number: usize) -> Completion {
        let own = runs.get(number);
        let gathered = own.and_then(|run| Some((run, run.collected::<Gathered>()?)));
        let details = gathered.map(|(run, gathered)| {
            let nodes = run.case.topology.ranks.len() as u32;
            let slots = run.case.spec::<Spec>().slots(nodes, run.case.seed);
            let all = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
            let pairs: Vec<_> = all.filter(|&(from, to)| slots.sends(from, to)).collect();
            gathered.details(nodes, &pairs, run.counts())
        });
        let details = details.and_then(|details| serde_json::to_value(details).ok());
        Completion { details, ..Completion::default() }
    }

    fn method_notes(&self, case: &Case) -> BTreeMap<String, String> {
        let warm = format!("the first {} of a round", warmup(case));
        let rate = "payload that arrived while all nodes sent, over that time".to_string();
        let one_way = "from the submit, by the sender's clock, to the receipt".to_string();
        [("left out".into(), warm), ("bandwidth".into(), rate), ("one_way".into(), one_way)].into()
    }
}

impl Collector for Gathered {
    fn add_round(&mut self, seen: &RoundSeen<'_>) {
        let stride = seen.case.profile().stride as f64;
        let share = |thread: &wiregauge_figures::record::schema::Thread| {
            if thread.length_ns > 0.0 { thread.client.cpu_ns / thread.length_ns } else { 0.0 }
        };
        let cpu = seen.round.threads.iter().map(share).collect();
        Gathered::take(self, &seen.samples.samples, window(seen), stride, cpu);
        let spec = seen.case.spec::<Spec>();
        if !spec.chaotic {
            self.count_late(&seen.samples.samples, spec.slot);
        }
    }
}

/// The time of a round in which all nodes exchange.
fn window(seen: &RoundSeen<'_>) -> Window {
    let (case, round) = (seen.case, seen.round);
    let began = round.threads.iter().filter(|one| one.length_ns > 0.0).map(|one| one.started_ns);
    let last = began.fold(f64::NEG_INFINITY, f64::max);
    let late = round.start.as_ref().and_then(|start| start.client.as_ref());
    let agreed = last - late.map_or(0.0, |begin| begin.late_ns);
    let whole = Window::new(agreed, last, warmup(case), case.bound.time.unwrap_or(Span(0)));
    match round.ended {
        RoundEnd::Fault(_) => whole.until_silence(&seen.samples.samples),
        _ => whole,
    }
}
