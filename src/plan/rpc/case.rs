//! What a case of `rpc` is to others: its threads and connections, the cases that measure for it,
//! and those that follow from it.

use super::{Rpc, UNLOADED, UNLOADED_OF_LENGTH};
use crate::plan::request::WARMUP_SHARE;
use crate::plan::{Case, Load, Schedule};
use crate::transport::Role;
use crate::units::MessageRate;

impl Case {
    /// The threads of an end.
    pub fn threads_of(&self, role: Role) -> u32 {
        let server = self.rpc.as_ref().map_or(self.threads, |rpc| rpc.server_ports);
        role.pick(self.threads, server)
    }

    /// The threads of the end that has more of them.
    pub fn most_threads(&self) -> u32 {
        self.threads.max(self.rpc.as_ref().map_or(0, |rpc| rpc.server_ports))
    }

    /// Connections of each thread of an end.
    pub fn lanes_of(&self, role: Role) -> u32 {
        let others = self.threads_of(role.other());
        let each = self.rpc.as_ref().map(|rpc| rpc.connections.saturating_mul(others));
        each.unwrap_or(1)
    }

    /// The case as the schedule of one of its client's ports knows it; `None`: it has one only.
    pub fn share_of(&self, port: u32) -> Option<Case> {
        let rate = self.schedule.rate().filter(|_| self.threads > 1)?;
        let rate = MessageRate(rate.0 / f64::from(self.threads));
        let seed = super::draws::numbered(self.seed, u64::from(port));
        Some(Case { schedule: self.schedule.at(rate), seed, ..self.clone() })
    }

    /// The case that measures the unloaded times of this one: the same messages over one
    /// connection, one at a time.
    pub fn unloaded(&self) -> Option<Case> {
        let rpc = self.rpc.as_ref()?;
        let lengths = rpc.workload.steps.len().max(1) as u64;
        let (least, most) = UNLOADED_OF_LENGTH;
        let of_each = (UNLOADED / lengths).clamp(least, most);
        let own = Rpc { server_ports: 1, connections: 1, receivers: 0, ..rpc.clone() };
        let rpc = Rpc { loads: Vec::new(), beside: 0, unloaded: true, ..own };
        Some(Case {
            threads: 1,
            schedule: Schedule::ClosedLoop,
            trace: None,
            load: Load { clients: 1, ..self.load },
            bound: crate::plan::Bound { count: Some(of_each * lengths), time: None },
            // Each length once.
            warmup: lengths,
            window: 1,
            rpc: Some(rpc),
            ..self.clone()
        })
    }

    /// Whether an unloaded case measures the times that this one's are held against.
    pub fn is_baseline_of(&self, other: &Case) -> bool {
        let own = self.rpc.as_ref().is_some_and(|rpc| rpc.unloaded);
        let is_loaded = other.rpc.as_ref().is_some_and(|rpc| !rpc.unloaded);
        // A quick study measures fewer of each length.
        let as_long = |one: Case| Case { bound: self.bound, warmup: self.warmup, ..one };
        own && is_loaded && other.unloaded().map(as_long).as_ref() == Some(self)
    }

    /// Whether it is measured for the sake of others: graphs do not show it.
    pub fn prepares(&self) -> bool {
        self.rpc.as_ref().is_some_and(|rpc| rpc.unloaded || !rpc.loads.is_empty())
    }

    /// The cases that graphs show of it: itself, or those that are to follow it, at any rate.
    pub fn shown(&self) -> Vec<Case> {
        if self.prepares() { self.shares(MessageRate(1.0)) } else { vec![self.clone()] }
    }

    /// The cases that are to follow one that has told how many requests per second the path
    /// carries.
    pub fn shares(&self, carried: MessageRate) -> Vec<Case> {
        let Some(rpc) = &self.rpc else { return Vec::new() };
        let seconds = self.bound.time.map_or(f64::INFINITY, |time| time.0 as f64 / 1e9);
        let of = |share: &f64| {
            let rate = share * carried.0;
            let expected = rate * seconds / f64::from(self.threads.max(1));
            Case {
                schedule: Schedule::Poisson { rate: MessageRate(rate) },
                // At most a tenth of what is expected, as everywhere.
                warmup: self.warmup.min((expected / WARMUP_SHARE as f64) as u64),
                load: Load { clients: 0, ..self.load },
                rpc: Some(Rpc { loads: Vec::new(), ..rpc.clone() }),
                ..self.clone()
            }
        };
        rpc.loads.iter().map(of).collect()
    }
}
