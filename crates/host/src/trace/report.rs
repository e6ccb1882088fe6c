//! What the kernel of an agent's host is to stamp in a round, what it has stamped, and what of that
//! is believed. Pure.

use super::{CopiedAt, Kind, MOST_CPUS, STAMPS, Stamp};
use serde::{Deserialize, Serialize};
use wiregauge_clock::Anchor;

/// Stamps per frame: at most 36 B each as varints, which fits `frame::LONGEST`.
pub const STAMPS_PER_FRAME: usize = 16_384;
/// Most stamps of a host: twice its memory for them, which grows with its CPUs.
pub const MOST_STAMPS: usize = 2 * STAMPS as usize;
/// Most names of threads, as the kernel's programs keep them, and of interrupts.
const MOST_NAMES: usize = 4096;
/// The longest name of one in bytes.
const LONGEST_NAME: usize = 256;
/// Numbers of threads are below this (`PID_MAX_LIMIT` of <linux/threads.h>).
pub const MOST_THREADS: u32 = 1 << 22;

/// The trace points at which an agent's host is to stamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// Which.
    pub kinds: Vec<Kind>,
    /// Where bytes are copied.
    pub copied: CopiedAt,
}

/// What was stamped there, beside the stamps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// What stamps there.
    pub kinds: Vec<Kind>,
    /// Trace points that its kernel lacks.
    pub missing: Vec<String>,
    /// CLOCK_MONOTONIC and the clock of its samples before the first stamp and after the last.
    pub anchors: [Anchor; 2],
    /// How many stamps there are.
    pub stamps: u64,
    /// When the memory of a CPU was full.
    pub full_ns: Option<u64>,
    /// Names of threads that are not the agent's.
    pub names: Vec<(u32, String)>,
    /// Names of interrupts.
    pub interrupts: Vec<(u32, String)>,
}

impl TraceReport {
    /// Leaves out names beyond what a controller takes.
    pub fn bounded(mut self) -> TraceReport {
        for names in [&mut self.names, &mut self.interrupts] {
            names.retain(|(_, name)| name.len() <= LONGEST_NAME);
            names.truncate(MOST_NAMES);
        }
        self
    }

    /// Whether an honest agent could have sent it with these stamps.
    ///
    /// # Errors
    /// How it broke the protocol.
    pub fn check(&self, stamps: &[Stamp]) -> Result<(), &'static str> {
        let [begin, end] = self.anchors;
        let is_named =
            |(number, name): &(u32, String)| *number < MOST_THREADS && name.len() <= LONGEST_NAME;
        let lists = [&self.names, &self.interrupts];
        let are_names = lists.iter().all(|all| all.len() <= MOST_NAMES && all.iter().all(is_named))
            && self.missing.len() <= Kind::ALL.len()
            && self.missing.iter().all(|name| name.len() <= LONGEST_NAME)
            && self.kinds.len() <= Kind::ALL.len();
        let is_width = |anchor: &Anchor| anchor.half_width.0 >= 0;
        let is_time = begin.raw_ns < end.raw_ns && begin.ticks < end.ticks;
        let during = begin.raw_ns..=end.raw_ns;
        match () {
            () if !are_names => Err("sent more names than a host has"),
            () if !is_time || !self.anchors.iter().all(is_width) => {
                Err("read clocks that run backwards")
            }
            () if self.stamps != stamps.len() as u64 => Err("sent another number of stamps"),
            () if !stamps.iter().all(|stamp| during.contains(&stamp.time_ns)) => {
                Err("stamped before or after the round")
            }
            () if !stamps.is_sorted_by_key(|stamp| stamp.time_ns) => {
                Err("sent stamps out of the order of time")
            }
            () => Ok(()),
        }
    }
}

/// Whether a kernel can have written a stamp.
pub fn is_possible(stamp: &Stamp) -> bool {
    let names_thread = matches!(stamp.kind, Kind::Waking | Kind::Switch | Kind::Migrate);
    !stamp.kind.is_of_program()
        && stamp.tid < MOST_THREADS
        && u32::from(stamp.cpu) < MOST_CPUS
        && (!names_thread || stamp.flow < MOST_THREADS)
}

#[cfg(test)]
mod tests;
