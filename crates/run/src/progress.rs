//! What somebody who watches is told.

use super::period::Period;
pub use wiregauge_analysis::so_far::SoFar;
use wiregauge_plan::{Case, Rounds};

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
