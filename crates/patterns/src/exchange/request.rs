//! From what was asked of an exchange to its cases.

use super::file::{self, MOST_TRANSFERS};
use super::lengths::Lengths;
use super::routes::Network;
use super::slots::{Rule, Slots, Transfer};
use super::spec::{SHORTEST, Spec};
use crate::options::OTHER_DESCRIPTORS;
use crate::prelude::*;
use std::sync::Arc;
use wiregauge_plan::HostSpec;
use wiregauge_plan::pairs::HERE;
use wiregauge_plan::request::within;
use wiregauge_plan::topology::MAX_PEERS;
use wiregauge_plan::written::Misplaced;
use wiregauge_transport::Operation;

/// Most nodes: by the widest rules each has a connection to every other.
pub const MAX_NODES: u64 = MAX_PEERS as u64 + 1;

/// A schedule that was written down.
#[derive(Clone, Debug)]
pub struct ListedFile {
    /// The file as it was named.
    pub name: String,
    /// What it holds.
    pub text: String,
}

/// What was asked for: lists are cases.
#[derive(Clone, Debug, Default)]
pub struct ExchangeRequest {
    /// What all cases have.
    pub spec: Spec,
    /// Numbers of nodes on this host.
    pub nodes: Vec<u32>,
    /// Who sends to whom.
    pub rules: Vec<Rule>,
    /// What the rule `file` lists.
    pub file: Option<ListedFile>,
    /// The network whose links no two transfers of a slot share.
    pub routes: Option<Arc<Network>>,
    /// Payload bits of a node per second.
    pub rates: Vec<u64>,
    /// Length of a slot.
    pub slot: Option<Span>,
    /// Senders of an incast; none: all other nodes.
    pub degrees: Vec<u32>,
    /// Messages of a connection that are posted; none: the usual.
    pub queues: Vec<u32>,
    /// Receive buffers of a connection; none: one more than that.
    pub receive_queues: Vec<u32>,
    /// How far lengths are from their mean.
    pub spreads: Vec<f64>,
}

/// Messages of a connection that are posted where nothing else is asked for: as the source has it.
const QUEUE: u32 = 10;
/// The same with slots: more would only hide that a slot was missed.
const QUEUE_OF_SLOTS: u32 = 5;

impl ExchangeRequest {
    /// Numbers of nodes: the hosts, where they are named.
    fn nodes(&self, request: &Request) -> Vec<u32> {
        match request.place.nodes.len() as u32 {
            0 => self.nodes.clone(),
            hosts => vec![hosts],
        }
    }

    /// Lengths of slots for messages of a size; one of 0 without slots.
    fn slots(&self, size: Bytes) -> Vec<Span> {
        let of_rate = |rate: &u64| Span((size.0 as f64 * 8e9 / *rate as f64).round() as u64);
        match self.slot {
            Some(slot) => vec![slot],
            None if self.rates.is_empty() => vec![Span(0)],
            None => self.rates.iter().map(of_rate).collect(),
        }
    }

    /// The queues of sends and of receives.
    fn queues(&self) -> Vec<(u32, u32)> {
        let usual = if self.spec.chaotic { QUEUE } else { QUEUE_OF_SLOTS };
        let queues = if self.queues.is_empty() { vec![usual] } else { self.queues.clone() };
        let receives = |queue: u32| match self.receive_queues.is_empty() {
            true => vec![queue + 1],
            false => self.receive_queues.clone(),
        };
        let both = |queue: &u32| {
            let queue = *queue;
            receives(queue).into_iter().map(move |receive| (queue, receive)).collect::<Vec<_>>()
        };
        queues.iter().flat_map(both).collect()
    }

