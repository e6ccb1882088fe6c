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
