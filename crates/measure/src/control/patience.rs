//! When a round counts as stalled.

use std::time::Duration;
use wiregauge_base::units::MessageRate;
use wiregauge_plan::{Case, Schedule};

/// Longest time without a message: `--timeout` plus the longest gap of the schedule. One
/// exponential gap in 10^13 is longer than 30 means.
pub fn patience(case: &Case) -> Duration {
    let times_mean = |times: f64, rate: MessageRate| {
        Duration::try_from_secs_f64(times / rate.0).unwrap_or_default()
    };
    let gap = match case.schedule {
        Schedule::ClosedLoop => Duration::from_nanos(case.profile().pause.0),
        Schedule::Periodic { rate } => times_mean(1.0, rate),
        Schedule::Poisson { rate } => times_mean(30.0, rate),
        Schedule::OnOff { rate, off, .. } => {
            times_mean(30.0, rate).saturating_add(Duration::from_nanos(off.0))
        }
        Schedule::Trace { .. } => {
            let times = case.trace.iter().flat_map(|trace| trace.times_ns.windows(2));
            Duration::from_nanos(
                times.map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0),
            )
        }
    };
    Duration::from_nanos(case.timeout.0).saturating_add(gap)
}
