//! One round of one case: a fresh process per rank, prepared, connected, started, watched, ended.

mod agents;

pub use wiregauge_analysis::result::{RankResult, RoundResult};

use crate::conditions::Conditions;
use crate::period::{Periods, Watched};
use crate::running_rank::{RunningRank, by_role, traces};
use crate::start_barrier::StartBarrier;
use crate::suspension::{self, Gaps};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use wiregauge_analysis::result::ThreadResult;
use wiregauge_clock::LocalNs;
use wiregauge_clock::exchange::Local;
use wiregauge_host::Suspension;
use wiregauge_measure::agent::remote_memory::REPORT;
use wiregauge_measure::control::case::CaseFrame;
use wiregauge_measure::control::fault::{Fault, Handled};
use wiregauge_measure::control::patience::patience;
use wiregauge_measure::control::protocol::*;
use wiregauge_measure::control::secret;
use wiregauge_plan::pairs::HERE;
use wiregauge_plan::{Case, Ending};
use wiregauge_remote::process::{Agent, AgentMessage, EXIT};
use wiregauge_remote::ssh;
use wiregauge_transport::{Role, Site};

/// Interval between two checks of a round: rare enough not to disturb the measuring CPUs, often
/// enough to stop promptly.
const CHECK: Duration = Duration::from_millis(250);
/// How long agents that were told to stop may take to report, on a busy machine too. Those of
/// another host send their samples.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Messages of all agents that were read and not yet taken. More wait in their pipes: what an agent
/// sends is never more memory here than these, each of at most
/// [`LONGEST`](wiregauge_measure::control::frame::LONGEST) bytes before it is parsed.
const MOST_WAITING: usize = 4;

/// Runs one round, together with the others that share its barrier.
pub fn run(
    case: &Case,
    conditions: &Conditions<'_>,
    barrier: StartBarrier<'_>,
    watch: &mut dyn FnMut(Watched),
) -> Result<RoundResult, Fault> {
    let ranks = case.topology.ranks.iter().map(|rank| RunningRank::new(case, conditions, rank));
    let ranks = ranks.collect::<Result<Vec<_>, Fault>>()?;
    let (tx, rx) = mpsc::sync_channel(MOST_WAITING);
    Suspension::count_continues().map_err(|error| Fault::new(error.to_string()))?;
    let gaps = Gaps::default();
    let mut round = Round { case, conditions, ranks, rx, start: None, began: None, gaps };
    let fault = round.run(tx, barrier, watch).err();
    let (start, ran) = (round.start, round.began.map(|began| (began, Instant::now())));
    let gaps = round.gaps;
    let (mut ranks, fault) = round.end(fault);
    let traces = traces(&mut ranks);
    let ranks = by_role(ranks);
    let ends = ranks.iter().flat_map(|rank| &rank.threads);
    let suspended = gaps.of_round(
        ends.filter_map(|end| Some((end.outcome.as_ref()?.suspension, end.host.is_none()))),
    );
    Ok(RoundResult { ranks, traces, fault, start, ran, suspended })
}

/// A round's own seed, so that rounds are repetitions and not copies.
pub(super) fn seed_of(seed: u64, round: u32) -> u64 {
    seed.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

struct Round<'a> {
    case: &'a Case,
    conditions: &'a Conditions<'a>,
    /// In the order of the topology.
    ranks: Vec<RunningRank<'a>>,
    rx: Receiver<AgentMessage>,
    start: Option<LocalNs>,
    began: Option<Instant>,
    /// When the controller was suspended while it ran.
    gaps: Gaps,
}

