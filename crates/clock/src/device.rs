//! An adapter's own clock, by which it stamps completions, against this host's.
//!
//! The host's clock is read before and after the adapter's, at the beginning of a round and at its
//! end: each reading puts the adapter's time between two of the host's. Between the two readings
//! the adapter's clock is taken to run evenly, so that a stamp in between is wrong by at most the
//! larger half of the two gaps: the line through their middles is a weighted mean of both.

use super::Ticks;

/// Ticks of an adapter's clock: never those of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTicks(pub u64);

/// The stamps of an end's sends, by their numbers; 0 for a send without a stamp.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceStamps<'a> {
    /// Bits that the adapter's clock has: it begins again at 0 beyond them.
    pub mask: u64,
    /// The stamps.
    pub of_send: &'a [DeviceTicks],
}

/// A reading of the adapter's clock between two of this host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceReading {
    /// Read before ...
    pub before: Ticks,
    /// ... the adapter's ...
    pub device: DeviceTicks,
    /// ... and after it.
    pub after: Ticks,
}

/// Readings from which the narrowest is taken.
const READINGS: usize = 32;

impl DeviceReading {
    /// The narrowest of some readings; `None` where the adapter's clock cannot be read.
    pub fn take(
        host: impl Fn() -> Ticks,
        device: impl Fn() -> Option<DeviceTicks>,
    ) -> Option<DeviceReading> {
        let one = || {
            let before = host();
            let device = device()?;
            Some(DeviceReading { before, device, after: host() })
        };
        let all = (0..READINGS).map(|_| one());
        all.collect::<Option<Vec<_>>>()?.into_iter().min_by_key(|reading| reading.gap())
    }

    fn gap(self) -> i64 {
        (self.after - self.before).0
    }

    fn middle(self) -> f64 {
        self.gap() as f64 / 2.0
    }
}

/// The adapter's clock over a round.
#[derive(Clone, Copy, Debug)]
pub struct DeviceLine {
    first: DeviceReading,
    mask: u64,
    /// Ticks of the host's clock for one of the adapter's.
    rate: f64,
    /// What a converted stamp may be wrong by, in ticks of the host's clock.
    pub bound: f64,
}

impl DeviceLine {
    /// The line through two readings; `None` where the adapter's clock stood still between them.
    pub fn through(first: DeviceReading, last: DeviceReading, mask: u64) -> Option<DeviceLine> {
        let passed = last.device.0.wrapping_sub(first.device.0) & mask;
        let of_host = (last.before - first.before).0 as f64 + last.middle() - first.middle();
        let rate = of_host / passed as f64;
        let bound = first.middle().max(last.middle());
        (passed > 0 && rate > 0.0).then_some(DeviceLine { first, mask, rate, bound })
    }

    /// The host's time of a stamp that the adapter took between the two readings.
    pub fn host(&self, stamp: DeviceTicks) -> Ticks {
        let since = stamp.0.wrapping_sub(self.first.device.0) & self.mask;
        let ticks = self.first.middle() + since as f64 * self.rate;
        Ticks(self.first.before.0.wrapping_add(ticks.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    const MASK: u64 = (1 << 48) - 1;

    /// An adapter of `rate` ticks for one of the host's, which began at `start`.
    fn device(start: u64, rate: f64, host: u64) -> DeviceTicks {
        DeviceTicks(start.wrapping_add((host as f64 * rate) as u64) & MASK)
    }

    #[test]
    fn the_narrowest_reading_is_taken() {
        // Gaps of 100, 100, 7, 100 ... ticks.
        let calls = Cell::new(0u64);
        let host = || {
            calls.set(calls.get() + 1);
            let pair = calls.get().div_ceil(2);
            let gap = if pair == 3 { 7 } else { 100 };
            Ticks(pair * 1000 + if calls.get().is_multiple_of(2) { gap } else { 0 })
        };
        let taken = DeviceReading::take(host, || Some(DeviceTicks(5))).unwrap();
        assert_eq!((taken.before, taken.after), (Ticks(3000), Ticks(3007)));
        assert_eq!(DeviceReading::take(|| Ticks(0), || None), None);
    }

    #[test]
    fn a_clock_that_stands_still_makes_no_line() {
        let reading = |host| DeviceReading {
            before: Ticks(host),
            device: DeviceTicks(9),
            after: Ticks(host + 2),
        };
        assert!(DeviceLine::through(reading(0), reading(1000), MASK).is_none());
        let goes_on = DeviceReading { device: DeviceTicks(19), ..reading(0) };
        assert!(
            DeviceLine::through(reading(0), goes_on, MASK).is_none(),
            "the host's stands still"
        );
    }

    proptest! {
        #[test]
        fn a_stamp_is_found_within_the_bound_also_where_the_clock_begins_again(
            start in any::<u64>().prop_map(|start| start & MASK),
            ppm in -500.0f64..500.0,
            at in 0.01f64..0.99,
            gaps in (10u64..2000, 10u64..2000),
            places in (0.0f64..1.0, 0.0f64..1.0),
        ) {
            // A clock of 156.25 MHz beside one of 2.5 GHz, over a second.
            let rate = (1.0 + ppm * 1e-6) / 16.0;
            let reading = |host: u64, gap: u64, place: f64| DeviceReading {
                before: Ticks(host),
                device: device(start, rate, host + (gap as f64 * place) as u64),
                after: Ticks(host + gap),
            };
            let last = 2_500_000_000u64;
            let ends = (reading(1000, gaps.0, places.0), reading(last, gaps.1, places.1));
            let line = DeviceLine::through(ends.0, ends.1, MASK).unwrap();
            let truth = (last as f64 * at) as u64;
            let found = line.host(device(start, rate, truth));
            let wrong = (found.0 as f64 - truth as f64).abs();
            // Beside the bound there is the adapter's own tick, of 16 of the host's.
            prop_assert!(wrong <= line.bound + 33.0, "{wrong} {}", line.bound);
        }
    }
}
