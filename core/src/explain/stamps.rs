//! The stamps of a round on the clock of its samples, and those that were found of a message.

use super::clock::KernelClock;
use crate::host::trace::{Stamp, Trace};
use std::ops::Range;

/// The stamps of a round in the time of its samples.
pub struct Stamps<'a> {
    pub all: &'a [Stamp],
    pub times_ns: Vec<f64>,
    /// When the memory for stamps was full.
    pub full_ns: f64,
}

impl<'a> Stamps<'a> {
    /// Converts the times of a trace.
    pub fn new(trace: &'a Trace, clock: &KernelClock) -> Stamps<'a> {
        let times_ns = trace.stamps.iter().map(|stamp| clock.sample_ns(stamp.time_ns)).collect();
        let full_ns = trace.full_ns.map_or(f64::INFINITY, |at| clock.sample_ns(at));
        Stamps { all: &trace.stamps, times_ns, full_ns }
    }

    /// Those from one instant to another.
    pub fn between(&self, from_ns: f64, to_ns: f64) -> Range<usize> {
        let first = self.times_ns.partition_point(|time| *time < from_ns);
        let end = self.times_ns.partition_point(|time| *time <= to_ns);
        first..end.max(first)
    }
}

/// The positions of the stamps of a leg, a step each.
pub(super) type Positions = Vec<Option<usize>>;

/// A message of which the stamps were looked for.
pub(super) struct Found {
    /// Its sample, by its position in the round.
    pub sample: usize,
    /// The threads of client and server.
    pub threads: [u32; 2],
    /// The stamps from its begin to its end.
    pub range: Range<usize>,
    /// The stamps of each leg.
    pub legs: Vec<Positions>,
    /// Messages in front of it when it came to the socket of each leg; empty where it was alone.
    pub ahead: Vec<u32>,
}

/// The flow of the other way.
pub(super) const fn reversed(flow: u32) -> u32 {
    flow.rotate_left(16)
}

/// Copies of datagrams do not say whose they are: the thread does.
pub(super) fn in_flow(stamp: &Stamp, flow: u32) -> bool {
    stamp.flow == flow || stamp.flow == 0
}
