//! How an end that writes into the other's slots knows which are free: the other end writes into a
//! word of this one's memory how many messages it has taken.
//!
//! Of a ping-pong the answers say it. A service that loses messages could lose the last such word.

use super::endpoint::VerbsEndpoint;
use super::memory::LINE;
use super::options;
use crate::transport::{Operation, Setup, Traffic};
use fabric_sys::verbs::types::ibv_sge;

/// The work request that carries a word: no number of a send, nor of one that carries nothing.
pub(super) const TELLS: u64 = u64::MAX - (1 << 32);
/// What both words take of an end's memory: a cache line each, since each end writes one.
pub(super) const WORDS: usize = 2 * LINE;

/// Whether the ends of this set-up tell each other.
pub(super) fn are_told(setup: &Setup) -> bool {
    setup.settings.operation() == Operation::Write
        && matches!(setup.traffic, Traffic::Forward | Traffic::Both)
        && !options::service(&setup.settings).loses()
}

/// What an end tells and is told.
pub(super) struct Credits {
    /// Where in this end's memory the other end writes its word; this end's own is a line further.
    heard_at: usize,
    /// Where in the other's memory this end writes.
    there: u64,
    /// Slots of the other end.
    slots: u64,
    /// What is taken here from one word to the next: half of the slots.
    interval: u64,
    /// The last word that was told, and whether it is on its way.
    told: u64,
    is_telling: bool,
}

impl Credits {
    /// Of an end with so many slots, whose words lie here, towards one with these.
    pub fn new(heard_at: usize, own_slots: u64, (there, slots): (u64, u64)) -> Credits {
        let interval = (own_slots / 2).max(1);
        Credits { heard_at, there, slots, interval, told: 0, is_telling: false }
    }
}

impl VerbsEndpoint {
    /// Whether the other end has no slot for the next message, by what it told last.
    #[inline(never)]
    pub(super) fn has_no_slot_there(&mut self) -> bool {
        let Some(credits) = &self.credits else { return false };
        // It cannot have taken more than was sent, whatever it says.
        let taken = self.memory.word_now(credits.heard_at).min(self.order.posted);
        self.limit = self.limit.max(taken + credits.slots);
        self.order.posted >= self.limit
    }

    /// Tells the other end what has been taken here, where that is due: all that the polls before
    /// this one have handed over.
    #[inline(always)]
    pub(super) fn tell_taken(&mut self) {
        if self.credits.is_some() {
            self.tell_if_due();
        }
    }

    fn tell_if_due(&mut self) {
        let taken = self.awaited.number();
        let Some(credits) = &mut self.credits else { return };
        if credits.is_telling || taken - credits.told < credits.interval {
            return;
        }
        (credits.told, credits.is_telling) = (taken, true);
        let (at, there) = (credits.heard_at + LINE, credits.there);
        self.memory.bytes(at, 8).copy_from_slice(&taken.to_le_bytes());
        let (lkey, _) = self.memory.registration.keys();
        let word = ibv_sge { addr: self.memory.address(at), length: 8, lkey };
        if !self.post_beside(0, TELLS, (there, Some(word))) {
            self.refuse(libc::ENOMEM);
        }
    }

    /// Whether a word is on its way, whose completion is to come.
    #[inline(always)]
    pub(super) fn is_telling(&self) -> bool {
        self.credits.as_ref().is_some_and(|credits| credits.is_telling)
    }

    /// Notes that a word is there.
    #[cold]
    #[inline(never)]
    pub(super) fn has_told(&mut self) {
        if let Some(credits) = &mut self.credits {
            credits.is_telling = false;
        }
    }
}
