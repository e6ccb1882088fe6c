//! What is the same for all rounds of a plan: where their ends run, and by what clock.

use crate::agent::execution::FindExecution;
use crate::clock::offset::Model;
use crate::clock::{LocalNs, Source, Ticks, Timebase};
use crate::host::CpuPair;
use crate::plan::Case;
use crate::remote::host::RemoteHost;
use crate::sample::join::End;
use crate::transport::Role;
use crate::units::{Span, Untrue};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What is the same for all rounds.
pub struct Conditions<'a> {
    /// The program that is started as an agent: this one.
    pub program: PathBuf,
    /// How an agent runs the patterns.
    pub execution: FindExecution,
    /// Other hosts, of which the ends of cases are numbers.
    pub hosts: &'a [RemoteHost],
    /// This host's CPUs of the roles, a pair for each thread while there are as many.
    pub cpus: Vec<CpuPair>,
    /// The clock that stamps.
    pub clock: Source,
    /// Its scale.
    pub time: Timebase,
    /// Time of day at its epoch, nanoseconds since 1970.
    pub epoch_of_day_ns: u64,
    /// What the other hosts' clocks are made wrong by, in a test.
    pub untrue: Option<Untrue>,
    /// How long each CPU's noise is watched before a round.
    pub noise: Span,
    /// Messages of the null transport before a round.
    pub floor: u32,
    /// What is known now of the other hosts' clocks against this one's, where rounds begin
    /// together.
    pub clocks: Vec<Option<Model>>,
    /// Set when the user wants the program to end.
    pub interrupted: &'a AtomicBool,
}

impl<'a> Conditions<'a> {
    /// The other host on which a role of a case is played.
    pub fn remote_host(&self, case: &Case, role: Role) -> Option<&'a RemoteHost> {
        self.hosts.get(case.host_of(role)? as usize)
    }

    /// The clock of a case's end against this host's; `None` where that is not known.
    pub fn clock_of(&self, case: &Case, role: Role) -> Option<End<'_>> {
        let Some(number) = case.host_of(role) else {
            return Some(End { time: &self.time, offset: None });
        };
        let offset = Some(self.clocks.get(number as usize)?.as_ref()?);
        Some(End { time: &self.remote_host(case, role)?.probe.time, offset })
    }

    /// What the clock of a case's end shows at a time of this host.
    pub fn remote_ticks_at(&self, case: &Case, role: Role, at: LocalNs) -> Option<Ticks> {
        let end = self.clock_of(case, role)?;
        let offset_ns = end.offset.map_or(0.0, |model| model.offset_at(at).ns);
        Some(end.time.ticks_at(LocalNs(at.0 + offset_ns)))
    }

    /// The CPUs that the roles of a case are to have, a pair for each thread while there are as
    /// many.
    pub fn cpus_of(&self, case: &Case) -> Vec<CpuPair> {
        let of = |role: Role| match self.remote_host(case, role) {
            Some(host) => host.probe.cpus.clone(),
            None => self.cpus.iter().map(|pair| role.pick(pair.client, pair.server)).collect(),
        };
        let mut pairs = side_by_side(&of(Role::Client), &of(Role::Server));
        // The first are those of what runs beside it.
        let before = case.pattern.cpus_before(case);
        if !pairs.is_empty() {
            let places = pairs.len();
            pairs.rotate_left(before as usize % places);
        }
        pairs
    }
}

/// The CPUs of two ends in pairs. The end with fewer has its threads take turns.
fn side_by_side(clients: &[u32], servers: &[u32]) -> Vec<CpuPair> {
    let is_none = clients.is_empty() || servers.is_empty();
    let most = if is_none { 0 } else { clients.len().max(servers.len()) };
    let of = |cpus: &[u32], thread: usize| cpus[thread % cpus.len()];
    let pair = |thread| CpuPair { client: of(clients, thread), server: of(servers, thread) };
    (0..most).map(pair).collect()
}

/// The pair of a thread, where there are any: threads take turns where there are fewer pairs.
pub fn pair_of(cpus: &[CpuPair], thread: usize) -> Option<CpuPair> {
    cpus.get(thread % cpus.len().max(1)).copied()
}
