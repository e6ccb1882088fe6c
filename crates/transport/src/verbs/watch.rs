//! Messages that are written into slots in turn: how one is seen that the other end's adapter has
//! written here, and how the other end is told that its slot is free.

use super::credits::TELLS;
use super::endpoint::VerbsEndpoint;
use super::memory::{LINE, Ring};
use crate::{Events, Slot};
use fabric_sys::verbs::types::ibv_sge;

/// A message that was written here.
pub(super) struct Written {
    /// The number of its slot, of those for arrivals.
    pub slot: u32,
    /// Where it begins in the memory.
    pub at: usize,
}

impl VerbsEndpoint {
    /// Looks for messages that another end's adapter has written here.
    #[inline(always)]
    pub(super) fn watch(&mut self, events: &mut Events) {
        while !events.is_full() {
            let Some(Written { slot, .. }) = self.watch_one() else { return };
            events.arrive(Slot::arrived(slot), self.memory.layout.size as u32);
            self.let_go += self.config.answers;
        }
    }

    /// Looks for the next one.
    #[inline(always)]
    pub(super) fn watch_one(&mut self) -> Option<Written> {
        let size = self.memory.layout.size;
        while !self.is_marked(&self.awaited, size) {
            if !self.config.service.loses() || !self.passes_gap(size) {
                return None;
            }
        }
        let written = Written { slot: self.awaited.slot() as u32, at: self.awaited.at as usize };
        self.awaited.advance();
        Some(written)
    }

    /// Goes on behind what was lost. However many that were, one that came later is found: each
    /// call looks at the next but one and at another further on. Where one is there, those before
    /// it are there too or never will be: a queue pair keeps the order of its own messages.
    #[inline(never)]
    fn passes_gap(&mut self, size: usize) -> bool {
        let (pairs, expected) = (self.queues.pairs.len() as u64, self.awaited.number());
        let furthest = ((self.awaited.slots() - 1) / pairs).max(1);
        self.ahead = self.ahead % furthest + 1;
        let looked_at = [1, self.ahead].map(|ahead| expected + ahead * pairs);
        let Some(later) = looked_at.into_iter().find(|number| self.is_written(*number, size))
        else {
            return false;
        };
        let decided = if pairs == 1 { later } else { expected + 1 };
        let first = (expected..decided).find(|number| self.is_written(*number, size));
        self.awaited = self.awaited.of(first.unwrap_or(decided));
        true
    }

    fn is_written(&self, number: u64, size: usize) -> bool {
        self.is_marked(&self.awaited.of(number), size)
    }

    #[inline(always)]
    fn is_marked(&self, ring: &Ring, size: usize) -> bool {
        self.memory.byte_now(ring.at as usize + size) == ring.marker
    }

    /// Whether the other end has no slot for the next message, by what it has told last.
    #[inline(never)]
    pub(super) fn has_no_slot_there(&mut self) -> bool {
        if let Some(credits) = &self.credits {
            let heard = self.memory.word_now(credits.heard_at);
            self.limit = self.limit.max(credits.limit(heard, self.order.posted));
        }
        self.order.posted >= self.limit
    }

    /// What the polls before this one have handed over is taken: it lets as many writes go as it
    /// answers, or the other end is told of it.
    #[inline(always)]
    pub(super) fn pass_taken(&mut self) {
        self.limit += std::mem::take(&mut self.let_go);
        if self.credits.as_ref().is_some_and(|credits| !credits.is_telling) {
            self.tell_if_due();
        }
    }

    fn tell_if_due(&mut self) {
        let taken = self.awaited.number();
        let Some(credits) = &mut self.credits else { return };
        if !credits.begins_to_tell(taken) {
            return;
        }
        let (at, there) = (credits.heard_at + LINE, credits.there);
        self.memory.bytes(at, 8).copy_from_slice(&taken.to_le_bytes());
        let (lkey, _) = self.memory.registration.keys();
        let word = ibv_sge { addr: self.memory.address(at), length: 8, lkey };
        if !self.post_beside(0, TELLS, (there, Some(word))) {
            self.refuse(libc::ENOMEM);
        }
    }
}
