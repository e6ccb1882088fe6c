//! One round of one case: two fresh processes, prepared, connected, started, watched, ended.

use crate::agent::remote_memory::REPORT;
use crate::clock::LocalNs;
use crate::control::case::CaseFrame;
use crate::control::fault::{Fault, Handled};
use crate::control::frame::FrameError;
use crate::control::patience::patience;
use crate::control::protocol::*;
use crate::control::secret;
use crate::plan::{Case, Ending};
use crate::remote::host::RemoteHost;
use crate::remote::process::{Agent, AgentMessage, AgentPlace};
use crate::remote::ssh;
use crate::run::conditions::{Conditions, pair_of};
use crate::run::start_barrier::{LEAD, StartBarrier};
use crate::sample::arena::{Arena, Row};
use crate::transport::{Blob, Role, Site};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the driver looks: rare enough not to disturb the measuring CPUs, often enough for a
/// stop to be prompt.
const LOOK: Duration = Duration::from_millis(250);
/// How long a fresh process may take until it greets.
const GREETING: Duration = Duration::from_secs(10);
/// How long agents that were told to stop may take to tell what they have.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The same of one on another host, which sends its samples too.
const LAST_WORDS_REMOTE: Duration = Duration::from_secs(10);
/// What one thread of a role left.
pub struct Part {
    /// Its samples.
    pub arena: Arena,
    /// What it brought home; `None` when it never came.
    pub outcome: Option<Outcome>,
    /// Settings as granted.
    pub granted: Vec<(String, String)>,
}

/// What a round left.
pub struct Finished {
    /// What each thread of the client left.
    pub client: Vec<Part>,
    /// The same of the server.
    pub server: Vec<Part>,
    /// What went wrong, a sentence; `None` when all went as planned.
    pub fault: Option<Fault>,
    /// The time of this host's clock at which its ends were to begin; `None`: at once.
    pub agreed: Option<LocalNs>,
    /// From when it was told to go to when both had told of their ends.
    pub ran: Option<(Instant, Instant)>,
}

/// Runs one round; at the same time as others where they share its barrier.
pub fn run(
    case: &Case,
    conditions: &Conditions<'_>,
    barrier: StartBarrier<'_>,
    watch: &mut dyn FnMut(u64),
) -> Result<Finished, Fault> {
    let part = |role| {
        let pattern = (conditions.execution)(case.pattern.name());
        let rows = pattern.map_or(0, |pattern| pattern.rows(case, role));
        let arena = Arena::create(rows as usize)
            .map_err(|error| format!("memory for {rows} samples is not to be had: {error}"))
            .map_err(Fault::new)?;
        Ok(Part { arena, outcome: None, granted: Vec::new() })
    };
    let parts =
        |role| (0..case.threads_of(role)).map(|_| part(role)).collect::<Result<Vec<Part>, Fault>>();
    let mut round = Round {
        case,
        conditions,
        parts: [parts(Role::Client)?, parts(Role::Server)?],
        agents: Vec::new(),
        rx: None,
        agreed: None,
        began: None,
    };
    let fault = round.play(barrier, watch).err();
    let ran = round.began.map(|began| (began, Instant::now()));
    let fault = round.end(fault);
    let agreed = round.agreed;
    let [client, server] = round.parts;
    Ok(Finished { client, server, fault, agreed, ran })
}

struct Round<'a> {
    case: &'a Case,
    conditions: &'a Conditions<'a>,
    /// What each thread of each role leaves.
    parts: [Vec<Part>; 2],
    agents: Vec<Agent>,
    rx: Option<Receiver<AgentMessage>>,
    agreed: Option<LocalNs>,
    began: Option<Instant>,
}

fn index(role: Role) -> usize {
    match role {
        Role::Client => 0,
        Role::Server => 1,
    }
}

