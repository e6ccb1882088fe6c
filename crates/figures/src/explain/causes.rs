//! Why a message was slow: rules, each with its evidence.
//!
//! What a message took above the median is its excess. Each stage's excess is covered by what held
//! up the CPU and the thread at its end, as long as it overlaps the stage; then by what the stage's
//! own stamps say. The cause that covers the most is named, if it covers at least
//! [`LEAST_SHARE`] of the excess. All else is not explained.

use super::apart::{cpu_name, is_of_other, is_thread_of_other};
use super::disturbance::{Disturbances, Held};
use super::gaps::longest_silence;
use super::path::Half;
use super::split::{RoundSplit, Split, StageDef};
use super::stamps::{Stamps, reversed};
use super::{Cause, Named};
use std::collections::BTreeMap;
use wiregauge_host::trace::{Kind, Stamp, Trace};

/// The share of a message's excess that a cause must cover: what covers less than half explains
/// less than what remains.
pub const LEAST_SHARE: f64 = 0.5;
/// What no interrupt, switch or other stamp explains is called a gap from this length on: caches
/// and branch predictors cost less between two stamps.
const LEAST_GAP_NS: f64 = 5_000.0;
/// What a page fault without a disk costs at most.
pub(super) const FAULT_NS: f64 = 10_000.0;

/// Where messages wait for others.
const IN_SOCKET: [&str; 2] = ["socket buffer of the server", "socket buffer of the client"];
const AT_SERVER: &str = "server busy with others";
/// Stamps after a stage among which the call is looked for that it ends with.
const MOST_BEHIND: usize = 64;
/// The idle thread, which nothing holds up.
const NOBODY: u32 = 0;
/// System calls that send, by the numbers of this machine.
const SENDS: [i64; 4] = [libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_write, libc::SYS_writev];
pub(super) const FULL: &str = "full send buffer of the socket";
pub(super) const NO_WINDOW: [&str; 2] =
    ["full receive buffer of the server", "full receive buffer of the client"];

pub(super) const RESENT: &str = "TCP sent a segment again";

/// What is known of a round beside its messages.
pub struct Evidence<'a> {
    pub trace: &'a Trace,
    pub stamps: &'a Stamps<'a>,
    pub disturbances: &'a Disturbances,
    /// Whether all is stamped that could fill a gap.
    pub sees_all: bool,
}

/// The cause of a slow message, and the share of its excess that it covers.
pub fn cause(
    message: &Split,
    round: &RoundSplit,
    medians_ns: &[f64],
    evidence: &Evidence<'_>,
) -> (Named, f64) {
    let mut covered: BTreeMap<Named, f64> = BTreeMap::new();
    let mut excess_in_all = 0.0;
    let mut from = message.start_ns;
    for (number, stage_ns) in message.stages_ns.iter().enumerate() {
        let to = from + stage_ns;
        let excess = stage_ns - medians_ns.get(number).copied().unwrap_or(0.0);
        excess_in_all += excess;
        if excess > 0.0 {
            let stage = Stage { message, round, number, from, to, excess };
            for (named, ns) in stage.causes(evidence) {
                *covered.entry(named).or_insert(0.0) += ns;
            }
        }
        from = to;
    }
    match strongest(covered) {
        Some((named, ns)) if ns >= LEAST_SHARE * excess_in_all && excess_in_all > 0.0 => {
            (named, (ns / excess_in_all).min(1.0))
        }
        _ => (Named { cause: Cause::Unexplained, who: String::new() }, 0.0),
    }
}

/// The cause that covers the most, whoever it was, and who had most of that: several tasks that ran
/// one after the other are one cause.
pub(super) fn strongest(covered: BTreeMap<Named, f64>) -> Option<(Named, f64)> {
    let mut causes: BTreeMap<Cause, (Named, f64, f64)> = BTreeMap::new();
    for (named, ns) in covered {
        let of_cause = causes.entry(named.cause).or_insert_with(|| (named.clone(), 0.0, 0.0));
        if ns > of_cause.1 {
            (of_cause.0, of_cause.1) = (named, ns);
        }
        of_cause.2 += ns;
    }
    let strongest = causes.into_values().max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some((strongest.0, strongest.2))
}

/// A stage that took longer than it mostly does.
struct Stage<'a> {
    message: &'a Split,
    round: &'a RoundSplit,
    number: usize,
    from: f64,
    to: f64,
    excess: f64,
}

