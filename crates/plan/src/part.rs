//! Cases that run at the same time: when each starts, and what a victim's case is compared with.
//! Pure.

use serde::{Deserialize, Serialize};
use wiregauge_base::units::Span;

/// What a case has of those that run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From the common instant to its own start.
    pub after: Span,
    /// Pairs of CPUs that the others take before it.
    pub cpus_before: u32,
    /// The places of its client and its server among those of a topology.
    pub pair: Option<[u32; 2]>,
}

/// A case that is measured alone and beside others: what do they cost it?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impact {
    /// What runs beside it, in a word: `incast`.
    pub congestor: String,
    /// The number of the case alone.
    pub alone: u32,
    /// The number of the same case beside others.
    pub under: u32,
    /// The numbers of those others.
    pub beside: Vec<u32>,
}
