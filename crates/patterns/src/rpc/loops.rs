//! Requests and replies of many lengths over many connections: the client's side of `rpc`, a
//! [`RequestPath`] of the client of [`load`](crate::load), and its server.

use super::draws::{Draws, awaited, head, head_of};
use super::receivers::ReplyConsumer;
use super::spec::SHORTEST;
use crate::load::{ClientConnections, Looked, RequestPath, ServerTurns};
use crate::prelude::*;
use wiregauge_measure::loops::waiter::AnyWaiter;
use wiregauge_transport::MOST_EVENTS;
use wiregauge_transport::endpoint_set::{self, EndpointSet};

/// The connections of one port of the client. With `SPLIT` other threads take its replies.
pub struct PortPath<'a, E, const SPLIT: bool> {
    connections: ClientConnections<'a, E>,
    draws: &'a Draws,
    /// Requests that have been posted.
    sent: u64,
    receivers: &'a mut [ReplyConsumer],
}

impl<'a, E: Endpoint, const SPLIT: bool> PortPath<'a, E, SPLIT> {
    /// Over these connections, of which these threads take the replies.
    pub fn over(
        set: &'a mut EndpointSet<E>,
        draws: &'a Draws,
        receivers: &'a mut [ReplyConsumer],
    ) -> Self {
        let mut connections = ClientConnections::over(set);
        if SPLIT {
            connections.leave_arrivals();
        }
        PortPath { connections, draws, sent: 0, receivers }
    }

    /// Looks for replies that its receiver threads have taken.
    #[inline(always)]
    fn look_at_receivers(&mut self, mut take: impl FnMut(u64, Ticks, bool)) -> Looked {
        let PortPath { connections, draws, sent, receivers } = self;
        let Looked { mut any, mut ended } = connections.poll_posted();
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
}

impl<E: Endpoint, const SPLIT: bool> RequestPath for PortPath<'_, E, SPLIT> {
    #[inline(always)]
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        let PortPath { connections, draws, sent, .. } = self;
        let length = draws.length(sequence);
        let number = draws.connection(sequence);
        let submit = connections.post(number, length as usize, clock, |message| {
            payload::write(message, head(sequence, draws.reply(length)), plan.check);
        })?;
        *sent = sequence + 1;
        Some(submit)
    }

    #[inline(always)]
    fn has_completed(&self) -> bool {
        self.connections.have_completed()
    }

    #[inline]
    fn poll<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        if SPLIT {
            return self.look_at_receivers(take);
        }
        let PortPath { connections, draws, sent, .. } = self;
        connections.poll(waiter, sleeps, clock, |message, receive| {
            let head = head_of(message);
            let (sequence, awaited) = awaited(draws, *sent, head as u32);
            let is_broken = plan.check && !payload::verify(message, head);
            take(sequence, receive, is_broken || message.len() as u32 != awaited);
        })
    }
}

/// One connection as the server has it: requests that have come and are not answered.
pub struct ServerConnection {
    flow: Flow,
    waiting: [u64; MOST_EVENTS],
    first: usize,
    count: usize,
}

impl ServerConnection {
    /// Returns an endpoint's, without requests.
    pub fn of<E: Endpoint>(endpoint: &E) -> ServerConnection {
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
    connections: &mut [ServerConnection],
) -> Ended {
    let LoopContext { endpoint: set, mut waiter, clock, gate, plan, recorder, .. } = context;
    let mut events = Events::default();
    let mut reads = 0;
    let mut ended = None;
    let mut turns = ServerTurns::new(&waiter, clock);
    let ended = loop {
        let mut any = false;
        let sleeps = turns.may_sleep(&waiter, clock);
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
            recorder.handled(reads);
        }
        turns.looked(any, &waiter, clock);
        if let Some(ended) = ended.or_else(|| turns.ended(sleeps, gate)) {
            break ended;
        }
    };
    recorder.seen.received = reads;
    ended
}
