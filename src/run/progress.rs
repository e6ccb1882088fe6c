//! What somebody who watches is told.

use crate::plan::Rounds;

/// Somebody who watches a run.
pub trait Watcher {
    /// Where the threads run, in a sentence: before the first round of a plan of several.
    fn cpus(&mut self, told: &str);
    /// A round of so many cases begins.
    fn round(&mut self, round: u32, rounds: Rounds, cases: usize);
    /// A case of the round begins.
    fn case(&mut self, label: &str);
    /// It has handled so many messages.
    fn messages(&mut self, messages: u64);
}

/// Nobody.
pub struct Silent;

impl Watcher for Silent {
    fn cpus(&mut self, _: &str) {}
    fn round(&mut self, _: u32, _: Rounds, _: usize) {}
    fn case(&mut self, _: &str) {}
    fn messages(&mut self, _: u64) {}
}
