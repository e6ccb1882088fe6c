//! What the samples of a ping-pong show: round trips and their halves.

use super::Latency;
use crate::pattern::prelude::*;

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
