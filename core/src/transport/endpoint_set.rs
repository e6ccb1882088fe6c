//! Several endpoints of one thread, polled together.
//!
//! Where all of them have file descriptors, epoll (level-triggered) says which ones are readable;
//! else each is polled in turn.

use super::{Endpoint, Events, Link};
use crate::units::Span;
use rustix::event::epoll;
use rustix::event::{Timespec, epoll::EventData};
use std::any::Any;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Most endpoints that one epoll_wait reports.
const AT_ONCE: usize = 64;
/// An epoll_wait that does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Several connected ends.
pub struct EndpointSet<E> {
    /// The ends.
    pub ends: Box<[E]>,
    turns: Turns,
}

/// Which ends are to be looked at.
#[derive(Default)]
struct Turns {
    /// An epoll of all ends.
    watch: Option<OwnedFd>,
    /// Timeout of a sleep, where messages may be lost.
    patience: Option<Timespec>,
    /// Ends that are polled whatever epoll says: those with posts that have not completed, or with
    /// messages for which a poll had no room.
    restless: Vec<u32>,
    is_restless: Box<[bool]>,
    /// The ends of this turn; kept for its memory.
    turn: Vec<u32>,
}

impl<E: Endpoint> EndpointSet<E> {
    /// Over these ends; a sleep ends after `patience`, where there is one.
    ///
    /// # Errors
    /// epoll fails.
    pub fn new(ends: Vec<E>, patience: Option<Span>) -> io::Result<EndpointSet<E>> {
        let watched = ends.len() > 1 && ends.iter().all(|end| end.descriptor().is_some());
        EndpointSet::watched(ends, watched, patience)
    }

    /// The same, with epoll where `watched` says so: even for a single end, whose sleeps then end
    /// after `patience`.
    ///
    /// # Errors
    /// epoll fails.
    pub fn watched(
        ends: Vec<E>,
        watched: bool,
        patience: Option<Span>,
    ) -> io::Result<EndpointSet<E>> {
        let count = ends.len();
        let turns = Turns {
            watch: watched.then(|| watch(&ends)).transpose()?,
            patience: patience.and_then(|span| span.duration().try_into().ok()),
            restless: Vec::with_capacity(count),
            is_restless: vec![false; count].into_boxed_slice(),
            turn: Vec::with_capacity(count + AT_ONCE),
        };
        Ok(EndpointSet { ends: ends.into_boxed_slice(), turns })
    }

    /// To be called after a post to an end: it is polled until it is quiet.
    #[inline(always)]
    pub fn stir(&mut self, number: usize) {
        let turns = &mut self.turns;
        if !turns.is_restless[number] {
            turns.is_restless[number] = true;
            turns.restless.push(number as u32);
        }
    }

    /// Sleeps until an end has something or, if `sends` says so of it, can take more; until a
    /// signal comes; or for so long. Returns at once where the kernel does not watch the ends.
    pub fn sleep(&mut self, most: Span, sends: impl Fn(usize) -> bool) {
        let EndpointSet { ends, turns } = self;
        let Some(watch) = &turns.watch else { return };
        let ask = |flags: epoll::EventFlags| {
            for (number, end) in ends.iter().enumerate().filter(|(number, _)| sends(*number)) {
                let Some(descriptor) = end.descriptor() else { continue };
                // One that cannot be asked for is asked again when the sleep is over.
                let _ = epoll::modify(watch, descriptor, EventData::new_u64(number as u64), flags);
            }
        };
        ask(epoll::EventFlags::IN | epoll::EventFlags::OUT);
        let patience = most.duration().try_into().unwrap_or(NOW);
        let mut room = [const { MaybeUninit::uninit() }; 1];
        // What it is that has come, the next look finds.
        let _ = epoll::wait(watch, &mut room, Some(&patience));
        ask(epoll::EventFlags::IN);
    }

    /// Calls `at` for each end that may have something. `at` polls it, or waits where its last
    /// argument is true, and returns whether it [`is_restless`]. With `sleeps` this returns when an
    /// end has something or a signal comes; else at once.
    #[inline]
    pub fn look(&mut self, sleeps: bool, at: impl FnMut(usize, &mut E, bool) -> bool) {
        self.look_from(0, sleeps, at);
    }

