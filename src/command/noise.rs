//! `noise`: gaps that a spinning loop sees on each CPU.

use super::console::{complain, show, whole_layout};
use super::{CommandError, Exit};
use crate::cli::values;
use crate::clock::ChosenClock;
use crate::host;
use crate::options::Given;
use crate::report::table;
use crate::units::Span;

/// Watches.
pub fn noise(given: &Given) -> Result<Exit, CommandError> {
    let cpus = given.read("cpus", values::cpu_list).unwrap_or_else(host::allowed_cpus);
    let time: Span = given.get("time").unwrap_or_default();
    let clock = ChosenClock::calibrate(given.choice("clock"))
        .map_err(|error| CommandError::Unable(error.to_string()))?;
    let mut seen = Vec::new();
    for observed in host::observe(&cpus, clock.source, &clock.base, time.0 as f64) {
        match observed {
            Ok(noise) => seen.push(noise),
            Err(error) => complain(&error),
        }
    }
    if seen.is_empty() {
        return Ok(Exit::NOTHING);
    }
    show(given.flag("json"), &seen, |seen| table::noise(seen, &whole_layout()).to_string())
}
