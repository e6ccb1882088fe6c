//! Statistics: figures with intervals, and warnings, from samples. Pure.
//!
//! Takes the durations of each round in time order ([`metric`]), or the histogram of a run that is
//! too long to store them ([`wiregauge_sample::histogram`]); gives a [`Summary`] ([`summary`]), a
//! [`Rate`] ([`rate`]), the difference of two runs and what a limit says of it ([`compare`],
//! [`limit`], [`verdict`]), the knee of a curve over load ([`knee`]), and what weakens a figure
//! ([`warnings`], [`stationarity`]). Each figure is that of a typical round ([`typical`]). A
//! quantile of a round is nearest-rank ([`quantile`]); what it may err by within one process
//! follows from the effective sample size ([`effective`]). Where single rounds are too short for a
//! quantile, it is that of all samples together (`between`).
//!
//! Must never: read or write anything, drop a sample, or give a figure without its count.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod between;
pub mod change;
pub mod cliff;
pub mod compare;
pub mod effective;
pub mod exponential;
pub mod knee;
pub mod limit;
pub mod metric;
#[doc(hidden)]
pub mod pooled;
pub mod quantile;
pub mod rate;
pub mod stationarity;
pub mod student;
pub mod summary;
pub mod typical;
pub mod verdict;
pub mod warnings;

#[cfg(test)]
mod coverage;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod known;

pub use compare::{Difference, Missing};
pub use limit::Limit;
pub use metric::{Metric, RateMetric, RateUnit};
pub use summary::{summarize, summarize_live};
pub use verdict::{Judgement, Verdict};

use serde::{Deserialize, Serialize};

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// The quantiles of a [`Summary`], by rising p.
pub const QUANTILES: [f64; 6] = [0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];

/// A value that may be infinite: a lost message's latency is.
///
/// In JSON a number, or the string `"inf"` or `"-inf"`; `null` is NaN, a missing value. Formats
/// that are not for people hold the bare `f64`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Value(pub f64);

/// A confidence interval of 95 %. A bound that the samples cannot give is infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound.
    pub low: Value,
    /// Upper bound.
    pub high: Value,
}

impl Interval {
    /// Whether the samples bound a value from both sides. A value that is infinite, since it was
    /// lost, needs no bound above.
    pub fn resolves(self, value: f64) -> bool {
        self.low.0.is_finite() && (self.high.0.is_finite() || value == f64::INFINITY)
    }

    /// How far it reaches from a value to the farther side, as a share of the value. `None`: there
    /// is no such share, since the value is 0 or one of the three is not finite.
    pub fn reach(self, value: f64) -> Option<f64> {
        let farther = (self.high.0 - value).max(value - self.low.0);
        Some(farther / value.abs()).filter(|share| share.is_finite())
    }

    /// The smallest interval that holds both.
    pub fn union(self, other: Interval) -> Interval {
        let (low, high) = (self.low.0.min(other.low.0), self.high.0.max(other.high.0));
        Interval { low: Value(low), high: Value(high) }
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            x if x.is_finite() || !s.is_human_readable() => s.serialize_f64(x),
            x if x.is_nan() => s.serialize_none(),
            x => s.serialize_str(if x > 0.0 { "inf" } else { "-inf" }),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(f64),
            Word(String),
            None(()),
        }
        if !d.is_human_readable() {
            return f64::deserialize(d).map(Value);
        }
        match Raw::deserialize(d)? {
            Raw::Number(n) => Ok(Value(n)),
            Raw::None(()) => Ok(Value(f64::NAN)),
            Raw::Word(w) if w == "inf" => Ok(Value(f64::INFINITY)),
            Raw::Word(w) if w == "-inf" => Ok(Value(f64::NEG_INFINITY)),
            Raw::Word(w) => Err(serde::de::Error::custom(format!(
                "'{w}' is not a value: expected a number, \"inf\" and \"-inf\""
            ))),
        }
    }
}

/// An `f64` that is written as a [`Value`] is: NaN, a missing value, is not a number in JSON.
pub mod as_value {
    use super::Value;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
        Value(*x).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        Value::deserialize(d).map(|v| v.0)
    }
}

wiregauge_base::options::named_enum! {
    /// The way from its rounds to a figure.
    pub enum Basis {
        /// The geometric mean of the rounds' own values, all above 0; Student's interval on
        /// logarithms.
        GeometricMean = "geometric_mean",
        /// The arithmetic mean of the rounds' own values, of which one is 0 or less; Student's
        /// interval.
        ArithmeticMean = "arithmetic_mean",
        /// The median of the rounds' own values, which fall into groups or of which one is
        /// infinite; its order statistics.
        Median = "median",
        /// Taken of all samples of all rounds together, since single rounds have too few. In
        /// records that do not say it, each figure is of this kind.
        Pooled = "pooled",
        /// Taken of one round, which says nothing of how processes differ.
        OneRound = "one_round",
    }
}

impl Basis {
    /// Returns what figures of records are that do not say it.
    fn of_older_records() -> Basis {
        Basis::Pooled
    }
}

