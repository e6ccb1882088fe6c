//! The row that judges intervals: how often they enclose what is true, over many seeded runs.

use super::Outcome;
use crate::stats::quantile::rank_interval;
use crate::stats::rate::{Delivered, rate};
use crate::stats::typical::typical;
use crate::stats::{Interval, Quantile, Summary, summarize};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// Runs of each kind: the share of those that cover is known within 1.1 % (one sigma).
const TRIALS: u64 = 400;
/// The same of rates, which cost less: within 0.3 %.
const RATE_TRIALS: u64 = 4000;
/// A right interval of 95 % covers so often in all but one of 30 shares of 400.
const LEAST: f64 = 0.93;
/// An interval that covers more often is too wide.
const MOST: f64 = 0.985;
/// Samples of a round.
const SAMPLES: usize = 1000;

fn normal(random: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(random)
}

/// Of the trials, the share whose interval encloses the truth.
fn share(trials: u64, truth: f64, trial: impl Fn(&mut ChaCha8Rng) -> Option<Interval>) -> f64 {
    let covers = |seed: &u64| {
        let interval = trial(&mut ChaCha8Rng::seed_from_u64(17_000 + seed));
        interval.is_some_and(|i| i.low.0 <= truth && truth <= i.high.0)
    };
    (0..trials).filter(covers).count() as f64 / trials as f64
}

fn median(summary: &Summary) -> Option<&Quantile> {
    summary.quantile(0.5)
}

/// Rounds of samples, each round drawn by itself.
fn rounds(
    random: &mut ChaCha8Rng,
    count: usize,
    round: impl Fn(&mut ChaCha8Rng) -> Vec<f64>,
) -> Summary {
    let rounds: Vec<Vec<f64>> = (0..count).map(|_| round(random)).collect();
    summarize(&rounds, f64::INFINITY)
}

fn exponential(random: &mut ChaCha8Rng) -> Vec<f64> {
    (0..SAMPLES).map(|_| Exp1.sample(&mut *random)).collect()
}

/// Each sample 0.9 of the one before and 0.436 of a new one, so that all have variance 1.
fn correlated(random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut last = normal(random);
    let mut next = || {
        last = 0.9 * last + (1.0_f64 - 0.81).sqrt() * normal(random);
        last
    };
    (0..SAMPLES).map(|_| next()).collect()
}

/// Three of ten rounds are 1.3 times slower.
fn of_two_modes(random: &mut ChaCha8Rng) -> Vec<f64> {
    let level = if random.random::<f64>() < 0.3 { 1.3 } else { 1.0 };
    (0..SAMPLES).map(|_| level * (1.0 + 0.01 * normal(random))).collect()
}

/// The rate of a round of one second, with a deviation of 5 %.
fn delivered(random: &mut ChaCha8Rng) -> Delivered {
    Delivered { work: 1000.0 * (1.0 + 0.05 * normal(random)), seconds: 1.0 }
}

/// T17: the interval within rounds, of independent and of correlated samples; that of a median of
/// rounds in two modes; that of a quantile of six rounds with levels of their own; and that of a
/// rate, which with 3 rounds is Student's.
pub fn t17_coverage() -> Outcome {
    let independent =
        share(TRIALS, 2.0_f64.ln(), |random| median(&rounds(random, 2, exponential))?.within);
    let correlated = share(TRIALS, 0.0, |random| median(&rounds(random, 2, correlated))?.within);
    // Of a round of 1000 the median is N(1, 0.01 sqrt(pi/2000)) in 7 of 10: the median of all
    // rounds is where that law has 5/7.
    let modes =
        share(TRIALS, 1.000_224, |random| median(&rounds(random, 10, of_two_modes))?.interval);
    let levels = share(RATE_TRIALS, 1.0, |random| {
        let levels: Vec<f64> = (0..6).map(|_| (0.05 * normal(random)).exp()).collect();
        typical(&levels)?.interval
    });
    let rates = share(RATE_TRIALS, 1000.0, |random| {
        let rounds: Vec<Delivered> = (0..3).map(|_| delivered(random)).collect();
        rate(&rounds).interval
    });
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let shares = [independent, correlated, modes, levels, rates];
    let measured = format!("{} %", shares.map(percent).join(", "));
    let passes =
        shares.iter().all(|share| *share >= LEAST) && independent <= MOST && levels <= 0.97;
    Ok(("95 % or more each".into(), measured, passes))
}

/// T25: the order statistics that bound a median with 95 %: ranks 40 and 61 of 100, 2 and 9 of 10
/// (Conover, Practical Nonparametric Statistics, table A3).
pub fn t25_order() -> Outcome {
    let [low, high] = rank_interval(0.5, 100, 100.0).map(Option::unwrap_or_default);
    // Seven near 1 and three near 2: a gap wider than chance makes.
    let rounds = [1.01, 2.0, 1.02, 1.03, 2.01, 1.04, 1.05, 2.02, 1.06, 1.07];
    let over = typical(&rounds).and_then(|found| found.interval).ok_or("no interval")?;
    let measured = format!("{low}..{high} and {}..{}", over.low.0, over.high.0);
    let truth = "40..61 and 1.02..2.01".to_owned();
    let passes = measured == truth;
    Ok((truth, measured, passes))
}
