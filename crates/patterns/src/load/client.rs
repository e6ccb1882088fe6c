//! The client of `load`: requests for objects, by a schedule whatever became of the last, or so
//! many at a time, each when one has been answered. The server is in [`super::server`].

use super::contents::{Contents, Objects};
use super::spec::MOST_OUTSTANDING;
use crate::prelude::*;
use wiregauge_measure::loops::schedule::Pace;
use wiregauge_measure::loops::waiter::POLLS;

/// Requests that are sent in one go before answers are looked for again, so that a late generator
/// does not stamp answers late.
const IN_ONE_GO: u32 = 16;

/// Requests that were never sent and are kept as such, from one look at the gate to the next.
const UNSENT_BETWEEN_LOOKS: u64 = 4096;

/// So many clients with one request each.
pub struct Clients(pub u64);

impl Pace for Clients {
    const SLEEPS: bool = true;

    #[inline(always)]
    fn due(&self, now: Ticks, outstanding: u64) -> Option<Ticks> {
        (outstanding < self.0).then_some(now)
    }
}

/// A request on the way.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// Its number plus 1; 0: none.
    number: u64,
    intended: Ticks,
    submit: Ticks,
}

/// The requests on the way: a ring by number, so that a round of any length takes the same memory.
/// It is made before the round: 1.5 MiB that are written first by a loop are 384 page faults.
pub struct Outstanding {
    ring: Box<[Sent]>,
    mask: u64,
    count: u64,
    oldest: u64,
    next: u64,
    /// The request that was held up last, as its number plus 1.
    held_up: u64,
}

impl Outstanding {
    /// Returns room for as many as a case may have, every page touched.
    pub fn with_room() -> Outstanding {
        let mut ring = vec![Sent::default(); MOST_OUTSTANDING as usize].into_boxed_slice();
        wiregauge_host::touch(&mut ring);
        let mask = u64::from(MOST_OUTSTANDING) - 1;
        Outstanding { ring, mask, count: 0, oldest: 0, next: 0, held_up: 0 }
    }

    #[inline(always)]
    fn put(&mut self, intended: Ticks, submit: Ticks) {
        let request = Sent { number: self.next + 1, intended, submit };
        self.ring[(self.next & self.mask) as usize] = request;
        self.next += 1;
        self.count += 1;
    }

    #[inline(always)]
    fn take(&mut self, sequence: u64) -> Option<Sent> {
        let place = &mut self.ring[(sequence & self.mask) as usize];
        if place.number != sequence + 1 {
            return None;
        }
        self.count -= 1;
        Some(std::mem::take(place))
    }

    /// Whether the place of the next request is free.
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.ring[(self.next & self.mask) as usize].number == 0
    }

    /// The oldest that is on the way.
    fn oldest(&mut self) -> Option<(u64, Sent)> {
        while self.oldest < self.next {
            let request = self.ring[(self.oldest & self.mask) as usize];
            if request.number == self.oldest + 1 {
                return Some((self.oldest, request));
            }
            self.oldest += 1;
        }
        None
    }

    /// Keeps those that were sent before a time as lost.
    fn expire(&mut self, before: Ticks, recorder: &mut Recorder<'_>) {
        while let Some((sequence, request)) = self.oldest() {
            if request.submit >= before {
                return;
            }
            let _ = self.take(sequence);
            recorder.unanswered(sequence, request.intended, request.submit);
        }
    }
}

/// What requests go over: one connection to one server, or many.
pub trait RequestPath {
    /// Writes the request of this number, posts it and sends it off; the time before the post.
    /// `None`: there was no room.
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks>;

    /// Sends off what could not go yet, where a look would not.
    fn flush(&mut self) {}

    /// Whether all that was posted has completed.
    fn has_completed(&self) -> bool;

    /// Looks for answers, and calls `take` with the number of each, when it was seen, and whether
    /// it is another than was asked for. Sleeps where the waiter does and `sleeps` is set.
    fn poll<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        take: impl FnMut(u64, Ticks, bool),
    ) -> Looked;
}

/// What a look for answers has found.
pub struct Looked {
    /// Whether anything has happened.
    pub any: bool,
    /// Why the round ends, where a connection has.
    pub ended: Option<Ended>,
}

/// One connection to the server of `load`.
pub struct OneServer<'a, E> {
    endpoint: &'a mut E,
    events: Events,
    flow: Flow,
    objects: Objects,
}

