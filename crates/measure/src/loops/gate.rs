//! How the world outside reaches into a measured loop: two words that the loop looks at when it has
//! nothing else to do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wiregauge_clock::{Clock, TickSpan, Ticks};

/// What the agent's control thread signals to the loop.
#[derive(Debug, Default)]
pub struct Gate {
    stopped: AtomicBool,
    /// Messages plus 1; 0: not known.
    expected: AtomicU64,
}

impl Gate {
    /// Ends the loop as soon as it looks.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the loop is to end.
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Comes back at this time, or within a slice of it when the loop is to end: then `false`.
    #[inline]
    pub fn idle_until<C: Clock>(&self, clock: C, at: Ticks, slice: TickSpan) -> bool {
        let slice = TickSpan(slice.0.max(1));
        while !self.is_stopped() {
            let next = clock.now() + slice;
            if next >= at {
                clock.idle_until(at);
                return true;
            }
            clock.idle_until(next);
        }
        false
    }

    /// Tells a receiver how many messages the other end has sent altogether.
    pub fn expect(&self, messages: u64) {
        self.expected.store(messages.saturating_add(1), Ordering::Relaxed);
    }

    /// How many messages the other end has sent, where that is known.
    #[inline(always)]
    pub fn expected(&self) -> Option<u64> {
        self.expected.load(Ordering::Relaxed).checked_sub(1)
    }
}
