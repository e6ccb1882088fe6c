//! What a case of an exchange asks.

use super::file::{MOST_SLOTS, MOST_TRANSFERS};
use super::lengths::{HEADER, Lengths};
use super::slots::{Rule, Slots, Transfer};
use crate::prelude::*;
use wiregauge_plan::topology::Connections;

/// The pattern.
pub struct Exchange;

/// Shortest message: one with its header.
pub const SHORTEST: u64 = HEADER as u64;
/// Most messages of a connection that are posted and not completed.
pub const MOST_QUEUE: u64 = 4096;
/// Most receive buffers of a connection: more than messages on the way.
pub const MOST_RECEIVE_QUEUE: u64 = MOST_QUEUE + 1;
/// One sample of a chaotic exchange stands for about this many bytes of a connection, so that what
/// is recorded costs little beside what is sent ...
const STRIDE_BYTES: u64 = 16 << 10;
/// ... and for at most this many messages.
const MOST_STRIDE: u64 = 64;
/// A slot is this many times as long as the clocks of two hosts may be apart, at least: a send then
/// begins within its own slot.
const SLOT_OF_CLOCKS: u64 = 2;

/// The specification of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Whether every queue is kept full, whatever the time.
    pub chaotic: bool,
    /// Who sends to whom in which slot; of a chaotic exchange, who sends to whom at all.
    pub rule: Rule,
    /// Length of a slot; 0 of a chaotic exchange.
    pub slot: Span,
    /// Senders of an incast.
    pub degree: u32,
    /// The transfers of a file, or those of a rule that was rearranged by the routes of its
    /// messages: slot, sender, receiver.
    #[serde(default)]
    pub transfers: Vec<Transfer>,
    /// Whether a send is left out whose slot is over or whose queue is full.
    pub skip_late: bool,
    /// Most messages of a connection that are posted and not completed.
    pub queue: u32,
    /// Messages for which a connection has receive buffers, where the transport posts them.
    pub receive_queue: u32,
    /// Mean length of a message.
    pub mean: Bytes,
    /// How far a length is from the mean at most, as a share of it.
    pub spread: f64,
    /// Bits per second of a node's link, where the user knows them.
    pub link: Option<u64>,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            chaotic: false,
            rule: Rule::RoundRobin,
            slot: Span(0),
            degree: 1,
            transfers: Vec::new(),
            skip_late: false,
            queue: 5,
            receive_queue: 10,
            mean: Bytes(128 << 10),
            spread: 0.0,
            link: None,
        }
    }
}

impl Spec {
    /// Who sends to whom.
    pub fn slots(&self, nodes: u32, seed: u64) -> Slots {
        Slots::new(self.rule, nodes, seed, self.degree, &self.transfers)
    }

    /// The lengths of the messages from a node to another.
    pub fn lengths(&self, seed: u64, ends: [u32; 2]) -> Lengths {
        Lengths::new(self.mean.0, self.spread, seed, ends)
    }

    /// The nodes, of which those are connected that send to each other.
    pub fn topology(&self, nodes: u32, seed: u64) -> Topology {
        let with_first =
            |last: u32| Topology::nodes_connected(nodes, (1..=last).map(|one| (0, one)));
        match self.rule {
            Rule::RoundRobin | Rule::Permutations => Topology::nodes(nodes),
            Rule::OneToAll | Rule::AllToOne => with_first(nodes.saturating_sub(1)),
            Rule::Incast => with_first(self.degree),
            // Not slot by slot: a file may name a slot that is far away.
            Rule::File => {
                let listed = self.transfers.iter().map(|&(_, from, to)| (from, to));
                Topology::nodes_connected(nodes, listed)
            }
            // Of one slot.
            Rule::Fixed | Rule::Shift | Rule::EvenOdd => {
                let slots = self.slots(nodes, seed);
                Topology::nodes_connected(nodes, slots.transfers().map(|(_, from, to)| (from, to)))
            }
        }
    }

    /// Nodes that send and nodes that receive at the same time.
    pub fn ends(&self, nodes: u32) -> (u32, u32) {
        let others = nodes.saturating_sub(1);
        match (self.rule, self.chaotic) {
            // One after the other.
            (Rule::OneToAll | Rule::AllToOne, false) => (1, 1),
            (Rule::OneToAll, true) => (1, others),
            (Rule::AllToOne, true) => (others, 1),
            (Rule::EvenOdd, _) => (nodes / 2, nodes / 2),
            (Rule::Incast, _) => (self.degree, 1),
            (Rule::File, _) => {
                let of = |end: fn(&Transfer) -> u32| each_once(self.transfers.iter().map(end));
                (of(|one| one.1).len() as u32, of(|one| one.2).len() as u32)
            }
            (Rule::RoundRobin | Rule::Fixed | Rule::Shift | Rule::Permutations, _) => {
                (nodes, nodes)
            }
        }
    }

    /// Links that are in use at the same time: those of the senders or of the receivers, whichever
    /// are fewer.
    pub fn links(&self, nodes: u32) -> u32 {
        let (senders, receivers) = self.ends(nodes);
        senders.min(receivers).max(1)
    }

