//! Requests and replies of many lengths over many connections: the client's side of `rpc`, a
//! [`Line`] of the client of [`load`](crate::pattern::load), and its server.
//!
//! The first word of each message has the low half of the request's number, and the length of its
//! reply: who knows the case knows the rest.

use super::draws::Draws;
use super::spec::SHORTEST;
use crate::clock::{Clock, Ticks};
use crate::loops::gate::Gate;
use crate::loops::waiter::{POLLS, Waiter};
use crate::loops::{Ended, Loop, payload};
use crate::pattern::load::{Line, Looked};
use crate::sample::recorder::Recorder;
use crate::transport::endpoint_set::{self, EndpointSet};
use crate::transport::{Endpoint, Events, Link, MOST_EVENTS, Posted, Slot};

/// The first word of a request and of its reply.
#[inline(always)]
fn head(sequence: u64, reply: u32) -> u64 {
    u64::from(sequence as u32) | u64::from(reply) << 32
}

/// The first word of a message.
#[inline(always)]
pub(super) fn head_of(message: &[u8]) -> u64 {
    message.first_chunk().map_or(u64::MAX, |word| u64::from_le_bytes(*word))
}

/// Writes a message.
#[inline(always)]
fn write(message: &mut [u8], head: u64, check: bool) {
    if check {
        payload::fill(message, head);
    } else {
        payload::number(message, head);
    }
}

/// The sending slots of one connection.
pub(super) struct Slots {
    count: u32,
    next: u32,
    /// Posts that have not completed.
    on_the_way: u32,
}

impl Slots {
    pub(super) fn of<E: Endpoint>(endpoint: &E) -> Slots {
        Slots { count: endpoint.slots(), next: 0, on_the_way: 0 }
    }

    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.on_the_way < self.count
    }

    #[inline(always)]
    pub(super) fn is_settled(&self) -> bool {
        self.on_the_way == 0
    }

    /// Writes and posts a message; `false`: there was no room.
    #[inline(always)]
    fn post<E: Endpoint>(&mut self, endpoint: &mut E, slot: Slot, length: usize) -> bool {
        match endpoint.post(slot, length) {
            Posted::Full => false,
            Posted::Accepted => {
                self.on_the_way += 1;
                self.next += 1;
                if self.next == self.count {
                    self.next = 0;
                }
                true
            }
        }
    }

    #[inline(always)]
    fn slot(&self) -> Slot {
        Slot::sending(self.next)
    }

    #[inline(always)]
    pub(super) fn completed(&mut self, events: &Events) {
        self.on_the_way = self.on_the_way.saturating_sub(events.completed);
    }
}

/// What a port of the client asks over: its connections, and what it knows of each.
pub(super) struct Asking<'a, E> {
    pub set: &'a mut EndpointSet<E>,
    pub slots: Box<[Slots]>,
    pub draws: Draws,
    /// Requests that have been posted.
    pub asked: u64,
    /// Of those the posts that have not completed.
    pub unsettled: u64,
}

impl<'a, E: Endpoint> Asking<'a, E> {
    pub fn over(set: &'a mut EndpointSet<E>, draws: Draws) -> Asking<'a, E> {
        let slots = set.ends().iter().map(Slots::of).collect();
        Asking { set, slots, draws, asked: 0, unsettled: 0 }
    }

    #[inline(always)]
    pub fn has_room(&self, sequence: u64) -> bool {
        self.slots[self.draws.lane(sequence)].has_room()
    }

    /// Writes a request into the slot whose turn it is, posts it and sends it off; the connection,
    /// and the time before the post. `None`: there was no room.
    #[inline(always)]
    pub fn ask<C: Clock>(
        &mut self,
        clock: C,
        sequence: u64,
        plan: &Loop,
    ) -> Option<(usize, Ticks)> {
        let lane = self.draws.lane(sequence);
        let length = self.draws.length(sequence);
        let (slots, endpoint) = (&mut self.slots[lane], self.set.end(lane));
        let message = &mut endpoint.payload(slots.slot())[..length as usize];
        write(message, head(sequence, self.draws.reply(length)), plan.check);
        let submit = clock.now();
        if !slots.post(endpoint, slots.slot(), length as usize) {
            return None;
        }
        endpoint.flush();
        self.asked = sequence + 1;
        self.unsettled += 1;
        Some((lane, submit))
    }

    #[inline(always)]
    pub fn is_settled(&self) -> bool {
        self.unsettled == 0
    }
}

/// What a reply is held against: apart from the connections, which a look borrows.
#[inline(always)]
pub(super) fn awaited(draws: &Draws, asked: u64, low: u32) -> (u64, u32) {
    let sequence = number(asked, low);
    (sequence, draws.reply(draws.length(sequence)))
}

/// The connections of one port of the client that takes its replies itself.
pub struct Mesh<'a, E> {
    asking: Asking<'a, E>,
    events: Events,
}

impl<'a, E: Endpoint> Mesh<'a, E> {
    /// Over these connections.
    pub fn over(set: &'a mut EndpointSet<E>, draws: Draws) -> Mesh<'a, E> {
        Mesh { asking: Asking::over(set, draws), events: Events::default() }
    }
}

/// The number of a request of which the low half came back: none is on the way for longer.
#[inline(always)]
fn number(asked: u64, low: u32) -> u64 {
    asked.wrapping_sub(u64::from((asked as u32).wrapping_sub(low)))
}

impl<E: Endpoint> Line for Mesh<'_, E> {
    #[inline(always)]
    fn has_room(&self, sequence: u64) -> bool {
        self.asking.has_room(sequence)
    }

