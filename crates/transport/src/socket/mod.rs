//! The transports that are sockets. They share one control path ([`transport`]) and two data
//! paths: [`stream`], and [`messages`] over [`datagram`]. `descriptors` says how they differ.
//! `villas` writes a stream's samples in VILLASnode's form into datagrams.

mod admit;
mod counters;
pub mod datagram;
mod descriptors;
#[doc(hidden)]
pub mod fuzzed;
pub mod messages;
pub mod options;
pub mod preflight;
pub(super) mod site;
pub mod stream;
pub mod transport;
mod villas;

use super::Setup;
use super::counter::{CounterValue, FinalCounters};
pub use admit::ENDS_OF_A_PORT;
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

/// Ends of a thread that have that much memory each; more of them share what these have.
const FULL_ENDS: usize = 64;
/// Memory that an end has however many there are.
const MIN_BYTES: usize = 4096;

/// A count of what an end has seen, where it has seen any.
pub(super) fn seen(name: &str, count: u64) -> FinalCounters {
    let some = (count > 0).then(|| (name.to_string(), CounterValue::Events(count)));
    some.into_iter().collect()
}

/// Returns the memory of one end in bytes, where each of a few has this much.
fn bytes_of_end(setup: &Setup, bytes: usize) -> usize {
    let ends = (setup.ends as usize).max(FULL_ENDS);
    (bytes * FULL_ENDS / ends).clamp(MIN_BYTES.min(bytes), bytes)
}

/// Returns the number of sending slots of this size: the window, bounded by [`MOST_SLOTS`] and
/// [`SEND_BYTES`].
pub(super) fn slots_for(setup: &Setup, size: usize) -> usize {
    let fitting = bytes_of_end(setup, SEND_BYTES) / size.max(1);
    (setup.window as usize).clamp(1, MOST_SLOTS).min(fitting.max(1))
}
