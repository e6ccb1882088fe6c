//! A plan and its cases as the record keeps them. What a pattern asks is kept in the pattern's own
//! form.

use crate::plan::study::Study;
use crate::plan::topology::HostPair;
use crate::plan::{
    Axis, Bound, Case, CpuPair, HostSpec, Pairs, Plan, Rounds, Schedule, Settings, TimerKind,
    Topology, Trace, Wait, cpus, pairs,
};
use crate::transport::{Role, TransportKind};
use crate::units::{Bytes, Span, Untrue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What was measured, with fixed parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// The pattern.
    pub pattern: String,
    /// What it asked beyond the rest, in its own form.
    pub spec: Value,
    /// A short name that tells the case from others but for its hosts.
    pub label: String,
    /// What tells it apart from other points of a curve.
    pub point: Option<String>,
    /// Where it stands on the axes of graphs.
    pub axes: BTreeMap<Axis, f64>,
    /// Whether it was measured for the sake of others: graphs do not show it.
    pub is_preparation: bool,
    /// How messages moved.
    pub transport: TransportKind,
    /// How all ends waited.
    pub wait: Wait,
    /// Who talked to whom.
    pub topology: Topology,
    /// Payload of one message; the longest where they differ.
    pub size: Bytes,
    /// When a round of a thread ended.
    pub bound: Bound,
    /// Messages at the start of each round that are kept but left out of the figures.
    pub warmup: u64,
    /// The intended send times.
    pub schedule: Schedule,
    /// The messages of a schedule that was read from a file.
    pub trace: Option<Trace>,
    /// What waited for the intended times.
    pub timer: TimerKind,
    /// Whether the receiver verified the payload.
    pub check: bool,
    /// A message that had not arrived by then was lost (transports that lose messages).
    pub loss_after: Span,
    /// A round without progress for so long had stalled.
    pub timeout: Span,
    /// Settings of the transport.
    pub settings: Settings,
    /// Random seed.
    pub seed: u64,
}

impl CaseRecord {
    /// Of a case.
    pub fn of(case: &Case) -> CaseRecord {
        let case = case.clone();
        CaseRecord {
            pattern: case.pattern.name().into(),
            spec: case.spec.to_json(),
            label: case.label(),
            point: case.pattern.point(&case),
            axes: Axis::ALL.iter().filter_map(|axis| Some((*axis, axis.of(&case)?))).collect(),
            is_preparation: case.pattern.is_preparation(&case),
            transport: case.transport,
            wait: case.wait,
            topology: case.topology,
            size: case.size,
            bound: case.bound,
            warmup: case.warmup,
            schedule: case.schedule,
            trace: case.trace,
            timer: case.timer,
            check: case.check,
            loss_after: case.loss_after,
            timeout: case.timeout,
            settings: case.settings,
            seed: case.seed,
        }
    }

    /// The specification as the pattern's own type; `None`: it is of another one.
    pub fn spec<T: DeserializeOwned>(&self, pattern: &str) -> Option<T> {
        let own = Some(&self.spec).filter(|_| self.pattern == pattern);
        T::deserialize(own?).ok()
    }

    /// Where it stands on an axis of graphs.
    pub fn on_axis(&self, axis: Axis) -> Option<f64> {
        self.axes.get(&axis).copied()
    }

    /// Threads that measured: the client's.
    pub fn threads(&self) -> u32 {
        self.topology.threads_of(Role::Client).max(1)
    }

    /// The hosts of its client and its server.
    pub fn hosts(&self) -> HostPair {
        self.topology.hosts()
    }
}

/// What was to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The command's name: `survey`, `latency`, ...
    pub name: String,
    /// The cases, in the order in which they are reported.
    pub cases: Vec<CaseRecord>,
    /// Rounds of each case.
    pub rounds: Rounds,
    /// CPUs of the client and of the server that were asked for, a pair for each thread.
    #[serde(with = "cpus")]
    pub cpus: Vec<CpuPair>,
    /// Other hosts than the controller's, of which the cases' hosts are numbers.
    pub hosts: Vec<HostSpec>,
    /// Which pairs of several hosts were measured.
    pub pairs: Option<Pairs>,
    /// Cases that ran at the same time, by their numbers; one that is in no list ran alone.
    pub concurrent: Vec<Vec<u32>>,
    /// What the other hosts' clocks were made wrong by, to prove that this is found.
    pub untrue_clock: Option<Untrue>,
    /// Random seed of the order of the cases.
    pub seed: u64,
    /// Samples above this count as slow.
    pub threshold: Span,
    /// The study that was run, where it was one.
    pub study: Option<Study>,
}

impl PlanRecord {
    /// Of a plan.
    pub fn of(plan: &Plan) -> PlanRecord {
        let plan = plan.clone();
        PlanRecord {
            name: plan.name,
            cases: plan.cases.iter().map(CaseRecord::of).collect(),
            rounds: plan.rounds,
            cpus: plan.cpus,
            hosts: plan.hosts,
            pairs: plan.pairs,
            concurrent: plan.concurrent,
            untrue_clock: plan.untrue_clock,
            seed: plan.seed,
            threshold: plan.threshold,
            study: plan.study,
        }
    }

    /// The name of one of its hosts; `None`: the controller's.
    pub fn host(&self, number: Option<u32>) -> &str {
        let other = number.and_then(|number| self.hosts.get(number as usize));
        other.map_or(pairs::HERE, |far| &far.host)
    }

    /// The names of the hosts of a case.
    pub fn hosts_of(&self, case: &CaseRecord) -> String {
        let HostPair { client, server } = case.hosts();
        format!("{} to {}", self.host(client), self.host(server))
    }
}
