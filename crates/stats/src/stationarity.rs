//! Whether the kept samples still change while they are taken: drift, and a warm-up cut too short.
//!
//! Both look at the medians of [`WINDOWS`] windows of equal length in each round, in the order of
//! time. A finding needs statistical significance and size: with millions of samples a change of
//! no consequence is significant, and with twenty medians one of consequence may be chance.

use super::Metric;
use super::pooled::Run;
use super::quantile::{Ranked, rank};
use statrs::distribution::{ContinuousCDF, Normal};
use wiregauge_base::warning::Warning;

/// Windows of a round. With 20 a perfect trend has |z| = 6.1, twice what is asked.
pub const WINDOWS: usize = 20;
/// A window has at least this many samples, or no drift is judged: the median of 20 normal
/// samples has a standard error of 0.28 standard deviations.
pub const LEAST_OF_WINDOW: usize = 20;
/// Windows of the first and of the last quarter, which tell how far a trend went.
const QUARTER: usize = WINDOWS / 4;
/// Samples looked at per window, evenly spread: the standard error of a median of 4096 is 2 % of a
/// standard deviation, and what does not show above it is not worth a full pass.
const LOOKED_AT: usize = 4096;
/// A record without a trend is said to have one with this chance. Each round of each case is a
/// test, so that a test is allowed this share of it by their number (Bonferroni): |z| above 3.3 for
/// one round, 4.5 for the 180 of a survey.
pub const CHANCE: f64 = 1e-3;
/// A change below this share of the median is not reported.
pub const SHARE_LIMIT: f64 = 0.05;

/// The strongest trend of any round, by its size; `None` where no round drifts.
///
/// Each round is tested by Mann-Kendall (Mann 1945, Kendall 1975) on its windows' medians, with
/// the variance corrected for ties, and measured by the median of its last quarter of windows over
/// that of the first: one stall moves neither, and nothing falls by more than all of it. So many
/// `tests` are made in one record.
///
/// The warning has Mann-Kendall's z, positive where durations grow, and that change.
pub fn drift<R: AsRef<[f64]>>(metric: Metric, rounds: &[R], tests: usize) -> Option<Warning> {
    let limit = z_limit(tests.max(rounds.len()))?;
    let of_round = |(round, r): (usize, &R)| {
        let medians = window_medians(r.as_ref())?;
        let z = mann_kendall(&medians);
        let change = median(&medians[WINDOWS - QUARTER..]) / median(&medians[..QUARTER]) - 1.0;
        let drifts = z.abs() > limit && change.abs() > SHARE_LIMIT && (z > 0.0) == (change > 0.0);
        drifts.then_some((round as u64, z, change))
    };
    let found: Vec<(u64, f64, f64)> = rounds.iter().enumerate().filter_map(of_round).collect();
    let worst = found.iter().copied().max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()));
    let ((round, z, change), rounds) = (worst?, found.len() as u64);
    Some(Warning::NotStationary { metric: metric.name(), round, change, z, rounds })
}

/// Mann-Kendall's |z| above which a trend is no chance, of so many tests.
fn z_limit(tests: usize) -> Option<f64> {
    let normal = Normal::new(0.0, 1.0).ok()?;
    Some(normal.inverse_cdf(1.0 - CHANCE / 2.0 / tests.max(1) as f64))
}

/// Whether the warm-up was too short: in most rounds the first window is the slowest of all and
/// more than [`SHARE_LIMIT`] slower than the median of the rest. One round alone shows that by
/// chance once in 20 where medians scatter so much, three of five once in 900.
///
/// The warning has the median over the rounds of (first window - median of the rest) / median of
/// the rest, and the samples of one window in the first slow round: warm up for that much longer.
pub fn short_warmup<R: AsRef<[f64]>>(metric: Metric, rounds: &[R]) -> Option<Warning> {
    let (mut judged, mut slow, mut window) = (0, 0, 0);
    let mut excesses = Vec::new();
    for r in rounds {
        let Some(medians) = window_medians(r.as_ref()) else { continue };
        let (first, rest) = (medians[0], &medians[1..]);
        let excess = (first - median(rest)) / median(rest);
        judged += 1;
        excesses.push(excess);
        if excess > SHARE_LIMIT && rest.iter().all(|m| *m < first) {
            slow += 1;
            window = if window == 0 { (r.as_ref().len() / WINDOWS) as u64 } else { window };
        }
    }
    let (metric, rounds) = (metric.name(), slow);
    let warning = || Warning::WarmupShort { metric, excess: median(&excesses), rounds, window };
    (2 * slow > judged).then(warning)
}

