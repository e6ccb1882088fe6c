//! The timestamp clock of a host: chosen and calibrated before the first round, and compared over
//! the whole run at its end.

use super::calibrate::{Anchor, Calibration, ClockReport, anchors, measure_reading};
use super::exchange::Local;
use super::{AnyClock, Source, Ticks, Timebase, Tsc};
use std::time::Duration;

/// Length of the calibration before the first round: two anchors of some 30 ns each over it leave
/// less than 1 ppm, 10 ps in 10 us.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Anchors of that calibration.
const ANCHORS: u32 = 11;

/// The timestamp clock of a host, with its scale and error.
pub struct ChosenClock {
    /// What is read.
    pub source: Source,
    anchors: Vec<Anchor>,
    /// Its scale.
    pub base: Timebase,
    /// The clock as it was calibrated.
    pub report: ClockReport,
}

impl ChosenClock {
    /// Chooses the clock, or takes the one asked for, and calibrates it.
    ///
    /// # Errors
    /// A sentence: time did not advance.
    pub fn calibrate(asked: Option<Source>) -> Result<ChosenClock, String> {
        let (source, reason) = match asked {
            Some(source) => (source, "requested".to_string()),
            None => Source::choose(),
        };
        let anchors = anchors(source, CALIBRATION, ANCHORS);
        let scale = Calibration::of(source, &anchors).ok_or("the clock could not be calibrated")?;
        let epoch = anchors.first().map_or(Ticks(0), |anchor| anchor.ticks);
        let base = Timebase { epoch, ns_per_tick: scale.ns_per_tick };
        let reading = match source.clock() {
            AnyClock::Kernel(clock) => measure_reading(clock, &base),
            _ => measure_reading(Tsc, &base),
        };
        let report = ClockReport::new(source, reason, &scale, reading);
        Ok(ChosenClock { source, anchors, base, report })
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
