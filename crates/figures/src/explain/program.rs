//! Messages that pass by the kernel: the program's own stamps of their posts and arrivals, and the
//! kernel's of threads that waited for them.

use super::NO_CPU;
use super::clock::KernelClock;
use super::path::{Match, Way};
use super::stamps::{End, Found, Positions, Stamps, reversed};
use std::ops::Range;
use wiregauge_clock::{Ticks, Timebase};
use wiregauge_host::trace::{self, Kind, Stamp, Trace};
use wiregauge_sample::Sample;
use wiregauge_sample::arena::Row;
use wiregauge_transport::Role;

/// The flow of the messages of a thread of each end, from client to server.
pub(super) const fn flow_of(thread: u32) -> u32 {
    (thread + 1) << 16
}

/// A thread's number as the kernel stamps it, by the number that it knows itself: they differ in a
/// PID namespace. Each thread has left its CPU before it began.
fn kernels(trace: &Trace, own: u32) -> u32 {
    let switch = trace.stamps.iter().find(|stamp| stamp.leaves() == Some(own));
    switch.map_or(own, |stamp| stamp.tid)
}

/// Adds the stamps of a thread of an end, which `Stamped` of the package `measure` has kept in
/// these rows, to those of the kernel; its number as the kernel stamps it. `room`: the most that it
/// could keep.
pub fn add(
    trace: &mut Trace,
    (role, thread): (Role, u32),
    (rows, room): (&[Row], usize),
    time: &Timebase,
    clock: &KernelClock,
) -> Option<u32> {
    let (first, rows) = rows.split_first()?;
    let tid = kernels(trace, first.order);
    if rows.is_empty() {
        return Some(tid);
    }
    let there = flow_of(thread);
    let (sent, taken) = match role {
        Role::Server => (reversed(there), there),
        Role::Client | Role::Node => (there, reversed(there)),
    };
    let at = |ticks: Ticks| clock.monotonic_ns(time.local(ticks).0);
    let stamps = rows.iter().flat_map(|row| {
        let kinds = [
            (row.submit, Kind::Post, sent),
            (row.complete, Kind::Posted, sent),
            (row.receive, Kind::Arrived, taken),
        ];
        kinds.into_iter().filter(|(ticks, ..)| ticks.0 != 0).map(|(ticks, kind, flow)| Stamp {
            time_ns: at(ticks),
            tid,
            flow,
            number: row.order,
            length: 0,
            cpu: row.flags.0 as u16,
            kind,
            in_kernel_thread: false,
        })
    });
    trace.stamps.extend(stamps);
    if rows.len() + 1 >= room {
        let last = trace.stamps.last().map(|stamp| stamp.time_ns);
        trace.full_ns = [trace.full_ns, last].into_iter().flatten().min();
    }
    trace::sort(&mut trace.stamps);
    Some(tid)
}

/// Who a thread is by the first of its rows, where it did no more than say so.
pub fn end(trace: &Trace, rows: &[Row]) -> Option<End> {
    let first = rows.first()?;
    Some(End { tid: kernels(trace, first.order), cpu: first.flags.0 as u16 })
}

/// Adds the stamps of a socket of an end, which `SocketStamped` of the package `measure` has
/// kept in these rows. `room`: the most that it could keep.
pub fn add_socket(
    trace: &mut Trace,
    role: Role,
    (rows, room): (&[Row], usize),
    time: &Timebase,
    clock: &KernelClock,
) {
    let Some((first, rows)) = rows.split_first() else { return };
    let there = flow_of(0);
    let (sent, taken) = match role {
        Role::Server => (reversed(there), there),
        Role::Client | Role::Node => (there, reversed(there)),
    };
    let stamps = rows.iter().flat_map(|row| {
        let found =
            if row.submit.0 == 0 { 0 } else { clock.monotonic_ns(time.local(row.submit).0) };
        let kinds = [
            (row.intended.0, Kind::TxQueue, sent, NO_CPU),
            (row.complete.0, Kind::TxDriver, sent, NO_CPU),
            (row.receive.0, Kind::RxHost, taken, NO_CPU),
            (found, Kind::Arrived, taken, row.flags.0 as u16),
        ];
        kinds.into_iter().filter(|(time_ns, ..)| *time_ns != 0).map(|(time_ns, kind, flow, cpu)| {
            let (tid, number, length) = (first.order, 0, 1);
            Stamp { time_ns, tid, flow, number, length, cpu, kind, in_kernel_thread: false }
        })
    });
    trace.stamps.extend(stamps);
    if rows.len() + 1 >= room {
        let last = trace.stamps.last().map(|stamp| stamp.time_ns);
        trace.full_ns = [trace.full_ns, last].into_iter().flatten().min();
    }
    trace::sort(&mut trace.stamps);
}

