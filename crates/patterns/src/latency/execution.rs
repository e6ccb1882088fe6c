//! The roles of a ping-pong: the closed loop, or operations on the server's memory.

use super::{Latency, one_sided};
use crate::prelude::*;
use wiregauge_measure::loops::one_sided::memory;

impl PatternExecution for Latency {
    fn prepare(&self, thread: &ThreadContext<'_>, _: &mut Loop) -> Prepared {
        Ok(match thread.case.profile().is_one_sided {
            true => Box::new(OneSided(thread.role)),
            false => Box::new(RoundTrips(thread.role)),
        })
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
