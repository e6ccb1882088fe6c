//! Splits the time of each message into stages by the stamps that lie in it.
//!
//! For messages of which one is on the way at a time: all stamps of its flow between its submit and
//! its receive stamp are its own.

use super::clock::KernelClock;
use super::path::{Half, Match, Step};
use crate::host::trace::{Kind, Stamp, Trace};
use crate::sample::{Flags, Sample};
use std::ops::Range;

/// A stage of all messages of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct StageDef {
    /// 0: from the client to the server, 1: back.
    pub leg: usize,
    /// In words; those of merged stages joined.
    pub name: String,
    /// Who works.
    pub half: Half,
    /// The trace point at which it ends; `None`: the program's own stamp.
    pub kind: Option<Kind>,
}

/// A message whose time was split.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Its sample, by its position in the round.
    pub sample: usize,
    /// When it was submitted, in the time of the samples.
    pub start_ns: f64,
    /// What it took by the program's own stamps.
    pub total_ns: f64,
    /// Of each stage, in the order of the definitions; their sum is the total.
    pub stages_ns: Vec<f64>,
    /// The CPU of the stamp that ends each stage; of the last that of the stamp before.
    pub cpus: Vec<u16>,
    /// The threads of client and server.
    pub threads: [u32; 2],
    /// The stamps between its submit and its receive stamp.
    pub stamps: Range<usize>,
}

/// What became of the messages of a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundSplit {
    /// The stages.
    pub stages: Vec<StageDef>,
    /// The messages.
    pub messages: Vec<Split>,
    /// Messages of which a stamp is missing.
    pub incomplete: u64,
    /// Messages whose stamps are not in the order of the way.
    pub disordered: u64,
    /// Messages sent after the memory for stamps was full.
    pub beyond: u64,
}

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

/// What the stamps of a leg are found by.
#[derive(Clone, Copy)]
struct Leg {
    flow: u32,
    sender: u32,
    receiver: u32,
}

const fn reversed(flow: u32) -> u32 {
    flow.rotate_left(16)
}

/// The positions of the stamps of both legs, a step each.
type Found = [Vec<Option<usize>>; 2];

/// Splits the messages of a round that were answered. `begin`: the step by which a leg is found.
pub fn round_trips(
    samples: &[Sample],
    stamps: &Stamps<'_>,
    steps: &[Step],
    begin: &Step,
) -> RoundSplit {
    let mut round = RoundSplit::default();
    let mut found = Vec::new();
    for (number, sample) in samples.iter().enumerate() {
        if !is_measured(sample) {
            continue;
        }
        if sample.receive_ns > stamps.full_ns {
            round.beyond += 1;
            continue;
        }
        let range = stamps.between(sample.submit_ns, sample.receive_ns);
        match legs(stamps, &range, steps, begin) {
            Some((legs, found_in)) => found.push((number, range, legs, found_in)),
            None => round.incomplete += 1,
        }
    }
    let present = present(&found, steps);
    round.stages = definitions(&present, steps);
    for (number, range, legs, found_in) in found {
        let sample = &samples[number];
        match one(sample, stamps, steps, &present, &found_in) {
            Ok((stages_ns, cpus)) => round.messages.push(Split {
                sample: number,
                start_ns: sample.submit_ns,
                total_ns: sample.receive_ns - sample.submit_ns,
                stages_ns,
                cpus,
                threads: [legs[0].sender, legs[1].sender],
                stamps: range,
            }),
            Err(Left::Incomplete) => round.incomplete += 1,
            Err(Left::Disordered) => round.disordered += 1,
        }
    }
    round
}

/// Whether a message has both stamps and belongs to the figures.
pub fn is_measured(sample: &Sample) -> bool {
    let outside = [Flags::WARMUP, Flags::LOST, Flags::DUPLICATE, Flags::UNSENT, Flags::UNFINISHED];
    !outside.iter().any(|flag| sample.flags.has(*flag))
        && (sample.receive_ns - sample.submit_ns).is_finite()
}

