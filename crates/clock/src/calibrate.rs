//! The clock measures itself: how long a tick is, what a reading costs, and how far to trust both.
//!
//! The scale comes from CLOCK_MONOTONIC_RAW, which no time daemon slews. Where the kernel makes
//! that clock from the same counter, the comparison shows the kernel's own scale, found by it at
//! boot: the residual bounds our conversion against the kernel, not the quartz against the SI
//! second (some 10 ppm, the same for every program on the machine).

use super::counter::{MADE_FROM_TSC, middle};
use super::{Clock, KernelClock, Source, TickSpan, Ticks, Timebase};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bracketed readings of which an anchor keeps the tightest. A preemption spoils a few of them,
/// never all; 64 take some 5 us.
const BRACKETS: usize = 64;

/// One instant read on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The counter, in the middle of the bracket.
    pub ticks: Ticks,
    /// CLOCK_MONOTONIC_RAW, in nanoseconds since boot.
    pub raw_ns: u64,
    /// The kernel's clock was read at `ticks`, plus or minus this.
    pub half_width: TickSpan,
}

impl Anchor {
    /// Reads both clocks: the tightest of several readings of one between two of the other.
    ///
    /// Error: the kernel's reading lies somewhere in the bracket, so taking the middle errs by at
    /// most half of its width (some 10 to 20 ns), and by 1 ns since the kernel truncates.
    pub fn take<C: Clock>(clock: C) -> Anchor {
        Anchor::against(KernelClock::MONOTONIC_RAW, clock)
    }

    /// The same against CLOCK_MONOTONIC.
    pub fn monotonic<C: Clock>(clock: C) -> Anchor {
        Anchor::against(KernelClock::MONOTONIC, clock)
    }

    /// The same against CLOCK_REALTIME.
    pub fn realtime<C: Clock>(clock: C) -> Anchor {
        Anchor::against(KernelClock::REALTIME, clock)
    }

    fn against<C: Clock>(kernel: KernelClock, clock: C) -> Anchor {
        let bracket = |_| {
            let before = clock.now();
            let raw_ns = kernel.now().0;
            let (ticks, half_width) = middle(before, clock.now());
            Anchor { ticks, raw_ns, half_width }
        };
        let tightest = |a: Anchor, b: Anchor| if b.half_width < a.half_width { b } else { a };
        (1..BRACKETS).map(bracket).fold(bracket(0), tightest)
    }

    /// [`Anchor::take`] with the clock of that source.
    pub fn take_from(source: Source) -> Anchor {
        match source {
            Source::Tsc | Source::Ptp => Anchor::take(source.clock()),
            Source::MonotonicRaw => {
                let ticks = KernelClock::MONOTONIC_RAW.now();
                Anchor { ticks, raw_ns: ticks.0, half_width: TickSpan(0) }
            }
        }
    }
}

/// The time of day, in nanoseconds since 1970, at the epoch of a scale of this clock.
///
/// Error: as of [`Anchor::take`], and what the kernel sets its clock by until a later time is made
/// of it.
pub fn epoch_of_day(source: Source, base: &Timebase) -> u64 {
    let anchor = Anchor::against(KernelClock::REALTIME, source.clock());
    anchor.raw_ns.saturating_add_signed(-base.local(anchor.ticks).0.round() as i64)
}

/// `count` anchors (at least two) spread evenly over `length`; the thread sleeps between them.
///
/// 80 ms and 5 anchors suit the start: with brackets of 40 ns the scale is then known within
/// 0.5 ppm, far more than a deadline needs. What is recorded comes from the whole run.
pub fn anchors(source: Source, length: Duration, count: u32) -> Vec<Anchor> {
    let count = count.max(2);
    let pause = length / (count - 1);
    let anchor = |number| {
        std::thread::sleep(if number > 0 { pause } else { Duration::ZERO });
        Anchor::take_from(source)
    };
    (0..count).map(anchor).collect()
}

/// The scale of a clock, and how wrong it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Nanoseconds per tick.
    pub ns_per_tick: f64,
    /// From the first anchor to the last.
    pub baseline_ns: f64,
    /// Bound of the relative error of `ns_per_tick`, in parts per 10^9.
    pub residual_ppb: f64,
}

impl Calibration {
    /// Ticks are nanoseconds of CLOCK_MONOTONIC_RAW itself: nothing to fit and nothing to err.
    pub fn exact(baseline_ns: f64) -> Calibration {
        Calibration { ns_per_tick: 1.0, baseline_ns, residual_ppb: 0.0 }
    }

