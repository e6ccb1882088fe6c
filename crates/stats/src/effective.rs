//! How many independent samples a correlated series is worth.
//!
//! What decides the width of a quantile's interval is the variance of the share of samples at or
//! below it, the mean of the indicator series I(x <= q) in the order of time. For independent
//! samples it is p(1-p)/n; for correlated ones tau times that, tau = 1 + 2 sum of the
//! autocorrelations. The effective number is n/tau.
//!
//! Every cost is O(n): the indicator is a set of bits, a lag of its autocovariance one AND and one
//! count of bits per 64 samples, and what reaches beyond the lags that are summed is found from
//! sums over blocks, each level an eighth as long as the one before.

use super::quantile::NORMAL_975;
use super::student::t_975;

/// A window of summed lags is long enough at this many tau (Sokal 1997, Monte Carlo Methods in
/// Statistical Mechanics, 3). Where correlation decays exponentially the lags left out hold
/// exp(-10) of the sum; longer windows only add noise, of relative variance 2(2M+1)/n.
const WINDOW: f64 = 5.0;
/// Lags summed at most for long series: so the lags of all levels cost at most O(n).
const LAGS: usize = 64;
/// Lags summed at most for short series, where blocks would be too few and time does not matter.
const LAGS_OF_SHORT: usize = 1024;
/// Words of bits combined per quantile where a series is short.
const WORK_OF_SHORT: usize = 1 << 22;
/// A level of blocks counts if it has at least this many in all rounds, ...
const LEAST_BLOCKS: usize = 64;
/// ... and this many in one round: the round's own mean takes one degree of freedom.
const LEAST_BLOCKS_OF_ROUND: usize = 16;
/// Blocks contradict the window below them where their variance is above what it foretells by so
/// many standard errors, sqrt(2/m) each.
const CONTRADICTION: f64 = 3.0;
/// Blocks of one level that make one of the next.
const COARSEN: usize = 8;

/// The indicator series of one round as a set of bits.
struct Indicator {
    words: Vec<u64>,
    len: usize,
    ones: u64,
}

impl Indicator {
    /// Which samples lie at or below `q`. Where `q` is infinite: which were not lost.
    fn at_most(series: &[f64], q: f64) -> Self {
        let q = q.min(f64::MAX);
        let word = |chunk: &[f64]| {
            chunk.iter().enumerate().fold(0_u64, |w, (i, x)| w | (u64::from(*x <= q) << i))
        };
        let words: Vec<u64> = series.chunks(64).map(word).collect();
        let ones = words.iter().map(|w| u64::from(w.count_ones())).sum();
        Indicator { words, len: series.len(), ones }
    }

    /// Number of ones among the first `k`.
    fn ones_of_first(&self, k: usize) -> u64 {
        let whole: u64 = self.words[..k / 64].iter().map(|w| u64::from(w.count_ones())).sum();
        let rest = self.words.get(k / 64).map_or(0, |w| w & ((1 << (k % 64)) - 1));
        whole + u64::from(rest.count_ones())
    }

    /// Number of positions that are one together with the position `k` later. Bits past the end
    /// are zero, so they add nothing.
    fn pairs(&self, k: usize) -> u64 {
        let (jump, shift) = (k / 64, k % 64);
        let later = &self.words[jump.min(self.words.len())..];
        if shift == 0 {
            let both = self.words.iter().zip(later).map(|(a, b)| u64::from((a & b).count_ones()));
            return both.sum();
        }
        let shifted = later.windows(2).map(|w| (w[0] >> shift) | (w[1] << (64 - shift)));
        let last = later.last().map(|w| w >> shift);
        let both = self.words.iter().zip(shifted.chain(last));
        both.map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }

