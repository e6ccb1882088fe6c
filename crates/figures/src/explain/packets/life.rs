//! Packets followed from the one end to the other.

use super::trace::{Event, Id, LOCKS, NO_OFFSET, NOTICED, Offset, Trace, What};
use super::{Carries, Direction, Lives, LockWait, Packets};
use crate::explain::summary;
use std::collections::{BTreeMap, HashMap};

/// The stages of a packet in their order: the name, and the trace point at which each ends. A grant
/// has no `IP`: its way into IP is not traced, so its `network` begins before.
pub const STAGES: [(&str, &str); 6] = [
    ("IP", "Finished queueing packet"),
    ("network", "homa_gro_receive got packet"),
    ("GRO, others of the batch", "homa_gro_receive got packet, of the last"),
    ("GRO, to the hand-off", "homa_gro_* chose core"),
    ("SoftIRQ wake-up", "homa_softirq starting"),
    ("SoftIRQ", "incoming data packet, processing grant"),
];

/// The time of each packet in each stage, by what it carries and which way it went.
type Lived = BTreeMap<(Carries, Direction), Vec<[f64; STAGES.len()]>>;

/// A time and the CPU.
type Seen = (f64, u32);

/// What a call into IP took.
struct Sent {
    ns: f64,
    /// When it returned.
    queued_ns: Option<f64>,
    offset: Offset,
    length: Option<u32>,
    peer: u32,
}

impl Sent {
    /// Whether the packet at an offset was part of it: IP may cut it into several.
    fn has(&self, offset: Offset) -> bool {
        let end = self.length.map_or(Offset::MAX, |length| self.offset.saturating_add(length));
        (self.offset..end).contains(&offset) || offset == NO_OFFSET
    }
}

/// A packet that its handler took.
struct Arrived {
    seen: Seen,
    carries: Carries,
    id: Id,
    offset: Offset,
    /// The address of its sender, where the sentence has it.
    peer: Option<u32>,
}

/// What a trace holds of each packet, in the order of time.
#[derive(Default)]
struct Index {
    sent: HashMap<Id, Vec<Sent>>,
    granting: HashMap<(Id, Offset), Vec<f64>>,
    gro: HashMap<(Id, Offset), Vec<(Seen, u32)>>,
    gro_grants: HashMap<(Id, Offset), Vec<(Seen, u32)>>,
    /// By CPU.
    of_cpu: BTreeMap<u32, OfCpu>,
    arrived: Vec<Arrived>,
}

#[derive(Default)]
struct OfCpu {
    gro: Vec<f64>,
    handed_off: Vec<f64>,
    soft_irqs: Vec<f64>,
}

impl Index {
    fn of(trace: &Trace) -> Index {
        let mut all = Index::default();
        for Event { ns, cpu, what } in trace.events.iter().copied() {
            let own = all.of_cpu.entry(cpu).or_default();
            match what {
                What::Sent { id, offset, peer } => {
                    let sent = Sent { ns, queued_ns: None, offset, length: None, peer };
                    all.sent.entry(id).or_default().push(sent);
                }
                What::Queued { id, offset, length } => {
                    let own = all.sent.get_mut(&id).into_iter().flatten();
                    if let Some(sent) = own.rev().find(|sent| sent.offset == offset) {
                        (sent.queued_ns, sent.length) = (Some(ns), length);
                    }
                }
                What::Granting { id, offset } => {
                    all.granting.entry((id, offset)).or_default().push(ns);
                }
                What::Gro { id, offset, peer } => {
                    own.gro.push(ns);
                    all.gro.entry((id, offset)).or_default().push(((ns, cpu), peer));
                }
                What::GroGrant { id, offset, peer } => {
                    own.gro.push(ns);
                    all.gro_grants.entry((id, offset)).or_default().push(((ns, cpu), peer));
                }
                What::HandedOff => own.handed_off.push(ns),
                What::SoftIrq => own.soft_irqs.push(ns),
                What::Incoming { id, offset, peer } => {
                    let (seen, carries, peer) = ((ns, cpu), Carries::Data, Some(peer));
                    all.arrived.push(Arrived { seen, carries, id, offset, peer });
                }
                What::Granted { id, offset } => {
                    let (seen, carries, peer) = ((ns, cpu), Carries::Grant, None);
                    all.arrived.push(Arrived { seen, carries, id, offset, peer });
                }
                What::Waits(_) | What::Has(_) | What::Noticed(_) => {}
            }
        }
        all
    }
}

/// A packet at the receiving end: when each of its stages ended, from GRO on.
struct Arrival {
    carries: Carries,
    id: Id,
    offset: Offset,
    from: Option<u32>,
    /// GRO has it, has the last of its batch, hands off; the SoftIRQ begins, has it.
    ends_ns: [f64; 5],
}

