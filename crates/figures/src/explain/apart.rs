//! The stamps of two kernels on one time: each end's, as its own agent has sent them.
//!
//! Threads, CPUs and interrupts of the other host get numbers of their own. Its stamps are placed
//! by the clock model between the hosts, whose bound is what a time between a stamp of the one and
//! a stamp of the other may err by: the stage 'wire'.

use super::KernelClock;
use wiregauge_clock::offset::Model;
use wiregauge_clock::{Anchor, LocalNs, Timebase};
use wiregauge_host::trace::report::{MOST_THREADS, TraceReport};
use wiregauge_host::trace::{self, Kind, MOST_CPUS, Stamp, Trace};

/// Whose kernels stamp the ways of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernels {
    /// One, of both ends.
    #[default]
    One,
    /// Each end's own.
    Both,
    /// That of the client alone.
    Ours,
}

/// Whether a CPU is the other host's.
pub(super) fn is_of_other(cpu: u16) -> bool {
    u32::from(cpu) >= MOST_CPUS
}

/// Whether a thread is the other host's.
pub(super) fn is_thread_of_other(tid: u32) -> bool {
    tid >= MOST_THREADS
}

/// A CPU in words: that of the other host has the number that it has there.
pub fn cpu_name(cpu: u32) -> String {
    match cpu.checked_sub(MOST_CPUS) {
        Some(there) => format!("{there} of the other host"),
        None => cpu.to_string(),
    }
}

/// What a host's kernel stamped.
#[derive(Clone, Copy)]
pub struct OfHost<'a> {
    /// What is to be known of the stamps.
    pub report: &'a TraceReport,
    /// The stamps.
    pub stamps: &'a [Stamp],
    /// The scale of its clock.
    pub time: &'a Timebase,
}

impl OfHost<'_> {
    fn clock(&self) -> KernelClock {
        let [begin, end]: [Anchor; 2] = self.report.anchors;
        KernelClock::new(begin, end, self.time)
    }
}

/// The stamps of both hosts by the clock of the client's, and what those of the other may be wrong
/// by against these.
pub struct Merged {
    /// All stamps.
    pub trace: Trace,
    /// The client's clock.
    pub clock: KernelClock,
    /// The most that a stamp of the other host may be off by; 0 where it has none.
    pub bound_ns: f64,
}

/// Merges what both have stamped; `other` comes with its clock against this one's.
pub fn merged(own: OfHost<'_>, other: Option<(OfHost<'_>, &Model)>) -> Merged {
    let clock = own.clock();
    let mut trace = Trace {
        stamps: own.stamps.to_vec(),
        full_ns: own.report.full_ns,
        names: own.report.names.iter().cloned().collect(),
        interrupts: own.report.interrupts.iter().cloned().collect(),
    };
    let mut bound_ns: f64 = 0.0;
    if let Some((other, model)) = other {
        let there = other.clock();
        let place = |monotonic_ns: u64| {
            let (here, bound_ns) = model.here(LocalNs(there.sample_ns(monotonic_ns)));
            (clock.monotonic_ns(here.0), bound_ns)
        };
        for stamp in other.stamps {
            let (time_ns, own_ns) = place(stamp.time_ns);
            bound_ns = bound_ns.max(own_ns + there.error_ns + clock.error_ns);
            trace.stamps.push(Stamp { time_ns, ..renumbered(stamp) });
        }
        let full = other.report.full_ns.map(|at| place(at).0);
        trace.full_ns = [trace.full_ns, full].into_iter().flatten().min();
        let names = other.report.names.iter();
        trace.names.extend(names.map(|(tid, name)| (thread(*tid), name.clone())));
        let interrupts = other.report.interrupts.iter();
        let of_other = |name: &String| format!("{name} of the other host");
        trace.interrupts.extend(interrupts.map(|(irq, name)| (interrupt(*irq), of_other(name))));
        trace::sort(&mut trace.stamps);
    }
    Merged { trace, clock, bound_ns }
}

/// The idle thread of a CPU is the same everywhere.
fn thread(tid: u32) -> u32 {
    if tid == 0 { 0 } else { tid | MOST_THREADS }
}

fn interrupt(irq: u32) -> u32 {
    irq | MOST_THREADS
}

/// A stamp of the other host with numbers of its own.
fn renumbered(stamp: &Stamp) -> Stamp {
    let mut own =
        Stamp { tid: thread(stamp.tid), cpu: stamp.cpu.saturating_add(MOST_CPUS as u16), ..*stamp };
    match stamp.kind {
        Kind::Waking | Kind::Switch | Kind::Migrate => own.flow = thread(stamp.flow),
        Kind::Frequency => own.flow = stamp.flow.saturating_add(MOST_CPUS),
        Kind::IrqEntry | Kind::IrqExit => own.number = interrupt(stamp.number),
        _ => {}
    }
    own
}

#[cfg(test)]
mod tests;
