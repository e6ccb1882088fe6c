//! Who watches rounds from outside the processes that measure.

use super::RunContext;
use crate::clock::{Source, Timebase};
use crate::control::fault::Fault;
use crate::plan::Case;
use crate::sample::RoundSamples;
use std::path::PathBuf;

/// Is told of each round before its processes are started, and again with its samples.
pub trait RoundObserver: Sync {
    /// A round of this run is next.
    ///
    /// # Errors
    /// It cannot be watched: the run ends.
    fn before(&self, run: usize, clock: Source) -> Result<(), Fault>;

    /// The round of this case has left these samples, whose times are of this scale.
    ///
    /// # Errors
    /// As of [`RoundObserver::before`].
    fn after(
        &self,
        case: &Case,
        samples: &RoundSamples,
        clock: Source,
        time: &Timebase,
    ) -> Result<(), Fault>;

    /// Where a thread of a rank on this host is to stamp its posts and arrivals, or to say who it
    /// is; `None`: nowhere.
    fn stamp_memory(&self, _rank: usize, _thread: usize) -> Option<PathBuf> {
        None
    }
}

impl RunContext<'_> {
    /// Tells the observer, if there is one, of a round that is next.
    pub(super) fn begin_observing(&self, run: usize, clock: Source) -> Result<(), Fault> {
        self.observer.map_or(Ok(()), |observer| observer.before(run, clock))
    }

    /// Where a thread stamps for it.
    pub(super) fn stamp_memory(&self, rank: usize, thread: usize) -> Option<PathBuf> {
        self.observer?.stamp_memory(rank, thread)
    }

    /// Tells it of what the round has left.
    pub(super) fn end_observing(
        &self,
        case: &Case,
        samples: &RoundSamples,
        clock: Source,
        time: &Timebase,
    ) -> Result<(), Fault> {
        self.observer.map_or(Ok(()), |observer| observer.after(case, samples, clock, time))
    }
}