impl<'a, E: Endpoint> OneServer<'a, E> {
    /// Over an endpoint.
    pub fn over(endpoint: &'a mut E, plan: &Loop, objects: u64) -> OneServer<'a, E> {
        let flow = Flow::through(endpoint, plan);
        OneServer { endpoint, events: Events::default(), flow, objects: Objects(objects) }
    }
}

impl<E: Endpoint> RequestPath for OneServer<'_, E> {
    #[inline(always)]
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        if !self.flow.has_room() {
            return None;
        }
        let slot = self.flow.slot();
        self.objects.write(self.endpoint.payload(slot), sequence, plan.check);
        let submit = clock.now();
        if !self.flow.post(self.endpoint, slot, plan.size) {
            return None;
        }
        self.endpoint.flush();
        Some(submit)
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.endpoint.flush();
    }

    #[inline(always)]
    fn has_completed(&self) -> bool {
        self.flow.outstanding() == 0
    }

    #[inline(always)]
    fn poll<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let events = &mut self.events;
        waiter.attempt(sleeps, self.endpoint, events);
        self.flow.complete(events);
        if !events.arrivals().is_empty() {
            let receive = clock.now();
            for arrival in events.arrivals() {
                let message = self.endpoint.payload(arrival.slot);
                let sequence = self.objects.sequence(message, u64::MAX);
                let is_other = plan.check && !self.objects.is_answer(message, sequence);
                take(sequence, receive, is_other);
            }
        }
        let ended = (events.link != Link::Up).then(|| Ended::of(events.link));
        Looked { any: events.any(), ended }
    }
}

/// The client. Between the two stamps of a request lie the post, the flush, and polls until the
/// answer is there; other requests may be sent meanwhile, and other answers come.
///
/// A request that the schedule wants and that no buffer is there for waits in the schedule: its
/// lateness is in its response. What was intended before the time is up is sent, late where it must
/// be, until as long again has passed; what was not sent by then is lost.
pub fn client<L: RequestPath, W: Waiter, C: Clock, P: Pace>(
    path: &mut L,
    mut waiter: W,
    scope: Scope<'_, C>,
    requests: &mut Outstanding,
    recorder: &mut Recorder<'_>,
    mut pace: P,
) -> Ended {
    let Scope { clock, gate, plan } = scope;
    let start = clock.now() + plan.lead;
    let limits = Limits::of(plan, start);
    let mut idle = 0;
    pace.begin(start);
    let ended = loop {
        let now = clock.now();
        if limits.sends_no_more(&pace, now, requests.next, plan) {
            break if requests.next >= plan.messages { Ended::Count } else { Ended::Time };
        }
        send(path, scope, &mut pace, requests, recorder, now, &limits);
        // A transport may have room for what it had none for once it is looked at.
        let is_held_up = requests.held_up > requests.next;
        if requests.count == 0 && path.has_completed() && !is_held_up {
            // Nothing is on the way: the timer may wait.
            if pace.wait(clock, gate, plan.lead).is_none() && gate.is_stopped() {
                break Ended::Stopped;
            }
            continue;
        }
        let looked = path.poll(&mut waiter, P::SLEEPS, clock, plan, |sequence, receive, other| {
            answered(sequence, receive, other, requests, recorder);
        });
        idle = if looked.any { 0 } else { idle + 1 };
        if let Some(ended) = looked.ended {
            break ended;
        }
        if idle >= POLLS || P::SLEEPS {
            idle = 0;
            if gate.is_stopped() {
                break Ended::Stopped;
            }
            if let Some(after) = plan.loss_after {
                requests.expire(clock.now() - after, recorder);
            }
        }
    };
    if ended.as_planned() {
        keep_unsent(&mut pace, scope, &limits, requests.next, recorder);
        hear_out(path, &mut waiter, scope, requests, recorder);
    }
    recorder.seen.missed_steps = pace.missed();
    requests.expire(Ticks(u64::MAX), recorder);
    ended
}

