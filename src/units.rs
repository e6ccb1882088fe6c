//! Quantities as types, and how a person writes and reads them.
//!
//! Every stage uses this module; it uses none. Parsing is exact about what is allowed, because a
//! wrong unit must be refused in one sentence before anything runs.

use serde::{Deserialize, Serialize};

/// A number of bytes of payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A length of time in nanoseconds, as a person asks for it (`--time 2s`, `--pause 10us`).
///
/// Measured times are not of this type: see [`crate::clock`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Messages per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageRate(pub f64);

/// Bytes of payload per second. Printed as MB/s (10^6 B/s) or Gb/s (10^9 b/s), never bare.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteRate(pub f64);
