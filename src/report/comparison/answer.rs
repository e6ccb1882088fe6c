//! The difference of two runs in a sentence.

use super::Pair;
use crate::report::number::percent;
use crate::stats::{Difference, Interval, Metric, RateMetric, compare};
use crate::units::quantile_name;
use serde::Serialize;

/// The quantiles of a sentence: the middle and the tail.
const SHOWN: [f64; 2] = [0.5, 0.99];

/// What the figure that answers the runs' question says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Which runs.
    pub runs: String,
    /// `B is 12 % slower at p50 (9.1..15 %), p99 not told apart (±20 %)`.
    pub sentence: String,
}

/// The words for more and for less of a figure, what it is of, and its difference.
struct Part {
    more: &'static str,
    less: &'static str,
    of: String,
    difference: Option<Difference>,
}

impl Answer {
    /// That of two runs, by the headline of the second.
    pub fn new(pair: &Pair<'_>) -> Answer {
        let headline = pair.b.headline.as_str();
        let parts = match (Metric::from_name(headline), RateMetric::from_name(headline)) {
            (Some(metric), _) => quantiles(pair, metric),
            (_, Some(rate)) => {
                let both = pair.a.rate(rate).zip(pair.b.rate(rate));
                let difference = both.and_then(|(a, b)| compare::rates(a, b));
                vec![Part { more: "higher", less: "lower", of: rate.name().into(), difference }]
            }
            _ => Vec::new(),
        };
        let words: Vec<String> =
            parts.iter().enumerate().map(|(at, part)| part.words(at == 0)).collect();
        let sentence = match words.is_empty() {
            true => "B has no figure that answers its question".into(),
            false => format!("B is {}", words.join(", ")),
        };
        Answer { runs: pair.label(), sentence }
    }
}

fn quantiles(pair: &Pair<'_>, metric: Metric) -> Vec<Part> {
    let both = pair.a.summary(metric).zip(pair.b.summary(metric));
    let all = both.map(|(a, b)| compare::quantiles(a, b)).unwrap_or_default();
    let shown = all.into_iter().filter(|(p, _)| SHOWN.contains(p));
    let part = |(p, difference)| {
        let of = quantile_name(p);
        Part { more: "slower", less: "faster", of, difference }
    };
    shown.map(part).collect()
}

impl Part {
    fn words(&self, is_first: bool) -> String {
        let of = &self.of;
        let unknown = |why: &str| match is_first {
            true => format!("not told apart from A at {of} ({why})"),
            false => format!("{of} not told apart ({why})"),
        };
        let Some(found) = &self.difference else { return unknown("n too small") };
        let (Some(relative), Some(interval)) = (found.relative, found.relative_interval) else {
            return unknown("no relative change");
        };
        let Interval { low, high } = interval;
        let half = (relative.0 - low.0).max(high.0 - relative.0);
        if !half.is_finite() {
            return unknown("unresolved");
        }
        if !found.excludes_zero() {
            return unknown(&format!("±{} %", percent(half)));
        }
        let (word, ends) = match relative.0 > 0.0 {
            true => (self.more, [low.0, high.0]),
            false => (self.less, [-high.0, -low.0]),
        };
        let [value, low, high] = [relative.0.abs(), ends[0], ends[1]].map(percent);
        format!("{value} % {word} at {of} ({low}..{high} %)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Value;
    use crate::stats::compare::difference;

    fn words(a: f64, b: f64, low: f64, high: f64) -> String {
        let within = |low, high| Some(Interval { low: Value(low), high: Value(high) });
        let difference = difference((a, within(a, a)), (b, within(low, high)));
        Part { more: "slower", less: "faster", of: "p50".into(), difference }.words(true)
    }

    #[test]
    fn a_difference_is_a_sentence_with_its_interval() {
        assert_eq!(words(100.0, 112.0, 109.1, 115.0), "12 % slower at p50 (9.1..15 %)");
        assert_eq!(words(100.0, 88.0, 85.0, 91.0), "12 % faster at p50 (9.0..15 %)");
        assert_eq!(words(100.0, 112.0, 92.0, 120.0), "not told apart from A at p50 (±20 %)");
        let open = words(100.0, 112.0, 92.0, f64::INFINITY);
        assert_eq!(open, "not told apart from A at p50 (unresolved)");
        assert_eq!(words(0.0, 1.0, 1.0, 1.0), "not told apart from A at p50 (no relative change)");
        let few = Part { more: "", less: "", of: "p99".into(), difference: None };
        assert_eq!(few.words(false), "p99 not told apart (n too small)");
    }
}