/// Medians of the windows of one round; `None` where it is too short to be judged, or where some
/// median is infinite or not above 0, of which there is no share.
fn window_medians(round: &[f64]) -> Option<Vec<f64>> {
    let length = round.len() / WINDOWS;
    if length < LEAST_OF_WINDOW {
        return None;
    }
    let stride = length.div_ceil(LOOKED_AT);
    let medians: Vec<f64> = round
        .chunks_exact(length)
        .take(WINDOWS)
        .map(|w| {
            let mut looked_at: Vec<f64> = w.iter().step_by(stride).copied().collect();
            let middle = (looked_at.len() - 1) / 2;
            *looked_at.select_nth_unstable_by(middle, f64::total_cmp).1
        })
        .collect();
    medians.iter().all(|m| m.is_finite() && *m > 0.0).then_some(medians)
}

fn median(values: &[f64]) -> f64 {
    Run::sorted(values).at_rank(rank(0.5, values.len() as u64))
}

/// z of Mann and Kendall: S, the pairs that rise minus those that fall, over its standard
/// deviation without a trend, sqrt((n(n-1)(2n+5) - sum over ties t(t-1)(2t+5))/18), S moved by 1
/// towards 0 for continuity.
fn mann_kendall(x: &[f64]) -> f64 {
    let n = x.len();
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let s: f64 = pairs.map(|(i, j)| sign(x[j] - x[i])).sum();
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let mut sorted = x.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|c| term(c.len() as f64)).sum();
    let variance = (term(n as f64) - ties) / 18.0;
    if variance <= 0.0 { 0.0 } else { (s - sign(s)) / variance.sqrt() }
}

