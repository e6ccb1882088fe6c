//! From ticks to nanoseconds, after the run.

use super::{LocalNs, TickSpan, Ticks};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::ops::RangeInclusive;

/// Converts one host's ticks. The processes of one host share the counter, hence the epoch.
///
/// Error of a conversion: the distance from the epoch is exact up to 2^53 ticks (20 days at
/// 5 GHz) and the product is rounded once, to 1/128 ns at 24 h. The error of `ns_per_tick` itself
/// is the calibration's residual, which stands in the record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timebase {
    /// The reading that is local time 0.
    pub epoch: Ticks,
    /// Nanoseconds per tick, measured.
    #[serde(deserialize_with = "scale")]
    pub ns_per_tick: f64,
}

/// Nanoseconds per tick that a counter may have: from 100 GHz to 1 kHz. What comes from another
/// host is nothing that a loop could divide by else.
const SCALES: RangeInclusive<f64> = 0.01..=1e6;

fn scale<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let found = f64::deserialize(from)?;
    if SCALES.contains(&found) {
        Ok(found)
    } else {
        Err(D::Error::custom("a clock without a scale"))
    }
}

impl Timebase {
    /// For clocks whose ticks are nanoseconds: virtual ones, and CLOCK_MONOTONIC_RAW.
    pub fn nanoseconds(epoch: Ticks) -> Timebase {
        Timebase { epoch, ns_per_tick: 1.0 }
    }

    /// Local time of a reading; negative before the epoch.
    pub fn local(&self, at: Ticks) -> LocalNs {
        LocalNs(self.span(at - self.epoch))
    }

    /// A distance in nanoseconds.
    pub fn span(&self, span: TickSpan) -> f64 {
        span.0 as f64 * self.ns_per_tick
    }

    /// The ticks nearest to `ns` nanoseconds. For deadlines and schedules, before the run.
    pub fn ticks_for(&self, ns: f64) -> TickSpan {
        TickSpan((ns / self.ns_per_tick).round() as i64)
    }

    /// The reading at which the local time is `at`, rounded to the nearest tick.
    pub fn ticks_at(&self, at: LocalNs) -> Ticks {
        self.epoch + self.ticks_for(at.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: f64 = 3600e9;
    const RATES_HZ: [f64; 5] = [24e6, 1e9, 2.596_123_457e9, 2.999_999_7e9, 5.1e9];

    /// `ticks * factor` in units of 2^-64 ns, exactly, for factors in (2^-12, 2^12).
    fn exact(ticks: u64, factor: f64) -> i128 {
        let bits = factor.to_bits();
        let exponent = (bits >> 52) as i32 - 1075;
        let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
        let product = mantissa * u128::from(ticks);
        let shift = exponent + 64;
        (if shift >= 0 { product << shift } else { product >> -shift }) as i128
    }

    fn conversion_error_ns(hours: f64, rate_hz: f64) -> f64 {
        let epoch = Ticks(u64::MAX - 12_345);
        let base = Timebase { epoch, ns_per_tick: 1e9 / rate_hz };
        let last = (hours * HOUR_NS / 1e9 * rate_hz) as u64;
        let mut worst = 0.0f64;
        for back in 0..1000 {
            let ticks = last - back * 7919;
            let local = base.local(epoch + TickSpan(ticks as i64));
            let whole = local.0.floor();
            let got = ((whole as i128) << 64) + ((local.0 - whole) * 2f64.powi(64)) as i128;
            worst = worst.max((got - exact(ticks, base.ns_per_tick)).abs() as f64 / 2f64.powi(64));
        }
        worst
    }

    #[test]
    fn conversions_err_by_less_than_a_64th_of_a_nanosecond_for_24_hours() {
        for rate_hz in RATES_HZ {
            let error = conversion_error_ns(24.0, rate_hz);
            assert!(error < 1.0 / 64.0, "{rate_hz} Hz: {error} ns");
        }
    }

    #[test]
    fn conversions_err_by_less_than_a_16th_of_a_nanosecond_for_100_hours() {
        for rate_hz in RATES_HZ {
            let error = conversion_error_ns(100.0, rate_hz);
            assert!(error < 1.0 / 16.0, "{rate_hz} Hz: {error} ns");
        }
    }

    #[test]
    fn ticks_for_a_span_give_the_span_back_within_half_a_tick() {
        for rate_hz in RATES_HZ {
            let base = Timebase { epoch: Ticks(9), ns_per_tick: 1e9 / rate_hz };
            for ns in [0.0, 1.0, 1e3, 1e9, 100.0 * HOUR_NS] {
                let error = base.span(base.ticks_for(ns)) - ns;
                assert!(error.abs() <= 0.5 * base.ns_per_tick + 1.0 / 16.0, "{ns}: {error}");
            }
        }
    }

    #[test]
    fn a_scale_from_elsewhere_is_one_of_a_counter() {
        let read = |ns_per_tick: f64| {
            let sent = Timebase { epoch: Ticks(7), ns_per_tick };
            let frame = postcard::to_stdvec(&sent).unwrap();
            postcard::from_bytes::<Timebase>(&frame).ok()
        };
        for ns_per_tick in RATES_HZ.map(|rate_hz| 1e9 / rate_hz) {
            assert_eq!(read(ns_per_tick), Some(Timebase { epoch: Ticks(7), ns_per_tick }));
        }
        for wrong in [0.0, -1.0, 1e-9, 1e9, f64::NAN, f64::INFINITY] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn local_time_is_negative_before_the_epoch() {
        let base = Timebase::nanoseconds(Ticks(1_000));
        assert_eq!(base.local(Ticks(400)), LocalNs(-600.0));
        assert_eq!(base.ticks_at(LocalNs(-600.0)), Ticks(400));
    }
}
