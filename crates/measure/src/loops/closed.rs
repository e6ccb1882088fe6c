//! The closed loop: the next burst is sent when the last has been answered. `latency` is this loop;
//! `oneway` without a schedule is this loop with stamps at the server too.

use super::compiled::{Compiled, ForVerbs};
use super::deadline::Deadline;
use super::waiter::{Waited, Waiter, await_arrivals};
use super::{Ended, Loop, LoopContext, Scope, payload, plain, stamper};
use wiregauge_clock::{Clock, Ticks};
use wiregauge_plan::MOST_BURST;
use wiregauge_sample::Flags;
use wiregauge_sample::recorder::Recorder;
use wiregauge_transport::{Endpoint, Events, Link, Posted, Role, Slot};

/// What a receiver does with a message beside stamping it.
pub trait Taker {
    /// Takes a message and the time at which it came. Called where time is measured.
    fn take(&mut self, message: &[u8], received: Ticks);
}

/// Nothing.
impl Taker for () {
    #[inline(always)]
    fn take(&mut self, _: &[u8], _: Ticks) {}
}

/// Both roles of round trips.
pub struct RoundTrips(pub Role);

impl Compiled for RoundTrips {
    const FOR_VERBS: ForVerbs = ForVerbs::Lean;

    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match self.0 {
            Role::Client | Role::Node => client(context),
            Role::Server => server::<_, _, _, _, false>(context, ()),
        }
    }
}

/// The burst on the way: when each message was sent.
struct Burst {
    first: u64,
    length: u32,
    /// Zero once the message has been answered.
    submitted: [Ticks; MOST_BURST],
    highest: u64,
    /// Answers taken.
    answered: u64,
    /// When the last of them came.
    last: Ticks,
    /// Posts that have not completed.
    open: u64,
    /// Posts that have.
    completed: u64,
}

/// The client, in the plain case that of [`plain`].
pub fn client<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    match plain::is_plain(context.plan) {
        true => plain::client(context),
        false => client_of_bursts(context),
    }
}

/// The client: sends, awaits the answers, stamps both.
///
/// Between the two stamps of a message of a burst of 1 lie: the post, the flush, the polls or the
/// wait until the answer is there. Nothing else: the sequence number is written before the first,
/// the row after the second.
#[inline(never)]
fn client_of_bursts<E: Endpoint, W: Waiter, C: Clock>(
    context: LoopContext<'_, '_, E, W, C>,
) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let scope = Scope { clock, gate, plan };
    let mut events = Events::default();
    let mut burst = Burst {
        first: 0,
        length: 0,
        submitted: [Ticks(0); MOST_BURST],
        highest: 0,
        answered: 0,
        last: Ticks(0),
        open: 0,
        completed: 0,
    };
    let mut deadline = Deadline::default();
    loop {
        burst.length = plan.burst.min(plan.messages.saturating_sub(burst.first)) as u32;
        if burst.length == 0 {
            return Ended::Count;
        }
        let sent = send(endpoint, &mut waiter, scope, &mut burst, recorder, &mut events);
        if let Err(ended) = sent {
            return ended;
        }
        let last = match answers(endpoint, &mut waiter, scope, &mut burst, recorder, &mut events) {
            Ok(last) => last,
            Err(ended) => return ended,
        };
        if let Some(stamper) = &plan.stamper {
            stamper.disarm();
        }
        burst.first += u64::from(burst.length);
        recorder.handled(burst.first);
        if deadline.is_past(last, burst.first, plan) {
            return Ended::Time;
        }
        let pauses = plan.pause.0 != 0;
        if pauses && !gate.idle_until(clock, last + plan.pause, plan.lead) {
            return Ended::Stopped;
        }
    }
}

