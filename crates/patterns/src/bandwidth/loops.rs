//! Bandwidth and message rate: as many messages as the transport takes.
//!
//! A clock reading a message would be a good part of what is measured, so a sample stands for
//! `stride` messages: its stamps are those of the last. Rates are the receiver's: what was
//! delivered between the first stamp after the warm-up and the last.

use crate::prelude::*;
use wiregauge_measure::loops::waiter::await_arrivals;

/// What one end of a bandwidth round has counted.
pub(super) struct Count {
    pub(super) messages: u64,
    /// The next message whose arrival or post is stamped.
    next_mark: u64,
    row: u64,
}

impl Count {
    pub(super) fn new(plan: &Loop) -> Count {
        Count { messages: 0, next_mark: plan.stride, row: 0 }
    }

    /// Stamps where a stride is full. `receives` says which end's stamp it is.
    #[inline(always)]
    pub(super) fn mark<C: Clock>(
        &mut self,
        clock: C,
        plan: &Loop,
        recorder: &mut Recorder<'_>,
        receives: bool,
    ) -> Option<Ticks> {
        if self.messages < self.next_mark {
            return None;
        }
        let now = clock.now();
        while self.messages >= self.next_mark {
            let warm = self.next_mark <= plan.warmup;
            let flags = if warm { Flags::WARMUP } else { Flags::default() };
            let (submit, receive) = if receives { (Ticks(0), now) } else { (now, Ticks(0)) };
            recorder.mark(self.row, submit, receive, flags);
            self.row += 1;
            self.next_mark += plan.stride;
        }
        recorder.handled(self.messages);
        Some(now)
    }
}

/// Sends, one way.
pub fn sender<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let mut count = Count::new(plan);
    let mut deadline = Deadline::default();
    let mut ended = Ended::Count;
    while flow.sent < plan.messages {
        // No further than to the next stamp.
        let most = plan.messages.min(count.next_mark) - flow.sent;
        if flow.post_some(endpoint, plan, most) > 0 {
            count.messages = flow.sent;
            if let Some(now) = count.mark(clock, plan, recorder, false) {
                if deadline.is_past(now, flow.sent, plan) {
                    ended = Ended::Time;
                    break;
                }
                if gate.is_stopped() {
                    recorder.seen.sent = flow.sent;
                    return Ended::Stopped;
                }
            }
            continue;
        }
        recorder.seen.sent = flow.sent;
        if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
            return ended;
        }
    }
    recorder.seen.sent = flow.sent;
    let scope = Scope { clock, gate, plan };
    flow.drain(endpoint, &mut waiter, &mut events, scope).unwrap_or(ended)
}

/// Counts a message that arrived, whether it came in order, and whether as it was sent.
#[inline(always)]
fn take(
    message: &[u8],
    check: bool,
    received: &mut u64,
    highest: &mut u64,
    recorder: &mut Recorder<'_>,
) {
    *received += 1;
    let sequence = payload::sequence(message, *highest);
    if sequence < *highest {
        recorder.seen.reordered += 1;
    } else {
        *highest = sequence + 1;
    }
    if check && !payload::verify(message, sequence) {
        recorder.seen.corrupt += 1;
    }
}

/// Receives, one way.
pub fn receiver<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut count = Count::new(plan);
    let mut highest = 0;
    let mut drained = None;
    let scope = Scope { clock, gate, plan };
    loop {
        let (before, check) = (count.messages, plan.check);
        let (mut received, mut next) = (before, highest);
        let ended = await_arrivals(scope, &mut drained, before, |until| {
            // Told apart here, not for each message: to verify is a call, which takes registers.
            if check {
                waiter.next_each(endpoint, &mut events, scope, until, |message| {
                    take(message, true, &mut received, &mut next, recorder);
                })
            } else {
                waiter.next_each(endpoint, &mut events, scope, until, |message| {
                    take(message, false, &mut received, &mut next, recorder);
                })
            }
        });
        if let Some(ended) = ended {
            return ended;
        }
        (count.messages, highest) = (received, next);
        recorder.seen.received = received;
        if count.mark(clock, plan, recorder, true).is_some() && gate.is_stopped() {
            return Ended::Stopped;
        }
        if count.messages >= plan.messages {
            return Ended::Count;
        }
        if events.link != Link::Up {
            return Ended::of(events.link);
        }
    }
}

/// Sends and receives at once: each end runs it. Rows are those of what is received.
pub fn both<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let mut count = Count::new(plan);
    let mut highest = 0;
    let mut deadline = Deadline::default();
    let mut quiet: Option<(Ticks, Option<Ticks>)> = None;
    loop {
        let sending = quiet.is_none() && flow.sent < plan.messages;
        let most = if sending { plan.burst.min(plan.messages - flow.sent) } else { 0 };
        let posted = flow.post_some(endpoint, plan, most);
        endpoint.flush();
        // While there is something to send an end must not sleep for want of arrivals; where it
        // could not post, there is something pending that wakes it.
        waiter.attempt(posted == 0 && sending, endpoint, &mut events);
        recorder.seen.sent = flow.sent;
        flow.completed += u64::from(events.completed);
        let before = count.messages;
        for arrival in events.arrivals() {
            let message = endpoint.message(arrival);
            take(message, plan.check, &mut count.messages, &mut highest, recorder);
        }
        recorder.seen.received = count.messages;
        count.mark(clock, plan, recorder, true);
        let now = clock.now();
        // An end may be so much slower that it hears of the other's end first.
        let alone = gate.expected().is_some();
        if deadline.is_past(now, count.messages, plan) || flow.sent >= plan.messages || alone {
            // Its own sending is over: what the other end still sends is awaited for a while. An
            // end whose time has begun needs no longer than that; one that is still warming up
            // would send for ever, since nothing comes to it any more.
            let (until, latest) = quiet.get_or_insert_with(|| {
                (now + plan.drain, plan.time.map(|time| now + time + plan.drain))
            });
            if count.messages > before {
                let longer = now + plan.drain;
                *until = latest.map_or(longer, |latest| longer.min(latest));
            }
            let all = count.messages >= plan.messages && flow.completed == flow.sent;
            if all || now >= *until {
                return match flow.sent >= plan.messages {
                    true => Ended::Count,
                    false if plan.time.is_some() && !deadline.is_warm() => Ended::WarmingUp,
                    false => Ended::Time,
                };
            }
        }
        if gate.is_stopped() {
            return Ended::Stopped;
        }
        if events.link != Link::Up {
            return Ended::of(events.link);
        }
    }
}
