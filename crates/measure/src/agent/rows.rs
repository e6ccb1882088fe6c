//! How much sample memory a role is given.

use wiregauge_plan::Case;
use wiregauge_plan::request::MOST_COUNT;

/// Rows for each second of a round that only time bounds, of messages.
pub const MESSAGES_PER_SECOND: f64 = 5e6;
/// Rows of a round that only time bounds, at most, of all threads (160 MiB): later messages go
/// into a histogram.
const MOST_ROWS_BY_TIME: u64 = 4 << 20;

/// Rows that each thread of a role needs which records a row for each of its case's strides.
pub fn rows(case: &Case, per_second: f64) -> u64 {
    let seconds = case.bound.time.map_or(f64::INFINITY, |time| time.0 as f64 / 1e9);
    let messages = case.bound.count.map(|count| count.saturating_add(case.warmup));
    let by_count = messages.map(|messages| messages / case.profile().stride + 1);
    let threads = u64::from(case.threads());
    let most = MOST_ROWS_BY_TIME / threads;
    let by_time = (seconds * per_second).min(most as f64) as u64 + case.warmup;
    // A Poisson process may bring some more than its rate says.
    // Where a count or a trace ends the round the time is infinite.
    let offered = case.schedule.rate().map(|rate| (1.2 * rate.0 * seconds) as u64);
    let offered = offered.map(|rows| (rows / threads).saturating_add(1000 + case.warmup));
    let offered = offered.map(|rows| rows.min(MOST_COUNT / threads));
    let by_rate = offered.filter(|_| !case.is_endless());
    by_count.or(by_rate).unwrap_or(by_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::{MessageRate, Span};
    use wiregauge_patterns::{oneway, registry};
    use wiregauge_plan::{Request, Schedule};
    use wiregauge_transport::Role;

    /// Rows of a round one way of so many messages per second and seconds.
    fn oneway(rate: f64, seconds: u64) -> u64 {
        let request = Request {
            schedule: Schedule::Periodic { rate: MessageRate(rate) },
            time: Some(Span(seconds * 1_000_000_000)),
            ..oneway::request(oneway::Spec::default())
        };
        let case = request.plan().unwrap().cases.remove(0);
        registry::execution("oneway").unwrap().rows(&case, Role::Server)
    }

    #[test]
    fn a_schedule_one_way_has_a_row_for_each_message_up_to_the_most() {
        assert!((10_000_000..13_000_000).contains(&oneway(1e6, 10)));
        assert!((1000..5000).contains(&oneway(1e3, 1)));
        assert_eq!(oneway(1e6, 60), MOST_COUNT);
    }
}
