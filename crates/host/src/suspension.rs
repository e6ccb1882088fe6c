//! Evidence that a process was suspended: a signal has continued it, or its computer slept.
//!
//! A process notices neither by itself, and to wake it now and then would disturb what it measures.
//! A stopped process gets SIGCONT when it goes on, and the difference of two clocks tells for how
//! long the computer slept: both are read before and after.

use crate::now_and_asleep;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static CONTINUED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_continue(_: libc::c_int) {
    CONTINUED.fetch_add(1, Ordering::Relaxed);
}

/// Evidence that this process was suspended: since it was started, or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Number of times that SIGCONT has arrived, since it is counted.
    pub times_continued: u64,
    /// Time in which the computer slept (CLOCK_BOOTTIME against CLOCK_MONOTONIC).
    pub asleep: Duration,
}

impl Suspension {
    /// Has this process count SIGCONT from now on. System calls go on as if it were not counted.
    ///
    /// # Errors
    /// The kernel refuses the handler.
    pub fn count_continues() -> io::Result<()> {
        let handler = SigHandler::Handler(count_continue);
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: sigaction(2) with a handler that adds to an atomic, which is async-signal-safe.
        unsafe { sigaction(Signal::SIGCONT, &action)? };
        Ok(())
    }

    /// Reads it now.
    pub fn now() -> Suspension {
        let times_continued = CONTINUED.load(Ordering::Relaxed);
        Suspension { times_continued, asleep: now_and_asleep().1 }
    }

    /// Returns what has come since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Suspension) -> Suspension {
        Suspension {
            times_continued: self.times_continued.saturating_sub(earlier.times_continued),
            asleep: self.asleep.saturating_sub(earlier.asleep),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    #[test]
    fn a_process_that_is_continued_knows_it() {
        Suspension::count_continues().unwrap();
        let before = Suspension::now();
        assert_eq!(Suspension::now().since(before).times_continued, 0);
        kill(Pid::this(), Signal::SIGCONT).unwrap();
        // Another thread may handle it, a moment later.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while Suspension::now().since(before).times_continued == 0 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert!(Suspension::now().since(before).asleep < Duration::from_secs(1));
    }
}
