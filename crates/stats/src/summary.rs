//! A distribution over all rounds of a run, from raw samples or from histograms.

use super::between::Inversion;
use super::effective::effective_n;
use super::pooled::{Bins, Pooled, Run};
use super::quantile::{Ranked, least_samples, median_interval, order_interval, quantile, rank};
use super::student::mean_sd;
use super::{Interval, QUANTILES, Quantile, RoundSummary, Summary, Value};
use wiregauge_sample::histogram::{LiveHistogram, RELATIVE_ERROR};

/// Figures of durations in ns, one slice per round, each in the order of time; +infinity is a lost
/// message, and NaN is taken for one. `threshold_ns` is that of [`Summary::above_threshold`].
///
/// Every quantile is of all samples of all rounds together, which all count the same. Its interval
/// is the union of two, since each knows what the other cannot:
///
/// - `within`: order statistics of the pooled samples with their effective number. It covers what
///   chance does within the rounds, and takes what differs between them for fixed.
/// - `between`: what each fresh process brings (placement, connections, clock rates), from a few
///   rounds. It is itself the union of the shares' interval (`stats::between`), which holds where
///   rounds differ in their tails, and of the order statistics of the rounds' own quantiles, which
///   hold where they differ in their levels.
///
/// The union covers at least as often as the better of the two, encloses the value (`within` does),
/// and never hides that rounds disagree. Its price is some width where both say the same.
///
/// Costs one sorted copy of the samples and O(n) per quantile; extra memory is that copy.
pub fn summarize<R: AsRef<[f64]>>(rounds: &[R], threshold_ns: f64) -> Summary {
    let runs: Vec<Run> = rounds.iter().map(|r| Run::sorted(r.as_ref())).collect();
    let samples = rounds.iter().flat_map(|r| r.as_ref().iter().copied());
    let (mean, sd) = mean_sd(samples.filter(|x| x.is_finite()));
    let means: Vec<f64> = rounds.iter().map(|r| mean_of_finite(r.as_ref())).collect();
    let effective = |_, q| Some(effective_n(rounds, q));
    assemble(&Pooled(runs), &means, (mean, sd), threshold_ns, Reading::default(), effective)
}

/// The mean of the finite samples of a round. Out of line: in line, the figures of 10^7 samples
/// took 1.18 s instead of 0.77 (`bench/stats.rs`).
#[inline(never)]
fn mean_of_finite(samples: &[f64]) -> f64 {
    mean_sd(samples.iter().copied().filter(|x| x.is_finite())).0
}

/// Figures from the histograms of the rounds, where not every sample was kept.
///
/// Quantiles are within [`RELATIVE_ERROR`] of a sample, and intervals are wider by it. A histogram
/// has no order of time, so the effective number comes from the samples that were kept raw (`raw`,
/// in the order of time, any part of the rounds): their effective share of their number. Where
/// they are fewer than the quantile needs, there is no interval `within`, and `effective_n` is the
/// number of rounds, the only samples that are independent for certain. Each histogram may have a
/// unit of its own; `threshold_ns` is as in [`summarize`].
pub fn summarize_live<R: AsRef<[f64]>>(
    rounds: &[LiveHistogram],
    raw: &[R],
    threshold_ns: f64,
) -> Summary {
    let finite: u64 = rounds.iter().map(|h| h.totals.finite).sum();
    let weighted = |h: &LiveHistogram| {
        let share = h.totals.finite as f64 / finite as f64;
        h.mean_ns().map(|m| m * share)
    };
    let mean = match finite {
        0 => f64::NAN,
        _ => rounds.iter().filter_map(weighted).sum(),
    };
    let squares: f64 = rounds.iter().map(|h| h.squares_about(mean)).sum();
    let sd = if finite < 2 { f64::NAN } else { (squares / (finite - 1) as f64).sqrt() };
    let pooled = Pooled(rounds.iter().map(Bins::new).collect());
    let half_unit = rounds.iter().map(|h| h.totals.unit_ns / 2.0).fold(0.0, f64::max);
    let reading = Reading { relative: RELATIVE_ERROR, absolute_ns: half_unit };

    let kept: u64 = raw.iter().map(|r| r.as_ref().len() as u64).sum();
    let all = pooled.count() as f64;
    let effective = |p: f64, q: f64| {
        (kept >= least_samples(p)).then(|| (effective_n(raw, q) / kept as f64 * all).max(1.0))
    };
    let means: Vec<f64> = rounds.iter().map(|h| h.mean_ns().unwrap_or(f64::NAN)).collect();
    assemble(&pooled, &means, (mean, sd), threshold_ns, reading, effective)
}

