//! Times of day for people. The wall clock may be set while something runs, to any year: a length
//! of time is never the difference of two of its readings.

use jiff::{SignedDuration, Timestamp};
use std::time::{Instant, SystemTime};

/// Returns the time of day; the last one that can be written where the clock is beyond it.
pub fn now() -> Timestamp {
    stated(SystemTime::now())
}

fn stated(time: SystemTime) -> Timestamp {
    let is_past = time < SystemTime::UNIX_EPOCH;
    let bound = if is_past { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(time).unwrap_or(bound)
}

/// A time of day at which something began, and the steady clock at that instant.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    wall: Timestamp,
    steady: Instant,
}

impl Started {
    /// Begins now.
    pub fn now() -> Started {
        Started { wall: now(), steady: Instant::now() }
    }

    /// Returns the time of day of the begin.
    pub fn time(&self) -> Timestamp {
        self.wall
    }

    /// Returns the time of day by the clock of the begin: that of the begin and the time since.
    pub fn time_now(&self) -> Timestamp {
        self.after(self.steady.elapsed())
    }

    /// Returns by how much the wall clock was set since, in seconds: forward is positive.
    pub fn set_by_s(&self) -> f64 {
        now().duration_since(self.time_now()).as_secs_f64()
    }

    fn after(&self, elapsed: std::time::Duration) -> Timestamp {
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_beyond_the_years_that_can_be_written_is_no_panic() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(stated(far), Timestamp::MAX);
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40);
        assert_eq!(stated(before), Timestamp::MIN);
        let last = Started { wall: Timestamp::MAX, steady: Instant::now() };
        assert_eq!(last.after(Duration::from_secs(1 << 40)), Timestamp::MAX);
    }

    #[test]
    fn the_end_of_a_run_is_its_begin_and_its_length() {
        let begun = Started { wall: "2026-11-28T03:00:00Z".parse().unwrap(), ..Started::now() };
        assert_eq!(begun.after(Duration::from_secs(90)).to_string(), "2026-11-28T03:01:30Z");
        assert!(begun.time_now() >= begun.time());
        // By the wall clock of today.
        assert!((begun.set_by_s() - now().duration_since(begun.time()).as_secs_f64()).abs() < 60.0);
    }
}
