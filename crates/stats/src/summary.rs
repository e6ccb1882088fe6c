//! A distribution over all rounds of a run, from raw samples or from histograms.

use super::between::Inversion;
use super::effective::effective_n;
use super::pooled::{Bins, Pooled, Run};
use super::quantile::{NORMAL_975, Ranked, least_samples, order_interval, quantile, rank};
use super::student::{mean_sd, t_975};
use super::typical::{Typical, typical};
use super::{Basis, Interval, KnownError, QUANTILES, Quantile, RoundSummary, Summary, Value};
use wiregauge_sample::histogram::{LiveHistogram, RELATIVE_ERROR};

/// Figures of durations in ns, one slice per round, each in the order of time; +infinity is a lost
/// message, and NaN is taken for one. `threshold_ns` is that of [`Summary::above_threshold`].
///
/// Every quantile is that of a typical round ([`typical`]): the centre of the rounds' own
/// quantiles, each of which has what its fresh process brought (placement, connections, clock
/// rates) and what chance did within it. All rounds count the same, however long they are. So does
/// the mean.
///
/// Where a round has too few samples for a quantile and all rounds together have enough, the
/// quantile is that of all samples. Its interval is the union of `within`, order statistics with
/// the effective number of samples, and of what the rounds' shares of lower samples allow
/// (`stats::between`), stretched by how far the level of another round may lie from those of the
/// ones that were measured.
///
/// Costs one sorted copy of the samples and O(n) per quantile; extra memory is that copy.
pub fn summarize<R: AsRef<[f64]>>(rounds: &[R], threshold_ns: f64) -> Summary {
    let runs: Vec<Run> = rounds.iter().map(|r| Run::sorted(r.as_ref())).collect();
    let samples = rounds.iter().flat_map(|r| r.as_ref().iter().copied());
    let (_, sd) = mean_sd(samples.filter(|x| x.is_finite()));
    let means: Vec<f64> = rounds.iter().map(|r| mean_of_finite(r.as_ref())).collect();
    let effective = |_, q| Some(effective_n(rounds, q));
    assemble(&Pooled(runs), &means, sd, threshold_ns, Reading::default(), effective)
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
    assemble(&pooled, &means, sd, threshold_ns, reading, effective)
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
    sd: f64,
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
    let effective_of = |p| if count == 0 { None } else { effective(p, at(pooled, p)) };
    let mut quantiles: Vec<Quantile> = QUANTILES
        .iter()
        .enumerate()
        .map(|(number, &p)| {
            let sampled = summaries.iter().filter(|round| round.count > 0);
            let of_rounds: Option<Vec<f64>> =
                sampled.map(|round| round.quantiles[number].map(|value| value.0)).collect();
            let typical = of_rounds.and_then(|values| typical(&values));
            one_quantile(pooled, p, typical, reading, effective_of(p))
        })
        .collect();
    if quantiles.iter().any(|quantile| quantile.basis == Basis::Pooled) {
        let reach = level_reach(rounds, effective_of(0.5).map(|n| n / count as f64));
        for quantile in quantiles.iter_mut().filter(|one| one.basis == Basis::Pooled) {
            quantile.interval = quantile.interval.map(|interval| stretched(interval, reach));
        }
    }
    let finite_means: Vec<f64> = means.iter().copied().filter(|mean| mean.is_finite()).collect();
    let mean = typical(&finite_means);
    let medians = rounds.iter().filter(|r| r.count() > 0).map(|r| at(r, 0.5));
    let (_, sd_between) = mean_sd(medians.filter(|m| m.is_finite()));
    let finite = pooled.finite();
    Summary {
        count,
        lost: count - finite,
        min: Value(ranked(pooled, 1)),
        max: Value(ranked(pooled, count)),
        max_finite: Value(if finite > 0 { pooled.at_rank(finite) } else { f64::NAN }),
        mean: mean.map_or(f64::NAN, |mean| mean.value),
        mean_interval: mean.and_then(|mean| mean.interval),
        sd,
        quantiles,
        known_error: KnownError::default(),
        threshold: threshold_ns,
        above_threshold: count - pooled.count_at_most(threshold_ns),
        rounds: summaries,
        sd_between: (!sd_between.is_nan()).then_some(sd_between),
        iqr_within: iqr_within(rounds),
    }
}

/// Returns one quantile with its intervals: that of a typical round where there is one, else that
/// of all samples.
fn one_quantile<T: Ranked>(
    pooled: &Pooled<T>,
    p: f64,
    typical: Option<Typical>,
    reading: Reading,
    effective_n: Option<f64>,
) -> Quantile {
    let of_all = quantile(pooled, p);
    let within = of_all.and(effective_n).map(|m| reading.widen(order_interval(pooled, p, m)));
    let rounds = pooled.0.iter().filter(|round| round.count() > 0).count();
    let (value, interval, basis) = match typical {
        Some(found) => {
            let interval = found.interval.map(|interval| reading.widen(interval));
            (Some(Value(found.value)), interval, found.basis)
        }
        None if rounds < 2 => (of_all, None, Basis::OneRound),
        None => {
            let shares = Inversion::new(pooled).map(|shares| reading.widen(shares.interval(p)));
            let both = shares.map(|shares| within.map_or(shares, |within| shares.union(within)));
            (of_all, of_all.and(both), Basis::Pooled)
        }
    };
    let effective_n = effective_n.unwrap_or((pooled.0.len() as u64).min(pooled.count()) as f64);
    Quantile { p, value, interval, basis, within, effective_n }
}

