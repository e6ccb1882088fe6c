//! What an agent needs of a pattern: how much sample memory a role has, and its loop.
#![warn(missing_docs)]

use super::error::AgentError;
use crate::clock::{AnyClock, TickSpan, Timebase};
use crate::host::ResourceUse;
use crate::loops::gate::Gate;
use crate::loops::schedule::Generator;
use crate::loops::waiter::AnyWaiter;
use crate::loops::{Ended, Loop};
use crate::plan::{Case, FindPattern};
use crate::sample::recorder::Recorder;
use crate::transport::counter::FinalCounters;
use crate::transport::endpoint_set::EndpointSet;
use crate::transport::{Endpoint, Role, SetupError};

/// Finds what an agent needs of the pattern of a name.
pub type FindExecution = fn(&str) -> Option<&'static dyn PatternExecution>;

/// The patterns that an agent knows.
#[derive(Clone, Copy)]
pub struct Patterns {
    /// As plans know them.
    pub find: FindPattern,
    /// As an agent runs them.
    pub execution: FindExecution,
}

/// The connected endpoints of a thread, of any transport.
pub type Endpoints = EndpointSet<Box<dyn Endpoint>>;

/// What an agent needs of a pattern.
pub trait PatternExecution: Sync {
    /// Rows of sample memory that each thread of a role needs.
    fn rows(&self, case: &Case, role: Role) -> u64;

    /// Whether the server stamps what it receives: then it has its turn also where one process
    /// simulates both roles.
    fn stamps_at_server(&self) -> bool {
        false
    }

    /// The case as the schedule of one of the client's threads knows it; `None`: as it is.
    fn share(&self, _case: &Case, _thread: u32) -> Option<Case> {
        None
    }

    /// Prepares what a thread runs, before anything is measured.
    ///
    /// # Errors
    /// The role cannot be run here.
    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError>;
}

/// The thread that a role is prepared for.
pub struct ThreadContext<'a> {
    /// The case.
    pub case: &'a Case,
    /// Which end of it.
    pub role: Role,
    /// Its number.
    pub thread: u32,
    /// The scale of its clock.
    pub time: &'a Timebase,
    /// Time of day at the epoch of that clock, nanoseconds since 1970.
    pub epoch_of_day_ns: u64,
    /// Rows of its sample memory.
    pub rows: u64,
    /// A CPU on which neither end measures.
    pub free_cpu: Option<u32>,
    /// A CPU on which no thread of its end measures.
    pub cpu_beside: Option<u32>,
    /// Whether it is on another host than the controller.
    pub is_remote: bool,
}

/// What a thread runs.
pub trait RoleLoop {
    /// Sets what the pattern alone knows of the loop.
    fn tune(&self, _plan: &mut Loop, _ticks: &dyn Fn(crate::units::Span) -> TickSpan) {}

    /// Takes what it needs of the connected endpoints, before anything is measured.
    ///
    /// # Errors
    /// They do not have it.
    fn connected(&mut self, _endpoints: &Endpoints) -> Result<(), SetupError> {
        Ok(())
    }

    /// Runs the loop to its end.
    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended;

    /// What threads beside the measuring one have used.
    fn used_beside(&self) -> ResourceUse {
        ResourceUse::default()
    }

    /// What it has counted, when the round is over.
    fn finish(self: Box<Self>) -> FinalCounters {
        FinalCounters::new()
    }
}

/// What a loop reads, beside its endpoints.
pub struct LoopContext<'a> {
    /// The case.
    pub case: &'a Case,
    /// The clock that stamps.
    pub clock: AnyClock,
    /// How the control thread reaches the loop.
    pub gate: &'a Gate,
    /// The case in ticks.
    pub plan: &'a Loop,
    /// What says when to send, where the case has a schedule and this role sends by it.
    pub generator: Option<Generator>,
    /// How long an adaptive wait polls before it sleeps.
    pub spin: TickSpan,
}

impl LoopContext<'_> {
    /// How the case waits.
    pub fn waiter(&self) -> AnyWaiter {
        AnyWaiter::of(self.case.wait, self.spin)
    }
}
