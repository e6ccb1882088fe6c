//! The difference of two runs, quantile by quantile, with its interval.

use super::typical::{Scatter, typical};
use super::{Basis, Interval, Rate, Summary, Value};
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
    /// Returns true if the runs differ: the interval of b/a - 1, or where there is none that of
    /// b - a, lies on one side of 0.
    pub fn excludes_zero(&self) -> bool {
        let interval = self.relative_interval.or(self.interval);
        interval.is_some_and(|i| i.low.0 > 0.0 || i.high.0 < 0.0)
    }
}

/// A figure as a comparison takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The interval of the figure.
    pub interval: Option<Interval>,
    /// The scatter of the rounds' own figures, if each round has one.
    pub scatter: Option<Scatter>,
    /// The error that two hosts' clocks may have, in ns.
    pub clock_ns: f64,
}

impl From<(f64, Option<Interval>)> for Estimate {
    fn from((value, interval): (f64, Option<Interval>)) -> Estimate {
        Estimate { value, interval, scatter: None, clock_ns: 0.0 }
    }
}

impl Estimate {
    /// Returns the figure of a typical round, from each round's own; `None` without rounds.
    pub fn of_rounds(rounds: &[f64]) -> Option<Estimate> {
        let found = typical(rounds)?;
        let scatter = Scatter::new(rounds);
        Some(Estimate { value: found.value, interval: found.interval, scatter, clock_ns: 0.0 })
    }
}

impl Summary {
    /// Returns a quantile as a comparison takes it; `None` where n is too small for it.
    pub fn estimate(&self, p: f64) -> Option<Estimate> {
        let number = self.quantiles.iter().position(|quantile| quantile.p == p)?;
        let quantile = &self.quantiles[number];
        let quantiles = self.rounds.iter().map(|round| round.quantiles.get(number).copied());
        let rounds: Vec<f64> = quantiles.flatten().flatten().map(|value| value.0).collect();
        // Of all samples together it is no figure of the rounds.
        let of_rounds = quantile.basis != Basis::Pooled;
        let scatter = if of_rounds { Scatter::new(&rounds) } else { None };
        let clock_ns = self.known_error.clock_ns;
        Some(Estimate { value: quantile.value?.0, interval: quantile.interval, scatter, clock_ns })
    }
}

impl Rate {
    /// Returns the rate as a comparison takes it; `None` where no time passed.
    pub fn estimate(&self) -> Option<Estimate> {
        let of_rounds = self.basis != Basis::Pooled;
        let scatter = if of_rounds { Scatter::new(&self.rounds) } else { None };
        let estimate =
            Estimate { value: self.value, interval: self.interval, scatter, clock_ns: 0.0 };
        (!self.value.is_nan()).then_some(estimate)
    }
}

/// Returns two figures as means of their rounds, each with Student's t of the freedom of their
/// difference (Welch). `None` where a round has no figure, or the scales differ.
fn means(a: &Estimate, b: &Estimate) -> Option<[Estimate; 2]> {
    let scatters = a.scatter.zip(b.scatter).filter(|(one, other)| one.scale == other.scale);
    let (one, other) = scatters?;
    let freedom = one.joint_freedom(&other);
    Some([one, other].map(|scatter| Estimate {
        value: scatter.value,
        interval: scatter.interval(freedom),
        scatter: Some(scatter),
        clock_ns: 0.0,
    }))
}