/// Awaits the answers that are still in flight. Each counts as handled: far above the capacity of
/// a server they come for longer than `--timeout`.
#[cold]
fn hear_out<L: RequestPath, W: Waiter, C: Clock>(
    path: &mut L,
    waiter: &mut W,
    scope: Scope<'_, C>,
    requests: &mut Outstanding,
    recorder: &mut Recorder<'_>,
) {
    let Scope { clock, gate, plan } = scope;
    // Where the transport loses nothing an answer that is late will come: a server that was not
    // let run for a while is not a lost message.
    let patience = TickSpan(plan.drain.0 * if plan.loss_after.is_none() { 10 } else { 1 });
    let mut until = clock.now() + patience;
    let mut handled = requests.next + recorder.seen.unsent;
    while requests.count > 0 && clock.now() < until && !gate.is_stopped() {
        let before = handled;
        let looked = path.poll(waiter, false, clock, plan, |sequence, receive, other| {
            handled += 1;
            answered(sequence, receive, other, requests, recorder);
        });
        if handled > before {
            recorder.handled(handled);
            until = clock.now() + patience;
        }
        if looked.ended.is_some() {
            break;
        }
    }
}

/// An answer is there.
#[inline(always)]
fn answered(
    sequence: u64,
    receive: Ticks,
    is_other: bool,
    requests: &mut Outstanding,
    recorder: &mut Recorder<'_>,
) {
    recorder.seen.corrupt += u64::from(is_other);
    let flags = if is_other { Flags::CORRUPT } else { Flags::default() };
    match requests.take(sequence) {
        None => recorder.straggler(sequence, receive),
        Some(Sent { intended, submit, .. }) => {
            recorder.answered(sequence, [intended, submit, receive], flags);
        }
    }
}

/// When a round ends.
struct Limits {
    /// What is intended later is not of the round.
    end: Option<Ticks>,
    /// Nothing is sent any more.
    latest: Option<Ticks>,
}

impl Limits {
    fn of(plan: &Loop, start: Ticks) -> Limits {
        let end = plan.time.map(|time| start + time);
        let latest = plan.time.map(|time| start + time + time + plan.drain);
        Limits { end, latest }
    }

    #[inline(always)]
    fn sends_no_more<P: Pace>(&self, pace: &P, now: Ticks, sent: u64, plan: &Loop) -> bool {
        let next = if P::SLEEPS { Some(now) } else { pace.upcoming() };
        let Some(next) = next else { return true };
        sent >= plan.messages
            || self.end.is_some_and(|end| next >= end)
            || self.latest.is_some_and(|latest| now >= latest)
    }
}

/// Sends what is due.
#[inline(always)]
fn send<L: RequestPath, C: Clock, P: Pace>(
    path: &mut L,
    scope: Scope<'_, C>,
    pace: &mut P,
    requests: &mut Outstanding,
    recorder: &mut Recorder<'_>,
    mut now: Ticks,
    limits: &Limits,
) {
    let Scope { clock, plan, .. } = scope;
    for _ in 0..IN_ONE_GO {
        let Some(intended) = pace.due(now, requests.count) else { return };
        if requests.next >= plan.messages || limits.end.is_some_and(|end| intended >= end) {
            return;
        }
        let may = requests.has_room() && requests.count < plan.window;
        let submit = if may { path.send(clock, requests.next, plan) } else { None };
        let Some(submit) = submit else {
            // Once for each request, however often the loop comes by.
            recorder.seen.held_up += u64::from(requests.held_up <= requests.next);
            requests.held_up = requests.next + 1;
            path.flush();
            return;
        };
        let intended = if P::SLEEPS { Ticks(0) } else { intended };
        recorder.sent(requests.next, intended, submit, Ticks(0));
        requests.put(intended, submit);
        recorder.seen.sent = requests.next;
        recorder.handled(requests.next);
        pace.step(submit);
        now = submit;
    }
}

/// Keeps what was intended and not sent: as lost. There may be many of them: it stops where it is
/// told to, and shows that it goes on.
#[cold]
fn keep_unsent<C: Clock, P: Pace>(
    pace: &mut P,
    Scope { gate, plan, .. }: Scope<'_, C>,
    limits: &Limits,
    sent: u64,
    recorder: &mut Recorder<'_>,
) {
    let Some(end) = limits.end else { return };
    let mut number = sent;
    while let Some(intended) = pace.upcoming().filter(|at| *at < end) {
        if number >= plan.messages {
            return;
        }
        recorder.unanswered(number, intended, Ticks(0));
        recorder.seen.unsent += 1;
        number += 1;
        pace.step(Ticks(0));
        if number.is_multiple_of(UNSENT_BETWEEN_LOOKS) {
            recorder.handled(number);
            if gate.is_stopped() {
                return;
            }
        }
    }
}