/// Adds when the adapter read each message, where a thread wrote the time into it until then.
pub fn add_taken(trace: &mut Trace, samples: &[Sample], clock: &KernelClock) {
    let numbered = Numbered::new(&trace.stamps);
    let all = samples.iter().filter(|sample| sample.send_ns.is_finite());
    let stamps = all.filter_map(|sample| {
        let post = numbered.of(Kind::Post, flow_of(sample.thread), sample.sequence as u32)?;
        let time_ns = clock.monotonic_ns(sample.send_ns);
        // Of one that was written before the post nothing is known.
        let own = Stamp { time_ns, kind: Kind::Taken, ..trace.stamps[post] };
        (time_ns >= trace.stamps[post].time_ns).then_some(own)
    });
    let stamps: Vec<Stamp> = stamps.collect();
    trace.stamps.extend(stamps);
    trace::sort(&mut trace.stamps);
}

/// Where the program's stamps are, by kind, flow and number of the message.
struct Numbered(Vec<((u8, u32, u32), usize)>);

impl Numbered {
    fn new(stamps: &[Stamp]) -> Numbered {
        let own = stamps.iter().enumerate().filter(|(_, one)| one.kind.is_of_program());
        let key = |one: &Stamp| (one.kind as u8, one.flow, one.number);
        let mut all: Vec<_> = own.map(|(position, one)| (key(one), position)).collect();
        all.sort_unstable();
        Numbered(all)
    }

    /// The first.
    fn of(&self, kind: Kind, flow: u32, number: u32) -> Option<usize> {
        let key = (kind as u8, flow, number);
        let first = self.0.partition_point(|(own, _)| *own < key);
        self.0.get(first).filter(|(own, _)| *own == key).map(|(_, position)| *position)
    }
}

/// Finds the stamps of the samples with these numbers.
pub(super) fn follow(
    measured: &[usize],
    samples: &[Sample],
    stamps: &Stamps<'_>,
    way: &Way,
) -> Vec<Found> {
    let numbered = Numbered::new(stamps.all);
    let one = |number: &usize| {
        let sample = &samples[*number];
        let range = stamps.between(way.start_ns(sample), sample.receive_ns);
        let number_sent = sample.sequence as u32;
        let (mut threads, mut legs) = ([0; 2], Vec::new());
        let mut flow = flow_of(sample.thread);
        for leg in 0..way.legs() {
            let post = numbered.of(Kind::Post, flow, number_sent)?;
            let arrived = numbered.of(Kind::Arrived, flow, number_sent)?;
            let returned = numbered.of(Kind::Posted, flow, number_sent);
            let (sender, receiver) = (stamps.all[post].tid, stamps.all[arrived].tid);
            threads = if leg == 0 { [sender, receiver] } else { [receiver, sender] };
            let taken = numbered.of(Kind::Taken, flow, number_sent);
            let own = Own { post, returned, taken, arrived };
            legs.push(own.leg(stamps.all, way, leg, receiver));
            flow = reversed(flow);
        }
        let clamped = clamp(range, stamps.all.len());
        Some(Found { sample: *number, threads, range: clamped, legs, ahead: Vec::new() })
    };
    measured.iter().filter_map(one).collect()
}

fn clamp(range: Range<usize>, end: usize) -> Range<usize> {
    range.start.min(end)..range.end.min(end)
}

/// The program's stamps of a message one way.
struct Own {
    post: usize,
    returned: Option<usize>,
    taken: Option<usize>,
    arrived: usize,
}

impl Own {
    /// The positions of the stamps of this leg.
    fn leg(&self, all: &[Stamp], way: &Way, leg: usize, receiver: u32) -> Positions {
        let Own { post, returned, arrived, .. } = *self;
        let between = &all[post.min(arrived)..arrived];
        let woken = |stamp: &Stamp| stamp.kind == Kind::Waking && stamp.flow == receiver;
        let takes = |stamp: &Stamp| stamp.kind == Kind::Switch && stamp.flow == receiver;
        // One that was woken for something else and sleeps again is woken once more.
        let wake = between.iter().rposition(woken).and_then(|waking| {
            let runs = between[waking..].iter().position(takes)?;
            Some((post + waking, post + waking + runs))
        });
        let ready = wake.map_or(arrived, |(waking, _)| waking);
        let taken = self.taken.filter(|taken| *taken < ready);
        let ready = taken.unwrap_or(ready);
        let position = |by: Match, kind: Kind| match (by, kind) {
            // The client's first stamp is its submit stamp.
            (Match::Numbered, Kind::Post) => (leg > 0).then_some(post),
            (Match::Numbered, Kind::Taken) => taken,
            (Match::Numbered, _) => Some(arrived),
            (Match::Returned, _) => Some(returned.map_or(ready, |returned| returned.min(ready))),
            (Match::Wake, _) => wake.map(|(waking, _)| waking),
            (Match::Takes, _) => wake.map(|(_, runs)| runs),
            _ => None,
        };
        way.steps.iter().map(|step| position(step.by, step.kind)).collect()
    }
}

#[cfg(test)]
mod tests;