impl Stage<'_> {
    /// What covers its excess, and how much of it.
    fn causes(&self, evidence: &Evidence<'_>) -> Vec<(Named, f64)> {
        let (cpu, thread) = self.ends_on();
        let held = [Held::Cpu(cpu), Held::Thread(thread)];
        let overlaps = held
            .into_iter()
            .flat_map(|held| evidence.disturbances.within(held, self.from, self.to).into_iter());
        let mut found: Vec<(Named, f64)> = Vec::new();
        let mut left = self.excess;
        let mut all: Vec<_> = overlaps.collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (disturbance, overlap) in all {
            let ns = overlap.min(left);
            left -= ns;
            found.push((disturbance.cause.clone(), ns));
        }
        found.extend(self.by_its_stamps(evidence, left));
        found
    }

    /// The CPU and the thread that reach its end.
    fn ends_on(&self) -> (u16, u32) {
        let stage = &self.round.stages[self.number];
        let cpu = self.message.cpus[self.number];
        let [client, server] = self.message.threads;
        let (sender, receiver) = if stage.leg == 0 { (client, server) } else { (server, client) };
        match stage.kind {
            None if stage.half == Half::Send => (cpu, sender),
            Some(_) if stage.of_others && stage.half == Half::Send => (cpu, sender),
            Some(Kind::Switch | Kind::Copied | Kind::SysExit | Kind::Arrived) | None => {
                (cpu, receiver)
            }
            Some(Kind::SysEnter | Kind::Send) => (cpu, sender),
            // In loopback the sender does the work of the receiving side as well.
            Some(_) if is_of_other(cpu) == is_thread_of_other(sender) => (cpu, sender),
            Some(_) => (cpu, NOBODY),
        }
    }

    /// Stamps within it.
    fn own_stamps<'e>(&self, evidence: &Evidence<'e>) -> impl Iterator<Item = &'e Stamp> {
        let range = evidence.stamps.between(self.from, self.to);
        evidence.stamps.all[range].iter()
    }

    /// What its stamps say of the rest of its excess.
    fn by_its_stamps(&self, evidence: &Evidence<'_>, left: f64) -> Option<(Named, f64)> {
        if left <= 0.0 {
            return None;
        }
        let (cpu, thread) = self.ends_on();
        let kind = self.round.stages[self.number].kind;
        let has = |is: &dyn Fn(&Stamp) -> bool| self.own_stamps(evidence).any(is);
        let named = |cause, who: String| Some((Named { cause, who }, left));
        if let Some(found) = self.waits_for(evidence) {
            return Some((found, left));
        }
        let room = || self.waits_for_room(evidence, left);
        if let Some(found) = room().or_else(|| self.waits_for_window(evidence, left)) {
            return Some(found);
        }
        if let Some(found) = self.waits_in_qdisc(evidence, left) {
            return Some(found);
        }
        if has(&|stamp| stamp.kind == Kind::Retransmit) {
            return named(Cause::Retransmission, RESENT.into());
        }
        if let Some(name) = self.deferred_to(evidence) {
            return named(Cause::Deferred, name);
        }
        if let Some(found) = self.behind_others(evidence, left) {
            return Some(found);
        }
        if has(&|stamp| stamp.kind == Kind::Migrate && stamp.flow == thread) {
            return named(Cause::Migration, format!("to CPU {}", cpu_name(cpu.into())));
        }
        if has(&|stamp| stamp.kind == Kind::Fault && stamp.tid == thread) {
            return named(Cause::Fault, String::new()).map(|(named, ns)| (named, ns.min(FAULT_NS)));
        }
        if self.round.stages[self.number].is_wire {
            return named(Cause::Wire, String::new());
        }
        let is_awake = kind != Some(Kind::Switch);
        if left >= LEAST_GAP_NS && is_awake && evidence.sees_all {
            return Some((self.gap(evidence, cpu), left));
        }
        None
    }

    /// Of this CPU alone, or of others too.
    fn gap(&self, evidence: &Evidence<'_>, cpu: u16) -> Named {
        let silence = longest_silence(evidence.stamps, cpu, self.from, self.to);
        let silence = silence.filter(|(from, to)| to - from >= LEAST_GAP_NS);
        let ticks = &evidence.disturbances.ticks;
        let others = silence.map(|gap| ticks.stopped_with(cpu, gap, evidence.stamps));
        let mut all = others.unwrap_or_default();
        if all.is_empty() {
            return Named { cause: Cause::Gap, who: format!("CPU {cpu}") };
        }
        all.push(cpu);
        all.sort_unstable();
        let all: Vec<String> = all.iter().map(u16::to_string).collect();
        Named { cause: Cause::GapOfAll, who: format!("CPUs {}", all.join(", ")) }
    }

    /// What the stage is a wait for.
    fn waits_for(&self, evidence: &Evidence<'_>) -> Option<Named> {
        let stage = &self.round.stages[self.number];
        let named = |cause, who: &str| Some(Named { cause, who: who.to_owned() });
        if stage.kind.is_none() && stage.half == Half::Send {
            // It was due and not sent.
            let [client, _] = self.message.threads;
            let works = [Kind::Send, Kind::Queue, Kind::Ready, Kind::Copied];
            let is_own = |stamp: &Stamp| stamp.tid == client && works.contains(&stamp.kind);
            let is_busy = self.own_stamps(evidence).any(is_own);
            return named(Cause::Generator, if is_busy { "busy with other messages" } else { "" });
        }
        match (stage.of_others, stage.half) {
            (false, _) => None,
            (true, Half::Send) => named(Cause::Ahead, AT_SERVER),
            (true, Half::Receive) => named(Cause::Ahead, IN_SOCKET[stage.leg.min(1)]),
        }
    }

    /// The sender tried to hand its bytes to the socket, which had no room for them.
    fn waits_for_room(&self, evidence: &Evidence<'_>, left: f64) -> Option<(Named, f64)> {
        let stage = &self.round.stages[self.number];
        let is_handed = matches!(stage.kind, Some(Kind::Send | Kind::SysEnter | Kind::Ready));
        if !is_handed || stage.half != Half::Send {
            return None;
        }
        let failed = self.tried_again(evidence).or_else(|| self.was_refused(evidence))?;
        let ns = left.min(self.to - evidence.stamps.times_ns[failed]);
        let is_sent = |stamp: &&Stamp| stamp.kind == Kind::Queue && stamp.length > 0;
        let flow = self.own_stamps(evidence).filter(is_sent).last().map(|stamp| stamp.flow);
        let passes = |stage: &StageDef| stage.kind == Some(Kind::Queue);
        let who = match flow.and_then(|flow| self.window_opened(evidence, flow)) {
            Some(_) => format!("{FULL}, behind a {}", NO_WINDOW[stage.leg.min(1)]),
            None if self.round.stages.iter().any(passes) => FULL.to_owned(),
            // Within a host what was sent is in the buffer of the other end.
            None => NO_WINDOW[stage.leg.min(1)].to_owned(),
        };
        (ns >= LEAST_SHARE * left).then_some((Named { cause: Cause::Ahead, who }, ns))
    }

    /// The first stamp of two with which TCP was given the same byte.
    fn tried_again(&self, evidence: &Evidence<'_>) -> Option<usize> {
        let (_, thread) = self.ends_on();
        let Stamps { all, .. } = evidence.stamps;
        let is_try = |at: &usize| all[*at].kind == Kind::Send && all[*at].tid == thread;
        let range = evidence.stamps.between(self.from, self.to);
        // The try that succeeds is in the next stage where the begin of its call is stamped.
        let next = (range.end..all.len().min(range.end + MOST_BEHIND)).find(is_try);
        let tries: Vec<usize> = range.filter(is_try).chain(next).collect();
        let place = |at: usize| (all[at].flow, all[at].number);
        tries.windows(2).find(|two| place(two[0]) == place(two[1])).map(|two| two[0])
    }

    /// The first call of the sender to send that the kernel refused, since it would have to wait.
    fn was_refused(&self, evidence: &Evidence<'_>) -> Option<usize> {
        let (_, thread) = self.ends_on();
        let Stamps { all, .. } = evidence.stamps;
        let mut call = None;
        evidence.stamps.between(self.from, self.to).find(|at| {
            let stamp = &all[*at];
            match stamp.kind {
                Kind::Refused if stamp.tid == thread => return true,
                Kind::SysEnter if stamp.tid == thread => call = Some(stamp.number),
                Kind::SysExit if stamp.tid == thread => {
                    let sends = call.take().is_some_and(|call| SENDS.contains(&i64::from(call)));
                    return sends && stamp.length as i32 == -libc::EAGAIN;
                }
                _ => {}
            }
            false
        })
    }

    /// The receiver of TCP had no room for it.
    fn waits_for_window(&self, evidence: &Evidence<'_>, left: f64) -> Option<(Named, f64)> {
        if self.round.stages[self.number].kind != Some(Kind::Queue) {
            return None;
        }
        let is_sent = |stamp: &&Stamp| stamp.kind == Kind::Queue && stamp.length > 0;
        let flow = self.own_stamps(evidence).filter(is_sent).last()?.flow;
        let ns = left.min(self.window_opened(evidence, flow)? - self.from);
        let who = NO_WINDOW[self.round.stages[self.number].leg.min(1)].to_owned();
        (ns >= LEAST_SHARE * left).then_some((Named { cause: Cause::Ahead, who }, ns))
    }

    /// The device had it in its queue. What was lost there is not what left it: of a packet that
    /// was sent again while it waited, the copy leaves later.
    fn waits_in_qdisc(&self, evidence: &Evidence<'_>, left: f64) -> Option<(Named, f64)> {
        let Stamps { all, times_ns, .. } = evidence.stamps;
        if self.round.stages[self.number].kind != Some(Kind::Xmit) {
            return None;
        }
        let range = evidence.stamps.between(self.from, self.to);
        let leaves = |one: &Stamp| one.kind == Kind::Xmit && one.length > 0;
        let left_at = range.clone().rev().find(|at| leaves(&all[*at]))?;
        let (flow, number) = (all[left_at].flow, all[left_at].number);
        let has_it =
            |one: &Stamp| one.flow == flow && number.wrapping_sub(one.number) < one.length.max(1);
        let is_queued = |at: &usize| all[*at].kind == Kind::Qdisc && has_it(&all[*at]);
        let queued = range.clone().find(is_queued)?;
        let is_again = |one: &Stamp| one.kind == Kind::Retransmit && one.flow == flow;
        let was_sent_again = all[range.clone()].iter().any(is_again);
        let is_copy = |one: &Stamp| leaves(one) && has_it(one);
        if was_sent_again && !all[left_at + 1..].iter().any(is_copy) {
            return None;
        }
        let ns = left.min(self.to - times_ns[queued]);
        let named = Named { cause: Cause::Qdisc, who: String::new() };
        (ns >= LEAST_SHARE * left).then_some((named, ns))
    }

    /// When an acknowledgement let the last segment of a flow within the stage go for which the
    /// receive window had no room before.
    fn window_opened(&self, evidence: &Evidence<'_>, flow: u32) -> Option<f64> {
        let range = evidence.stamps.between(self.from, self.to);
        let all = &evidence.stamps.all[range.clone()];
        let is_sent = |one: &Stamp| one.kind == Kind::Queue && one.flow == flow && one.length > 0;
        let is_reply = |one: &Stamp| one.kind == Kind::TcpProbe && one.flow == reversed(flow);
        let sent = all.iter().rposition(is_sent)?;
        let reply = all[..sent].iter().rposition(|one| is_reply(one) && one.length == 0)?;
        let end = all[sent].number.wrapping_add(all[sent].length);
        let room = all[reply].number.wrapping_sub(end) as i32;
        (room < 0).then(|| evidence.stamps.times_ns[range.start + reply])
    }

    /// Where other messages were before it, and until when they covered it.
    fn behind_others(&self, evidence: &Evidence<'_>, left: f64) -> Option<(Named, f64)> {
        if self.message.ahead.is_empty() {
            // All stamps are its own.
            return None;
        }
        let stage = &self.round.stages[self.number];
        let (kind, who) = match stage.kind? {
            kind @ Kind::Send if stage.leg == 1 => (kind, AT_SERVER),
            kind @ Kind::Queue => (kind, "send queue of the socket"),
            kind @ Kind::Xmit => (kind, "device queue (qdisc)"),
            kind @ (Kind::NetifRx | Kind::Gro) => (kind, "device and wire"),
            kind @ Kind::Receive => (kind, "receive backlog of a CPU"),
            kind @ Kind::Copied => (kind, IN_SOCKET[stage.leg.min(1)]),
            _ => return None,
        };
        let range = evidence.stamps.between(self.from, self.to);
        let all = &evidence.stamps.all[range.clone()];
        let is_call = matches!(kind, Kind::Send | Kind::Copied);
        let counts = |stamp: &Stamp| stamp.kind == kind && (is_call || stamp.length > 0);
        let end = all.iter().rposition(counts)?;
        let (flow, thread) = (all[end].flow, all[end].tid);
        let is_other = |stamp: &Stamp| {
            counts(stamp) && stamp.flow == flow && (!is_call || stamp.tid == thread)
        };
        let last = all[..end].iter().rposition(is_other)?;
        let ns = left.min(evidence.stamps.times_ns[range.start + last] - self.from);
        // A wait that explains less than what remains hides no other cause.
        let named = Named { cause: Cause::Ahead, who: who.to_owned() };
        (ns >= LEAST_SHARE * left).then_some((named, ns))
    }

    /// The thread of the kernel that did the network's work at its end.
    fn deferred_to(&self, evidence: &Evidence<'_>) -> Option<String> {
        let kind = self.round.stages[self.number].kind?;
        let receives = [Kind::Receive, Kind::TcpProbe, Kind::Ready, Kind::Waking];
        if !receives.contains(&kind) {
            return None;
        }
        let last = self.own_stamps(evidence).filter(|stamp| stamp.kind == kind).last()?;
        let name = evidence.trace.names.get(&last.tid)?;
        (last.in_kernel_thread && name.starts_with("ksoftirqd")).then(|| name.clone())
    }
}
