//! Rates over rounds: no average of rates.

use super::quantile::median_interval;
use super::student::t_975;
use super::{Interval, Rate, Value};

/// What one round delivered, and in what time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivered {
    /// Messages or bytes.
    pub work: f64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// The rate over all rounds, in the unit of the work per second.
///
/// The value is R = sum of work / sum of time. Its interval is that of a ratio estimator (Cochran,
/// Sampling Techniques, 6.4): with residuals e = work - R * seconds of the n rounds and the mean
/// time s, R +- t(n-1) sqrt(sum e^2 / (n (n-1))) / s, together with the order statistics of the
/// rounds' rates, which cover where these have two levels or a tail. No bound is below 0. Rounds
/// without time count in the sums only.
pub fn rate(rounds: &[Delivered]) -> Rate {
    let work: f64 = rounds.iter().map(|r| r.work).sum();
    let seconds: f64 = rounds.iter().map(|r| r.seconds).sum();
    let value = if seconds > 0.0 { work / seconds } else { f64::NAN };
    let timed: Vec<&Delivered> = rounds.iter().filter(|r| r.seconds > 0.0).collect();
    let n = timed.len() as f64;
    let residuals: f64 = timed.iter().map(|r| (r.work - value * r.seconds).powi(2)).sum();
    let rates: Vec<f64> = timed.iter().map(|r| r.work / r.seconds).collect();
    let t = t_975(n - 1.0).filter(|_| value.is_finite());
    let interval = t.zip(median_interval(&rates)).map(|(t, levels)| {
        let half = t * (residuals / (n * (n - 1.0))).sqrt() / (seconds / n);
        Interval { low: Value((value - half).max(0.0)), high: Value(value + half) }.union(levels)
    });
    Rate { value, interval, rounds: rates }
}

/// How many rounds an interval needs to reach no further than `width` to either side, if after
/// `done` rounds it reaches `reach` (both as shares of the value): it narrows with the root of the
/// rounds.
///
/// Asked once, after the first rounds: two stages, after Stein (Annals of Mathematical Statistics
/// 16 (1945) 243). His interval keeps the variance of the first stage; this one is computed anew
/// from all rounds, so how often it covers is simulated (METHOD.md, "Quantiles and their
/// intervals"). One that is looked at after each round until it is narrow covers less often.
pub fn rounds_needed(done: u32, reach: f64, width: f64) -> u32 {
    let needed = f64::from(done) * (reach / width).powi(2);
    // Of an infinite or unknown reach this is the largest number.
    if needed.is_nan() { u32::MAX } else { (needed.ceil() as u32).max(done) }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{normal, random};
    use super::*;

    #[test]
    fn a_slow_round_weighs_by_its_time() {
        let r = rate(&[
            Delivered { work: 100.0, seconds: 1.0 },
            Delivered { work: 100.0, seconds: 4.0 },
        ]);
        assert_eq!((r.value, r.rounds), (40.0, vec![100.0, 25.0]));
    }

    #[test]
    fn rounds_of_one_length_have_students_interval() {
        let x = [98.0, 101.0, 100.0, 103.0];
        let rounds = x.map(|work| Delivered { work: work * 2.0, seconds: 2.0 });
        let found = rate(&rounds).interval.unwrap();
        // t(3) s/sqrt(4), which reaches beyond the smallest and the largest.
        let half = 3.182_446 * (13.0_f64 / 3.0).sqrt() / 2.0;
        assert!((found.low.0 - (100.5 - half)).abs() < 1e-5);
        assert!((found.high.0 - (100.5 + half)).abs() < 1e-5);
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
        assert_eq!(rounds_needed(6, 0.1, 0.05), 24);
        assert_eq!(rounds_needed(6, 0.01, 0.05), 6);
        assert_eq!(rounds_needed(6, f64::INFINITY, 0.05), u32::MAX);
        assert_eq!(rounds_needed(6, f64::NAN, 0.05), u32::MAX);
    }

    /// The share of runs whose interval covers a rate of 1, by the rule of two stages and by one
    /// that stops at the first narrow look.
    fn stopped(draw: fn(f64) -> f64) -> [f64; 2] {
        let trials = 600;
        let mut hits = [0; 2];
        for seed in 0..trials {
            let mut noise = normal(&mut random(seed), 60, 0.0, 1.0).into_iter();
            let mut one = || Delivered { work: draw(noise.next().unwrap()), seconds: 1.0 };
            let first: Vec<Delivered> = (0..6).map(|_| one()).collect();
            let rest: Vec<Delivered> = (0..54).map(|_| one()).collect();
            let all = [first, rest].concat();
            let reach = |n: usize| {
                let found = rate(&all[..n]);
                let i = found.interval.unwrap();
                (i.high.0 - found.value).max(found.value - i.low.0) / found.value
            };
            let planned = rounds_needed(6, reach(6), 0.1).min(60) as usize;
            let looked = (6..=60).find(|n| reach(*n) <= 0.1).unwrap_or(60);
            for (hit, n) in hits.iter_mut().zip([planned, looked]) {
                let i = rate(&all[..n]).interval.unwrap();
                *hit += u32::from(i.low.0 <= 1.0 && 1.0 <= i.high.0);
            }
        }
        hits.map(|hits| f64::from(hits) / trials as f64)
    }

    #[test]
    fn stopping_by_a_plan_covers() {
        for draw in [|z: f64| 1.0 + 0.2 * z, |z: f64| (0.3 * z - 0.045).exp()] {
            let [planned, looked] = stopped(draw);
            assert!(planned >= 0.93 && planned >= looked, "{planned} {looked}");
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
