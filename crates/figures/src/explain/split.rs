//! Splits the time of each message into stages by the stamps that lie in it.
//!
//! Where one message is on the way at a time, all stamps of its flow between its submit and its
//! receive stamp are its own. The module `streams` finds those of messages that are not alone.

use super::apart::{Kernels, is_of_other};
use super::path::{Match, Step, Way};
use super::program;
use super::stages::definitions;
pub use super::stages::{GENERATOR, StageDef};
use super::stamps::{Found, Positions, Stamps, UNSEEN, in_flow, reversed};
use super::streams;
use std::collections::BTreeMap;
use std::ops::Range;
use wiregauge_host::trace::{Kind, Stamp};
use wiregauge_plan::Followed;
use wiregauge_sample::Sample;
use wiregauge_transport::KernelPath;

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
    /// Messages in front of it when it came to the socket of each leg; empty where it was alone.
    pub ahead: Vec<u32>,
    /// Packets of the poll that took it from the device of each leg, where that was stamped.
    pub batches: Vec<Option<u32>>,
    /// Packets that GRO had merged when the stack took it, of each leg where that was stamped.
    pub merged: Vec<Option<u32>>,
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

/// What the stamps of a leg are found by.
#[derive(Clone, Copy)]
struct Leg {
    flow: u32,
    sender: u32,
    receiver: u32,
    numbers: Numbers,
}

/// Which packets of a flow are a message's own: one before it may come late or twice.
#[derive(Clone, Copy)]
enum Numbers {
    /// All.
    Any,
    /// Those of TCP from a sequence number on.
    From(u32),
    /// Datagrams with this number.
    Of(u32),
}

impl Numbers {
    fn has(self, stamp: &Stamp) -> bool {
        match self {
            Numbers::Any => true,
            Numbers::From(first) => stamp.number.wrapping_sub(first) as i32 >= 0,
            Numbers::Of(number) => stamp.number == number,
        }
    }

    /// Of the only message on the way among these stamps: the last bytes of a stream.
    fn of(sample: &Sample, way: &Way, own: &[Stamp], flow: u32) -> Numbers {
        let is_sent = |stamp: &&Stamp| {
            matches!(stamp.kind, Kind::Queue | Kind::Receive) && stamp.flow == flow
        };
        let ends = own.iter().filter(is_sent).filter(|stamp| stamp.length > 0);
        let ends = ends.map(|stamp| stamp.number.wrapping_add(stamp.length));
        let later = |a: u32, b: u32| if b.wrapping_sub(a) as i32 > 0 { b } else { a };
        match way.path {
            KernelPath::Segments => ends.reduce(later).map_or(Numbers::Any, |end| {
                Numbers::From(end.wrapping_sub(sample.size.saturating_add(way.framing)))
            }),
            KernelPath::Datagrams if sample.size >= LEAST_NUMBERED => {
                Numbers::Of(sample.sequence as u32)
            }
            _ => Numbers::Any,
        }
    }
}

/// The fewest bytes of a datagram with a number.
const LEAST_NUMBERED: u32 = 4;

/// The messages of a round of which the stamps were looked for, and those that are left out.
struct FoundRound {
    messages: Vec<Found>,
    incomplete: u64,
    beyond: u64,
}

