//! What a case suffers from others that run beside it, as it stands in the record.

use serde::{Deserialize, Serialize};
use wiregauge_stats::{Interval, Missing, Value};

/// A case alone and beside congestors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImpactFigures {
    /// What ran beside it, in a word.
    pub congestor: String,
    /// The run alone.
    pub alone: u32,
    /// The run beside the congestors.
    pub under: u32,
    /// The congestors' runs.
    pub beside: Vec<u32>,
    /// The factor of each figure.
    pub factors: Vec<Factor>,
    /// The least share of a round's time in which all congestors ran; `None`: it is not known.
    pub covered: Option<f64>,
}

/// A figure beside congestors over the same alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The metric or rate.
    pub metric: String,
    /// What of it: `p50`, `p99`, `p99.9`, `mean`, `round_max` (the median of the rounds' maxima),
    /// `rate`.
    pub of: String,
    /// The figure alone, in the unit of its metric; `None`: it has too few samples.
    pub alone: Option<Value>,
    /// The same beside the congestors.
    pub under: Option<Value>,
    /// The second over the first; `None` where one of them is missing, infinite or 0.
    pub factor: Option<Value>,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// Why there is no factor.
    pub missing: Option<Missing>,
}
