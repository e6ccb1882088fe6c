//! The roles of messages one way: a closed loop with stamps at the server, or a sender by a
//! schedule.

use super::{Oneway, Spec, sender};
use crate::agent::error::AgentError;
use crate::agent::execution::{Endpoints, LoopContext, PatternExecution, RoleLoop, ThreadContext};
use crate::agent::rows::{MESSAGES_PER_SECOND, rows};
use crate::clock::{Clock, TickSpan};
use crate::loops::compiled::{self, Compiled};
use crate::loops::stamper::Stamper;
use crate::loops::waiter::Waiter;
use crate::loops::{Ended, Loop, closed};
use crate::plan::Case;
use crate::sample::recorder::Recorder;
use crate::transport::{Endpoint, Role};
use crate::units::Span;
use std::sync::Arc;

impl PatternExecution for Oneway {
    fn rows(&self, case: &Case, _: Role) -> u64 {
        rows(case, MESSAGES_PER_SECOND)
    }

    fn stamps_at_server(&self) -> bool {
        true
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        let ThreadContext { case, role, rows, .. } = *thread;
        let completions = case.transport.completes_each(&case.settings);
        let stamps_send = case.settings.stamps_send();
        Ok(Box::new(OneWay { spec: *case.spec(), role, rows, completions, stamps_send }))
    }
}

struct OneWay {
    spec: Spec,
    role: Role,
    rows: u64,
    completions: bool,
    stamps_send: bool,
}

impl RoleLoop for OneWay {
    fn tune(&self, plan: &mut Loop, ticks: &dyn Fn(Span) -> TickSpan) {
        self.spec.tune(plan, ticks);
        // Both ends' stamps are joined by number: a message without a row has no latency.
        plan.messages = plan.messages.min(self.rows);
        plan.completions = self.completions;
        plan.reads_send = self.stamps_send;
        if self.stamps_send && self.role == Role::Client {
            plan.stamper = Some(Arc::new(Stamper::default()));
        }
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (waiter, clock) = (context.waiter(), context.clock);
        let measured = Measured { role: self.role, context, recorder };
        compiled::run(endpoints.end(0), waiter, clock, measured)
    }
}

struct Measured<'a, 'r, 'm> {
    role: Role,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for Measured<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended {
        let Measured { role, context, recorder } = self;
        let LoopContext { gate, plan, generator, .. } = context;
        match (role, generator) {
            (Role::Client, None) => closed::client(endpoint, waiter, clock, gate, plan, recorder),
            (Role::Client, Some(generator)) => {
                sender::client(endpoint, waiter, clock, gate, plan, generator, recorder)
            }
            (Role::Server, _) => {
                closed::server::<_, _, _, true>(endpoint, waiter, clock, gate, plan, recorder)
            }
        }
    }
}