/// How far a value that was read may lie from the sample that it stands for.
#[derive(Clone, Copy, Default)]
struct Reading {
    relative: f64,
    absolute_ns: f64,
}

impl Reading {
    /// An interval moved outward by the error of its bounds, so that it still covers.
    fn widen(self, i: Interval) -> Interval {
        let error = |x: f64| (x.abs() * self.relative).max(self.absolute_ns);
        // An infinite bound is not read; infinity minus infinity is no number.
        let moved = |x: f64, sign: f64| if x.is_finite() { x + sign * error(x) } else { x };
        Interval { low: Value(moved(i.low.0, -1.0)), high: Value(moved(i.high.0, 1.0)) }
    }
}

/// Puts a summary together, of rounds with these means. `effective` gives the effective number for
/// p and a quantile's value, or `None` where it cannot be known.
fn assemble<T: Ranked>(
    pooled: &Pooled<T>,
    means: &[f64],
    (mean, sd): (f64, f64),
    threshold_ns: f64,
    reading: Reading,
    effective: impl Fn(f64, f64) -> Option<f64>,
) -> Summary {
    let rounds = &pooled.0;
    let count = pooled.count();
    let of_round = |(r, mean): (&T, &f64)| RoundSummary {
        count: r.count(),
        quantiles: QUANTILES.iter().map(|p| quantile(r, *p)).collect(),
        min: Value(ranked(r, 1)),
        max: Value(ranked(r, r.count())),
        mean: *mean,
    };
    let summaries: Vec<RoundSummary> = rounds.iter().zip(means).map(of_round).collect();
    let inversion = Inversion::new(pooled);
    let quantiles = QUANTILES.iter().enumerate().map(|(i, &p)| {
        let of_rounds: Option<Vec<f64>> =
            summaries.iter().map(|r| r.quantiles[i].map(|v| v.0)).collect();
        let levels = of_rounds.and_then(|values| median_interval(&values));
        let shares = inversion.as_ref().map(|inversion| inversion.interval(p));
        let between = shares.map(|shares| levels.map_or(shares, |levels| shares.union(levels)));
        pooled_quantile(pooled, p, between, reading, &effective)
    });
    let quantiles = quantiles.collect();
    let medians = rounds.iter().filter(|r| r.count() > 0).map(|r| at(r, 0.5));
    let (_, sd_between) = mean_sd(medians.filter(|m| m.is_finite()));
    let finite = pooled.finite();
    Summary {
        count,
        lost: count - finite,
        min: Value(ranked(pooled, 1)),
        max: Value(ranked(pooled, count)),
        max_finite: Value(if finite > 0 { pooled.at_rank(finite) } else { f64::NAN }),
        mean,
        sd,
        quantiles,
        threshold: threshold_ns,
        above_threshold: count - pooled.count_at_most(threshold_ns),
        rounds: summaries,
        sd_between: (!sd_between.is_nan()).then_some(sd_between),
        iqr_within: iqr_within(rounds),
    }
}

/// One quantile with its intervals.
fn pooled_quantile<T: Ranked>(
    pooled: &Pooled<T>,
    p: f64,
    between: Option<Interval>,
    reading: Reading,
    effective: impl Fn(f64, f64) -> Option<f64>,
) -> Quantile {
    let (n, value) = (pooled.count(), quantile(pooled, p));
    let effective_n = if n == 0 { None } else { effective(p, at(pooled, p)) };
    let within = value.and(effective_n).map(|m| reading.widen(order_interval(pooled, p, m)));
    let between = value.and(between).map(|i| reading.widen(i));
    Quantile {
        p,
        value,
        interval: within.zip(between).map(|(a, b)| a.union(b)).or(within).or(between),
        within,
        between,
        effective_n: effective_n.unwrap_or((pooled.0.len() as u64).min(n) as f64),
    }
}

fn at(samples: &impl Ranked, p: f64) -> f64 {
    samples.at_rank(rank(p, samples.count()))
}

/// The sample of this rank; NaN where there are no samples.
fn ranked(samples: &impl Ranked, rank: u64) -> f64 {
    if samples.count() == 0 { f64::NAN } else { samples.at_rank(rank) }
}

