//! The roles of a ping-pong: the closed loop, or operations on the server's memory.

use super::{Latency, one_sided};
use crate::loops::one_sided::memory;
use crate::pattern::prelude::*;

impl PatternExecution for Latency {
    fn prepare(
        &self,
        thread: &ThreadContext<'_>,
        _: &mut Loop,
    ) -> Result<Box<dyn RoleLoop>, AgentError> {
        Ok(match thread.case.is_one_sided() {
            true => Box::new(OneSided(thread.role)),
            false => Box::new(RoundTrips(thread.role)),
        })
    }
}

struct OneSided(Role);

impl Compiled for OneSided {
    fn run<E: Endpoint, W: Waiter, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, E, W, C>,
    ) -> Ended {
        match self.0 {
            Role::Client => one_sided::client(context),
            Role::Server => memory(context),
        }
    }
}
