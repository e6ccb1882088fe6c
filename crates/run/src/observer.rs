//! Who watches rounds from outside the processes that measure.

use super::{HostTrace, RunContext};
use std::path::PathBuf;
use wiregauge_clock::{Source, Timebase};
use wiregauge_host::trace::report::TraceRequest;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::Case;
use wiregauge_sample::RoundSamples;
use wiregauge_sample::join::Times;
use wiregauge_transport::Role;

/// What a round has left.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// Its case.
    pub case: &'a Case,
    /// Its samples.
    pub samples: &'a RoundSamples,
    /// The time of each end.
    pub times: Times<'a>,
    /// What the kernels of its ranks' hosts stamped, where [`RoundObserver::trace_request`] asked.
    pub traces: &'a [(Role, HostTrace)],
}

/// Is told of each round before its processes are started, and again with its samples.
pub trait RoundObserver: Sync {
    /// A round of this run is next.
    ///
    /// # Errors
    /// It cannot be watched: the run ends.
    fn before(&self, run: usize, clock: Source) -> Result<(), Fault>;

    /// The round has left this. The times of its samples are of this scale.
    ///
    /// # Errors
    /// As of [`RoundObserver::before`].
    fn after(&self, round: Observed<'_>, clock: Source, time: &Timebase) -> Result<(), Fault>;

    /// Where a thread of a rank on this host is to stamp its posts and arrivals, or to say who it
    /// is; `None`: nowhere.
    fn stamp_memory(&self, _rank: usize, _thread: usize) -> Option<PathBuf> {
        None
    }

    /// What the kernel of each rank's host is to stamp in the round that is next, and its agent to
    /// send; `None`: nothing.
    fn trace_request(&self) -> Option<TraceRequest> {
        None
    }

    /// Whether it needs the clocks of the hosts compared.
    fn compares_clocks(&self) -> bool {
        false
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

    /// What the agents' kernels stamp for it.
    pub(super) fn trace_request(&self) -> Option<TraceRequest> {
        self.observer?.trace_request()
    }

    /// Whether it needs the clocks of the hosts.
    pub(super) fn compares_clocks(&self) -> bool {
        self.observer.is_some_and(RoundObserver::compares_clocks)
    }

    /// Tells it of what the round has left.
    pub(super) fn end_observing(
        &self,
        round: Observed<'_>,
        clock: Source,
        time: &Timebase,
    ) -> Result<(), Fault> {
        self.observer.map_or(Ok(()), |observer| observer.after(round, clock, time))
    }
}
