//! The roles of requests over many connections: a client, whose replies other threads may take, and
//! a server.

use super::draws::Draws;
use super::loops::{self, PortPath, ServerConnection};
use super::receivers::{self, ReceiverThread, Receiving, ReplyConsumer, ReplyProducer};
use super::{Rpc, Spec};
use crate::load::{self, Outstanding, rows_of_requests, send_requests};
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
        let memory = match thread.role {
            Role::Server => LoopMemory::Server(Box::default()),
            Role::Client | Role::Node => LoopMemory::Client(Outstanding::with_room()),
        };
        Ok(Box::new(Port {
            memory,
            draws: Draws::of(thread.case, thread.thread),
            clients: spec.clients,
            receivers: receivers as usize,
            receiving: Vec::new(),
            handovers: Vec::new(),
            cpu_beside: thread.cpu_beside,
            used_beside: ResourceUse::default(),
        }))
    }
}

/// Memory of a thread's loop, made before it measures.
enum LoopMemory {
    Client(Outstanding),
    Server(Box<[ServerConnection]>),
}

/// One thread of an end.
struct Port {
    memory: LoopMemory,
    draws: Draws,
    clients: u32,
    /// Threads that take its replies.
    receivers: usize,
    /// These, each with second handles on its share of the connections. They were started before
    /// the round begins.
    receiving: Vec<ReceiverThread>,
    /// The way of the replies from each of them to this thread.
    handovers: Vec<(ReplyProducer, ReplyConsumer)>,
    /// Where these run.
    cpu_beside: Option<u32>,
    used_beside: ResourceUse,
}

impl RoleLoop for Port {
    fn connected(&mut self, endpoints: &Endpoints) -> Result<(), SetupError> {
        let shares = shares(&endpoints.ends, self.receivers)?.into_iter();
        let started = shares.map(|share| ReceiverThread::start(share, self.cpu_beside));
        self.receiving = started.collect::<Result<_, _>>()?;
        self.handovers = self.receiving.iter().map(|_| receivers::handover()).collect();
        if let LoopMemory::Server(connections) = &mut self.memory {
            *connections = endpoints.ends.iter().map(ServerConnection::of).collect();
        }
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
        let LoopMemory::Client(outstanding) = &mut self.memory else { return Ended::Closed };
        let mut taken: Vec<ReplyConsumer> = Vec::with_capacity(self.receiving.len());
        for (thread, (put, take)) in self.receiving.iter().zip(self.handovers.drain(..)) {
            taken.push(take);
            thread.begin(Receiving { waiter, clock, plan: plan.clone(), replies: put });
        }
        let (draws, clients) = (&self.draws, self.clients);
        let waiter = AnyWaiter::new(Wait::Busy, TickSpan(0));
        let context = LoopContext { waiter, ..context };
        let over = PortPath::<_, true>::over;
        let ended =
            send_requests(context, |set, _| over(set, draws, &mut taken), clients, outstanding);
        drop(taken);
        let used = self.receiving.drain(..).filter_map(ReceiverThread::join);
        let used = used.fold(ResourceUse::default(), |all, one| all.and(&one));
        self.used_beside = used;
        ended
    }
}

impl CompiledOverSet for Port {
    fn run<E: Endpoint, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended {
        let Port { memory, draws, clients, .. } = self;
        let over = PortPath::<_, false>::over;
        match memory {
            LoopMemory::Server(connections) => loops::server(context, connections),
            LoopMemory::Client(outstanding) => {
                send_requests(context, |set, _| over(set, draws, &mut []), *clients, outstanding)
            }
        }
    }
}
