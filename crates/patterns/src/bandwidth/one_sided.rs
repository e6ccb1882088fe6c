//! A flow of operations on the other end's memory: what has completed has arrived.

use super::loops::Count;
use crate::prelude::*;

/// As many as the transport takes. Rows are those of what has completed.
pub fn client<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let mut count = Count::new(plan);
    let mut deadline = Deadline::default();
    let mut quiet_until: Option<Ticks> = None;
    while flow.completed < plan.messages {
        if quiet_until.is_none() {
            flow.post_some(endpoint, plan, plan.messages - flow.sent);
        }
        recorder.seen.sent = flow.sent;
        let ended = flow.make_room(endpoint, &mut waiter, &mut events, gate);
        count.messages = flow.completed;
        recorder.seen.received = flow.completed;
        let stamped = count.mark(clock, plan, recorder, true);
        if flow.completed >= plan.messages {
            return Ended::Count;
        }
        if let Some(ended) = ended {
            return ended;
        }
        if let Some(now) = stamped
            && deadline.is_past(now, flow.completed, plan)
        {
            quiet_until.get_or_insert(now + plan.drain);
        }
        if let Some(until) = quiet_until
            && (flow.completed == flow.sent || clock.now() >= until)
        {
            return Ended::Time;
        }
    }
    Ended::Count
}
