//! What a bandwidth round shows: bytes and messages that arrived, by the receiver's clock.

use super::{Bandwidth, Direction, Spec, window};
use crate::prelude::*;
use wiregauge_analysis::pattern::Completion;
use wiregauge_analysis::rates::figure;
use wiregauge_base::warning::Warning;
use wiregauge_sample::join::{End, sample};

impl PatternAnalysis for Bandwidth {
    fn samples(&self, case: &Case, _: usize, rows: [&[Row]; 2], times: Times<'_>) -> Vec<Sample> {
        let [client, server] = rows;
        let back = || marks(case, client, &[], Flags::REVERSE, times.client);
        let there = |sent| marks(case, server, sent, Flags::default(), times.server);
        match case.spec::<Spec>().direction {
            Direction::Bi => there(&[]).into_iter().chain(back()).collect(),
            Direction::Uni if case.profile().is_one_sided => {
                marks(case, client, client, Flags::default(), times.client)
            }
            Direction::Uni if times.apart => there(&[]),
            Direction::Uni => there(client),
        }
    }

    fn metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Complete]
    }

    fn rates(&self, case: &Case) -> Vec<RateMetric> {
        let mut all = vec![RateMetric::Bandwidth, RateMetric::MessageRate];
        if case.spec::<Spec>().direction == Direction::Bi {
            all.extend([RateMetric::BandwidthThere, RateMetric::BandwidthBack]);
        }
        all
    }

    fn arrivals(&self, case: &Case) -> Arrivals {
        match case.spec::<Spec>().direction {
            Direction::Bi => Arrivals::AtBoth,
            Direction::Uni if case.profile().is_one_sided => Arrivals::AtClient,
            Direction::Uni => Arrivals::AtServer,
        }
    }

    fn is_rate(&self) -> bool {
        true
    }

    fn complete_thread_counts(&self, case: &Case, samples: &[Sample], counts: &mut Counts) {
        let warm = samples.iter().filter(|sample| sample.flags.has(Flags::WARMUP)).count() as u64;
        counts.warmup = (warm * case.profile().stride).min(counts.sent);
    }

    fn work(&self, seen: &RoundSeen<'_>) -> Work {
        let case = seen.case;
        let direction = case.spec::<Spec>().direction;
        let one_clock = !case.topology.is_between_hosts();
        let flows = Flows::of(&seen.samples.samples);
        Work {
            offered: None,
            posted: None,
            delivered: flows.delivered(case.profile().stride as f64, direction, one_clock),
        }
    }

    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        let (work, size) = (&run.work.delivered, run.case.size.0 as f64);
        let mut all = vec![
            figure(RateMetric::Bandwidth, "B/s", work, size),
            figure(RateMetric::MessageRate, "msg/s", work, 1.0),
        ];
        if let Some(ways) = run.collected::<EachWay>().filter(|ways| !ways.there.is_empty()) {
            all.push(figure(RateMetric::BandwidthThere, "B/s", &ways.there, size));
            all.push(figure(RateMetric::BandwidthBack, "B/s", &ways.back, size));
        }
        all
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::<EachWay>::default()
    }

    fn complete(&self, _: &Plan, runs: &[RunSoFar], number: usize) -> Completion {
        let rates = runs.get(number).map(|run| self.rate_figures(run)).unwrap_or_default();
        let warnings = differing_ways(&rates).into_iter().collect();
        Completion { warnings, ..Completion::default() }
    }
}

/// The deliveries of each way by itself, where both ends send: of each round, in its own window.
#[derive(Default)]
struct EachWay {
    there: Vec<Delivered>,
    back: Vec<Delivered>,
}

impl Collector for EachWay {
    fn add_round(&mut self, seen: &RoundSeen<'_>) {
        if seen.case.spec::<Spec>().direction == Direction::Bi {
            let stride = seen.case.profile().stride as f64;
            let [there, back] = Flows::of(&seen.samples.samples).each_way(stride);
            self.there.push(there);
            self.back.push(back);
        }
    }
}

