//! Parts beside the contract that only some transports have.

use std::os::fd::BorrowedFd;
use wiregauge_clock::{DeviceStamps, DeviceTicks};

/// The descriptor of an end, and when the kernel says that it is readable.
pub enum Watched<'a> {
    /// While a message is there.
    Level(BorrowedFd<'a>),
    /// When something has come since it was armed (`Endpoint::arm`). It is no help to one that
    /// polls.
    Armed(BorrowedFd<'a>),
}

impl<'a> Watched<'a> {
    /// The descriptor.
    pub fn descriptor(&self) -> BorrowedFd<'a> {
        match *self {
            Watched::Level(descriptor) | Watched::Armed(descriptor) => descriptor,
        }
    }
}

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
