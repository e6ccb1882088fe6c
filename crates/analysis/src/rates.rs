//! Rates of a run: what its rounds posted and delivered, and in what time.

use super::counts::{Arrivals, RoundSeen, between};
use super::window::RateWindow;
use wiregauge_figures::record::schema::RateFigure;
use wiregauge_plan::Schedule;
use wiregauge_sample::Flags;
use wiregauge_stats::RateMetric;
use wiregauge_stats::rate::{Delivered, rate};

/// What each round posted and delivered, in messages.
#[derive(Default)]
pub struct Rates {
    /// Intended by a schedule.
    pub offered: Vec<Delivered>,
    /// Arrived or came back.
    pub delivered: Vec<Delivered>,
    /// Sent.
    pub posted: Vec<Delivered>,
}

/// What one round posted and delivered, in messages.
pub struct Work {
    /// Intended; `None` without a schedule.
    pub offered: Option<Delivered>,
    /// Sent; `None` where it is not asked for.
    pub posted: Option<Delivered>,
    /// Arrived or came back.
    pub delivered: Delivered,
}

impl Work {
    /// Returns that of a round whose samples are single messages, of which this end sees those that
    /// arrive: of an open loop in its window, of a closed one from the first stamp to the last.
    pub fn of_messages(seen: &RoundSeen<'_>, arrivals: Arrivals) -> Work {
        match RateWindow::new(seen) {
            Some(window) => {
                let [offered, posted, delivered] = window.work(seen, arrivals);
                Work { offered: Some(offered), posted: Some(posted), delivered }
            }
            None => Work::of_closed_loop(seen),
        }
    }

    fn of_closed_loop(seen: &RoundSeen<'_>) -> Work {
        let (counts, samples) = (&seen.round.counts, &seen.samples.samples);
        let counted = || samples.iter().filter(|sample| !sample.flags.has(Flags::WARMUP));
        let (posted, delivered) = match seen.round.samples_in_histogram_only {
            0 => (
                between(counted().map(|s| s.submit_ns), 1.0),
                between(counted().map(|s| s.receive_ns), 1.0),
            ),
            // Stamps are those of the first messages; all have been counted.
            _ => {
                let seconds = seen.round.length_ns / 1e9;
                let all = |work: u64| Delivered { work: work as f64, seconds };
                (all(counts.sent), all(counts.received))
            }
        };
        Work { offered: None, posted: Some(posted), delivered }
    }
}

impl Rates {
    /// Takes what a round did.
    pub fn add(&mut self, work: Work) {
        self.offered.extend(work.offered);
        self.posted.extend(work.posted);
        self.delivered.push(work.delivered);
    }

    /// Returns messages per second: delivered in a closed loop; offered, achieved and delivered
    /// where a schedule sets the times.
    pub fn figures(&self, schedule: Schedule) -> Vec<RateFigure> {
        let delivered = figure(RateMetric::MessageRate, "msg/s", &self.delivered, 1.0);
        if !schedule.is_open() {
            return vec![delivered];
        }
        vec![
            figure(RateMetric::OfferedRate, "msg/s", &self.offered, 1.0),
            figure(RateMetric::AchievedRate, "msg/s", &self.posted, 1.0),
            delivered,
        ]
    }
}

/// The rate of a typical round, of so much for each piece of work.
pub fn figure(metric: RateMetric, unit: &str, work: &[Delivered], each: f64) -> RateFigure {
    let scaled: Vec<Delivered> =
        work.iter().map(|d| Delivered { work: d.work * each, ..*d }).collect();
    RateFigure { metric, unit: unit.into(), rate: rate(&scaled) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::{Ticks, Timebase};
    use wiregauge_figures::record::schema::{Counts, Round};
    use wiregauge_sample::{RoundSamples, Sample};

    #[test]
    fn messages_without_stamps_are_counted_over_the_whole_round() {
        let request = wiregauge_patterns::latency::request(Default::default());
        let case = request.plan().unwrap().cases.remove(0);
        let none = f64::NAN;
        let sample = |number: u32| {
            let (submit, flags) = match number {
                0 => (0.0, Flags::WARMUP),
                _ => (f64::from(number) * 1e9, Flags::default()),
            };
            Sample::new(number.into(), 8, [none, submit, none, submit * 1.5, none], flags)
        };
        let samples = RoundSamples { samples: (0..4).map(sample).collect(), ..Default::default() };
        let work = |samples_in_histogram_only| {
            let counts = Counts { sent: 10, received: 8, ..Counts::default() };
            let round =
                Round { counts, length_ns: 5e9, samples_in_histogram_only, ..Round::default() };
            let server_time = &Timebase::nanoseconds(Ticks(0));
            let (samples, round) = (&samples, &round);
            let seen =
                RoundSeen { case: &case, samples, round, client: &[], server: &[], server_time };
            let Work { posted, delivered, .. } = Work::of_messages(&seen, Arrivals::AtClient);
            [posted.unwrap(), delivered].map(|Delivered { work, seconds }| (work, seconds))
        };
        // Three after the warm-up: two since the first, submitted within 2 s and received within 3.
        assert_eq!(work(0), [(2.0, 2.0), (2.0, 3.0)]);
        assert_eq!(work(1), [(10.0, 5.0), (8.0, 5.0)]);
    }
}
