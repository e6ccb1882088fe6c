//! What messages one way show: both ends' rows are joined by their numbers.

use super::{Oneway, Spec};
use crate::prelude::*;
use wiregauge_sample::join::sample;

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

    fn more_metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Post, Metric::Complete]
    }

    fn rates(&self, case: &Case) -> Vec<RateMetric> {
        match (case.schedule.is_open(), case.spec::<Spec>().outstanding) {
            (true, _) => SCHEDULED.to_vec(),
            (false, Some(_)) => vec![RateMetric::MessageRate],
            (false, None) => Vec::new(),
        }
    }

    fn method_notes(&self, case: &Case) -> BTreeMap<String, String> {
        let spec = case.spec::<Spec>();
        let note = |most: u32| {
            let bursts = spec.burst.map_or("one burst".to_string(), |n| format!("bursts of {n}"));
            ("sending".to_string(), format!("{bursts}, at most {most} posted and not completed"))
        };
        spec.outstanding.map(note).into_iter().collect()
    }

    fn arrivals(&self, case: &Case) -> Arrivals {
        if case.profile().is_one_sided { Arrivals::AtClient } else { Arrivals::AtServer }
    }
}

/// The rates of what a schedule sends.
pub(crate) const SCHEDULED: [RateMetric; 3] =
    [RateMetric::OfferedRate, RateMetric::AchievedRate, RateMetric::MessageRate];

/// The samples of messages that a client sends and a server receives.
pub(crate) fn samples(size: Bytes, [client, server]: [&[Row]; 2], times: Times<'_>) -> Vec<Sample> {
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
        if times.are_common() {
            joined.receive_ns = times.server.stamp(there.receive);
        }
        // The client writes a first time before it submits. One that is not later than the submit
        // stamp is not the last at which the message was still here.
        if joined.send_ns <= joined.submit_ns {
            joined.send_ns = f64::NAN;
        }
        joined
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_analysis::pattern::RoundSeen;
    use wiregauge_clock::Timebase;
    use wiregauge_figures::record::schema::Round;

    #[test]
    fn samples_have_the_stamps_of_both_ends_and_what_is_missing_is_lost() {
        let row = |stamps: [u64; 3], flags: Flags| {
            let [intended, submit, receive] = stamps.map(Ticks);
            Row { intended, submit, receive, flags, ..Row::default() }
        };
        let client = [
            row([10, 11, 0], Flags::WARMUP),
            row([20, 21, 0], Flags::default()),
            row([30, 0, 0], Flags::MISSED),
            row([40, 41, 0], Flags::default()),
        ];
        // The server's own warm-up counts arrivals and says nothing of these messages.
        let server = [
            row([0, 0, 15], Flags::default()),
            row([0, 0, 29], Flags::WARMUP.with(Flags::REORDERED)),
        ];
        let base = Timebase::nanoseconds(Ticks(0));
        let found = samples(Bytes(8), [&client, &server], Times::of_one_host(&base));
        let shown: Vec<_> =
            found.iter().map(|one| (one.submit_ns, one.receive_ns, one.flags)).collect();
        assert_eq!(shown[..2], [(11.0, 15.0, Flags::WARMUP), (21.0, 29.0, Flags::REORDERED)]);
        assert!(shown[2].1.is_nan() && shown[2].2 == Flags::MISSED, "{shown:?}");
        assert!(shown[3].1.is_nan() && shown[3].2 == Flags::LOST, "{shown:?}");
        assert_eq!(found.iter().map(|one| one.sequence).collect::<Vec<_>>(), [0, 1, 2, 3]);
        // By clocks that nobody has compared no message has taken any time.
        let apart = Times { apart: true, ..Times::of_one_host(&base) };
        let found = samples(Bytes(8), [&client, &server], apart);
        assert!(found.iter().all(|one| one.receive_ns.is_nan()), "{found:?}");
        assert!(found[..2].iter().all(|one| !one.flags.has(Flags::LOST)), "they have arrived");
        assert_eq!((found[0].intended_ns, found[0].submit_ns), (10.0, 11.0));
        let compared = Times { compared: true, ..apart };
        assert_eq!(samples(Bytes(8), [&client, &server], compared)[0].receive_ns, 15.0);
    }

    #[test]
    fn a_message_that_had_no_time_written_since_its_submit_has_none() {
        let client = [Row { submit: Ticks(20), ..Row::default() }; 3];
        let server = [19, 20, 24].map(|sent| Row {
            submit: Ticks(sent),
            receive: Ticks(29),
            ..Row::default()
        });
        let base = Timebase::nanoseconds(Ticks(0));
        let found = samples(Bytes(16), [&client, &server], Times::of_one_host(&base));
        let transfers: Vec<_> = found.iter().map(|one| Metric::Transfer.of_sample(one)).collect();
        assert_eq!(transfers, [None, None, Some(5.0)]);
    }

    #[test]
    fn rates_are_without_the_warm_up() {
        let at = |(number, (ns, flags)): (usize, &(f64, Flags))| {
            Sample::new(number as u64, 8, [f64::NAN, *ns, f64::NAN, ns + 5e8, f64::NAN], *flags)
        };
        let stamps = [(0.0, Flags::WARMUP), (5e9, Flags::default()), (7e9, Flags::default())];
        let samples = RoundSamples {
            samples: stamps.iter().enumerate().map(at).collect(),
            ..RoundSamples::default()
        };
        let case = crate::oneway::request(crate::oneway::Spec::default());
        let case = case.plan().unwrap().cases.remove(0);
        let seen = RoundSeen {
            case: &case,
            samples: &samples,
            round: &Round::default(),
            client: &[],
            server: &[],
            server_time: &Timebase::nanoseconds(Ticks(0)),
        };
        let work = Oneway.work(&seen);
        let truth = Delivered { work: 1.0, seconds: 2.0 };
        assert_eq!((work.delivered, work.posted), (truth, Some(truth)));
    }

    #[test]
    fn a_schedule_has_rates_and_every_message_the_times_of_its_post() {
        let case = crate::oneway::request(Default::default()).plan().unwrap().cases;
        let case = &case[0];
        let rate = MessageRate(1.0);
        let open = Case { schedule: Schedule::Periodic { rate }, ..case.clone() };
        let closed = Case { schedule: Schedule::ClosedLoop, ..case.clone() };
        assert_eq!(Oneway.more_metrics(case), [Metric::Post, Metric::Complete]);
        assert_eq!((Oneway.rates(&open), Oneway.rates(&closed)), (SCHEDULED.to_vec(), vec![]));
        let window = closed.with_spec(Spec { outstanding: Some(8), ..Spec::default() });
        assert_eq!(Oneway.rates(&window), [RateMetric::MessageRate]);
    }
}