/// Posts one burst; an error when the round has to end.
///
/// A slot is written only when nothing that was posted from it is still on the way, and what comes
/// while there is no room is taken: a burst may be longer than the slots or the queues.
#[inline(always)]
fn send<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    scope: Scope<'_, C>,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
    events: &mut Events,
) -> Result<(), Ended> {
    let Scope { clock, plan, .. } = scope;
    let slots = endpoint.slots();
    let mut free = 0;
    burst.answered = 0;
    for index in 0..burst.length {
        // From the first slot on again: all of the last burst must have completed.
        let most_open = if index == 0 { 1 } else { u64::from(slots) };
        while burst.open >= most_open {
            make_room(endpoint, waiter, scope, burst, recorder, events, index)?;
        }
        let sequence = burst.first + u64::from(index);
        // Counted: a division costs as much as the whole post of a lean transport.
        let slot = Slot::sending(free);
        free = if free + 1 == slots { 0 } else { free + 1 };
        payload::write(endpoint.payload(slot), sequence, plan.check);
        if let Some(stamper) = &plan.stamper {
            // Where the thread gets no CPU in time, this is the last that stood there.
            stamper::write(endpoint.payload(slot), clock.now());
            stamper.arm();
        }
        let submit = clock.now();
        while endpoint.post(slot, plan.size) == Posted::Full {
            make_room(endpoint, waiter, scope, burst, recorder, events, index)?;
        }
        burst.open += 1;
        burst.submitted[index as usize] = submit;
    }
    endpoint.flush();
    recorder.seen.sent = burst.first + u64::from(burst.length);
    Ok(())
}

/// One attempt to make room after `posted` messages of a burst; an error when the round has to
/// end.
#[cold]
#[inline(never)]
fn make_room<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    scope: Scope<'_, C>,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
    events: &mut Events,
    posted: u32,
) -> Result<(), Ended> {
    let Scope { clock, gate, plan } = scope;
    recorder.seen.sent = burst.first + u64::from(posted);
    endpoint.flush();
    waiter.once(endpoint, events);
    let receive = clock.now();
    take(endpoint, events, receive, plan, burst, recorder);
    if gate.is_stopped() || events.link != Link::Up {
        give_up_rest(burst, plan, recorder);
        return Err(Ended::of(events.link));
    }
    Ok(())
}

/// Takes what one poll brought.
#[inline(always)]
fn take<E: Endpoint>(
    endpoint: &mut E,
    events: &Events,
    receive: Ticks,
    plan: &Loop,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
) {
    burst.open -= u64::from(events.completed).min(burst.open);
    if plan.completions {
        for _ in 0..events.completed {
            recorder.completed(burst.completed, receive);
            burst.completed += 1;
        }
    }
    for arrival in events.arrivals() {
        burst.last = receive;
        let message = endpoint.message(arrival);
        let sequence = payload::sequence(message, burst.first + u64::from(burst.length) / 2);
        let index = sequence.wrapping_sub(burst.first);
        let mut flags = Flags::default();
        if plan.check && !payload::verify(message, sequence) {
            flags = Flags::CORRUPT;
            recorder.seen.corrupt += 1;
        }
        if index >= u64::from(burst.length) || burst.submitted[index as usize].0 == 0 {
            recorder.straggler(sequence, receive);
            continue;
        }
        if sequence + 1 < burst.highest {
            flags = flags.with(Flags::REORDERED);
            recorder.seen.reordered += 1;
        }
        burst.highest = burst.highest.max(sequence + 1);
        recorder.seen.received += 1;
        let submit = std::mem::take(&mut burst.submitted[index as usize]);
        recorder.round_trip(sequence, submit, receive, flags);
        burst.answered += 1;
    }
}

/// Awaits the answers of one burst; the last receive stamp.
#[inline(always)]
fn answers<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: &mut W,
    scope: Scope<'_, C>,
    burst: &mut Burst,
    recorder: &mut Recorder<'_>,
    events: &mut Events,
) -> Result<Ticks, Ended> {
    let Scope { clock, gate, plan } = scope;
    let every = u64::from(plan.every.max(1));
    let awaited = match every {
        1 => u64::from(burst.length),
        every => (burst.first + u64::from(burst.length)) / every - burst.first / every,
    };
    let submitted = burst.submitted[burst.length as usize - 1];
    let give_up = plan.loss_after.map(|span| submitted + span);
    burst.last = burst.last.max(submitted);
    while burst.answered < awaited {
        match waiter.next(endpoint, events, clock, gate, give_up) {
            Waited::Something => {}
            Waited::TimeUp => {
                burst.last = clock.now();
                break;
            }
            Waited::Look if gate.is_stopped() => {
                give_up_rest(burst, plan, recorder);
                return Err(Ended::Stopped);
            }
            Waited::Look => continue,
        }
        // A completion alone seldom says something that a stamp is needed for.
        let stamps_all = plan.completions;
        let says_nothing = events.arrivals().is_empty() && !stamps_all;
        let receive = if says_nothing { burst.last } else { clock.now() };
        take(endpoint, events, receive, plan, burst, recorder);
        if events.link != Link::Up && burst.answered < awaited {
            give_up_rest(burst, plan, recorder);
            return Err(Ended::of(events.link));
        }
    }
    if burst.answered < awaited || every > 1 {
        give_up_rest(burst, plan, recorder);
    }
    Ok(burst.last)
}

