//! The data path of `null`. An arrival lies in the slot that it was posted from: writing that slot
//! again ends it.

use crate::{Endpoint, Events, MOST_EVENTS, Posted, Setup, Slot};

/// An end that is its own other end: there is nothing to connect.
pub struct NullEndpoint {
    memory: Box<[u8]>,
    size: usize,
    /// The slots that were posted since the last poll.
    posted: [Slot; MOST_EVENTS],
    pending: u32,
    every: u32,
    since_answer: u32,
}

impl NullEndpoint {
    pub(super) fn new(setup: &Setup) -> NullEndpoint {
        NullEndpoint {
            memory: vec![0; setup.size * MOST_EVENTS].into_boxed_slice(),
            size: setup.size,
            posted: [Slot::default(); MOST_EVENTS],
            pending: 0,
            every: setup.traffic.answered_every().unwrap_or(1),
            since_answer: 0,
        }
    }
}

impl Endpoint for NullEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        MOST_EVENTS as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() % MOST_EVENTS * self.size;
        &mut self.memory[at..at + self.size]
    }

    #[inline]
    fn post(&mut self, slot: Slot, _: usize) -> Posted {
        let Some(place) = self.posted.get_mut(self.pending as usize) else { return Posted::Full };
        *place = slot;
        self.pending += 1;
        Posted::Accepted
    }

    #[inline]
    fn flush(&mut self) {}

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        for slot in &self.posted[..self.pending as usize] {
            self.since_answer += 1;
            if self.since_answer == self.every {
                self.since_answer = 0;
                events.arrive(Slot::arrived(slot.number() as u32), self.size as u32);
            }
        }
        events.completed = self.pending;
        self.pending = 0;
        events.any()
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        let _ = self.poll(events);
    }
}
