//! The life of single packets of Homa, by what the kernel's module traces by itself: from the call
//! into IP to the handler of the receiving host.
//!
//! Takes the module's own trace of one host, or of both ([`Trace`]); gives the time that packets
//! spent in each stage ([`Packets`]). Nothing is stamped for it: the module records all the time,
//! and keeps the last 16 384 events of each CPU.
//!
//! The stages are those of the table "Data packet lifetime" in the notes of Homa's authors
//! (`notes.txt` of the module, August 2022); what each trace point stands for is read from
//! `homa_outgoing.c`, `homa_offload.c`, `homa_plumbing.c` and `homa_incoming.c` of July 2026.

mod life;
mod trace;

#[cfg(test)]
mod tests;

pub use life::{STAGES, follow};
use serde::Serialize;
pub use trace::{Trace, TraceProblem};

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Carries {
    /// Bytes of a message.
    Data,
    /// The leave to send more of one.
    Grant,
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Of a request, or a grant for a reply.
    ToServer,
    /// Of a reply, or a grant for a request.
    ToClient,
}

/// Packets of one kind that went one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lives {
    /// What they carry.
    pub carries: Carries,
    /// Which way they went.
    pub direction: Direction,
    /// How many were followed from end to end.
    pub packets: usize,
    /// The time in each of [`STAGES`], by [`QUANTILES`](super::QUANTILES), each stage by itself.
    pub stages_ns: Vec<Vec<f64>>,
    /// The same of the whole way.
    pub total_ns: Vec<f64>,
}

/// Waits for a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockWait {
    /// Whose.
    pub lock: &'static str,
    /// How often somebody waited.
    pub waits: usize,
    /// All together.
    pub total_ns: f64,
    /// The longest.
    pub longest_ns: f64,
}

/// What is known of the packets of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Packets {
    /// By what they carry and which way.
    pub lives: Vec<Lives>,
    /// That arrived, and of which the trace does not hold all.
    pub cut: usize,
    /// Waits for locks, by the lock, the longest together first.
    pub locks: Vec<LockWait>,
    /// What the module noticed, and how often.
    pub events: Vec<(&'static str, usize)>,
    /// Of traces of two hosts: how well the one clock is known on the other, ns. Half of the
    /// shortest time there and back is taken for either way.
    pub bound_ns: Option<f64>,
    /// How long the trace is.
    pub length_ns: f64,
}
