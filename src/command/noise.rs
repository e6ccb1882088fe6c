//! `noise`: gaps that a spinning loop sees on each CPU, alone or together with their causes.

use super::console::{complain, print_json, show, whole_layout};
use super::{CommandError, Exit, measure, process};
use crate::cli::{RunOptions, values};
use crate::clock::ChosenClock;
use crate::host;
use crate::options::Given;
use crate::plan::{Plan, Rounds};
use crate::report::table;
use crate::run::together;
use crate::units::{Bytes, Span};
use std::io::{IsTerminal, Write};

/// What the record and the page take at most: 4000 gaps one by one.
const NEED: Bytes = Bytes(8 << 20);
/// Watching for longer shows how far it is.
const LONG: Span = Span(5_000_000_000);

/// Watches.
pub fn noise(given: &Given, options: &RunOptions) -> Result<Exit, CommandError> {
    let cpus = given.read("cpus", values::cpu_list).unwrap_or_else(host::allowed_cpus);
    let time: Span = given.get("time").unwrap_or_default();
    if given.flag("together") {
        return watch(&cpus, time, options);
    }
    let clock = ChosenClock::calibrate(options.clock)
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
    if options.json {
        return print_json(&seen);
    }
    show(false, &seen, |seen| table::noise(seen, &whole_layout()).to_string())
}

/// Watches all of them together, and keeps a record.
fn watch(cpus: &[u32], time: Span, options: &RunOptions) -> Result<Exit, CommandError> {
    let writer = measure::writer(options, "noise", NEED)?;
    let interrupted = process::interrupts()?;
    let context = process::context(options, &interrupted, &[], Vec::new())?;
    let plan = Plan::new("noise", Rounds { least: 1, most: 1, until: None }, 0);
    let is_shown = time > LONG && std::io::stderr().is_terminal();
    let progress = |done: f64| {
        if is_shown {
            // Between two windows, when nothing is watched.
            let _ = write!(std::io::stderr(), "\r{:3.0} % of {time}", 100.0 * done);
        }
    };
    let record = together::watch(&plan, &context, cpus, time, progress);
    if is_shown {
        let _ = writeln!(std::io::stderr());
    }
    let record = record?;
    measure::report(&record, writer, options)?;
    Ok(if record.complete { Exit::RIGHT } else { Exit::INCOMPLETE })
}