/// The last of sorted times up to one.
fn last_until(times: &[f64], until: f64) -> Option<f64> {
    times[..times.partition_point(|ns| *ns <= until)].last().copied()
}

/// The first of sorted times from one on.
fn first_from(times: &[f64], from: f64) -> Option<f64> {
    times.get(times.partition_point(|ns| *ns < from)).copied()
}

/// Where a packet was before its handler took it; `None`: the trace begins later.
fn arrival(index: &Index, of: &Arrived) -> Option<Arrival> {
    let Arrived { seen: (done, cpu), carries, id, offset, peer } = *of;
    let all = match carries {
        Carries::Data => &index.gro,
        Carries::Grant => &index.gro_grants,
    };
    let soft_irqs = &index.of_cpu.get(&cpu)?.soft_irqs;
    let (gro, from) = match all.get(&(id, offset)) {
        Some(seen) => {
            let (gro, from) = *seen[..seen.partition_point(|((ns, _), _)| *ns <= done)].last()?;
            (gro, Some(from))
        }
        // Loopback, and veth unless asked to, have no GRO: the SoftIRQ sees it first.
        None if all.is_empty() => ((last_until(soft_irqs, done)?, cpu), peer),
        None => return None,
    };
    let began = last_until(soft_irqs, done);
    // Short messages and grants pass by the hand-off: the SoftIRQ's work is done within GRO.
    let began = began.filter(|ns| *ns >= gro.0).unwrap_or(gro.0);
    let of_gro = index.of_cpu.get(&gro.1)?;
    let handed = first_from(&of_gro.handed_off, gro.0).filter(|ns| *ns <= began);
    let handed = handed.unwrap_or(gro.0);
    let batch = last_until(&of_gro.gro, handed).unwrap_or(gro.0).max(gro.0);
    Some(Arrival { carries, id, offset, from, ends_ns: [gro.0, batch, handed, began, done] })
}

/// How a packet left: the call into IP and its end, and to whom.
struct Departure {
    sent_ns: f64,
    queued_ns: Option<f64>,
    to: Option<u32>,
}

/// The departure of a packet that arrived; the last before `until`.
fn departure(index: &Index, of: &Arrival, until: f64) -> Option<Departure> {
    let id = of.id ^ 1;
    if of.carries == Carries::Grant {
        let sent = last_until(index.granting.get(&(id, of.offset))?, until)?;
        return Some(Departure { sent_ns: sent, queued_ns: None, to: None });
    }
    let mut all = index.sent.get(&id)?.iter().rev();
    let sent = all.find(|sent| sent.ns <= until && sent.has(of.offset))?;
    Some(Departure { sent_ns: sent.ns, queued_ns: sent.queued_ns, to: Some(sent.peer) })
}

/// The addresses of the two ends, as the most of the packets have them: other hosts use the same
/// identifiers.
fn addresses(from: &Index, to: &[Arrival]) -> Option<(u32, u32)> {
    let mut seen: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for arrival in to {
        let found = departure(from, arrival, f64::INFINITY);
        if let (Some(from), Some(to)) = (arrival.from, found.and_then(|departure| departure.to)) {
            *seen.entry((from, to)).or_default() += 1;
        }
    }
    seen.into_iter().max_by_key(|(_, number)| *number).map(|(both, _)| both)
}

/// The shortest way of a packet from the one to the other, each on its own clock.
fn shortest(from: &Index, to: &[Arrival], both: (u32, u32)) -> Option<f64> {
    let ways = to.iter().filter_map(|arrival| {
        let found = departure(from, arrival, f64::INFINITY)?;
        let is_theirs = found.to == Some(both.1) && arrival.from == Some(both.0);
        is_theirs.then(|| arrival.ends_ns[0] - found.sent_ns)
    });
    ways.min_by(f64::total_cmp)
}

