//! The clock of a run: chosen and calibrated before the first round, and compared over the whole
//! run at its end.

use super::error::RunError;
use super::round::RoundResult;
use crate::clock::{self, Anchor, Calibration, ClockReport, Reading, Source, Ticks, Timebase};
use crate::host;
use crate::plan::Case;
use crate::transport::Role;
use std::time::Duration;

/// Length of the calibration before the first round: two anchors of some 30 ns each over it leave
/// less than 1 ppm, 10 ps in 10 us.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Anchors of that calibration.
const ANCHORS: u32 = 11;

/// The clock of a run and what is known of it.
pub struct Time {
    /// What is read.
    pub source: Source,
    /// Why it was chosen.
    reason: String,
    anchors: Vec<Anchor>,
    /// Its scale.
    pub base: Timebase,
    /// What a reading costs, and how fine it is.
    pub reading: Reading,
}

impl Time {
    /// Chooses the clock, or takes the one asked for, and calibrates it.
    pub fn calibrate(asked: Option<Source>) -> Result<Time, RunError> {
        if asked == Some(Source::Ptp) {
            host::Discipline::read().stated_error_ns().map_err(RunError::Refused)?;
        }
        let (source, reason) = match asked {
            Some(source) => (source, "requested".to_string()),
            None => Source::choose(),
        };
        let anchors = clock::anchors(source, CALIBRATION, ANCHORS);
        let calibration = Calibration::of(source, &anchors)
            .ok_or_else(|| RunError::Unable("the clock could not be calibrated".into()))?;
        let epoch = anchors.first().map_or(Ticks(0), |anchor| anchor.ticks);
        let base = Timebase::new(epoch, calibration.ns_per_tick);
        let reading = source.measure_reading(&base);
        Ok(Time { source, reason, anchors, base, reading })
    }

    /// The clock's report. Samples were converted by the calibration before the first round; one
    /// over the whole run, far longer, tells by how much that was wrong.
    pub fn report(&self) -> ClockReport {
        let mut anchors = self.anchors.clone();
        anchors.push(Anchor::take_from(self.source));
        let used = 1.0 / self.base.ns_per_tick;
        let whole = Calibration::of(self.source, &anchors);
        let whole = whole.unwrap_or_else(|| Calibration::exact(0.0));
        let mut report = clock::report(self.source, &self.reason, &whole, &self.reading);
        let off_ppb = (used * whole.ns_per_tick - 1.0).abs() * 1e9;
        report.frequency_hz = used * 1e9;
        report.residual_ppb += off_ppb;
        report
    }

    /// The time of a round: of this host, or of the simulation, whose ticks are nanoseconds.
    pub fn of_round(&self, case: &Case, finished: &RoundResult) -> Timebase {
        if !case.transport.simulates_time() {
            return self.base;
        }
        let first =
            finished.threads_of(Role::Client).first().and_then(|part| part.arena.rows().first());
        let first = first.map_or(Ticks(0), |row| row.submit);
        Timebase::nanoseconds(first)
    }
}