/// -1, 0 or 1. (`f64::signum` of 0 is 1.)
fn sign(x: f64) -> f64 {
    f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ar1, normal, random};
    use super::*;

    #[test]
    fn mann_kendall_of_a_known_series() {
        // Perfectly rising: S = 190, variance 950.
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert!((mann_kendall(&rising) - 189.0 / 950.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(mann_kendall(&[5.0; 20]), 0.0);
        // With ties: rising pairs 3, falling 4: S = -1, and the continuity correction leaves 0.
        assert_eq!(mann_kendall(&[1.0, 1.0, 2.0, 0.5, 1.0]), 0.0);
        // Two pairs of ties: S = 4, variance (4 * 3 * 13 - 2 * 2 * 9) / 18 = 120 / 18.
        let tied = mann_kendall(&[1.0, 1.0, 2.0, 2.0]);
        assert!((tied - 3.0 / (120.0_f64 / 18.0).sqrt()).abs() < 1e-12, "{tied}");
    }

    /// Twenty windows of twenty samples: in each the numbers from 1 to 20 times one factor.
    fn windows(factors: [f64; WINDOWS]) -> Vec<f64> {
        let window = |factor: f64| (1..=20).map(move |number| f64::from(number) * factor);
        factors.into_iter().flat_map(window).collect()
    }

    #[test]
    fn the_shortest_round_that_is_judged_has_the_lower_median_of_each_window() {
        assert_eq!(window_medians(&windows([1.0; WINDOWS])), Some(vec![10.0; WINDOWS]));
        for wrong in [0.0, -1.0, f64::INFINITY] {
            let mut factors = [1.0; WINDOWS];
            factors[3] = wrong;
            assert_eq!(window_medians(&windows(factors)), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_first_window_that_is_the_slowest_and_much_slower_is_a_short_warm_up() {
        let is_short = |first: f64, other: f64| {
            let mut factors = [1.0; WINDOWS];
            (factors[0], factors[9]) = (first, other);
            short_warmup(Metric::Rtt, &[windows(factors)]).is_some()
        };
        assert!(is_short(1.2, 1.0) && is_short(1.2, 1.1));
        assert!(!is_short(1.04, 1.0), "slowest, but not by much");
        assert!(!is_short(1.2, 1.3) && !is_short(1.2, 1.2), "slow, but not the slowest");
    }

    #[test]
    fn a_growing_round_is_found_with_its_size() {
        let mut chance = random(1);
        let steady = normal(&mut chance, 10_000, 100.0, 5.0);
        let grows: Vec<f64> =
            steady.iter().enumerate().map(|(i, x)| x + 20.0 * i as f64 / 10_000.0).collect();
        let found = drift(Metric::Rtt, &[steady.clone(), grows], 2).unwrap();
        let Warning::NotStationary { round, change, z, rounds, .. } = found else { panic!() };
        assert_eq!((round, rounds), (1, 1));
        assert!(z > 3.3 && (change - 15.0 / 102.5).abs() < 0.02, "{z} {change}");
        assert_eq!(drift(Metric::Rtt, &[steady], 1), None);
    }

    #[test]
    fn nothing_falls_by_more_than_all_of_it() {
        // From 100 to 1, most of it at the beginning: a slope over the median would say -900 %.
        let falls: Vec<f64> =
            (0..4_000).map(|i| 1.0 + 99.0 * (-f64::from(i) / 400.0).exp()).collect();
        let Some(Warning::NotStationary { change, z, .. }) = drift(Metric::Rtt, &[&falls], 180)
        else {
            panic!()
        };
        assert!(z < -3.3 && (-1.0..-0.9).contains(&change), "{change}");
        let rises: Vec<f64> = falls.into_iter().rev().collect();
        let Some(Warning::NotStationary { change, .. }) = drift(Metric::Rtt, &[&rises], 180) else {
            panic!()
        };
        assert!(change > 9.0, "{change}");
    }

    #[test]
    fn a_significant_trend_of_no_consequence_is_not_reported() {
        let x: Vec<f64> = (0..10_000).map(|i| 100.0 + 1e-4 * f64::from(i)).collect();
        assert!(mann_kendall(&window_medians(&x).unwrap()) > 6.0);
        assert_eq!(drift(Metric::Rtt, &[x], 1), None);
    }

    #[test]
    fn steady_rounds_rarely_drift() {
        let found = (0..300)
            .filter(|seed| drift(Metric::Rtt, &[ar1(&mut random(*seed), 4_000, 0.5)], 1).is_some());
        assert!(found.count() <= 3);
    }

    #[test]
    fn the_more_rounds_are_tested_the_clearer_a_trend_must_be() {
        assert!((z_limit(1).unwrap() - 3.29).abs() < 0.01);
        assert!((z_limit(180).unwrap() - 4.54).abs() < 0.01);
        // Of the 190 pairs the 36 of the first 9 fall: S = 118, and (118 - 1) / sqrt(950) = 3.80.
        let mut medians: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        medians[..9].reverse();
        assert!((mann_kendall(&medians) - 3.796).abs() < 1e-3);
        let round: Vec<f64> = medians.iter().flat_map(|median| [*median; 20]).collect();
        let found = |tests| drift(Metric::Rtt, &[&round], tests).is_some();
        assert!(found(1) && !found(180));
    }

    #[test]
    fn a_slow_start_is_a_short_warm_up() {
        let mut chance = random(2);
        let rounds: Vec<Vec<f64>> = (0..5)
            .map(|_| {
                let mut x = normal(&mut chance, 4_000, 100.0, 5.0);
                x[..250].iter_mut().for_each(|v| *v += 30.0);
                x
            })
            .collect();
        let found = short_warmup(Metric::Rtt, &rounds).unwrap();
        let Warning::WarmupShort { excess, rounds: slow, window, .. } = found else { panic!() };
        assert_eq!((slow, window), (5, 200));
        assert!((excess - 0.3).abs() < 0.02);
        assert_eq!(drift(Metric::Rtt, &rounds, 5), None, "a slow start is not a drift");
        let steady: Vec<Vec<f64>> =
            (0..5).map(|_| normal(&mut chance, 4_000, 100.0, 5.0)).collect();
        assert_eq!(short_warmup(Metric::Rtt, &steady), None);
    }

    #[test]
    fn what_cannot_be_judged_is_not() {
        let inf = f64::INFINITY;
        for x in [vec![], vec![1.0; 399], vec![inf; 4_000], vec![-1.0; 4_000], vec![0.0; 4_000]] {
            assert_eq!(
                (drift(Metric::Rtt, &[&x], 1), short_warmup(Metric::Rtt, &[&x])),
                (None, None)
            );
        }
    }
}
