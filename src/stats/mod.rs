//! What it means: figures with intervals, and doubts, from samples. Pure.

use serde::{Deserialize, Serialize};

/// A value that may be infinite: a lost message's latency is (rule 9).
///
/// In JSON a number, or the string `"inf"`.
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

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0 == f64::INFINITY {
            s.serialize_str("inf")
        } else if self.0 == f64::NEG_INFINITY {
            s.serialize_str("-inf")
        } else {
            s.serialize_f64(self.0)
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
        }
        match Raw::deserialize(d)? {
            Raw::Number(n) => Ok(Value(n)),
            Raw::Word(w) if w == "inf" => Ok(Value(f64::INFINITY)),
            Raw::Word(w) if w == "-inf" => Ok(Value(f64::NEG_INFINITY)),
            Raw::Word(w) => Err(serde::de::Error::custom(format!(
                "'{w}' is not a value; allowed are a number, \"inf\" and \"-inf\""
            ))),
        }
    }
}

/// One quantile of a distribution, nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// The probability, e.g. 0.99.
    pub p: f64,
    /// The sample of rank ceil(p n). `None`: fewer than 10/(1-p) samples (for p < 0.5, 10/p),
    /// "n too small".
    pub value: Option<Value>,
    /// The wider of `within` and `between`: what is printed beside the value.
    pub interval: Option<Interval>,
    /// Order-statistic interval, driven by `effective_n`.
    pub within: Option<Interval>,
    /// Student interval from the same quantile of each round (2 rounds or more).
    pub between: Option<Interval>,
    /// Effective number of independent samples for this quantile.
    pub effective_n: f64,
}

/// A distribution of one metric, over all rounds of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Samples, lost ones included.
    pub count: u64,
    /// Lost messages: samples at +infinity.
    pub lost: u64,
    /// Smallest sample.
    pub min: Value,
    /// The true largest sample (infinite where one was lost).
    pub max: Value,
    /// The largest finite sample.
    pub max_finite: Value,
    /// Mean of the finite samples.
    pub mean: f64,
    /// Standard deviation (n-1) of the finite samples.
    pub sd: f64,
    /// Quantiles, by rising p: 0.1 0.5 0.9 0.99 0.999 0.9999.
    pub quantiles: Vec<Quantile>,
    /// The threshold of `above_threshold`.
    pub threshold: f64,
    /// Samples above the threshold, lost ones included.
    pub above_threshold: u64,
    /// Median, p99, max, count of each round, in order.
    pub rounds: Vec<RoundSummary>,
    /// Standard deviation of the rounds' medians: the spread between rounds.
    pub sd_between: Option<f64>,
    /// Median over the rounds of their interquartile range: the spread within one.
    pub iqr_within: f64,
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
}

/// A rate over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// All that was delivered divided by all time: the harmonic mean, weighted by work.
    pub value: f64,
    /// Student interval over the rounds (2 or more).
    pub interval: Option<Interval>,
    /// Each round's rate.
    pub rounds: Vec<f64>,
}
