//! The roles of a ping-pong: the closed loop, or operations on the server's memory.

use super::spec::Spec;
use super::{Latency, one_sided};
use crate::agent::error::AgentError;
use crate::agent::execution::{Endpoints, LoopContext, PatternExecution, RoleLoop, ThreadContext};
use crate::agent::rows::{MESSAGES_PER_SECOND, rows};
use crate::clock::{Clock, TickSpan};
use crate::loops::compiled::{self, Compiled};
use crate::loops::one_sided::memory;
use crate::loops::waiter::Waiter;
use crate::loops::{Ended, Loop, closed};
use crate::plan::Case;
use crate::sample::recorder::Recorder;
use crate::transport::{Endpoint, Role};
use crate::units::Span;

impl PatternExecution for Latency {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        if role == Role::Server { 0 } else { rows(case, MESSAGES_PER_SECOND) }
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        let (case, role) = (thread.case, thread.role);
        let is_one_sided = case.is_one_sided();
        Ok(Box::new(PingPong { spec: *case.spec(), role, is_one_sided }))
    }
}

struct PingPong {
    spec: Spec,
    role: Role,
    is_one_sided: bool,
}

impl RoleLoop for PingPong {
    fn tune(&self, plan: &mut Loop, ticks: &dyn Fn(Span) -> TickSpan) {
        self.spec.tune(plan, ticks);
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (waiter, clock) = (context.waiter(), context.clock);
        let PingPong { role, is_one_sided, .. } = *self;
        let measured = Measured { role, is_one_sided, context, recorder };
        compiled::run(endpoints.end(0), waiter, clock, measured)
    }
}

impl Spec {
    /// Sets what a closed loop knows of bursts.
    pub(in crate::pattern) fn tune(&self, plan: &mut Loop, ticks: &dyn Fn(Span) -> TickSpan) {
        plan.pause = ticks(self.pause);
        plan.burst = u64::from(self.burst.max(1));
        plan.window = plan.window.max(plan.burst);
    }
}

struct Measured<'a, 'r, 'm> {
    role: Role,
    is_one_sided: bool,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for Measured<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended {
        let Measured { role, is_one_sided, context, recorder } = self;
        let (gate, plan) = (context.gate, context.plan);
        match (is_one_sided, role) {
            (false, Role::Client) => closed::client(endpoint, waiter, clock, gate, plan, recorder),
            (false, Role::Server) => {
                closed::server::<_, _, _, false>(endpoint, waiter, clock, gate, plan, recorder)
            }
            (true, Role::Client) => {
                one_sided::client(endpoint, waiter, clock, gate, plan, recorder)
            }
            (true, Role::Server) => memory(gate, recorder),
        }
    }
}
