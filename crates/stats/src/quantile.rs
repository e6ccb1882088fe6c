//! Nearest-rank quantiles and their order-statistic intervals.
//!
//! Nothing here interpolates: a quantile is a value that was measured.

use super::{CONFIDENCE, Interval, Value};

/// So many samples must lie beyond a quantile before it is shown. With ten, the relative
/// standard error of the share beyond it is 1/sqrt(10), about 32 %.
pub const LEAST_BEYOND: f64 = 10.0;

/// Above this effective number of samples the binomial's normal limit gives the ranks. The limit's
/// error is below one rank of 2^30 there, and the exact walk would take longer than a millisecond.
const EXACT_UP_TO: u64 = 1 << 30;

/// What an interval leaves out on each side.
const TAIL: f64 = (1.0 - CONFIDENCE) / 2.0;

/// The two-sided 95 % point of the normal distribution.
pub(super) const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Samples in rising order, however they are kept. Ranks count from 1.
pub trait Ranked {
    /// Number of samples, lost ones included.
    fn count(&self) -> u64;
    /// The sample of a rank from 1 to [`Ranked::count`]; a rank outside is moved to the nearest.
    /// Must not be called where the count is 0.
    fn at_rank(&self, rank: u64) -> f64;
    /// Samples at or below a value in ns: lets sorted rounds be pooled without a merge.
    fn count_at_most(&self, ns: f64) -> u64;

    /// Finite samples.
    fn finite(&self) -> u64 {
        self.count_at_most(f64::MAX)
    }
}

/// The nearest rank ceil(p n) of `n` samples, from 1; 0 without samples.
///
/// The product may miss a whole number by the rounding of `p` (0.07 * 100 > 7); a product within
/// four units in the last place of a whole number is taken to be it.
pub fn rank(p: f64, n: u64) -> u64 {
    let product = p * n as f64;
    let whole = product.round();
    let near = (product - whole).abs() <= 4.0 * f64::EPSILON * product.abs();
    let rank = if near { whole } else { product.ceil() };
    (rank as u64).max(1).min(n)
}

/// The fewest samples for which a quantile is shown: 10/(1-p), for p < 0.5 10/p.
pub fn least_samples(p: f64) -> u64 {
    let beyond = p.min(1.0 - p);
    // 1 - 0.9 is not 0.1: without the last factor 10/(1-p) would be 101 and not 100.
    (LEAST_BEYOND / beyond * (1.0 - 1e-9)).ceil() as u64
}

/// The quantile of samples in rising order; `None` where n is too small for it.
pub fn quantile(samples: &impl Ranked, p: f64) -> Option<Value> {
    let n = samples.count();
    (n > 0 && n >= least_samples(p)).then(|| Value(samples.at_rank(rank(p, n))))
}

/// Ranks of the 95 % interval of quantile `p` among `n` samples that are worth `effective_n`
/// independent ones: that of the lower bound, from 1, and that of the upper one, to n. `None` is a
/// bound that the samples cannot give.
///
/// With m independent samples the number of those at or below the true quantile is B ~ Bin(m, p),
/// whatever the distribution. The interval is [X(l), X(u)] with l the largest and u the smallest
/// rank for which P(B < l) <= 2.5 % and P(B >= u) <= 2.5 % (David & Nagaraja, Order Statistics,
/// 7.1), so it covers with at least 95 %. For dependent samples m is the whole part of the
/// effective number, at least 1, and what bounds the share B/m bounds the share of the n samples:
/// l becomes floor((l-1) n/m) + 1 and u becomes ceil(u n/m), both rounded away from the quantile.
/// For m = n they stay as they are.
pub fn rank_interval(p: f64, n: u64, effective_n: f64) -> [Option<u64>; 2] {
    if n == 0 || !(p > 0.0 && p < 1.0) {
        return [None, None];
    }
    let m = if effective_n >= n as f64 { n } else { (effective_n.max(1.0) as u64).clamp(1, n) };
    let (l, u) = binomial_bounds(m, p);
    // u128: n * m may pass 2^64 where a histogram counted for days.
    let scale = |k: u64| u128::from(k) * u128::from(n);
    let low = (l > 0).then(|| (scale(l - 1) / u128::from(m)) as u64 + 1);
    let high = (u <= m).then(|| scale(u).div_ceil(u128::from(m)) as u64);
    [low, high]
}

