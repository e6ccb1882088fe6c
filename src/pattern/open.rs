//! The open loop: messages one way, sent when the schedule says so, whatever became of the last.
//! The receiver is [`super::closed::server`], which then answers nothing.

use super::flow::Flow;
use super::gate::Gate;
use super::waiter::Waiter;
use super::{Ended, Loop};
use crate::clock::{Clock, TickSpan};
use crate::sample::recorder::Recorder;
use crate::transport::{Endpoint, Events};

/// The sender. `schedule` holds the intended times, since the start, of every message.
///
/// Lateness never shifts later sends: the schedule is absolute.
pub fn sender<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    schedule: &[TickSpan],
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let start = clock.now() + plan.lead;
    let end = plan.time.map(|time| start + time);
    let mut ended = Ended::Count;
    let mut last = TickSpan(0);
    for offset in schedule {
        while !flow.has_room() {
            if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                return ended;
            }
        }
        let slot = flow.write(endpoint, plan);
        let intended = start + *offset;
        // Only a long gap is worth a look at the gate and the readings that it takes.
        let gap = *offset - std::mem::replace(&mut last, *offset);
        if gap > plan.lead && !gate.idle_until(clock, intended, plan.lead) {
            return Ended::Stopped;
        }
        clock.idle_until(intended);
        let submit = clock.now();
        if end.is_some_and(|end| submit >= end) {
            ended = Ended::Time;
            break;
        }
        while !flow.post(endpoint, slot, plan) {
            if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                return ended;
            }
        }
        endpoint.flush();
        let complete = clock.now();
        recorder.sent(flow.sent - 1, intended, submit, complete);
        recorder.seen.sent = flow.sent;
        recorder.handled(flow.sent);
        if gate.is_stopped() {
            return Ended::Stopped;
        }
    }
    let until = clock.now() + plan.drain;
    flow.drain(endpoint, &mut waiter, &mut events, gate, clock, until).unwrap_or(ended)
}
