//! Causes of slow messages where nothing is stamped of the messages themselves: what held up the
//! threads and CPUs of both ends while each was on its way.
//!
//! A trace has only what disturbs, and TCP's counters what moved from one look to the next; a
//! message has its submit and its receive stamp. What it took above the median of its round is its
//! excess. Evidence that overlaps its time covers that, less what the messages near the median have
//! of the same cause: each one of a thread that sleeps is woken. The rules are those of
//! [`super::causes`] without stages, so what waits in a queue, and a gap, are not told from other
//! times.

use super::causes::{FAULT_NS, FULL, LEAST_SHARE, NO_WINDOW, RESENT, strongest};
use super::disturbance::{Disturbance, Disturbances, Held};
use super::path::Way;
pub use super::stamps::End;
use super::stamps::Stamps;
use super::{Cause, KernelClock, Named, SLOW, Slow, SlowMessage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wiregauge_host::trace::{Kind, Stamp, Trace};
use wiregauge_host::{TcpEvent, TcpEventKind};
use wiregauge_sample::{RoundSamples, Sample};
use wiregauge_stats::quantile::rank;

/// Messages that are kept one by one.
const MOST_SLOWEST: usize = 50;
/// Messages whose usual disturbances are looked at, the nearest to the median of a round.
const USUAL: usize = 201;

/// Why the slow messages of a run were slow, by what disturbed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailCauses {
    /// The run.
    pub run: u32,
    /// Messages that were looked at.
    pub messages: u64,
    /// Messages that came after the memory for stamps was full: they are not looked at.
    pub beyond: u64,
    /// The slow ones.
    pub slow: Slow,
    /// The slowest ones, each by itself.
    pub slowest: Vec<SlowMessage>,
    /// Trace points that this kernel lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The threads of client and server on this host, in their order.
#[derive(Clone, Debug, Default)]
pub struct Ends(pub [Vec<End>; 2]);

impl Ends {
    /// Between which the messages of a thread go. A server may have one thread for all.
    fn of(&self, thread: u32) -> impl Iterator<Item = End> {
        let [clients, servers] = &self.0;
        let server = servers.get(thread as usize).or(servers.first());
        clients.get(thread as usize).into_iter().chain(server).copied()
    }
}

/// A round and what disturbed it.
pub struct TailRound<'a> {
    pub samples: &'a RoundSamples,
    pub trace: &'a Trace,
    pub clock: &'a KernelClock,
    pub ends: &'a Ends,
    pub way: &'a Way,
    /// Events of TCP in the order of time, where each thread has one connection, to the server's
    /// thread of the same number.
    pub tcp: &'a [TcpEvent],
}

/// Collects the rounds of a run.
#[derive(Default)]
pub struct TailReader {
    messages: u64,
    beyond: u64,
    /// Of the round that has most.
    most: u64,
    /// The slowest of all rounds, the slowest first.
    slowest: Vec<SlowMessage>,
}

impl TailReader {
    /// Adds one of at most `rounds` rounds.
    pub fn add(&mut self, round: &TailRound<'_>, rounds: u32) {
        let stamps = Stamps::new(round.trace, round.clock);
        let disturbances = Disturbances::new(round.trace, &stamps);
        let way = round.way;
        let measured = round.samples.samples.iter().filter(|sample| way.is_measured(sample));
        let (mut own, beyond): (Vec<&Sample>, Vec<&Sample>) =
            measured.partition(|sample| sample.receive_ns <= stamps.full_ns);
        own.sort_by(|a, b| way.total_ns(b).total_cmp(&way.total_ns(a)));
        self.beyond += beyond.len() as u64;
        self.messages += own.len() as u64;
        self.most = self.most.max(own.len() as u64);
        let Some(middle) = own.len().checked_sub(1).map(|last| last / 2) else { return };
        let reach = USUAL / 2;
        let near = &own[middle.saturating_sub(reach)..own.len().min(middle + reach + 1)];
        let looks = Looks { round, stamps: &stamps, disturbances: &disturbances };
        let usual = looks.usual(near);
        let median_ns = way.total_ns(own[middle]);
        let kept = self.kept(rounds);
        let looked = own.iter().take(kept).map(|sample| looks.at(sample, median_ns, &usual));
        self.slowest.extend(looked);
        self.slowest.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
        self.slowest.truncate(kept);
    }