    /// The scale over anchors in the order of time: the line through the first and the last.
    ///
    /// Through the ends and not by least squares, because the bound is then derived and not
    /// estimated: the errors of the two ends over the baseline, plus the farthest that an anchor
    /// between them lies off the line by more than its own error explains (a counter whose rate
    /// changed, a virtual machine that was moved) over the baseline.
    ///
    /// `None` with fewer than two anchors, or where time did not advance between the ends.
    pub fn fit(anchors: &[Anchor]) -> Option<Calibration> {
        let (first, last) = (anchors.first()?, anchors.last()?);
        let ticks = (last.ticks - first.ticks).0;
        if ticks <= 0 || last.raw_ns <= first.raw_ns {
            return None;
        }
        let baseline_ns = (last.raw_ns - first.raw_ns) as f64;
        let ns_per_tick = baseline_ns / ticks as f64;
        // 1 ns: the kernel truncates its clock to whole nanoseconds.
        let own_error_ns = |a: &Anchor| a.half_width.0 as f64 * ns_per_tick + 1.0;
        let off_line_ns = |a: &Anchor| {
            let expected_ns = (a.ticks - first.ticks).0 as f64 * ns_per_tick;
            let found_ns = a.raw_ns as f64 - first.raw_ns as f64;
            ((found_ns - expected_ns).abs() - own_error_ns(a)).max(0.0)
        };
        let ends_ns = own_error_ns(first) + own_error_ns(last);
        let worst_ns = anchors.iter().map(off_line_ns).fold(0.0, f64::max);
        let residual_ppb = (ends_ns + worst_ns) / baseline_ns * 1e9;
        Some(Calibration { ns_per_tick, baseline_ns, residual_ppb })
    }

    /// [`Calibration::fit`] for anchors of that source: exact where the kernel says nanoseconds.
    /// That those of CLOCK_REALTIME are right is its daemon's claim, and not ours to scale again.
    pub fn of(source: Source, anchors: &[Anchor]) -> Option<Calibration> {
        match source {
            Source::Tsc => Calibration::fit(anchors),
            Source::MonotonicRaw | Source::Ptp => {
                let (first, last) = (anchors.first()?, anchors.last()?);
                Some(Calibration::exact(last.raw_ns.saturating_sub(first.raw_ns) as f64))
            }
        }
    }
}

/// What one reading of a clock costs and resolves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Median over batches of the time per reading, one after the other.
    pub cost_ns: f64,
    /// Smallest difference above zero between two readings; 0 where the clock stood still.
    pub resolution_ns: f64,
}

/// Readings in a batch, and batches. A batch takes about 1 us, so that an interrupt spoils few
/// batches and the median none; its mean also holds where a tick is longer than a reading.
const BATCH: usize = 65;
const BATCHES: usize = 201;

/// Measures back-to-back readings of `clock`.
pub fn measure_reading<C: Clock>(clock: C, base: &Timebase) -> Reading {
    let mut batch = [Ticks(0); BATCH];
    let mut spans = [TickSpan(0); BATCHES];
    let mut smallest = i64::MAX;
    for span in &mut spans {
        for slot in &mut batch {
            *slot = clock.now();
        }
        *span = batch[BATCH - 1] - batch[0];
        let steps = batch.windows(2).map(|pair| (pair[1] - pair[0]).0).filter(|step| *step > 0);
        smallest = steps.fold(smallest, i64::min);
    }
    spans.sort_unstable();
    let resolution_ns = if smallest == i64::MAX { 0.0 } else { base.span(TickSpan(smallest)) };
    Reading { cost_ns: base.span(spans[BATCHES / 2]) / (BATCH - 1) as f64, resolution_ns }
}

/// The clock that stamped the samples, as it stands in every record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// `tsc`, `monotonic_raw` or `ptp`.
    pub source: String,
    /// Why that source.
    pub reason: String,
    /// Ticks per second, measured against CLOCK_MONOTONIC_RAW.
    pub frequency_hz: f64,
    /// Length of the calibration's baseline.
    pub baseline_ns: f64,
    /// Residual of the calibration: the scale of every figure may be wrong by so much.
    pub residual_ppb: f64,
    /// Median time between two readings one after the other.
    pub reading_cost_ns: f64,
    /// Smallest difference above zero between two readings.
    pub resolution_ns: f64,
    /// In words: what orders a reading against the code around it.
    pub fences: String,
}

