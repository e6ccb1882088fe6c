//! Round trips, one message at a time and without options: what most latencies are measured by, so
//! nothing is compiled here that cannot happen then. The rest is in `closed`.

use super::deadline::Deadline;
use super::waiter::{Waited, Waiter, await_arrivals};
use super::{Ended, Loop, LoopContext, Scope, payload};
use wiregauge_clock::{Clock, Ticks};
use wiregauge_sample::recorder::Recorder;
use wiregauge_transport::{Endpoint, Events, Link, Polled, Posted, Slot};

/// The slot that the client sends from.
const SLOT: Slot = Slot::sending(0);

/// Whether each message has an answer of its own, is sent when the last was answered, and nothing
/// else is asked for.
pub fn is_plain(plan: &Loop) -> bool {
    let asks_more = plan.check || plan.completions || plan.stamper.is_some();
    plan.burst == 1 && plan.every == 1 && plan.pause.0 == 0 && !asks_more
}

/// What the client has done: counted in registers, and kept when the round is over.
#[derive(Default)]
struct Trips {
    /// Messages posted.
    sent: u64,
    /// Of those, completed.
    completed: u64,
    /// Of those, without an answer.
    unanswered: u64,
}

impl Trips {
    /// Keeps the last message as unanswered.
    fn give_up(&mut self, recorder: &mut Recorder<'_>, submit: Ticks) {
        recorder.unanswered(self.sent - 1, Ticks(0), submit);
        self.unanswered += 1;
    }
}

/// The client. Endpoint and recorder go on as arguments: only of those does the compiler know that
/// a store through a pointer into slots or rows leaves them as they are.
pub fn client<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, waiter, clock, gate, plan, recorder, .. } = context;
    trips(endpoint, waiter, Scope { clock, gate, plan }, recorder)
}

/// Sends, awaits the answer, stamps both.
///
/// Between the two stamps of a message lie: the post, the polls or the wait until the answer is
/// there. Nothing else: the sequence number is written before the first, the row after the second.
#[inline(never)]
fn trips<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    scope: Scope<'_, C>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let Scope { clock, gate, plan } = scope;
    let mut events = Events::default();
    events.limit(1);
    let (messages, size, loss_after) = (plan.messages, plan.size, plan.loss_after);
    let mut trips = Trips::default();
    let mut deadline = Deadline::default();
    let ended = loop {
        let sequence = trips.sent;
        if sequence == messages {
            break Ended::Count;
        }
        while trips.completed < sequence {
            match make_room(endpoint, &mut waiter, scope, recorder, &mut events, sequence) {
                Ok(completed) => trips.completed += completed,
                Err(ended) => return keep(trips, recorder, ended),
            }
        }
        payload::number(endpoint.payload(SLOT), sequence);
        let submit = clock.now();
        while endpoint.post_now(SLOT, size) == Posted::Full {
            let room = make_room(endpoint, &mut waiter, scope, recorder, &mut events, sequence);
            match room {
                Ok(completed) => trips.completed += completed,
                Err(ended) => return keep(trips, recorder, ended),
            }
        }
        trips.sent = sequence + 1;
        let give_up = move || loss_after.map(|span| submit + span);
        let last = loop {
            let polled = match waiter.next_one(endpoint, &mut events, clock, gate, give_up) {
                Ok(polled) => polled,
                Err(Waited::TimeUp) => {
                    trips.give_up(recorder, submit);
                    recorder.handled(trips.sent);
                    break clock.now();
                }
                Err(_) if gate.is_stopped() => {
                    trips.give_up(recorder, submit);
                    return keep(trips, recorder, Ended::Stopped);
                }
                Err(_) => continue,
            };
            trips.completed += u64::from(polled.completed);
            let Some(arrival) = polled.arrival else {
                if polled.link != Link::Up {
                    trips.give_up(recorder, submit);
                    return keep(trips, recorder, Ended::of(polled.link));
                }
                continue;
            };
            let receive = clock.now();
            let number = payload::sequence(endpoint.message(&arrival), sequence);
            if number == sequence {
                recorder.next_round_trip(sequence, submit, receive);
                break receive;
            }
            straggler(recorder, trips.sent, number, receive);
        };
        if deadline.is_past(last, trips.sent, plan) {
            break Ended::Time;
        }
    };
    keep(trips, recorder, ended)
}

