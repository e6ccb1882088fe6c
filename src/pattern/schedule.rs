//! Intended send times: absolute, in nanoseconds since the start, made before the run, seeded.

use crate::plan::Schedule;
use crate::units::MessageRate;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

/// The intended times of so many messages, in ns since the start, rising.
///
/// Each time is computed in `f64` from an exact count (periodic) or a sum that is exact to 1e-16 of
/// its value (poisson), so that no rounding adds up: over 24 h the error is below 1/64 ns.
pub fn intended_ns(schedule: Schedule, messages: u64, seed: u64) -> Vec<f64> {
    match schedule {
        Schedule::ClosedLoop => Vec::new(),
        Schedule::Periodic { rate } => {
            let interval = interval_ns(rate);
            (0..messages).map(|message| message as f64 * interval).collect()
        }
        Schedule::Poisson { rate } => {
            let interval = interval_ns(rate);
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x706f_6973_736f_6e00);
            let mut at = 0.0;
            (0..messages)
                .map(|_| {
                    // Exp1 is the ziggurat sampler of the exponential distribution of mean 1.
                    let drawn: f64 = Exp1.sample(&mut random);
                    at += interval * drawn;
                    at
                })
                .collect()
        }
    }
}

fn interval_ns(rate: MessageRate) -> f64 {
    1e9 / rate.0
}
