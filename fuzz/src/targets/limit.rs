//! A limit as typed (`half_rtt.p99>+10%`): a limit that can be judged, or one sentence.

use crate::valid_text;
use wiregauge::stats::limit::{Figures, Limit};
use wiregauge::stats::{Metric, Rate, RateMetric, Summary, Verdict};

/// A run without figures.
struct Nothing;

impl Figures for Nothing {
    fn summary(&self, _: Metric) -> Option<&Summary> {
        None
    }

    fn rate(&self, _: RateMetric) -> Option<&Rate> {
        None
    }
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    match text.parse::<Limit>() {
        Err(wrong) => assert!(!wrong.is_empty()),
        // A figure that is not there neither keeps nor exceeds a limit.
        Ok(limit) => {
            let judged = limit.judge(Some(&Nothing), &Nothing);
            assert_eq!(judged.verdict, Verdict::Inconclusive);
        }
    }
}
