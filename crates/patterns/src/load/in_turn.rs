//! The client of `load` and `latency` over several connections, which its requests use in turn.

use super::client::{Looked, RequestPath};
use super::server;
use crate::prelude::*;
use wiregauge_transport::endpoint_set::{self, EndpointSet};

/// The contents of requests.
pub trait Contents {
    /// Writes the request of this number.
    fn write(&self, message: &mut [u8], sequence: u64, check: bool);

    /// Returns the number of the request that is answered; `sent` of them were sent.
    fn sequence(&self, message: &[u8], sent: u64) -> u64;

    /// Returns true if an answer is that of the request of this number.
    fn is_answer(&self, message: &[u8], sequence: u64) -> bool;
}

/// Requests for one of this number of objects.
pub struct Objects(pub u64);

impl Contents for Objects {
    #[inline(always)]
    fn write(&self, message: &mut [u8], sequence: u64, _: bool) {
        server::ask(message, sequence, self.0);
    }

    #[inline(always)]
    fn sequence(&self, message: &[u8], _: u64) -> u64 {
        message.first_chunk().map_or(u64::MAX, |number| u64::from_le_bytes(*number))
    }

    #[inline(always)]
    fn is_answer(&self, message: &[u8], sequence: u64) -> bool {
        server::is_answer(message, sequence, self.0)
    }
}

/// Messages that come back as they are.
pub struct Echoed;

impl Contents for Echoed {
    #[inline(always)]
    fn write(&self, message: &mut [u8], sequence: u64, check: bool) {
        payload::write(message, sequence, check);
    }

    #[inline(always)]
    fn sequence(&self, message: &[u8], sent: u64) -> u64 {
        payload::sequence(message, sent)
    }

    #[inline(always)]
    fn is_answer(&self, message: &[u8], sequence: u64) -> bool {
        payload::verify(message, sequence)
    }
}

/// The connections of one thread.
pub struct InTurn<'a, E, T> {
    set: &'a mut EndpointSet<E>,
    flows: Box<[Flow]>,
    contents: T,
    sent: u64,
    /// Posts that have not completed.
    outstanding: u64,
    /// When it may sleep, where it polls for a while first.
    sleepy: Ticks,
    events: Events,
}

impl<'a, E: Endpoint, T: Contents> InTurn<'a, E, T> {
    /// Returns the path over these connections.
    pub fn over(set: &'a mut EndpointSet<E>, contents: T) -> InTurn<'a, E, T> {
        let flows = set.ends.iter().map(Flow::of).collect();
        let events = Events::default();
        InTurn { set, flows, contents, sent: 0, outstanding: 0, sleepy: Ticks(0), events }
    }
}

/// Returns the connection of the request of this number.
#[inline(always)]
pub fn connection_of(sequence: u64, connections: usize) -> usize {
    (sequence % connections.max(1) as u64) as usize
}

/// Returns what says by which connection of a client's thread each request goes.
pub fn connections_of(case: &Case) -> Box<dyn Fn(u64) -> u32> {
    let connections = case.topology.endpoints_of_role(Role::Client) as usize;
    Box::new(move |sequence| connection_of(sequence, connections) as u32)
}

impl<E: Endpoint, T: Contents> RequestPath for InTurn<'_, E, T> {
    #[inline(always)]
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        let number = connection_of(sequence, self.flows.len());
        let flow = &mut self.flows[number];
        let endpoint = &mut self.set.ends[number];
        if !flow.has_room() {
            return None;
        }
        let slot = flow.slot();
        self.contents.write(&mut endpoint.payload(slot)[..plan.size], sequence, plan.check);
        let submit = clock.now();
        if !flow.post(endpoint, slot, plan.size) {
            return None;
        }
        endpoint.flush();
        self.sent = sequence + 1;
        self.outstanding += 1;
        self.set.stir(number);
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
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let InTurn { set, flows, contents, sent, outstanding, sleepy, events } = self;
        let mut any = false;
        let mut ended = None;
        let polls = waiter.spin().0 > 0 && clock.now() < *sleepy;
        set.look(sleeps && waiter.sleeps() && !polls, |number, endpoint, sleeps| {
            waiter.attempt(sleeps, endpoint, events);
            any |= events.any();
            flows[number].complete(events);
            *outstanding = outstanding.saturating_sub(events.completed.into());
            if !events.arrivals().is_empty() {
                let receive = clock.now();
                for arrival in events.arrivals() {
                    let message = &endpoint.payload(arrival.slot)[..arrival.length as usize];
                    let sequence = contents.sequence(message, *sent);
                    let is_other = plan.check && !contents.is_answer(message, sequence);
                    take(sequence, receive, is_other);
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