/// The order-statistic interval of a quantile; a bound that the samples cannot give is infinite.
pub fn order_interval(samples: &impl Ranked, p: f64, effective_n: f64) -> Interval {
    let [low, high] = rank_interval(p, samples.count(), effective_n);
    Interval {
        low: Value(low.map_or(f64::NEG_INFINITY, |r| samples.at_rank(r))),
        high: Value(high.map_or(f64::INFINITY, |r| samples.at_rank(r))),
    }
}

/// The interval of the median of what a few independent values were drawn from, by its order
/// statistics; the smallest and the largest value where they are too few for 95 % (five cover with
/// 93.75 %, six with 96.9 %). `None` for fewer than two.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let mut rising = values.to_vec();
    rising.sort_by(f64::total_cmp);
    let n = rising.len() as u64;
    let (low, high) = binomial_bounds(n, 0.5);
    let at = |rank: u64| Value(rising[rank.clamp(1, n) as usize - 1]);
    Some(Interval { low: at(low), high: at(high) })
}

/// The largest l with P(B < l) <= 2.5 % and the smallest u with P(B >= u) <= 2.5 %, B ~ Bin(n, p).
///
/// Exact: the probabilities relative to the mode follow from their ratios,
/// P(k+1)/P(k) = (n-k)/(k+1) * p/(1-p), and are summed outward until they vanish, some 9 standard
/// deviations each way, and divided by their sum. (statrs' incomplete beta function stops after
/// 140 terms of its continued fraction, which needs about sqrt(n) of them.)
fn binomial_bounds(n: u64, p: f64) -> (u64, u64) {
    let nf = n as f64;
    if n > EXACT_UP_TO {
        let half = NORMAL_975 * (nf * p * (1.0 - p)).sqrt();
        let low = (nf * p - half).floor().max(0.0) as u64;
        return (low, ((nf * p + half).ceil() as u64 + 1).min(n + 1));
    }
    let odds = p / (1.0 - p);
    let mode = (((nf + 1.0) * p) as u64).min(n);
    // n - B is binomial too, with the inverse of the odds.
    let high = n + 1 - lower_bound(n, 1.0 / odds, n - mode);
    (lower_bound(n, odds, mode), high)
}

