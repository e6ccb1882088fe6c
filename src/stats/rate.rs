//! Rates over rounds: no average of rates.

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
/// time s, R +- t(n-1) sqrt(sum e^2 / (n (n-1))) / s. For rounds of equal length this is Student's
/// interval of their rates. It is not cut at 0. Rounds without time count in the sums only.
pub fn rate(rounds: &[Delivered]) -> Rate {
    let work: f64 = rounds.iter().map(|r| r.work).sum();
    let seconds: f64 = rounds.iter().map(|r| r.seconds).sum();
    let value = if seconds > 0.0 { work / seconds } else { f64::NAN };
    let timed: Vec<&Delivered> = rounds.iter().filter(|r| r.seconds > 0.0).collect();
    let n = timed.len() as f64;
    let residuals: f64 = timed.iter().map(|r| (r.work - value * r.seconds).powi(2)).sum();
    let interval = t_975(n - 1.0).filter(|_| value.is_finite()).map(|t| {
        let half = t * (residuals / (n * (n - 1.0))).sqrt() / (seconds / n);
        Interval { low: Value(value - half), high: Value(value + half) }
    });
    Rate { value, interval, rounds: timed.iter().map(|r| r.work / r.seconds).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{normal, random};
    use super::super::student;
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
        let (a, b) = (rate(&rounds).interval.unwrap(), student::interval(&x).unwrap());
        assert!((a.low.0 - b.low.0).abs() < 1e-9 && (a.high.0 - b.high.0).abs() < 1e-9);
    }

    #[test]
    fn no_time_and_one_round_have_no_interval() {
        assert!(rate(&[]).value.is_nan());
        assert!(rate(&[Delivered { work: 5.0, seconds: 0.0 }]).value.is_nan());
        let one = rate(&[Delivered { work: 5.0, seconds: 2.0 }]);
        assert_eq!((one.value, one.interval), (2.5, None));
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
