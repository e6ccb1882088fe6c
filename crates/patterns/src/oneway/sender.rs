//! The open loop: messages one way, sent when the schedule says so, whatever became of the last.
//! The receiver is [`closed::server`], which then answers nothing.

use crate::prelude::*;
use wiregauge_measure::loops::schedule::Pace;

/// The sender.
///
/// Lateness never shifts later sends: the schedule is absolute. Between the reading that says that
/// it is time, which is the submit stamp, and the second stamp lie the post and the flush. A
/// message that is due when the one before is out needs no reading of its own: that one's second
/// stamp is its first, and its stamps have between them, too, the row of the one before, the draw
/// of the next time and the writing of its number. (Some 30 ns, by `cargo bench --bench generator`;
/// a reading takes 20 and would be paid at every rate.) What was intended before the time is up is
/// sent, late where it must be, until as long again has passed.
pub fn client<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, generator, recorder } = context;
    // It is run where there is a schedule.
    let Some(mut generator) = generator else { return Ended::Stopped };
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let start = clock.now() + plan.lead;
    let end = plan.time.map(|time| start + time);
    let latest = plan.time.map(|time| start + time + time + plan.drain);
    let mut ended = Ended::Count;
    // A reading of the past: the first message has none to share.
    let mut last = Ticks(0);
    generator.begin(start);
    while flow.sent < plan.messages {
        let Some(intended) = generator.upcoming() else { break };
        if end.is_some_and(|end| intended >= end) {
            ended = Ended::Time;
            break;
        }
        if !flow.has_room() {
            while !flow.has_room() {
                if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                    return ended;
                }
            }
            // The wait for room is lateness, and no part of what the transport takes.
            last = clock.now();
        }
        let slot = flow.write(endpoint, plan);
        // The filling of a whole payload takes too long for that.
        let submit = match last >= intended && !plan.check {
            true => last,
            false => match generator.wait(clock, gate, plan.lead) {
                Some(now) => now,
                None => return Ended::Stopped,
            },
        };
        while !flow.post(endpoint, slot, plan.size) {
            if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                return ended;
            }
        }
        endpoint.flush();
        let complete = clock.now();
        last = complete;
        recorder.sent(flow.sent - 1, intended, submit, complete);
        recorder.seen.sent = flow.sent;
        recorder.handled(flow.sent);
        generator.step(complete);
        recorder.seen.missed_steps = generator.missed;
        if latest.is_some_and(|latest| complete >= latest) {
            ended = Ended::Time;
            break;
        }
        if gate.is_stopped() {
            return Ended::Stopped;
        }
    }
    let scope = Scope { clock, gate, plan };
    flow.drain(endpoint, &mut waiter, &mut events, scope).unwrap_or(ended)
}