/// Returns a warning if the ways differ beyond their intervals: their sum hides that.
fn differing_ways(rates: &[RateFigure]) -> Option<Warning> {
    let there = &rates.iter().find(|one| one.metric == RateMetric::BandwidthThere)?.rate;
    let back = &rates.iter().find(|one| one.metric == RateMetric::BandwidthBack)?.rate;
    let of_there = there.interval?;
    let of_back = back.interval?;
    let is_apart = of_there.high.0 < of_back.low.0 || of_back.high.0 < of_there.low.0;
    is_apart.then_some(Warning::WaysDiffer { there: there.value, back: back.value })
}

/// One sample for every `stride` messages that arrived: it has the stamps of the last.
fn marks(case: &Case, rows: &[Row], sent: &[Row], flag: Flags, time: End<'_>) -> Vec<Sample> {
    let stride = case.profile().stride;
    let of = |(number, row): (usize, &Row)| {
        let submit = sent.get(number).map_or(Ticks(0), |row| row.submit);
        let both = Row { submit, ..*row };
        let last = (number as u64 + 1) * stride - 1;
        sample(case.size, last, &both, [Ticks(0), row.receive], row.flags.with(flag), time)
    };
    rows.iter().enumerate().map(of).collect()
}

/// The receive stamps of each flow, in ns: there, and back.
#[derive(Default)]
struct Flows([BTreeMap<u32, Vec<f64>>; 2]);

impl Flows {
    fn of(samples: &[Sample]) -> Flows {
        let mut flows = Flows::default();
        for sample in samples {
            let way = usize::from(sample.flags.has(Flags::REVERSE));
            let flow = flows.0[way].entry(sample.thread).or_default();
            // Of the warm-up the last stamp counts: it begins what comes after.
            if sample.flags.has(Flags::WARMUP) {
                flow.clear();
            }
            flow.push(sample.receive_ns);
        }
        flows
    }

    /// Returns what each way delivered, in the time that its own threads share.
    fn each_way(self, stride: f64) -> [Delivered; 2] {
        self.0.map(|flows| window::delivered(&flows.into_values().collect::<Vec<_>>(), stride))
    }