impl ClockReport {
    /// What its scale was compared with, and how closely it agrees. Where the kernel makes its
    /// clock from the same counter, that says nothing of the counter's own error.
    pub fn scale(&self, kernel_source: Option<&str>) -> String {
        if self.source != Source::Tsc.name() {
            return "not scaled: its nanoseconds are the kernel's".into();
        }
        let within = format!("scale within {:.3} ppb of CLOCK_MONOTONIC_RAW", self.residual_ppb);
        let is_same = kernel_source.is_some_and(|source| MADE_FROM_TSC.contains(&source));
        match is_same {
            true => within + ", which the kernel makes from the same counter",
            false => within,
        }
    }

    /// Puts together what the record says about the clock.
    pub(super) fn new(
        source: Source,
        reason: String,
        scale: &Calibration,
        reading: Reading,
    ) -> ClockReport {
        ClockReport {
            source: source.name().to_string(),
            reason,
            frequency_hz: 1e9 / scale.ns_per_tick,
            baseline_ns: scale.baseline_ns,
            residual_ppb: scale.residual_ppb,
            reading_cost_ns: reading.cost_ns,
            resolution_ns: reading.resolution_ns,
            fences: source.fences().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_says_what_it_was_compared_with() {
        let clock = |source: &str, residual_ppb| ClockReport {
            source: source.into(),
            residual_ppb,
            ..ClockReport::default()
        };
        let within = "scale within 0.300 ppb of CLOCK_MONOTONIC_RAW";
        let same = format!("{within}, which the kernel makes from the same counter");
        assert_eq!(clock("tsc", 0.3).scale(Some("tsc")), same);
        assert_eq!(clock("tsc", 0.3).scale(Some("hpet")), within);
        let own = "not scaled: its nanoseconds are the kernel's";
        assert_eq!(clock("monotonic_raw", 0.0).scale(Some("tsc")), own);
    }
    use std::cell::Cell;
    use std::sync::atomic::AtomicU64;

    const RATE_HZ: f64 = 2.596_123e9;

    /// An anchor `at_ns` after boot of a counter of [`RATE_HZ`], read `late` ticks off the middle.
    fn anchor(at_ns: u64, late: i64, half_width: i64) -> Anchor {
        let ticks = Ticks(1 << 40) + TickSpan((at_ns as f64 * RATE_HZ / 1e9) as i64 + late);
        Anchor { ticks, raw_ns: 77 + at_ns, half_width: TickSpan(half_width) }
    }

    fn error_ppb(found: &Calibration) -> f64 {
        ((1e9 / found.ns_per_tick / RATE_HZ) - 1.0).abs() * 1e9
    }

    #[test]
    fn the_true_scale_is_within_the_stated_residual_whatever_the_ends_erred() {
        for (early, late) in [(0, 0), (50, -50), (-50, 50), (50, 50)] {
            for length_ns in [50_000_000, 1_000_000_000, 86_400_000_000_000] {
                let ends = (anchor(0, early, 50), anchor(length_ns, late, 50));
                let found = Calibration::fit(&[ends.0, ends.1]).unwrap();
                assert!(error_ppb(&found) <= found.residual_ppb, "{length_ns}: {found:?}");
                assert_eq!(found.baseline_ns, length_ns as f64);
            }
        }
    }

    #[test]
    fn a_longer_baseline_states_a_smaller_residual() {
        let short = Calibration::fit(&[anchor(0, 0, 50), anchor(80_000_000, 0, 50)]).unwrap();
        let long = Calibration::fit(&[anchor(0, 0, 50), anchor(8_000_000_000, 0, 50)]).unwrap();
        assert!((short.residual_ppb / long.residual_ppb - 100.0).abs() < 0.1);
        assert!(short.residual_ppb < 1_000.0, "{short:?}");
    }

    #[test]
    fn anchors_within_their_errors_add_nothing_to_the_residual() {
        let ends = [anchor(0, 0, 50), anchor(100_000_000, 0, 50)];
        let more = [ends[0], anchor(40_000_000, 30, 50), ends[1]];
        assert_eq!(Calibration::fit(&ends), Calibration::fit(&more));
    }

    #[test]
    fn a_rate_that_drifts_shows_in_the_residual() {
        // 20 ppm faster in the second half: 10 ppm from the mean, and half a baseline of it.
        let half_ns = 500_000_000;
        let drift = (half_ns as f64 * 20e-6 * RATE_HZ / 1e9) as i64;
        let found = Calibration::fit(&[
            anchor(0, 0, 10),
            anchor(half_ns, 0, 10),
            anchor(2 * half_ns, drift, 10),
        ])
        .unwrap();
        assert!((found.residual_ppb - 5_000.0).abs() < 50.0, "{found:?}");
    }

    #[test]
    fn anchors_between_which_no_time_passed_give_no_scale() {
        let a = anchor(1_000, 0, 5);
        assert_eq!(Calibration::fit(&[a, a]), None);
        assert_eq!(Calibration::fit(&[anchor(9_000, 0, 5), a]), None);
        // Only one of the two clocks stood still.
        assert_eq!(Calibration::fit(&[a, Anchor { raw_ns: a.raw_ns + 9, ..a }]), None);
        assert_eq!(Calibration::fit(&[a, Anchor { ticks: a.ticks + TickSpan(9), ..a }]), None);
        assert_eq!(Calibration::fit(&[a]), None);
        assert_eq!(Calibration::fit(&[]), None);
    }

    #[test]
    fn the_kernels_own_clock_needs_no_fit() {
        let found = anchors(Source::MonotonicRaw, Duration::ZERO, 2);
        let scale = Calibration::of(Source::MonotonicRaw, &found).unwrap();
        assert_eq!((scale.ns_per_tick, scale.residual_ppb), (1.0, 0.0));
        let ends = [anchor(100, 0, 5), anchor(400, 0, 5)];
        assert_eq!(Calibration::of(Source::Ptp, &ends).unwrap().baseline_ns, 300.0);
    }

    #[test]
    fn there_are_as_many_anchors_as_asked_for_and_at_least_two() {
        let count = |asked| anchors(Source::MonotonicRaw, Duration::ZERO, asked).len();
        assert_eq!([1, 2, 5].map(count), [2, 2, 5]);
    }

    #[test]
    fn the_epoch_of_day_is_as_far_from_now_as_the_epoch_of_the_scale() {
        const DAY_NS: i64 = 86_400_000_000_000;
        let tomorrow = Source::MonotonicRaw.read() + TickSpan(DAY_NS);
        let found = epoch_of_day(Source::MonotonicRaw, &Timebase::nanoseconds(tomorrow));
        let now = KernelClock::REALTIME.now().0;
        // An hour is far more than this test takes.
        assert!((found as i64 - now as i64 - DAY_NS).abs() < DAY_NS / 24, "{found} {now}");
    }

    #[test]
    fn an_anchor_keeps_the_tightest_bracket() {
        let word = AtomicU64::new(1_000);
        let found = Anchor::take(super::super::Virtual(&word));
        assert_eq!((found.ticks, found.half_width), (Ticks(1_000), TickSpan(0)));
    }

    /// A clock that steps by 40 at every fourth reading: coarser than a reading takes.
    #[derive(Clone, Copy)]
    struct Coarse<'a>(&'a Cell<u64>);

    impl Clock for Coarse<'_> {
        fn now(self) -> Ticks {
            self.0.set(self.0.get() + 1);
            Ticks(self.0.get() / 4 * 40)
        }
    }

    #[test]
    fn a_clock_coarser_than_its_reading_still_shows_cost_and_resolution() {
        let cell = Cell::new(0);
        let found = measure_reading(Coarse(&cell), &Timebase::nanoseconds(Ticks(0)));
        assert_eq!(found, Reading { cost_ns: 10.0, resolution_ns: 40.0 });
    }

    #[test]
    fn a_clock_that_stands_still_costs_and_resolves_nothing() {
        let word = AtomicU64::new(7);
        let base = Timebase::nanoseconds(Ticks(0));
        let found = measure_reading(super::super::Virtual(&word), &base);
        assert_eq!(found, Reading::default());
    }

    #[test]
    fn the_report_repeats_what_was_measured() {
        let scale = Calibration { ns_per_tick: 0.5, baseline_ns: 1e9, residual_ppb: 40.0 };
        let reading = Reading { cost_ns: 9.0, resolution_ns: 8.5 };
        let found = ClockReport::new(Source::Tsc, "because".into(), &scale, reading);
        assert_eq!((found.source.as_str(), found.frequency_hz), ("tsc", 2e9));
        assert_eq!((found.reading_cost_ns, found.resolution_ns), (9.0, 8.5));
    }
}