    /// What is listed of a rule among so many nodes: what its file has, or its transfers rearranged
    /// by their routes.
    fn transfers(
        &self,
        request: &Request,
        rule: Rule,
        nodes: u32,
    ) -> Result<Vec<Transfer>, UsageError> {
        let file = self.file.as_ref().filter(|_| rule == Rule::File);
        let listed = file.map_or(Ok(vec![]), |file| listed(file, nodes))?;
        let Some(network) = &self.routes else { return Ok(listed) };
        let name = |node: &Option<HostSpec>| node.as_ref().map_or(HERE, |spec| &spec.host).into();
        let names: Vec<String> = match request.place.nodes.is_empty() {
            true => (0..nodes).map(|node| format!("node{node}")).collect(),
            false => request.place.nodes.iter().map(name).collect(),
        };
        let slots = Slots::new(rule, nodes, request.seed, 1, &listed);
        let count = slots.transfers().take(MOST_TRANSFERS + 1).count();
        ensure!(
            count <= MOST_TRANSFERS,
            "--routes: {nodes} nodes have more than {MOST_TRANSFERS} transfers: use fewer nodes"
        );
        network
            .arrange(slots.transfers(), &names)
            .map_err(|why| UsageError(format!("--routes: {why}: name the nodes as the run does")))
    }

    /// The rules among so many nodes, those of an incast once for each number of senders.
    fn rules(&self, nodes: u32) -> Vec<(Rule, u32)> {
        let degrees = |rule: &Rule| match (*rule, self.degrees.is_empty()) {
            (Rule::Incast, true) => vec![(*rule, nodes - 1)],
            (Rule::Incast, false) => self.degrees.iter().map(|one| (*rule, *one)).collect(),
            _ => vec![(*rule, 1)],
        };
        self.rules.iter().flat_map(degrees).collect()
    }
}

impl PatternRequest for ExchangeRequest {
    fn has_nodes(&self) -> bool {
        true
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        request.refuse_stamps()?;
        request.refuse_schedule()?;
        check_size(request)?;
        let nodes = self.nodes(request);
        within("--nodes", nodes.iter().copied(), 2, MAX_NODES)?;
        let threads = request.threads.iter().any(|threads| *threads > 1);
        ensure!(!threads, "a node of exchange has one thread: use --nodes for more processes");
        let fits = request.count.is_none();
        ensure!(fits, "exchange ends all nodes at the same time: use --time instead of --count");
        let fits = request.warmup.is_none();
        ensure!(fits, "exchange warms up for a tenth of the time: leave --warmup out");
        let settings = &request.settings;
        let one = settings.interfaces().is_none_or(|names| names.client == names.server);
        ensure!(one, "--interface: all nodes of an exchange use one name, such as ib0");
        let operation = settings.operation();
        ensure!(
            operation.carries_payload(),
            "--operation {} sends no messages: use send; over verbs send_imm, write_imm, an RDMA \
             write that tells the receiver, or write, which it finds by polling its memory; over \
             mpi write, a put",
            operation.name()
        );
        let too_few = self.queues().into_iter().find(|(queue, receive)| receive <= queue);
        refuse_found(too_few, |(queue, receive)| {
            format!(
                "--receive-queue {receive} must be larger than --queue {queue}: a message would \
                 find no buffer"
            )
        })?;
        for nodes in nodes {
            let most = self.degrees.iter().find(|degree| **degree >= nodes);
            refuse_found(most, |degree| {
                format!("--degree {degree}: {nodes} nodes have at most {} senders", nodes - 1)
            })?;
            for rule in &self.rules {
                self.transfers(request, *rule, nodes)?;
            }
        }
        let is_short = |slot: &Span| slot.0 < SHORTEST_SLOT.0 && !self.spec.chaotic;
        let short = request.sizes.iter().flat_map(|size| self.slots(*size)).find(is_short);
        refuse_found(short, |slot| {
            format!("a slot of {slot} is too short: use {SHORTEST_SLOT} or more")
        })
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        let descriptor = over.descriptor();
        let sleeps = request.waits.iter().find(|wait| **wait != Wait::Busy);
        refuse_found(sleeps.filter(|_| !descriptor.watchable), |wait| {
            format!(
                "{over} does not support --wait {} over several connections, which the kernel \
                 cannot watch together: use --wait busy",
                wait.name()
            )
        })?;
        ensure!(
            request.settings.operation() != Operation::Write || !over.loses(&request.settings),
            "exchange does not support --operation write of a service that loses messages, which \
             waits for no free buffer of the receiver: use --service rc, or write_imm"
        );
        let has_own = over.has_setting("receive-depth");
        let several = self.receive_queues.get(1).filter(|_| !has_own);
        refuse_found(several, |_| {
            format!(
                "--receive-queue: {over} posts no receives of its own, so several give the same \
                 again: use one"
            )
        })?;
        let lengths = request
            .sizes
            .iter()
            .flat_map(|size| self.spreads.iter().map(|spread| Lengths::longest(size.0, *spread)));
        let largest = descriptor.largest_with(&request.settings);
        refuse_found(lengths.max().filter(|longest| *longest > largest), |longest| {
            format!("a message has up to {longest} B, and {over} carries {largest} B: use less")
        })?;
        let nodes = self.nodes(request).into_iter().max().unwrap_or(2);
        let two = [Rule::Fixed, Rule::Shift, Rule::EvenOdd];
        let has_two = self.rules.iter().all(|rule| two.contains(rule));
        let ends = if has_two { 2 } else { nodes.saturating_sub(1) };
        check_descriptors(nodes, u64::from(ends) * u64::from(descriptor.descriptors))
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let mut cases = Vec::new();
        for nodes in self.nodes(request) {
            for (rule, degree) in self.rules(nodes) {
                for (queue, receive_queue) in self.queues() {
                    for &spread in &self.spreads {
                        for slot in self.slots(of.size) {
                            let own = (queue, receive_queue, spread, slot);
                            cases.push(self.case(request, of, nodes, (rule, degree), own));
                        }
                    }
                }
            }
        }
        cases
    }
}

