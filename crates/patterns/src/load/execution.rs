//! The roles of requests: a client that sends on a schedule or keeps a number outstanding, and the
//! server with its table.

use super::client::{self, Clients, OneServer, Outstanding, RequestPath};
use super::contents::Objects;
use super::in_turn::InTurn;
use super::server::{self, Store};
use super::{Load, Spec, shared};
use crate::prelude::*;
use wiregauge_measure::agent::connections::Endpoints;
use wiregauge_measure::loops::compiled::{self, AnyContext, CompiledOverSet};
use wiregauge_measure::loops::waiter::{AnyWaiter, Busy};
use wiregauge_transport::endpoint_set::EndpointSet;

/// Requests of a round that are kept one by one (40 MB in the agent, 56 MB in the controller while
/// it joins them, 24 MB of durations): later ones go into histograms.
const MOST_ROWS: u64 = 1_000_000;

impl PatternExecution for Load {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        rows_of_requests(case, role)
    }

    /// Each thread has its share of the load, by a schedule of its own.
    fn share(&self, case: &Case, thread: u32) -> Option<Case> {
        share_of(case, thread)
    }

    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        let spec: Spec = *thread.case.spec();
        plan.window = u64::from(spec.window);
        let store = (thread.role == Role::Server).then(|| Store::of(&spec));
        let clients = clients_of(spec.clients, thread.thread, thread.case.threads());
        let connections = thread.case.topology.endpoints_of_role(thread.role);
        Ok(match store {
            Some(store) if connections > 1 => Box::new(SharedServer { store }),
            None if connections > 1 => {
                let outstanding = Outstanding::with_room();
                Box::new(SeveralConnections { clients, objects: spec.objects, outstanding })
            }
            Some(store) => Box::new(Answers { store }),
            None => Box::new(Requests {
                spec: Spec { clients, ..spec },
                outstanding: Outstanding::with_room(),
            }),
        })
    }
}

/// The clients that one of the threads has of a closed loop: as many as the others, or one more.
fn clients_of(all: u32, thread: u32, threads: u32) -> u32 {
    let threads = threads.max(1);
    all / threads + u32::from(thread < all % threads)
}

/// The case as the schedule of one of its client's threads knows it; `None`: it has one only.
pub(crate) fn share_of(case: &Case, thread: u32) -> Option<Case> {
    let rate = case.schedule.rate().filter(|_| case.threads() > 1)?;
    let rate = MessageRate(rate.0 / f64::from(case.threads()));
    let seed = numbered(case.seed, u64::from(thread));
    Some(Case { schedule: case.schedule.at(rate), seed, ..case.clone() })
}

/// A draw that depends on its seed and number alone: splitmix64 (G. Steele, D. Lea, C. Flood, Fast
/// splittable pseudorandom number generators, OOPSLA 2014), whose increment is 2^64 over the golden
/// ratio.
#[inline(always)]
pub(crate) fn numbered(seed: u64, number: u64) -> u64 {
    let x = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A client's thread with several connections.
struct SeveralConnections {
    clients: u32,
    objects: u64,
    outstanding: Outstanding,
}

impl RoleLoop for SeveralConnections {
    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        compiled::run_over_set(context, self)
    }
}

impl CompiledOverSet for SeveralConnections {
    fn run<E: Endpoint, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended {
        let SeveralConnections { clients, objects, outstanding } = self;
        send_requests(context, |set, _| InTurn::over(set, Objects(*objects)), *clients, outstanding)
    }
}

/// The server of several connections.
struct SharedServer {
    store: Store,
}

impl RoleLoop for SharedServer {
    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        compiled::run_over_set(context, self)
    }
}

impl CompiledOverSet for SharedServer {
    fn run<E: Endpoint, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended {
        match self.store.buffers() {
            Some(_) => shared::server::<_, _, true>(context, &self.store),
            None => shared::server::<_, _, false>(context, &self.store),
        }
    }
}

/// Rows of a role that sends requests, or answers them.
pub(crate) fn rows_of_requests(case: &Case, role: Role) -> u64 {
    match role {
        Role::Server => 0,
        Role::Client | Role::Node => {
            let each = MOST_ROWS / u64::from(case.threads()).max(1);
            rows(case, MESSAGES_PER_SECOND).min(each)
        }
    }
}

/// A client's thread with one connection.
struct Requests {
    spec: Spec,
    outstanding: Outstanding,
}

impl Compiled for Requests {
    const FOR_VERBS: ForVerbs = ForVerbs::None;

    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        let Requests { spec, outstanding } = self;
        send_requests(
            context,
            |endpoint, plan| OneServer::over(endpoint, plan, spec.objects),
            spec.clients,
            outstanding,
        )
    }
}

/// The server of one connection.
struct Answers {
    store: Store,
}

impl Compiled for Answers {
    const FOR_VERBS: ForVerbs = ForVerbs::None;

    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match self.store.buffers() {
            // Its polls are timed, so it makes them.
            Some(_) => server::server::<_, _, _, true>(context, &self.store),
            None => server::server::<_, _, _, false>(context, &self.store),
        }
    }
}

/// Sends over what `path` makes of the connections: by a schedule or, without one, in a closed loop
/// of `clients`.
pub(crate) fn send_requests<'a, E, P: RequestPath, W: Waiter, C: Clock>(
    context: LoopContext<'a, '_, E, W, C>,
    path: impl FnOnce(&'a mut E, &Loop) -> P,
    clients: u32,
    outstanding: &mut Outstanding,
) -> Ended {
    let LoopContext { endpoint, waiter, clock, gate, plan, generator, recorder } = context;
    let (path, scope) = (&mut path(endpoint, plan), Scope { clock, gate, plan });
    match generator {
        // It never sleeps while answers are awaited, however the server waits.
        Some(pace) => client::client(path, Busy, scope, outstanding, recorder, pace),
        None => {
            let clients = Clients(u64::from(clients.max(1)));
            client::client(path, waiter, scope, outstanding, recorder, clients)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_of_a_closed_loop_are_shared_among_all_threads() {
        let shares = |all, threads| (0..threads).map(|n| clients_of(all, n, threads)).collect();
        assert_eq!([3, 3, 2].to_vec(), shares(8, 3));
        assert_eq!([1; 4].to_vec(), shares(4, 4));
        for (all, threads) in [(1, 1), (64, 5), (1000, 64)] {
            let shares: Vec<u32> = shares(all, threads);
            assert_eq!(shares.iter().sum::<u32>(), all);
        }
    }
}
