//! Receives: posted at the start, and given back after what came in them has been looked at.

use super::endpoint::VerbsEndpoint;
use super::memory::GRH;
use super::options::Service;
use crate::transport::{Link, MOST_EVENTS, Operation};
use fabric_sys::verbs::inline;

impl VerbsEndpoint {
    /// Posts receives into these slots, in lists.
    pub(super) fn post_receives(&mut self, slots: impl Iterator<Item = u32>) -> Result<(), i32> {
        let mut count = 0;
        for slot in slots {
            self.stage_receive(count, slot);
            count += 1;
            if count == MOST_EVENTS {
                self.ring_receives(count)?;
                count = 0;
            }
        }
        self.ring_receives(count)
    }

    #[inline(always)]
    fn stage_receive(&mut self, place: usize, slot: u32) {
        let headed = self.shape.service == Service::Ud;
        let header = if headed { GRH } else { 0 };
        let at = self.memory.layout.arrival_at(slot as usize) - header;
        let piece = &mut self.lists.receive_pieces[place];
        piece.addr = self.memory.address(at);
        piece.length = (header + self.memory.layout.size) as u32;
        self.lists.receives[place].wr_id = u64::from(slot);
    }

    #[inline(always)]
    fn ring_receives(&mut self, count: usize) -> Result<(), i32> {
        if count == 0 {
            return Ok(());
        }
        let lists = &mut *self.lists;
        let mut bad = std::ptr::null_mut();
        let after = std::mem::replace(&mut lists.receives[count - 1].next, std::ptr::null_mut());
        // SAFETY: a live queue pair; the list was linked in place, and its memory is registered
        // and left alone until the receive completes.
        let error = unsafe { inline::post_recv(self.qp.raw(), &mut lists.receives[0], &mut bad) };
        lists.receives[count - 1].next = after;
        if error == 0 { Ok(()) } else { Err(error.abs()) }
    }

    /// Gives the slots of the last poll back, but for those that an answer is being sent from.
    #[inline(always)]
    pub(super) fn give_back(&mut self) {
        let mut count = 0;
        for place in 0..self.handed_count {
            let slot = self.handed[place];
            if slot != u32::MAX {
                self.stage_receive(count, slot);
                count += 1;
            }
        }
        self.handed_count = 0;
        while count < MOST_EVENTS
            && let Some((send, slot)) = self.lent.front().copied()
            && send < self.retired
        {
            self.lent.pop_front();
            self.stage_receive(count, slot);
            count += 1;
        }
        if let Err(errno) = self.ring_receives(count) {
            self.link = Link::Failed(errno);
        }
    }

    /// Notes that an answer is sent from an arrival: it may not be given back before that is done.
    #[inline(always)]
    pub(super) fn lend(&mut self, slot: u32) {
        let lies_elsewhere = self.shape.operation == Operation::WriteImm;
        if self.shape.watches_memory || self.shape.inline || lies_elsewhere {
            return;
        }
        for place in &mut self.handed[..self.handed_count] {
            if *place == slot {
                *place = u32::MAX;
            }
        }
        self.lent.push_back((self.posted, slot));
    }
}
