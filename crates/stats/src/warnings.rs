//! What the figures themselves say against them.

use super::quantile::least_samples;
use super::stationarity::{drift, short_warmup};
use super::typical::groups;
use super::{Metric, QUANTILES, Quantile, Rate, RateMetric, Summary};
use wiregauge_base::units::quantile_name;
use wiregauge_base::warning::Warning;

/// Rounds disagree if the interval between them is this many times as wide as the one within ...
pub const DISAGREEMENT: f64 = 4.0;
/// ... and reaches further than this share of the figure. The interval beside a figure says how far
/// rounds differ; from a quarter on, a difference between two transports that decides is not seen.
/// A rate that is known less well is warned of too.
pub const REACH: f64 = 0.25;
/// Groups of rounds are named if they are further apart than this share.
pub const GAP: f64 = 0.05;
/// The places in [`QUANTILES`] in the order in which one is named of which the rounds fall into
/// groups: p50, p99, p90, p10.
const NAMED_FIRST: [usize; 4] = [1, 3, 2, 0];
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
        let (within, between) = q.within.zip(q.interval)?;
        let ratio = (between.high.0 - between.low.0) / (within.high.0 - within.low.0);
        let reaches = between.reach(q.value?.0).is_some_and(|reach| reach > REACH);
        (ratio > DISAGREEMENT && ratio.is_finite() && reaches).then_some((q.p, ratio))
    };
    let most = summary.quantiles.iter().filter_map(ratio).max_by(|a, b| a.1.total_cmp(&b.1));
    warnings.extend(most.map(|(p, ratio)| Warning::RoundsDisagree { metric, p, ratio }));
    let in_groups = NAMED_FIRST.iter().find_map(|number| {
        let of_rounds = summary.rounds.iter().map(|round| round.quantiles.get(*number).copied());
        let values: Option<Vec<f64>> =
            of_rounds.map(|value| value.flatten().map(|value| value.0)).collect();
        of_groups(format!("{} of {metric}", quantile_name(QUANTILES[*number])), &values?)
    });
    warnings.extend(in_groups);
    warnings
}

/// Returns what is said of rounds that fall into groups whose distance matters.
fn of_groups(what: String, values: &[f64]) -> Option<Warning> {
    let groups = groups(values)?;
    let share = groups.gap.end / groups.gap.start - 1.0;
    let counts = (groups.high.len() as u64, values.len() as u64);
    let warning = Warning::RoundsInGroups { what, high: counts.0, rounds: counts.1, share };
    (groups.gap.start > 0.0 && share > GAP).then_some(warning)
}

/// What weakens a series of rounds: it changes while it is measured, or the warm-up was too short.
/// So many `tests` of that kind are made in one record.
pub fn of_series<R: AsRef<[f64]>>(metric: Metric, rounds: &[R], tests: usize) -> Vec<Warning> {
    drift(metric, rounds, tests).into_iter().chain(short_warmup(metric, rounds)).collect()
}

/// Returns what weakens a rate: its rounds fall into groups, or differ by much.
pub fn of_rate(metric: RateMetric, rate: &Rate) -> Vec<Warning> {
    let share = rate.interval.and_then(|interval| interval.reach(rate.value));
    let varies = share.filter(|share| *share > REACH);
    let varies = varies.map(|share| Warning::RateVaries { metric: metric.name(), share });
    let in_groups = of_groups(metric.name().to_owned(), &rate.rounds);
    varies.into_iter().chain(in_groups).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ar1, iid, normal, random};
    use crate::rate::{Delivered, rate};
    use crate::{Basis, Interval, Value, summarize};
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
        assert_eq!(of_rate(RateMetric::MessageRate, &rate(&work)).len(), 1);
    }

    /// Which warnings 1000 samples give with this effective sample size and these intervals of p50.
    fn warned(effective_n: f64, within: [f64; 2], between: [f64; 2]) -> Vec<Warning> {
        let interval =
            |[low, high]: [f64; 2]| Some(Interval { low: Value(low), high: Value(high) });
        let mut summary = summarize(&[vec![100.0; 1000]], 1.0);
        let median = &mut summary.quantiles[1];
        median.effective_n = effective_n;
        (median.within, median.interval) = (interval(within), interval(between));
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

    fn of_interval(interval: Option<Interval>) -> Rate {
        Rate { value: 100.0, interval, basis: Basis::GeometricMean, rounds: Vec::new() }
    }

    #[test]
    fn groups_of_rounds_are_named_where_their_distance_matters() {
        fn rounds(high: f64) -> [f64; 6] {
            [1.0, high, 1.001, 1.002, high + 0.001, 1.003]
        }
        let of = |high| {
            let work = rounds(high).map(|work| Delivered { work, seconds: 1.0 });
            of_rate(RateMetric::Bandwidth, &rate(&work))
        };
        assert_eq!(of(1.04), [], "a distance of 4 % is in the interval");
        let [Warning::RoundsInGroups { what, high, rounds: all, share }] = &of(1.1)[..] else {
            panic!()
        };
        assert_eq!((what.as_str(), *high, *all), ("bandwidth", 2, 6));
        assert!((share - (1.1 / 1.003 - 1.0)).abs() < 1e-12);
        let rounds = rounds(1.1).map(|level| vec![level; 1000]);
        let found = of_summary(Metric::Rtt, &summarize(&rounds, 1.0));
        let named =
            |w: &Warning| matches!(w, Warning::RoundsInGroups { what, .. } if what == "p50 of rtt");
        assert_eq!(found.iter().filter(|warning| named(warning)).count(), 1, "{found:?}");
    }

    #[test]
    fn a_rate_varies_where_its_interval_reaches_further_than_a_quarter() {
        let rate = |low: f64, high: f64| {
            let interval = Some(Interval { low: Value(low), high: Value(high) });
            of_rate(RateMetric::Bandwidth, &of_interval(interval))
        };
        assert_eq!(rate(75.0, 125.0), []);
        assert_eq!(rate(0.0, f64::INFINITY), []);
        assert_eq!(rate(70.0, 130.0), [Warning::RateVaries { metric: "bandwidth", share: 0.3 }]);
    }

    #[test]
    fn a_rate_varies_by_the_farther_side_of_its_interval() {
        let share = |low, high| {
            let interval = Some(Interval { low: Value(low), high: Value(high) });
            of_rate(RateMetric::MessageRate, &of_interval(interval))
        };
        // 32 % wide, 30 % of it below.
        let found = share(70.0, 102.0);
        assert_eq!(found, [Warning::RateVaries { metric: "message_rate", share: 0.3 }]);
        assert_eq!(share(80.0, 120.0), []);
    }
}
