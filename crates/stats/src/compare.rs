//! The difference of two runs, quantile by quantile, with its interval.

use super::{Interval, Quantile, Rate, Summary, Value};
use serde::{Deserialize, Serialize};

/// b - a, and (b - a)/a, with 95 % intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The figure of the first run.
    pub a: Value,
    /// The same of the second.
    pub b: Value,
    /// b - a, in the figures' unit.
    pub absolute: Value,
    /// Its interval. `None` where either figure has none.
    pub interval: Option<Interval>,
    /// b/a - 1. `None` unless a is finite and above 0.
    pub relative: Option<Value>,
    /// Its interval.
    pub relative_interval: Option<Interval>,
}

wiregauge_base::options::named_enum! {
    /// Why two figures have no difference.
    pub enum Missing {
        /// One of the two has too few samples for the figure.
        TooFew = "n_too_small",
        /// Both are infinite: messages were lost in both runs.
        BothInfinite = "both_infinite",
    }
}

impl Difference {
    /// Whether the interval of b - a lies on one side of 0: the runs differ.
    pub fn excludes_zero(&self) -> bool {
        self.interval.is_some_and(|i| i.low.0 > 0.0 || i.high.0 < 0.0)
    }
}

/// The difference of two figures with their intervals; `None` where it is no number (both are
/// infinite, or one is NaN).
///
/// The interval is found from those of the two (MOVER: Donner & Zou 2002, Closed-form confidence
/// intervals for functions of the normal mean and standard deviation; Zou & Donner 2008):
/// L = (b-a) - sqrt((b-lb)^2 + (ua-a)^2), U = (b-a) + sqrt((ub-b)^2 + (a-la)^2). It needs no
/// symmetry and takes the two for independent. Where a figure is infinite the bounds are
/// lb - ua and ub - la, which are wider. The relative interval is the same on logarithms, of b/a.
pub fn difference(
    (a, a_interval): (f64, Option<Interval>),
    (b, b_interval): (f64, Option<Interval>),
) -> Option<Difference> {
    if (b - a).is_nan() {
        return None;
    }
    let both = a_interval.zip(b_interval);
    let interval = both.map(|(i, j)| mover((a, i), (b, j)));
    let ratio = (a > 0.0 && a.is_finite() && b >= 0.0).then(|| b / a - 1.0);
    let relative_interval = both.filter(|_| ratio.is_some()).map(|(i, j)| {
        let of_logs = mover((a.ln(), logarithm(i)), (b.ln(), logarithm(j)));
        Interval { low: Value(of_logs.low.0.exp_m1()), high: Value(of_logs.high.0.exp_m1()) }
    });
    Some(Difference {
        a: Value(a),
        b: Value(b),
        absolute: Value(b - a),
        interval,
        relative: ratio.map(Value),
        relative_interval,
    })
}

/// A figure with its interval; `None` where it is not shown.
pub type Found = Option<(f64, Option<Interval>)>;

/// The difference of two figures, or why there is none.
pub fn figures(a: Found, b: Found) -> Result<Difference, Missing> {
    let (a, b) = a.zip(b).ok_or(Missing::TooFew)?;
    let missing = match a.0.is_infinite() && b.0.is_infinite() {
        true => Missing::BothInfinite,
        false => Missing::TooFew,
    };
    difference(a, b).ok_or(missing)
}

/// The probability and difference of each quantile that both summaries have.
pub fn quantiles(a: &Summary, b: &Summary) -> Vec<(f64, Result<Difference, Missing>)> {
    let found = |of: &Quantile| of.value.map(|value| (value.0, of.interval));
    let both = |x: &Quantile| Some((x.p, figures(found(x), found(b.quantile(x.p)?))));
    a.quantiles.iter().filter_map(both).collect()
}

/// The difference of two rates.
pub fn rates(a: &Rate, b: &Rate) -> Result<Difference, Missing> {
    figures(Some((a.value, a.interval)), Some((b.value, b.interval)))
}