    /// Sum over t of (I(t) - mean)(I(t+k) - mean).
    fn covariance_sum(&self, k: usize) -> f64 {
        let mean = self.ones as f64 / self.len as f64;
        let without_last = self.ones_of_first(self.len - k);
        let without_first = self.ones - self.ones_of_first(k);
        self.pairs(k) as f64 - mean * (without_last + without_first) as f64
            + (self.len - k) as f64 * mean * mean
    }
}

/// Effective number of independent samples for the quantile `q` of series in the order of time,
/// each round a series of its own: at least 1 and at most the number of samples.
///
/// Covariances are pooled over the rounds, each round about its own mean: what differs between
/// rounds is not correlation within one, and stands in the interval between rounds. A series that
/// is correlated over its whole length counts as a few samples. Negative correlation is not
/// credited. A lost sample (+infinity, or NaN) lies above every finite `q`; for an infinite `q`
/// it is the loss itself whose correlation counts. A constant indicator has no correlation.
pub fn effective_n<R: AsRef<[f64]>>(rounds: &[R], q: f64) -> f64 {
    let series: Vec<Indicator> = rounds
        .iter()
        .filter(|r| !r.as_ref().is_empty())
        .map(|r| Indicator::at_most(r.as_ref(), q))
        .collect();
    let n: usize = series.iter().map(|s| s.len).sum();
    if n < 2 {
        return n as f64;
    }
    (n as f64 / inflation(&series, n)).clamp(1.0, n as f64)
}

/// tau as estimated from one series, and how well.
#[derive(Clone, Copy)]
struct Estimate {
    tau: f64,
    /// Whether the window closed: the lags summed hold all of the correlation that they show.
    holds: bool,
    /// Degrees of freedom of the variance that it stands for.
    freedom: f64,
}

