//! Round trips of operations on the other end's memory: a completion is all that comes of one.

use crate::prelude::*;
use std::ops::Range;
use wiregauge_plan::MOST_BURST;

/// What is on its way of one burst.
struct Burst {
    first: u64,
    done: u64,
    submitted: [Ticks; MOST_BURST],
}

impl Burst {
    /// Takes what has completed: each is a round trip of its own, stamped when it was seen.
    #[inline(always)]
    fn take<C: Clock>(&mut self, completed: u64, clock: C, recorder: &mut Recorder<'_>) {
        if completed == self.done {
            return;
        }
        let receive = clock.now();
        while self.done < completed {
            let Some(submit) = self.submitted.get((self.done - self.first) as usize) else {
                return;
            };
            recorder.round_trip(self.done, *submit, receive, Flags::default());
            recorder.seen.received += 1;
            self.done += 1;
        }
    }
}

/// Keeps what was posted and had not completed when the round ended; `first` is the number of the
/// first submit stamp.
#[cold]
fn keep_unfinished(
    unfinished: Range<u64>,
    first: u64,
    submitted: &[Ticks],
    recorder: &mut Recorder<'_>,
) {
    for sequence in unfinished {
        if let Some(submit) = submitted.get((sequence - first) as usize) {
            recorder.unanswered(sequence, Ticks(0), *submit);
        }
    }
}

/// Round trips: the next burst is posted when the last has completed.
pub fn client<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, waiter, clock, gate, plan, recorder, .. } = context;
    let scope = Scope { clock, gate, plan };
    match plan.burst == 1 && plan.pause.0 == 0 {
        true => one_by_one(endpoint, waiter, scope, recorder),
        false => bursts(endpoint, waiter, scope, recorder),
    }
}

/// One operation at a time and without a pause: what most latencies are measured by, so nothing is
/// compiled here that cannot happen then.
///
/// Between the two stamps of an operation lie: the post, the polls or the wait until it has
/// completed.
#[inline(never)]
fn one_by_one<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    scope: Scope<'_, C>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    const SLOT: Slot = Slot::sending(0);
    let Scope { clock, gate, plan } = scope;
    let mut events = Events::default();
    events.limit(1);
    let mut deadline = Deadline::default();
    let mut done = 0;
    let ended = loop {
        if done == plan.messages {
            break Ended::Count;
        }
        payload::number(endpoint.payload(SLOT), done);
        let submit = clock.now();
        while endpoint.post_now(SLOT, plan.size) == Posted::Full {
            waiter.once(endpoint, &mut events);
            if gate.is_stopped() || events.link != Link::Up {
                return keep(done, done, recorder, Ended::of(events.link));
            }
        }
        let receive = loop {
            match waiter.next_one(endpoint, &mut events, clock, gate, || None) {
                Ok(polled) if polled.completed > 0 => break Ok(clock.now()),
                Ok(polled) if polled.link != Link::Up => break Err(Ended::of(polled.link)),
                Err(_) if gate.is_stopped() => break Err(Ended::Stopped),
                Ok(_) | Err(_) => {}
            }
        };
        let receive = match receive {
            Ok(receive) => receive,
            Err(ended) => {
                recorder.unanswered(done, Ticks(0), submit);
                return keep(done + 1, done, recorder, ended);
            }
        };
        recorder.next_round_trip(done, submit, receive);
        done += 1;
        if deadline.is_past(receive, done, plan) {
            break Ended::Time;
        }
    };
    keep(done, done, recorder, ended)
}

/// Keeps what was counted in registers.
fn keep(sent: u64, done: u64, recorder: &mut Recorder<'_>, ended: Ended) -> Ended {
    recorder.seen.sent = sent;
    recorder.seen.received += done;
    ended
}

#[inline(never)]
fn bursts<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    Scope { clock, gate, plan }: Scope<'_, C>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut flow = Flow::of(endpoint);
    let mut burst = Burst { first: 0, done: 0, submitted: [Ticks(0); MOST_BURST] };
    let mut deadline = Deadline::default();
    let ended = 'round: loop {
        let length = plan.burst.min(plan.messages.saturating_sub(burst.first));
        if length == 0 {
            break 'round Ended::Count;
        }
        for index in 0..length {
            // A slot is written when nothing that was posted from it is on the way.
            while !flow.has_room() {
                if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                    break 'round ended;
                }
                burst.take(flow.completed, clock, recorder);
            }
            let slot = flow.slot();
            payload::number(endpoint.payload(slot), flow.sent);
            burst.submitted[index as usize] = clock.now();
            while !flow.post(endpoint, slot, plan.size) {
                if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                    break 'round ended;
                }
                burst.take(flow.completed, clock, recorder);
            }
            recorder.seen.sent = flow.sent;
        }
        endpoint.flush();
        while burst.done < flow.sent {
            match waiter.next(endpoint, &mut events, clock, gate, None) {
                Waited::Look if gate.is_stopped() => break 'round Ended::Stopped,
                Waited::Look | Waited::TimeUp => continue,
                Waited::Something => {
                    flow.complete(&events);
                    burst.take(flow.completed, clock, recorder);
                }
            }
            if events.link != Link::Up && burst.done < flow.sent {
                break 'round Ended::of(events.link);
            }
        }
        burst.first += length;
        recorder.handled(burst.first);
        let now = clock.now();
        if deadline.is_past(now, burst.first, plan) {
            break 'round Ended::Time;
        }
        if plan.pause.0 != 0 && !gate.idle_until(clock, now + plan.pause, plan.lead) {
            break 'round Ended::Stopped;
        }
    };
    recorder.seen.sent = flow.sent;
    keep_unfinished(burst.done..flow.sent, burst.first, &burst.submitted, recorder);
    ended
}