/// The interval of b - a.
fn mover((a, i): (f64, Interval), (b, j): (f64, Interval)) -> Interval {
    let (low, high) = if a.is_finite() && b.is_finite() {
        // An interval that does not enclose its figure must not narrow the difference's.
        let reach = |x: f64| x.max(0.0);
        let down = reach(b - j.low.0).hypot(reach(i.high.0 - a));
        let up = reach(j.high.0 - b).hypot(reach(a - i.low.0));
        (b - a - down, b - a + up)
    } else {
        (j.low.0 - i.high.0, j.high.0 - i.low.0)
    };
    // Infinity minus infinity: nothing is known on that side.
    let or = |x: f64, other: f64| if x.is_nan() { other } else { x };
    Interval { low: Value(or(low, f64::NEG_INFINITY)), high: Value(or(high, f64::INFINITY)) }
}

/// An interval on the scale of logarithms; what is below 0 goes to -infinity.
fn logarithm(i: Interval) -> Interval {
    Interval { low: Value(i.low.0.max(0.0).ln()), high: Value(i.high.0.max(0.0).ln()) }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ar1, normal, random};
    use super::super::summarize;
    use super::*;

    fn within(low: f64, high: f64) -> Option<Interval> {
        Some(Interval { low: Value(low), high: Value(high) })
    }

    #[test]
    fn a_known_difference() {
        let d = difference((10.0, within(7.0, 14.0)), (20.0, within(17.0, 25.0))).unwrap();
        let i = d.interval.unwrap();
        assert_eq!(d.absolute, Value(10.0));
        assert_eq!((i.low, i.high), (Value(5.0), Value(10.0 + 34.0_f64.sqrt())));
        assert!(d.excludes_zero());
        assert_eq!(d.relative, Some(Value(1.0)));
        let r = d.relative_interval.unwrap();
        let down = (20.0_f64 / 17.0).ln().hypot((14.0_f64 / 10.0).ln());
        assert!((r.low.0 - ((2.0_f64.ln() - down).exp() - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn infinite_figures_and_bounds_give_no_nan() {
        let inf = f64::INFINITY;
        let values = [(5.0, within(4.0, inf)), (5.0, within(-inf, 6.0)), (inf, within(7.0, inf))];
        for a in values {
            for b in values {
                let Some(d) = difference(a, b) else {
                    assert!(a.0 == inf && b.0 == inf);
                    continue;
                };
                let i = d.interval.unwrap();
                assert!(i.low.0 <= d.absolute.0 && d.absolute.0 <= i.high.0, "{d:?}");
                if let Some(r) = d.relative_interval {
                    assert!(!r.low.0.is_nan() && !r.high.0.is_nan() && r.low.0 >= -1.0);
                }
            }
        }
        let lost = difference((5.0, within(4.0, 6.0)), (inf, within(9.0, inf))).unwrap();
        assert_eq!(lost.interval, within(3.0, inf));
        let came_back = difference((inf, within(9.0, inf)), (5.0, within(4.0, 6.0))).unwrap();
        assert_eq!(came_back.interval, within(-inf, -3.0));
        assert!(lost.excludes_zero());
    }

    #[test]
    fn an_interval_that_ends_at_zero_does_not_exclude_it() {
        let d = difference((10.0, within(9.0, 11.0)), (10.0, within(9.0, 11.0))).unwrap();
        let excludes = |low, high| Difference { interval: within(low, high), ..d }.excludes_zero();
        assert!(!excludes(0.0, 5.0) && !excludes(-5.0, 0.0));
        assert!(excludes(0.1, 5.0) && excludes(-5.0, -0.1));
    }

    #[test]
    fn each_quantile_that_both_have_is_compared_and_so_are_rates() {
        let run = |add: f64| {
            let round: Vec<f64> = (1..=1000).map(|ns| f64::from(ns) + add).collect();
            summarize(&[round], 1.0)
        };
        let found = quantiles(&run(0.0), &run(10.0));
        let absolute: Vec<Option<f64>> =
            found.iter().map(|(_, d)| d.ok().map(|d| d.absolute.0)).collect();
        assert_eq!(absolute, [Some(10.0), Some(10.0), Some(10.0), Some(10.0), None, None]);
        assert_eq!(found[1].0, 0.5);
        let rate = |value| Rate { value, interval: None, rounds: Vec::new() };
        assert_eq!(rates(&rate(4.0), &rate(5.0)).unwrap().relative, Some(Value(0.25)));
        assert_eq!(rates(&rate(4.0), &rate(f64::NAN)), Err(Missing::TooFew));
    }

    #[test]
    fn too_few_samples_are_not_taken_for_losses_in_both_runs() {
        let run = |lost: usize| {
            let mut round = vec![1.0; 1000];
            round[..lost].fill(f64::INFINITY);
            summarize(&[round], 1.0)
        };
        let missing = |a, b| {
            let of = |(_, d): (f64, Result<Difference, Missing>)| d.err();
            quantiles(&run(a), &run(b)).into_iter().map(of).collect::<Vec<_>>()
        };
        let (few, both) = (Some(Missing::TooFew), Some(Missing::BothInfinite));
        assert_eq!(missing(20, 20), [None, None, None, both, few, few]);
        assert_eq!(missing(20, 0), [None, None, None, None, few, few]);
    }

    #[test]
    fn nothing_is_relative_to_zero_and_nothing_certain_without_intervals() {
        let d = difference((0.0, within(-1.0, 1.0)), (1.0, None)).unwrap();
        assert_eq!((d.relative, d.interval, d.excludes_zero()), (None, None, false));
        let nothing_left = difference((10.0, None), (0.0, None)).unwrap();
        assert_eq!(nothing_left.relative, Some(Value(-1.0)));
    }

    #[test]
    fn the_same_twice_rarely_differs() {
        let trials = 300;
        let differs = |p: f64| {
            let found = (0..trials).filter(|seed| {
                let run = |seed: u64| {
                    let mut chance = random(seed);
                    let rounds: Vec<Vec<f64>> =
                        (0..5).map(|_| ar1(&mut chance, 2_000, 0.8)).collect();
                    summarize(&rounds, 1.0)
                };
                let all = quantiles(&run(2 * seed), &run(2 * seed + 1));
                let d = all.into_iter().find(|(of, _)| *of == p).unwrap().1.unwrap();
                d.excludes_zero()
            });
            found.count() as f64 / trials as f64
        };
        assert!(differs(0.5) <= 0.05, "p50: {}", differs(0.5));
        assert!(differs(0.99) <= 0.05, "p99: {}", differs(0.99));
    }

    #[test]
    fn a_true_difference_is_found_and_its_interval_covers_it() {
        let trials = 200;
        let (mut found, mut covered) = (0, 0);
        for seed in 0..trials {
            let mut chance = random(seed);
            let mut run = |mean| {
                let rounds: Vec<Vec<f64>> =
                    (0..5).map(|_| normal(&mut chance, 1_000, mean, 10.0)).collect();
                summarize(&rounds, 1.0)
            };
            let d = quantiles(&run(100.0), &run(103.0))[1].1.unwrap();
            let i = d.interval.unwrap();
            found += u32::from(d.excludes_zero());
            covered += u32::from(i.low.0 <= 3.0 && 3.0 <= i.high.0);
        }
        assert!(found >= 190 && covered >= 186, "{found} {covered}");
    }

    #[test]
    fn only_two_infinite_figures_are_said_to_be_both_infinite() {
        let missing = |a: f64, b: f64| figures(Some((a, None)), Some((b, None))).unwrap_err();
        assert_eq!(missing(f64::INFINITY, f64::INFINITY), Missing::BothInfinite);
        assert_eq!(missing(f64::INFINITY, f64::NAN), Missing::TooFew);
        assert_eq!(missing(f64::NAN, f64::INFINITY), Missing::TooFew);
    }
}
