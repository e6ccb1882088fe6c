//! Parts beside the contract that only some transports have.

use crate::clock::{DeviceStamps, DeviceTicks};

/// An adapter's own clock.
pub trait DeviceClock {
    /// Now; `None` where it cannot be read.
    fn now(&self) -> Option<DeviceTicks>;

    /// The stamps of the sends that have completed; read when the round is over.
    fn stamps(&self) -> DeviceStamps<'_>;
}

/// Writes eight bytes of a posted message, little endian: what is sent is what they hold when the
/// adapter reads them.
pub type LiveWord = Box<dyn Fn(u64) + Send>;
