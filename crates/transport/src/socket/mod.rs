//! The transports that are sockets. They share one control path ([`transport`]) and two data
//! paths: [`stream`], and [`messages`] over [`datagram`]. `descriptors` says how they differ.
//! `villas` writes a stream's samples in VILLASnode's form into datagrams.

mod admit;
mod counters;
pub mod datagram;
mod descriptors;
pub mod messages;
pub mod options;
pub(super) mod site;
pub mod stream;
pub mod transport;
mod villas;

use super::counter::{CounterValue, FinalCounters};
pub use descriptors::{CONGESTION, TCP, UDP, UNIX, UNIXGRAM};
pub use villas::VILLAS;

/// Most sending slots of a socket endpoint: a window above it gains nothing, since the kernel's
/// buffer is the queue.
const MOST_SLOTS: usize = 1024;

/// Bytes that a stream receives at once where messages are smaller: what iperf3 and most programs
/// use, and half of a small L2 cache.
const RECEIVE_BYTES: usize = 128 << 10;

/// Most memory for sending slots: beyond a cache's size more slots only slow the copy down.
const SEND_BYTES: usize = 1 << 20;

/// A count of what an end has seen, where it has seen any.
pub(super) fn seen(name: &str, count: u64) -> FinalCounters {
    let some = (count > 0).then(|| (name.to_string(), CounterValue::Events(count)));
    some.into_iter().collect()
}

/// How many sending slots of this size: the window, bounded by [`MOST_SLOTS`] and [`SEND_BYTES`].
pub(super) fn slots_for(window: u32, size: usize) -> usize {
    (window as usize).clamp(1, MOST_SLOTS).min((SEND_BYTES / size.max(1)).max(1))
}