impl Round<'_> {
    fn play(&mut self, barrier: StartBarrier<'_>, watch: &mut dyn FnMut(u64)) -> Result<(), Fault> {
        let one_process = self.case.transport.descriptor().one_process;
        let roles: &[Role] =
            if one_process { &[Role::Client] } else { &[Role::Server, Role::Client] };
        let (tx, rx) = mpsc::channel();
        self.rx = Some(rx);
        for role in roles {
            let agent = Agent::start(self.place(*role), *role, VERSION, tx.clone());
            self.agents.push(agent.map_err(Fault::new)?);
        }
        drop(tx);
        let patience = if self.is_remote() { ssh::GREETING } else { GREETING };
        self.each_answer(patience, "the greeting", |_, _, said| {
            matches!(said, FromAgent::Welcome { .. })
        })?;
        let cookie = secret::fresh().map_err(Fault::new)?;
        for agent in 0..self.agents.len() {
            let assignment = self.assignment(self.agents[agent].role(), cookie, one_process);
            self.agents[agent].send(&ToAgent::Open(Box::new(assignment)));
        }
        // That of a role which no agent plays by itself is empty.
        let none = vec![vec![Blob::default()]; self.case.threads() as usize];
        let mut addresses = [none.clone(), none];
        let patience = Duration::from_nanos(self.case.timeout.0);
        self.each_answer(patience, "the opening", |_, role, said| {
            let FromAgent::Opened(each) = said else { return false };
            addresses[index(role)] = each;
            true
        })?;
        for agent in &mut self.agents {
            let role = agent.role();
            let others = self.case.topology.route(index(role), &addresses);
            let wrong = || Fault::new("an agent told of other ends than it has");
            agent.send(&ToAgent::Connect(others.ok_or_else(wrong)?));
        }
        // Memory is touched and the CPU's noise watched meanwhile.
        let patience = patience + GREETING + Duration::from_nanos(self.conditions.noise.0);
        self.each_answer(patience, "the connection", |parts, role, said| {
            let FromAgent::Connected(each) = said else { return false };
            for (part, granted) in parts[index(role)].iter_mut().zip(each) {
                part.granted = granted;
            }
            true
        })?;
        self.agreed = barrier.wait(self.conditions.interrupted);
        self.began = Some(Instant::now() + self.agreed.map_or(Duration::ZERO, |_| LEAD));
        let (case, conditions) = (self.case, self.conditions);
        // The server first (the list begins with it), so that it listens when the client sends.
        for agent in &mut self.agents {
            let at = self.agreed.and_then(|at| conditions.remote_ticks_at(case, agent.role(), at));
            agent.send(&ToAgent::Start(at));
        }
        self.watch(watch)
    }

    /// The other host, where a role is played there.
    fn remote_host(&self, role: Role) -> Option<&RemoteHost> {
        self.conditions.remote_host(self.case, role)
    }

    /// Whether any role is played on another host.
    fn is_remote(&self) -> bool {
        [Role::Client, Role::Server].into_iter().any(|role| self.remote_host(role).is_some())
    }

    /// Where an end is to be reached; `None`: as the case says.
    fn site(&self, role: Role) -> Option<Site> {
        let named = self.case.settings.interfaces().is_some();
        match (self.remote_host(role), self.remote_host(role.other())) {
            _ if named => None,
            (Some(_), _) => Some(Site::Session),
            (None, other) => other?.own.map(Site::Address),
        }
    }

    fn place(&self, role: Role) -> AgentPlace<'_> {
        match self.remote_host(role) {
            Some(host) => AgentPlace::Remote(&host.session),
            None => AgentPlace::Local(&self.conditions.program),
        }
    }

    fn assignment(&self, role: Role, cookie: [u8; 32], one_process: bool) -> Assignment<CaseFrame> {
        let host = self.remote_host(role);
        let own_parts = &self.parts[index(role)];
        let cpus = self.conditions.cpus_of(self.case);
        let cpu = |role: Role, thread| {
            pair_of(&cpus, thread).map(|pair| role.pick(pair.client, pair.server))
        };
        let slot = |(thread, part): (usize, &Part)| ThreadSlot {
            cpu: cpu(role, thread),
            arena: part.arena.path(),
        };
        let others = (0..own_parts.len()).filter(|_| !self.is_remote());
        let rows = own_parts.first().map_or(0, |part| part.arena.capacity() as u64);
        let own = (self.conditions.clock, self.conditions.time);
        let (clock, time) = host.map_or(own, |host| (host.probe.source, host.probe.time));
        Assignment {
            case: CaseFrame::new(self.case),
            role,
            slots: own_parts.iter().enumerate().map(slot).collect(),
            others: others.filter_map(|thread| cpu(role.other(), thread)).collect(),
            server_arena: self.parts[1].first().filter(|_| one_process).map(|p| p.arena.path()),
            remote: host
                .map(|_| RemoteSettings { rows, injected_clock_error: self.conditions.untrue }),
            site: self.site(role),
            cookie,
            clock,
            time,
            epoch_of_day_ns: host.is_none().then_some(self.conditions.epoch_of_day_ns),
            noise: self.conditions.noise,
            floor: self.conditions.floor,
        }
    }

    fn hear(&self, patience: Duration) -> Result<AgentMessage, RecvTimeoutError> {
        match &self.rx {
            Some(rx) => rx.recv_timeout(patience),
            None => Err(RecvTimeoutError::Disconnected),
        }
    }

    /// Awaits one answer of each agent.
    fn each_answer(
        &mut self,
        patience: Duration,
        what: &str,
        mut take: impl FnMut(&mut [Vec<Part>; 2], Role, FromAgent) -> bool,
    ) -> Result<(), Fault> {
        let deadline = Instant::now() + patience;
        let mut missing = self.agents.len();
        while missing > 0 {
            if self.conditions.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.hear(left.min(LOOK)) {
                Ok(AgentMessage { role, message: Ok(said) }) => {
                    if let FromAgent::Refused { wrong_use, sentence } = said {
                        let sentence = format!("the {}: {sentence}", role.name());
                        return Err(Fault::of_agent(wrong_use, sentence));
                    }
                    if !take(&mut self.parts, role, said) {
                        return Err(Fault::new(format!(
                            "the {} said something else than {what}",
                            role.name()
                        )));
                    }
                    missing -= 1;
                }
                Ok(AgentMessage { role, message: Err(error) }) => return Err(gone(role, &error)),
                Err(_) if left.is_zero() => {
                    return Err(Fault::new(format!(
                        "{what} did not come within {} s",
                        patience.as_secs_f64()
                    )));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Watches a round that runs, until every role has ended.
    fn watch(&mut self, watch: &mut dyn FnMut(u64)) -> Result<(), Fault> {
        let patience = patience(self.case);
        let mut seen = [u64::MAX; 2];
        let mut moved = [Instant::now(); 2];
        // Of another host's progress is known what its agent says.
        let mut told = [0; 2];
        while self.unfinished() {
            match self.hear(LOOK) {
                Ok(AgentMessage { role, message: Ok(FromAgent::Progress(messages)) }) => {
                    told[index(role)] = messages;
                }
                Ok(heard) => {
                    self.note(heard)?;
                    moved = [Instant::now(); 2];
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Fault::new("all agents are gone"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.conditions.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::Interrupted);
            }
            let own = [Role::Client, Role::Server].map(|role| self.progress(role));
            let now = [own[0].max(told[0]), own[1].max(told[1])];
            watch(now[0].max(now[1]));
            for role in [0, 1].into_iter().filter(|role| now[*role] != seen[*role]) {
                moved[role] = Instant::now();
            }
            seen = now;
            if let Some(role) = self.stuck(&moved, patience) {
                let handled = [Role::Client, Role::Server].map(|role| Handled {
                    messages: now[index(role)],
                    host: self.remote_host(role).map(|host| host.session.host().to_string()),
                });
                return Err(Fault::Stalled { role, patience, handled });
            }
        }
        Ok(())
    }

    /// A role that ought to handle messages and has not for too long. Each is looked at by itself:
    /// over a transport that loses messages, one end goes on when the other has stopped.
    fn stuck(&self, moved: &[Instant; 2], patience: Duration) -> Option<Role> {
        let last = |role: Role| match self.agents.len() {
            // One process plays both, one after the other.
            1 => moved[0].max(moved[1]),
            _ => moved[index(role)],
        };
        // One on another host tells of its progress now and then only.
        let limit =
            |agent: &Agent| if agent.is_remote() { patience + 2 * REPORT } else { patience };
        let is_late = |agent: &&Agent| {
            let role = agent.role();
            !self.has_ended(role) && last(role).elapsed() > limit(agent)
        };
        let unfinished = self.agents.iter().filter(is_late).map(Agent::role);
        // Where both are stuck, the one that has been for longer is more likely the cause.
        unfinished.min_by_key(|role| last(*role))
    }

    fn unfinished(&self) -> bool {
        self.agents.iter().any(|agent| !self.has_ended(agent.role()))
    }

    /// Whether each thread of a role has told of its end.
    fn has_ended(&self, role: Role) -> bool {
        self.parts[index(role)].iter().all(|part| part.outcome.is_some())
    }

    /// Messages that the threads of a role have handled.
    fn progress(&self, role: Role) -> u64 {
        self.parts[index(role)].iter().map(|part| part.arena.progress()).sum()
    }

    /// Takes what a running agent says. An end that was not planned is a fault.
    fn note(&mut self, heard: AgentMessage) -> Result<(), Fault> {
        let AgentMessage { role, message } = heard;
        match message.map_err(|error| gone(role, &error))? {
            FromAgent::Ended { thread, outcome } => {
                let (ended, messages) = (outcome.ended, outcome.seen.sent);
                self.keep(role, thread, *outcome);
                if !ended.as_planned() {
                    return Err(Fault::EndedEarly { role, ended });
                }
                match (self.case.pattern.ending(self.case), role) {
                    (Ending::ServersAfterClients, _) => self.release(role),
                    (Ending::SenderTellsReceiver, Role::Server) => {}
                    // Of both directions each end waits for the other.
                    (Ending::SenderTellsReceiver | Ending::EachTellsOther, _) => {
                        for agent in self.agents.iter_mut().filter(|a| a.role() != role) {
                            agent.send(&ToAgent::Expect { thread, messages });
                        }
                    }
                }
                Ok(())
            }
            FromAgent::Refused { wrong_use, sentence } => {
                let sentence = format!("the {}: {sentence}", role.name());
                Err(Fault::of_agent(wrong_use, sentence))
            }
            FromAgent::Rows { thread, rows } => self.take(role, thread, &rows),
            _ => Err(Fault::new(format!("the {} spoke out of turn", role.name()))),
        }
    }

    /// Lets the ports of a server of `rpc` go when those of the client have ended: each spoke to
    /// all.
    fn release(&mut self, ended: Role) {
        if ended == Role::Server || !self.has_ended(Role::Client) {
            return;
        }
        for agent in self.agents.iter_mut().filter(|agent| agent.role() == Role::Server) {
            for thread in 0..self.case.threads_of(Role::Server) {
                agent.send(&ToAgent::Expect { thread, messages: 0 });
            }
        }
    }

    /// Takes rows of another host's agent; one of this host shares its memory and sends none.
    fn take(&mut self, role: Role, thread: u32, rows: &[Row]) -> Result<(), Fault> {
        let is_there = self.remote_host(role).is_some();
        let part = self.parts[index(role)].get_mut(thread as usize);
        match part.is_some_and(|part| is_there && part.arena.extend(rows)) {
            true => Ok(()),
            false => Err(Fault::new(format!("the {} sent rows for which none asked", role.name()))),
        }
    }

    /// Keeps what a thread has brought home; one that the case does not have has nothing to bring.
    fn keep(&mut self, role: Role, thread: u32, outcome: Outcome) {
        if let Some(part) = self.parts[index(role)].get_mut(thread as usize) {
            part.outcome = Some(outcome);
        }
    }

    /// Ends the agents. After a fault they are told to stop first, and heard for their last words;
    /// how a process died says more than how the other noticed.
    fn end(&mut self, fault: Option<Fault>) -> Option<Fault> {
        if fault.is_some() {
            for agent in &mut self.agents {
                agent.send(&ToAgent::Stop);
            }
            let deadline =
                Instant::now() + if self.is_remote() { LAST_WORDS_REMOTE } else { LAST_WORDS };
            let mut gone = [false; 2];
            while self.agents.iter().any(|agent| {
                let role = agent.role();
                !self.has_ended(role) && !gone[index(role)]
            }) {
                let left = deadline.saturating_duration_since(Instant::now());
                match self.hear(left) {
                    Ok(AgentMessage {
                        role,
                        message: Ok(FromAgent::Ended { thread, outcome }),
                    }) => {
                        self.keep(role, thread, *outcome);
                    }
                    Ok(AgentMessage { role, message: Ok(FromAgent::Rows { thread, rows }) }) => {
                        let _ = self.take(role, thread, &rows);
                    }
                    Ok(AgentMessage { role, message: Err(_) }) => gone[index(role)] = true,
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        let deaths: Vec<String> = self.agents.drain(..).filter_map(Agent::end).collect();
        Fault::with_deaths(fault, deaths)
    }
}

fn gone(role: Role, error: &FrameError) -> Fault {
    Fault::Gone { role, why: error.to_string() }
}