    /// The same, beginning with this end where each is polled in turn; epoll has an order of its
    /// own, in which an end that was reported goes behind those that were not.
    #[inline]
    pub fn look_from(
        &mut self,
        first: usize,
        sleeps: bool,
        mut at: impl FnMut(usize, &mut E, bool) -> bool,
    ) {
        let EndpointSet { ends, turns } = self;
        let Some(watch) = &turns.watch else {
            let sleeps = sleeps && ends.len() == 1;
            let (before, from) = ends.split_at_mut(first.min(ends.len()));
            for (number, end) in from.iter_mut().enumerate() {
                let _ = at(before.len() + number, end, sleeps);
            }
            for (number, end) in before.iter_mut().enumerate() {
                let _ = at(number, end, sleeps);
            }
            return;
        };
        turns.turn.clear();
        turns.turn.append(&mut turns.restless);
        let is_awake = !sleeps || !turns.turn.is_empty();
        let patience = if is_awake { Some(&NOW) } else { turns.patience.as_ref() };
        // EINTR comes back with nothing.
        let mut room = [const { MaybeUninit::uninit() }; AT_ONCE];
        let ready = epoll::wait(watch, &mut room, patience);
        let ready = ready.map_or(&[][..], |(ready, _)| ready);
        for event in ready {
            let number = event.data.u64() as u32;
            if !turns.is_restless[number as usize] {
                turns.turn.push(number);
            }
        }
        for number in &turns.turn {
            let place = *number as usize;
            let again = at(place, &mut ends[place], false);
            turns.is_restless[place] = again;
            if again {
                turns.restless.push(*number);
            }
        }
    }
}

impl EndpointSet<Box<dyn Endpoint>> {
    /// Takes the ends out as their own type, where all are of type `E`. The set is empty until they
    /// are put back. Both allocate.
    pub fn take_typed<E: Endpoint>(&mut self) -> Option<EndpointSet<E>> {
        if !self.ends.iter().all(|end| (&**end as &dyn Any).is::<E>()) {
            return None;
        }
        let typed = |end: Box<dyn Endpoint>| Some(*(end as Box<dyn Any>).downcast::<E>().ok()?);
        let ends = std::mem::take(&mut self.ends).into_iter().filter_map(typed).collect();
        Some(EndpointSet { ends, turns: std::mem::take(&mut self.turns) })
    }

    /// Puts them back.
    pub fn put_back<E: Endpoint>(&mut self, typed: EndpointSet<E>) {
        self.ends = typed.ends.into_iter().map(|end| Box::new(end) as _).collect();
        self.turns = typed.turns;
    }
}

fn watch<E: Endpoint>(ends: &[E]) -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, end) in ends.iter().enumerate() {
        let Some(descriptor) = end.descriptor() else { continue };
        let data = EventData::new_u64(number as u64);
        epoll::add(&epoll, descriptor, data, epoll::EventFlags::IN)?;
    }
    Ok(epoll)
}

/// Whether an end must be polled again after these events, whatever epoll says, with this many
/// posts outstanding.
#[inline(always)]
pub fn is_restless(events: &Events, on_the_way: u32) -> bool {
    on_the_way > 0 || events.is_full() || events.link != Link::Up
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::null::NullEndpoint;
    use crate::transport::shm::ShmEndpoint;
    use crate::transport::{Blob, Role, Setup, Slot, Traffic, TransportKind, Wait};

    #[test]
    fn ends_are_taken_out_by_their_own_type_alone_and_put_back() {
        let end = |size| {
            let setup = Setup::new(Role::Client, Traffic::Echo { every: 1 }, Wait::Busy, size);
            let opening = TransportKind::INSTRUMENT.open(&setup).unwrap();
            opening.connect(&Blob::default()).unwrap().endpoint
        };
        let mut set = EndpointSet::new(vec![end(8), end(16)], None).unwrap();
        assert!(set.take_typed::<ShmEndpoint>().is_none());
        let mut typed = set.take_typed::<NullEndpoint>().unwrap();
        assert_eq!((typed.ends.len(), set.ends.len()), (2, 0));
        typed.ends[1].payload(Slot::sending(0))[15] = 7;
        set.put_back(typed);
        assert_eq!(set.ends.len(), 2);
        assert_eq!(set.ends[1].payload(Slot::sending(0))[15], 7);
    }
}