    /// In a few words.
    pub fn name(&self) -> String {
        let rule = match self.rule {
            Rule::Incast => format!("incast of {}", self.degree),
            Rule::File => rule_name(self.rule, false),
            rule => rule_name(rule, !self.transfers.is_empty()),
        };
        match (self.chaotic, self.rule) {
            (true, Rule::RoundRobin) => "chaotic".into(),
            (true, _) => format!("chaotic {rule}"),
            (false, _) => rule,
        }
    }

    fn check(&self) -> Result<(), UsageError> {
        within("--queue", Some(self.queue), 1, MOST_QUEUE)?;
        within("--receive-queue", Some(self.receive_queue), 1, MOST_RECEIVE_QUEUE)?;
        within("--degree", Some(self.degree), 1, u64::from(u32::MAX))?;
        let fits = (0.0..=0.9).contains(&self.spread);
        ensure!(fits, "--spread: use 0% to 90%, which every length has room for");
        ensure!(self.mean.0 >= SHORTEST, "--size: a message of exchange has at least {SHORTEST} B");
        let fits = self.chaotic || self.slot.0 > 0;
        ensure!(fits, "a scheduled exchange has slots: use --rate or --slot");
        let is_listed = self.rule != Rule::File || !self.transfers.is_empty();
        let fits = self.transfers.len() <= MOST_TRANSFERS && is_listed;
        ensure!(fits, "a schedule of a file has 1 to {MOST_TRANSFERS} transfers");
        let fits = self.transfers.iter().all(|one| one.0 < MOST_SLOTS);
        ensure!(fits, "a schedule of a file has slots 0 to {}", MOST_SLOTS - 1);
        Ok(())
    }
}

/// A rule, and whether it was rearranged.
fn rule_name(rule: Rule, by_routes: bool) -> String {
    let routes = if by_routes { " by routes" } else { "" };
    format!("{}{routes}", rule.name())
}

impl PatternSpec for Exchange {
    fn name(&self) -> &'static str {
        "exchange"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read_checked(json, Spec::check)
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        let (spec, nodes) = (case.spec::<Spec>(), case.topology.ranks.len() as u32);
        let fits = nodes >= 2 && case.topology.ranks.iter().all(|rank| rank.role == Role::Node);
        ensure!(fits, "an exchange is among 2 nodes or more");
        let one = case.topology.ranks.iter().all(|rank| rank.threads == 1);
        ensure!(one && case.bound.time.is_some(), "a node has one thread, and a time");
        let longest = Lengths::longest(spec.mean.0, spec.spread);
        ensure!(longest <= case.size.0, "a message of exchange is no longer than its slot");
        let known = |&(_, from, to): &Transfer| from < nodes && to < nodes && from != to;
        let fits = spec.transfers.iter().all(known) && spec.degree < nodes;
        ensure!(fits, "{nodes} nodes have fewer than {nodes} senders of an incast");
        let connections = &case.topology.connections;
        let fits = *connections == Connections::AllToAll
            || *connections == spec.topology(nodes, case.seed).connections;
        ensure!(fits, "the nodes of an exchange are connected that send to each other");
        Ok(())
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Both) && !descriptor.one_process
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let spec = case.spec::<Spec>();
        let stride = (STRIDE_BYTES / spec.mean.0.max(1)).clamp(1, MOST_STRIDE);
        CaseProfile {
            traffic: Traffic::Both,
            ending: Ending::EachTellsOther,
            is_one_sided: false,
            has_many_lengths: spec.spread > 0.0,
            queue_depth: spec.queue,
            is_one_way: true,
            // Of a schedule every message has its own lateness.
            stride: if spec.chaotic { stride } else { 1 },
            clock_within: (!spec.chaotic).then_some(Span(spec.slot.0 / SLOT_OF_CLOCKS)),
            ..CaseProfile::of(case)
        }
    }

    fn point(&self, case: &Case) -> Option<String> {
        let spec = case.spec::<Spec>();
        let queues = match (spec.chaotic, spec.spread > 0.0) {
            (false, _) => String::new(),
            (true, false) => format!(" queues {}/{}", spec.queue, spec.receive_queue),
            (true, true) => {
                let percent = spec.spread * 100.0;
                format!(" queues {}/{} +-{percent} %", spec.queue, spec.receive_queue)
            }
        };
        Some(format!("{}{queues}", spec.name()))
    }

    fn label(&self, case: &Case) -> String {
        let (spec, nodes) = (case.spec::<Spec>(), case.topology.ranks.len());
        let point = self.point(case).unwrap_or_default();
        let (over, wait) = (case.transport, case.wait.name());
        format!("exchange {over} {wait} {nodes} nodes {} {point}", spec.mean)
    }

    fn memory(&self, case: &Case, role: Role) -> u64 {
        // Room for two messages that arrive, for each connection.
        let endpoints = u64::from(case.topology.endpoints_of_role(role));
        case.size.0.saturating_mul(2).saturating_mul(endpoints)
    }
}
