//! Messages that pass by the kernel: the program's own stamps of their posts and arrivals, and the
//! kernel's of threads that waited for them.

use super::clock::KernelClock;
use super::path::{Match, Way};
use super::stamps::{Found, Positions, Stamps, reversed};
use crate::clock::{Ticks, Timebase};
use crate::host::trace::{Kind, Stamp, Trace};
use crate::sample::Sample;
use crate::sample::arena::Row;
use crate::transport::Role;
use std::ops::Range;

/// The flow of the messages of a thread of each end, from client to server.
pub(super) const fn flow_of(thread: u32) -> u32 {
    (thread + 1) << 16
}

/// Adds the stamps of a thread of an end, which [`crate::loops::stamped::Stamped`] has kept in
/// these rows, to those of the kernel. `room`: the most that it could keep.
pub fn add(
    trace: &mut Trace,
    (role, thread): (Role, u32),
    (rows, room): (&[Row], usize),
    time: &Timebase,
    clock: &KernelClock,
) {
    let Some((first, rows)) = rows.split_first() else { return };
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
            tid: first.order,
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
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
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
            legs.push(one_leg(stamps.all, way, leg, (post, returned, arrived), receiver));
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

/// The positions of the stamps of one leg.
fn one_leg(
    all: &[Stamp],
    way: &Way,
    leg: usize,
    (post, returned, arrived): (usize, Option<usize>, usize),
    receiver: u32,
) -> Positions {
    let between = &all[post.min(arrived)..arrived];
    let woken = |stamp: &Stamp| stamp.kind == Kind::Waking && stamp.flow == receiver;
    let takes = |stamp: &Stamp| stamp.kind == Kind::Switch && stamp.flow == receiver;
    // One that was woken for something else and sleeps again is woken once more.
    let wake = between.iter().rposition(woken).and_then(|waking| {
        let runs = between[waking..].iter().position(takes)?;
        Some((post + waking, post + waking + runs))
    });
    let ready = wake.map_or(arrived, |(waking, _)| waking);
    let position = |by: Match, kind: Kind| match (by, kind) {
        // The client's first stamp is its submit stamp.
        (Match::Numbered, Kind::Post) => (leg > 0).then_some(post),
        (Match::Numbered, _) => Some(arrived),
        (Match::Returned, _) => Some(returned.map_or(ready, |returned| returned.min(ready))),
        (Match::Wake, _) => wake.map(|(waking, _)| waking),
        (Match::Takes, _) => wake.map(|(_, runs)| runs),
        _ => None,
    };
    way.steps.iter().map(|step| position(step.by, step.kind)).collect()
}

#[cfg(test)]
mod tests;
