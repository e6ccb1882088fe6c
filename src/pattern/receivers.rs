//! Threads that take the replies of a port of `rpc` while the port sends: a reply is stamped when
//! it is there, however busy the port is. Each has handles of its own on a share of the port's
//! connections, and hands over what it saw through a ring that neither side locks.

use super::load::{Line, Looked};
use super::rpc::{Asking, awaited, head_of};
use super::waiter::{Any, Waiter};
use super::{Ended, Loop, payload};
use crate::clock::{Clock, Ticks};
use crate::plan::load::MOST_OUTSTANDING;
use crate::plan::rpc::Draws;
use crate::transport::fan::{self, Fan};
use crate::transport::{Endpoint, Events, Link};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// A connection that works, and one that was closed; others failed with an errno.
const UP: i64 = -1;
const CLOSED: i64 = -2;

/// A reply: the low half of its number, its length, whether it is broken, and when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    low: u32,
    length: u32,
    broken: bool,
    receive: Ticks,
}

/// What one receiver thread and its port share.
pub struct Handover {
    /// What was seen, as two words each.
    cells: Box<[[AtomicU64; 2]]>,
    /// How many have been put in and taken out.
    put: AtomicU64,
    taken: AtomicU64,
    link: AtomicI64,
    over: AtomicBool,
}

impl Default for Handover {
    fn default() -> Self {
        let cell = || [AtomicU64::new(0), AtomicU64::new(0)];
        Handover {
            cells: (0..MOST_OUTSTANDING).map(|_| cell()).collect(),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            link: AtomicI64::new(UP),
            over: AtomicBool::new(false),
        }
    }
}

impl Handover {
    /// Puts one in. Where there is no room the port is far behind, and it is waited for.
    #[inline]
    fn put(&self, seen: Seen) {
        let at = self.put.load(Ordering::Relaxed);
        while at - self.taken.load(Ordering::Acquire) >= self.cells.len() as u64 {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
        let [word, receive] = &self.cells[at as usize % self.cells.len()];
        // A length is below 2^31: a message is at most 64 MiB.
        let broken = u64::from(seen.broken) << 63;
        let packed = u64::from(seen.low) | u64::from(seen.length) << 32 | broken;
        word.store(packed, Ordering::Relaxed);
        receive.store(seen.receive.0, Ordering::Relaxed);
        // Release: whoever sees the count sees the words.
        self.put.store(at + 1, Ordering::Release);
    }

    /// Takes the oldest out.
    #[inline]
    fn take(&self) -> Option<Seen> {
        let at = self.taken.load(Ordering::Relaxed);
        if at == self.put.load(Ordering::Acquire) {
            return None;
        }
        let [word, receive] = &self.cells[at as usize % self.cells.len()];
        let packed = word.load(Ordering::Relaxed);
        let seen = Seen {
            low: packed as u32,
            length: (packed >> 32) as u32 & (u32::MAX >> 1),
            broken: packed >> 63 != 0,
            receive: Ticks(receive.load(Ordering::Relaxed)),
        };
        // Release: the words have been read.
        self.taken.store(at + 1, Ordering::Release);
        Some(seen)
    }

    /// Ends the thread that takes replies, when it looks.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn ended(&self) -> Option<Ended> {
        match self.link.load(Ordering::Relaxed) {
            UP => None,
            CLOSED => Some(Ended::Closed),
            errno => Some(Ended::Failed(errno as i32)),
        }
    }
}

