//! Rates over rounds: no average of rates.

use super::typical::{Typical, arithmetic, typical};
use super::{Basis, Rate};

/// What one round delivered, and in what time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivered {
    /// Messages or bytes.
    pub work: f64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Returns the rate of a typical round ([`typical`]), in the unit of the work per second. Rounds
/// without time have no rate.
pub fn rate(rounds: &[Delivered]) -> Rate {
    let timed = rounds.iter().filter(|round| round.seconds > 0.0);
    let rates: Vec<f64> = timed.map(|round| round.work / round.seconds).collect();
    rate_from(typical(&rates), rates)
}

/// Returns the mean of rates that are drawn, not repeated ([`arithmetic`]). NaN is none.
pub fn mean_rate(rates: &[f64]) -> Rate {
    let known: Vec<f64> = rates.iter().copied().filter(|rate| !rate.is_nan()).collect();
    rate_from(arithmetic(&known), known)
}

/// Returns the rate of a typical round of these, by their rates.
pub fn of_rounds(rates: Vec<f64>) -> Rate {
    rate_from(typical(&rates), rates)
}

fn rate_from(found: Option<Typical>, rounds: Vec<f64>) -> Rate {
    match found {
        Some(Typical { value, interval, basis }) => Rate { value, interval, basis, rounds },
        None => Rate { value: f64::NAN, interval: None, basis: Basis::OneRound, rounds },
    }
}

/// The factor by which a plan takes the reach of the first rounds to be larger.
const SPARE: f64 = 1.2;

/// How many rounds an interval needs to reach no further than `width` to either side, if after
/// `done` rounds it reaches `reach` (both as shares of the value): it narrows with the root of the
/// rounds.
///
/// Asked once, after the first rounds: two stages, after Stein (Annals of Mathematical Statistics
/// 16 (1945) 243). His interval keeps the variance of the first stage; this one is computed anew
/// from all rounds, so it plans for a reach that is `SPARE` times as far: else half of the runs
/// would miss their target, and those that meet it would be the lucky ones. How often they cover is
/// simulated (METHOD.md). One that is looked at after each round until it is narrow covers less
/// often.
pub fn rounds_needed(done: u32, reach: f64, width: f64) -> u32 {
    let needed = f64::from(done) * (SPARE * reach / width).powi(2);
    // Of an infinite or unknown reach this is the largest number.
    if needed.is_nan() { u32::MAX } else { (needed.ceil() as u32).max(done) }
}

#[cfg(test)]
mod tests {
    use super::super::Value;
    use super::super::fixtures::{normal, random};
    use super::*;

    #[test]
    fn each_round_weighs_alike_however_long_it_took() {
        let r = rate(&[
            Delivered { work: 100.0, seconds: 1.0 },
            Delivered { work: 100.0, seconds: 4.0 },
        ]);
        assert!((r.value - 50.0).abs() < 1e-12, "the geometric mean, {}", r.value);
        assert_eq!(r.rounds, [100.0, 25.0]);
    }

    #[test]
    fn rounds_of_one_length_have_students_interval() {
        let x = [98.0, 101.0, 100.0, 103.0];
        let rounds = x.map(|work| Delivered { work: work * 2.0, seconds: 2.0 });
        let found = rate(&rounds).interval.unwrap();
        // exp(m -+ t(3) s/sqrt(4)) of the logarithms.
        let logs = x.map(f64::ln);
        let mean = logs.iter().sum::<f64>() / 4.0;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let half = 3.182_446 * (squares / 3.0).sqrt() / 2.0;
        assert!((found.low.0 / (mean - half).exp() - 1.0).abs() < 1e-7);
        assert!((found.high.0 / (mean + half).exp() - 1.0).abs() < 1e-7);
    }

    #[test]
    fn no_time_and_one_round_have_no_interval() {
        assert!(rate(&[]).value.is_nan());
        assert!(rate(&[Delivered { work: 5.0, seconds: 0.0 }]).value.is_nan());
        let one = rate(&[Delivered { work: 5.0, seconds: 2.0 }]);
        assert_eq!((one.value, one.interval), (2.5, None));
    }

    #[test]
    fn no_bound_is_below_zero() {
        let rounds = [0.0, 0.0, 0.0, 100.0].map(|work| Delivered { work, seconds: 1.0 });
        let found = rate(&rounds).interval.unwrap();
        assert_eq!((found.low, found.high >= Value(100.0)), (Value(0.0), true));
    }

    #[test]
    fn rounds_needed_grow_with_the_square_and_are_never_fewer() {
        // 6 * (1.2 * 2)^2 = 34.56.
        assert_eq!(rounds_needed(6, 0.1, 0.05), 35);
        assert_eq!(rounds_needed(6, 0.01, 0.05), 6);
        assert_eq!(rounds_needed(6, f64::INFINITY, 0.05), u32::MAX);
        assert_eq!(rounds_needed(6, f64::NAN, 0.05), u32::MAX);
    }

    /// The share of runs of two stages whose interval covers a rate of 1.
    fn covered(draw: fn(f64) -> f64) -> f64 {
        let trials = 600;
        let hits = (0..trials).filter(|seed| {
            let mut noise = normal(&mut random(*seed), 60, 0.0, 1.0).into_iter();
            let mut one = || Delivered { work: draw(noise.next().unwrap()), seconds: 1.0 };
            let all: Vec<Delivered> = (0..60).map(|_| one()).collect();
            let first = rate(&all[..6]);
            let reach = first.interval.unwrap().reach(first.value).unwrap();
            let planned = rounds_needed(6, reach, 0.1).min(60) as usize;
            let i = rate(&all[..planned]).interval.unwrap();
            i.low.0 <= 1.0 && 1.0 <= i.high.0
        });
        hits.count() as f64 / f64::from(trials as u32)
    }

    #[test]
    fn stopping_by_a_plan_covers() {
        for draw in [|z: f64| (0.2 * z).exp(), |z: f64| (0.3 * z).exp()] {
            // 93 %, less two standard errors.
            assert!(covered(draw) >= 0.91, "{}", covered(draw));
        }
    }

    #[test]
    fn the_interval_covers_the_true_rate() {
        let hits = (0..400).filter(|seed| {
            let mut chance = random(*seed);
            let noise = normal(&mut chance, 5, 0.0, 3.0);
            let lengths = normal(&mut chance, 5, 1.0, 0.1);
            let rounds: Vec<Delivered> = noise
                .iter()
                .zip(lengths)
                .map(|(e, seconds)| Delivered { work: 100.0 * seconds + e, seconds })
                .collect();
            let i = rate(&rounds).interval.unwrap();
            i.low.0 <= 100.0 && 100.0 <= i.high.0
        });
        assert!(hits.count() as f64 / 400.0 >= 0.93);
    }
}