/// The stamps of both legs of a message; `None`: where one of them begins is not there.
fn legs(
    stamps: &Stamps<'_>,
    range: &Range<usize>,
    steps: &[Step],
    begin: &Step,
) -> Option<([Leg; 2], Found)> {
    let own = &stamps.all[range.clone()];
    let is_begin = |stamp: &&Stamp| {
        stamp.kind == begin.kind && (begin.by != Match::Packet || stamp.length > 0)
    };
    let there = own.iter().find(is_begin)?;
    let is_back = |stamp: &&Stamp| match begin.by {
        Match::Sender => stamp.tid != there.tid,
        _ => stamp.flow == reversed(there.flow),
    };
    let back = own.iter().filter(is_begin).find(is_back)?;
    let (client, server) = (there.tid, back.tid);
    let legs = [
        Leg { flow: there.flow, sender: client, receiver: server },
        Leg { flow: back.flow, sender: server, receiver: client },
    ];
    let found = legs.map(|leg| one_leg(own, range.start, (steps, begin), leg));
    Some((legs, found))
}

/// The positions of the stamps of one leg.
fn one_leg(
    own: &[Stamp],
    offset: usize,
    (steps, begin): (&[Step], &Step),
    leg: Leg,
) -> Vec<Option<usize>> {
    let first = |is: &dyn Fn(&Stamp) -> bool| own.iter().position(is);
    let of_kind = |kind: Kind| {
        let step = steps.iter().find(|step| step.kind == kind)?;
        first(&|stamp| is_of(step, stamp, leg))
    };
    // A kernel that does not stamp the one stamps the other.
    let arrived = of_kind(Kind::Ready).or_else(|| of_kind(Kind::Receive));
    let copied = arrived.and_then(|arrived| {
        let copies = |stamp: &Stamp| {
            stamp.kind == Kind::Copied && stamp.tid == leg.receiver && in_flow(stamp, leg.flow)
        };
        own[arrived..].iter().position(copies).map(|at| arrived + at)
    });
    let readable = of_kind(Kind::Ready).or(copied);
    let begins = first(&|stamp| is_of(begin, stamp, leg));
    let before = |end: Option<usize>, is: &dyn Fn(&Stamp) -> bool| own[..end?].iter().rposition(is);
    let waking = arrived.zip(copied).and_then(|(arrived, copied)| {
        let wakes = |stamp: &Stamp| stamp.kind == Kind::Waking && stamp.flow == leg.receiver;
        own[arrived..copied].iter().rposition(wakes).map(|at| arrived + at)
    });
    let position = |step: &Step| match step.by {
        Match::Packet | Match::Flow | Match::Sender => first(&|stamp| is_of(step, stamp, leg)),
        Match::Receiver => copied,
        Match::LastBeforeReady => before(readable, &|stamp| is_of(step, stamp, leg)),
        Match::CallOfSender => {
            before(begins, &|stamp| stamp.kind == step.kind && stamp.tid == leg.sender)
        }
        Match::Wake => waking,
        Match::Takes => {
            let (from, to) = (waking?, copied?);
            let takes = |stamp: &Stamp| stamp.kind == step.kind && stamp.flow == leg.receiver;
            own[from..to].iter().position(takes).map(|at| from + at)
        }
        Match::ReturnOfReceiver => {
            let from = copied?;
            let returns = |stamp: &Stamp| stamp.kind == step.kind && stamp.tid == leg.receiver;
            own[from..].iter().position(returns).map(|at| from + at)
        }
    };
    steps.iter().map(|step| position(step).map(|at| at + offset)).collect()
}

/// Copies of datagrams do not say whose they are: the thread does.
fn in_flow(stamp: &Stamp, flow: u32) -> bool {
    stamp.flow == flow || stamp.flow == 0
}

fn is_of(step: &Step, stamp: &Stamp, leg: Leg) -> bool {
    stamp.kind == step.kind
        && match step.by {
            Match::Packet => stamp.flow == leg.flow && stamp.length > 0,
            Match::Sender => stamp.tid == leg.sender,
            _ => stamp.flow == leg.flow,
        }
}