/// Keeps what of a burst was not answered: as lost where it should have been, else as sent.
#[cold]
fn give_up_rest(burst: &mut Burst, plan: &Loop, recorder: &mut Recorder<'_>) {
    for index in 0..burst.length {
        let submit = std::mem::take(&mut burst.submitted[index as usize]);
        if submit.0 == 0 {
            continue;
        }
        let sequence = burst.first + u64::from(index);
        if (sequence + 1).is_multiple_of(u64::from(plan.every.max(1))) {
            recorder.unanswered(sequence, Ticks(0), submit);
        } else {
            recorder.sent(sequence, Ticks(0), submit, Ticks(0));
        }
    }
}

/// The server: receives, answers the last message of each burst (each message, where the burst's
/// answer is for one), and with `RECORD` stamps what it receives and passes it on to the taker.
pub fn server<E: Endpoint, W: Waiter, C: Clock, T: Taker, const RECORD: bool>(
    context: LoopContext<'_, '_, E, W, C>,
    mut taker: T,
) -> Ended {
    if !RECORD && plain::is_plain(context.plan) {
        return plain::server(context);
    }
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let scope = Scope { clock, gate, plan };
    let mut events = Events::default();
    let mut arrived = 0;
    let mut open = 0;
    let mut drained = None;
    loop {
        let ended = await_arrivals(scope, &mut drained, arrived, |until| {
            waiter.next(endpoint, &mut events, clock, gate, until)
        });
        match ended {
            None => {}
            Some(Ended::Stopped) => return Ended::Stopped,
            Some(_) => break,
        }
        let receive = if RECORD { clock.now() } else { Ticks(0) };
        open -= u64::from(events.completed).min(open);
        open += serve::<E, C, T, RECORD>(
            endpoint, &events, receive, scope, arrived, &mut taker, recorder,
        );
        // One that comes twice, or was never sent, does not stand for one that is still on the way.
        arrived = match RECORD {
            true => recorder.seen.received,
            false => arrived + events.arrivals().len() as u64,
        };
        endpoint.flush();
        recorder.handled(arrived);
        // The other end may go as soon as it has all its answers: the count comes first. A message
        // that comes twice over a transport that drops others stands for one that is on the way:
        // there the other end says when it has ended.
        if arrived >= plan.messages && (RECORD || plan.loss_after.is_none()) {
            break;
        }
        if events.link != Link::Up {
            return Ended::of(events.link);
        }
    }
    plain::answers_are_out(endpoint, &mut waiter, &mut events, scope, open)
}

/// Answers and records what one poll brought; the number of answers posted.
#[inline(always)]
fn serve<E: Endpoint, C: Clock, T: Taker, const RECORD: bool>(
    endpoint: &mut E,
    events: &Events,
    receive: Ticks,
    scope: Scope<'_, C>,
    near: u64,
    taker: &mut T,
    recorder: &mut Recorder<'_>,
) -> u64 {
    let Scope { gate, plan, .. } = scope;
    let mut posted = 0;
    for arrival in events.arrivals() {
        let mut answers = plan.every == 1;
        if RECORD || plan.every > 1 {
            let message = endpoint.message(arrival);
            let sequence = payload::sequence(message, near);
            answers = plan.every != 0 && (sequence + 1).is_multiple_of(u64::from(plan.every));
            if RECORD {
                let corrupt = plan.check && !payload::verify(message, sequence);
                if plan.reads_send {
                    recorder.stood(sequence, Ticks(stamper::read(message)));
                }
                taker.take(message, receive);
                recorder.arrived(sequence, receive, corrupt);
            }
        }
        if !answers {
            continue;
        }
        // Where the transport has no room for an answer, it goes out before more is read: a poll
        // would give the arrivals back. The client reads while it has no room, so this ends.
        while endpoint.post(arrival.slot, arrival.length as usize) == Posted::Full {
            endpoint.flush();
            if gate.is_stopped() {
                return posted;
            }
        }
        posted += 1;
    }
    posted
}
