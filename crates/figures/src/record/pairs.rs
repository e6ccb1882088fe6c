//! What pairs of several hosts show together, as it stands in the record.

use serde::{Deserialize, Serialize};
use wiregauge_stats::{Rate, Value};

/// What pairs of several hosts show together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairFigures {
    /// Pairs that are slower than the others.
    pub slow: Vec<SlowPair>,
    /// Effective bisection bandwidth, one for each combination of transport, wait mode and size.
    pub bisections: Vec<Bisection>,
}

/// A pair of hosts that stands out among those measured alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowPair {
    /// Its run.
    pub run: u32,
    /// The metric whose median, or the rate whose value, is compared.
    pub metric: String,
    /// Its figure.
    pub value: f64,
    /// The median of this figure over all pairs.
    pub median: f64,
}

/// What random perfect matchings carried, all pairs of one at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bisection {
    /// The runs that it is made of.
    pub runs: Vec<u32>,
    /// Pairs of a matching.
    pub pairs: u32,
    /// B/s of all pairs of a matching together: the mean over the matchings, which are its rounds;
    /// of one matching over its own rounds.
    pub bandwidth: Rate,
    /// B/s of each matching, over its rounds; NaN where a pair had no rate.
    pub matchings: Vec<Value>,
    /// The least share of a round's time in which all pairs ran.
    pub overlap: Option<f64>,
}
