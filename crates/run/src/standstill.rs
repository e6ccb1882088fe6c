//! Notices that this program stood still, and the agents of this host with it: a stop signal or a
//! debugger held all processes, a virtual machine was paused, or the computer slept.
//!
//! A round sees such a gap as a message, a rate or a stall like any other. The controller knows
//! better: it waits for so long at most, and comes back far later.

use std::time::Duration;
use wiregauge_host::{ResourceUse, major_faults, now_and_asleep};

/// A shorter gap is not named.
///
/// EXECUTIVE SUMMARY: a busy machine is not taken for one that stands still, and what is not named
/// is at most half a second of a round.
///
/// DETAILS: a thread that wakes waits until the scheduler lets it run: with 100 busy threads on its
/// CPU, of 3 ms each (the kernel's base slice), for 0.3 s. The kernel counts that wait
/// (Documentation/scheduler/sched-stats.rst), and it is subtracted: what is left is a process that
/// was not ready to run. One that has no memory left reads its own code from the disk again, which
/// [`MAX_FAULT_TIME`] allows for. A control group that has used up its quota is held for one
/// period, 100 ms unless it was set otherwise.
const MIN_GAP: Duration = Duration::from_millis(500);

/// A page that comes from a device is there sooner, on one that is overloaded too.
const MAX_FAULT_TIME: Duration = Duration::from_secs(1);

/// Readings of the clocks at one instant.
#[derive(Clone, Copy)]
struct ClockReading {
    /// Since the machine was started, without the time in which it slept.
    now: Duration,
    /// The time in which it slept.
    asleep: Duration,
    /// Time in which this thread was ready to run and had no CPU.
    waited: Duration,
    /// Pages that came from a device for it.
    major_faults: u64,
}

impl ClockReading {
    fn now() -> ClockReading {
        let (now, asleep) = now_and_asleep();
        let waited_ns = ResourceUse::of_thread().waited_ns.unwrap_or_default();
        let waited = Duration::from_nanos(waited_ns as u64);
        ClockReading { now, asleep, waited, major_faults: major_faults() }
    }
}

/// Runs what waits, for no longer than `longest`. Returns what it gives, and for how long the whole
/// program stood still meanwhile (0: it did not).
pub fn watch<T>(longest: Duration, wait: impl FnOnce() -> T) -> (T, Duration) {
    let before = ClockReading::now();
    let given = wait();
    (given, gap(before, ClockReading::now(), longest))
}

/// Returns by how much more than `longest` passed between two readings in which this thread neither
/// ran nor waited for a CPU; 0 where it is too short to tell.
fn gap(before: ClockReading, after: ClockReading, longest: Duration) -> Duration {
    let passed = after.now.saturating_sub(before.now);
    let waited = after.waited.saturating_sub(before.waited);
    let asleep = after.asleep.saturating_sub(before.asleep);
    let faults = after.major_faults.saturating_sub(before.major_faults);
    let faults = MAX_FAULT_TIME.saturating_mul(faults.try_into().unwrap_or(u32::MAX));
    let gap = passed.saturating_sub(longest).saturating_sub(waited).saturating_sub(faults) + asleep;
    if gap < MIN_GAP { Duration::ZERO } else { gap }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Duration = Duration::from_millis(250);

    fn reading(now_ms: u64, asleep_ms: u64, waited_ms: u64) -> ClockReading {
        ClockReading {
            now: Duration::from_millis(70_000 + now_ms),
            asleep: Duration::from_millis(9_000 + asleep_ms),
            waited: Duration::from_millis(40 + waited_ms),
            major_faults: 8,
        }
    }

    fn after(now_ms: u64, asleep_ms: u64, waited_ms: u64) -> Duration {
        gap(reading(0, 0, 0), reading(now_ms, asleep_ms, waited_ms), CHECK)
    }

    #[test]
    fn a_thread_whose_code_comes_from_the_disk_again_does_not_stand_still() {
        for (faults, ms, seconds) in [(4, 4150, 0), (1, 9250, 8), (u64::MAX - 8, 9250, 0)] {
            let after = ClockReading { major_faults: 8 + faults, ..reading(ms, 0, 0) };
            assert_eq!(gap(reading(0, 0, 0), after, CHECK), Duration::from_secs(seconds));
        }
    }

    #[test]
    fn time_beyond_the_longest_wait_is_a_gap() {
        assert_eq!(after(1750, 0, 0), Duration::from_millis(1500));
        assert_eq!(after(750, 0, 0), MIN_GAP);
        for in_time in [0, 10, 250, 300, 749] {
            assert_eq!(after(in_time, 0, 0), Duration::ZERO, "{in_time} ms");
        }
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_does_not_stand_still() {
        assert_eq!(after(3250, 0, 2990), Duration::ZERO);
        assert_eq!(after(3250, 0, 1000), Duration::from_millis(2000));
        // The two are read one after the other.
        assert_eq!(after(250, 0, 260), Duration::ZERO);
    }

    #[test]
    fn a_computer_that_slept_stood_still_whatever_its_clock_shows() {
        assert_eq!(after(200, 3_600_000, 0), Duration::from_secs(3600));
        assert_eq!(after(1250, 2000, 0), Duration::from_secs(3));
        assert_eq!(after(250, 3, 0), Duration::ZERO);
    }

    #[test]
    fn a_wait_that_ends_at_once_is_no_gap() {
        assert_eq!(watch(CHECK, || 7), (7, Duration::ZERO));
    }
}
