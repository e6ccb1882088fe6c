//! Receives: given back when what came in them has been looked at, and the answer that is sent from
//! there is out.

use super::LeanEndpoint;
use crate::verbs::lent::LENT;
use crate::verbs::path::Lean;
use std::mem::MaybeUninit;

impl<L: Lean> LeanEndpoint<L> {
    /// Gives back the receive of the message that the last poll handed over, or that an answer was
    /// sent from.
    #[inline(always)]
    pub(super) fn give_back(&mut self) {
        if self.lent.is_empty() {
            match self.handed_count {
                0 => {}
                1 => {
                    self.handed_count = 0;
                    self.post_receives(self.handed[0]);
                }
                _ => self.give_several_back(),
            }
        } else if self.handed_count == 0 {
            // The others are given back by later polls.
            if let Some(slot) = self.lent.take(self.order.retired) {
                self.post_receives(slot);
            }
        } else {
            self.give_several_back();
        }
    }

    /// The same of several, in one list, but for those that an answer is being sent from.
    #[inline(never)]
    fn give_several_back(&mut self) {
        let mut last = None;
        let mut first = None;
        let count = std::mem::take(&mut self.handed_count);
        for place in 0..count {
            self.link_receive(self.handed[place], &mut first, &mut last);
        }
        while let Some(slot) = self.lent.take(self.order.retired) {
            self.link_receive(slot, &mut first, &mut last);
        }
        let Some(first) = first else { return };
        self.post_receives(first);
        // Alone again, each of them.
        let mut next = Some(first);
        while let Some(receive) = next.and_then(|slot| self.receives.get_mut(slot as usize)) {
            let after = std::mem::replace(&mut receive.request.next, std::ptr::null_mut());
            // SAFETY: links lead to requests of this list, which the endpoint owns.
            next = unsafe { after.as_ref() }.map(|request| request.wr_id as u32);
        }
    }

    /// Adds a receive to a list that begins with `first`.
    fn link_receive(&mut self, slot: u32, first: &mut Option<u32>, last: &mut Option<u32>) {
        if slot == LENT {
            return;
        }
        let Some(receive) = self.receives.get_mut(slot as usize) else { return };
        let request = &raw mut receive.request;
        match last.replace(slot).and_then(|last| self.receives.get_mut(last as usize)) {
            Some(before) => before.request.next = request,
            None => *first = Some(slot),
        }
    }

    /// Posts the receives that are linked from this slot's on.
    #[inline(always)]
    fn post_receives(&mut self, first: u32) {
        let Some(receive) = self.receives.get_mut(first as usize) else { return };
        let mut bad = MaybeUninit::uninit();
        let list = &mut receive.request;
        // SAFETY: a live queue pair; the list was linked in place, and its memory is registered and
        // left alone until the receives complete. What is bad is written and not read.
        let error = unsafe { (self.calls.post_recv)(self.pair, list, bad.as_mut_ptr()) };
        if error != 0 {
            self.end.refuse(error.abs());
        }
    }

    /// Notes that an answer is sent from an arrival: it may not be given back before it is sent.
    #[inline(always)]
    pub(super) fn lend(&mut self, slot: u32) {
        if self.handed_count == 1 && self.handed[0] == slot {
            self.handed_count = 0;
        } else {
            for place in &mut self.handed[..self.handed_count] {
                if *place == slot {
                    *place = LENT;
                }
            }
        }
        self.lent.add(self.order.posted - 1, slot);
    }
}
