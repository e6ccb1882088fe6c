//! The timestamp clock of a host: chosen and calibrated before the first round, and compared over
//! the whole run at its end.

use super::calibrate::{Anchor, Calibration, ClockReport, anchors, measure_reading};
use super::exchange::Local;
use super::{AnyClock, Source, Ticks, Timebase, Tsc};
use std::time::Duration;
use wiregauge_base::units::InjectedClockError;

/// Length of the calibration before the first round: two anchors of some 30 ns each over it leave
/// less than 1 ppm, 10 ps in 10 us.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Anchors of that calibration.
const ANCHORS: u32 = 11;

/// Why a clock stamps nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// Between two readings.
    #[error("the clock could not be calibrated: time did not advance")]
    StoodStill,
    /// Its scale, or the kernel's.
    #[error(
        "the clock {} differs from CLOCK_MONOTONIC by {:+.0} ppm over {:.1} s (limit: {MOST_PPM} \
         ppm), so all times would be wrong: try --clock monotonic_raw, or wait until the time \
         daemon has corrected the kernel's clock (chronyc tracking, timedatectl)",
        .clock.name(), .off.ppm(), .off.kernel_ns / 1e9
    )]
    WrongScale {
        /// The clock.
        clock: Source,
        /// What each of the two made of the same time.
        off: AgainstKernel,
    },
}

/// What a clock's scale may be off by against CLOCK_MONOTONIC, in parts per million, before no
/// figure is believed. The kernel's clock is the world's time within the 500 ppm that a time daemon
/// may slew it by (adjtimex(2)); no quartz is off by 100; a scale of the wrong unit is off by more.
pub const MOST_PPM: f64 = 1000.0;

/// A span of time by a clock and by the kernel's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgainstKernel {
    /// By the clock and its scale.
    pub measured_ns: f64,
    /// By CLOCK_MONOTONIC.
    pub kernel_ns: f64,
}

impl AgainstKernel {
    /// What the clock shows too much, in parts per million.
    pub fn ppm(&self) -> f64 {
        (self.measured_ns / self.kernel_ns - 1.0) * 1e6
    }
}

/// The timestamp clock of a host, with its scale and error.
pub struct ChosenClock {
    /// What is read.
    pub source: Source,
    anchors: Vec<Anchor>,
    /// The begin of the comparison with CLOCK_MONOTONIC.
    begin: Anchor,
    /// Its scale.
    pub base: Timebase,
    /// The clock as it was calibrated.
    pub report: ClockReport,
}

impl ChosenClock {
    /// Chooses the clock, or takes the one asked for, calibrates it, and holds it against the
    /// kernel's.
    ///
    /// # Errors
    /// Time did not advance, or not as it does for the kernel.
    pub fn calibrate(asked: Option<Source>) -> Result<ChosenClock, ClockError> {
        ChosenClock::calibrate_with(asked, None)
    }

    /// The same with a scale that a test makes wrong.
    ///
    /// # Errors
    /// As of [`ChosenClock::calibrate`].
    pub fn calibrate_with(
        asked: Option<Source>,
        injected: Option<InjectedClockError>,
    ) -> Result<ChosenClock, ClockError> {
        let (source, reason) = match asked {
            Some(source) => (source, "requested".to_string()),
            None => Source::choose(),
        };
        let begin = Anchor::monotonic(source.clock());
        let anchors = anchors(source, CALIBRATION, ANCHORS);
        let scale = Calibration::of(source, &anchors).ok_or(ClockError::StoodStill)?;
        let wrong = 1.0 + injected.map_or(0.0, |error| error.scale_ppm) * 1e-6;
        let epoch = anchors.first().map_or(Ticks(0), |anchor| anchor.ticks);
        let base = Timebase { epoch, ns_per_tick: scale.ns_per_tick * wrong };
        let reading = match source.clock() {
            AnyClock::Kernel(clock) => measure_reading(clock, &base),
            _ => measure_reading(Tsc, &base),
        };
        let report = ClockReport::new(source, reason, &scale, reading);
        let chosen = ChosenClock { source, anchors, begin, base, report };
        chosen.check().map(|()| chosen)
    }