impl<'a> Round<'a> {
    fn run(
        &mut self,
        tx: SyncSender<AgentMessage>,
        barrier: StartBarrier<'_>,
        watch: &mut dyn FnMut(Watched),
    ) -> Result<(), Fault> {
        let order = self.order();
        let (started, conditions) = (self.start_agents(&order, tx)?, self.conditions);
        self.answers_of(started, ssh::GREETING, "greeting", |rank, message| match message {
            FromAgent::Welcome { program, .. } => rank.welcome(program.as_ref(), conditions),
            _ => Err(rank.unexpected()),
        })?;
        let cookie = secret::fresh().map_err(Fault::new)?;
        for &rank in &order {
            let case = Box::new(CaseFrame::from(self.case));
            let assignment = Box::new(self.assignment(rank, cookie));
            self.ranks[rank].trace.request = assignment.trace.clone();
            self.ranks[rank].send(&ToAgent::Open(case, assignment));
        }
        let patience = self.case.setup_time();
        self.each_answer(patience, "opening endpoints", |rank, message| {
            let FromAgent::Opened(addresses) = message else { return Err(rank.unexpected()) };
            rank.addresses = addresses;
            Ok(())
        })?;
        let addresses: Vec<_> =
            self.ranks.iter_mut().map(|rank| std::mem::take(&mut rank.addresses)).collect();
        for &rank in &order {
            let others = self.case.topology.route(rank, &addresses);
            let wrong = || Fault::new("an agent reported the wrong number of addresses");
            self.ranks[rank].send(&ToAgent::Connect(others.ok_or_else(wrong)?));
        }
        // Meanwhile memory is touched and the CPUs' noise measured.
        let patience = patience + ssh::GREETING + Duration::from_nanos(self.conditions.noise.0);
        self.each_answer(patience, "connecting", |rank, message| {
            let FromAgent::Connected(each) = message else { return Err(rank.unexpected()) };
            rank.connected(each)
        })?;
        self.start = self.start_of(barrier.wait(self.conditions.context.interrupted))?;
        self.check_clocks()?;
        self.began = Some(Instant::now() + self.until_start());
        for &rank in &order {
            let host = self.case.topology.ranks[rank].host;
            let at = self.start.and_then(|at| self.conditions.remote_ticks_at(host, at));
            self.ranks[rank].send(&ToAgent::Start(at));
        }
        self.watch(watch)
    }

    /// The ranks with a process of their own, servers first: they receive when a client starts.
    fn order(&self) -> Vec<usize> {
        let processes = match self.case.transport.descriptor().one_process {
            true => 1,
            false => self.ranks.len(),
        };
        let mut order: Vec<usize> = (0..processes).collect();
        order.sort_by_key(|rank| self.ranks[*rank].role.side() == Role::Client);
        order
    }

    /// The interface or address of a rank's end; `None`: as the case says.
    fn site(&self, rank: usize) -> Option<Site> {
        if self.case.settings.interfaces().is_some() {
            return None;
        }
        match self.ranks[rank].host {
            Some(_) => Some(Site::Session),
            None => self.ranks.iter().find_map(|other| other.host)?.own.map(Site::Address),
        }
    }

    fn assignment(&self, rank: usize, cookie: [u8; 32]) -> Assignment {
        let one_process = self.case.transport.descriptor().one_process;
        let RunningRank { role, host, threads, .. } = &self.ranks[rank];
        let cpus = |rank: usize| self.conditions.cpus_of_rank(self.case, rank);
        let own = cpus(rank);
        let slot = |(thread, result): (usize, &ThreadResult)| ThreadSlot {
            cpu: own.iter().cycle().nth(thread).copied(),
            arena: result.arena.path(),
            stamps: self.conditions.context.stamp_memory(rank, thread).filter(|_| host.is_none()),
        };
        let beside = (0..self.ranks.len()).filter(|other| *other != rank);
        let others = beside.flat_map(|other| {
            let threads = self.ranks[other].threads.len();
            cpus(other).into_iter().cycle().take(threads).collect::<Vec<_>>()
        });
        let servers = self.ranks.iter().find(|other| other.role == Role::Server);
        let server = servers.and_then(|server| server.threads.first()).filter(|_| one_process);
        let rows = threads.first().map_or(0, |thread| thread.arena.capacity() as u64);
        let injected_error = self.conditions.injected_clock_error;
        let there = host.map(|host| Local { injected_error, ..host.probe.local });
        Assignment {
            role: *role,
            rank: rank as u32,
            slots: threads.iter().enumerate().map(slot).collect(),
            // CPUs of another host say nothing of this one's.
            others: others.filter(|_| self.ranks.iter().all(|rank| rank.host.is_none())).collect(),
            server_arena: server.map(|thread| thread.arena.path()),
            remote_rows: host.map(|_| rows),
            site: self.site(rank),
            run: self.conditions.run,
            cookie,
            clock: there.unwrap_or(self.conditions.clock),
            epoch_of_day_ns: host.is_none().then_some(self.conditions.epoch_of_day_ns),
            noise: self.conditions.noise,
            overhead_messages: self.conditions.overhead_messages,
            trace: self.conditions.context.trace_request(),
        }
    }

