//! What to measure: the validated [`Case`]s of a run. Pure.
//!
//! Takes what was typed (through [`crate::cli`]) or written in a file; gives a [`Plan`] that can
//! be run as it stands. A wrong plan cannot be expressed past this stage: it is refused in one
//! sentence that says what is allowed.

mod case;
pub mod cpus;
pub mod host_spec;
pub mod pairs;
mod pattern;
pub mod reference;
pub mod request;
mod schedule;
mod slo;
pub mod study;
pub mod sweep;
mod threads;
pub mod topology;
pub mod trace;
pub mod written;

pub use crate::host::CpuPair;
pub use crate::options::UsageError;
pub use crate::transport::{Settings, Wait};

pub use case::{Bound, Case};
pub use host_spec::HostSpec;
pub use pairs::{Layout, Pairs, Place};
pub use pattern::{
    CasesSoFar, Combination, Ending, FindPattern, PatternRef, PatternRequest, PatternSpec, Spec,
    Specification,
};
pub use request::Request;
pub use schedule::{Schedule, TimerKind};
pub use slo::Slo;
pub use study::{Axis, Study};
pub use topology::{HostPair, Topology};
pub use trace::Trace;

use crate::units::{Span, Untrue};
use serde::{Deserialize, Serialize};

/// Most messages of a burst: their send stamps lie on the measured loop's stack.
pub const MOST_BURST: usize = 1024;

/// What is to be done: all cases, and how often and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The command's name: `survey`, `latency`, ...
    pub name: String,
    /// The cases, in the order in which they are reported.
    pub cases: Vec<Case>,
    /// Rounds of each case; the order of the cases is shuffled anew within each round.
    pub rounds: Rounds,
    /// CPUs of the client and of the server, a pair for each thread. None: chosen at launch.
    pub cpus: Vec<CpuPair>,
    /// Other hosts than this one, of which the cases' ends are numbers.
    pub hosts: Vec<HostSpec>,
    /// Which pairs of several hosts are measured.
    pub pairs: Option<Pairs>,
    /// Cases that run at the same time, by their numbers; one that is in no list runs alone.
    pub concurrent: Vec<Vec<u32>>,
    /// What the other hosts' clocks are made wrong by, to prove that this is found.
    pub untrue_clock: Option<Untrue>,
    /// Seed of the order of the cases.
    pub seed: u64,
    /// Samples above this count as slow (a share is printed).
    pub threshold: Span,
    /// The study that the plan carries out, where it is one.
    pub study: Option<Study>,
}

/// How many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// At least so many.
    pub least: u32,
    /// At most so many.
    pub most: u32,
    /// Stop between the two as soon as the interval of p50 and of p99 (for bandwidth: of the
    /// rate) is within this fraction of its value on either side.
    pub until: Option<f64>,
}

impl Plan {
    /// A short name that tells a case from the others; in a study the series comes first.
    pub fn label(&self, number: usize) -> String {
        let Some(case) = self.cases.get(number) else { return String::new() };
        let label = match self.pairs {
            Some(_) => format!("{} {}", case.label(), self.hosts_of(case)),
            None => case.pattern.label_in(self, number).unwrap_or_else(|| case.label()),
        };
        let series = self.study.as_ref().and_then(|study| study.series_of(number as u32));
        series.map_or(label.clone(), |series| format!("{}: {label}", series.name))
    }

    /// The name of one of its hosts; `None`: this one.
    pub fn host(&self, number: Option<u32>) -> &str {
        let other = number.and_then(|number| self.hosts.get(number as usize));
        other.map_or(pairs::HERE, |spec| &spec.host)
    }

    /// The names of the hosts of a case.
    pub fn hosts_of(&self, case: &Case) -> String {
        let HostPair { client, server } = case.hosts();
        format!("{} to {}", self.host(client), self.host(server))
    }

    /// Cases that run at the same time, those that run alone included.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut alone = vec![true; self.cases.len()];
        let grouped = |numbers: &Vec<u32>| -> Vec<usize> {
            numbers.iter().map(|number| *number as usize).collect()
        };
        let mut groups: Vec<Vec<usize>> = self.concurrent.iter().map(grouped).collect();
        for case in groups.iter().flatten() {
            if let Some(alone) = alone.get_mut(*case) {
                *alone = false;
            }
        }
        groups.extend((0..alone.len()).filter(|case| alone[*case]).map(|case| vec![case]));
        groups
    }

    /// CPUs that the ends of its cases want at the same time, at most: those of a case, and of
    /// what runs beside it.
    pub fn cpus_at_once(&self) -> u32 {
        let of = |case: &Case| case.most_threads() + case.pattern.cpus_before(case);
        self.cases.iter().map(of).max().unwrap_or(1)
    }
}
