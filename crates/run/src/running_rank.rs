//! A rank of a running round: its process, what it has sent, and what it may still send. Its agent
//! may be broken or hostile, so the number of messages that it may send in a round is limited.

use super::conditions::Conditions;
use super::rank_trace::TraceSoFar;
use std::time::{Duration, Instant};
use wiregauge_analysis::result::{HostTrace, RankResult, ThreadResult};
use wiregauge_host::trace::Stamp;
use wiregauge_host::trace::report::TraceReport;
use wiregauge_measure::agent::remote_memory::{REPORT, ROWS};
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::limits;
use wiregauge_measure::control::program::ProgramIdentity;
use wiregauge_measure::control::protocol::*;
use wiregauge_plan::{Case, topology};
use wiregauge_remote::host::{RemoteHost, check_program};
use wiregauge_remote::process::Agent;
use wiregauge_sample::arena::{Arena, Row};
use wiregauge_transport::{Blob, Role};

/// Progress reports allowed beyond one for each interval: after a pause a connection delivers
/// several at once.
const MOST_EARLY_REPORTS: u32 = 16;

/// A rank of a running round.
pub(super) struct RunningRank<'a> {
    pub role: Role,
    /// `None`: this host.
    pub host: Option<&'a RemoteHost>,
    pub threads: Vec<ThreadResult>,
    /// `None`: the process of another rank runs it, too.
    pub agent: Option<Agent>,
    /// The local addresses of its threads' endpoints.
    pub addresses: Vec<Vec<Blob>>,
    /// Messages handled, as far as known here.
    pub handled: u64,
    /// When that number last changed.
    pub moved: Instant,
    /// Whether its channel has ended.
    pub is_gone: bool,
    /// Whether it has violated the protocol; its further messages are ignored.
    pub is_broken: bool,
    /// What its host's kernel stamps.
    pub trace: TraceSoFar,
    began: Instant,
    /// Messages that measure its overhead.
    overhead: u32,
    /// Messages handled, as an agent on another host reported, and how often it did.
    reported: u64,
    reports: u32,
}