    #[inline(always)]
    fn ask<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        let (lane, submit) = self.asking.ask(clock, sequence, plan)?;
        self.asking.set.stir(lane);
        Some(submit)
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.asking.is_settled()
    }

    #[inline]
    fn look<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let Mesh { asking: Asking { set, slots, draws, asked, unsettled }, events } = self;
        let (mut any, mut ended) = (false, None);
        set.look(sleeps && waiter.sleeps(), |lane, endpoint, sleeps| {
            if sleeps {
                waiter.once(endpoint, events);
            } else {
                let _ = endpoint.poll(events);
            }
            any |= events.any();
            slots[lane].completed(events);
            *unsettled = unsettled.saturating_sub(u64::from(events.completed));
            if !events.arrivals().is_empty() {
                let receive = clock.now();
                for arrival in events.arrivals() {
                    let length = arrival.length as usize;
                    let message = &endpoint.payload(arrival.slot)[..length];
                    let head = head_of(message);
                    let (sequence, awaited) = awaited(draws, *asked, head as u32);
                    let is_broken = plan.check && !payload::verify(message, head);
                    take(sequence, receive, is_broken || length as u32 != awaited);
                }
            }
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
            endpoint_set::Looked::of(events, slots[lane].on_the_way)
        });
        Looked { any, ended }
    }
}

/// One connection as the server has it: requests that have come and are not answered.
struct Lane {
    slots: Slots,
    waiting: [u64; MOST_EVENTS],
    first: usize,
    count: usize,
}

impl Lane {
    fn of<E: Endpoint>(endpoint: &E) -> Lane {
        Lane { slots: Slots::of(endpoint), waiting: [0; MOST_EVENTS], first: 0, count: 0 }
    }

    #[inline(always)]
    fn put(&mut self, head: u64) {
        if self.count < MOST_EVENTS {
            self.waiting[(self.first + self.count) % MOST_EVENTS] = head;
            self.count += 1;
        }
    }

    /// Answers as many as there is room for.
    #[inline(always)]
    fn answer<E: Endpoint>(&mut self, endpoint: &mut E, plan: &Loop) {
        while self.count > 0 && self.slots.has_room() {
            let head = self.waiting[self.first];
            let slot = self.slots.slot();
            // What another process asks for is not believed.
            let length = ((head >> 32) as usize).clamp(SHORTEST.0 as usize, plan.size);
            write(&mut endpoint.payload(slot)[..length], head, plan.check);
            if !self.slots.post(endpoint, slot, length) {
                break;
            }
            self.first = (self.first + 1) % MOST_EVENTS;
            self.count -= 1;
        }
        endpoint.flush();
    }
}

/// One port of the server. A connection whose replies are not taken holds up itself alone: its
/// requests stay where they are.
pub fn server<E: Endpoint, W: Waiter, C: Clock>(
    set: &mut EndpointSet<E>,
    mut waiter: W,
    clock: C,
    gate: &Gate,
    plan: &Loop,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut events = Events::default();
    let mut lanes: Box<[Lane]> = set.ends().iter().map(Lane::of).collect();
    let (mut reads, mut idle, mut ended) = (0u64, 0, None);
    let mut sleepy = clock.now() + waiter.spin();
    loop {
        let mut any = false;
        let sleeps = waiter.sleeps() && (waiter.spin().0 == 0 || clock.now() >= sleepy);
        set.look(sleeps, |number, endpoint, sleeps| {
            let lane = &mut lanes[number];
            events.limit(MOST_EVENTS - lane.count);
            if sleeps && lane.count == 0 {
                waiter.once(endpoint, &mut events);
            } else {
                let _ = endpoint.poll(&mut events);
            }
            any |= events.any();
            lane.slots.completed(&events);
            for arrival in events.arrivals() {
                let message = &endpoint.payload(arrival.slot)[..arrival.length as usize];
                let head = head_of(message);
                if plan.check && !payload::verify(message, head) {
                    recorder.seen.corrupt += 1;
                }
                lane.put(head);
                reads += 1;
            }
            lane.answer(endpoint, plan);
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
            endpoint_set::Looked::of(&events, lane.slots.on_the_way + lane.count as u32)
        });
        if any {
            idle = 0;
            recorder.handled(reads);
            if waiter.spin().0 > 0 {
                sleepy = clock.now() + waiter.spin();
            }
        } else {
            idle += 1;
        }
        if let Some(ended) = ended {
            recorder.seen.received = reads;
            return ended;
        }
        if idle >= POLLS || sleeps {
            idle = 0;
            let over = gate.expected().map(|_| Ended::Count);
            if let Some(ended) = gate.is_stopped().then_some(Ended::Stopped).or(over) {
                recorder.seen.received = reads;
                return ended;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_by_its_low_half() {
        for sequence in [0, 1, u64::from(u32::MAX) - 1, 1 << 32, (1 << 32) + 5, 7 << 40] {
            for later in [1, 2, 1000, 1 << 16] {
                assert_eq!(number(sequence + later, head(sequence, 9) as u32), sequence);
            }
        }
    }

    #[test]
    fn a_message_says_how_long_its_reply_is() {
        let mut message = [0; 20];
        write(&mut message, head(u64::MAX - 3, 77), true);
        assert_eq!(head_of(&message) >> 32, 77);
        assert!(payload::verify(&message, head_of(&message)));
        message[19] ^= 1;
        assert!(!payload::verify(&message, head_of(&message)));
    }
}
