//! The closed loop: the next burst is sent when the last has been answered. `latency` is this loop;
//! `oneway` without a schedule is this loop with stamps at the server too.

use super::gate::Gate;
use super::payload;
use super::waiter::{Waited, Waiter};
use super::{Ended, Loop};
use crate::clock::{Clock, Ticks};
use crate::plan::MOST_BURST;
use crate::sample::Flags;
use crate::sample::recorder::Recorder;
use crate::transport::{Arrival, Endpoint, Events, Link, Posted, Slot};

/// The bursts on the way: when each message was sent.
struct Burst {
    first: u64,
    length: u32,
    /// Zero once the message has been answered.
    submitted: [Ticks; MOST_BURST],
    highest: u64,
}

/// The client: sends, awaits the answers, stamps both.
///
/// Between the two stamps of a message of a burst of 1 lie: the post, the flush, the polls or the
/// wait until the answer is there. Nothing else: the sequence number is written before the first,
/// the row after the second.
pub fn client<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut burst = Burst { first: 0, length: 0, submitted: [Ticks(0); MOST_BURST], highest: 0 };
    let mut deadline = None;
    loop {
        burst.length = plan.burst.min(plan.messages.saturating_sub(burst.first)) as u32;
        if burst.length == 0 {
            return Ended::Count;
        }
        if let Some(ended) = send(endpoint, &mut waiter, clock, gate, plan, &mut burst, recorder) {
            return ended;
        }
        let last = match answers(
            endpoint,
            &mut waiter,
            clock,
            gate,
            plan,
            &mut burst,
            recorder,
            &mut events,
        ) {
            Ok(last) => last,
            Err(ended) => return ended,
        };
        burst.first += u64::from(burst.length);
        recorder.handled(burst.first);
        if let Some(time) = plan.time
            && burst.first >= plan.warmup
        {
            if last >= *deadline.get_or_insert(last + time) {
                return Ended::Time;
            }
        }
        if plan.pause.0 != 0 {
            clock.idle_until(last + plan.pause);
        }
    }
}

/// Posts one burst. `Some` when the round has to end.
#[inline(always)]
fn send<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
) -> Option<Ended> {
    let slots = endpoint.slots();
    for index in 0..burst.length {
        let sequence = burst.first + u64::from(index);
        let slot = Slot::sending(index % slots);
        let message = endpoint.payload(slot);
        if plan.check {
            payload::fill(message, sequence);
        } else {
            payload::number(message, sequence);
        }
        let submit = clock.now();
        if endpoint.post(slot, plan.size) == Posted::Full {
            // The window is at least the burst, so this is a transport that keeps slots for long.
            let mut events = Events::default();
            loop {
                endpoint.flush();
                waiter.once(endpoint, &mut events);
                if gate.is_stopped() || events.link != Link::Up {
                    return Some(Ended::of(events.link));
                }
                if endpoint.post(slot, plan.size) == Posted::Accepted {
                    break;
                }
            }
        }
        burst.submitted[index as usize] = submit;
    }
    endpoint.flush();
    recorder.seen.sent += u64::from(burst.length);
    None
}

/// Awaits the answers of one burst; the last receive stamp.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // One loop's whole state: a struct would only rename it.
fn answers<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
    events: &mut Events,
) -> Result<Ticks, Ended> {
    let every = u64::from(plan.every.max(1));
    let first_answer = burst.first / every;
    let mut missing = (burst.first + u64::from(burst.length)) / every - first_answer;
    let mut last = burst.submitted[burst.length as usize - 1];
    let give_up = plan.loss_after.map(|span| last + span);
    while missing > 0 {
        match waiter.next(endpoint, events, clock, gate, give_up) {
            Waited::Something => {}
            Waited::TimeUp => {
                last = clock.now();
                break;
            }
            Waited::Look if gate.is_stopped() => {
                give_up_rest(burst, plan, recorder, false);
                return Err(Ended::Stopped);
            }
            Waited::Look => continue,
        }
        let receive = clock.now();
        for arrival in events.arrivals() {
            missing -= answer(endpoint, *arrival, receive, plan, burst, recorder);
            last = receive;
        }
        if events.link != Link::Up && missing > 0 {
            give_up_rest(burst, plan, recorder, false);
            return Err(Ended::of(events.link));
        }
    }
    if missing > 0 || every > 1 {
        give_up_rest(burst, plan, recorder, missing > 0);
    }
    Ok(last)
}

