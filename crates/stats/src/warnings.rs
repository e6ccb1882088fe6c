//! What the figures themselves say against them.

use super::quantile::least_samples;
use super::stationarity::{drift, short_warmup};
use super::{Metric, QUANTILES, Quantile, Rate, RateMetric, Summary};
use wiregauge_base::warning::Warning;

/// Rounds disagree if the interval between them is this many times as wide as the one within ...
pub const DISAGREEMENT: f64 = 4.0;
/// ... and reaches further than this share of the figure. The interval beside a figure says how far
/// rounds differ; from a quarter on, a difference between two transports that decides is not seen.
/// A rate that is known less well is warned of too.
pub const REACH: f64 = 0.25;
/// Samples are highly correlated if at least this many are worth one.
pub const CORRELATION: f64 = 10.0;

/// What weakens the figures of one distribution.
pub fn of_summary(metric: Metric, summary: &Summary) -> Vec<Warning> {
    let metric = metric.name();
    let mut warnings = Vec::new();
    let missing = |p: &f64| summary.quantiles.iter().any(|q| q.p == *p && q.value.is_none());
    let count = summary.count;
    warnings.extend(QUANTILES.into_iter().find(missing).map(|p| {
        let needed = least_samples(p);
        Warning::TooFewSamples { metric, p, count, needed }
    }));
    let correlated = summary.quantiles.iter().filter(|q| q.within.is_some());
    let worst = correlated.min_by(|a, b| a.effective_n.total_cmp(&b.effective_n));
    if let Some(q) = worst.filter(|q| q.effective_n * CORRELATION < count as f64) {
        let (p, effective_n) = (q.p, q.effective_n);
        warnings.push(Warning::Autocorrelated { metric, p, count, effective_n });
    }
    let ratio = |q: &Quantile| {
        let (w, b) = q.within.zip(q.between)?;
        let ratio = (b.high.0 - b.low.0) / (w.high.0 - w.low.0);
        let reaches = b.reach(q.value?.0).is_some_and(|reach| reach > REACH);
        (ratio > DISAGREEMENT && ratio.is_finite() && reaches).then_some((q.p, ratio))
    };
    let most = summary.quantiles.iter().filter_map(ratio).max_by(|a, b| a.1.total_cmp(&b.1));
    warnings.extend(most.map(|(p, ratio)| Warning::RoundsDisagree { metric, p, ratio }));
    warnings
}

/// What weakens a series of rounds: it changes while it is measured, or the warm-up was too short.
/// So many `tests` of that kind are made in one record.
pub fn of_series<R: AsRef<[f64]>>(metric: Metric, rounds: &[R], tests: usize) -> Vec<Warning> {
    drift(metric, rounds, tests).into_iter().chain(short_warmup(metric, rounds)).collect()
}