/// Returns the difference of two figures with their intervals; `None` where it is no number (both
/// are infinite, or one is NaN).
///
/// The interval is found from those of the two (MOVER: Donner & Zou 2002, Closed-form confidence
/// intervals for functions of the normal mean and standard deviation; Zou & Donner 2008):
/// L = (b-a) - sqrt((b-lb)^2 + (ua-a)^2), U = (b-a) + sqrt((ub-b)^2 + (a-la)^2). It needs no
/// symmetry and takes the two for independent. Where a figure is infinite the bounds are
/// lb - ua and ub - la, which are wider. The relative interval is the same on logarithms, of b/a.
///
/// Where each round has the figure, both are taken as the geometric means of their rounds, also
/// where the rounds fall into groups, and the relative interval is that of Welch's t. What the
/// instrument adds is in both figures and not in their difference. The clocks of each may be wrong
/// in its own way: both bounds are in the intervals.
pub fn difference(a: impl Into<Estimate>, b: impl Into<Estimate>) -> Option<Difference> {
    let given = [a.into(), b.into()];
    let [one, other] = means(&given[0], &given[1]).unwrap_or(given);
    let both = one.interval.zip(other.interval);
    let a = one.value;
    let b = other.value;
    if (b - a).is_nan() {
        return None;
    }
    // What was not taken as means has the errors of its clocks in its own interval.
    let is_given = [one, other] == given;
    let clock_ns = if is_given { 0.0 } else { given[0].clock_ns + given[1].clock_ns };
    let interval = both.map(|(i, j)| wider(mover((a, i), (b, j)), clock_ns));
    let ratio = (a > 0.0 && a.is_finite() && b >= 0.0).then(|| b / a - 1.0);
    let relative_interval = both.filter(|_| ratio.is_some()).map(|(i, j)| {
        let of_logs = mover((a.ln(), logarithm(i)), (b.ln(), logarithm(j)));
        let low = Value(of_logs.low.0.exp_m1());
        let found = wider(Interval { low, high: Value(of_logs.high.0.exp_m1()) }, clock_ns / a);
        Interval { low: Value(found.low.0.max(-1.0)), ..found }
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

/// Returns the difference of two figures, or why there is none. `None` is one that is not shown.
pub fn figures(a: Option<Estimate>, b: Option<Estimate>) -> Result<Difference, Missing> {
    let (a, b) = a.zip(b).ok_or(Missing::TooFew)?;
    let are_infinite = a.value.is_infinite() && b.value.is_infinite();
    difference(a, b).ok_or(if are_infinite { Missing::BothInfinite } else { Missing::TooFew })
}

/// The probability and difference of each quantile that both summaries have.
pub fn quantiles(a: &Summary, b: &Summary) -> Vec<(f64, Result<Difference, Missing>)> {
    let shared = a.quantiles.iter().map(|one| one.p).filter(|p| b.quantile(*p).is_some());
    shared.map(|p| (p, figures(a.estimate(p), b.estimate(p)))).collect()
}

/// The difference of two rates.
pub fn rates(a: &Rate, b: &Rate) -> Result<Difference, Missing> {
    figures(a.estimate(), b.estimate())
}

/// Moves both ends of an interval outward.
fn wider(interval: Interval, by: f64) -> Interval {
    Interval { low: Value(interval.low.0 - by), high: Value(interval.high.0 + by) }
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
    use super::super::{KnownError, summarize};
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
    fn the_clocks_bounds_are_in_the_difference_and_the_instruments_bias_is_not() {
        fn run(add: f64, clock_ns: f64) -> Summary {
            let rounds =
                [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|level| vec![3000.0 + level + add; 100]);
            summarize(&rounds, 1.0).with_known_error(KnownError { clock_ns, instrument_ns: 30.0 })
        }
        fn between(a: &Summary, b: &Summary) -> Difference {
            quantiles(a, b)[1].1.unwrap()
        }
        let exact = between(&run(0.0, 0.0), &run(1000.0, 0.0));
        assert!(exact.excludes_zero() && exact.interval.unwrap().low.0 > 990.0, "{exact:?}");
        let bounded = between(&run(0.0, 900.0), &run(1000.0, 700.0));
        let ends = bounded.interval.unwrap();
        assert!((ends.low.0 - exact.interval.unwrap().low.0 + 1600.0).abs() < 1e-9, "{ends:?}");
        assert!((ends.high.0 - exact.interval.unwrap().high.0 - 1600.0).abs() < 1e-9);
        assert!(!bounded.excludes_zero());
        let p50 = |summary: &Summary| summary.quantile(0.5).unwrap().interval.unwrap();
        let (own, wide) = (p50(&run(0.0, 0.0)), p50(&run(0.0, 900.0)));
        assert!((own.low.0 - wide.low.0 - 900.0).abs() < 1e-9);
        assert!((wide.high.0 - own.high.0 - 900.0).abs() < 1e-9);
        assert!((3002.0 - own.low.0) > 29.0 && own.high.0 < 3006.0, "{own:?}");
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
        let excludes =
            |low, high| Difference { relative_interval: within(low, high), ..d }.excludes_zero();
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
        let rate =
            |value| Rate { value, interval: None, basis: Basis::OneRound, rounds: Vec::new() };
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
        let missing =
            |a: f64, b: f64| figures(Some((a, None).into()), Some((b, None).into())).unwrap_err();
        assert_eq!(missing(f64::INFINITY, f64::INFINITY), Missing::BothInfinite);
        assert_eq!(missing(f64::INFINITY, f64::NAN), Missing::TooFew);
        assert_eq!(missing(f64::NAN, f64::INFINITY), Missing::TooFew);
    }
}