/// One quantile of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// The probability, e.g. 0.99.
    pub p: f64,
    /// The quantile of a typical round, by `basis`. That of a round, and of all samples together,
    /// is the sample of rank ceil(p n). `None`: fewer than 10/(1-p) samples (for p < 0.5, 10/p) in
    /// all rounds, "n too small".
    pub value: Option<Value>,
    /// The interval over rounds, printed with the value. `None` with one round.
    pub interval: Option<Interval>,
    /// The way from the rounds' values to this one.
    #[serde(default = "Basis::of_older_records")]
    pub basis: Basis,
    /// Within one process: the order-statistic interval of the quantile of all samples, driven by
    /// `effective_n`. `None` too where only a histogram is left, which has no order of time.
    pub within: Option<Interval>,
    /// Effective number of independent samples for this quantile, in all rounds together.
    pub effective_n: f64,
}

/// Errors that the samples of a distribution have whatever their scatter, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownError {
    /// To either side: the bound of two hosts' clocks.
    pub clock_ns: f64,
    /// Added by the instrument: the truth is as much lower.
    pub instrument_ns: f64,
}

impl KnownError {
    /// Returns an interval that has the errors in it, too. It does not reach below 0 by them.
    fn widen(self, interval: Interval) -> Interval {
        let low = interval.low.0 - self.clock_ns - self.instrument_ns;
        let least = interval.low.0.min(0.0);
        Interval { low: Value(low.max(least)), high: Value(interval.high.0 + self.clock_ns) }
    }
}

/// A distribution of one metric, over all rounds of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Samples, lost ones included.
    pub count: u64,
    /// Lost messages: samples at +infinity.
    pub lost: u64,
    /// Smallest sample. NaN without samples, as in the two that follow.
    pub min: Value,
    /// The true largest sample (infinite where one was lost).
    pub max: Value,
    /// The largest finite sample.
    pub max_finite: Value,
    /// Mean of a typical round's finite samples. NaN without any.
    #[serde(with = "as_value")]
    pub mean: f64,
    /// Interval of the mean over rounds (2 or more). `None` in older records.
    #[serde(default)]
    pub mean_interval: Option<Interval>,
    /// Standard deviation (n-1) of all finite samples. NaN where there are fewer than 2.
    #[serde(with = "as_value")]
    pub sd: f64,
    /// Quantiles, by rising p: 0.1 0.5 0.9 0.99 0.999 0.9999.
    pub quantiles: Vec<Quantile>,
    /// The threshold of `above_threshold`.
    #[serde(with = "as_value")]
    pub threshold: f64,
    /// Samples above the threshold, lost ones included.
    pub above_threshold: u64,
    /// Quantiles, extremes and count of each round, in order.
    pub rounds: Vec<RoundSummary>,
    /// Errors of the samples beyond their scatter: in every interval. None in older records.
    #[serde(default)]
    pub known_error: KnownError,
    /// Standard deviation of the rounds' medians: the spread between rounds. `None` for fewer than
    /// 2 rounds with a finite median.
    pub sd_between: Option<f64>,
    /// Median over the rounds of their interquartile range: the spread within one. Infinite where
    /// more than a quarter was lost, NaN where there are no samples.
    #[serde(with = "as_value")]
    pub iqr_within: f64,
}

impl Quantile {
    /// Returns the interval that is printed: over rounds, of one round within its process.
    pub fn shown_interval(&self) -> Option<Interval> {
        self.interval.or(self.within.filter(|_| self.basis == Basis::OneRound))
    }
}

impl Summary {
    /// Returns the summary of samples that have these errors, with intervals that have them in
    /// them.
    #[must_use]
    pub fn with_known_error(mut self, known_error: KnownError) -> Summary {
        for quantile in &mut self.quantiles {
            for interval in [&mut quantile.interval, &mut quantile.within] {
                *interval = interval.map(|interval| known_error.widen(interval));
            }
        }
        let mean_interval = self.mean_interval.map(|interval| known_error.widen(interval));
        Summary { known_error, mean_interval, ..self }
    }

    /// One quantile, where it was computed.
    pub fn quantile(&self, p: f64) -> Option<&Quantile> {
        self.quantiles.iter().find(|quantile| quantile.p == p)
    }
}

/// One round of a [`Summary`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundSummary {
    /// Samples of this round.
    pub count: u64,
    /// Values of the same quantiles as the summary's, `None` where n is too small.
    pub quantiles: Vec<Option<Value>>,
    /// Smallest sample.
    pub min: Value,
    /// Largest sample.
    pub max: Value,
    /// Mean of the finite samples. NaN without any, and in older records.
    #[serde(with = "as_value", default = "missing")]
    pub mean: f64,
}

/// What an older record does not have.
fn missing() -> f64 {
    f64::NAN
}

/// The rate of a typical round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The rate of a typical round, by `basis`. NaN where no time passed.
    #[serde(with = "as_value")]
    pub value: f64,
    /// Interval over the rounds (2 or more), never below 0.
    pub interval: Option<Interval>,
    /// The way from the rounds' values to this one.
    #[serde(default = "Basis::of_older_records")]
    pub basis: Basis,
    /// Each round's rate.
    pub rounds: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_from_json_and_from_postcard() {
        for x in [0.0, -1.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let json = serde_json::to_string(&Value(x)).unwrap();
            let back: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(back.0.to_bits(), x.to_bits(), "{json}");
            let bytes = postcard::to_stdvec(&Value(x)).unwrap();
            assert_eq!(postcard::from_bytes::<Value>(&bytes).unwrap().0.to_bits(), x.to_bits());
        }
        assert!(serde_json::from_str::<Value>("\"infinite\"").is_err());
    }
}