/// Keeps what was counted in registers.
fn keep(trips: Trips, recorder: &mut Recorder<'_>, ended: Ended) -> Ended {
    recorder.seen.sent = trips.sent;
    recorder.seen.received += trips.sent - trips.unanswered;
    ended
}

/// An answer that is not the awaited one, after `sent` messages.
#[cold]
#[inline(never)]
fn straggler(recorder: &mut Recorder<'_>, sent: u64, number: u64, receive: Ticks) {
    recorder.seen.sent = sent;
    recorder.straggler(number, receive);
}

/// One attempt to make room after `sent` messages: how many have completed. An error when the round
/// has to end.
#[cold]
#[inline(never)]
fn make_room<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    Scope { clock, gate, .. }: Scope<'_, C>,
    recorder: &mut Recorder<'_>,
    events: &mut Events,
    sent: u64,
) -> Result<u64, Ended> {
    endpoint.flush();
    waiter.once(endpoint, events);
    let receive = clock.now();
    for arrival in events.arrivals() {
        let message = endpoint.message(arrival);
        straggler(recorder, sent, payload::sequence(message, sent), receive);
    }
    match gate.is_stopped() || events.link != Link::Up {
        true => Err(Ended::of(events.link)),
        false => Ok(events.completed.into()),
    }
}

/// The server: answers each message.
pub fn server<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, waiter, clock, gate, plan, recorder, .. } = context;
    answers(endpoint, waiter, Scope { clock, gate, plan }, recorder)
}

#[inline(never)]
fn answers<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    mut waiter: W,
    scope: Scope<'_, C>,
    recorder: &Recorder<'_>,
) -> Ended {
    let Scope { clock, gate, plan } = scope;
    let mut events = Events::default();
    events.limit(1);
    // A message that comes twice over a transport that drops others stands for one that is on the
    // way: there the other end says when it has ended.
    let most = if plan.loss_after.is_none() { plan.messages } else { u64::MAX };
    let (mut arrived, mut open) = (0, 0);
    let (mut drained, mut polled) = (None, Polled::default());
    loop {
        let ended = await_arrivals(scope, &mut drained, arrived, |until| {
            match waiter.next_one(endpoint, &mut events, clock, gate, || until) {
                Ok(found) => {
                    polled = found;
                    Waited::Something
                }
                Err(reason) => reason,
            }
        });
        match ended {
            None => {}
            Some(Ended::Stopped) => return Ended::Stopped,
            Some(_) => break,
        }
        open -= u64::from(polled.completed).min(open);
        let Some(arrival) = polled.arrival else {
            if polled.link != Link::Up {
                return Ended::of(polled.link);
            }
            continue;
        };
        // Where the transport has no room for an answer, it goes out before more is read: a poll
        // would give the arrival back. The client reads while it has no room, so this ends.
        while endpoint.post_now(arrival.slot, arrival.length as usize) == Posted::Full {
            if gate.is_stopped() {
                return Ended::Stopped;
            }
        }
        open += 1;
        arrived += 1;
        recorder.handled(arrived);
        // The other end may go as soon as it has all its answers.
        if arrived >= most {
            break;
        }
    }
    answers_are_out(endpoint, &mut waiter, &mut events, scope, open)
}

/// Sees the last answers out: what the transport could not take at once goes with later polls.
pub(super) fn answers_are_out<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    events: &mut Events,
    scope: Scope<'_, C>,
    mut open: u64,
) -> Ended {
    let Scope { clock, gate, plan } = scope;
    let mut until = clock.now() + plan.drain;
    while open > 0 && !gate.is_stopped() && clock.now() < until {
        waiter.once(endpoint, events);
        if events.completed > 0 {
            open -= u64::from(events.completed).min(open);
            until = clock.now() + plan.drain;
        }
        if open > 0 && events.link != Link::Up {
            return Ended::of(events.link);
        }
    }
    Ended::Count
}
