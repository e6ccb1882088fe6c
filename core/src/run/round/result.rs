//! What a round leaves.

use crate::clock::{LocalNs, Ticks, Timebase};
use crate::control::fault::Fault;
use crate::plan::Case;
use crate::run::rank_trace::HostTrace;
use crate::run::running_rank::{RunningRank, ThreadResult};
use crate::transport::Role;
use std::time::Instant;

/// What the ranks of one role left.
pub struct RankResult {
    /// Their role.
    pub role: Role,
    /// What their threads left, in the order of the ranks.
    pub threads: Vec<ThreadResult>,
}

/// What a round left.
pub struct RoundResult {
    /// What its ranks left, those of a role together, in the order of the topology.
    pub ranks: Vec<RankResult>,
    /// What the kernels of its ranks' hosts stamped, where they were asked, each with its role.
    pub traces: Vec<(Role, HostTrace)>,
    /// What went wrong.
    pub fault: Option<Fault>,
    /// The instant of this host's clock at which all ranks were to start; `None`: at once.
    pub start: Option<LocalNs>,
    /// From the start to the end of its last rank.
    pub ran: Option<(Instant, Instant)>,
}

impl RoundResult {
    /// What the threads of a role's side left: nodes are on the client's.
    pub fn threads_of(&self, role: Role) -> &[ThreadResult] {
        let rank = self.ranks.iter().find(|rank| rank.role.side() == role.side());
        rank.map_or(&[], |rank| &rank.threads)
    }

    /// The time of the round: of this host, or of the simulation, whose ticks are nanoseconds.
    pub fn time(&self, case: &Case, own: Timebase) -> Timebase {
        if !case.transport.simulates_time() {
            return own;
        }
        let first =
            self.threads_of(Role::Client).first().and_then(|part| part.arena.rows().first());
        Timebase::nanoseconds(first.map_or(Ticks(0), |row| row.submit))
    }
}

/// What ranks left, those of a role together.
pub(super) fn by_role(ranks: Vec<RunningRank<'_>>) -> Vec<RankResult> {
    let mut roles: Vec<RankResult> = Vec::new();
    for RunningRank { role, threads, .. } in ranks {
        match roles.iter_mut().find(|one| one.role == role) {
            Some(known) => known.threads.extend(threads),
            None => roles.push(RankResult { role, threads }),
        }
    }
    roles
}

/// What their hosts' kernels stamped.
pub(super) fn traces(ranks: &mut [RunningRank<'_>]) -> Vec<(Role, HostTrace)> {
    ranks.iter_mut().filter_map(|rank| Some((rank.role, rank.trace.done.take()?))).collect()
}