    /// Waits for one answer of each agent.
    fn each_answer(
        &mut self,
        patience: Duration,
        step: &str,
        take: impl FnMut(&mut RunningRank<'_>, FromAgent) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let all = self.ranks.iter().map(|rank| rank.agent.is_some()).collect();
        self.answers_of(all, patience, step, take)
    }

    /// Waits for one answer of each rank that is missing.
    fn answers_of(
        &mut self,
        mut missing: Vec<bool>,
        patience: Duration,
        step: &str,
        mut take: impl FnMut(&mut RunningRank<'_>, FromAgent) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let deadline = Instant::now() + patience;
        missing.resize(self.ranks.len(), false);
        while missing.contains(&true) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.next_message(left)? {
                // One of the round before, which was on its way when that ended.
                Some((_, FromAgent::Progress(_))) => {}
                Some((rank, message)) => {
                    let is_due = std::mem::take(&mut missing[rank]);
                    ensure!(is_due, self.ranks[rank].unexpected());
                    take(&mut self.ranks[rank], message)?;
                }
                None if left.is_zero() => {
                    let who = self.names_of(&missing);
                    return Err(Fault::Late { who, step: step.into(), patience });
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The ranks that are marked, in words: up to two of them.
    fn names_of(&self, marked: &[bool]) -> String {
        let ranks: Vec<usize> = (0..marked.len()).filter(|rank| marked[*rank]).collect();
        match ranks[..] {
            [one] => self.name_of(one),
            [one, other] => format!("{} and {}", self.name_of(one), self.name_of(other)),
            _ => format!("{} of {} agents", ranks.len(), marked.len()),
        }
    }

    fn name_of(&self, rank: usize) -> String {
        let on = self.told_apart(rank).map(|host| format!(" on {host}")).unwrap_or_default();
        format!("the {}{on}", self.ranks[rank].role.name())
    }

    /// The next message of an agent, if it comes before the next check. A refusal, and the end of a
    /// channel, are faults.
    fn next_message(&mut self, patience: Duration) -> Result<Option<(usize, FromAgent)>, Fault> {
        let interrupted = self.conditions.context.interrupted.load(Ordering::Relaxed);
        ensure!(!interrupted, Fault::Interrupted);
        let AgentMessage { rank, message } = match self.rx.recv_timeout(patience.min(CHECK)) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::new("lost the connections to all agents"));
            }
        };
        let (role, host) = (self.ranks[rank].role, self.told_apart(rank));
        match message {
            Ok(FromAgent::Refused { wrong_use, sentence }) => {
                let sentence = format!("{}: {sentence}", self.name_of(rank));
                Err(Fault::of_agent(wrong_use, sentence))
            }
            Ok(message) => Ok(Some((rank, message))),
            Err(error) => {
                self.ranks[rank].is_gone = true;
                Err(Fault::Gone { role, host, why: error.to_string() })
            }
        }
    }

    /// The host of a rank, where others have its role too; of a node also its number, since a host
    /// may have several.
    fn told_apart(&self, rank: usize) -> Option<String> {
        let RunningRank { role, .. } = self.ranks[rank];
        let is_one = self.ranks.iter().filter(|other| other.role == role).count() == 1;
        let host = || self.ranks[rank].host_name().unwrap_or_else(|| HERE.to_string());
        (!is_one).then(|| match role {
            Role::Node => format!("{} (rank {rank})", host()),
            Role::Client | Role::Server => host(),
        })
    }

    /// Watches the running round until all ranks have ended.
    fn watch(&mut self, watch: &mut dyn FnMut(Watched)) -> Result<(), Fault> {
        let patience = patience(self.case) + self.until_start();
        let Conditions { context, clock, .. } = self.conditions;
        let metrics = context.analysis(self.case).metrics(self.case);
        let mut periods = context.report_every.map(|every| Periods::new(every, &metrics));
        self.all_moved();
        while self.ranks.iter().any(RunningRank::is_running) {
            let left = periods.as_ref().map_or(CHECK, |periods| periods.left().min(CHECK));
            let (message, gap) = suspension::watch(left, || self.next_message(left));
            if let Some(gap) = gap {
                self.gaps.add(gap);
                // The agents may have been suspended, too: that is no stall.
                self.all_moved();
            }
            match message? {
                Some((rank, FromAgent::Progress(messages))) => self.ranks[rank].report(messages)?,
                Some((rank, message)) => {
                    self.note(rank, message)?;
                    self.all_moved();
                }
                None => {}
            }
            self.ranks.iter_mut().for_each(RunningRank::update_progress);
            let messages = self.counting().map(|rank| rank.handled).max().unwrap_or(0);
            let ended = |periods: &mut Periods| periods.ended(messages, &self.ranks, &clock.time);
            watch(Watched { messages, period: periods.as_mut().and_then(ended) });
            if let Some(rank) = self.stalled(patience) {
                let (role, host) = (self.ranks[rank].role, self.told_apart(rank));
                let handled = self.counting().map(|rank| Handled {
                    role: rank.role,
                    messages: rank.handled,
                    host: rank.host_name(),
                });
                let handled = handled.collect();
                let is_paced = self.case.schedule.rate().is_some();
                return Err(Fault::Stalled { role, host, patience, handled, is_paced });
            }
        }
        Ok(())
    }

    /// The ranks whose progress is messages. An end that only provides its memory shows no more
    /// than that it is alive.
    fn counting(&self) -> impl Iterator<Item = &RunningRank<'a>> {
        let is_one_sided = self.case.profile().is_one_sided;
        self.ranks.iter().filter(move |rank| !is_one_sided || rank.role.side() == Role::Client)
    }

    fn all_moved(&mut self) {
        let now = Instant::now();
        self.ranks.iter_mut().for_each(|rank| rank.moved = now);
    }

    /// A rank that should handle messages and has not for too long. Each is checked by itself: over
    /// a transport that loses messages, one goes on when another has stopped.
    fn stalled(&self, patience: Duration) -> Option<usize> {
        let last = |rank: &RunningRank<'_>| match self.ranks.iter().any(|rank| rank.agent.is_none())
        {
            // One process runs all ranks, one after the other.
            true => self.ranks.iter().map(|rank| rank.moved).max().unwrap_or(rank.moved),
            false => rank.moved,
        };
        // An agent on another host reports its progress at intervals.
        let limit = |rank: &RunningRank<'_>| match rank.host {
            Some(_) => patience + 2 * REPORT,
            None => patience,
        };
        let is_late =
            |rank: &RunningRank<'_>| rank.is_running() && last(rank).elapsed() > limit(rank);
        // Of several, the one that stopped first is more likely the cause.
        let ranks = self.ranks.iter().enumerate().filter(|(_, rank)| is_late(rank));
        ranks.min_by_key(|(_, rank)| last(rank)).map(|(number, _)| number)
    }

