//! The window of an open loop: the part of a round in which messages are counted for its rates.

use super::counts::{Arrivals, RoundSeen};
use std::collections::BTreeMap;
use wiregauge_figures::record::schema::RoundEnd;
use wiregauge_plan::{Ended, Schedule};
use wiregauge_sample::Flags;
use wiregauge_stats::rate::Delivered;

/// A part of a round, in ns since the record's epoch: messages that lie in it count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateWindow {
    from_ns: f64,
    to_ns: f64,
    /// True if a message at its start does not count, and one at its end does:
    /// where arrivals are random, a window that begins with one would have one too many.
    excludes_start: bool,
}

impl RateWindow {
    /// Returns the window of a round of an open loop; `None` of a closed loop, and of a round that
    /// has no time between its first message after the warm-up and its end.
    ///
    /// It begins with the first message after the warm-up of the last thread to have one. It ends
    /// where the planned time does, counted from the first message of all; of random arrivals a
    /// mean gap before that, since the first of them is that much behind the start. Where a number
    /// of messages ended the round, or not all have rows, it ends with the last message, of a fixed
    /// schedule a mean gap behind it. Of arrivals in bursts it is cut to whole periods, if it has
    /// one.
    pub fn new(seen: &RoundSeen<'_>) -> Option<RateWindow> {
        let schedule = seen.case.schedule;
        let gap_ns = 1e9 / schedule.rate()?.0;
        let is_random = matches!(schedule, Schedule::Poisson { .. } | Schedule::OnOff { .. });
        let mut firsts: BTreeMap<u32, f64> = BTreeMap::new();
        let mut begin_ns = f64::INFINITY;
        let mut last_ns = f64::NEG_INFINITY;
        for row in seen.samples.samples.iter().filter(|row| !row.intended_ns.is_nan()) {
            begin_ns = begin_ns.min(row.intended_ns);
            last_ns = last_ns.max(row.intended_ns);
            if !row.flags.has(Flags::WARMUP) {
                let first = firsts.entry(row.thread).or_insert(row.intended_ns);
                *first = first.min(row.intended_ns);
            }
        }
        let from_ns = firsts.into_values().reduce(f64::max)?;
        let is_whole = seen.round.samples_in_histogram_only == 0;
        let by_time = seen.round.ended == RoundEnd::Loop(Ended::Time) && is_whole;
        let to_ns = match seen.case.bound.time.filter(|_| by_time) {
            Some(time) => begin_ns + time.0 as f64 - if is_random { gap_ns } else { 0.0 },
            None => last_ns + if is_random { 0.0 } else { gap_ns },
        };
        let length_ns = match schedule {
            Schedule::OnOff { on, off, .. } => {
                let period_ns = on.0 as f64 + off.0 as f64;
                let whole = ((to_ns - from_ns) / period_ns).floor() * period_ns;
                if whole > 0.0 { whole } else { to_ns - from_ns }
            }
            _ => to_ns - from_ns,
        };
        let to_ns = from_ns + length_ns;
        (length_ns > 0.0).then_some(RateWindow { from_ns, to_ns, excludes_start: is_random })
    }

    fn has(&self, ns: f64) -> bool {
        if self.excludes_start {
            self.from_ns < ns && ns <= self.to_ns
        } else {
            self.from_ns <= ns && ns < self.to_ns
        }
    }