    /// How many may turn out to be slow: one in a hundred of all rounds, which may all be of one,
    /// and the one that they are slower than.
    fn kept(&self, rounds: u32) -> usize {
        (self.most * u64::from(rounds)).div_ceil(100) as usize + 1
    }

    /// What the rounds show; `None`: nothing could be looked at.
    pub fn causes(&self, run: u32, missing: &[String]) -> Option<TailCauses> {
        let count = (self.messages - rank(SLOW, self.messages)) as usize;
        let above_ns = self.slowest.get(count).or(self.slowest.last())?.total_ns;
        let slow = self.slowest.iter().filter(|message| message.total_ns > above_ns);
        let mut causes: BTreeMap<&Named, u64> = BTreeMap::new();
        for message in slow.clone() {
            *causes.entry(&message.cause).or_insert(0) += 1;
        }
        let causes = causes.into_iter().map(|(named, count)| (named.clone(), count));
        Some(TailCauses {
            run,
            messages: self.messages,
            beyond: self.beyond,
            slow: Slow::new(slow.clone().count() as u64, above_ns, causes.collect()),
            slowest: slow.take(MOST_SLOWEST).cloned().collect(),
            missing: missing.to_vec(),
        })
    }
}

/// What a round's messages are looked at with.
struct Looks<'a> {
    round: &'a TailRound<'a>,
    stamps: &'a Stamps<'a>,
    disturbances: &'a Disturbances,
}

impl<'a> Looks<'a> {
    /// What held up its ends, and for how long.
    fn held_up(&self, sample: &Sample) -> Vec<(&'a Disturbance, f64)> {
        let (from, to) = (self.round.way.start_ns(sample), sample.receive_ns);
        let ends = self.round.ends.of(sample.thread);
        let mut held: Vec<Held> =
            ends.flat_map(|end| [Held::Cpu(end.cpu), Held::Thread(end.tid)]).collect();
        held.sort();
        // Both ends may have one CPU.
        held.dedup();
        held.into_iter().flat_map(|held| self.disturbances.within(held, from, to)).collect()
    }

    /// What the messages near the median have of each cause: the median of each.
    fn usual(&self, near: &[&Sample]) -> BTreeMap<Cause, f64> {
        let mut each: BTreeMap<Cause, Vec<f64>> = BTreeMap::new();
        for (number, sample) in near.iter().enumerate() {
            for (disturbance, ns) in self.held_up(sample) {
                let own = each.entry(disturbance.cause.cause).or_default();
                own.resize(number + 1, 0.0);
                own[number] += ns;
            }
        }
        let middle = |mut all: Vec<f64>| {
            all.resize(near.len(), 0.0);
            all.sort_by(f64::total_cmp);
            all[(near.len() - 1) / 2]
        };
        each.into_iter().map(|(cause, all)| (cause, middle(all))).collect()
    }

    /// A message with its cause.
    fn at(&self, sample: &Sample, median_ns: f64, usual: &BTreeMap<Cause, f64>) -> SlowMessage {
        let total_ns = self.round.way.total_ns(sample);
        let (cause, covered) = self.cause(sample, total_ns - median_ns, usual);
        SlowMessage {
            round: self.round.samples.round,
            sequence: sample.sequence,
            start_ns: self.round.way.start_ns(sample),
            total_ns,
            stages: Vec::new(),
            cause,
            covered,
        }
    }