    /// Takes a message of a running agent. An unplanned end is a fault.
    fn note(&mut self, rank: usize, message: FromAgent) -> Result<(), Fault> {
        let host = self.told_apart(rank);
        let own = &mut self.ranks[rank];
        let role = own.role;
        match message {
            FromAgent::Ended { thread, outcome } => {
                let (ended, messages) = (outcome.ended, outcome.counts.sent);
                own.store(thread, *outcome)?;
                ensure!(ended.as_planned(), Fault::EndedEarly { role, host, ended });
                match (self.case.profile().ending, role) {
                    (Ending::ServersAfterClients, Role::Client) => self.release_servers(),
                    // Nodes tell each other over their own connections.
                    (_, Role::Node)
                    | (Ending::ServersAfterClients, Role::Server)
                    | (Ending::SenderTellsReceiver, Role::Server) => {}
                    // Of both directions each end waits for the other.
                    (Ending::SenderTellsReceiver | Ending::EachTellsOther, _) => {
                        for other in self.ranks.iter_mut().filter(|other| other.role != role) {
                            other.send(&ToAgent::Expect { thread, messages });
                        }
                    }
                }
                Ok(())
            }
            FromAgent::Rows { thread, rows } => own.take(thread, &rows),
            FromAgent::Stamps(stamps) => own.stamps(&stamps),
            FromAgent::Traced(report) => own.traced(report),
            _ => Err(own.unexpected()),
        }
    }

    /// Ends the servers' threads when all clients have ended.
    fn release_servers(&mut self) {
        let (clients, servers): (Vec<_>, Vec<_>) =
            self.ranks.iter_mut().partition(|rank| rank.role == Role::Client);
        if clients.iter().all(|client| client.has_ended()) {
            for server in servers.into_iter().filter(|server| !server.has_ended()) {
                for thread in 0..server.threads.len() as u32 {
                    server.send(&ToAgent::Expect { thread, messages: 0 });
                }
            }
        }
    }

