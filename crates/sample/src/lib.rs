//! The samples of one round.
//!
//! Takes stamps from the measured loops through a preallocated recorder; gives [`RoundSamples`] in
//! nanoseconds to the run directory and to the statistics.

pub mod arena;
pub mod histogram;
pub mod join;
pub mod recorder;

use serde::{Deserialize, Serialize};

/// Properties of one sample beside its stamps. A set of bits, the same in memory and in
/// `samples.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(pub u32);

impl Flags {
    /// Belongs to the warm-up: kept, left out of the figures.
    pub const WARMUP: Flags = Flags(1);
    /// Was dropped by the transport and never came: a sample at +infinity.
    pub const LOST: Flags = Flags(2);
    /// Came more than once; the stamp is of the first.
    pub const DUPLICATE: Flags = Flags(4);
    /// Came after a message that was sent later.
    pub const REORDERED: Flags = Flags(8);
    /// The payload was not the one that was sent.
    pub const CORRUPT: Flags = Flags(16);
    /// Came after the sender had given it up; the stamp is true.
    pub const LATE: Flags = Flags(32);
    /// Went from server to client in a bidirectional run.
    pub const REVERSE: Flags = Flags(64);
    /// Of a stream: its step was missed, so that nothing was sent.
    pub const MISSED: Flags = Flags(128);
    /// Was intended and never sent: its response is infinite.
    pub const UNSENT: Flags = Flags(256);
    /// Was under way when the round ended, over a transport that loses nothing: a sample at
    /// +infinity.
    pub const UNFINISHED: Flags = Flags(512);

    /// Of a collective operation: a rank entered it too late for its time to be that of the others.
    pub const UNALIGNED: Flags = Flags(1024);
    /// Of a collective operation: the ranks computed between its start and its end.
    pub const OVERLAPPED: Flags = Flags(2048);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` cleared.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// With the bits of `other` set too.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// One message, as kept: stamps in nanoseconds since the record's epoch, NaN where there is none.
///
/// In a bandwidth run one sample stands for `stride` messages and has the stamps of the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The thread of each end that it went between, from 0.
    pub thread: u32,
    /// Position in the order of sending of its thread, from 0.
    pub sequence: u64,
    /// Payload bytes; of `rpc` those of the request.
    pub size: u32,
    /// When the schedule wanted it sent.
    pub intended_ns: f64,
    /// Before the post.
    pub submit_ns: f64,
    /// The last time that stood in the message when the adapter took it.
    pub send_ns: f64,
    /// First visibility at the end that measures (the client in a ping-pong).
    pub receive_ns: f64,
    /// When the completion of the post was seen.
    pub complete_ns: f64,
    /// Its flags.
    pub flags: Flags,
}

impl Sample {
    /// One of the first thread with so much payload, from its stamps in the order of time:
    /// intended, submit, send, receive, complete.
    pub fn new(sequence: u64, size: u32, stamps: [f64; 5], flags: Flags) -> Sample {
        let [intended_ns, submit_ns, send_ns, receive_ns, complete_ns] = stamps;
        let thread = 0;
        Sample {
            thread,
            sequence,
            size,
            intended_ns,
            submit_ns,
            send_ns,
            receive_ns,
            complete_ns,
            flags,
        }
    }

    /// The same of another thread.
    #[must_use]
    pub fn of_thread(self, thread: u32) -> Sample {
        Sample { thread, ..self }
    }

    /// Its stamps in that order.
    pub fn stamps(&self) -> [f64; 5] {
        [self.intended_ns, self.submit_ns, self.send_ns, self.receive_ns, self.complete_ns]
    }
}

/// All samples of one round of one run, in the order of sending; those of several threads by
/// their first stamp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundSamples {
    /// Number of the run in the record.
    pub run: u32,
    /// Number of the round in the run.
    pub round: u32,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// Rounds a time to the grid of 1/16 ns, for a file that compresses; the error is at most 1/32 ns,
/// a sixth of the smallest step that a 5 GHz counter shows.
///
/// A multiple of 1/16 is exact in binary, so that file, memory and every other program agree on
/// each bit: below 2^49 ns (6.5 days) an `f64` has 4 bits or more for the fraction. Above that its
/// own spacing is the error. NaN and infinities stay.
pub fn grid(ns: f64) -> f64 {
    let sixteenths = ns * 16.0;
    if sixteenths.is_finite() { sixteenths.round() / 16.0 } else { ns }
}

#[cfg(test)]
mod tests {
    use super::grid;

    #[test]
    fn the_grid_takes_the_nearest_sixteenth() {
        assert_eq!([0.04, 0.02, -0.04].map(grid), [0.0625, 0.0, -0.0625]);
    }
}
