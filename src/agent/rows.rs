//! How much sample memory a role of a case is given.

use crate::loops::role;
use crate::plan::request::MOST_COUNT;
use crate::plan::{Case, Pattern};
use crate::transport::Role;

/// Rows for each second of a round that only time bounds ...
const ROWS_PER_SECOND: f64 = 5e6;
/// ... and at most so many of all threads (160 MiB): later messages go into a histogram.
const MOST_ROWS_BY_TIME: u64 = 4 << 20;
/// Rows for each second of a bandwidth round that only time bounds.
const MARKS_PER_SECOND: f64 = 1e6;

/// Requests of a round of `load` that are kept one by one (40 MB in the agent, 56 MB in the driver
/// while it joins them, 24 MB of durations): later ones go into histograms.
const MOST_ROWS_OF_LOAD: u64 = 1_000_000;
/// Rows of sample memory that each thread of a role needs.
pub fn rows_for(case: &Case, role: Role) -> u64 {
    let needs = match (case.pattern, role, case.direction) {
        (Pattern::Latency | Pattern::Load, Role::Server, _) => false,
        (Pattern::Bandwidth, ..) | (Pattern::Latency | Pattern::Oneway | Pattern::Load, ..) => true,
    };
    if !needs {
        return 0;
    }
    let seconds = case.bound.time.map_or(f64::INFINITY, |time| time.0 as f64 / 1e9);
    let messages = case.bound.count.map(|count| count.saturating_add(case.warmup));
    let stride = role::stride(case);
    let by_count = messages.map(|messages| messages / stride + 1);
    let per_second = match case.pattern {
        Pattern::Bandwidth => MARKS_PER_SECOND,
        Pattern::Latency | Pattern::Oneway | Pattern::Load => ROWS_PER_SECOND,
    };
    let most = MOST_ROWS_BY_TIME / u64::from(case.threads.max(1));
    let by_time = (seconds * per_second).min(most as f64) as u64 + case.warmup;
    // A Poisson process may bring some more than its rate says.
    // Where a count or a trace ends the round the time is infinite.
    let offered = case.schedule.rate().map(|rate| (1.2 * rate.0 * seconds) as u64);
    let ports = u64::from(case.threads.max(1));
    let offered = offered.map(|rows| (rows / ports).saturating_add(1000 + case.warmup));
    if case.pattern != Pattern::Load {
        let offered = offered.map(|rows| rows.min(MOST_COUNT / ports));
        return by_count.or(offered).unwrap_or(by_time);
    }
    by_count.or(offered).unwrap_or(by_time).min(MOST_ROWS_OF_LOAD / ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Request, Schedule};
    use crate::units::{MessageRate, Span};

    /// Rows of a round one way of so many messages per second and seconds.
    fn oneway(rate: f64, seconds: u64) -> u64 {
        let request = Request {
            schedule: Schedule::Periodic { rate: MessageRate(rate) },
            time: Some(Span(seconds * 1_000_000_000)),
            ..Request::new(Pattern::Oneway)
        };
        rows_for(&request.plan().unwrap().cases[0], Role::Server)
    }

    #[test]
    fn a_schedule_one_way_has_a_row_for_each_message_up_to_the_most() {
        assert!((10_000_000..13_000_000).contains(&oneway(1e6, 10)));
        assert!((1000..5000).contains(&oneway(1e3, 1)));
        assert_eq!(oneway(1e6, 60), MOST_COUNT);
    }
}
