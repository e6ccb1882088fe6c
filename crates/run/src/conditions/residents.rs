//! Agents that stay for several rounds: a process can be a rank of a launch only once, so that the
//! rounds of a job whose launcher has started this program share its processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use wiregauge_remote::process::{Agent, EXIT};

/// The agents between two rounds, each with the number of its host (`None`: this one), and whether
/// a round has ended with its agents.
#[derive(Default)]
pub struct Residents {
    agents: Mutex<Vec<(Option<u32>, Agent)>>,
    are_lost: AtomicBool,
}

impl Residents {
    /// The agent of a host, where one stayed.
    pub fn take(&self, host: Option<u32>) -> Option<Agent> {
        let mut all = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|(of, _)| *of == host)?;
        Some(all.swap_remove(place).1)
    }

    /// A round that was to keep its agents has ended with them: the launch has no more.
    pub fn lose(&self) {
        self.are_lost.store(true, Ordering::Relaxed);
    }

    /// Whether one has.
    pub fn are_lost(&self) -> bool {
        self.are_lost.load(Ordering::Relaxed)
    }

    /// Keeps the agent of a host for another round.
    pub fn keep(&self, host: Option<u32>, agent: Agent) {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner).push((host, agent));
    }
}

impl Drop for Residents {
    /// They end together: the last thing that ranks do is something that all do.
    fn drop(&mut self) {
        let all = self.agents.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.iter_mut().for_each(|(_, agent)| agent.hang_up());
        let until = Instant::now() + EXIT;
        for (_, agent) in all.drain(..) {
            // Their rounds are over: how they end changes nothing.
            let _ = agent.end(until);
        }
    }
}
