//! Rates of a run: what its rounds posted and delivered, and in what time.

use super::counts::{RoundSeen, between};
use crate::plan::Schedule;
use crate::record::schema::RateFigure;
use crate::sample::Flags;
use crate::stats::RateMetric;
use crate::stats::rate::{Delivered, rate};

/// What each round posted and delivered, in messages.
#[derive(Default)]
pub struct Rates {
    /// Arrived or came back.
    pub delivered: Vec<Delivered>,
    /// Sent.
    pub posted: Vec<Delivered>,
}

/// What one round posted and delivered, in messages.
pub struct Work {
    /// Sent; `None` where it is not asked for.
    pub posted: Option<Delivered>,
    /// Arrived or came back.
    pub delivered: Delivered,
}

impl Work {
    /// Of a round whose samples are single messages.
    pub fn of_messages(seen: &RoundSeen<'_>) -> Work {
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
        Work { posted: Some(posted), delivered }
    }
}

impl Rates {
    /// Takes what a round did.
    pub fn add(&mut self, work: Work) {
        self.posted.extend(work.posted);
        self.delivered.push(work.delivered);
    }

    /// Messages per second: delivered in a closed loop; offered, achieved and delivered where a
    /// schedule sets the times.
    pub fn figures(&self, schedule: Schedule) -> Vec<RateFigure> {
        let delivered = figure(RateMetric::MessageRate, "msg/s", &self.delivered, 1.0);
        let Some(offered) = schedule.rate() else { return vec![delivered] };
        let offered = [Delivered { work: offered.0, seconds: 1.0 }];
        vec![
            figure(RateMetric::OfferedRate, "msg/s", &offered, 1.0),
            figure(RateMetric::AchievedRate, "msg/s", &self.posted, 1.0),
            delivered,
        ]
    }
}

/// A rate over all rounds, of so much for each piece of work.
pub fn figure(metric: RateMetric, unit: &str, work: &[Delivered], each: f64) -> RateFigure {
    let scaled: Vec<Delivered> =
        work.iter().map(|d| Delivered { work: d.work * each, ..*d }).collect();
    RateFigure { metric, unit: unit.into(), rate: rate(&scaled) }
}