/// Splits the messages of rounds that arrived, all into the same stages. `begin`: the step by which
/// a leg is found.
pub fn split_rounds(
    rounds: &[(&[Sample], &Stamps<'_>)],
    way: &Way,
    begin: &Step,
) -> Vec<RoundSplit> {
    let find = |(samples, stamps): &(&[Sample], &Stamps<'_>)| find(samples, stamps, way, begin);
    let found: Vec<FoundRound> = rounds.iter().map(find).collect();
    let present = present(&found, way);
    let stages = definitions(&present, way);
    let split = |(found, (samples, stamps)): (FoundRound, &(&[Sample], &Stamps<'_>))| RoundSplit {
        stages: stages.clone(),
        ..split(found, samples, stamps, way, &present)
    };
    found.into_iter().zip(rounds).map(split).collect()
}

/// Finds the stamps of the messages of a round.
fn find(samples: &[Sample], stamps: &Stamps<'_>, way: &Way, begin: &Step) -> FoundRound {
    let measured = samples.iter().enumerate().filter(|(_, sample)| way.is_measured(sample));
    let (within, beyond): (Vec<_>, Vec<_>) =
        measured.partition(|(_, sample)| sample.receive_ns <= stamps.full_ns);
    let within: Vec<usize> = within.into_iter().map(|(number, _)| number).collect();
    let messages: Vec<Found> = match way.followed {
        _ if way.is_stamped_by_program() => program::follow(&within, samples, stamps, way),
        Followed::Alone => {
            let own = within.iter();
            own.filter_map(|number| alone(*number, samples, stamps, way, begin)).collect()
        }
        _ => streams::follow(&within, samples, stamps, way, begin),
    };
    let incomplete = (within.len() - messages.len()) as u64;
    FoundRound { messages, incomplete, beyond: beyond.len() as u64 }
}

/// Splits the messages of a round into the stages of the steps that are passed.
fn split(
    found: FoundRound,
    samples: &[Sample],
    stamps: &Stamps<'_>,
    way: &Way,
    present: &[Vec<bool>],
) -> RoundSplit {
    let FoundRound { messages, incomplete, beyond } = found;
    let mut round = RoundSplit { incomplete, beyond, ..RoundSplit::default() };
    let polls = Polls::new(stamps.all);
    for message in messages {
        let sample = &samples[message.sample];
        match one(sample, stamps, way, present, &message.legs) {
            Ok((stages_ns, cpus)) => round.messages.push(Split {
                sample: message.sample,
                start_ns: way.start_ns(sample),
                total_ns: way.total_ns(sample),
                stages_ns,
                cpus,
                threads: message.threads,
                batches: message.legs.iter().map(|leg| polls.batch(way, leg)).collect(),
                merged: message.legs.iter().map(|leg| merged(way, leg, stamps.all)).collect(),
                stamps: message.range,
                ahead: message.ahead,
            }),
            Err(Left::Incomplete) => round.incomplete += 1,
            Err(Left::Disordered) => round.disordered += 1,
        }
    }
    round
}

/// The ends of polls of devices, by CPU.
struct Polls<'a> {
    all: &'a [Stamp],
    each: BTreeMap<u16, Vec<usize>>,
}

impl<'a> Polls<'a> {
    fn new(all: &'a [Stamp]) -> Polls<'a> {
        let mut each: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (position, stamp) in all.iter().enumerate().filter(|(_, one)| one.kind == Kind::Napi) {
            each.entry(stamp.cpu).or_default().push(position);
        }
        Polls { all, each }
    }

    /// Packets of the poll that took a message of this leg: a CPU is in one at a time.
    fn batch(&self, way: &Way, leg: &[Option<usize>]) -> Option<u32> {
        let at = way.steps.iter().position(|step| step.kind == Kind::Receive)?;
        let taken = leg.get(at).copied().flatten()?;
        let own = self.each.get(&self.all[taken].cpu)?;
        let end = own.get(own.partition_point(|end| *end <= taken))?;
        Some(self.all[*end].length)
    }
}

/// Packets that GRO made one of before the stack took that of a message of this leg: those of its
/// flow that the CPU handed to GRO since the stack took one before.
fn merged(way: &Way, leg: &[Option<usize>], all: &[Stamp]) -> Option<u32> {
    let of_kind = |kind| {
        let at = way.steps.iter().position(|step| step.kind == kind)?;
        leg.get(at).copied().flatten()
    };
    let (last, taken) = (of_kind(Kind::Gro)?, of_kind(Kind::Receive)?);
    let end = &all[taken];
    let is_own = |one: &&Stamp| one.flow == end.flow && one.cpu == end.cpu && one.length > 0;
    let before = all[..taken].iter().rev().take(MOST_MERGED).filter(is_own);
    let own = before.take_while(|one| one.kind != Kind::Receive);
    let count = own.filter(|one| one.kind == Kind::Gro).count() as u32;
    (last < taken && count > 0).then_some(count)
}

/// The stamps of both legs of a message that is on the way alone; `None`: where one of them begins
/// is not there.
fn alone(
    number: usize,
    samples: &[Sample],
    stamps: &Stamps<'_>,
    way: &Way,
    begin: &Step,
) -> Option<Found> {
    let sample = &samples[number];
    let range = stamps.between(sample.submit_ns, sample.receive_ns);
    let owners = stamps.owners.of(sample.thread);
    let (legs, positions) = legs(sample, stamps, &range, (way, begin), owners)?;
    let threads = [legs[0].sender, legs[1].sender];
    Some(Found { sample: number, threads, range, legs: positions.into(), ahead: Vec::new() })
}

/// The stamps of both legs of a message; `None`: where one of them begins is not there. `owners`:
/// its threads, where there are others.
fn legs(
    sample: &Sample,
    stamps: &Stamps<'_>,
    range: &Range<usize>,
    (way, begin): (&Way, &Step),
    owners: Option<[u32; 2]>,
) -> Option<([Leg; 2], [Positions; 2])> {
    let own = &stamps.all[range.clone()];
    let is_begin = |stamp: &&Stamp| {
        stamp.kind == begin.kind && (begin.by != Match::Packet || stamp.length > 0)
    };
    let is_by = |stamp: &Stamp, end: usize| owners.is_none_or(|own| own[end] == stamp.tid);
    let there = own.iter().filter(is_begin).find(|stamp| is_by(stamp, 0))?;
    let is_back = |stamp: &&Stamp| match begin.by {
        Match::Sender => stamp.tid != there.tid && is_by(stamp, 1),
        _ => stamp.flow == reversed(there.flow),
    };
    let (client, server) = match way.kernels {
        // Who answers is not seen.
        Kernels::Ours => (there.tid, UNSEEN),
        Kernels::One | Kernels::Both => (there.tid, own.iter().filter(is_begin).find(is_back)?.tid),
    };
    // Unix sockets have no flow.
    let back = reversed(there.flow);
    let legs = [(there.flow, [client, server]), (back, [server, client])];
    let legs = legs.map(|(flow, [sender, receiver])| {
        let numbers = Numbers::of(sample, way, own, flow);
        Leg { flow, sender, receiver, numbers }
    });
    let found = legs.map(|leg| one_leg(own, range.start, (way.steps, begin), leg));
    Some((legs, found))
}

/// The positions of the stamps of one leg.
fn one_leg(own: &[Stamp], offset: usize, (steps, begin): (&[Step], &Step), leg: Leg) -> Positions {
    let first = |is: &dyn Fn(&Stamp) -> bool| own.iter().position(is);
    let of_kind = |kind: Kind| {
        let step = steps.iter().find(|step| step.kind == kind)?;
        first(&|stamp| is_of(step, stamp, leg))
    };
    // What came before the message made its socket readable for others.
    let taken = of_kind(Kind::Receive);
    let ready = {
        let after = taken.filter(|_| matches!(leg.numbers, Numbers::Of(_))).unwrap_or(0);
        let is_ready = |stamp: &Stamp| stamp.kind == Kind::Ready;
        let step = steps.iter().find(|step| step.kind == Kind::Ready);
        let own = |step| own[after..].iter().position(|one| is_ready(one) && is_of(step, one, leg));
        step.and_then(own).map(|at| after + at)
    };
    // A kernel that does not stamp the one stamps the other.
    let arrived = ready.or(taken);
    let copied = arrived.and_then(|arrived| {
        let copies = |stamp: &Stamp| {
            stamp.kind == Kind::Copied && stamp.tid == leg.receiver && in_flow(stamp, leg.flow)
        };
        own[arrived..].iter().position(copies).map(|at| arrived + at)
    });
    let readable = ready.or(copied);
    let begins = first(&|stamp| is_of(begin, stamp, leg));
    let before = |end: Option<usize>, is: &dyn Fn(&Stamp) -> bool| own[..end?].iter().rposition(is);
    let waking = arrived.zip(copied).and_then(|(arrived, copied)| {
        let wakes = |stamp: &Stamp| stamp.kind == Kind::Waking && stamp.flow == leg.receiver;
        own[arrived..copied].iter().rposition(wakes).map(|at| arrived + at)
    });
    let position = |step: &Step| match step.by {
        Match::Flow if step.kind == Kind::Ready => ready,
        Match::Packet | Match::Flow | Match::Sender => first(&|stamp| is_of(step, stamp, leg)),
        // Nothing else is on the way.
        Match::Ahead | Match::Served => None,
        // The program does not stamp what the kernel shows.
        Match::Numbered | Match::Returned => None,
        Match::Receiver => copied,
        // Where nothing says when the socket was readable.
        Match::LastPacket if readable.is_none() => first(&|stamp| is_of(step, stamp, leg)),
        Match::LastPacket | Match::LastBeforeReady => {
            before(readable, &|stamp| is_of(step, stamp, leg))
        }
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

fn is_of(step: &Step, stamp: &Stamp, leg: Leg) -> bool {
    stamp.kind == step.kind
        && match step.by {
            Match::Packet | Match::LastPacket => {
                stamp.flow == leg.flow && stamp.length > 0 && leg.numbers.has(stamp)
            }
            Match::Sender => stamp.tid == leg.sender,
            _ => stamp.flow == leg.flow,
        }
}

/// Which steps of each leg messages pass here: those that most have a stamp of, and of those that
/// need not be passed, those that one in a hundred has.
fn present(rounds: &[FoundRound], way: &Way) -> Vec<Vec<bool>> {
    let found: Vec<&Found> = rounds.iter().flat_map(|round| &round.messages).collect();
    let of_leg = |leg: usize| {
        let of_step = |(number, step): (usize, &Step)| {
            let with = found.iter().filter(|one| one.legs[leg][number].is_some()).count();
            let enough = if step.optional { found.len() / 100 } else { found.len() / 2 };
            with > enough
        };
        way.steps.iter().enumerate().map(of_step).collect()
    };
    (0..way.legs()).map(of_leg).collect()
}

/// Stamps before that of the stack among which those of merged packets are looked for: GRO merges
/// at most 64 KiB, 44 packets, and other stamps lie between.
const MOST_MERGED: usize = 1024;

/// Stamps are whole nanoseconds, and two of a coarse clock may be one reading.
const ROUNDING_NS: f64 = 1.0;

/// Why a message is left out.
enum Left {
    Incomplete,
    Disordered,
}

/// The stages of one message, and the CPUs at their ends.
fn one(
    sample: &Sample,
    stamps: &Stamps<'_>,
    way: &Way,
    present: &[Vec<bool>],
    found: &[Positions],
) -> Result<(Vec<f64>, Vec<u16>), Left> {
    let (mut stages, mut cpus) = (Vec::new(), Vec::new());
    let (mut at, mut cpu) = (sample.submit_ns, None);
    // By how much the clocks of two hosts have been seen to err.
    let mut off_ns = 0.0;
    if way.is_scheduled {
        if sample.submit_ns < sample.intended_ns {
            return Err(Left::Disordered);
        }
        stages.push(sample.submit_ns - sample.intended_ns);
        // That on which the sender was next seen.
        let first = found.iter().flatten().find_map(|position| *position);
        cpus.push(first.map_or(0, |position| stamps.all[position].cpu));
    }
    for (present, found) in present.iter().zip(found) {
        for ((step, _), position) in
            way.steps.iter().zip(present).zip(found).filter(|((_, is), _)| **is)
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
            let own = stamps.all[*position].cpu;
            let is_elsewhere = |before: u16| is_of_other(before) != is_of_other(own);
            let most_ns = match cpu.is_some_and(is_elsewhere) {
                true => stamps.bound_ns,
                false => off_ns,
            };
            if time + ROUNDING_NS + most_ns < at {
                return Err(Left::Disordered);
            }
            if cpu.is_some_and(is_elsewhere) {
                off_ns = (at - time).max(0.0);
            }
            stages.push((time - at).max(0.0));
            at = at.max(time);
            cpu = Some(own);
            cpus.push(own);
        }
    }
    if sample.receive_ns + ROUNDING_NS < at {
        return Err(Left::Disordered);
    }
    stages.push(sample.receive_ns - at);
    cpus.push(cpu.unwrap_or(0));
    Ok((stages, cpus))
}
