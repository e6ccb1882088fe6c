//! The role of a node.

use super::Exchange;
use super::loops::{self, NodePlan};
use super::spec::Spec;
use crate::prelude::*;
use wiregauge_clock::timer::least_slack;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::agent::error::unable;
use wiregauge_measure::loops::compiled::{self, AnyContext, CompiledOverSet};
use wiregauge_measure::loops::waiter::AnyWaiter;
use wiregauge_transport::endpoint_set::EndpointSet;

/// Rows of all nodes of a chaotic round together at most: 160 MiB.
const MOST_ROWS: u64 = 4 << 20;
/// Samples of a connection per second at most, for which there is room.
const SAMPLES_PER_SECOND: f64 = 1e6;

impl PatternExecution for Exchange {
    /// A row for each message, or of a chaotic exchange for each stride, that a node receives.
    fn rows(&self, case: &Case, role: Role) -> u64 {
        if role.side() == Role::Server {
            return 0;
        }
        let spec = case.spec::<Spec>();
        let nodes = case.topology.ranks.len().max(1) as u64;
        let time = case.bound.time.map_or(0, |time| time.0) + warmup(case).0;
        let rows = match spec.slot.0 {
            0 => (time as f64 / 1e9 * SAMPLES_PER_SECOND) as u64,
            slot => (time / slot + 2).saturating_mul(spec.degree.into()),
        };
        rows.min(MOST_ROWS / nodes).max(1)
    }

    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        let (case, rank) = (thread.case, thread.thread);
        let spec = case.spec::<Spec>();
        let nodes = case.topology.ranks.len() as u32;
        let peers = case.topology.peers_of(rank as usize, 0).into_iter().map(|peer| {
            let other = peer.rank as u32;
            (other, spec.lengths(case.seed, [rank, other]))
        });
        plan.window = u64::from(spec.queue);
        if !spec.chaotic && case.wait != Wait::Busy {
            least_slack().map_err(unable("the timer"))?;
        }
        Ok(Box::new(Node(NodePlan {
            rank,
            slots: spec.slots(nodes, case.seed),
            slot: (!spec.chaotic).then(|| thread.ticks(spec.slot)),
            ns_per_tick: thread.time.ns_per_tick,
            skips_late: spec.skip_late,
            yields: thread.shares_cpu,
            stride: plan.stride.max(1),
            warmup: thread.ticks(warmup(case)),
            begin: Ticks(0),
            peers: peers.collect(),
        })))
    }
}

/// Time from the begin that is left out of the figures.
pub fn warmup(case: &Case) -> Span {
    case.warmup_time().unwrap_or(Span(0))
}

/// One node.
struct Node(NodePlan);

impl RoleLoop for Node {
    fn begins(&mut self, at: Ticks) {
        self.0.begin = at;
    }

    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        compiled::run_over_set(context, self)
    }
}

impl CompiledOverSet for Node {
    fn run<E: Endpoint, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended {
        loops::node(&self.0, context)
    }
}
