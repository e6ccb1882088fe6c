//! Notices that the ends of a round were suspended with the controller: a stop signal or a debugger
//! held all processes, a virtual machine was paused, or the computer slept.
//!
//! A round sees such a gap as a message, a rate or a stall like any other. The controller knows
//! better: it waits for so long at most, and comes back far later. That alone says nothing of the
//! ends, which go on where a user stops the controller alone (Ctrl-Z) or closes the laptop that
//! controls other hosts: they say whether a signal has continued them and whether their computer
//! slept ([`Suspension`]).

use std::time::Duration;
use wiregauge_host::{ResourceUse, Suspension, major_faults, now_and_asleep};

/// A shorter gap is not named.
///
/// EXECUTIVE SUMMARY: a busy machine is not taken for one that was suspended, and what is not named
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
    /// Time in which this thread was ready to run and had no CPU; `None`: the kernel does not count
    /// it.
    waited: Option<Duration>,
    /// Pages that came from a device for it.
    major_faults: u64,
    /// Evidence that the controller was suspended.
    suspension: Suspension,
}

/// A time in which the controller neither ran nor was ready to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    length: Duration,
    /// Is set where a signal has continued the controller.
    is_stop: bool,
}

/// The gaps of the controller while a round ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    /// The sum of those that a signal has ended.
    stopped: Duration,
    /// The sum of the others.
    paused: Duration,
}

impl ClockReading {
    fn now() -> ClockReading {
        let waited = ResourceUse::of_thread().waited_ns;
        ClockReading {
            now: now_and_asleep().0,
            waited: waited.map(|waited_ns| Duration::from_nanos(waited_ns as u64)),
            major_faults: major_faults(),
            suspension: Suspension::now(),
        }
    }

    /// Returns by how much more than `longest` passed until another reading in which this thread
    /// neither ran nor waited for a CPU, where it is long enough to tell.
    fn gap_until(self, after: ClockReading, longest: Duration) -> Option<Gap> {
        let is_stop = after.suspension.since(self.suspension).times_continued > 0;
        let waited = match (self.waited, after.waited) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            // It may have waited all the time. A signal is evidence enough.
            _ if is_stop => Duration::ZERO,
            _ => return None,
        };
        let passed = after.now.saturating_sub(self.now);
        let faults = after.major_faults.saturating_sub(self.major_faults);
        let faults = MAX_FAULT_TIME.saturating_mul(faults.try_into().unwrap_or(u32::MAX));
        let length = passed.saturating_sub(longest).saturating_sub(waited).saturating_sub(faults);
        (length >= MIN_GAP).then_some(Gap { length, is_stop })
    }
}

/// Runs what waits, for no longer than `longest`. Returns what it gives, and the gap of the
/// controller meanwhile.
pub fn watch<T>(longest: Duration, wait: impl FnOnce() -> T) -> (T, Option<Gap>) {
    let before = ClockReading::now();
    let given = wait();
    (given, before.gap_until(ClockReading::now(), longest))
}

impl Gaps {
    /// Adds one.
    pub fn add(&mut self, gap: Gap) {
        let sum = if gap.is_stop { &mut self.stopped } else { &mut self.paused };
        *sum += gap.length;
    }

    /// Returns for how long ends of the round were suspended, by what each says of itself and
    /// whether it is on the controller's host: a machine that is paused holds both.
    pub fn of_round(self, ends: impl Iterator<Item = (Suspension, bool)>) -> Duration {
        let (mut asleep, mut stopped, mut paused) = Default::default();
        for (end, is_here) in ends {
            asleep = end.asleep.max(asleep);
            stopped = if end.times_continued > 0 { self.stopped } else { stopped };
            paused = if is_here { self.paused } else { paused };
        }
        let asleep: Duration = asleep;
        let all = asleep.saturating_add(stopped).saturating_add(paused);
        if all < MIN_GAP { Duration::ZERO } else { all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Duration = Duration::from_millis(250);

    fn reading(now_ms: u64, waited_ms: u64) -> ClockReading {
        ClockReading {
            now: Duration::from_millis(70_000 + now_ms),
            waited: Some(Duration::from_millis(40 + waited_ms)),
            major_faults: 8,
            suspension: Suspension { times_continued: 3, asleep: Duration::from_secs(9) },
        }
    }

    /// The length of the gap until a reading, in milliseconds; 0: none.
    fn until(after: ClockReading) -> u128 {
        reading(0, 0).gap_until(after, CHECK).map_or(0, |gap| gap.length.as_millis())
    }

    fn continued(reading: ClockReading) -> ClockReading {
        let suspension = Suspension { times_continued: 4, ..reading.suspension };
        ClockReading { suspension, ..reading }
    }

    #[test]
    fn a_thread_whose_code_comes_from_the_disk_again_is_not_suspended() {
        for (faults, ms, gap) in [(4, 4150, 0), (1, 9250, 8000), (u64::MAX - 8, 9250, 0)] {
            assert_eq!(until(ClockReading { major_faults: 8 + faults, ..reading(ms, 0) }), gap);
        }
    }

    #[test]
    fn time_beyond_the_longest_wait_is_a_gap() {
        assert_eq!(until(reading(1750, 0)), 1500);
        assert_eq!(until(reading(750, 0)), 500);
        for in_time in [0, 10, 250, 300, 749] {
            assert_eq!(until(reading(in_time, 0)), 0, "{in_time} ms");
        }
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_is_not_suspended() {
        assert_eq!(until(reading(3250, 2990)), 0);
        assert_eq!(until(reading(3250, 1000)), 2000);
        // The two are read one after the other.
        assert_eq!(until(reading(250, 260)), 0);
        // A kernel that does not count the wait: only a signal shows that it was no such wait.
        let uncounted = ClockReading { waited: None, ..reading(3250, 0) };
        assert_eq!((until(uncounted), until(continued(uncounted))), (0, 3000));
    }

    #[test]
    fn a_wait_that_ends_at_once_is_no_gap() {
        assert_eq!(watch(CHECK, || 7), (7, None));
    }

    fn end(times_continued: u64, asleep_ms: u64) -> Suspension {
        Suspension { times_continued, asleep: Duration::from_millis(asleep_ms) }
    }

    #[test]
    fn a_round_was_suspended_where_its_ends_say_so() {
        let mut gaps = Gaps::default();
        gaps.add(Gap { length: Duration::from_secs(2), is_stop: true });
        gaps.add(Gap { length: Duration::from_secs(5), is_stop: false });
        for (ends, seconds) in [
            // A user has stopped the controller alone.
            (vec![(end(0, 0), false), (end(0, 0), false)], 0),
            (vec![(end(0, 0), false), (end(1, 0), false)], 2),
            // What held the controller without a signal held its whole host.
            (vec![(end(0, 0), true), (end(0, 0), false)], 5),
            (vec![(end(1, 0), true), (end(1, 0), true)], 7),
            // Computers that sleep at the same time.
            (vec![(end(0, 3_600_000), false), (end(0, 1_800_000), false)], 3600),
            (vec![(end(0, 3), false)], 0),
            (vec![(Suspension { asleep: Duration::MAX, ..end(1, 0) }, true)], u64::MAX),
            (vec![], 0),
        ] {
            let found = gaps.of_round(ends.iter().copied());
            assert_eq!(found.as_secs(), seconds, "{ends:?}");
        }
    }
}
