//! Operations on the other end's memory: the client posts, and a completion is all that comes of
//! it. The server's process only provides the memory.

use super::flow::Flow;
use super::gate::Gate;
use super::payload;
use super::waiter::{Waited, Waiter};
use super::{Ended, Loop, bandwidth};
use crate::clock::{Clock, Ticks};
use crate::plan::MOST_BURST;
use crate::sample::Flags;
use crate::sample::recorder::Recorder;
use crate::transport::{Endpoint, Events, Link, Posted, Slot};
use std::time::Duration;

/// Between two looks of an end that has nothing to do.
const LOOK: Duration = Duration::from_millis(1);

/// What is on its way of one burst.
struct Burst {
    first: u64,
    done: u64,
    submitted: [Ticks; MOST_BURST],
}

impl Burst {
    /// Takes what has completed: each is a round trip of its own, stamped when it was seen.
    #[inline(always)]
    fn take<C: Clock>(&mut self, events: &Events, clock: C, recorder: &mut Recorder<'_>) {
        if events.completed == 0 {
            return;
        }
        let receive = clock.now();
        for _ in 0..events.completed {
            let Some(submit) = self.submitted.get((self.done - self.first) as usize) else {
                return;
            };
            recorder.round_trip(self.done, *submit, receive, Flags::default());
            recorder.seen.received += 1;
            self.done += 1;
        }
    }
}

/// Round trips: the next burst is posted when the last has completed.
pub fn latency<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut burst = Burst { first: 0, done: 0, submitted: [Ticks(0); MOST_BURST] };
    let slots = u64::from(endpoint.slots());
    let mut end = None;
    loop {
        let length = plan.burst.min(plan.messages.saturating_sub(burst.first));
        if length == 0 {
            return Ended::Count;
        }
        for index in 0..length {
            let sequence = burst.first + index;
            let slot = Slot::sending((index % slots) as u32);
            // A slot is written when nothing that was posted from it is on the way.
            while sequence - burst.done >= slots {
                if let Some(ended) = once(endpoint, &mut waiter, &mut events, gate) {
                    return ended;
                }
                burst.take(&events, clock, recorder);
            }
            payload::number(endpoint.payload(slot), sequence);
            burst.submitted[index as usize] = clock.now();
            while endpoint.post(slot, plan.size) == Posted::Full {
                if let Some(ended) = once(endpoint, &mut waiter, &mut events, gate) {
                    return ended;
                }
                burst.take(&events, clock, recorder);
            }
            recorder.seen.sent = sequence + 1;
        }
        endpoint.flush();
        while burst.done < burst.first + length {
            match waiter.next(endpoint, &mut events, clock, gate, None) {
                Waited::Look if gate.is_stopped() => return Ended::Stopped,
                Waited::Look | Waited::TimeUp => continue,
                Waited::Something => burst.take(&events, clock, recorder),
            }
            if events.link != Link::Up && burst.done < burst.first + length {
                return Ended::of(events.link);
            }
        }
        burst.first += length;
        recorder.handled(burst.first);
        let now = clock.now();
        if bandwidth::past(now, &mut end, burst.first, plan) {
            return Ended::Time;
        }
        if plan.pause.0 != 0 && !gate.idle_until(clock, now + plan.pause, plan.lead) {
            return Ended::Stopped;
        }
    }
}

#[inline]
fn once<E: Endpoint, W: Waiter>(
    endpoint: &mut E,
    waiter: &mut W,
    events: &mut Events,
    gate: &Gate,
) -> Option<Ended> {
    endpoint.flush();
    waiter.once(endpoint, events);
    if events.link != Link::Up {
        return Some(Ended::of(events.link));
    }
    gate.is_stopped().then_some(Ended::Stopped)
}

/// As many as the transport takes. Rows are those of what has completed.
pub fn stream<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let mut count = bandwidth::Count::new(plan);
    let mut end = None;
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
            && bandwidth::past(now, &mut end, flow.completed, plan)
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

/// The end whose memory is used: it waits until the other has done, and tells that it lives.
pub fn memory(gate: &Gate, recorder: &mut Recorder<'_>) -> Ended {
    let mut looks = 0;
    loop {
        if gate.is_stopped() {
            return Ended::Stopped;
        }
        if gate.expected().is_some() {
            return Ended::Count;
        }
        looks += 1;
        recorder.handled(looks);
        std::thread::sleep(LOOK);
    }
}
