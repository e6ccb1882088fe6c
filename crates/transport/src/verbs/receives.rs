//! Receives: posted at the start, and given back after what came in them has been looked at.

use super::endpoint::VerbsEndpoint;
use super::lent::LENT;
use super::memory::GRH;
use crate::{Link, MOST_EVENTS, Operation};
use fabric_sys::verbs::inline;

impl VerbsEndpoint {
    /// Posts receives into all slots, in lists. Of streams of writes that tell the receiver one
    /// slot has none: a write is placed packet by packet before it needs its receive, and one more
    /// than there are receives would be placed over the oldest message that has not been looked
    /// at.
    pub(super) fn post_receives(&mut self) -> Result<(), i32> {
        let spare = u32::from(self.config.spares_slot);
        for slot in 0..(self.memory.layout.arriving as u32).saturating_sub(spare) {
            self.give(slot)?;
        }
        self.ring_receives()
    }

    /// The queue pair whose receives use this slot; all use the shared queue where there is one.
    #[inline(always)]
    fn pair_of_slot(&self, slot: u32) -> usize {
        match self.queues.pairs.len() {
            1 => 0,
            _ if self.queues.shared.is_some() => 0,
            _ => slot as usize / self.config.receives,
        }
    }

    /// Adds a receive to the list, and hands the list over where it is full or for another.
    #[inline(always)]
    fn give(&mut self, slot: u32) -> Result<(), i32> {
        let pair = self.pair_of_slot(slot);
        if self.giving > 0 && (pair != self.giving_to || self.giving == MOST_EVENTS) {
            self.ring_receives()?;
        }
        let header = if self.has_header() { GRH } else { 0 };
        let at = self.memory.layout.arrival_at(slot as usize) - header;
        let piece = &mut self.lists.receive_pieces[self.giving];
        piece.addr = self.memory.address(at);
        piece.length = (header + self.memory.layout.size) as u32;
        self.lists.receives[self.giving].wr_id = u64::from(slot);
        self.giving_to = pair;
        self.giving += 1;
        Ok(())
    }

    #[inline(always)]
    fn ring_receives(&mut self) -> Result<(), i32> {
        let count = std::mem::take(&mut self.giving);
        if count == 0 {
            return Ok(());
        }
        let qp = self.queues.pairs[self.giving_to].raw();
        let lists = &mut *self.lists;
        let mut bad = std::ptr::null_mut();
        let after = std::mem::replace(&mut lists.receives[count - 1].next, std::ptr::null_mut());
        let list = &mut lists.receives[0];
        // SAFETY: a live queue; the list was linked in place, and its memory is registered and left
        // alone until the receive completes.
        let error = unsafe {
            match &self.queues.shared {
                Some(shared) => inline::post_srq_recv(shared.raw(), list, &mut bad),
                _ => inline::post_recv(qp, list, &mut bad),
            }
        };
        self.lists.receives[count - 1].next = after;
        if error == 0 { Ok(()) } else { Err(error.abs()) }
    }

    /// Gives the slots of the last poll back, but for those that an answer is being sent from.
    #[inline(always)]
    pub(super) fn give_back(&mut self) {
        if let Err(errno) = self.give_back_all() {
            self.link = Link::Failed(errno);
        }
    }

    #[inline(always)]
    fn give_back_all(&mut self) -> Result<(), i32> {
        if let Some(numbers) = &mut self.numbers {
            numbers.pass(self.handed_count);
        }
        for place in 0..std::mem::take(&mut self.handed_count) {
            let slot = self.handed[place];
            if slot != LENT {
                self.give(slot)?;
            }
        }
        while let Some(slot) = self.lent.take(self.order.retired) {
            self.give(slot)?;
        }
        self.ring_receives()
    }

    /// Notes that an answer is sent from an arrival: it may not be given back before that is done.
    #[inline(always)]
    pub(super) fn lend(&mut self, slot: u32) {
        let lies_elsewhere = self.config.operation == Operation::WriteImm;
        if self.config.watches_memory || self.queues.inline || lies_elsewhere {
            return;
        }
        for place in &mut self.handed[..self.handed_count] {
            if *place == slot {
                *place = LENT;
            }
        }
        self.lent.add(self.order.posted, slot);
    }
}