/// Which steps of each leg messages pass here: those that most have a stamp of, and of those that
/// need not be passed, those that one in a hundred has.
fn present<T, U>(found: &[(T, Range<usize>, U, Found)], steps: &[Step]) -> [Vec<bool>; 2] {
    [0, 1].map(|leg| {
        let of_step = |(number, step): (usize, &Step)| {
            let with = found.iter().filter(|(.., found)| found[leg][number].is_some()).count();
            let enough = if step.optional { found.len() / 100 } else { found.len() / 2 };
            with > enough
        };
        steps.iter().enumerate().map(of_step).collect()
    })
}

/// The stages: one for each step that is passed. A step that is not lends its name to the next.
fn definitions(present: &[Vec<bool>; 2], steps: &[Step]) -> Vec<StageDef> {
    let mut all = Vec::new();
    for (leg, present) in present.iter().enumerate() {
        let mut waiting: Vec<&str> = Vec::new();
        if leg == 1 && !passes(steps, present, Kind::SysExit) {
            waiting.push("return");
        }
        for (step, is_present) in steps.iter().zip(present) {
            let lends = !step.optional && !is_alternative(step, steps, present);
            if *is_present {
                let own = own_name(step, steps, present);
                let name = waiting.drain(..).chain([own]).collect::<Vec<_>>().join(", ");
                all.push(StageDef { leg, name, half: step.half, kind: Some(step.kind) });
            } else if lends {
                waiting.push(step.name);
            }
        }
        if leg == 1 {
            let name = waiting.into_iter().chain([TO_APPLICATION]).collect::<Vec<_>>().join(", ");
            all.push(StageDef { leg, name, half: Half::Receive, kind: None });
        }
    }
    all
}

const TO_APPLICATION: &str = "to the application";

fn passes(steps: &[Step], present: &[bool], kind: Kind) -> bool {
    steps.iter().zip(present).any(|(step, is_present)| step.kind == kind && *is_present)
}

/// A packet arrives by GRO or by `netif_rx`: what is not passed is no part of the way.
fn is_alternative(step: &Step, steps: &[Step], present: &[bool]) -> bool {
    match step.kind {
        Kind::NetifRx => passes(steps, present, Kind::Gro),
        Kind::Gro => passes(steps, present, Kind::NetifRx),
        _ => false,
    }
}

/// A thread that was woken does not poll.
fn own_name(step: &Step, steps: &[Step], present: &[bool]) -> &'static str {
    match step.kind {
        Kind::Copied if passes(steps, present, Kind::Switch) => "running and copy",
        _ => step.name,
    }
}

/// Why a message is left out.
enum Left {
    Incomplete,
    Disordered,
}

/// The stages of one message, and the CPUs at their ends.
fn one(
    sample: &Sample,
    stamps: &Stamps<'_>,
    steps: &[Step],
    present: &[Vec<bool>; 2],
    found: &Found,
) -> Result<(Vec<f64>, Vec<u16>), Left> {
    let (mut stages, mut cpus) = (Vec::new(), Vec::new());
    let (mut at, mut cpu) = (sample.submit_ns, None);
    for (present, found) in present.iter().zip(found) {
        for ((step, _), position) in
            steps.iter().zip(present).zip(found).filter(|((_, is), _)| **is)
        {
            let Some(position) = position else {
                if !step.optional {
                    return Err(Left::Incomplete);
                }
                stages.push(0.0);
                cpus.push(cpu.unwrap_or(0));
                continue;
            };
            let time = stamps.times_ns[*position];
            if time < at {
                return Err(Left::Disordered);
            }
            stages.push(time - at);
            at = time;
            cpu = Some(stamps.all[*position].cpu);
            cpus.push(stamps.all[*position].cpu);
        }
    }
    if sample.receive_ns < at {
        return Err(Left::Disordered);
    }
    stages.push(sample.receive_ns - at);
    cpus.push(cpu.unwrap_or(0));
    Ok((stages, cpus))
}
