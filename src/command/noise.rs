//! `noise`: gaps that a spinning loop sees on each CPU.

use super::console::{complain, print, print_json};
use super::{CommandError, Exit};
use crate::clock::{ChosenClock, Source};
use crate::host;
use crate::report::table;
use crate::units::Span;

/// Watches.
pub fn noise(
    cpus: &[u32],
    time: Span,
    clock: Option<Source>,
    json: bool,
) -> Result<Exit, CommandError> {
    let ChosenClock { source, base, .. } =
        ChosenClock::calibrate(clock).map_err(CommandError::Unable)?;
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
