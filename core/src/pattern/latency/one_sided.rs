//! Round trips of operations on the other end's memory: a completion is all that comes of one.

use crate::pattern::prelude::*;
use crate::plan::MOST_BURST;
use std::ops::Range;

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
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
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
