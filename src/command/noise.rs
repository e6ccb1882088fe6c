//! `noise`: gaps that a spinning loop sees on each CPU.

use super::console::{complain, print, print_json};
use super::{CommandError, Exit};
use crate::clock::{Calibration, Source, Ticks, Timebase, anchors};
use crate::host;
use crate::report::table;
use crate::units::Span;
use std::time::Duration;

/// Length of the calibration: at 1 ppm a gap of 10 ms is right within 10 ns.
const CALIBRATION: Duration = Duration::from_millis(50);

/// Watches.
pub fn noise(
    cpus: &[u32],
    time: Span,
    clock: Option<Source>,
    json: bool,
) -> Result<Exit, CommandError> {
    let source = clock.unwrap_or_else(|| Source::choose().0);
    let anchors = anchors(source, CALIBRATION, 5);
    let calibration = Calibration::of(source, &anchors)
        .ok_or_else(|| CommandError::Unable("the clock could not be calibrated".into()))?;
    let base = Timebase::new(
        anchors.first().map_or(Ticks(0), |first| first.ticks),
        calibration.ns_per_tick,
    );
    let mut seen = Vec::new();
    for observed in host::observe(cpus, source, &base, time.0 as f64) {
        match observed {
            Ok(noise) => seen.push(noise),
            Err(error) => complain(&error),
        }
    }
    if seen.is_empty() {
        return Ok(Exit::Nothing);
    }
    if json {
        return print_json(&seen);
    }
    print(table::noise(&seen).as_bytes())
}
