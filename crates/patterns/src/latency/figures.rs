//! What the samples of a ping-pong show: round trips and their halves.

use super::Latency;
use crate::prelude::*;

/// Its distributions are shown as those of any pattern.
impl PatternView for Latency {}

impl PatternAnalysis for Latency {
    fn metrics(&self, case: &Case) -> Vec<Metric> {
        // Where the other end takes no part a round trip has no half that goes one way.
        if case.profile().is_one_sided {
            vec![Metric::Rtt]
        } else {
            vec![Metric::HalfRtt, Metric::Rtt]
        }
    }

    fn more_metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Post, Metric::Complete]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_pong_has_round_trips_their_halves_and_the_times_of_its_posts() {
        let request = crate::latency::request(Default::default());
        let case = request.plan().unwrap().cases.remove(0);
        assert_eq!(Latency.metrics(&case), [Metric::HalfRtt, Metric::Rtt]);
        assert_eq!(Latency.more_metrics(&case), [Metric::Post, Metric::Complete]);
    }
}
