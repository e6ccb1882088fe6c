//! `clocks`: how far another host's clock is from this one's, over a time.

use super::hosts::{self, Look};
use super::{CommandError, Exit, measure, print, print_json};
use crate::clock::exchange::Local;
use crate::clock::offset::{Exchange, Model};
use crate::clock::{Calibration, LocalNs, Source, Ticks, Timebase, anchors};
use crate::launch::clocks::Comparison;
use crate::plan::{Far, Place};
use crate::record::schema::ClockOffset;
use crate::report::table;
use crate::transport::{Interfaces, TransportKind};
use crate::units::Span;
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Length of the calibration, as that of a run.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Rows of the table.
const ROWS: u32 = 10;
/// Between two looks at whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// A row: what was known at the end of a part of the time.
#[derive(Debug, Serialize)]
pub struct At {
    /// Since the first exchange.
    pub after_s: f64,
    /// The offset then, and what it may be wrong by.
    #[serde(flatten)]
    pub clock: ClockOffset,
}

/// Compares.
pub fn clocks(
    far: &Far,
    time: Span,
    interface: Option<&Interfaces>,
    clock: Option<Source>,
    json: bool,
) -> Result<Exit, CommandError> {
    let transports = vec![TransportKind::Udp];
    let interfaces = interface.cloned();
    let look = Look { transports, interfaces, cpus: Vec::new(), threads: 1, clock };
    let hosts = hosts::reach(&Place::To(far.clone()), &look)?;
    let Some(there) = hosts.first() else { return Ok(Exit::Nothing) };
    let source = clock.unwrap_or_else(|| Source::choose().0);
    let anchors = anchors(source, CALIBRATION, 11);
    let scale = Calibration::of(source, &anchors)
        .ok_or_else(|| CommandError::Unable("the clock could not be calibrated".into()))?;
    let base = Timebase::new(anchors.first().map_or(Ticks(0), |first| first.ticks), &scale);
    let compared = compare(there, time, interface, Local { source, time: base });
    hosts::leave(hosts);
    let rows = rows(&compared?);
    if rows.is_empty() {
        return Err(CommandError::Unable("no exchange of times could be used".into()));
    }
    if json {
        return print_json(&rows);
    }
    let told: Vec<(f64, &ClockOffset)> = rows.iter().map(|row| (row.after_s, &row.clock)).collect();
    print(table::clocks(&told).as_bytes())
}

/// All exchanges of the time; fewer where the user ends it.
fn compare(
    there: &crate::launch::far::There,
    time: Span,
    interface: Option<&Interfaces>,
    local: Local,
) -> Result<Vec<Exchange>, CommandError> {
    let unable = |fault: crate::launch::round::Fault| CommandError::Unable(fault.sentence);
    let interrupted = measure::interrupts()?;
    let comparison = Comparison::start(there, interface, local, Vec::new()).map_err(unable)?;
    let begin = Instant::now();
    while begin.elapsed() < time.duration() && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    comparison.exchanges().map_err(unable)
}

/// The table's rows: each of what was known by then.
fn rows(exchanges: &[Exchange]) -> Vec<At> {
    let (Some(first), Some(last)) = (exchanges.first(), exchanges.last()) else {
        return Vec::new();
    };
    let length = last.heard.0 - first.sent.0;
    let row = |number: u32| {
        let after = length * f64::from(number) / f64::from(ROWS);
        let until = exchanges.partition_point(|e| e.heard.0 - first.sent.0 <= after);
        let known = &exchanges[..until];
        let at = known.last()?.heard;
        let clock = ClockOffset::at(&Model::fit(known)?, known, LocalNs(at.0))?;
        Some(At { after_s: after / 1e9, clock })
    };
    (1..=ROWS).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_knows_what_was_known_by_then() {
        let exchange = |number: u32| {
            let sent = f64::from(number) * 1e7;
            let stamp = LocalNs(sent + 500.0 + 1e6);
            let heard = LocalNs(sent + 1000.0);
            Exchange { sent: LocalNs(sent), reached: stamp, answered: stamp, heard }
        };
        let all: Vec<Exchange> = (0..101).map(exchange).collect();
        let rows = rows(&all);
        assert_eq!(rows.len(), ROWS as usize);
        assert!((rows[9].after_s - 1.0).abs() < 1e-3);
        assert_eq!(rows[9].clock.exchanges, 101);
        assert!(rows.iter().all(|row| (row.clock.offset_ns - 1e6).abs() <= row.clock.bound_ns));
        assert!(rows[9].clock.drift_bound_ppm < rows[0].clock.drift_bound_ppm);
        assert!(super::rows(&[]).is_empty());
    }
}
