//! The server of `load`: a table of objects in memory, a request for one of them, and the pools of
//! buffers through which requests come and answers go.

use super::spec::{Buffers, HEAD, MOST_BUFFERS, Spec};
use crate::prelude::*;
use std::collections::HashMap;
use wiregauge_measure::loops::waiter::{POLLS, await_arrivals, look};
use wiregauge_sample::recorder::PoolUse;
use wiregauge_transport::MOST_EVENTS;

/// The same as a length of arrays.
pub(super) const HEAD_BYTES: usize = HEAD as usize;

/// The key of an object: a bijection of its number, so that keys say nothing of places.
#[inline(always)]
fn key_of(object: u64) -> u64 {
    let x = object.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Writes a request: its number, and the key of the object that it asks for, drawn from the number.
#[inline(always)]
pub fn ask(message: &mut [u8], sequence: u64, objects: u64) {
    // The high half of a product: uniform without a division.
    let object = ((u128::from(key_of(sequence)) * u128::from(objects)) >> 64) as u64;
    message[..8].copy_from_slice(&sequence.to_le_bytes());
    message[8..HEAD_BYTES].copy_from_slice(&key_of(object).to_le_bytes());
}

/// The key of the object that a request asks for.
#[inline(always)]
fn key_in(head: &[u8; HEAD_BYTES]) -> u64 {
    head.last_chunk().map_or(0, |key| u64::from_le_bytes(*key))
}

/// Whether an answer is the object that the request of this number asked for.
pub fn is_answer(message: &[u8], sequence: u64, objects: u64) -> bool {
    let mut asked = [0; HEAD_BYTES];
    ask(&mut asked, sequence, objects);
    let key = key_in(&asked);
    message.get(..HEAD_BYTES) == Some(&asked[..])
        && message[HEAD_BYTES..].iter().enumerate().all(|(at, byte)| *byte == content(key, at))
}

/// A byte of the object of this key.
fn content(key: u64, at: usize) -> u8 {
    (key.wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(at as u32 & 63) >> 56) as u8 ^ at as u8
}

/// Objects by their keys.
pub struct Store {
    places: HashMap<u64, u32>,
    memory: Box<[u8]>,
    size: usize,
    /// The pools through which requests and answers go, where they are measured.
    buffers: Option<Buffers>,
}

impl Store {
    /// The table of a case, every byte written.
    pub fn of(load: &Spec) -> Store {
        let size = load.object_size.0 as usize;
        let mut memory = vec![0; size * load.objects as usize].into_boxed_slice();
        let mut places = HashMap::with_capacity(load.objects as usize);
        for (object, bytes) in (0..load.objects).zip(memory.chunks_exact_mut(size.max(1))) {
            let key = key_of(object);
            places.insert(key, object as u32);
            bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = content(key, at));
        }
        Store { places, memory, size, buffers: load.buffers }
    }

    /// The pools through which requests and answers go, where they are measured.
    pub(super) fn buffers(&self) -> Option<Buffers> {
        self.buffers
    }

    /// Writes the answer to a request.
    #[inline(always)]
    pub(super) fn write(&self, request: &[u8; HEAD_BYTES], message: &mut [u8]) {
        let (head, body) = message.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(request);
        if let Some(object) = self.get(key_in(request)) {
            body.copy_from_slice(object);
        }
    }

    #[inline(always)]
    fn get(&self, key: u64) -> Option<&[u8]> {
        let at = *self.places.get(&key)? as usize * self.size;
        self.memory.get(at..at + self.size)
    }
}

/// The pool above the transport.
struct Pool {
    slot: u32,
    transmit: u32,
    free: u32,
    receive: usize,
    used: PoolUse,
    /// Requests that have arrived: number and key.
    requests: [[u8; HEAD_BYTES]; MOST_EVENTS],
    arrived: usize,
}

impl Pool {
    fn of<E: Endpoint>(endpoint: &E, asked: Option<Buffers>) -> Pool {
        let transmit = asked.map_or(MOST_BUFFERS, |asked| asked.transmit).min(endpoint.slots());
        let receive = asked.map_or(MOST_EVENTS, |asked| asked.receive as usize);
        Pool {
            slot: 0,
            transmit,
            free: transmit,
            receive: receive.min(MOST_EVENTS),
            used: PoolUse::default(),
            requests: [[0; HEAD_BYTES]; MOST_EVENTS],
            arrived: 0,
        }
    }

    /// Takes what a poll brought; requests leave the transport's memory for the pool's.
    #[inline(always)]
    fn take<E: Endpoint>(&mut self, endpoint: &mut E, events: &Events) {
        self.free = (self.free + events.completed).min(self.transmit);
        for arrival in events.arrivals() {
            let message = endpoint.payload(arrival.slot);
            let request = self.requests.get_mut(self.arrived);
            if let Some((head, request)) = message.first_chunk().zip(request) {
                *request = *head;
                self.arrived += 1;
            }
        }
    }
}

