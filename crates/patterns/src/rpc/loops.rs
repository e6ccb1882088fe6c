//! Requests and replies of many lengths over many connections: the client's side of `rpc`, a
//! [`RequestPath`] of the client of [`load`](crate::load), and its server.

use super::draws::{Draws, awaited, head, head_of};
use super::receivers::ReplyConsumer;
use super::spec::SHORTEST;
use crate::load::{Looked, RequestPath};
use crate::prelude::*;
use wiregauge_measure::loops::waiter::{AnyWaiter, POLLS};
use wiregauge_transport::MOST_EVENTS;
use wiregauge_transport::endpoint_set::{self, EndpointSet};

/// The connections of one port of the client. With `SPLIT` other threads take its replies.
pub struct PortPath<'a, E, const SPLIT: bool> {
    set: &'a mut EndpointSet<E>,
    flows: Box<[Flow]>,
    draws: &'a Draws,
    /// Requests that have been posted.
    sent: u64,
    /// Of those the posts that have not completed.
    outstanding: u64,
    /// When it may sleep, where it polls for a while first.
    sleepy: Ticks,
    events: Events,
    receivers: &'a mut [ReplyConsumer],
}

impl<'a, E: Endpoint, const SPLIT: bool> PortPath<'a, E, SPLIT> {
    /// Over these connections, of which these threads take the replies.
    pub fn over(
        set: &'a mut EndpointSet<E>,
        draws: &'a Draws,
        receivers: &'a mut [ReplyConsumer],
    ) -> Self {
        let flows = set.ends.iter().map(Flow::of).collect();
        let mut events = Events::default();
        if SPLIT {
            // Only completions: what arrives is for others.
            events.limit(0);
        }
        let sleepy = Ticks(0);
        PortPath { set, flows, draws, sent: 0, outstanding: 0, sleepy, events, receivers }
    }

    /// Looks for replies that its receiver threads have taken.
    #[inline(always)]
    fn look_at_receivers(&mut self, mut take: impl FnMut(u64, Ticks, bool)) -> Looked {
        let PortPath { set, flows, draws, sent, outstanding, events, receivers, .. } = self;
        let (mut any, mut ended) = (false, None);
        let busy = if *outstanding > 0 { flows.len() } else { 0 };
        for (number, flow) in flows[..busy].iter_mut().enumerate() {
            if flow.outstanding() == 0 {
                continue;
            }
            any |= set.ends[number].poll(events);
            flow.complete(events);
            *outstanding = outstanding.saturating_sub(events.completed.into());
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
        }
        for replies in receivers.iter_mut() {
            // Read before the ring is: what came until then is in it.
            ended = ended.or(replies.ended());
            while let Some(seen) = replies.take() {
                any = true;
                let (sequence, awaited) = awaited(draws, *sent, seen.low);
                take(sequence, seen.receive, seen.broken || seen.length != awaited);
            }
        }
        Looked { any, ended }
    }

    /// Looks for replies at the connections.
    #[inline(always)]
    fn look_at_connections<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let PortPath { set, flows, draws, sent, outstanding, sleepy, events, .. } = self;
        let (mut any, mut ended) = (false, None);
        let polls = waiter.spin().0 > 0 && clock.now() < *sleepy;
        set.look(sleeps && waiter.sleeps() && !polls, |number, endpoint, sleeps| {
            waiter.attempt(sleeps, endpoint, events);
            any |= events.any();
            flows[number].complete(events);
            *outstanding = outstanding.saturating_sub(u64::from(events.completed));
            if !events.arrivals().is_empty() {
                let receive = clock.now();
                for arrival in events.arrivals() {
                    let length = arrival.length as usize;
                    let message = &endpoint.payload(arrival.slot)[..length];
                    let head = head_of(message);
                    let (sequence, awaited) = awaited(draws, *sent, head as u32);
                    let is_broken = plan.check && !payload::verify(message, head);
                    take(sequence, receive, is_broken || length as u32 != awaited);
                }
            }
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
            endpoint_set::left(events, flows[number].outstanding() as u32)
        });
        if any && waiter.spin().0 > 0 {
            *sleepy = clock.now() + waiter.spin();
        }
        Looked { any, ended }
    }
}

