//! The server of `load` with several clients: each has a connection of its own, and all share one
//! pool of receive buffers and one of transmit buffers. A request waits in the transport until
//! there is a receive buffer for it, whichever client sent it.

use super::connections::ServerTurns;
use super::server::{HEAD_BYTES, Store};
use super::spec::MOST_BUFFERS;
use crate::prelude::*;
use wiregauge_measure::loops::waiter::{AnyWaiter, Busy};
use wiregauge_sample::recorder::PoolUse;
use wiregauge_transport::MOST_EVENTS;
use wiregauge_transport::endpoint_set::{self, EndpointSet};

/// A request that has arrived: its connection, and what it asks for.
type Waiting = (u32, [u8; HEAD_BYTES]);

/// The pools of all connections together.
struct SharedPool {
    /// Replies on their way, of each connection.
    flows: Box<[Flow]>,
    transmit: u32,
    free: u32,
    receive: usize,
    waiting: [Waiting; MOST_EVENTS],
    arrived: usize,
    /// The connection that is looked at first: the one that found no receive buffer last time, so
    /// that none is passed over for ever.
    first: usize,
    used: PoolUse,
    events: Events,
    ended: Option<Ended>,
}

/// What a look at all connections has found.
struct Found {
    any: bool,
    requests: bool,
    completed: u32,
}

impl SharedPool {
    fn of<E: Endpoint>(set: &EndpointSet<E>, store: &Store) -> SharedPool {
        let transmit = store.buffers().map_or(MOST_BUFFERS, |asked| asked.transmit);
        let receive = store.buffers().map_or(MOST_EVENTS, |asked| asked.receive as usize);
        SharedPool {
            flows: set.ends.iter().map(Flow::of).collect(),
            transmit,
            free: transmit,
            receive: receive.min(MOST_EVENTS),
            waiting: [(0, [0; HEAD_BYTES]); MOST_EVENTS],
            arrived: 0,
            first: 0,
            used: PoolUse::default(),
            events: Events::default(),
            ended: None,
        }
    }

    /// Looks at all connections that may have something. Requests are taken while there are receive
    /// buffers and `takes` says so.
    #[inline]
    fn look<E: Endpoint, W: Waiter>(
        &mut self,
        set: &mut EndpointSet<E>,
        waiter: &mut W,
        (takes, sleeps): (bool, bool),
    ) -> Found {
        let mut found = Found { any: false, requests: false, completed: 0 };
        let (first, mut refused) = (self.first, None);
        set.look_from(first, sleeps, |number, endpoint, sleeps| {
            let room = if takes { self.receive - self.arrived } else { 0 };
            if room == 0 {
                refused.get_or_insert(number);
            }
            let events = &mut self.events;
            events.limit(room);
            waiter.attempt(sleeps, endpoint, events);
            found.any |= events.any();
            found.completed += events.completed;
            self.flows[number].complete(events);
            for arrival in events.arrivals() {
                let message = endpoint.payload(arrival.slot);
                let request = self.waiting.get_mut(self.arrived);
                if let Some((head, request)) = message.first_chunk().zip(request) {
                    *request = (number as u32, *head);
                    self.arrived += 1;
                    found.requests = true;
                }
            }
            if events.link != Link::Up {
                self.ended = Some(Ended::of(events.link));
            }
            endpoint_set::left(events, self.flows[number].outstanding() as u32)
        });
        if let Some(number) = refused.filter(|_| takes) {
            self.first = number;
        }
        self.free = (self.free + found.completed).min(self.transmit);
        found
    }

    /// The same between two readings of the clock, where polls are measured.
    #[inline]
    fn timed<E: Endpoint, W: Waiter, C: Clock, const TIMED: bool>(
        &mut self,
        set: &mut EndpointSet<E>,
        waiter: &mut W,
        how: (bool, bool),
        clock: C,
    ) -> Found {
        let before = if TIMED { clock.now() } else { Ticks(0) };
        let found = self.look(set, waiter, how);
        if TIMED {
            self.used.polled(found.completed, clock.now() - before);
            self.used.request_polls += u64::from(found.requests);
        }
        found
    }

    /// Answers the requests that have arrived. One whose connection has no room stays, and holds up
    /// nobody else. Whether it was told to stop meanwhile.
    #[inline]
    fn answer<E: Endpoint, C: Clock, const TIMED: bool>(
        &mut self,
        set: &mut EndpointSet<E>,
        Scope { clock, gate, plan }: Scope<'_, C>,
        store: &Store,
    ) -> bool {
        let (count, mut kept) = (self.arrived, 0);
        for number in 0..count {
            let wished = if TIMED { clock.now() } else { Ticks(0) };
            self.used.buffer_waits += u64::from(self.free == 0);
            let (empty, full) = (self.used.empty_ticks, self.used.full_ticks);
            while self.free == 0 {
                self.timed::<_, _, _, TIMED>(set, &mut Busy, (false, false), clock);
                if self.ended.is_some() || gate.is_stopped() {
                    return true;
                }
            }
            if TIMED {
                self.used.buffer_empty_ticks += self.used.empty_ticks - empty;
                self.used.buffer_full_ticks += self.used.full_ticks - full;
                self.used.buffer_ticks += (clock.now() - wished).0;
            }
            let (connection, request) = self.waiting[number];
            if !self.reply(set, connection as usize, &request, store, plan) {
                self.waiting[kept] = (connection, request);
                kept += 1;
            }
        }
        self.arrived = kept;
        false
    }

    /// Posts a reply and sends it off; whether its connection had room.
    #[inline(always)]
    fn reply<E: Endpoint>(
        &mut self,
        set: &mut EndpointSet<E>,
        connection: usize,
        request: &[u8; HEAD_BYTES],
        store: &Store,
        plan: &Loop,
    ) -> bool {
        let (flow, endpoint) = (&mut self.flows[connection], &mut set.ends[connection]);
        if !flow.has_room() {
            return false;
        }
        let slot = flow.slot();
        store.write(request, endpoint.payload(slot));
        if !flow.post(endpoint, slot, plan.size) {
            return false;
        }
        endpoint.flush();
        set.stir(connection);
        self.free -= 1;
        self.used.reads += 1;
        true
    }
}

/// The server. With `TIMED` each look at all connections and each wait for a buffer lies between
/// two readings of the clock, which the server does not take otherwise.
pub(super) fn server<E: Endpoint, C: Clock, const TIMED: bool>(
    context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    store: &Store,
) -> Ended {
    let LoopContext { endpoint: set, mut waiter, clock, gate, plan, recorder, .. } = context;
    let scope = Scope { clock, gate, plan };
    let mut pool = SharedPool::of(set, store);
    let mut turns = ServerTurns::new(&waiter, clock);
    let ended = loop {
        let may_sleep = turns.may_sleep(&waiter, clock);
        let how = (true, may_sleep && pool.arrived == 0);
        let found = pool.timed::<_, _, _, TIMED>(set, &mut waiter, how, clock);
        if pool.answer::<_, _, TIMED>(set, scope, store) && pool.ended.is_none() {
            break Ended::Stopped;
        }
        if found.any {
            recorder.handled(pool.used.reads);
        }
        turns.looked(found.any, &waiter, clock);
        if let Some(ended) = pool.ended.or_else(|| turns.ended(may_sleep, gate)) {
            break ended;
        }
    };
    recorder.seen.received = pool.used.reads;
    recorder.pool = pool.used;
    ended
}
