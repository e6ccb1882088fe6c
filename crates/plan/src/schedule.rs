//! When messages are sent: by the answers (a closed loop), or by a schedule of absolute times.
//! Pure.

use serde::{Deserialize, Serialize};
use wiregauge_base::units::{MessageRate, Span};

/// The intended send times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The next message when the last has ended (latency) or as soon as the transport takes it.
    ClosedLoop,
    /// One message every 1/rate.
    Periodic {
        /// Messages per second.
        rate: MessageRate,
    },
    /// Exponential intervals of mean 1/rate.
    Poisson {
        /// Messages per second, on average.
        rate: MessageRate,
    },
    /// Bursts: exponential intervals while the source is on, nothing while it is off.
    OnOff {
        /// Messages per second, on average over both.
        rate: MessageRate,
        /// How long it is on ...
        on: Span,
        /// ... and off.
        off: Span,
    },
    /// The times of a file, [`super::Trace`].
    Trace {
        /// Messages per second, from the first to the last.
        rate: MessageRate,
    },
}

impl Schedule {
    /// Messages per second on average; `None` for a closed loop.
    pub fn rate(self) -> Option<MessageRate> {
        match self {
            Schedule::ClosedLoop => None,
            Schedule::Periodic { rate }
            | Schedule::Poisson { rate }
            | Schedule::OnOff { rate, .. }
            | Schedule::Trace { rate } => Some(rate),
        }
    }

    /// Checks a schedule that another process wrote down.
    ///
    /// # Errors
    /// Says in a sentence what it may be.
    pub fn check(self) -> Result<(), String> {
        let rate = self.rate().map_or(1.0, |rate| rate.0);
        // A trace may have several messages at one time.
        let most =
            if matches!(self, Schedule::Trace { .. }) { f64::MAX } else { MessageRate::MOST };
        if !(rate > 0.0 && rate <= most) {
            return Err(format!(
                "the schedule sends {rate} messages per second: a rate is above 0 and at most {}",
                MessageRate::MOST
            ));
        }
        let Schedule::OnOff { on, off, .. } = self else { return Ok(()) };
        if on.0 == 0 || on.0.checked_add(off.0).is_none() {
            return Err(format!(
                "the schedule has bursts of {} ns and pauses of {} ns: a burst is longer than 0, \
                 and both together are at most {} ns",
                on.0,
                off.0,
                u64::MAX
            ));
        }
        Ok(())
    }

    /// The same at another rate; a Poisson process where it has none.
    #[must_use]
    pub fn at(self, rate: MessageRate) -> Schedule {
        match self {
            Schedule::Periodic { .. } => Schedule::Periodic { rate },
            Schedule::OnOff { on, off, .. } => Schedule::OnOff { rate, on, off },
            Schedule::ClosedLoop | Schedule::Poisson { .. } | Schedule::Trace { .. } => {
                Schedule::Poisson { rate }
            }
        }
    }

    /// Whether messages are sent by the clock and not by answers (an open loop).
    pub fn is_open(self) -> bool {
        self.rate().is_some()
    }
}

wiregauge_base::options::named_enum! {
    /// What waits for a time.
    #[derive(Default, PartialOrd, Ord)]
    pub enum TimerKind {
        /// Reads the clock until it is time.
        #[default]
        Busy = "busy",
        /// Sleeps in a read of a timerfd.
        Timerfd = "timerfd",
        /// Sleeps in clock_nanosleep.
        Nanosleep = "nanosleep",
        /// Sleeps in io_uring_enter until a time-out completes.
        IoUring = "io_uring",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_of_another_process_has_a_rate_and_a_period() {
        fn on_off(rate: f64, on: u64, off: u64) -> Schedule {
            Schedule::OnOff { rate: MessageRate(rate), on: Span(on), off: Span(off) }
        }
        for rate in [-1.0, 0.0, f64::NAN, f64::INFINITY, 2e9] {
            let rate = MessageRate(rate);
            assert!(Schedule::Periodic { rate }.check().is_err(), "{rate:?}");
            assert!(Schedule::Poisson { rate }.check().is_err(), "{rate:?}");
        }
        assert!(on_off(1.0, 1, u64::MAX).check().is_err(), "their sum is no time");
        assert!(on_off(1.0, 0, 1).check().is_err());
        assert!(on_off(1.0, 1, u64::MAX - 1).check().is_ok());
        assert!(Schedule::ClosedLoop.check().is_ok());
        assert!(Schedule::Periodic { rate: MessageRate(1e9) }.check().is_ok());
    }
}
