//! The roles of a flow: sender and receiver, both at once, or operations on the server's memory.

use super::spec::{Direction, Spec};
use super::{Bandwidth, loops, one_sided};
use crate::agent::error::AgentError;
use crate::agent::execution::{Endpoints, LoopContext, PatternExecution, RoleLoop, ThreadContext};
use crate::agent::rows::rows;
use crate::clock::{Clock, TickSpan};
use crate::loops::compiled::{self, Compiled};
use crate::loops::one_sided::memory;
use crate::loops::waiter::Waiter;
use crate::loops::{Ended, Loop};
use crate::plan::Case;
use crate::sample::recorder::Recorder;
use crate::transport::{Endpoint, Role};
use crate::units::Span;

/// Rows for each second of a round that only time bounds.
const MARKS_PER_SECOND: f64 = 1e6;

impl PatternExecution for Bandwidth {
    fn rows(&self, case: &Case, _: Role) -> u64 {
        rows(case, MARKS_PER_SECOND)
    }

    fn stamps_at_server(&self) -> bool {
        true
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        let (case, role) = (thread.case, thread.role);
        let is_one_sided = case.is_one_sided();
        Ok(Box::new(OneFlow { spec: *case.spec(), role, is_one_sided }))
    }
}

#[derive(Clone, Copy)]
struct OneFlow {
    spec: Spec,
    role: Role,
    is_one_sided: bool,
}

impl RoleLoop for OneFlow {
    fn tune(&self, plan: &mut Loop, _: &dyn Fn(Span) -> TickSpan) {
        plan.burst = u64::from(self.spec.burst.max(1));
        plan.window = u64::from(self.spec.window.max(self.spec.burst));
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (waiter, clock) = (context.waiter(), context.clock);
        let measured = Measured { flow: *self, context, recorder };
        compiled::run(endpoints.end(0), waiter, clock, measured)
    }
}

struct Measured<'a, 'r, 'm> {
    flow: OneFlow,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for Measured<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended {
        let Measured { flow: OneFlow { spec, role, is_one_sided }, context, recorder } = self;
        let (gate, plan) = (context.gate, context.plan);
        match (spec.direction, role) {
            (Direction::Uni, Role::Server) if is_one_sided => memory(gate, recorder),
            _ if is_one_sided => one_sided::client(endpoint, waiter, clock, gate, plan, recorder),
            (Direction::Bi, _) => loops::both(endpoint, waiter, clock, gate, plan, recorder),
            (Direction::Uni, Role::Client) => {
                loops::sender(endpoint, waiter, clock, gate, plan, recorder)
            }
            (Direction::Uni, Role::Server) => {
                loops::receiver(endpoint, waiter, clock, gate, plan, recorder)
            }
        }
    }
}