    /// What was delivered in the time that all threads and both ways share; nothing in no time
    /// where a way delivered nothing. The clocks of two hosts are not compared, so without
    /// `one_clock` each way has a time of its own, and the rates are added.
    fn delivered(self, stride: f64, direction: Direction, one_clock: bool) -> Delivered {
        let ways = self.0.map(|flows| flows.into_values().collect::<Vec<_>>());
        let [there, back] = match direction {
            Direction::Uni => return window::delivered(&ways[0], stride),
            Direction::Bi => ways,
        };
        if one_clock && !there.is_empty() && !back.is_empty() {
            return window::delivered(&[there, back].concat(), stride);
        }
        let [there, back] = [there, back].map(|flows| window::delivered(&flows, stride));
        let seconds = there.seconds.min(back.seconds);
        let rate = |way: Delivered| if seconds > 0.0 { way.work / way.seconds } else { 0.0 };
        Delivered { work: (rate(there) + rate(back)) * seconds, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals of one thread, 1000 a second, from a time for a second.
    fn arrivals(from_ns: f64, flags: Flags) -> impl Iterator<Item = Sample> {
        (0..=1000_u32).map(move |number| {
            let at = from_ns + f64::from(number) * 1e6;
            Sample::new(u64::from(number), 64, [0.0, 0.0, 0.0, at, 0.0], flags)
        })
    }

    fn both_ways(back_from_ns: f64, one_clock: bool) -> Delivered {
        let back = arrivals(back_from_ns, Flags::REVERSE);
        let all: Vec<Sample> = arrivals(0.0, Flags::default()).chain(back).collect();
        Flows::of(&all).delivered(1.0, Direction::Bi, one_clock)
    }

    #[test]
    fn both_ways_count_in_the_time_that_they_share() {
        assert_eq!(both_ways(0.5e9, true), Delivered { work: 1000.0, seconds: 0.5 });
        assert_eq!(both_ways(2e9, true).seconds, 0.0);
    }

    #[test]
    fn of_two_clocks_the_rates_are_added_whatever_their_epochs() {
        assert_eq!(both_ways(2e9, false), Delivered { work: 2000.0, seconds: 1.0 });
    }

    #[test]
    fn of_two_clocks_the_shorter_time_counts_with_the_rates_of_both() {
        // 1000 a second for a second, and for half of one.
        let half = arrivals(7e9, Flags::REVERSE).take(501);
        let all: Vec<Sample> = arrivals(0.0, Flags::default()).chain(half).collect();
        let found = Flows::of(&all).delivered(1.0, Direction::Bi, false);
        assert_eq!(found, Delivered { work: 1000.0, seconds: 0.5 });
    }

    #[test]
    fn a_sample_stands_for_all_messages_since_the_one_before() {
        use wiregauge_clock::Timebase;
        let case = |direction| {
            let mut request = crate::bandwidth::request(Spec { direction, ..Spec::default() });
            request.sizes = vec![Bytes(4096)];
            request.plan().unwrap().cases.remove(0)
        };
        let row = |submit, receive, flags| Row {
            submit: Ticks(submit),
            receive: Ticks(receive),
            flags,
            ..Row::default()
        };
        let (warm, kept) = (Flags::WARMUP, Flags::default());
        let client = [row(1, 50, warm), row(2, 60, kept), row(3, 70, kept)];
        let server = [row(0, 10, warm), row(0, 20, kept)];
        let time = Timebase::nanoseconds(Ticks(0));
        let times = Times::of_one_host(&time);
        let samples = |case: &Case, times| Bandwidth.samples(case, 0, [&client, &server], times);
        let told = |samples: &[Sample]| {
            let of = |s: &Sample| (s.sequence, s.submit_ns, s.receive_ns, s.flags);
            samples.iter().map(of).collect::<Vec<_>>()
        };
        // 16 KiB are four messages of 4 KiB: the stamps are those of the fourth.
        let uni = case(Direction::Uni);
        assert_eq!(uni.profile().stride, 4);
        let own = samples(&uni, times);
        assert_eq!(told(&own), [(3, 1.0, 10.0, warm), (7, 2.0, 20.0, kept)]);
        let apart = samples(&uni, Times { apart: true, ..times });
        assert!(apart.iter().all(|sample| sample.submit_ns.is_nan()), "by another clock");
        let both = samples(&case(Direction::Bi), times);
        let back = Flags::REVERSE;
        let found: Vec<_> = both.iter().map(|s| (s.sequence, s.receive_ns, s.flags)).collect();
        let there = [(3, 10.0, warm), (7, 20.0, kept)];
        let reverse = [(3, 50.0, warm.with(back)), (7, 60.0, back), (11, 70.0, back)];
        assert_eq!(found, [&there[..], &reverse[..]].concat());
        let warmup = |sent| {
            let mut counts = Counts { sent, ..Counts::default() };
            Bandwidth.complete_thread_counts(&uni, &own, &mut counts);
            counts.warmup
        };
        assert_eq!((warmup(100), warmup(3)), (4, 3), "not more than were sent");
    }

    #[test]
    fn a_way_that_delivers_nothing_leaves_no_rate_of_both() {
        let alone: Vec<Sample> = arrivals(0.0, Flags::default()).collect();
        for one_clock in [true, false] {
            let both = Flows::of(&alone).delivered(1.0, Direction::Bi, one_clock);
            assert_eq!(both, Delivered { work: 0.0, seconds: 0.0 });
        }
        let uni = Flows::of(&alone).delivered(1.0, Direction::Uni, true);
        assert_eq!(uni, Delivered { work: 1000.0, seconds: 1.0 });
    }

    #[test]
    fn the_rates_are_bytes_and_messages_in_the_time_of_all_rounds() {
        let mut request = crate::bandwidth::request(Spec::default());
        request.sizes = vec![Bytes(4096)];
        let case = request.plan().unwrap().cases.remove(0);
        let mut run = RunSoFar::new(0, &case, &Bandwidth, &[], 1);
        run.work.delivered = vec![Delivered { work: 10.0, seconds: 2.0 }];
        let found = Bandwidth.rate_figures(&run);
        let found: Vec<_> = found.iter().map(|one| (one.metric, one.rate.value)).collect();
        assert_eq!(found, [(RateMetric::Bandwidth, 20_480.0), (RateMetric::MessageRate, 5.0)]);
        assert_eq!(Bandwidth.metrics(&case), [Metric::Complete]);
    }
}