/// Whether the rounds of a rate differ so much that it is hardly known.
pub fn of_rate(metric: RateMetric, rate: &Rate) -> Option<Warning> {
    let share = rate.interval?.reach(rate.value)?;
    (share > REACH).then_some(Warning::RateVaries { metric: metric.name(), share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ar1, iid, normal, random};
    use crate::rate::{Delivered, rate};
    use crate::{Interval, Value, summarize};
    use wiregauge_base::warning::RecordedWarning;

    fn kinds(summary: &Summary) -> Vec<String> {
        let warnings = of_summary(Metric::Rtt, summary);
        warnings.iter().map(|warning| RecordedWarning::from(warning).kind).collect()
    }

    #[test]
    fn good_samples_give_no_warning_but_for_their_number() {
        let rounds: Vec<Vec<f64>> = (0..5).map(|s| iid(&mut random(s), 40_000)).collect();
        assert_eq!(kinds(&summarize(&rounds, 1.0)), Vec::<&str>::new());
        assert_eq!(kinds(&summarize(&rounds[..1], 1.0)), ["too_few_samples"]);
    }

    #[test]
    fn autocorrelation_and_rounds_that_differ_give_warnings() {
        let slow: Vec<f64> = ar1(&mut random(1), 100_000, 0.99);
        assert_eq!(kinds(&summarize(&[slow], 1.0)), ["autocorrelated"]);
        let rounds: Vec<Vec<f64>> =
            (0..5_u8).map(|s| normal(&mut random(9), 40_000, 100.0 + f64::from(s), 1.0)).collect();
        assert!(kinds(&summarize(&rounds, 1.0)).is_empty(), "of no consequence");
        let rounds: Vec<Vec<f64>> = (0..5_u8)
            .map(|s| normal(&mut random(9), 40_000, 100.0 + 40.0 * f64::from(s), 1.0))
            .collect();
        assert_eq!(kinds(&summarize(&rounds, 1.0)), ["rounds_disagree"]);
        let work = [50.0, 100.0, 150.0].map(|work| Delivered { work, seconds: 1.0 });
        assert!(of_rate(RateMetric::MessageRate, &rate(&work)).is_some());
    }

    /// Which warnings 1000 samples give with this effective sample size and these intervals of p50.
    fn warned(effective_n: f64, within: [f64; 2], between: [f64; 2]) -> Vec<Warning> {
        let interval =
            |[low, high]: [f64; 2]| Some(Interval { low: Value(low), high: Value(high) });
        let mut summary = summarize(&[vec![100.0; 1000]], 1.0);
        let median = &mut summary.quantiles[1];
        median.effective_n = effective_n;
        (median.within, median.between) = (interval(within), interval(between));
        of_summary(Metric::Rtt, &summary)
    }

    #[test]
    fn the_limits_of_correlation_and_of_what_rounds_may_differ_by_are_exact() {
        let (metric, narrow, wide) = ("rtt", [95.0, 109.0], [70.0, 140.0]);
        let few = Warning::TooFewSamples { metric, p: 0.999, count: 1000, needed: 10_000 };
        assert_eq!(warned(100.0, narrow, [72.0, 128.0]), std::slice::from_ref(&few));
        let correlated = Warning::Autocorrelated { metric, p: 0.5, count: 1000, effective_n: 99.0 };
        let disagree = Warning::RoundsDisagree { metric, p: 0.5, ratio: 5.0 };
        assert_eq!(warned(99.0, narrow, wide), [few.clone(), correlated, disagree]);
        assert_eq!(warned(100.0, [99.0, 101.0], [75.0, 125.0]), std::slice::from_ref(&few));
        assert_eq!(warned(100.0, [104.0, 104.0], wide), [few], "no width to compare with");
    }

    #[test]
    fn a_series_that_grows_gives_a_warning() {
        let grows: Vec<f64> = (0..4000).map(|number| 100.0 + f64::from(number) / 10.0).collect();
        assert_eq!(of_series(Metric::Rtt, &[grows], 1).len(), 1);
    }

    #[test]
    fn a_rate_varies_where_its_interval_reaches_further_than_a_quarter() {
        let rate = |low: f64, high: f64| {
            let interval = Some(Interval { low: Value(low), high: Value(high) });
            of_rate(RateMetric::Bandwidth, &Rate { value: 100.0, interval, rounds: Vec::new() })
        };
        assert_eq!(rate(75.0, 125.0), None);
        assert_eq!(rate(0.0, f64::INFINITY), None);
        let Some(Warning::RateVaries { share, .. }) = rate(70.0, 130.0) else { panic!() };
        assert_eq!(share, 0.3);
    }

    #[test]
    fn a_rate_varies_by_the_farther_side_of_its_interval() {
        let share = |low, high| {
            let interval = Some(Interval { low: Value(low), high: Value(high) });
            of_rate(RateMetric::MessageRate, &Rate { value: 100.0, interval, rounds: Vec::new() })
        };
        // 32 % wide, 30 % of it below.
        let Some(Warning::RateVaries { share: found, .. }) = share(70.0, 102.0) else { panic!() };
        assert!((found - 0.3).abs() < 1e-12, "{found}");
        assert!(share(80.0, 120.0).is_none());
    }
}
