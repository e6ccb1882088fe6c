//! What an agent needs of a pattern: how much sample memory a role has, and its loop.
#![warn(missing_docs)]

use super::connections::{Connections, Endpoints};
use super::error::{AgentError, unable};
use super::rows::{MESSAGES_PER_SECOND, rows};
use super::setup::setup;
use crate::loops::closed::RoundTrips;
use crate::loops::compiled::{self, AnyContext, Compiled};
use crate::loops::gate::Gate;
use crate::loops::schedule::Generator;
use crate::loops::waiter::{ADAPTIVE_SPIN, AnyWaiter};
use crate::loops::{Ended, Loop, LoopContext};
use wiregauge_base::units::Span;
use wiregauge_clock::{AnyClock, TickSpan, Ticks, Timebase};
use wiregauge_host::ResourceUse;
use wiregauge_plan::{Case, PatternSpec};
use wiregauge_sample::arena::Arena;
use wiregauge_sample::recorder::{MessageCounts, Recorder};
use wiregauge_transport::counter::FinalCounters;
use wiregauge_transport::{Blob, Role, SetupError};

/// Finds what an agent needs of the pattern of a name.
pub type FindExecution = fn(&str) -> Option<&'static dyn PatternExecution>;

/// What a thread runs, or why its role cannot be run here.
pub type Prepared = Result<Box<dyn RoleLoop>, AgentError>;

/// What an agent needs of a pattern.
pub trait PatternExecution: PatternSpec {
    /// Rows of sample memory that each thread of a role needs: one for each message that it sends,
    /// or stamps, where the pattern does not say otherwise.
    fn rows(&self, case: &Case, role: Role) -> u64 {
        match role {
            Role::Server if !case.profile().stamps_at_server => 0,
            _ => rows(case, MESSAGES_PER_SECOND),
        }
    }

    /// The case as the schedule of one of the client's threads knows it; `None`: as it is.
    fn share(&self, _case: &Case, _thread: u32) -> Option<Case> {
        None
    }

    /// Prepares what a thread runs, before anything is measured, and sets in the plan of its loop
    /// what the pattern alone knows. Round trips, where the pattern does not say otherwise.
    ///
    /// # Errors
    /// The role cannot be run here.
    fn prepare(&self, thread: &ThreadContext<'_>, _plan: &mut Loop) -> Prepared {
        Ok(Box::new(RoundTrips(thread.role)))
    }
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
    /// Whether a thread of another rank measures on its CPU.
    pub shares_cpu: bool,
    /// Whether it is on another host than the controller.
    pub is_remote: bool,
}

impl ThreadContext<'_> {
    /// Ticks of its clock.
    pub fn ticks(&self, span: Span) -> TickSpan {
        self.time.ticks_for(span.0 as f64)
    }

    /// What it runs, and the plan of its loop.
    ///
    /// # Errors
    /// The role cannot be run here.
    pub fn prepare(
        &self,
        pattern: &dyn PatternExecution,
    ) -> Result<(Loop, Box<dyn RoleLoop>), AgentError> {
        let mut plan = Loop::new(self.case, |span| self.ticks(span));
        let role_loop = pattern.prepare(self, &mut plan)?;
        Ok((plan, role_loop))
    }

    /// Runs its role over a transport that simulates the other end; what it has counted, and how
    /// it ended.
    ///
    /// # Errors
    /// The role cannot be run here.
    pub fn simulate(
        &self,
        pattern: &dyn PatternExecution,
        cookie: [u8; 32],
        clock: AnyClock,
        gate: &Gate,
        arena: &mut Arena,
    ) -> Result<(MessageCounts, Ended), AgentError> {
        let ThreadContext { case, role, .. } = *self;
        let (plan, mut role_loop) = self.prepare(pattern)?;
        let opening = case.transport.open(&setup(case, role, cookie))?;
        let mut connections = Connections::connect(case, vec![opening], &[Blob::default()])?;
        let generator = match role {
            Role::Client | Role::Node => {
                Generator::of(case, self.time).map_err(unable("the timer"))?
            }
            Role::Server => None,
        };
        let mut recorder = Recorder::new(arena, case.warmup);
        let waiter = AnyWaiter::new(case.wait, self.ticks(ADAPTIVE_SPIN));
        let (endpoint, plan, recorder) = (&mut connections.set, &plan, &mut recorder);
        let context = LoopContext { endpoint, waiter, clock, gate, plan, generator, recorder };
        let ended = role_loop.run(context);
        Ok((recorder.seen, ended))
    }
}

/// What a thread runs. A loop over one connection is a [`Compiled`].
pub trait RoleLoop {
    /// Takes what it needs of the connected endpoints, before anything is measured.
    ///
    /// # Errors
    /// They do not have it.
    fn connected(&mut self, _endpoints: &Endpoints) -> Result<(), SetupError> {
        Ok(())
    }

    /// Learns the instant at which all ranks begin, or, where none was agreed, that at which this
    /// one does.
    fn begins(&mut self, _at: Ticks) {}

    /// Runs the loop to its end.
    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended;

    /// What threads beside the measuring one have used.
    fn used_beside(&self) -> ResourceUse {
        ResourceUse::default()
    }

    /// What it has counted, when the round is over.
    fn finish(self: Box<Self>) -> FinalCounters {
        FinalCounters::new()
    }
}

impl<L: Compiled> RoleLoop for L {
    fn run(&mut self, context: AnyContext<'_, '_, Endpoints>) -> Ended {
        let LoopContext { endpoint, waiter, clock, gate, plan, generator, recorder } = context;
        let endpoint = &mut endpoint.ends[0];
        let context = LoopContext { endpoint, waiter, clock, gate, plan, generator, recorder };
        compiled::run(context, self)
    }

    fn finish(self: Box<Self>) -> FinalCounters {
        Compiled::finish(self)
    }
}