impl<E: Endpoint, const SPLIT: bool> RequestPath for PortPath<'_, E, SPLIT> {
    #[inline(always)]
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        let number = self.draws.connection(sequence);
        let flow = &mut self.flows[number];
        if !flow.has_room() {
            return None;
        }
        let (endpoint, slot) = (&mut self.set.ends[number], flow.slot());
        let length = self.draws.length(sequence);
        let message = &mut endpoint.payload(slot)[..length as usize];
        payload::write(message, head(sequence, self.draws.reply(length)), plan.check);
        let submit = clock.now();
        if !flow.post(endpoint, slot, length as usize) {
            return None;
        }
        endpoint.flush();
        self.sent = sequence + 1;
        self.outstanding += 1;
        if !SPLIT {
            self.set.stir(number);
        }
        Some(submit)
    }

    #[inline(always)]
    fn has_completed(&self) -> bool {
        self.outstanding == 0
    }

    #[inline]
    fn poll<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        match SPLIT {
            true => self.look_at_receivers(take),
            false => self.look_at_connections(waiter, sleeps, clock, plan, take),
        }
    }
}

/// One connection as the server has it: requests that have come and are not answered.
struct ServerConnection {
    flow: Flow,
    waiting: [u64; MOST_EVENTS],
    first: usize,
    count: usize,
}

impl ServerConnection {
    fn of<E: Endpoint>(endpoint: &E) -> ServerConnection {
        let flow = Flow::of(endpoint);
        ServerConnection { flow, waiting: [0; MOST_EVENTS], first: 0, count: 0 }
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
        while self.count > 0 && self.flow.has_room() {
            let head = self.waiting[self.first];
            let slot = self.flow.slot();
            // What another process asks for is not believed.
            let length = ((head >> 32) as usize).clamp(SHORTEST.0 as usize, plan.size);
            payload::write(&mut endpoint.payload(slot)[..length], head, plan.check);
            if !self.flow.post(endpoint, slot, length) {
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
pub fn server<E: Endpoint, C: Clock>(
    context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
) -> Ended {
    let LoopContext { endpoint: set, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut connections: Box<[_]> = set.ends.iter().map(ServerConnection::of).collect();
    let (mut reads, mut idle, mut ended) = (0u64, 0, None);
    let mut sleepy = clock.now() + waiter.spin();
    let ended = loop {
        let mut any = false;
        let sleeps = waiter.sleeps() && (waiter.spin().0 == 0 || clock.now() >= sleepy);
        set.look(sleeps, |number, endpoint, sleeps| {
            let connection = &mut connections[number];
            events.limit(MOST_EVENTS - connection.count);
            waiter.attempt(sleeps && connection.count == 0, endpoint, &mut events);
            any |= events.any();
            connection.flow.complete(&events);
            for arrival in events.arrivals() {
                let message = &endpoint.payload(arrival.slot)[..arrival.length as usize];
                let head = head_of(message);
                if plan.check && !payload::verify(message, head) {
                    recorder.seen.corrupt += 1;
                }
                connection.put(head);
                reads += 1;
            }
            connection.answer(endpoint, plan);
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
            endpoint_set::left(
                &events,
                connection.flow.outstanding() as u32 + connection.count as u32,
            )
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
            break ended;
        }
        if idle >= POLLS || sleeps {
            idle = 0;
            let over = gate.expected().map(|_| Ended::Count);
            if let Some(ended) = gate.is_stopped().then_some(Ended::Stopped).or(over) {
                break ended;
            }
        }
    };
    recorder.seen.received = reads;
    ended
}
