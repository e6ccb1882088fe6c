//! The roles of a ping-pong: the closed loop, over several connections in turn, or operations on
//! the server's memory.

use super::{Latency, one_sided};
use crate::load::{Echoed, InTurn, Outstanding, ServerTurns, send_requests};
use crate::prelude::*;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::loops::compiled::{self, AnyContext, CompiledOverSet};
use wiregauge_measure::loops::one_sided::memory;
use wiregauge_measure::loops::waiter::AnyWaiter;
use wiregauge_transport::endpoint_set::{self, EndpointSet};

impl PatternExecution for Latency {
    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        if thread.case.profile().is_one_sided {
            return Ok(Box::new(OneSided(thread.role)));
        }
        if thread.case.topology.connections_each() == 1 {
            return Ok(Box::new(RoundTrips(thread.role)));
        }
        plan.window = 1;
        Ok(Box::new(match thread.role {
            Role::Client | Role::Node => Several::Client(Outstanding::with_room()),
            Role::Server => Several::Server,
        }))
    }
}

struct OneSided(Role);

impl Compiled for OneSided {
    const FOR_VERBS: ForVerbs = ForVerbs::LeanRemote;

    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match self.0 {
            Role::Client | Role::Node => one_sided::client(context),
            Role::Server => memory(context),
        }
    }
}

/// Round trips over several connections, one at a time.
enum Several {
    Client(Outstanding),
    Server,
}

impl RoleLoop for Several {
    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        compiled::run_over_set(context, self)
    }
}

impl CompiledOverSet for Several {
    fn run<E: Endpoint, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended {
        match self {
            Several::Client(outstanding) => {
                send_requests(context, |set, _| InTurn::over(set, Echoed), 1, outstanding)
            }
            Several::Server => echo(context),
        }
    }
}

/// Sends what comes by each connection back by it.
fn echo<E: Endpoint, C: Clock>(
    context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
) -> Ended {
    let LoopContext { endpoint: set, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut flows: Box<[Flow]> = set.ends.iter().map(Flow::of).collect();
    let mut reads = 0;
    let mut ended = None;
    let mut turns = ServerTurns::new(&waiter, clock);
    let ended = loop {
        let mut any = false;
        let sleeps = turns.may_sleep(&waiter, clock);
        set.look(sleeps, |number, endpoint, sleeps| {
            waiter.attempt(sleeps, endpoint, &mut events);
            any |= events.any();
            flows[number].complete(&events);
            for arrival in events.arrivals() {
                let message = endpoint.message(arrival);
                let is_whole = message.len() == plan.size
                    && (!plan.check || payload::verify(message, payload::sequence(message, reads)));
                recorder.seen.corrupt += u64::from(!is_whole);
                reads += 1;
                // There is room: the client awaits this answer.
                let length = (arrival.length as usize).min(plan.size);
                while !flows[number].post(endpoint, arrival.slot, length) && !gate.is_stopped() {
                    endpoint.flush();
                }
            }
            endpoint.flush();
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
            endpoint_set::left(&events, flows[number].outstanding() as u32)
        });
        if any {
            recorder.handled(reads);
        }
        turns.looked(any, &waiter, clock);
        if let Some(ended) = ended.or_else(|| turns.ended(sleeps, gate)) {
            break ended;
        }
    };
    recorder.seen.received = reads;
    ended
}