    /// The cause, and the share of the excess that it covers.
    fn cause(&self, sample: &Sample, excess_ns: f64, usual: &BTreeMap<Cause, f64>) -> (Named, f64) {
        let by_tcp = self.by_tcp(sample);
        // Whatever else ran meanwhile: without it the message would have come.
        if by_tcp.iter().any(|(named, _)| named.cause == Cause::Retransmission) {
            return (named(Cause::Retransmission, RESENT.to_owned()), 1.0);
        }
        let mut sums: BTreeMap<Cause, f64> = BTreeMap::new();
        let mut all = self.held_up(sample);
        for (disturbance, ns) in &all {
            *sums.entry(disturbance.cause.cause).or_insert(0.0) += ns;
        }
        for (disturbance, ns) in &mut all {
            let cause = disturbance.cause.cause;
            let (sum, less) = (sums[&cause], usual.get(&cause).copied().unwrap_or(0.0));
            *ns *= (1.0 - less / sum).max(0.0);
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut covered: BTreeMap<Named, f64> = BTreeMap::new();
        let mut left = excess_ns.max(0.0);
        for (disturbance, ns) in all {
            let ns = ns.min(left);
            left -= ns;
            *covered.entry(disturbance.cause.clone()).or_insert(0.0) += ns;
        }
        for (named, ns) in by_tcp.into_iter().chain(self.by_its_stamps(sample, left)) {
            *covered.entry(named).or_insert(0.0) += ns.min(left);
            left = (left - ns).max(0.0);
        }
        match strongest(covered) {
            Some((named, ns)) if ns >= LEAST_SHARE * excess_ns && excess_ns > 0.0 => {
                (named, (ns / excess_ns).min(1.0))
            }
            _ => (Named { cause: Cause::Unexplained, who: String::new() }, 0.0),
        }
    }

    /// Returns what TCP did while a message was on its way, and the time that this covers: of a
    /// segment that was sent again all, of a limit as long as it held the sender back.
    fn by_tcp(&self, sample: &Sample) -> Vec<(Named, f64)> {
        let clock = self.round.clock;
        let from = self.round.way.start_ns(sample);
        let own = self.round.tcp.iter().filter(|event| event.owner.thread == sample.thread);
        let overlapping = own.filter(|event| {
            let looks = clock.sample_ns(event.from_ns)..clock.sample_ns(event.to_ns);
            let is_there = looks.start <= sample.receive_ns;
            match event.kind {
                // A timeout takes longer than the time between two looks: it was sent before.
                TcpEventKind::Resent => is_there && from <= looks.start,
                // A shorter message may have missed it.
                _ => {
                    let is_long = sample.receive_ns - from >= looks.end - looks.start;
                    is_there && looks.end >= from && is_long
                }
            }
        });
        overlapping
            .map(|event| {
                let end = usize::from(!event.owner.is_client);
                let ns = event.amount as f64;
                match event.kind {
                    TcpEventKind::Resent => {
                        (named(Cause::Retransmission, RESENT.to_owned()), f64::INFINITY)
                    }
                    // The other end's buffer is full.
                    TcpEventKind::ReceiveWindow => {
                        (named(Cause::Ahead, NO_WINDOW[end].to_owned()), ns)
                    }
                    TcpEventKind::SendBuffer => (named(Cause::Ahead, FULL.to_owned()), ns),
                }
            })
            .collect()
    }

    /// What single stamps and the schedule say of the rest.
    fn by_its_stamps(&self, sample: &Sample, left_ns: f64) -> Vec<(Named, f64)> {
        let (from, to) = (self.round.way.start_ns(sample), sample.receive_ns);
        let within = &self.stamps.all[self.stamps.between(from, to)];
        let mut found = Vec::new();
        for End { tid, .. } in self.round.ends.of(sample.thread) {
            if within.iter().any(|stamp| stamp.kind == Kind::Fault && stamp.tid == tid) {
                found.push((named(Cause::Fault, String::new()), FAULT_NS));
            }
            let moves = |stamp: &&Stamp| stamp.kind == Kind::Migrate && stamp.flow == tid;
            if let Some(moved) = within.iter().find(moves) {
                let who = format!("to CPU {}", moved.number);
                found.push((named(Cause::Migration, who), left_ns));
            }
        }
        let late_ns = sample.submit_ns - from;
        if late_ns > 0.0 {
            found.push((named(Cause::Generator, String::new()), late_ns));
        }
        found
    }
}

fn named(cause: Cause, who: String) -> Named {
    Named { cause, who }
}

#[cfg(test)]
mod tests;
