//! The roles of requests: a client that sends on a schedule or keeps a number outstanding, and the
//! server with its table.

use super::client::{self, Clients, OneServer, RequestPath};
use super::server::{self, Store};
use super::{Load, Spec};
use crate::loops::waiter::Busy;
use crate::pattern::prelude::*;

/// Requests of a round that are kept one by one (40 MB in the agent, 56 MB in the controller while
/// it joins them, 24 MB of durations): later ones go into histograms.
const MOST_ROWS: u64 = 1_000_000;

impl PatternExecution for Load {
    fn rows(&self, case: &Case, role: Role) -> u64 {
        rows_of_requests(case, role)
    }

    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        let spec: Spec = *thread.case.spec();
        plan.window = u64::from(spec.window);
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

impl Compiled for Requests {
    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match (&self.store, self.spec.buffers) {
            // Its polls are timed, so it makes them.
            (Some(store), Some(_)) => server::server::<_, _, _, true>(context, store),
            (Some(store), None) => server::server::<_, _, _, false>(context, store),
            (None, _) => {
                let path =
                    |endpoint, plan: &Loop| OneServer::over(endpoint, plan, self.spec.objects);
                send_requests(context, path, self.spec.clients)
            }
        }
    }
}

/// Sends over what `path` makes of the connections: by a schedule or, without one, in a closed loop
/// of `clients`.
pub(in crate::pattern) fn send_requests<'a, E, P: RequestPath, W: Waiter, C: Clock>(
    context: LoopContext<'a, '_, E, W, C>,
    path: impl FnOnce(&'a mut E, &Loop) -> P,
    clients: u32,
) -> Ended {
    let LoopContext { endpoint, waiter, clock, gate, plan, generator, recorder } = context;
    let (path, scope) = (&mut path(endpoint, plan), Scope { clock, gate, plan });
    match generator {
        // It never sleeps while answers are awaited, however the server waits.
        Some(pace) => client::client(path, Busy, scope, recorder, pace),
        None => client::client(path, waiter, scope, recorder, Clients(u64::from(clients.max(1)))),
    }
}