/// The server. With `TIMED` each poll and each wait for a buffer lies between two readings of the
/// clock, which the server does not take otherwise.
pub fn server<E: Endpoint, W: Waiter, C: Clock, const TIMED: bool>(
    context: LoopContext<'_, '_, E, W, C>,
    store: &Store,
) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let scope = Scope { clock, gate, plan };
    let mut events = Events::default();
    let mut pool = Pool::of(endpoint, store.buffers);
    let mut drained: Option<Ticks> = None;
    let ended = loop {
        events.limit(pool.receive);
        let reads = pool.used.reads;
        let ended = await_arrivals(scope, &mut drained, reads, |until| match TIMED {
            true => polls(endpoint, &mut events, scope, until, &mut pool),
            false => waiter.next(endpoint, &mut events, clock, gate, until),
        });
        if let Some(ended) = ended {
            break ended;
        }
        pool.used.request_polls += u64::from(TIMED && !events.arrivals().is_empty());
        pool.take(endpoint, &events);
        if answer::<_, _, TIMED>(endpoint, &mut events, scope, store, &mut pool) {
            break Ended::Stopped;
        }
        endpoint.flush();
        recorder.handled(pool.used.reads);
        if pool.used.reads >= plan.messages {
            break Ended::Count;
        }
        if events.link != Link::Up {
            break Ended::of(events.link);
        }
    };
    recorder.seen.received = pool.used.reads;
    recorder.pool = pool.used;
    see_out(endpoint, &mut events, scope, &mut pool);
    ended
}

/// Polls until something has happened, each between two readings of the clock.
#[inline]
fn polls<E: Endpoint, C: Clock>(
    endpoint: &mut E,
    events: &mut Events,
    scope: Scope<'_, C>,
    until: Option<Ticks>,
    pool: &mut Pool,
) -> Waited {
    let Scope { clock, gate, .. } = scope;
    let mut before = clock.now();
    loop {
        for _ in 0..POLLS {
            let some = endpoint.poll(events);
            let after = clock.now();
            pool.used.polled(events.completed, after - before);
            if some {
                return Waited::Something;
            }
            before = after;
        }
        if let Some(reason) = look(clock, gate, until) {
            return reason;
        }
    }
}

/// Answers the requests that have arrived; whether it was told to stop meanwhile.
///
/// A poll for a buffer brings completions alone: requests stay where they are until there is a
/// receive buffer for them.
#[inline]
fn answer<E: Endpoint, C: Clock, const TIMED: bool>(
    endpoint: &mut E,
    events: &mut Events,
    scope: Scope<'_, C>,
    store: &Store,
    pool: &mut Pool,
) -> bool {
    let Scope { clock, gate, plan } = scope;
    events.limit(0);
    for number in 0..pool.arrived {
        let wished = if TIMED { clock.now() } else { Ticks(0) };
        pool.used.buffer_waits += u64::from(pool.free == 0);
        let (empty, full) = (pool.used.empty_ticks, pool.used.full_ticks);
        while pool.free == 0 {
            if reap::<_, _, TIMED>(endpoint, events, clock, pool) || gate.is_stopped() {
                return gate.is_stopped();
            }
        }
        if TIMED {
            pool.used.buffer_empty_ticks += pool.used.empty_ticks - empty;
            pool.used.buffer_full_ticks += pool.used.full_ticks - full;
            pool.used.buffer_ticks += (clock.now() - wished).0;
        }
        let slot = Slot::sending(pool.slot);
        store.write(&pool.requests[number], endpoint.payload(slot));
        while endpoint.post(slot, plan.size) == Posted::Full {
            if reap::<_, _, TIMED>(endpoint, events, clock, pool) || gate.is_stopped() {
                return gate.is_stopped();
            }
        }
        pool.free -= 1;
        pool.slot = if pool.slot + 1 == pool.transmit { 0 } else { pool.slot + 1 };
        pool.used.reads += 1;
    }
    pool.arrived = 0;
    false
}

/// One poll for completions; whether the connection has ended.
#[inline]
fn reap<E: Endpoint, C: Clock, const TIMED: bool>(
    endpoint: &mut E,
    events: &mut Events,
    clock: C,
    pool: &mut Pool,
) -> bool {
    endpoint.flush();
    let before = if TIMED { clock.now() } else { Ticks(0) };
    let _ = endpoint.poll(events);
    if TIMED {
        pool.used.polled(events.completed, clock.now() - before);
    }
    pool.free = (pool.free + events.completed).min(pool.transmit);
    events.link != Link::Up
}

/// Sees the last answers out: what the transport could not take at once goes with later polls.
fn see_out<E: Endpoint, C: Clock>(
    endpoint: &mut E,
    events: &mut Events,
    Scope { clock, gate, plan }: Scope<'_, C>,
    pool: &mut Pool,
) {
    let until = clock.now() + plan.drain;
    while pool.free < pool.transmit && !gate.is_stopped() && clock.now() < until {
        if reap::<_, _, false>(endpoint, events, clock, pool) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_asks_for_an_object_that_is_there_and_all_are_asked_for() {
        let load = Spec { objects: 50, ..Spec::default() };
        let store = Store::of(&load);
        let mut asked = HashMap::new();
        for sequence in 0..5000 {
            let mut message = vec![0; load.message().0 as usize];
            ask(&mut message, sequence, load.objects);
            let key = u64::from_le_bytes(message[8..16].try_into().unwrap());
            let object = store.get(key).unwrap();
            message[HEAD_BYTES..].copy_from_slice(object);
            assert!(is_answer(&message, sequence, load.objects));
            assert!(!is_answer(&message, sequence + 1, load.objects));
            message[HEAD_BYTES + 7] ^= 1;
            assert!(!is_answer(&message, sequence, load.objects));
            *asked.entry(key).or_insert(0) += 1;
        }
        assert_eq!(asked.len(), 50);
        assert!(asked.values().all(|times| (50..150).contains(times)), "{asked:?}");
    }
}
