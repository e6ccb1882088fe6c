//! Clocks: reading time, and converting the readings to nanoseconds after the run.
//!
//! Takes nothing; gives [`Ticks`] to the measured loops and a [`Timebase`] to the readers of
//! samples. Inside a measured loop there are only ticks: a raw reading of this host's counter.
//! They become [`LocalNs`] (one host's time) after the run, and the two types cannot be mixed up.
//!
//! [`exchange`] compares the clocks of two hosts (by datagrams that the kernel timestamps), and
//! [`offset`] fits a model with an error bound, which converts remote time to local time.
//!
//! Must never: convert inside a measured loop, or trust a frequency that was not measured here.
//!
//! The order of use: [`Source::choose`] at the start, [`anchors`] for a first [`Calibration`]
//! (deadlines need one before the run), the loops over a [`Clock`], one more [`Anchor`] at
//! the end, and the [`Calibration`] over the whole run for every conversion.

mod calibrate;
pub mod check;
mod chosen;
mod counter;
mod device;
pub mod exchange;
pub mod offset;
pub mod stamped;
mod timebase;
pub mod timer;

pub use calibrate::{
    Anchor, Calibration, ClockReport, Reading, anchors, epoch_of_day, measure_reading,
};
pub use chosen::{AgainstKernel, ChosenClock, ClockError, MOST_PPM};
pub use counter::MADE_FROM_TSC;
pub use counter::{AnyClock, KernelClock, Source, Tsc, Virtual};
pub use device::{DeviceLine, DeviceReading, DeviceStamps, DeviceTicks};
pub use timebase::Timebase;
pub use timer::Timer;

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// A raw reading of one host's counter. Meaningless on another host and without a [`Timebase`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticks(pub u64);

/// A distance between two [`Ticks`] of one host, in ticks. Negative where the second reading was
/// the smaller: two CPUs' counters may differ, and a loop must not wrap because of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TickSpan(pub i64);

/// Nanoseconds of one host's clock since the run's epoch on that host.
///
/// An `f64` keeps 1/64 ns over 24 h (8.64e13 ns needs 47 of 53 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LocalNs(pub f64);

/// Something that a measured loop can read ticks from. A reading is inlined, never a call through
/// a table.
pub trait Clock: Copy {
    /// Now, after everything before it in program order has been done.
    fn now(self) -> Ticks;

    /// Comes back at this time or later, without giving the CPU back, with the first reading that
    /// is not before it. It pauses until shortly before: a `pause` takes 140 cycles since Skylake
    /// (Intel's optimization manual, 2.6.4), by which it would come back late.
    #[inline(always)]
    fn idle_until(self, at: Ticks) -> Ticks {
        loop {
            let now = self.now();
            if now >= at {
                return now;
            }
            if at - now > CLOSE {
                std::hint::spin_loop();
            }
        }
    }
}

/// Ticks before its time from which a loop that idles reads the clock without a pause: about a
/// microsecond of a TSC.
const CLOSE: TickSpan = TickSpan(4096);

/// An operator that a measured loop uses.
macro_rules! operator {
    ($left:ty, $trait:ident $call:ident $right:ty => $out:ty, |$a:ident, $b:ident| $body:expr) => {
        impl $trait<$right> for $left {
            type Output = $out;
            #[inline(always)]
            fn $call(self, $b: $right) -> $out {
                let $a = self;
                $body
            }
        }
    };
}
// Exact while the two are within 2^63 ticks: 58 years at 5 GHz.
operator!(Ticks, Sub sub Ticks => TickSpan, |a, b| TickSpan(a.0.wrapping_sub(b.0) as i64));
operator!(Ticks, Add add TickSpan => Ticks, |a, b| Ticks(a.0.wrapping_add_signed(b.0)));
operator!(Ticks, Sub sub TickSpan => Ticks, |a, b| Ticks(a.0.wrapping_sub(b.0 as u64)));
operator!(TickSpan, Add add TickSpan => TickSpan, |a, b| TickSpan(a.0.wrapping_add(b.0)));
operator!(TickSpan, Sub sub TickSpan => TickSpan, |a, b| TickSpan(a.0.wrapping_sub(b.0)));
// Nanoseconds.
operator!(LocalNs, Sub sub LocalNs => f64, |a, b| a.0 - b.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_between_ticks_is_signed_and_survives_the_wrap() {
        assert_eq!(Ticks(10) - Ticks(4), TickSpan(6));
        assert_eq!(Ticks(4) - Ticks(10), TickSpan(-6));
        assert_eq!(Ticks(2) - Ticks(u64::MAX), TickSpan(3));
        assert_eq!(Ticks(u64::MAX) + TickSpan(3), Ticks(2));
    }

    #[test]
    fn adding_a_span_and_taking_it_away_gives_the_same_ticks() {
        for span in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(Ticks(77) + TickSpan(span) - TickSpan(span), Ticks(77));
        }
    }
}
