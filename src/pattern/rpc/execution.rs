//! The roles of requests over many connections: a client, whose replies other threads may take, and
//! a server.

use super::draws::Draws;
use super::loops::{self, Mesh};
use super::receivers::{self, Given, Giving, Split};
use super::spec::Spec;
use super::{Rpc, cases};
use crate::agent::error::AgentError;
use crate::agent::execution::{Endpoints, LoopContext, PatternExecution, RoleLoop, ThreadContext};
use crate::clock::{Clock, TickSpan};
use crate::host::{self, ResourceUse};
use crate::loops::compiled::{self, CompiledOverSet};
use crate::loops::waiter::AnyWaiter;
use crate::loops::{Ended, Loop};
use crate::pattern::load::{ask, rows_of_requests};
use crate::plan::Case;
use crate::sample::recorder::Recorder;
use crate::transport::endpoint_set::EndpointSet;
use crate::transport::{Endpoint, Role, SetupError};
use crate::units::Span;

/// How long a receiver thread sleeps before it looks whether its port has ended.
const LOOK: Span = Span(10_000_000);

impl PatternExecution for Rpc {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        rows_of_requests(case, role)
    }

    /// Each port has its share of the load, by a schedule of its own.
    fn share(&self, case: &Case, thread: u32) -> Option<Case> {
        cases::share_of(case, thread)
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        let spec = thread.case.spec::<Spec>();
        let receivers = if thread.role == Role::Client { spec.receivers } else { 0 };
        Ok(Box::new(Port {
            role: thread.role,
            draws: Draws::of(thread.case, thread.thread),
            clients: spec.clients,
            window: u64::from(spec.window),
            receivers: receivers as usize,
            shares: Vec::new(),
            cpu_beside: thread.cpu_beside,
            used_beside: ResourceUse::default(),
        }))
    }
}

/// One thread of an end.
struct Port {
    role: Role,
    draws: Draws,
    clients: u32,
    window: u64,
    /// Threads that take its replies.
    receivers: usize,
    /// Second handles on its connections, for each of them.
    shares: Vec<Endpoints>,
    /// Where these run.
    cpu_beside: Option<u32>,
    used_beside: ResourceUse,
}

impl RoleLoop for Port {
    fn tune(&self, plan: &mut Loop, _: &dyn Fn(Span) -> TickSpan) {
        plan.window = self.window;
    }

    fn connected(&mut self, endpoints: &Endpoints) -> Result<(), SetupError> {
        self.shares = shares(endpoints.ends(), self.receivers)?;
        Ok(())
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        if !self.shares.is_empty() {
            return self.run_split(endpoints, context, recorder);
        }
        let clock = context.clock;
        compiled::run_over_set(endpoints, clock, Measured { port: self, context, recorder })
    }

    fn used_beside(&self) -> ResourceUse {
        self.used_beside
    }
}

/// Second handles on the connections, shared among the receiver threads.
fn shares(ends: &[Box<dyn Endpoint>], count: usize) -> Result<Vec<Endpoints>, SetupError> {
    let count = count.min(ends.len());
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut shares: Vec<Vec<Box<dyn Endpoint>>> = (0..count).map(|_| Vec::new()).collect();
    for (number, end) in ends.iter().enumerate() {
        let second = || SetupError::Refused("two threads cannot share a connection".into());
        shares[number % count].push(end.receiver().ok_or_else(second)?);
    }
    let failed = SetupError::system("watching the connections");
    let sets: Result<Vec<_>, _> =
        shares.into_iter().map(|share| EndpointSet::watching(share, LOOK)).collect();
    sets.map_err(failed)
}

impl Port {
    /// Runs the client while other threads take the replies.
    fn run_split(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (wait, clock, plan, spin) =
            (context.case.wait, context.clock, context.plan, context.spin);
        let handovers = self.shares.iter().map(|_| receivers::handover());
        let (giving, mut given): (Vec<Giving>, Vec<Given>) = handovers.unzip();
        let (draws, clients, cpu) = (self.draws.clone(), self.clients, self.cpu_beside);
        let (ended, used) = std::thread::scope(|scope| {
            let beside: Vec<_> = self
                .shares
                .iter_mut()
                .zip(giving)
                .map(|(set, giving)| {
                    scope.spawn(move || {
                        cpu.inspect(|cpu| drop(host::pin_to(*cpu)));
                        let used = ResourceUse::of_thread();
                        let waiter = AnyWaiter::of(wait, spin);
                        receivers::receiver(set, waiter, clock, plan, giving);
                        ResourceUse::of_thread().since(&used)
                    })
                })
                .collect();
            let mut line = Split::over(endpoints, draws, &mut given);
            let ended = ask(&mut line, AnyWaiter::Busy, clock, context, clients, recorder);
            given.iter().for_each(Given::end);
            let used = beside.into_iter().filter_map(|thread| thread.join().ok());
            (ended, used.fold(ResourceUse::default(), |all, one| all.and(&one)))
        });
        self.used_beside = used;
        ended
    }
}

struct Measured<'a, 'r, 'm> {
    port: &'a Port,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl CompiledOverSet for Measured<'_, '_, '_> {
    fn run<E: Endpoint, C: Clock>(self, set: &mut EndpointSet<E>, clock: C) -> Ended {
        let Measured { port, context, recorder } = self;
        let waiter = context.waiter();
        if port.role == Role::Server {
            return loops::server(set, waiter, clock, context.gate, context.plan, recorder);
        }
        let mut line = Mesh::over(set, port.draws.clone());
        ask(&mut line, waiter, clock, context, port.clients, recorder)
    }
}
