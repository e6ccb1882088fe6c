//! The patterns that this build has: one line each.

use super::survey::Survey;
use super::{Pattern, bandwidth, collective, exchange, latency, load, oneway, rpc, stream};
use std::sync::OnceLock;
use wiregauge_analysis::pattern::PatternAnalysis;
use wiregauge_figures::view::PatternView;
use wiregauge_measure::agent::execution::PatternExecution;
use wiregauge_plan::PatternRef;
use wiregauge_transport::Descriptor;

/// Those of this library, in the order in which they are listed.
static PATTERNS: &[&dyn Pattern] = &[
    &latency::Latency,
    &oneway::Oneway,
    &bandwidth::Bandwidth,
    &stream::Stream,
    &load::Load,
    &rpc::Rpc,
    &exchange::Exchange,
    &collective::Collective,
];

/// [`PATTERNS`], and what a program around this library adds to them.
static ALL: OnceLock<Vec<&'static dyn Pattern>> = OnceLock::new();

/// All, in the order in which they are listed.
pub fn all() -> &'static [&'static dyn Pattern] {
    ALL.get_or_init(|| PATTERNS.to_vec())
}

/// Adds patterns of a program around this library. To be called before all else: later, nothing is
/// added.
pub fn add(more: &[&'static dyn Pattern]) {
    ALL.get_or_init(|| PATTERNS.iter().chain(more).copied().collect());
}

/// The names of all.
pub fn names() -> Vec<&'static str> {
    all().iter().map(|pattern| pattern.name()).collect()
}

/// The names of those that a transport carries.
pub fn carried_by(descriptor: &Descriptor) -> Vec<&'static str> {
    let carried = all().iter().filter(|pattern| pattern.is_carried_by(descriptor));
    carried.map(|pattern| pattern.name()).collect()
}

/// What reports show of all, and of the survey that is made of them.
pub fn views() -> Vec<&'static dyn PatternView> {
    let own = all().iter().map(|pattern| *pattern as &dyn PatternView);
    std::iter::once(&Survey as &dyn PatternView).chain(own).collect()
}

/// The pattern of a name, as plans know it.
pub fn find(name: &str) -> Option<PatternRef> {
    of(name).map(|pattern| pattern as PatternRef)
}

/// The pattern of a name, as an agent runs it.
pub fn execution(name: &str) -> Option<&'static dyn PatternExecution> {
    of(name).map(|pattern| pattern as &dyn PatternExecution)
}

/// The pattern of a name, as the run knows it.
pub fn analysis(name: &str) -> Option<&'static dyn PatternAnalysis> {
    of(name).map(|pattern| pattern as &dyn PatternAnalysis)
}

fn of(name: &str) -> Option<&'static dyn Pattern> {
    all().iter().copied().find(|pattern| pattern.name() == name)
}
