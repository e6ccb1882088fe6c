//! CLOCK_MONOTONIC, by which the kernel stamps, in the time of the samples.

use wiregauge_clock::{Anchor, Source, Timebase};

/// Both clocks at the begin and the end of a round, and the line between.
///
/// Error: half of the width of the tightest bracket at each end, some 10 to 30 ns, and what a time
/// daemon changes of the kernel's rate within the round, which a straight line does not show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelClock {
    /// CLOCK_MONOTONIC and the time of the samples.
    begin: (u64, f64),
    end: (u64, f64),
    /// Half of the wider bracket.
    pub error_ns: f64,
}

impl KernelClock {
    /// From an anchor before the round and one after it.
    pub fn new(begin: Anchor, end: Anchor, time: &Timebase) -> KernelClock {
        let point = |anchor: Anchor| (anchor.raw_ns, time.local(anchor.ticks).0);
        let width = |anchor: Anchor| time.span(anchor.half_width);
        KernelClock { begin: point(begin), end: point(end), error_ns: width(begin).max(width(end)) }
    }

    /// Reads both clocks.
    pub fn anchor(source: Source) -> Anchor {
        Anchor::monotonic(source.clock())
    }

    /// The same of CLOCK_REALTIME, by which the kernel stamps what passes a socket: a line through
    /// these errs by what the clock was set between, too.
    pub fn realtime_anchor(source: Source) -> Anchor {
        Anchor::realtime(source.clock())
    }

    /// Nanoseconds of the samples in one of the kernel's.
    fn slope(&self) -> f64 {
        let kernel = self.end.0.saturating_sub(self.begin.0) as f64;
        let slope = (self.end.1 - self.begin.1) / kernel;
        if slope.is_finite() && slope > 0.0 { slope } else { 1.0 }
    }

    /// The time of the samples at an instant of the kernel's clock.
    pub fn sample_ns(&self, monotonic_ns: u64) -> f64 {
        self.begin.1 + monotonic_ns.wrapping_sub(self.begin.0) as i64 as f64 * self.slope()
    }

    /// The instant of the kernel's clock at a time of the samples, to the nearest nanosecond.
    pub fn monotonic_ns(&self, sample_ns: f64) -> u64 {
        let since = (sample_ns - self.begin.1) / self.slope();
        self.begin.0.wrapping_add_signed(since.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::{TickSpan, Ticks};

    #[test]
    fn kernel_time_is_the_line_between_the_two_anchors() {
        let time = Timebase { epoch: Ticks(1000), ns_per_tick: 0.5 };
        let anchor = |ticks, raw_ns, half| Anchor {
            ticks: Ticks(ticks),
            raw_ns,
            half_width: TickSpan(half),
        };
        // 1000 ns by the counter are 1001 by the kernel.
        let clock = KernelClock::new(anchor(3000, 70_000, 40), anchor(5000, 71_001, 20), &time);
        assert_eq!(clock.error_ns, 20.0);
        assert_eq!(clock.sample_ns(70_000), 1000.0);
        assert_eq!(clock.sample_ns(71_001), 2000.0);
        assert!((clock.sample_ns(69_999) - 999.001).abs() < 1e-3);
        assert_eq!(
            [999.0, 1000.0, 2000.0].map(|ns| clock.monotonic_ns(ns)),
            [69_999, 70_000, 71_001]
        );
    }
}
