//! Threads that take the replies of a port of `rpc` while the port sends: a reply is stamped when
//! it is there, however busy the port is. Each has handles of its own on a share of the port's
//! connections, and hands over what it saw through a ring that neither side locks.

use super::draws::Draws;
use super::loops::{Asking, awaited, head_of};
use crate::clock::{Clock, Ticks};
use crate::loops::waiter::{AnyWaiter, Waiter};
use crate::loops::{Ended, Loop, payload};
use crate::pattern::load::{Line, Looked, MOST_OUTSTANDING};
use crate::transport::endpoint_set::{self, EndpointSet};
use crate::transport::{Endpoint, Events, Link};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

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

/// What both ends of a handover see.
struct Shared {
    link: AtomicI64,
    over: AtomicBool,
}

/// The end of a thread that takes replies.
pub struct Giving {
    ring: Producer<Seen>,
    shared: Arc<Shared>,
}

/// The end of its port.
pub struct Given {
    ring: Consumer<Seen>,
    shared: Arc<Shared>,
}

/// The two ends of what a thread that takes replies hands over to its port.
pub fn handover() -> (Giving, Given) {
    let (mut put, mut take) = RingBuffer::new(MOST_OUTSTANDING as usize);
    // Each page is touched here: in the loop the first touch would be a fault.
    let none = Seen { low: 0, length: 0, broken: false, receive: Ticks(0) };
    while put.push(none).is_ok() {}
    while take.pop().is_ok() {}
    let shared = Arc::new(Shared { link: AtomicI64::new(UP), over: AtomicBool::new(false) });
    (Giving { ring: put, shared: Arc::clone(&shared) }, Given { ring: take, shared })
}

impl Giving {
    /// Puts one in. Where there is no room the port is far behind, and it is waited for.
    #[inline]
    fn put(&mut self, seen: Seen) {
        while self.ring.push(seen).is_err() && !self.is_over() {
            std::hint::spin_loop();
        }
    }

    fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    /// Says so where a connection works no more; whether it does.
    fn works(&self, link: Link) -> bool {
        let says = |word| self.shared.link.store(word, Ordering::Release);
        match link {
            Link::Up => return true,
            Link::Closed => says(CLOSED),
            Link::Failed(errno) => says(errno.into()),
        }
        false
    }
}

impl Given {
    /// Takes the oldest out.
    #[inline]
    fn take(&mut self) -> Option<Seen> {
        self.ring.pop().ok()
    }

    /// Ends the thread that takes replies, when it looks.
    pub fn end(&self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }

    fn ended(&self) -> Option<Ended> {
        match self.shared.link.load(Ordering::Acquire) {
            UP => None,
            CLOSED => Some(Ended::Closed),
            errno => Some(Ended::Failed(errno as i32)),
        }
    }
}

/// The loop of a thread that takes replies, until the port has ended or a connection has.
///
/// A sleep comes back now and then by itself, so that the end is noticed (`EndpointSet::watching`).
pub fn receiver<E: Endpoint, C: Clock>(
    set: &mut EndpointSet<E>,
    mut waiter: AnyWaiter,
    clock: C,
    plan: &Loop,
    mut giving: Giving,
) {
    let mut events = Events::default();
    let mut sleepy = clock.now() + waiter.spin();
    let mut works = true;
    while works && !giving.is_over() {
        let mut any = false;
        let sleeps = waiter.sleeps() && (waiter.spin().0 == 0 || clock.now() >= sleepy);
        set.look(sleeps, |_, endpoint, sleeps| {
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
                    giving.put(Seen { low, length, broken, receive });
                }
            }
            works &= giving.works(events.link);
            endpoint_set::Looked::of(&events, 0)
        });
        if any && waiter.spin().0 > 0 {
            sleepy = clock.now() + waiter.spin();
        }
    }
}

/// The connections of a port whose replies other threads take.
pub struct Split<'a, E> {
    asking: Asking<'a, E>,
    given: &'a mut [Given],
    events: Events,
}

impl<'a, E: Endpoint> Split<'a, E> {
    /// Over these connections, of which these threads take the replies.
    pub fn over(set: &'a mut EndpointSet<E>, draws: Draws, given: &'a mut [Given]) -> Split<'a, E> {
        let mut events = Events::default();
        // Only completions: what arrives is for others.
        events.limit(0);
        Split { asking: Asking::over(set, draws), given, events }
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
        let Split { asking: Asking { set, slots, draws, asked, unsettled }, events, .. } = self;
        let (mut any, mut ended) = (false, None);
        let lanes = if *unsettled > 0 { slots.len() } else { 0 };
        for (lane, slots) in slots[..lanes].iter_mut().enumerate() {
            if slots.is_settled() {
                continue;
            }
            any |= set.end(lane).poll(events);
            slots.completed(events);
            *unsettled = unsettled.saturating_sub(events.completed.into());
            if events.link != Link::Up {
                ended = Some(Ended::of(events.link));
            }
        }
        for given in self.given.iter_mut() {
            // Read before the ring is: what came until then is in it.
            ended = ended.or(given.ended());
            while let Some(seen) = given.take() {
                any = true;
                let (sequence, awaited) = awaited(draws, *asked, seen.low);
                take(sequence, seen.receive, seen.broken || seen.length != awaited);
            }
        }
        Looked { any, ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_no_room_ends_with_the_port() {
        let (mut giving, mut given) = handover();
        let one = Seen { low: 1, length: 8, broken: false, receive: Ticks(1) };
        (0..MOST_OUTSTANDING).for_each(|_| giving.put(one));
        given.end();
        giving.put(Seen { low: 2, ..one });
        let all: Vec<Seen> = std::iter::from_fn(|| given.take()).collect();
        assert_eq!(all, vec![one; MOST_OUTSTANDING as usize]);
    }

    #[test]
    fn how_a_connection_ended_is_told() {
        let (giving, given) = handover();
        assert!(giving.works(Link::Up));
        assert_eq!(given.ended(), None);
        assert!(!giving.works(Link::Failed(104)));
        assert_eq!(given.ended(), Some(Ended::Failed(104)));
        assert!(!giving.works(Link::Closed));
        assert_eq!(given.ended(), Some(Ended::Closed));
    }
}
