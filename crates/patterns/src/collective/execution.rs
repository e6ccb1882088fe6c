//! The role of a rank.

use super::loops::{self, RankPlan};
use super::spec::{Collective, Spec};
use crate::prelude::*;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::loops::compiled::AnyContext;
use wiregauge_transport::SetupError;
use wiregauge_transport::collectives::CollectiveRank;

/// Rows of all ranks of a round together at most: 160 MiB.
const MOST_ROWS: u64 = 4 << 20;
/// Operations per second at most, for which there is room.
const OPERATIONS_PER_SECOND: f64 = 1e6;

impl PatternExecution for Collective {
    /// A row for each operation.
    fn rows(&self, case: &Case, role: Role) -> u64 {
        if role.side() == Role::Server {
            return 0;
        }
        let time = case.bound.time.map(|time| time.0 + warmup(case).0);
        let in_time = time.map(|ns| (ns as f64 / 1e9 * OPERATIONS_PER_SECOND) as u64);
        let count = case.bound.count.map(|count| count.saturating_add(case.warmup));
        let rows = [in_time, count].into_iter().flatten().min().unwrap_or(1);
        rows.min(MOST_ROWS / case.topology.ranks.len().max(1) as u64).max(1)
    }

    fn prepare(&self, thread: &ThreadContext<'_>, _: &mut Loop) -> Prepared {
        let case = thread.case;
        let spec = *case.spec::<Spec>();
        Ok(Box::new(Rank {
            ranks: case.topology.ranks.len() as u32,
            own: None,
            work: loops::work(),
            plan: RankPlan {
                spec,
                size: if spec.operation.has_payload() { case.size.0 as usize } else { 0 },
                begin: Ticks(0),
                ns_per_tick: thread.time.ns_per_tick,
                compute: thread.ticks(spec.compute),
                warm_ns: case.bound.time.map_or(0, |_| warmup(case).0 as i64),
                yields: thread.shares_cpu,
            },
        }))
    }
}

/// Time from the begin that is left out of the figures.
pub fn warmup(case: &Case) -> Span {
    case.warmup_time().unwrap_or(Span(0))
}

/// One rank.
struct Rank {
    ranks: u32,
    own: Option<Box<dyn CollectiveRank>>,
    /// Numbers that it computes with, written before it begins.
    work: Box<[u64]>,
    plan: RankPlan,
}

impl RoleLoop for Rank {
    fn connected(&mut self, endpoints: &Endpoints) -> Result<(), SetupError> {
        let refused = |why: &str| SetupError::Refused(why.into());
        let first = endpoints.ends.first().ok_or_else(|| refused("there is no other rank"))?;
        let own = first.collective(self.plan.spec.operation);
        let own = own.ok_or_else(|| refused("the transport has no collective operations"))??;
        let (launched, ranks) = (own.ranks(), self.ranks);
        if launched != ranks {
            return Err(SetupError::Refused(format!(
                "the launch has {launched} ranks and the operation {ranks}: all ranks of a launch \
                 take part"
            )));
        }
        self.own = Some(own);
        Ok(())
    }

    fn begins(&mut self, at: Ticks) {
        self.plan.begin = at;
    }

    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        match &mut self.own {
            Some(own) => loops::rank(&self.plan, &mut **own, &mut self.work, context),
            None => Ended::Closed,
        }
    }

    fn finish(self: Box<Self>) -> FinalCounters {
        let failed = self.own.as_ref().and_then(|own| own.failed());
        let counter = |why: &str| ("error.mpi".to_string(), CounterValue::Text(why.into()));
        failed.map(counter).into_iter().collect()
    }
}