    /// Holds its scale against the kernel's clock, over the time since it was calibrated: before
    /// any figure is made of what it stamped.
    ///
    /// # Errors
    /// It is off by more than [`MOST_PPM`]; or no time has passed.
    pub fn check(&self) -> Result<(), ClockError> {
        let off = self.against_kernel().ok_or(ClockError::StoodStill)?;
        match off.ppm().abs() <= MOST_PPM {
            true => Ok(()),
            false => Err(ClockError::WrongScale { clock: self.source, off }),
        }
    }

    /// The time since it was calibrated, by this clock and by the kernel's. The kernel makes the
    /// clock that the scale comes from of the same counter; this one a time daemon corrects.
    /// `None`: no time has passed.
    pub fn against_kernel(&self) -> Option<AgainstKernel> {
        let now = Anchor::monotonic(self.source.clock());
        let kernel_ns = now.raw_ns.checked_sub(self.begin.raw_ns).filter(|ns| *ns > 0)? as f64;
        Some(AgainstKernel { measured_ns: self.base.span(now.ticks - self.begin.ticks), kernel_ns })
    }

    /// What is read, and its scale.
    pub fn local(&self) -> Local {
        Local { source: self.source, time: self.base, injected_error: None }
    }

    /// The clock after a run. Samples were converted by the calibration before the first round; one
    /// over the whole run, far longer, tells by how much that was wrong.
    pub fn report_over_run(&self) -> ClockReport {
        let mut anchors = self.anchors.clone();
        anchors.push(Anchor::take_from(self.source));
        let whole = Calibration::of(self.source, &anchors);
        let whole = whole.unwrap_or_else(|| Calibration::exact(0.0));
        let off_ppb = (whole.ns_per_tick / self.base.ns_per_tick - 1.0).abs() * 1e9;
        let (baseline_ns, residual_ppb) = (whole.baseline_ns, whole.residual_ppb + off_ppb);
        ClockReport { baseline_ns, residual_ppb, ..self.report.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injected(spec: &str) -> Result<ChosenClock, ClockError> {
        ChosenClock::calibrate_with(None, spec.parse().ok())
    }

    #[test]
    fn a_scale_that_is_off_by_more_than_1000_ppm_is_refused() {
        assert!(injected("").is_ok());
        for (spec, ppm) in [("scale(2000ppm)", 2000.0), ("scale(-500000ppm)", -500_000.0)] {
            let Err(ClockError::WrongScale { off, .. }) = injected(spec) else {
                panic!("{spec} was not refused")
            };
            // A time daemon may slew the kernel's clock meanwhile.
            assert!((off.ppm() - ppm).abs() < 600.0, "{off:?}");
        }
    }

    #[test]
    fn a_clock_that_goes_wrong_during_the_run_is_found_at_its_end() {
        let clock = injected("").unwrap();
        clock.check().unwrap();
        // Ten seconds by the kernel that the counter knows nothing of.
        let begin = Anchor { raw_ns: clock.begin.raw_ns - 10_000_000_000, ..clock.begin };
        let error = ChosenClock { begin, ..clock }.check().unwrap_err();
        assert!(error.to_string().contains("ppm over 10."), "{error}");
    }

    #[test]
    fn a_scale_that_was_wrong_all_along_is_in_the_residual_of_the_report() {
        let source = Source::MonotonicRaw;
        let begin = Anchor::take_from(source);
        let base = Timebase { epoch: begin.ticks, ns_per_tick: 0.8 };
        let clock = ChosenClock { source, anchors: vec![begin], base, ..injected("").unwrap() };
        // The whole run says 1 ns per tick, exactly: 25 % more than what samples were scaled by.
        let found = clock.report_over_run();
        assert!((found.residual_ppb - 0.25e9).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn the_difference_is_in_parts_per_million_of_the_kernels_time() {
        let off = AgainstKernel { measured_ns: 1.5e9, kernel_ns: 1e9 };
        assert_eq!(off.ppm(), 500_000.0);
    }
}
