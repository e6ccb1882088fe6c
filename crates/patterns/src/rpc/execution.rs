//! The roles of requests over many connections: a client, whose replies other threads may take, and
//! a server.

use super::draws::Draws;
use super::loops::{self, PortPath};
use super::receivers::{self, ReceiverThread, Receiving, ReplyConsumer};
use super::{Rpc, Spec};
use crate::load::{self, rows_of_requests, send_requests};
use crate::prelude::*;
use wiregauge_host::ResourceUse;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::loops::compiled::{self, AnyContext, CompiledOverSet};
use wiregauge_measure::loops::waiter::AnyWaiter;
use wiregauge_transport::SetupError;
use wiregauge_transport::endpoint_set::EndpointSet;

/// How long a receiver thread sleeps before it looks whether its port has ended.
const LOOK: Span = Span(10_000_000);

impl PatternExecution for Rpc {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        rows_of_requests(case, role)
    }

    /// Each port has its share of the load, by a schedule of its own.
    fn share(&self, case: &Case, thread: u32) -> Option<Case> {
        load::share_of(case, thread)
    }

    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        let spec = thread.case.spec::<Spec>();
        plan.window = u64::from(spec.window);
        let receivers = if thread.role == Role::Client { spec.receivers } else { 0 };
        Ok(Box::new(Port {
            role: thread.role,
            draws: Draws::of(thread.case, thread.thread),
            clients: spec.clients,
            receivers: receivers as usize,
            receiving: Vec::new(),
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
    /// Threads that take its replies.
    receivers: usize,
    /// These, each with second handles on its share of the connections. They were started before
    /// the round begins.
    receiving: Vec<ReceiverThread>,
    /// Where these run.
    cpu_beside: Option<u32>,
    used_beside: ResourceUse,
}

impl RoleLoop for Port {
    fn connected(&mut self, endpoints: &Endpoints) -> Result<(), SetupError> {
        let shares = shares(&endpoints.ends, self.receivers)?.into_iter();
        let started = shares.map(|share| ReceiverThread::start(share, self.cpu_beside));
        self.receiving = started.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        match self.receiving.is_empty() {
            true => compiled::run_over_set(context, self),
            false => self.run_split(context),
        }
    }

    fn used_beside(&self) -> ResourceUse {
        self.used_beside
    }
}

/// Second handles on the connections, shared among the receiver threads.
fn shares(ends: &[Box<dyn Endpoint>], count: usize) -> Result<Vec<Endpoints>, SetupError> {
    let count = count.min(ends.len());
    let refused = || SetupError::Refused("two threads cannot share a connection".into());
    let set = |share| {
        let own = ends.iter().skip(share).step_by(count);
        let seconds =
            own.map(|end| end.receiver().ok_or_else(refused)).collect::<Result<_, _>>()?;
        let set = EndpointSet::watched(seconds, true, Some(LOOK));
        set.map_err(SetupError::system("watching the connections"))
    };
    (0..count).map(set).collect()
}

impl Port {
    /// Runs the client while other threads take the replies.
    fn run_split(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        let LoopContext { waiter, clock, plan, .. } = context;
        let mut taken: Vec<ReplyConsumer> = Vec::new();
        for thread in &self.receiving {
            let (put, take) = receivers::handover();
            taken.push(take);
            thread.begin(Receiving { waiter, clock, plan: plan.clone(), replies: put });
        }
        let (draws, clients) = (&self.draws, self.clients);
        let waiter = AnyWaiter::new(Wait::Busy, TickSpan(0));
        let context = LoopContext { waiter, ..context };
        let over = PortPath::<_, true>::over;
        let ended = send_requests(context, |set, _| over(set, draws, &mut taken), clients);
        drop(taken);
        let used = self.receiving.drain(..).filter_map(ReceiverThread::join);
        let used = used.fold(ResourceUse::default(), |all, one| all.and(&one));
        self.used_beside = used;
        ended
    }
}

impl CompiledOverSet for Port {
    fn run<E: Endpoint, C: Clock>(
        &self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended {
        if self.role == Role::Server {
            return loops::server(context);
        }
        let over = PortPath::<_, false>::over;
        send_requests(context, |set, _| over(set, &self.draws, &mut []), self.clients)
    }
}
