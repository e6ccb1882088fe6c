//! The roles of requests: a client that asks by a schedule or so many at a time, and the server
//! with its table.

use super::Load;
use super::client::{self, Line, OneServer, Outstanding};
use super::server::{self, Store};
use super::spec::Spec;
use crate::agent::error::AgentError;
use crate::agent::execution::{Endpoints, LoopContext, PatternExecution, RoleLoop, ThreadContext};
use crate::agent::rows::{MESSAGES_PER_SECOND, rows};
use crate::clock::{Clock, TickSpan};
use crate::loops::compiled::{self, Compiled};
use crate::loops::waiter::{Busy, Waiter};
use crate::loops::{Ended, Loop};
use crate::plan::Case;
use crate::sample::recorder::Recorder;
use crate::transport::{Endpoint, Role};
use crate::units::Span;

/// Requests of a round that are kept one by one (40 MB in the agent, 56 MB in the controller while
/// it joins them, 24 MB of durations): later ones go into histograms.
const MOST_ROWS: u64 = 1_000_000;

impl PatternExecution for Load {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        rows_of_requests(case, role)
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        let spec: Spec = *thread.case.spec();
        let store = (thread.role == Role::Server).then(|| Store::of(&spec));
        Ok(Box::new(Requests { spec, store }))
    }
}

/// Rows of a role that sends requests, or answers them.
pub(in crate::pattern) fn rows_of_requests(case: &Case, role: Role) -> u64 {
    match role {
        Role::Server => 0,
        Role::Client => rows(case, MESSAGES_PER_SECOND).min(MOST_ROWS / u64::from(case.threads())),
    }
}

struct Requests {
    spec: Spec,
    /// The table, at the server.
    store: Option<Store>,
}

impl RoleLoop for Requests {
    fn tune(&self, plan: &mut Loop, _: &dyn Fn(Span) -> TickSpan) {
        plan.window = u64::from(self.spec.window);
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (waiter, clock) = (context.waiter(), context.clock);
        let measured = Measured { spec: self.spec, store: self.store.as_ref(), context, recorder };
        compiled::run(endpoints.end(0), waiter, clock, measured)
    }
}

struct Measured<'a, 'r, 'm> {
    spec: Spec,
    store: Option<&'a Store>,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for Measured<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended {
        let Measured { spec, store, context, recorder } = self;
        let (gate, plan) = (context.gate, context.plan);
        match (store, spec.buffers) {
            // Its polls are timed, so it makes them.
            (Some(store), Some(_)) => {
                server::server::<_, _, _, true>(endpoint, Busy, clock, gate, plan, store, recorder)
            }
            (Some(store), None) => server::server::<_, _, _, false>(
                endpoint, waiter, clock, gate, plan, store, recorder,
            ),
            (None, _) => {
                let mut line = OneServer::over(endpoint, plan, spec.objects);
                ask(&mut line, waiter, clock, context, spec.clients, recorder)
            }
        }
    }
}

/// Asks by a schedule, or in a closed loop of so many clients where there is none.
pub(in crate::pattern) fn ask<L: Line, W: Waiter, C: Clock>(
    line: &mut L,
    waiter: W,
    clock: C,
    context: LoopContext<'_>,
    clients: u32,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let LoopContext { gate, plan, generator, .. } = context;
    let mut requests = Outstanding::new();
    match generator {
        // It never sleeps while answers are awaited, however the server waits.
        Some(pace) => client::client(line, Busy, clock, gate, plan, pace, &mut requests, recorder),
        None => {
            let pace = client::Clients(u64::from(clients.max(1)));
            client::client(line, waiter, clock, gate, plan, pace, &mut requests, recorder)
        }
    }
}