/// What the packets of one trace did, or those that went between the hosts of two.
///
/// Of two, either clock is placed on the other so that the shortest ways there and back are equal.
/// `None` where none went each way, so that there is no such place.
pub fn follow(first: &Trace, second: Option<&Trace>) -> Option<Packets> {
    let traces: Vec<&Trace> = [Some(first), second].into_iter().flatten().collect();
    let indexes: Vec<Index> = traces.iter().map(|trace| Index::of(trace)).collect();
    let mut cut = 0;
    let mut arrivals: Vec<Vec<Arrival>> = Vec::new();
    for index in &indexes {
        let own: Vec<Arrival> =
            index.arrived.iter().filter_map(|one| arrival(index, one)).collect();
        cut += index.arrived.len() - own.len();
        arrivals.push(own);
    }
    let mut lives: Lived = BTreeMap::new();
    let mut bound_ns = None;
    match (&indexes[..], &arrivals[..]) {
        ([one], [own]) => {
            for arrival in own {
                keep(one, arrival, 0.0, None, &mut lives, &mut cut);
            }
        }
        ([a, b], [to_a, to_b]) => {
            let (there, back) = (addresses(a, to_b)?, addresses(b, to_a)?);
            let (least, most) = (shortest(a, to_b, there)?, shortest(b, to_a, back)?);
            // What b's clock is ahead of a's.
            let ahead = (least - most) / 2.0;
            bound_ns = Some((least + most).abs() / 2.0);
            for arrival in to_b {
                keep(a, arrival, -ahead, Some(there), &mut lives, &mut cut);
            }
            for arrival in to_a {
                keep(b, arrival, ahead, Some(back), &mut lives, &mut cut);
            }
        }
        _ => return None,
    }
    let lives =
        lives.into_iter().map(|((carries, direction), all)| of_kind(carries, direction, &all));
    let ends = traces.iter().flat_map(|trace| [trace.events.first(), trace.events.last()]);
    let ends: Vec<f64> = ends.map(|event| event.map_or(0.0, |event| event.ns)).collect();
    let length_ns = ends.chunks(2).map(|both| both[1] - both[0]).fold(0.0, f64::max);
    Some(Packets {
        lives: lives.collect(),
        cut,
        locks: locks(&traces),
        events: events(&traces),
        bound_ns,
        length_ns,
    })
}

/// Follows a packet to where it was sent, whose clock is `ahead` of the receiver's by minus what is
/// added.
fn keep(
    from: &Index,
    arrival: &Arrival,
    added: f64,
    both: Option<(u32, u32)>,
    lives: &mut Lived,
    cut: &mut usize,
) {
    let is_theirs = both.is_none_or(|(source, _)| arrival.from.is_none_or(|from| from == source));
    if !is_theirs {
        return;
    }
    let ends = arrival.ends_ns.map(|ns| ns + added);
    // The shortest way may be 0 on clocks that are placed by it.
    let found = departure(from, arrival, ends[0] + 1.0);
    let found = found.filter(|one| both.is_none_or(|(_, peer)| one.to.is_none_or(|to| to == peer)));
    let Some(found) = found else {
        *cut += 1;
        return;
    };
    // Over loopback the other end has it before the call into IP returns.
    let queued = found.queued_ns.unwrap_or(found.sent_ns).min(ends[0]).max(found.sent_ns);
    let times = [found.sent_ns, queued, ends[0], ends[1], ends[2], ends[3], ends[4]];
    let mut stages = [0.0; STAGES.len()];
    for (stage, both) in stages.iter_mut().zip(times.windows(2)) {
        *stage = (both[1] - both[0]).max(0.0);
    }
    // The one who sends to a server has a number with the last bit clear.
    let direction = if arrival.id & 1 == 1 { Direction::ToServer } else { Direction::ToClient };
    lives.entry((arrival.carries, direction)).or_default().push(stages);
}

fn quantiles(times: impl Iterator<Item = f64>) -> Vec<f64> {
    summary::quantiles(&summary::sorted(times))
}

fn of_kind(carries: Carries, direction: Direction, all: &[[f64; STAGES.len()]]) -> Lives {
    let of_stage = |stage: usize| quantiles(all.iter().map(|one| one[stage]));
    Lives {
        carries,
        direction,
        packets: all.len(),
        stages_ns: (0..STAGES.len()).map(of_stage).collect(),
        total_ns: quantiles(all.iter().map(|one| one.iter().sum())),
    }
}

/// Waits for locks: from the begin of one to its end on the same CPU.
fn locks(traces: &[&Trace]) -> Vec<LockWait> {
    let mut all = LOCKS.map(|lock| LockWait { lock, waits: 0, total_ns: 0.0, longest_ns: 0.0 });
    for trace in traces {
        let mut since: HashMap<(u32, usize), f64> = HashMap::new();
        for event in &trace.events {
            match event.what {
                What::Waits(lock) => {
                    since.insert((event.cpu, lock), event.ns);
                }
                What::Has(lock) => {
                    let Some(begin) = since.remove(&(event.cpu, lock)) else { continue };
                    let one = &mut all[lock];
                    one.waits += 1;
                    one.total_ns += event.ns - begin;
                    one.longest_ns = one.longest_ns.max(event.ns - begin);
                }
                _ => {}
            }
        }
    }
    let mut all: Vec<LockWait> = all.into_iter().filter(|one| one.waits > 0).collect();
    all.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    all
}

/// What was noticed, and how often.
fn events(traces: &[&Trace]) -> Vec<(&'static str, usize)> {
    let of = |(number, (name, _)): (usize, &(&'static str, &str))| {
        let events = traces.iter().flat_map(|trace| &trace.events);
        (*name, events.filter(|event| event.what == What::Noticed(number)).count())
    };
    NOTICED.iter().enumerate().map(of).filter(|(_, count)| *count > 0).collect()
}