/// Returns how far the level of another round may lie from those that were measured, on logarithms:
/// t(R-1) sqrt((1 + 1/R) (s^2 - w^2)), with s^2 the variance of the logarithms of the R rounds'
/// medians, and w^2 the mean variance that these have by chance within their rounds, from the width
/// of their order-statistic intervals. `share` is the effective share of the samples. 0 where the
/// rounds differ by no more than that, or have no logarithms.
fn level_reach<T: Ranked>(rounds: &[T], share: Option<f64>) -> f64 {
    let sampled: Vec<&T> = rounds.iter().filter(|round| round.count() > 0).collect();
    let logs = sampled.iter().map(|round| at(*round, 0.5).ln());
    let (_, sd) = mean_sd(logs.clone());
    let mut within = 0.0;
    for round in &sampled {
        let share = share.unwrap_or(f64::INFINITY);
        let interval = order_interval(*round, 0.5, share * round.count() as f64);
        let width = interval.high.0.ln() - interval.low.0.ln();
        within += if width.is_finite() { (width / (2.0 * NORMAL_975)).powi(2) } else { 0.0 };
    }
    let several = sampled.len() as f64;
    let excess = sd * sd - within / several;
    // NaN of medians that are not above 0, or lost.
    let t = t_975(several - 1.0).filter(|_| excess > 0.0 && excess.is_finite());
    t.map_or(0.0, |t| t * ((1.0 + 1.0 / several) * excess).sqrt())
}

/// Moves the ends of an interval outward by a factor, given as its logarithm.
fn stretched(interval: Interval, log: f64) -> Interval {
    let factors = [-log, log].map(f64::exp);
    let [low, high] = [interval.low.0, interval.high.0].map(|end| end.max(0.0));
    Interval {
        low: Value(interval.low.0.min(0.0) + low * factors[0]),
        high: Value(interval.high.0.min(0.0) + high * factors[1]),
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
        assert!(encloses(of(&s, 0.5).within, 1000.0));
        assert!(encloses(of(&s, 0.99).within, 1000.0 + 2.3263 * 300.0));
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
        assert!(s.quantiles.iter().all(|q| q.value.is_some() == q.within.is_some()));
        assert!(s.quantiles.iter().all(|q| q.interval.is_none() && q.basis == Basis::OneRound));
    }

    #[test]
    fn t4_p99_is_of_the_whole_run() {
        let slow = |i: usize| if i < 500_000 && i.is_multiple_of(50) { 100.0 } else { 1.0 };
        let x: Vec<f64> = (0..1_000_000).map(slow).collect();
        let s = summarize(&[x], 10.0);
        assert_eq!(s.above_threshold, 10_000);
        assert_eq!(of(&s, 0.99).value, Some(Value(1.0)));
        assert_eq!(of(&s, 0.999).value, Some(Value(100.0)));
        assert!(of(&s, 0.99).within.unwrap().high >= Value(100.0), "the halves disagree");
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
    fn another_round_may_lie_as_far_off_as_the_medians_scatter_beyond_chance() {
        fn round(level: f64) -> Run {
            Run::sorted(&[level; 30])
        }
        // Samples of a round are alike, so that chance within it has no part.
        let rounds = [1.0, 2.0, 4.0].map(round);
        // t(2) = 4.302653 and the standard deviation ln 2.
        let reach = 4.302_653 * (4.0_f64 / 3.0).sqrt() * 2.0_f64.ln();
        assert!((level_reach(&rounds, Some(1.0)) / reach - 1.0).abs() < 1e-6);
        assert_eq!(level_reach(&[round(3.0), round(3.0)], Some(1.0)), 0.0);
        assert_eq!(level_reach(&rounds[..1], Some(1.0)), 0.0);
        // Rounds that differ by chance alone.
        let alike = [4, 5, 6].map(|seed| Run::sorted(&iid(&mut random(seed), 400)));
        assert!(level_reach(&alike, Some(1.0)) < 0.3, "{}", level_reach(&alike, Some(1.0)));
        let interval = Interval { low: Value(-2.0), high: Value(3.0) };
        let moved = stretched(interval, 2.0_f64.ln());
        assert!(moved.low.0 == -2.0 && (moved.high.0 - 6.0).abs() < 1e-12, "{moved:?}");
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
        // Of all samples: each round has too few. Of two rounds that differ so much it is all that
        // was measured and half a unit more, and what another round may differ by.
        assert_eq!(median.basis, Basis::Pooled);
        let interval = median.interval.unwrap();
        assert!(interval.low.0 < 1.0 && interval.high.0 > 7.0, "{interval:?}");
        let fewer = summarize_live(&rounds, &[&raw[1..]], 5.0);
        assert_eq!(of(&fewer, 0.5).within, None);
        let two = summarize_live::<Vec<f64>>(&[histogram(&[(1, 1), (3, 1)])], &[], 5.0);
        assert!((two.sd - 8.0_f64.sqrt()).abs() < 1e-12, "{}", two.sd);
    }
}