/// tau of the pooled indicator series: by the window of summed lags where that holds, from blocks
/// where it does not.
///
/// A window that has converged may still have missed a weak correlation over a long time (a slow
/// modulation of the share of slow messages): then sums over longer blocks vary more than it
/// foretells. So every level of blocks is asked, and the first that contradicts takes over, with a
/// window of its own. For sums of b samples tau = Var(sum)/(b Var(x)) * tau of the sums.
///
/// The variance behind tau is itself an estimate, and an interval must be wider for that as
/// Student's is: tau grows by (t/z)^2, t with the estimate's degrees of freedom. These are
/// n/(2M+1) for a window of M lags (the inverse of half its relative variance), and no more than
/// the spells of the rarer value that were seen, their samples over tau.
fn inflation(series: &[Indicator], n: usize) -> f64 {
    let shortest = series.iter().map(|s| s.len).min().unwrap_or(0);
    let pooled = |k: usize| {
        let sum: f64 = series.iter().map(|s| s.covariance_sum(k)).sum();
        sum / (n - k * series.len()) as f64
    };
    let variance = pooled(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let lags = (WORK_OF_SHORT / n.div_ceil(64)).clamp(LAGS, LAGS_OF_SHORT).min(shortest / 4);
    let mut best = window(variance, lags, n, pooled);

    let mut block = 64_usize;
    let mut blocks: Vec<Vec<f64>> = series
        .iter()
        .map(|s| s.words[..s.len / 64].iter().map(|w| f64::from(w.count_ones())).collect())
        .collect();
    while let Some((of_sums, m)) = blocks_variance(&blocks) {
        let ratio = of_sums / (block as f64 * variance);
        let limit = best.tau.max(1.0) * (1.0 + CONTRADICTION * (2.0 / m as f64).sqrt());
        if !best.holds || ratio > limit {
            let lags = LAGS.min(shortest / block / 4);
            let inner = window(of_sums, lags, m, |k| blocks_covariance(&blocks, k));
            best = Estimate { tau: ratio * inner.tau.max(1.0), ..inner };
        }
        block *= COARSEN;
        // What is left at the end is not a block.
        let coarser = |b: &Vec<f64>| b.chunks_exact(COARSEN).map(|c| c.iter().sum()).collect();
        blocks = blocks.iter().map(coarser).collect();
    }
    let tau = best.tau.max(1.0);
    let ones: u64 = series.iter().map(|s| s.ones).sum();
    let rarer = ones.min(n as u64 - ones) as f64;
    tau * student_factor(best.freedom.min(rarer / tau))
}

/// (t/z)^2, the two-sided 95 % points of Student's and of the normal distribution. Beyond 200
/// degrees of freedom by the first term of its expansion, 1 + (z^2+1)/(2 freedom), whose error is
/// below 1e-4 there; for less than one as for one.
fn student_factor(freedom: f64) -> f64 {
    let z2 = NORMAL_975 * NORMAL_975;
    if freedom > 200.0 {
        return 1.0 + (z2 + 1.0) / (2.0 * freedom);
    }
    t_975(freedom.max(1.0)).map_or(1.0, |t| t * t / z2)
}

/// tau by Sokal's self-consistent window. Where it did not close within `lags`, the largest sum on
/// the way; of so few samples that there is no lag to sum nothing is known.
///
/// The mean is estimated from the same n samples, which takes tau/n from every autocorrelation:
/// the factor 1 + (2M+1)/n gives it back (Wolff 2004, Monte Carlo errors with less errors, 49).
fn window(variance: f64, lags: usize, n: usize, covariance: impl Fn(usize) -> f64) -> Estimate {
    let estimate = |tau: f64, k: usize, holds: bool| {
        let share = (2 * k + 1) as f64 / n as f64;
        Estimate { tau: tau * (1.0 + share), holds, freedom: 1.0 / share }
    };
    if lags == 0 {
        return Estimate { tau: 1.0, holds: false, freedom: n as f64 };
    }
    let (mut tau, mut largest) = (1.0_f64, 1.0_f64);
    for k in 1..=lags {
        tau += 2.0 * covariance(k) / variance;
        largest = largest.max(tau);
        if k as f64 >= WINDOW * tau {
            return estimate(tau, k, true);
        }
    }
    estimate(largest, lags, false)
}

/// Variance of sums about the mean of their round, and their number; `None` where they are too
/// few.
fn blocks_variance(blocks: &[Vec<f64>]) -> Option<(f64, usize)> {
    let m: usize = blocks.iter().map(Vec::len).sum();
    if m < LEAST_BLOCKS || m < LEAST_BLOCKS_OF_ROUND * blocks.len() {
        return None;
    }
    let squares: f64 = blocks.iter().map(|b| products(b, 0)).sum();
    Some((squares / (m - blocks.len()) as f64, m))
}

/// Autocovariance of sums at lag `k`, pooled over the rounds.
fn blocks_covariance(blocks: &[Vec<f64>], k: usize) -> f64 {
    let pairs: usize = blocks.iter().map(|b| b.len().saturating_sub(k)).sum();
    let sum: f64 = blocks.iter().map(|b| products(b, k)).sum();
    if pairs == 0 { 0.0 } else { sum / pairs as f64 }
}

/// Sum over t of (x(t) - mean)(x(t+k) - mean).
fn products(x: &[f64], k: usize) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len().max(1) as f64;
    x.iter().zip(x.iter().skip(k)).map(|(a, b)| (a - mean) * (b - mean)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ar1, iid, random};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn independent_samples_are_worth_their_number() {
        let x = iid(&mut random(1), 100_000);
        for q in [0.5, 1.0, 3.0] {
            let worth = effective_n(&[&x], q) / x.len() as f64;
            assert!(worth > 0.9, "{worth} at {q}");
        }
    }

    /// I(k) of a Gaussian series with correlation r(k) at its median has correlation
    /// 2/pi asin r(k) (Sheppard 1899).
    #[test]
    fn the_median_of_an_autoregression_has_the_known_inflation() {
        let expected = |phi: f64| {
            let rho = |k: i32| 2.0 / std::f64::consts::PI * phi.powi(k).asin();
            1.0 + 2.0 * (1..3_000).map(rho).sum::<f64>()
        };
        for (phi, allowed) in [(0.5, 0.05), (0.9, 0.10), (0.99, 0.25)] {
            let x = ar1(&mut random(2), 400_000, phi);
            let tau = x.len() as f64 / effective_n(&[&x], 1.0);
            let error = tau / expected(phi) - 1.0;
            assert!(error.abs() < allowed, "phi {phi}: {tau}, not {}", expected(phi));
        }
    }

    #[test]
    fn a_step_in_the_middle_is_worth_a_few_samples() {
        for n in [1_000_usize, 100_000] {
            let x: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i >= n / 2))).collect();
            assert!(effective_n(&[&x], 0.5) < 20.0, "{}", effective_n(&[&x], 0.5));
        }
    }

    #[test]
    fn a_weak_slow_modulation_is_found_beyond_the_window() {
        // 2 % are slow in one half of each period of 20000, none in the other.
        let mut noise = random(3);
        let x: Vec<f64> = iid(&mut noise, 1_000_000)
            .iter()
            .enumerate()
            .map(|(i, u)| f64::from(u8::from(i % 20_000 < 10_000 && (-u).exp() < 0.02)))
            .collect();
        assert!(effective_n(&[&x], 0.5) < 0.1 * x.len() as f64);
    }

    #[test]
    fn rounds_that_differ_do_not_look_like_correlation() {
        let x = iid(&mut random(4), 20_000);
        let y: Vec<f64> = x.iter().map(|v| v + 0.5).collect();
        assert!(effective_n(&[&x, &y], 1.0) > 0.9 * 40_000.0);
    }

    #[test]
    fn bursts_of_loss_shrink_the_worth_of_an_infinite_quantile() {
        let x: Vec<f64> =
            (0..100_000).map(|i| if i % 1000 < 100 { f64::INFINITY } else { 1.0 }).collect();
        assert!(effective_n(&[&x], f64::INFINITY) < 10_000.0);
    }

    #[test]
    fn a_window_without_correlation_closes_at_five_lags() {
        let found = window(1.0, 64, 1000, |_| 0.0);
        assert!(found.holds && (found.tau - 1.011).abs() < 1e-12, "{}", found.tau);
        assert!((found.freedom - 1000.0 / 11.0).abs() < 1e-9);
    }

    #[test]
    fn constant_and_tiny_series_are_worth_their_number() {
        assert_eq!(effective_n(&[vec![7.0; 1000]], 7.0), 1000.0);
        assert_eq!(effective_n(&[vec![f64::INFINITY; 99]], f64::INFINITY), 99.0);
        assert_eq!(effective_n::<Vec<f64>>(&[], 1.0), 0.0);
        assert_eq!(effective_n(&[vec![], vec![1.0]], 1.0), 1.0);
        assert_eq!(effective_n(&[vec![1.0, 2.0]], 1.0), 1.0, "one spell of each is no spread");
    }

    proptest! {
        #[test]
        fn bits_give_the_same_covariance_as_products(
            x in prop::collection::vec(0.0..1.0_f64, 2..400), lag in 0_usize..399,
        ) {
            let k = lag % x.len();
            let bits = Indicator::at_most(&x, 0.4);
            let plain: Vec<f64> = x.iter().map(|v| f64::from(u8::from(*v <= 0.4))).collect();
            prop_assert!((bits.covariance_sum(k) - products(&plain, k)).abs() < 1e-9);
        }

        #[test]
        fn worth_lies_between_one_and_the_number(
            x in prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 1..300), 1..6),
            q in 0.0..1.0_f64,
        ) {
            let n: usize = x.iter().map(Vec::len).sum();
            let worth = effective_n(&x, q);
            prop_assert!((1.0..=n as f64).contains(&worth), "{}", worth);
        }
    }
}