impl ExchangeRequest {
    fn case(
        &self,
        request: &Request,
        of: &Combination,
        nodes: u32,
        (rule, degree): (Rule, u32),
        (queue, receive_queue, spread, slot): (u32, u32, f64, Span),
    ) -> Case {
        // Checked before.
        let transfers = self.transfers(request, rule, nodes).unwrap_or_default();
        let own = self.spec.clone();
        let mean = of.size;
        let spec =
            Spec { rule, degree, transfers, queue, receive_queue, mean, spread, slot, ..own };
        let size = Bytes(Lengths::longest(mean.0, spread));
        let mut case = request.case(&Combination { size, ..*of }, spec);
        case.topology = case.spec::<Spec>().topology(nodes, case.seed);
        case.warmup = 0;
        if of.transport.has_setting("receive-depth")
            && case.settings.text("receive-depth").is_none()
        {
            let set = case.settings.set("receive-depth", receive_queue.to_string());
            debug_assert!(set.is_ok(), "{set:?}");
        }
        case
    }
}

/// Shortest slot: shorter ones pass while a node looks at its connections.
const SHORTEST_SLOT: Span = Span(1000);
/// Descriptors of the process that commands the nodes for each that it started: its input, what it
/// prints, and what it says of errors.
const DESCRIPTORS_OF_NODE: u64 = 3;

/// Refuses more nodes than this process, or the node with so many of its ends, may have descriptors
/// for.
fn check_descriptors(nodes: u32, of_ends: u64) -> Result<(), UsageError> {
    let most = wiregauge_host::most_descriptors();
    let of_nodes = DESCRIPTORS_OF_NODE * u64::from(nodes);
    let needed = of_nodes.max(of_ends) + OTHER_DESCRIPTORS;
    let place = match of_nodes >= of_ends {
        true => "the process that commands them",
        false => "the process of one",
    };
    ensure!(
        needed <= most,
        "{nodes} nodes need {needed} file descriptors in {place}, and the limit here is {most}: \
         use fewer nodes, or raise it (ulimit -Hn {needed}, as root)"
    );
    Ok(())
}

/// The sizes that a message can have.
fn check_size(request: &Request) -> Result<(), UsageError> {
    refuse_found(request.sizes.iter().find(|size| size.0 < SHORTEST), |size| {
        format!("--size: a message of exchange has a header: use {SHORTEST} B or more, not {size}")
    })
}

/// The transfers of a file for so many nodes.
fn listed(file: &ListedFile, nodes: u32) -> Result<Vec<Transfer>, UsageError> {
    let wrong = |wrong: Misplaced| UsageError(format!("--schedule: {wrong}"));
    file::parse(&file.name, &file.text, nodes).map_err(wrong)
}