    /// Keeps the agents for the next round, where rounds share them.
    fn keep_agents(&mut self) -> Result<(), Fault> {
        let are_shared = self.conditions.shares_processes(self.case);
        if !are_shared || !self.ranks.iter().all(RunningRank::has_ended) {
            return Ok(());
        }
        self.ranks.iter_mut().for_each(|rank| rank.send(&ToAgent::Again));
        let patience = self.case.setup_time();
        self.each_answer(patience, "releasing its endpoints", |rank, message| match message {
            FromAgent::Released => Ok(()),
            _ => Err(rank.unexpected()),
        })?;
        for (number, rank) in self.ranks.iter_mut().enumerate() {
            let host = self.case.topology.ranks[number].host;
            if let Some(agent) = rank.agent.take() {
                self.conditions.residents.keep(host, agent);
            }
        }
        Ok(())
    }

    /// Ends the agents. After a fault they are told to stop first and may report. How a process
    /// died says more than how the others noticed.
    fn end(mut self, fault: Option<Fault>) -> (Vec<RunningRank<'a>>, Option<Fault>) {
        let order = self.order();
        let may_report =
            |rank: &RunningRank<'_>| rank.is_running() && !rank.is_gone && !rank.is_broken;
        if fault.is_some() {
            self.ranks.iter_mut().for_each(|rank| rank.send(&ToAgent::Stop));
            let deadline = Instant::now() + LAST_WORDS;
            while self.ranks.iter().any(may_report) {
                let left = deadline.saturating_duration_since(Instant::now());
                let Ok(AgentMessage { rank, message }) = self.rx.recv_timeout(left) else { break };
                let rank = &mut self.ranks[rank];
                // What is not due has marked its sender.
                let _ = match message {
                    _ if rank.is_broken => Ok(()),
                    Ok(FromAgent::Ended { thread, outcome }) => rank.store(thread, *outcome),
                    Ok(FromAgent::Rows { thread, rows }) => rank.take(thread, &rows),
                    Ok(FromAgent::Progress(messages)) => rank.report(messages),
                    Ok(_) => Ok(()),
                    Err(_) => {
                        rank.is_gone = true;
                        Ok(())
                    }
                };
            }
        }
        // The user's wish ends an endless round as planned.
        let is_planned = |fault: &Fault| {
            let all = self.ranks.iter().all(|rank| rank.agent.is_none() || rank.has_ended());
            self.case.is_endless() && matches!(fault, Fault::Interrupted) && all
        };
        let fault = fault.filter(|fault| self.began.is_none() || !is_planned(fault));
        let fault = fault.or_else(|| self.keep_agents().err());
        if fault.is_some() && self.conditions.shares_processes(self.case) {
            self.conditions.residents.lose();
        }
        let names: Vec<_> = (0..self.ranks.len()).map(|rank| self.name_of(rank)).collect();
        // An agent that waits until its last message is read could not exit.
        drop(self.rx);
        // Ranks of one launch end together.
        self.ranks.iter_mut().filter_map(|rank| rank.agent.as_mut()).for_each(Agent::hang_up);
        let first = fault.as_ref().and_then(Fault::gone);
        let launch = self.ranks.iter().find_map(|rank| rank.agent.as_ref()?.launch());
        let mut deaths = Vec::new();
        let began = Instant::now();
        for rank in order {
            let rank = &mut self.ranks[rank];
            // What was told to stop and has said nothing does not exit either. A launcher may.
            let is_silent = fault.is_some() && may_report(rank) && launch.is_none();
            let patience = if is_silent { Duration::ZERO } else { EXIT + self.case.queue_time() };
            // A broken one is killed where it is dropped, and its end says nothing.
            let agent = rank.agent.take().filter(|_| !rank.is_broken);
            deaths.extend(agent.and_then(|agent| agent.end(began + patience)));
        }
        let first = launch.and_then(|launch| launch.first_gone(&names, first));
        if let (Some(death), Some(first)) = (deaths.first_mut(), first) {
            death.how = format!("{}; {first}", death.how);
        }
        (self.ranks, Fault::with_deaths(fault, deaths))
    }
}
