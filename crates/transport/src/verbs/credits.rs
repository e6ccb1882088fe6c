//! How an end that writes into the other's slots knows which are free: the other end writes into a
//! word of this one's memory how many messages it has taken.
//!
//! Of writes that are answered the answers say it. A service that loses messages could lose the
//! last word or answer: nothing waits there.

use super::options;
use crate::{Operation, Role, Setup, Traffic};

/// The work request that carries a word: no number of a send, nor of one that carries nothing.
pub(super) const TELLS: u64 = u64::MAX - (1 << 32);

/// Whether the ends of this set-up tell each other.
pub(super) fn are_told(setup: &Setup) -> bool {
    is_watched(setup) && setup.traffic.answered_every().is_none()
}

/// How many more writes an answer lets go at this end, which has so many slots; 0: it never has
/// more unanswered than there are slots, and waits for no number.
pub(super) fn answers(setup: &Setup, slots: u32) -> u64 {
    let outruns = setup.outruns_window || setup.window > slots;
    let waits = is_watched(setup) && setup.role == Role::Client && outruns;
    setup.traffic.answered_every().filter(|_| waits).map_or(0, u64::from)
}

/// Refuses a burst that goes before an answer and has no room at the receiver.
pub(super) fn check_burst(setup: &Setup, slots: u32) -> Result<(), String> {
    let every = setup.traffic.answered_every().filter(|_| is_watched(setup)).unwrap_or(1);
    ensure!(
        every <= slots,
        "a burst of {every} writes needs as many slots of the receiver, which has {slots}: use a \
         smaller burst, smaller messages or more --receive-depth"
    );
    Ok(())
}

/// Whether writes are seen in memory, and each is.
fn is_watched(setup: &Setup) -> bool {
    setup.settings.operation() == Operation::Write
        && setup.traffic != Traffic::OneSided
        && !options::service(&setup.settings).loses()
}

/// What an end tells and is told.
pub(super) struct Credits {
    /// Where in this end's memory the other end writes its word; this end's own is a line further.
    pub heard_at: usize,
    /// Where in the other's memory this end writes.
    pub there: u64,
    /// Slots of the other end.
    slots: u64,
    /// What is taken here from one word to the next: half of the slots.
    interval: u64,
    /// The last word that was told, and whether it is on its way.
    told: u64,
    pub is_telling: bool,
}

impl Credits {
    /// Of an end with so many slots, whose words lie here, towards one with these.
    pub fn new(heard_at: usize, own_slots: u64, (there, slots): (u64, u64)) -> Credits {
        let interval = (own_slots / 2).max(1);
        Credits { heard_at, there, slots, interval, told: 0, is_telling: false }
    }

    /// How many messages the other end has slots for, in all, by its word. It cannot have taken
    /// more than was sent, whatever it says.
    pub fn limit(&self, heard: u64, sent: u64) -> u64 {
        heard.min(sent) + self.slots
    }

    /// Whether to tell the other end that so many were taken here; then it is on its way.
    #[inline(always)]
    pub fn begins_to_tell(&mut self, taken: u64) -> bool {
        if self.is_telling || taken - self.told < self.interval {
            return false;
        }
        (self.told, self.is_telling) = (taken, true);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_told_for_each_half_of_the_slots_once_the_last_one_is_there() {
        let mut credits = Credits::new(0, 11, (0, 4));
        assert!(!credits.begins_to_tell(4) && credits.begins_to_tell(5));
        assert!(!credits.begins_to_tell(11), "the last one is on its way");
        credits.is_telling = false;
        assert!(credits.begins_to_tell(11));
        let mut of_one = Credits::new(0, 1, (0, 1));
        assert!(!of_one.begins_to_tell(0) && of_one.begins_to_tell(1));
    }

    #[test]
    fn a_client_waits_for_answers_where_it_may_have_more_unanswered_than_there_are_slots() {
        use crate::{Settings, Wait};
        let of = |role, outruns_window, service: &str| {
            let values = [("operation", "write"), ("service", service)];
            let settings = Settings::of_values(values).unwrap();
            let echo = Traffic::Echo { every: 2 };
            let setup = Setup::new(role, echo, Wait::Busy, 64);
            let setup = Setup { settings, window: 4, outruns_window, ..setup };
            [3, 4].map(|slots| answers(&setup, slots))
        };
        assert_eq!(of(Role::Client, false, "rc"), [2, 0]);
        assert_eq!(of(Role::Client, true, "rc"), [2, 2]);
        assert_eq!(of(Role::Server, true, "rc"), [0, 0]);
        assert_eq!(of(Role::Client, true, "uc"), [0, 0]);
    }

    #[test]
    fn a_word_lets_no_more_be_sent_than_there_are_slots_whatever_it_says() {
        let credits = Credits::new(0, 11, (0, 4));
        assert_eq!([0, 3, 10, u64::MAX].map(|heard| credits.limit(heard, 10)), [4, 7, 14, 14]);
    }
}
