//! The roles of a stream: the source by its steps, and a receiver that may keep the samples in a
//! file.

use super::Stream;
use super::kept::KeptFile;
use super::loops::{self, Steps};
use super::spec::Spec;
use crate::agent::error::AgentError;
use crate::agent::execution::{Endpoints, LoopContext, PatternExecution, RoleLoop, ThreadContext};
use crate::agent::rows::{MESSAGES_PER_SECOND, rows};
use crate::clock::{Clock, TickSpan};
use crate::loops::compiled::{self, Compiled};
use crate::loops::waiter::{Busy, Waiter};
use crate::loops::{Ended, Loop, closed};
use crate::plan::Case;
use crate::sample::recorder::Recorder;
use crate::signal::source::Source;
use crate::transport::counter::FinalCounters;
use crate::transport::{Endpoint, Role};
use crate::units::Span;

impl PatternExecution for Stream {
    fn rows(&self, case: &Case, _: Role) -> u64 {
        rows(case, MESSAGES_PER_SECOND)
    }

    fn stamps_at_server(&self) -> bool {
        true
    }

    fn prepare(&self, thread: &ThreadContext<'_>) -> Result<Box<dyn RoleLoop>, AgentError> {
        let ThreadContext { case, time, epoch_of_day_ns, rows, .. } = *thread;
        let spec = case.spec::<Spec>();
        let (mut steps, mut file) = (None, None);
        match (thread.role, case.schedule.rate()) {
            (Role::Client, Some(rate)) => {
                let source = Source::new(spec.shape, spec.values as usize, case.seed);
                steps = Some(Steps::new(source, rate.0, *time, epoch_of_day_ns));
            }
            (Role::Client, None) => {
                return Err(AgentError::Refused("a stream needs a schedule".into()));
            }
            (Role::Server, _) => file = KeptFile::open(spec, thread)?,
        }
        Ok(Box::new(Samples { steps, file, rows }))
    }
}

struct Samples {
    /// What a source makes.
    steps: Option<Steps>,
    /// Where a receiver keeps what arrives.
    file: Option<KeptFile>,
    rows: u64,
}

impl RoleLoop for Samples {
    fn tune(&self, plan: &mut Loop, _: &dyn Fn(Span) -> TickSpan) {
        // Both ends' stamps are joined by number: a sample without a row has no latency.
        plan.messages = plan.messages.min(self.rows);
    }

    fn run(
        &mut self,
        endpoints: &mut Endpoints,
        context: LoopContext<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Ended {
        let (waiter, clock) = (context.waiter(), context.clock);
        let Samples { steps, file, .. } = self;
        let file = file.as_mut();
        let measured = Measured { steps: steps.as_mut(), file, context, recorder };
        compiled::run(endpoints.end(0), waiter, clock, measured)
    }

    fn finish(self: Box<Self>) -> FinalCounters {
        self.file.map(KeptFile::finish).unwrap_or_default()
    }
}

struct Measured<'a, 'r, 'm> {
    steps: Option<&'a mut Steps>,
    file: Option<&'a mut KeptFile>,
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for Measured<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended {
        let Measured { steps, file, context, recorder } = self;
        let LoopContext { gate, plan, generator, .. } = context;
        match (steps, generator, file) {
            // A source polls while it has no room.
            (Some(steps), Some(generator), _) => {
                loops::source(endpoint, Busy, clock, gate, plan, generator, steps, recorder)
            }
            // A source is never without its schedule: it is prepared with one.
            (Some(_), None, _) => Ended::Stopped,
            (None, _, Some(file)) => closed::server_with::<_, _, _, _, true>(
                endpoint,
                waiter,
                clock,
                gate,
                plan,
                &mut file.sink,
                recorder,
            ),
            (None, _, None) => {
                closed::server::<_, _, _, true>(endpoint, waiter, clock, gate, plan, recorder)
            }
        }
    }
}