    /// Returns what was intended, sent and answered in it. What arrives at the server, by the clock
    /// of that end, counts where it was intended in it.
    pub fn work(&self, seen: &RoundSeen<'_>, arrivals: Arrivals) -> [Delivered; 3] {
        let seconds = (self.to_ns - self.from_ns) / 1e9;
        let is_at_client = arrivals == Arrivals::AtClient;
        let mut counts = [0_u64; 3];
        for row in &seen.samples.samples {
            let is_intended = self.has(row.intended_ns);
            let has_arrived = if is_at_client {
                self.has(row.receive_ns)
            } else {
                is_intended && !row.receive_ns.is_nan()
            };
            let is_in = [is_intended, self.has(row.submit_ns), has_arrived];
            counts.iter_mut().zip(is_in).for_each(|(count, is_in)| *count += u64::from(is_in));
        }
        counts.map(|count| Delivered { work: count as f64, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::{MessageRate, Span};
    use wiregauge_clock::{Ticks, Timebase};
    use wiregauge_figures::record::schema::Round;
    use wiregauge_plan::{Bound, Case};
    use wiregauge_sample::{RoundSamples, Sample};

    const SECOND: f64 = 1e9;

    /// Returns rates per second of what was intended, sent and answered, of messages that are sent
    /// and answered so long after they were intended. The first one is warm-up.
    fn rates(schedule: Schedule, ended: Ended, intended_s: &[f64], late_s: [f64; 2]) -> [f64; 3] {
        rates_of(schedule, ended, intended_s, late_s, 0)
    }

    /// Returns the same where more messages have no rows.
    fn rates_of(
        schedule: Schedule,
        ended: Ended,
        intended_s: &[f64],
        late_s: [f64; 2],
        samples_in_histogram_only: u64,
    ) -> [f64; 3] {
        let case = wiregauge_patterns::oneway::request(Default::default());
        let case = case.plan().unwrap().cases.remove(0);
        let bound = Bound { time: Some(Span(10 * SECOND as u64)), ..case.bound };
        let case = Case { schedule, bound, ..case };
        let mut samples = RoundSamples::default();
        for (number, at) in intended_s.iter().enumerate() {
            let [submit, receive] = late_s.map(|late| (at + late) * SECOND);
            let flags = if number == 0 { Flags::WARMUP } else { Flags::default() };
            let stamps = [at * SECOND, submit, f64::NAN, receive, f64::NAN];
            samples.samples.push(Sample::new(number as u64, 8, stamps, flags));
        }
        let ended = RoundEnd::Loop(ended);
        let round = Round { ended, samples_in_histogram_only, ..Round::default() };
        let seen = RoundSeen {
            case: &case,
            samples: &samples,
            round: &round,
            client: &[],
            server: &[],
            server_time: &Timebase::nanoseconds(Ticks(0)),
        };
        let found = RateWindow::new(&seen).unwrap().work(&seen, Arrivals::AtClient);
        found.map(|Delivered { work, seconds }| work / seconds)
    }

    fn every(step_s: f64, until_s: f64) -> Vec<f64> {
        let steps = (until_s / step_s).round() as u32;
        (0..steps).map(|step| f64::from(step) * step_s).collect()
    }

    #[test]
    fn a_fixed_schedule_has_its_rate_to_the_digit() {
        let schedule = Schedule::Periodic { rate: MessageRate(4.0) };
        let times = every(0.25, 10.0);
        assert_eq!(rates(schedule, Ended::Time, &times, [0.0, 0.1]), [4.0; 3]);
        assert_eq!(rates(schedule, Ended::Count, &times, [0.01, 0.1]), [4.0; 3]);
    }

    #[test]
    fn where_the_rows_end_before_the_round_the_rate_is_that_of_the_rows() {
        let schedule = Schedule::Periodic { rate: MessageRate(4.0) };
        let found = rates_of(schedule, Ended::Time, &every(0.25, 5.0), [0.0, 0.1], 20);
        assert_eq!(found, [4.0; 3], "the other half has no rows");
    }

    #[test]
    fn bursts_are_counted_over_whole_periods() {
        // Ten in the first half of each second: from the first to the last it would be 10.4/s.
        let schedule = Schedule::OnOff {
            rate: MessageRate(10.0),
            on: Span(500_000_000),
            off: Span(500_000_000),
        };
        let times: Vec<f64> = every(0.05, 10.0).into_iter().filter(|at| at % 1.0 < 0.5).collect();
        assert_eq!(rates(schedule, Ended::Time, &times, [0.0, 0.01]), [10.0; 3]);
    }

    #[test]
    fn few_random_arrivals_are_counted_behind_the_first() {
        let schedule = Schedule::Poisson { rate: MessageRate(0.5) };
        // After the warm-up, from 2 s to 10 s less a mean gap of 2 s and 1 s for the first: two of
        // three; from the first to the last it would be a rate of 1.
        let found = rates(schedule, Ended::Time, &[1.0, 2.0, 3.0, 4.0], [0.0, 0.0]);
        assert!((found[0] - 2.0 / 7.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn what_is_sent_after_a_stall_is_no_more_than_was_offered() {
        let schedule = Schedule::Periodic { rate: MessageRate(4.0) };
        // All are sent and answered 3 s late.
        let found = rates(schedule, Ended::Time, &every(0.25, 10.0), [3.0, 3.0]);
        assert_eq!(found[0], 4.0);
        assert!(found[1] < 3.0 && found[2] < 3.0, "{found:?}");
    }
}