/// The largest l with P(B < l) <= 2.5 %, of `n` samples with these odds and this mode.
fn lower_bound(n: u64, odds: f64, mode: u64) -> u64 {
    let down = |k: u64, w: f64| w * k as f64 / ((n - k + 1) as f64 * odds);
    let up = |k: u64, w: f64| w * (n - k) as f64 / (k + 1) as f64 * odds;
    let (mut below, mut above) = (0.0, 0.0);
    let (mut k, mut w) = (mode, 1.0);
    while k > 0 && w > 1e-18 {
        w = down(k, w);
        k -= 1;
        below += w;
    }
    (k, w) = (mode, 1.0);
    while k < n && w > 1e-18 {
        w = up(k, w);
        k += 1;
        above += w;
    }
    let allowed = TAIL * (below + 1.0 + above);
    let (mut low, mut w) = (mode, 1.0);
    while low > 0 && below > allowed {
        w = down(low, w);
        low -= 1;
        below -= w;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::super::pooled::Run;
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn ranks_are_not_moved_by_the_rounding_of_p() {
        assert_eq!(rank(0.07, 100), 7);
        assert_eq!(rank(0.99, 100), 99);
        assert_eq!(rank(0.999, 1_000), 999);
        assert_eq!(rank(0.9999, 10_000_000), 9_999_000);
        assert_eq!(rank(0.5, 5), 3);
        assert_eq!(rank(0.5, 0), 0);
    }

    #[test]
    fn of_nothing_and_of_the_extremes_there_are_no_bounds() {
        for (p, n) in [(0.5, 0), (0.0, 100), (1.0, 100)] {
            assert_eq!(rank_interval(p, n, n as f64), [None, None], "p = {p}, n = {n}");
        }
    }

    #[test]
    fn the_fewest_samples_with_bounds_have_their_extremes() {
        assert_eq!(rank_interval(0.5, 6, 6.0), [Some(1), Some(6)]);
        let two = Interval { low: Value(1.0), high: Value(3.0) };
        assert_eq!(median_interval(&[3.0, 1.0]), Some(two));
    }

    #[test]
    fn very_many_samples_have_the_ranks_of_the_normal_distribution() {
        let n = 1_u64 << 31;
        // n/2 -+ 1.96 sqrt(n/4) = 2^30 -+ 45413.3, rounded outward, and one more above.
        let known = [Some((1 << 30) - 45_414), Some((1 << 30) + 45_415)];
        assert_eq!(rank_interval(0.5, n, n as f64), known);
        assert_eq!(rank_interval(1.0 - 1e-9, n, n as f64)[1], None);
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let wanted = [(0.1, 100), (0.5, 20), (0.9, 100), (0.99, 1_000), (0.9999, 100_000)];
        for (p, least) in wanted {
            assert_eq!(least_samples(p), least, "p = {p}");
        }
        let thousand: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(
            quantile(&Run::sorted(&thousand), 0.999),
            None,
            "T3: never silently the maximum"
        );
        assert_eq!(quantile(&Run::sorted(&thousand), 0.99), Some(Value(989.0)));
        assert_eq!(quantile(&Run::sorted(&[]), 0.5), None);
    }

    #[test]
    fn bounds_are_those_of_the_binomial_distribution() {
        for n in [1_u64, 2, 5, 6, 20, 100, 999, 2_000] {
            for p in [0.1, 0.5, 0.9, 0.99, 0.999] {
                let b = Binomial::new(p, n).unwrap();
                let below = |k: u64| if k == 0 { 0.0 } else { b.cdf(k - 1) };
                let l = (0..=n).rev().find(|&k| below(k) <= 0.025).unwrap();
                let u = (0..=n + 1).find(|&k| 1.0 - below(k) <= 0.025 + 1e-12).unwrap();
                assert_eq!(binomial_bounds(n, p), (l, u), "n = {n}, p = {p}");
            }
        }
    }

    #[test]
    fn the_median_of_ten_lies_between_the_second_and_the_ninth() {
        let known = [Some(2), Some(9)];
        assert_eq!(rank_interval(0.5, 10, 10.0), known, "Conover's table A3");
        let none = [None, None];
        assert_eq!(rank_interval(0.5, 1_000, 5.9), none, "five samples give no 95 % interval");
    }

    #[test]
    fn the_exact_ranks_meet_their_normal_limit() {
        let n = EXACT_UP_TO;
        for p in [0.5, 0.99, 0.9999] {
            let exact = binomial_bounds(n, p);
            let limit = binomial_bounds(n + 1, p);
            assert!(exact.0.abs_diff(limit.0) <= 2, "{exact:?} {limit:?}");
            assert!(exact.1.abs_diff(limit.1) <= 2, "{exact:?} {limit:?}");
        }
    }

    #[test]
    fn days_of_samples_overflow_no_rank() {
        let n = 8_640_000_000_000;
        let [low, high] = rank_interval(0.9999, n, n as f64 / 3.0);
        let centre = rank(0.9999, n);
        assert!(low.unwrap() < centre && centre < high.unwrap());
        assert!(high.unwrap() <= n);
    }

    proptest! {
        #[test]
        fn nearest_rank_is_the_smallest_sample_with_p_of_all_at_or_below(
            mut samples in prop::collection::vec(-1e6..1e6_f64, 1..300), p in 1_u32..100,
        ) {
            samples.sort_by(f64::total_cmp);
            let n = samples.len();
            let naive = samples.iter().position(|x| {
                samples.iter().filter(|y| *y <= x).count() * 100 >= p as usize * n
            }).unwrap();
            let r = rank(f64::from(p) / 100.0, n as u64);
            prop_assert_eq!(samples[naive], Run::sorted(&samples).at_rank(r));
        }

        #[test]
        fn intervals_enclose_their_quantile(n in 1_u64..100_000, m in 1.0..100_000.0_f64) {
            for p in [0.1, 0.5, 0.9, 0.99] {
                let [low, high] = rank_interval(p, n, m);
                prop_assert!(low.is_none_or(|l| (1..=rank(p, n)).contains(&l)));
                prop_assert!(high.is_none_or(|u| (rank(p, n)..=n).contains(&u)));
            }
        }
    }
}