impl<'a> RunningRank<'a> {
    pub fn new(
        case: &Case,
        conditions: &Conditions<'a>,
        rank: &topology::Rank,
    ) -> Result<RunningRank<'a>, Fault> {
        let rows = conditions.context.analysis(case).rows(case, rank.role);
        let thread = |_| {
            let arena = Arena::create(rows as usize).map_err(|error| {
                Fault::new(format!("cannot allocate memory for {rows} samples: {error}"))
            })?;
            let host = rank.host;
            Ok(ThreadResult { arena, outcome: None, host, effective_settings: Vec::new() })
        };
        Ok(RunningRank {
            role: rank.role,
            host: conditions.remote_host(rank.host),
            threads: (0..rank.threads).map(thread).collect::<Result<_, Fault>>()?,
            agent: None,
            addresses: vec![vec![Blob::default()]; rank.threads as usize],
            handled: 0,
            moved: Instant::now(),
            is_gone: false,
            is_broken: false,
            trace: TraceSoFar::default(),
            began: Instant::now(),
            overhead: conditions.overhead_messages,
            reported: 0,
            reports: 0,
        })
    }

    pub fn send(&mut self, message: &ToAgent) {
        if let Some(agent) = &mut self.agent {
            agent.send(message);
        }
    }

    /// Whether all of its threads have reported their end.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.outcome.is_some())
    }

    pub fn is_running(&self) -> bool {
        self.agent.is_some() && !self.has_ended()
    }

    /// Takes a progress report. Only an agent on another host may send one, once in each interval.
    /// A report that is not higher than the earlier ones is no progress.
    pub fn report(&mut self, messages: u64) -> Result<(), Fault> {
        self.reports += 1;
        let allowed = most_reports(self.began.elapsed());
        let is_due = self.host.is_some() && self.reports <= allowed;
        let reports = self.reports;
        ensure!(is_due, self.broke(format!("sent {reports} progress reports")));
        self.reported = self.reported.max(messages);
        Ok(())
    }

    /// The name of its host, where it is another than this.
    pub fn host_name(&self) -> Option<String> {
        self.host.map(|host| host.session.host().to_string())
    }

    /// Updates the number of handled messages, and when it last changed.
    pub fn update_progress(&mut self) {
        let counted = self.threads.iter().map(|thread| thread.arena.progress()).sum();
        let handled = self.reported.max(counted);
        if handled != self.handled {
            (self.handled, self.moved) = (handled, Instant::now());
        }
    }

    /// Checks which program its agent is, where that was asked.
    pub fn welcome(
        &mut self,
        program: Option<&ProgramIdentity>,
        conditions: &Conditions<'_>,
    ) -> Result<(), Fault> {
        match (self.host, program) {
            (Some(host), told) => check_program(&host.session, told),
            (None, Some(told)) => conditions.programs.check(&conditions.program, told),
            (None, None) => Ok(()),
        }
    }

    /// Stores the effective settings of its threads.
    pub fn connected(&mut self, each: Vec<Vec<(String, String)>>) -> Result<(), Fault> {
        ensure!(each.len() == self.threads.len(), self.unexpected());
        for (thread, settings) in each.into_iter().enumerate() {
            limits::check_settings(&settings).map_err(|how| self.broke(how))?;
            self.threads[thread].effective_settings = settings;
        }
        Ok(())
    }

    /// Stores a thread's results. A second report of the same thread is an error.
    pub fn store(&mut self, thread: u32, outcome: Outcome) -> Result<(), Fault> {
        limits::check_outcome(&outcome, self.overhead).map_err(|how| self.broke(how))?;
        match self.threads.get_mut(thread as usize) {
            Some(ThreadResult { outcome: place @ None, .. }) => *place = Some(outcome),
            Some(_) => return Err(self.broke(format!("ended thread {thread} twice"))),
            None => {
                return Err(self.broke(format!("ended thread {thread}, which it does not have")));
            }
        }
        Ok(())
    }

    /// Stores samples of an agent on another host (one on this host shares its memory). They must
    /// arrive before the thread's end and in full frames but for the last, so that the number of
    /// samples limits the number of frames.
    pub fn take(&mut self, thread: u32, rows: &[Row]) -> Result<(), Fault> {
        let is_remote = self.host.is_some();
        let part = self.threads.get_mut(thread as usize);
        let due = part.filter(|part| {
            let is_whole = part.arena.rows().len().is_multiple_of(ROWS);
            let is_full_or_last = (1..=ROWS).contains(&rows.len()) && is_whole;
            is_remote && part.outcome.is_none() && is_full_or_last
        });
        let most = due.as_ref().map(|part| part.arena.capacity());
        match (due.is_some_and(|part| part.arena.extend(rows)), most) {
            (true, _) => Ok(()),
            (false, None) => Err(self.broke("sent unrequested samples")),
            (false, Some(most)) => {
                Err(self.broke(format!("sent more samples than the {most} of its round")))
            }
        }
    }

    /// Takes stamps of its host's kernel.
    pub fn stamps(&mut self, stamps: &[Stamp]) -> Result<(), Fault> {
        self.trace.stamps(stamps).map_err(|how| self.broke(how))
    }

    /// Takes what is to be known of them.
    pub fn traced(&mut self, report: Result<Box<TraceReport>, String>) -> Result<(), Fault> {
        self.trace.report(report).map_err(|how| self.broke(how))
    }

    fn broke(&mut self, how: impl Into<String>) -> Fault {
        self.is_broken = true;
        Fault::Broke { role: self.role, host: self.host_name(), how: how.into() }
    }

    /// The fault of an agent that sent a message out of order.
    pub fn unexpected(&mut self) -> Fault {
        self.broke("sent an unexpected message")
    }
}

/// The most progress reports that an agent may send in this time: twice as many as there are
/// intervals, since the clocks of the two hosts may run at different speeds.
fn most_reports(since: Duration) -> u32 {
    let intervals = 2.0 * since.as_secs_f64() / REPORT.as_secs_f64();
    MOST_EARLY_REPORTS.saturating_add(intervals as u32)
}

/// What ranks left, those of a role together.
pub(super) fn by_role(ranks: Vec<RunningRank<'_>>) -> Vec<RankResult> {
    let mut roles: Vec<RankResult> = Vec::new();
    for RunningRank { role, threads, .. } in ranks {
        match roles.iter_mut().find(|one| one.role == role) {
            Some(known) => known.threads.extend(threads),
            None => roles.push(RankResult { role, threads }),
        }
    }
    roles
}

/// What their hosts' kernels stamped.
pub(super) fn traces(ranks: &mut [RunningRank<'_>]) -> Vec<(Role, HostTrace)> {
    ranks.iter_mut().filter_map(|rank| Some((rank.role, rank.trace.done.take()?))).collect()
}
