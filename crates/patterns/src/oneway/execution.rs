//! The roles of messages one way: a closed loop with stamps at the server, or a sender by a
//! schedule or through a window.

use super::{Oneway, Spec, sender, window};
use crate::prelude::*;
use std::sync::Arc;
use wiregauge_measure::loops::stamper::Stamper;

impl PatternExecution for Oneway {
    fn prepare(&self, thread: &ThreadContext<'_>, plan: &mut Loop) -> Prepared {
        let ThreadContext { case, role, rows, .. } = *thread;
        // Both ends' stamps are joined by number: a message without a row has no latency.
        plan.messages = plan.messages.min(rows);
        plan.completions = (case.transport.descriptor().completes_each)(&case.settings);
        plan.reads_send = case.settings.stamps_send();
        if plan.reads_send && role == Role::Client {
            plan.stamper = Some(Arc::new(Stamper::default()));
        }
        let spec: Spec = *case.spec();
        let has_window = spec.outstanding.is_some();
        if has_window {
            plan.burst = u64::from(spec.burst());
        }
        Ok(Box::new(OneWay { role, has_window }))
    }
}

struct OneWay {
    role: Role,
    has_window: bool,
}

impl Compiled for OneWay {
    const FOR_VERBS: ForVerbs = ForVerbs::LeanSend;

    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match (self.role, &context.generator) {
            (Role::Client | Role::Node, None) if self.has_window => window::client(context),
            (Role::Client | Role::Node, None) => closed::client(context),
            (Role::Client | Role::Node, Some(_)) => sender::client(context),
            (Role::Server, _) => closed::server::<_, _, _, _, true>(context, ()),
        }
    }
}
