//! The roles of a stream: the source by its steps, and a receiver that may keep the samples in a
//! file.

use super::kept::KeptFile;
use super::loops::{self, Steps, ToFile};
use super::{Spec, Stream};
use crate::prelude::*;
use wiregauge_signal::source::Source;

impl PatternExecution for Stream {
    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        let ThreadContext { case, time, epoch_of_day_ns, rows, .. } = *thread;
        let spec = case.spec::<Spec>();
        // Both ends' stamps are joined by number: a sample without a row has no latency.
        plan.messages = plan.messages.min(rows);
        Ok(Box::new(match (thread.role, case.schedule.rate()) {
            (Role::Client | Role::Node, Some(rate)) => {
                let source = Source::new(spec.shape, spec.values as usize, case.seed);
                Samples::Made(Box::new(Steps::new(source, rate.0, *time, epoch_of_day_ns)))
            }
            (Role::Client | Role::Node, None) => {
                return Err(AgentError::Refused("a stream needs a schedule".into()));
            }
            (Role::Server, _) => Samples::Received(KeptFile::open(spec, thread)?),
        }))
    }
}

enum Samples {
    /// By a source.
    Made(Box<Steps>),
    /// By a receiver, and where it keeps them.
    Received(Option<KeptFile>),
}

impl Compiled for Samples {
    const FOR_VERBS: ForVerbs = ForVerbs::None;

    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match self {
            Samples::Made(steps) => loops::source(context, steps),
            Samples::Received(Some(file)) => {
                closed::server::<_, _, _, _, true>(context, ToFile(&mut file.sink))
            }
            Samples::Received(None) => closed::server::<_, _, _, _, true>(context, ()),
        }
    }

    fn finish(self: Box<Self>) -> FinalCounters {
        match *self {
            Samples::Received(Some(file)) => file.finish(),
            _ => FinalCounters::new(),
        }
    }
}
