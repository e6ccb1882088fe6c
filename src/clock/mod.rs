//! When: reading time, and turning what was read into nanoseconds after the run.
//!
//! Takes nothing; gives [`Ticks`] to the measured loops and a [`Timebase`] to what reads the
//! samples. Inside a measured loop there are only ticks: a raw reading of this host's counter.
//! They become [`LocalNs`] (this host's time) and then [`GlobalNs`] (the run's common time) after
//! the run, and the three types cannot be mixed up.
//!
//! Must never: convert inside a measured loop, or trust a frequency that was not measured here.

use serde::{Deserialize, Serialize};

/// A raw reading of one host's counter. Meaningless on another host and without a [`Timebase`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticks(pub u64);

/// Nanoseconds of one host's clock since the run's epoch on that host.
///
/// An `f64` keeps 1/64 ns over 24 h (8.64e13 ns needs 47 of 53 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LocalNs(pub f64);

/// Nanoseconds of the run's common time since the run's epoch. On one host the local and the
/// global time are the same clock, and only there is the conversion free of error.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GlobalNs(pub f64);

/// Something that a measured loop can read ticks from. Monomorphised: a reading is a few
/// instructions, not a call through a table.
pub trait Clock: Copy {
    /// Now, after everything before it in program order has been done.
    fn now(self) -> Ticks;
}
