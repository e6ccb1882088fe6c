//! What the samples of a ping-pong show: round trips and their halves.

use super::Latency;
use super::spec::Spec;
use crate::plan::Case;
use crate::record::schema::RateFigure;
use crate::report::view::PatternView;
use crate::run::analysis::{Collector, PatternAnalysis, RoundSeen, RunSoFar};
use crate::stats::Metric;
use std::any::Any;
use std::collections::BTreeMap;

/// Its distributions are shown as those of any pattern.
impl PatternView for Latency {}

impl PatternAnalysis for Latency {
    fn metrics(&self, case: &Case) -> Vec<Metric> {
        // Where the other end takes no part a round trip has no half that goes one way.
        if case.is_one_sided() { vec![Metric::Rtt] } else { vec![Metric::HalfRtt, Metric::Rtt] }
    }

    fn measured(&self, case: &Case) -> Vec<&'static str> {
        let more = [Metric::Post, Metric::Complete];
        self.metrics(case).into_iter().chain(more).map(Metric::name).collect()
    }

    fn collector(&self, _: &Case) -> Box<dyn Collector> {
        Box::new(Nothing)
    }

    fn method_notes(&self, case: &Case) -> BTreeMap<String, String> {
        batching(case.spec::<Spec>().burst)
    }
}

/// How messages are flushed, for the record.
pub(in crate::pattern) fn batching(burst: u32) -> BTreeMap<String, String> {
    let text = match burst {
        1 => "one message per flush".to_string(),
        burst => format!("{burst} messages per flush"),
    };
    BTreeMap::from([("batching".to_string(), text)])
}

/// Gathers nothing beside distributions.
pub(in crate::pattern) struct Nothing;

impl Collector for Nothing {
    fn take(&mut self, _: &RoundSeen<'_>) {}

    fn rates(&self, _: &RunSoFar) -> Vec<RateFigure> {
        Vec::new()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
