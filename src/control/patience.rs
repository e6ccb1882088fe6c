//! When a round counts as stalled.

use crate::plan::{Case, Schedule};
use std::time::Duration;

/// Longest time without a message: `--timeout` plus the longest gap of the schedule. One
/// exponential gap in 10^13 is longer than 30 means.
pub(crate) fn patience(case: &Case) -> Duration {
    let gap = match case.schedule {
        Schedule::ClosedLoop => Duration::from_nanos(case.pattern.longest_pause(case).0),
        Schedule::Periodic { rate } => {
            Duration::try_from_secs_f64(1.0 / rate.0).unwrap_or_default()
        }
        Schedule::Poisson { rate } => {
            Duration::try_from_secs_f64(30.0 / rate.0).unwrap_or_default()
        }
        Schedule::OnOff { rate, off, .. } => {
            let gap = Duration::try_from_secs_f64(30.0 / rate.0).unwrap_or_default();
            gap.saturating_add(Duration::from_nanos(off.0))
        }
        Schedule::Trace { .. } => {
            let times = case.trace.iter().flat_map(|trace| trace.times_ns.windows(2));
            Duration::from_nanos(times.map(|pair| pair[1] - pair[0]).max().unwrap_or(0))
        }
    };
    Duration::from_nanos(case.timeout.0).saturating_add(gap)
}