/// Takes one answer; how many of the awaited ones it is (0 or 1).
#[inline(always)]
fn answer<E: Endpoint>(
    endpoint: &mut E,
    arrival: Arrival,
    receive: Ticks,
    plan: &Loop,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
) -> u64 {
    let message = endpoint.payload(arrival.slot);
    let message = &message[..(arrival.length as usize).min(message.len())];
    let sequence = payload::sequence(message, burst.first + u64::from(burst.length) / 2);
    let index = sequence.wrapping_sub(burst.first);
    let mut flags = Flags::default();
    if plan.check && !payload::verify(message, sequence) {
        flags = Flags::CORRUPT;
        recorder.seen.corrupt += 1;
    }
    if index >= u64::from(burst.length) || burst.submitted[index as usize].0 == 0 {
        recorder.straggler(sequence, receive);
        return 0;
    }
    if sequence + 1 < burst.highest {
        flags = flags.with(Flags::REORDERED);
        recorder.seen.reordered += 1;
    }
    burst.highest = burst.highest.max(sequence + 1);
    recorder.seen.received += 1;
    let submit = std::mem::take(&mut burst.submitted[index as usize]);
    recorder.round_trip(sequence, submit, receive, flags);
    1
}

/// Keeps what of a burst was not answered: as lost where it should have been, else as sent.
#[cold]
fn give_up_rest(burst: &mut Burst, plan: &Loop, recorder: &mut Recorder<'_>, lost: bool) {
    for index in 0..burst.length {
        let submit = std::mem::take(&mut burst.submitted[index as usize]);
        if submit.0 == 0 {
            continue;
        }
        let sequence = burst.first + u64::from(index);
        let awaited = (sequence + 1).is_multiple_of(u64::from(plan.every.max(1)));
        if lost && awaited {
            recorder.lost(sequence, submit);
        } else {
            recorder.sent(sequence, Ticks(0), submit, Ticks(0));
        }
    }
}

/// The server: receives, answers the last message of each burst (each message, where the burst's
/// answer is for one), and with `RECORD` stamps what it receives.
pub fn server<E: Endpoint, W: Waiter, C: Clock, const RECORD: bool>(
    endpoint: &mut E,
    mut waiter: W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut arrived = 0;
    let mut drained = None;
    loop {
        match waiter.next(endpoint, &mut events, clock, gate, drained) {
            Waited::Something => {}
            Waited::TimeUp => return Ended::Count,
            Waited::Look if gate.is_stopped() => return Ended::Stopped,
            Waited::Look => {
                if gate.expected().is_some_and(|expected| arrived >= expected) {
                    return Ended::Count;
                }
                // What is still on the way gets this long; the wait looks at the gate meanwhile.
                let until = *drained.get_or_insert_with(|| clock.now() + plan.drain);
                if clock.now() >= until {
                    return Ended::Count;
                }
                continue;
            }
        }
        let receive = if RECORD { clock.now() } else { Ticks(0) };
        arrived += serve::<E, RECORD>(endpoint, &events, receive, plan, arrived, recorder);
        endpoint.flush();
        recorder.handled(arrived);
        if events.link != Link::Up {
            return Ended::of(events.link);
        }
        if arrived >= plan.messages {
            return Ended::Count;
        }
    }
}

/// Answers and records what one poll brought; how many messages that was.
#[inline(always)]
fn serve<E: Endpoint, const RECORD: bool>(
    endpoint: &mut E,
    events: &Events,
    receive: Ticks,
    plan: &Loop,
    near: u64,
    recorder: &mut Recorder<'_>,
) -> u64 {
    for arrival in events.arrivals() {
        let mut answers = plan.every == 1;
        if RECORD || plan.every > 1 {
            let message = endpoint.payload(arrival.slot);
            let message = &message[..(arrival.length as usize).min(message.len())];
            let sequence = payload::sequence(message, near);
            answers = plan.every != 0 && (sequence + 1).is_multiple_of(u64::from(plan.every));
            if RECORD {
                let corrupt = plan.check && !payload::verify(message, sequence);
                recorder.arrived(sequence, receive, corrupt);
            }
        }
        if answers && endpoint.post(arrival.slot, arrival.length as usize) == Posted::Full {
            // The transport has no room for an answer: it goes out before more is read.
            endpoint.flush();
            let _ = endpoint.post(arrival.slot, arrival.length as usize);
        }
    }
    events.arrivals().len() as u64
}
