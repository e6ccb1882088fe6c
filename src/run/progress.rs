//! What somebody who watches is told.

use crate::plan::Rounds;

/// Somebody who watches a run.
pub trait Watcher {
    /// Where the threads run, in a sentence: before the first round of a plan of several.
    fn cpus(&mut self, _sentence: &str) {}
    /// A round of this many cases begins.
    fn round(&mut self, _round: u32, _rounds: Rounds, _cases: usize) {}
    /// A case of the round begins.
    fn case(&mut self, _label: &str) {}
    /// Messages that it has handled so far.
    fn messages(&mut self, _messages: u64) {}
}

/// Nobody.
pub struct Silent;

impl Watcher for Silent {}
