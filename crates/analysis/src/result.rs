//! What a round leaves.

use std::time::{Duration, Instant};
use wiregauge_clock::{LocalNs, Ticks, Timebase};
use wiregauge_host::trace::Stamp;
use wiregauge_host::trace::report::TraceReport;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::protocol::Outcome;
use wiregauge_plan::Case;
use wiregauge_sample::arena::Arena;
use wiregauge_transport::Role;

/// What a host's kernel stamped, or in a sentence why it did not.
pub type HostTrace = Result<(TraceReport, Vec<Stamp>), String>;

/// Results of one thread of a rank.
pub struct ThreadResult {
    /// Its samples.
    pub arena: Arena,
    /// Its results; `None`: it did not report.
    pub outcome: Option<Outcome>,
    /// Its host, a number of the plan's hosts; `None`: this one.
    pub host: Option<u32>,
    /// The effective settings of its connections.
    pub effective_settings: Vec<(String, String)>,
}

/// What the ranks of one role left.
pub struct RankResult {
    /// Their role.
    pub role: Role,
    /// What their threads left, in the order of the ranks.
    pub threads: Vec<ThreadResult>,
}

/// What a round left.
#[derive(Default)]
pub struct RoundResult {
    /// What its ranks left, those of a role together, in the order of the topology.
    pub ranks: Vec<RankResult>,
    /// What the kernels of its ranks' hosts stamped, where they were asked, each with its role.
    pub traces: Vec<(Role, HostTrace)>,
    /// What went wrong.
    pub fault: Option<Fault>,
    /// The instant of this host's clock at which all ranks were to start; `None`: at once.
    pub start: Option<LocalNs>,
    /// From the start to the end of its last rank.
    pub ran: Option<(Instant, Instant)>,
    /// For how long its ends were suspended meanwhile: stopped, paused, or their computer slept.
    pub suspended: Duration,
}

impl RoundResult {
    /// What the threads of a role's side left: nodes are on the client's.
    pub fn threads_of(&self, role: Role) -> &[ThreadResult] {
        let rank = self.ranks.iter().find(|rank| rank.role.side() == role.side());
        rank.map_or(&[], |rank| &rank.threads)
    }

    /// The time of the round: of this host, or of the simulation, whose ticks are nanoseconds.
    pub fn time(&self, case: &Case, own: Timebase) -> Timebase {
        if !case.transport.simulates_time() {
            return own;
        }
        let first =
            self.threads_of(Role::Client).first().and_then(|part| part.arena.rows().first());
        Timebase::nanoseconds(first.map_or(Ticks(0), |row| row.submit))
    }
}
