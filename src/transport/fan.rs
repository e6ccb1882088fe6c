//! Several endpoints of one thread, looked at together: those of an end that speaks to many.
//!
//! Where all of them have descriptors the kernel says which have something (epoll,
//! level-triggered); else each is polled in turn.

use super::{Endpoint, Events, Link};
use crate::units::Span;
use rustix::event::epoll;
use rustix::event::{Timespec, epoll::EventData};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Most endpoints that one look of the kernel tells of.
const AT_ONCE: usize = 64;
/// A look that does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Several connected ends.
pub struct Fan<E> {
    ends: Box<[E]>,
    watch: Option<Watch>,
    /// A sleep comes back after so long, where messages may be lost.
    patience: Option<Timespec>,
    /// Ends that are polled whatever the kernel says: with posts that have not completed, or with
    /// messages that a poll had no room for.
    restless: Vec<u32>,
    is_restless: Box<[bool]>,
    /// What is looked at in this turn; kept for its memory.
    turn: Vec<u32>,
}

struct Watch(OwnedFd);

/// What became of an end that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// There is nothing more of it until something comes.
    Quiet,
    /// It must be looked at again, whatever comes.
    Restless,
}

impl<E: Endpoint> Fan<E> {
    /// Over these ends. A sleep comes back after `patience`, where there is one.
    ///
    /// # Errors
    /// The kernel does not watch them.
    pub fn new(ends: Vec<E>, patience: Option<Span>) -> io::Result<Fan<E>> {
        let watched = ends.len() > 1 && ends.iter().all(|end| end.descriptor().is_some());
        let watch = if watched { Some(Watch::over(&ends)?) } else { None };
        Ok(Fan::of(ends, watch, patience))
    }

    /// The same, watched by the kernel even where there is one alone, so that each sleep comes back
    /// after `patience`.
    ///
    /// # Errors
    /// The kernel does not watch them.
    pub fn watching(ends: Vec<E>, patience: Span) -> io::Result<Fan<E>> {
        let watch = Watch::over(&ends)?;
        Ok(Fan::of(ends, Some(watch), Some(patience)))
    }

    fn of(ends: Vec<E>, watch: Option<Watch>, patience: Option<Span>) -> Fan<E> {
        let count = ends.len();
        Fan {
            ends: ends.into_boxed_slice(),
            watch,
            patience: patience.and_then(|span| span.duration().try_into().ok()),
            restless: Vec::with_capacity(count),
            is_restless: vec![false; count].into_boxed_slice(),
            turn: Vec::with_capacity(count + AT_ONCE),
        }
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    #[inline(always)]
    pub fn end(&mut self, number: usize) -> &mut E {
        &mut self.ends[number]
    }

    /// All of them.
    pub fn ends(&self) -> &[E] {
        &self.ends
    }

    /// Whether it can sleep until something comes to any of them.
    pub fn can_sleep(&self) -> bool {
        self.watch.is_some() || self.ends.len() == 1
    }

    /// An end was posted to: it is looked at until it says that it is quiet.
    #[inline(always)]
    pub fn stir(&mut self, number: usize) {
        if !self.is_restless[number] {
            self.is_restless[number] = true;
            self.restless.push(number as u32);
        }
    }

    /// Looks at each end that may have something. `at` polls it (or waits, where it is told to) and
    /// says whether it is quiet. With `sleeps` it comes back when something has come, or when a
    /// signal has; else at once.
    #[inline]
    pub fn look(&mut self, sleeps: bool, mut at: impl FnMut(usize, &mut E, bool) -> Looked) {
        let Some(watch) = &self.watch else {
            let sleeps = sleeps && self.ends.len() == 1;
            for (number, end) in self.ends.iter_mut().enumerate() {
                let _ = at(number, end, sleeps);
            }
            return;
        };
        self.turn.clear();
        self.turn.append(&mut self.restless);
        let is_awake = !sleeps || !self.turn.is_empty();
        let patience = if is_awake { Some(&NOW) } else { self.patience.as_ref() };
        // EINTR comes back with nothing.
        let mut room = [const { MaybeUninit::uninit() }; AT_ONCE];
        let ready = epoll::wait(&watch.0, &mut room, patience);
        let ready = ready.map_or(&[][..], |(ready, _)| ready);
        for event in ready {
            let number = event.data.u64() as u32;
            if !self.is_restless[number as usize] {
                self.turn.push(number);
            }
        }
        for place in 0..self.turn.len() {
            let number = self.turn[place] as usize;
            let again = at(number, &mut self.ends[number], false) == Looked::Restless;
            self.is_restless[number] = again;
            if again {
                self.restless.push(number as u32);
            }
        }
    }
}

impl Watch {
    fn over<E: Endpoint>(ends: &[E]) -> io::Result<Watch> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, end) in ends.iter().enumerate() {
            let Some(descriptor) = end.descriptor() else { continue };
            epoll::add(
                &epoll,
                descriptor,
                EventData::new_u64(number as u64),
                epoll::EventFlags::IN,
            )?;
        }
        Ok(Watch(epoll))
    }
}

impl Looked {
    /// Of an end whose poll gave these events, with so many posts that have not completed.
    #[inline(always)]
    pub fn of(events: &Events, on_the_way: u32) -> Looked {
        match on_the_way > 0 || events.is_full() || events.link != Link::Up {
            true => Looked::Restless,
            false => Looked::Quiet,
        }
    }
}
