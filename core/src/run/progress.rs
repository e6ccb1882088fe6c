//! What somebody who watches is told.

use super::period::Period;
use crate::plan::{Case, Rounds};
use crate::stats::Metric;

/// What the rounds of a case have shown so far. It is made between rounds, of samples that the
/// controller has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SoFar {
    /// Of the metric that answers its question.
    Times {
        /// The metric.
        metric: Metric,
        /// Its median in ns.
        p50_ns: f64,
        /// Its p99 in ns.
        p99_ns: f64,
    },
    /// Messages per second.
    Rate(f64),
}

/// Somebody who watches a run.
pub trait Watcher {
    /// Where the threads run, in a sentence: before the first round of a plan of several.
    fn cpus(&mut self, _sentence: &str) {}
    /// A round of this many cases begins.
    fn round(&mut self, _round: u32, _rounds: Rounds, _cases: usize) {}
    /// A case of the round starts: its index in the plan, its label, and its figures so far.
    fn case(&mut self, _case: usize, _label: &str, _so_far: Option<SoFar>) {}
    /// A case has finished its part of the round, with these figures so far.
    fn measured(&mut self, _case: usize, _so_far: Option<SoFar>) {}
    /// Messages that it has handled so far.
    fn messages(&mut self, _messages: u64) {}
    /// What a case has done in the period that has just ended, where periods were asked for.
    fn period(&mut self, _number: usize, _case: &Case, _period: &Period) {}
}

/// Nobody.
pub struct Silent;

impl Watcher for Silent {}