/// Median over the rounds of the difference of their quartiles; NaN where there are no samples.
fn iqr_within<T: Ranked>(rounds: &[T]) -> f64 {
    let range = |r: &T| {
        let (low, high) = (at(r, 0.25), at(r, 0.75));
        // Where even the lower quartile was lost, infinity minus infinity is no number.
        if low == f64::INFINITY { f64::INFINITY } else { high - low }
    };
    let mut ranges: Vec<f64> = rounds.iter().filter(|r| r.count() > 0).map(range).collect();
    ranges.sort_by(f64::total_cmp);
    match ranges.len() {
        0 => f64::NAN,
        n => ranges[rank(0.5, n as u64) as usize - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ar1, iid, normal, random};
    use super::*;

    fn of(summary: &Summary, p: f64) -> &Quantile {
        summary.quantiles.iter().find(|q| q.p == p).unwrap()
    }

    fn encloses(interval: Option<Interval>, x: f64) -> bool {
        interval.is_some_and(|i| i.low.0 <= x && x <= i.high.0)
    }

    #[test]
    fn t1_the_deviation_of_normal_delays_is_found_within_five_percent() {
        let s = summarize(&[normal(&mut random(1), 20_000, 1000.0, 300.0)], 2000.0);
        assert!((s.sd / 300.0 - 1.0).abs() < 0.05 && (s.mean / 1000.0 - 1.0).abs() < 0.01);
        assert!(encloses(of(&s, 0.5).interval, 1000.0));
        assert!(encloses(of(&s, 0.99).interval, 1000.0 + 2.3263 * 300.0));
    }

    #[test]
    fn t2_one_stall_is_the_maximum_and_moves_the_mean() {
        let mut x = vec![1_000.0; 1000];
        x[500] = 5_000_000.0;
        let s = summarize(&[x], 10_000.0);
        assert_eq!((s.max, s.max_finite, s.above_threshold), (Value(5e6), Value(5e6), 1));
        assert!((s.mean - 5_999.0).abs() < 1e-6);
        assert_eq!(s.rounds[0].max, Value(5e6));
    }

    #[test]
    fn t3_a_thousand_samples_show_no_high_quantile() {
        let s = summarize(&[iid(&mut random(2), 1000)], 1.0);
        let shown: Vec<bool> = s.quantiles.iter().map(|q| q.value.is_some()).collect();
        assert_eq!(shown, [true, true, true, true, false, false]);
        assert!(s.quantiles.iter().all(|q| q.value.is_some() == q.interval.is_some()));
    }

    #[test]
    fn t4_p99_is_of_the_whole_run() {
        let slow = |i: usize| if i < 500_000 && i.is_multiple_of(50) { 100.0 } else { 1.0 };
        let x: Vec<f64> = (0..1_000_000).map(slow).collect();
        let s = summarize(&[x], 10.0);
        assert_eq!(s.above_threshold, 10_000);
        assert_eq!(of(&s, 0.99).value, Some(Value(1.0)));
        assert_eq!(of(&s, 0.999).value, Some(Value(100.0)));
        assert!(of(&s, 0.99).interval.unwrap().high >= Value(100.0), "the halves disagree");
    }

    #[test]
    fn t9_one_percent_of_loss_makes_higher_quantiles_infinite() {
        let lost =
            |i: usize| if i.is_multiple_of(100) { f64::INFINITY } else { 1.0 + (i % 7) as f64 };
        let rounds = vec![(0..20_000).map(lost).collect::<Vec<f64>>(); 3];
        let s = summarize(&rounds, 100.0);
        assert_eq!((s.count, s.lost, s.above_threshold), (60_000, 600, 600));
        assert_eq!(of(&s, 0.999).value, Some(Value(f64::INFINITY)));
        assert_eq!(of(&s, 0.9).value, Some(Value(7.0)));
        assert_eq!((s.max, s.max_finite), (Value(f64::INFINITY), Value(7.0)));
        assert!(s.mean.is_finite() && s.sd.is_finite());
    }

    #[test]
    fn t13_one_outlier_leaves_the_quantiles() {
        let x = iid(&mut random(3), 10_000);
        let mut y = x.clone();
        y[1234] = 1e8;
        let (a, b) = (summarize(&[&x], 1e3), summarize(&[&y], 1e3));
        for p in [0.1, 0.5, 0.9] {
            assert!((of(&a, p).value.unwrap().0 / of(&b, p).value.unwrap().0 - 1.0).abs() < 5e-3);
        }
        assert_eq!(b.max, Value(1e8));
    }

    #[test]
    fn nothing_and_all_lost_are_said_without_a_panic() {
        let none = summarize::<Vec<f64>>(&[], 1.0);
        assert!(none.count == 0 && none.mean.is_nan() && none.sd_between.is_none());
        let empty = summarize(&[vec![], vec![]], 1.0);
        assert!(empty.quantiles.iter().all(|q| q.value.is_none()) && empty.max.0.is_nan());
        let lost = summarize(&[vec![f64::INFINITY; 100], vec![f64::NAN; 100]], 1.0);
        assert_eq!((lost.count, lost.lost, lost.above_threshold), (200, 200, 200));
        assert_eq!(of(&lost, 0.5).value, Some(Value(f64::INFINITY)));
        assert!(lost.max_finite.0.is_nan() && lost.iqr_within == f64::INFINITY);
        for s in [none, empty, lost] {
            let json = serde_json::to_string(&s).unwrap();
            let back: Summary = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), json);
        }
    }

    #[test]
    fn negative_durations_keep_their_order() {
        let s = summarize(&[vec![-5.0, 3.0, -1.0, 0.0, -0.0]], 0.0);
        assert_eq!((s.min, s.max, s.above_threshold), (Value(-5.0), Value(3.0), 1));
    }

    #[test]
    fn a_histogram_says_the_same_as_the_samples() {
        let rounds: Vec<Vec<f64>> = (0..3)
            .map(|s| ar1(&mut random(s), 50_000, 0.9).iter().map(|x| x * 1000.0).collect())
            .collect();
        let histograms: Vec<LiveHistogram> = rounds
            .iter()
            .map(|r| {
                let mut h = LiveHistogram::new(1.0 / 64.0).unwrap();
                r.iter().for_each(|x| h.record_ns(*x));
                h
            })
            .collect();
        let raw = summarize(&rounds, 2000.0);
        let live = summarize_live(&histograms, &rounds, 2000.0);
        for (a, b) in raw.quantiles.iter().zip(&live.quantiles) {
            let near = |x: Value, y: Value| (x.0 / y.0 - 1.0).abs() < 1e-3;
            assert!(near(a.value.unwrap(), b.value.unwrap()));
            let (i, j) = (a.interval.unwrap(), b.interval.unwrap());
            assert!(
                (i.low.0 / j.low.0 - 1.0).abs() < 0.01 && (i.high.0 / j.high.0 - 1.0).abs() < 0.01
            );
            assert!((a.effective_n / b.effective_n - 1.0).abs() < 0.1);
        }
        assert!((live.mean / raw.mean - 1.0).abs() < 1e-6);
        assert!((live.sd / raw.sd - 1.0).abs() < 1e-3);
        assert!((live.max.0 / raw.max.0 - 1.0).abs() < 1e-6);
        let no_order = summarize_live::<Vec<f64>>(&histograms, &[], 2000.0);
        assert!(no_order.quantiles.iter().all(|q| q.within.is_none() && q.effective_n == 3.0));
        assert!(of(&no_order, 0.5).interval.is_some());
    }

    #[test]
    fn a_bound_moves_outward_by_the_larger_of_the_two_errors_of_reading() {
        let reading = Reading { relative: 0.01, absolute_ns: 2.0 };
        let widened = |low: f64, high: f64| {
            let found = reading.widen(Interval { low: Value(low), high: Value(high) });
            (found.low.0, found.high.0)
        };
        assert_eq!(widened(100.0, 1000.0), (98.0, 1010.0));
        assert_eq!(widened(-1000.0, f64::INFINITY), (-1010.0, f64::INFINITY));
    }

    #[test]
    fn a_histogram_has_the_moments_of_all_rounds_and_intervals_from_enough_raw_samples() {
        let histogram = |values: &[(i64, u64)]| {
            let mut all = LiveHistogram::new(2.0).unwrap();
            values.iter().for_each(|(units, times)| all.record_many(*units, *times));
            all
        };
        // 2 ns eight times, 6 ns eight times, 4 ns four times: mean 4, squares 16 * 4.
        let rounds = [histogram(&[(1, 8), (2, 4)]), histogram(&[(3, 8)])];
        let raw: Vec<f64> = [2.0, 6.0, 4.0, 2.0, 6.0].repeat(4);
        let found = summarize_live(&rounds, &[&raw], 5.0);
        assert!((found.mean - 4.0).abs() < 1e-12, "{}", found.mean);
        assert!((found.sd - (64.0_f64 / 19.0).sqrt()).abs() < 1e-12, "{}", found.sd);
        let median = of(&found, 0.5);
        assert!(median.value == Some(Value(4.0)) && median.within.is_some());
        // Of two rounds that differ so much it is all that was measured, and half a unit more.
        assert_eq!(median.between, Some(Interval { low: Value(1.0), high: Value(7.0) }));
        let fewer = summarize_live(&rounds, &[&raw[1..]], 5.0);
        assert_eq!(of(&fewer, 0.5).within, None);
        let two = summarize_live::<Vec<f64>>(&[histogram(&[(1, 1), (3, 1)])], &[], 5.0);
        assert!((two.sd - 8.0_f64.sqrt()).abs() < 1e-12, "{}", two.sd);
    }
}
