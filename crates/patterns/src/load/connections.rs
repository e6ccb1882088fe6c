//! The connections of a thread of a client, each request over one of them, and when a thread of a
//! server of several connections sleeps and ends.

use super::client::Looked;
use crate::prelude::*;
use wiregauge_measure::loops::gate::Gate;
use wiregauge_measure::loops::waiter::{AnyWaiter, POLLS};
use wiregauge_transport::endpoint_set::{self, EndpointSet};

/// The connections of one thread of a client.
pub struct ClientConnections<'a, E> {
    set: &'a mut EndpointSet<E>,
    flows: Box<[Flow]>,
    /// Posts that have not completed.
    outstanding: u64,
    /// When it may sleep, where it polls for a while first.
    sleepy: Ticks,
    events: Events,
}

impl<'a, E: Endpoint> ClientConnections<'a, E> {
    /// Returns the connections of a set.
    pub fn over(set: &'a mut EndpointSet<E>) -> ClientConnections<'a, E> {
        let flows = set.ends.iter().map(Flow::of).collect();
        ClientConnections {
            set,
            flows,
            outstanding: 0,
            sleepy: Ticks(0),
            events: Events::default(),
        }
    }

    /// Leaves all arrivals to other threads, so that only completions are polled for.
    pub fn leave_arrivals(&mut self) {
        self.events.limit(0);
    }

    /// Returns the number of connections.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if all that was posted has completed.
    #[inline(always)]
    pub fn have_completed(&self) -> bool {
        self.outstanding == 0
    }

    /// Has a message of this length written, posts it to a connection and sends it off; returns the
    /// time before the post. `None`: there was no room.
    #[inline(always)]
    pub fn post<C: Clock>(
        &mut self,
        number: usize,
        length: usize,
        clock: C,
        write: impl FnOnce(&mut [u8]),
    ) -> Option<Ticks> {
        let flow = &mut self.flows[number];
        let endpoint = &mut self.set.ends[number];
        if !flow.has_room() {
            return None;
        }
        let slot = flow.slot();
        write(&mut endpoint.payload(slot)[..length]);
        let submit = clock.now();
        if !flow.post(endpoint, slot, length) {
            return None;
        }
        endpoint.flush();
        self.outstanding += 1;
        self.set.stir(number);
        Some(submit)
    }

    /// Looks at all connections that may have something; calls `take` with each message and the
    /// time at which it was seen. Sleeps where the waiter does and `sleeps` is set.
    #[inline(always)]
    pub fn poll<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        mut take: impl FnMut(&[u8], Ticks),
    ) -> Looked {
        let ClientConnections { set, flows, outstanding, sleepy, events } = self;
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
                    take(&endpoint.payload(arrival.slot)[..arrival.length as usize], receive);
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

    /// Polls the connections with posts that have not completed.
    #[inline(always)]
    pub fn poll_posted(&mut self) -> Looked {
        let ClientConnections { set, flows, outstanding, events, .. } = self;
        let mut any = false;
        let mut ended = None;
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
        Looked { any, ended }
    }
}

/// Decides when a thread of a server of several connections may sleep, and when it ends.
pub struct ServerTurns {
    /// Looks in a row that found nothing.
    idle: u64,
    sleepy: Ticks,
}

impl ServerTurns {
    /// Begins.
    pub fn new<C: Clock>(waiter: &AnyWaiter, clock: C) -> ServerTurns {
        ServerTurns { idle: 0, sleepy: clock.now() + waiter.spin() }
    }

    /// Returns true if the next look may sleep.
    #[inline(always)]
    pub fn may_sleep<C: Clock>(&self, waiter: &AnyWaiter, clock: C) -> bool {
        waiter.sleeps() && (waiter.spin().0 == 0 || clock.now() >= self.sleepy)
    }

    /// Takes note of a look that found something, or nothing.
    #[inline(always)]
    pub fn looked<C: Clock>(&mut self, any: bool, waiter: &AnyWaiter, clock: C) {
        self.idle = if any { 0 } else { self.idle + 1 };
        if any && waiter.spin().0 > 0 {
            self.sleepy = clock.now() + waiter.spin();
        }
    }

    /// Returns why the round is over, where the last look may have slept, or many found nothing.
    #[inline(always)]
    pub fn ended(&mut self, slept: bool, gate: &Gate) -> Option<Ended> {
        if self.idle < POLLS.into() && !slept {
            return None;
        }
        self.idle = 0;
        let over = gate.expected().map(|_| Ended::Count);
        gate.is_stopped().then_some(Ended::Stopped).or(over)
    }
}
