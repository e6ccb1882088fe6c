//! The stamps of a round on the clock of its samples, and those that were found of a message.

use super::clock::KernelClock;
use std::ops::Range;
use wiregauge_host::trace::{Stamp, Trace};

/// Whose stamps are whose, where there are several threads or connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owners {
    /// The threads of client and server, in their order: their numbers as the kernel stamps them.
    /// Empty where each end has one, with one connection, which its stamps show.
    pub threads: [Vec<u32>; 2],
    /// Connections of each thread of the client.
    pub each: u32,
    /// Which of them each sample went over; empty: there is one.
    pub of_samples: Vec<u32>,
}

impl Owners {
    /// All connections: the thread of the client, and which of its own.
    pub fn connections(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let each = self.each.max(1);
        let threads = 0..self.threads[0].len().max(1) as u32;
        threads.flat_map(move |thread| (0..each).map(move |one| (thread, one)))
    }

    /// Which of its thread's a sample went over, by its position in the round.
    pub fn connection(&self, sample: usize) -> u32 {
        self.of_samples.get(sample).copied().unwrap_or(0)
    }

    /// The threads of both ends between which the messages of a thread go. A server may have one
    /// thread for all.
    pub fn of(&self, thread: u32) -> Option<[u32; 2]> {
        let [clients, servers] = &self.threads;
        let at = thread as usize;
        let server = if servers.len() == 1 { servers.first() } else { servers.get(at) };
        Some([*clients.get(at)?, *server.or(servers.first())?])
    }
}

/// A thread that measures: its number as the kernel stamps it, and its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub tid: u32,
    pub cpu: u16,
}

/// The stamps of a round in the time of its samples.
pub struct Stamps<'a> {
    pub all: &'a [Stamp],
    pub times_ns: Vec<f64>,
    /// When the memory for stamps was full.
    pub full_ns: f64,
    /// Whose they are.
    pub owners: Owners,
    /// What those of another host may be wrong by against the others.
    pub bound_ns: f64,
}

impl<'a> Stamps<'a> {
    /// Converts the times of a trace.
    pub fn new(trace: &'a Trace, clock: &KernelClock) -> Stamps<'a> {
        let times_ns = trace.stamps.iter().map(|stamp| clock.sample_ns(stamp.time_ns)).collect();
        let full_ns = trace.full_ns.map_or(f64::INFINITY, |at| clock.sample_ns(at));
        Stamps { all: &trace.stamps, times_ns, full_ns, owners: Owners::default(), bound_ns: 0.0 }
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

/// A thread of which nothing is stamped.
pub(super) const UNSEEN: u32 = 0;

/// The flow of the other way.
pub(super) const fn reversed(flow: u32) -> u32 {
    flow.rotate_left(16)
}

/// Copies of datagrams do not say whose they are: the thread does.
pub(super) fn in_flow(stamp: &Stamp, flow: u32) -> bool {
    stamp.flow == flow || stamp.flow == 0
}
