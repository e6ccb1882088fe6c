//! Slots of arrivals that answers are being sent from, where the adapter reads them there: each may
//! be given back when its answer has been sent.

/// Stands for such a slot among those that are given back.
pub const LENT: u32 = u32::MAX;

/// The slots in the order of their answers.
pub struct Lent {
    /// A ring: the send that goes from a slot, and the slot.
    ring: Box<[(u64, u32)]>,
    /// How many were taken, and how many were added.
    taken: usize,
    added: usize,
}

impl Lent {
    /// For an end with so many slots for arrivals.
    pub fn of(slots: usize) -> Lent {
        let ring = vec![(0, 0); slots.max(1).next_power_of_two()].into_boxed_slice();
        Lent { ring, taken: 0, added: 0 }
    }

    /// Whether no slot is lent.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.taken == self.added
    }

    /// Notes that this send goes from this slot.
    #[inline(always)]
    pub fn add(&mut self, send: u64, slot: u32) {
        if self.added - self.taken == self.ring.len() {
            self.grow();
        }
        let at = self.added & (self.ring.len() - 1);
        self.ring[at] = (send, slot);
        self.added += 1;
    }

    /// Takes the oldest, if its send is among the first `retired`, which have completed.
    #[inline(always)]
    pub fn take(&mut self, retired: u64) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let (send, slot) = self.ring[self.taken & (self.ring.len() - 1)];
        if send >= retired {
            return None;
        }
        self.taken += 1;
        Some(slot)
    }

    /// Makes room for more, oldest first.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut all = self.ring.to_vec();
        all.rotate_left(self.taken & (self.ring.len() - 1));
        all.resize(2 * self.ring.len(), (0, 0));
        (self.taken, self.added) = (0, self.ring.len());
        self.ring = all.into_boxed_slice();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_in_order_when_their_answers_were_sent() {
        let mut lent = Lent::of(2);
        assert!(lent.is_empty() && lent.take(9).is_none());
        lent.add(2, 6);
        assert_eq!(lent.take(3), Some(6));
        for (send, slot) in [(3, 7), (4, 2), (6, 5)] {
            lent.add(send, slot);
        }
        assert_eq!((lent.take(3), lent.take(4), lent.take(4)), (None, Some(7), None));
        lent.add(7, 1);
        assert_eq!((lent.take(8), lent.take(8), lent.take(8)), (Some(2), Some(5), Some(1)));
        assert!(lent.is_empty());
    }
}