/// The loop of a thread that takes replies, until the port has ended or a connection has.
///
/// A sleep comes back now and then by itself, so that the end is noticed (`Fan::watching`).
pub fn receiver<E: Endpoint, C: Clock>(
    fan: &mut Fan<E>,
    mut waiter: Any,
    clock: C,
    plan: &Loop,
    handover: &Handover,
) {
    let mut events = Events::default();
    let mut sleepy = clock.now() + waiter.spin();
    while !handover.over.load(Ordering::Relaxed) {
        let mut any = false;
        let sleeps = waiter.sleeps() && (waiter.spin().0 == 0 || clock.now() >= sleepy);
        fan.look(sleeps, |_, endpoint, sleeps| {
            if sleeps {
                waiter.once(endpoint, &mut events);
            } else {
                let _ = endpoint.poll(&mut events);
            }
            if !events.arrivals().is_empty() {
                any = true;
                let receive = clock.now();
                for arrival in events.arrivals() {
                    let message = &endpoint.payload(arrival.slot)[..arrival.length as usize];
                    let head = head_of(message);
                    let broken = plan.check && !payload::verify(message, head);
                    let (low, length) = (head as u32, arrival.length);
                    handover.put(Seen { low, length, broken, receive });
                }
            }
            match events.link {
                Link::Up => {}
                Link::Closed => handover.link.store(CLOSED, Ordering::Relaxed),
                Link::Failed(errno) => handover.link.store(errno.into(), Ordering::Relaxed),
            }
            fan::Looked::of(&events, 0)
        });
        if any && waiter.spin().0 > 0 {
            sleepy = clock.now() + waiter.spin();
        }
        if handover.ended().is_some() {
            return;
        }
    }
}

/// The connections of a port whose replies other threads take.
pub struct Split<'a, E> {
    asking: Asking<'a, E>,
    handovers: &'a [Handover],
    events: Events,
}

impl<'a, E: Endpoint> Split<'a, E> {
    /// Over these connections, of which these threads take the replies.
    pub fn over(fan: &'a mut Fan<E>, draws: Draws, handovers: &'a [Handover]) -> Split<'a, E> {
        let mut events = Events::default();
        // Only completions: what arrives is for others.
        events.limit(0);
        Split { asking: Asking::over(fan, draws), handovers, events }
    }
}

impl<E: Endpoint> Line for Split<'_, E> {
    #[inline(always)]
    fn has_room(&self, sequence: u64) -> bool {
        self.asking.has_room(sequence)
    }

    #[inline(always)]
    fn ask<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        self.asking.ask(clock, sequence, plan).map(|(_, submit)| submit)
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.asking.is_settled()
    }

    #[inline]
    fn look<W: Waiter, C: Clock>(
        &mut self,
        _: &mut W,
        _: bool,
        _: C,
        _: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let Split { asking: Asking { fan, slots, draws, asked, unsettled }, events, .. } = self;
        let (mut any, mut ended) = (false, None);
        let lanes = if *unsettled > 0 { slots.len() } else { 0 };
        for (lane, slots) in slots[..lanes].iter_mut().enumerate() {
            if slots.is_settled() {
                continue;
            }
            any |= fan.end(lane).poll(events);
            slots.completed(events);
            *unsettled = unsettled.saturating_sub(events.completed.into());
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
        }
        for handover in self.handovers {
            while let Some(seen) = handover.take() {
                any = true;
                let (sequence, awaited) = awaited(draws, *asked, seen.low);
                take(sequence, seen.receive, seen.broken || seen.length != awaited);
            }
            ended = ended.or(handover.ended());
        }
        Looked { any, ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_handed_over_in_order_and_whole() {
        let handover = Handover::default();
        let seen = |number: u64| Seen {
            low: (number as u32).wrapping_mul(0x9e37_79b9),
            length: number as u32 % 70_000_000,
            broken: number.is_multiple_of(3),
            receive: Ticks(u64::MAX - number),
        };
        // More than there are cells, so that the ring turns.
        let total = 3 * u64::from(MOST_OUTSTANDING);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..total).for_each(|number| handover.put(seen(number))));
            let mut number = 0;
            while number < total {
                if let Some(found) = handover.take() {
                    assert_eq!(found, seen(number));
                    number += 1;
                }
            }
        });
        assert_eq!(handover.take(), None);
    }

    #[test]
    fn a_thread_that_has_no_room_ends_with_the_port() {
        let handover = Handover::default();
        let one = Seen { low: 1, length: 8, broken: false, receive: Ticks(1) };
        (0..MOST_OUTSTANDING).for_each(|_| handover.put(one));
        handover.end();
        handover.put(one);
        assert_eq!(handover.take(), Some(one));
    }
}
