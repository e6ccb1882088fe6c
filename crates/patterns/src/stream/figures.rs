//! What a stream shows: times of samples, steps that were missed, and its file.

use super::{Stream, kept};
use crate::oneway::{self, SCHEDULED};
use crate::prelude::*;
use wiregauge_analysis::rates::figure;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::Round;

impl PatternAnalysis for Stream {
    fn samples(&self, case: &Case, _: usize, rows: [&[Row]; 2], times: Times<'_>) -> Vec<Sample> {
        oneway::samples(case.size, rows, times)
    }

    fn metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::OneWay, Metric::Response, Metric::Jitter, Metric::Lateness]
    }

    fn rates(&self, _: &Case) -> Vec<RateMetric> {
        SCHEDULED.into_iter().chain([RateMetric::Ceiling, RateMetric::Missed]).collect()
    }

    fn arrivals(&self, _: &Case) -> Arrivals {
        Arrivals::AtServer
    }

    fn complete_thread_counts(&self, _: &Case, samples: &[Sample], counts: &mut Counts) {
        counts.lost_before_first = lost_before_first(samples);
    }

    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        let mut rates = run.work.figures(run.case.schedule);
        let offered = run.case.schedule.rate().map_or(0.0, |rate| rate.0);
        let (ceiling, missed) = ceiling_and_missed(&run.rounds, offered);
        rates.push(figure(RateMetric::Ceiling, "B/s", &ceiling, run.case.size.0 as f64));
        rates.push(figure(RateMetric::Missed, "1/step", &missed, 1.0));
        rates
    }

    fn counter_warnings(&self, counters: &FinalCounters) -> Vec<Warning> {
        let left_out = match counters.get(kept::LEFT_OUT) {
            Some(CounterValue::Events(left_out)) => *left_out,
            _ => 0,
        };
        let short = match counters.get(kept::FAULT) {
            Some(fault) => Some(Warning::FileFailed { left_out, reason: fault.to_string() }),
            None => (left_out > 0).then_some(Warning::FileIncomplete { left_out }),
        };
        let beside = counters.contains_key(kept::BESIDE).then_some(Warning::FileOnReceiverCpu);
        beside.into_iter().chain(short).collect()
    }

    fn method_notes(&self, case: &Case) -> BTreeMap<String, String> {
        let payload = ("payload".to_string(), "samples, not verified".to_string());
        (!case.check).then_some(payload).into_iter().collect()
    }
}

/// Of each round the samples per second that its source could make: the rate, less the share of the
/// steps that were missed; and these, over all steps.
fn ceiling_and_missed(rounds: &[Round], rate: f64) -> (Vec<Delivered>, Vec<Delivered>) {
    let of = |round: &Round| {
        let (made, missed) = (round.counts.sent as f64, round.counts.missed_steps as f64);
        let share = if made > 0.0 { made / (made + missed) } else { 0.0 };
        let ceiling = Delivered { work: share * rate, seconds: 1.0 };
        (ceiling, Delivered { work: missed, seconds: made + missed })
    };
    rounds.iter().map(of).unzip()
}

/// Samples that were lost before any arrived.
fn lost_before_first(samples: &[Sample]) -> u64 {
    let begin = samples.iter().take_while(|sample| sample.receive_ns.is_nan());
    begin.filter(|sample| sample.flags.has(Flags::LOST)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_stats::rate::rate;

    #[test]
    fn the_ceiling_is_what_missed_steps_leave() {
        let round = |sent, missed_steps| Round {
            counts: Counts { sent, missed_steps, ..Counts::default() },
            ..Round::default()
        };
        let rounds = [round(100, 0), round(75, 25), round(0, 0)];
        let (ceiling, missed) = ceiling_and_missed(&rounds, 1000.0);
        let found: Vec<f64> = ceiling.iter().map(|d| d.work).collect();
        assert_eq!(found, [1000.0, 750.0, 0.0]);
        let share = rate(&missed);
        assert_eq!((share.value, share.rounds), (0.125, vec![0.0, 0.25]));
    }

    #[test]
    fn what_is_lost_before_the_first_is_counted_apart() {
        let none = f64::NAN;
        let sample = |receive, flags| Sample::new(0, 8, [0.0, 0.0, none, receive, none], flags);
        let lost = || sample(none, Flags::LOST);
        let missed = sample(none, Flags::MISSED);
        let samples = vec![lost(), missed, lost(), sample(5.0, Flags::default()), lost()];
        assert_eq!(lost_before_first(&samples), 2);
    }

    fn case() -> Case {
        let request = crate::stream::request(Default::default(), &[1]);
        request.plan().unwrap().cases.remove(0)
    }

    #[test]
    fn a_stream_shows_its_rates_its_ceiling_and_the_share_of_missed_steps() {
        let size = Bytes(1000);
        let schedule = Schedule::Periodic { rate: MessageRate(100.0) };
        let mut run = RunSoFar::new(0, &Case { schedule, size, ..case() }, &Stream, &[], 1);
        let counts = Counts { sent: 75, missed_steps: 25, ..Counts::default() };
        run.rounds = vec![Round { counts, ..Round::default() }];
        run.work.offered = vec![Delivered { work: 100.0, seconds: 1.0 }];
        run.work.posted = vec![Delivered { work: 75.0, seconds: 1.0 }];
        run.work.delivered = vec![Delivered { work: 60.0, seconds: 1.0 }];
        let found = Stream.rate_figures(&run);
        let found: Vec<_> = found.iter().map(|one| (one.metric, one.rate.value)).collect();
        let known = [
            (RateMetric::OfferedRate, 100.0),
            (RateMetric::AchievedRate, 75.0),
            (RateMetric::MessageRate, 60.0),
            (RateMetric::Ceiling, 75_000.0),
            (RateMetric::Missed, 0.25),
        ];
        assert_eq!(found, known);
    }

    #[test]
    fn a_thread_counts_what_was_lost_before_the_first() {
        let none = f64::NAN;
        let sample = |receive| Sample::new(0, 8, [0.0, 0.0, none, receive, none], Flags::LOST);
        let mut counts = Counts::default();
        Stream.complete_thread_counts(&case(), &[sample(none), sample(none)], &mut counts);
        assert_eq!(counts, Counts { lost_before_first: 2, ..Counts::default() });
    }

    #[test]
    fn a_file_that_lacks_samples_is_warned_of() {
        let warned = |counters: &[(&str, CounterValue)]| {
            let counters = counters.iter().map(|(name, value)| (name.to_string(), value.clone()));
            Stream.counter_warnings(&counters.collect())
        };
        let left_out = |count| (kept::LEFT_OUT, CounterValue::Events(count));
        let text = |name, text: &str| (name, CounterValue::Text(text.into()));
        assert_eq!((warned(&[]), warned(&[left_out(0)])), (vec![], vec![]));
        assert_eq!(warned(&[left_out(3)]), [Warning::FileIncomplete { left_out: 3 }]);
        let full = [left_out(3), text(kept::FAULT, "full"), text(kept::BESIDE, "true")];
        let failed = Warning::FileFailed { left_out: 3, reason: "full".into() };
        assert_eq!(warned(&full), [Warning::FileOnReceiverCpu, failed]);
    }

    #[test]
    fn samples_that_are_not_verified_are_said_to_be() {
        let notes = |check| Stream.method_notes(&Case { check, ..case() });
        let unverified = ("payload".to_string(), "samples, not verified".to_string());
        assert_eq!((notes(true), notes(false)), (BTreeMap::new(), [unverified].into()));
    }
}
