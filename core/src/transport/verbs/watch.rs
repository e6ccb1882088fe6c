//! Messages that are written into the other end's slots in turn: where the next one goes, and how
//! one is seen that the other end's adapter has written here.

use super::endpoint::VerbsEndpoint;
use super::memory::Lap;
use crate::transport::{Arrival, Events, Slot};

impl VerbsEndpoint {
    /// Looks for messages that another end's adapter has written here.
    #[inline(always)]
    pub(super) fn watch(&mut self, events: &mut Events) {
        while !events.is_full() {
            let Some(arrival) = self.watch_one() else { return };
            events.arrive(arrival.slot, arrival.length);
        }
    }

    /// Looks for the next one.
    #[inline(always)]
    pub(super) fn watch_one(&mut self) -> Option<Arrival> {
        let size = self.memory.layout.size;
        while !self.is_marked(self.awaited, size) {
            if !self.config.service.loses() || !self.passes_gap(size) {
                return None;
            }
        }
        let slot = Slot::arrived(self.awaited.slot as u32);
        self.expected += 1;
        self.awaited.advance(self.memory.layout.arriving as u64);
        Some(Arrival { slot, length: size as u32 })
    }

    /// The address of the next message at the other end.
    #[inline(always)]
    pub(super) fn take_target(&mut self) -> u64 {
        let address = self.other.memory + self.target.slot * self.other.stride;
        self.target.advance(u64::from(self.other.slots));
        address
    }

    /// Goes on behind what was lost. However many that were, one that came later is found: each
    /// call looks at the next but one and at another further on. Where one is there, those before
    /// it are there too or never will be: a queue pair keeps the order of its own messages.
    #[inline(never)]
    fn passes_gap(&mut self, size: usize) -> bool {
        let pairs = self.queues.pairs.len() as u64;
        let furthest = ((self.memory.layout.arriving as u64 - 1) / pairs).max(1);
        self.ahead = self.ahead % furthest + 1;
        let looked_at = [1, self.ahead].map(|ahead| self.expected + ahead * pairs);
        let Some(later) = looked_at.into_iter().find(|number| self.is_written(*number, size))
        else {
            return false;
        };
        let decided = if pairs == 1 { later } else { self.expected + 1 };
        let first = (self.expected..decided).find(|number| self.is_written(*number, size));
        self.expected = first.unwrap_or(decided);
        self.awaited = Lap::of(self.expected, self.memory.layout.arriving as u64);
        true
    }

    fn is_written(&self, number: u64, size: usize) -> bool {
        self.is_marked(Lap::of(number, self.memory.layout.arriving as u64), size)
    }

    #[inline(always)]
    fn is_marked(&self, lap: Lap, size: usize) -> bool {
        let at = self.memory.layout.arrival_at(lap.slot as usize);
        self.memory.byte_now(at + size) == lap.marker
    }
}
