//! The daemon's limits: each frame of a controller is checked before the agent sees it. Pure.

use std::net::IpAddr;
use std::time::Duration;
use wiregauge_base::units::{Bytes, MessageRate, Span};
use wiregauge_host::ip_network::{self, Network};
use wiregauge_host::trace::{STAMPS, Stamp};
use wiregauge_measure::agent::setup::setup;
use wiregauge_measure::control::frame::FrameError;
use wiregauge_measure::control::protocol::*;
use wiregauge_plan::request::{MOST_COUNT, MOST_THREADS};
use wiregauge_plan::{Case, CaseProfile, FindPattern, Schedule, Trace};
use wiregauge_sample::arena::Row;
use wiregauge_transport::preflight::MAX_PEERS;
use wiregauge_transport::{Role, TransportKind};

/// How long a session may be idle while no round runs.
const IDLE: Duration = Duration::from_secs(60);
/// Longest time for which an end of a pre-flight waits for those of all other hosts, which are
/// opened 64 at a time, each within the half minute that its greeting may take.
const OPENING: Duration = Duration::from_secs(600);
/// Time of a round beside its loop: connecting, and sending the last samples.
const BESIDE: Duration = Duration::from_secs(30);
/// Most CPUs that a controller names: a host of Linux has at most 8192.
const MOST_CPUS: usize = 8192;
/// An endpoint without its buffers: what it is made of here, and its address on its way.
const ENDPOINT: u64 = 4 << 10;
/// The kernel's stamps of a round, and these again to be sent.
const TRACE: u64 = 2 * STAMPS as u64 * size_of::<Stamp>() as u64;
/// Rows of one round beyond its count: warm-up, and one more.
const MOST_ROWS: u64 = 2 * MOST_COUNT;

/// The limits of a daemon's rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// The longest round.
    pub longest_run: Span,
    /// The highest rate of messages; `None`: as fast as they go.
    pub highest_rate: Option<MessageRate>,
    /// The most memory of a round: samples and payloads.
    pub most_memory: Bytes,
    /// The ports of data connections, the last one included; `None`: the kernel chooses.
    pub ports: Option<(u16, u16)>,
    /// The transports.
    pub transports: Vec<TransportKind>,
    /// The most memory of all rounds at once.
    pub total_memory: Bytes,
    /// The addresses with which rounds may exchange data: by default the controller's.
    pub peers: Reach,
    /// The addresses of this host that rounds may use: by default the one that the controller
    /// reached.
    pub bind: Reach,
    /// How long a session may be idle while no round runs; `None`: as long as its connection
    /// stands.
    pub idle: Option<Duration>,
    /// Allow stamps of this host's kernel, which carry names of other processes.
    pub kernel_stamps: bool,
}

/// Which addresses rounds may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Reach {
    /// Any.
    Any,
    /// That of the control connection.
    #[default]
    Connection,
    /// Those of these networks.
    Networks(Vec<Network>),
}

impl Reach {
    /// Returns the addresses of this host that rounds may use, as an agent's environment has them,
    /// for that which the control connection reached; `None`: any.
    pub fn of_own(&self, connection: IpAddr) -> Option<String> {
        match self {
            Reach::Any => None,
            Reach::Connection => Some(ip_network::joined(&[connection.into()])),
            Reach::Networks(all) => Some(ip_network::joined(all)),
        }
    }

    /// Returns the addresses of peers, as [`Reach::of_own`], for the two ends of the control
    /// connection.
    ///
    /// A peer that is this host itself may be the end of a tunnel (ssh -L, stunnel), whose other
    /// end is elsewhere: its rounds could connect to any port that listens on this host alone. So
    /// it is allowed only where it is named.
    pub fn of_peers(&self, [peer, own]: [IpAddr; 2]) -> Option<String> {
        match self {
            Reach::Connection if peer.is_loopback() || peer == own => Some(String::new()),
            reach => reach.of_own(peer),
        }
    }

    /// In a line of limits.
    fn shown(&self, connection: &str) -> String {
        match self {
            Reach::Any => "any address".into(),
            Reach::Connection => connection.into(),
            Reach::Networks(all) => ip_network::joined(all),
        }
    }
}

impl Default for Caps {
    fn default() -> Caps {
        let reaching = TransportKind::ALL.iter().filter(|one| one.descriptor().between_hosts);
        Caps {
            longest_run: Span(3_600_000_000_000),
            highest_rate: None,
            most_memory: Bytes(2 << 30),
            ports: None,
            transports: reaching.copied().collect(),
            total_memory: Bytes(4 << 30),
            peers: Reach::Connection,
            bind: Reach::Connection,
            idle: Some(IDLE),
            kernel_stamps: false,
        }
    }
}

impl Caps {
    /// The limits of a rank of a job. It serves only rank 0 of the same job, which could start any
    /// program here anyway, so addresses and total memory are not limited.
    pub fn of_a_rank() -> Caps {
        Caps {
            total_memory: Bytes(u64::MAX),
            peers: Reach::Any,
            bind: Reach::Any,
            // Its process stays while rounds of others run.
            idle: None,
            kernel_stamps: true,
            ..Caps::default()
        }
    }
}

impl std::fmt::Display for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.highest_rate.map_or("any rate".into(), |rate| format!("at most {rate}"));
        let ports = self.ports.map_or("any port".into(), |(a, b)| format!("ports {a}-{b}"));
        let (longest, memory) = (self.longest_run, self.most_memory);
        write!(f, "rounds of at most {longest}, {rate}, memory of at most {memory} per round ")?;
        write!(f, "and {} for all rounds, {ports}, ", self.total_memory)?;
        write!(
            f,
            "data exchanged with {} ",
            self.peers.shown("the controller's address, if it is on another host,")
        )?;
        write!(f, "at {}, ", self.bind.shown("the address that the controller connected to"))?;
        let stamps =
            if self.kernel_stamps { "stamps of the kernel" } else { "no stamps of the kernel" };
        write!(f, "transports {}, {stamps}", names(&self.transports))
    }
}

fn names(transports: &[TransportKind]) -> String {
    transports.iter().map(|one| one.name()).collect::<Vec<_>>().join(",")
}

impl Caps {
    /// The memory of a round that is within the limits, else why it is not.
    fn check(&self, case: &Case, asked: &Assignment) -> Result<Bytes, String> {
        // A path would name a file of this host.
        let names_file =
            asked.server_arena.is_some() || asked.slots.iter().any(|slot| slot.stamps.is_some());
        let Some(rows) = asked.remote_rows.filter(|_| !names_file) else {
            return Err("an agent daemon uses sample memory of its own".to_string());
        };
        self.check_transport(case.transport)?;
        let largest = case.transport.descriptor().largest_with(&case.settings);
        let within = |most: u64, value: u64| (1..=most).contains(&value);
        let own = case.topology.ranks.get(asked.rank as usize);
        let own = own.filter(|rank| rank.role == asked.role);
        let threads = own.ok_or("the case has no such rank")?.threads;
        let is_possible = within(largest, case.size.0)
            && rows <= MOST_ROWS
            && within(MOST_THREADS.into(), threads.into())
            && asked.slots.len() == threads as usize
            && asked.others.len() <= MOST_CPUS;
        ensure!(is_possible, "the round exceeds every limit of wiregauge itself");
        let longest = self.longest_run;
        let length = length(case).unwrap_or(0.0);
        ensure!(
            length <= longest.0 as f64,
            "the round takes {}, and this agent allows at most {longest} (--longest-run)",
            Span(length as u64)
        );
        self.check_rate(case)?;
        let needs = memory(case, (asked.role, threads), rows, asked.overhead_messages);
        let needs = needs.saturating_add(if asked.trace.is_some() { TRACE } else { 0 });
        let (needs, most) = (Bytes(needs), self.most_memory);
        ensure!(
            needs <= most,
            "the round needs {needs} of memory, and this agent allows at most {most} \
             (--most-memory)"
        );
        Ok(needs)
    }

    fn check_transport(&self, transport: TransportKind) -> Result<(), String> {
        ensure!(
            self.transports.contains(&transport),
            "this agent does not allow {transport}: use one of {} (--transports)",
            names(&self.transports)
        );
        Ok(())
    }

    /// Refuses a pre-flight where no round would take its path.
    fn check_path(&self) -> Result<(), String> {
        let mut allowed = self.transports.iter();
        ensure!(
            allowed.any(|one| one.descriptor().kernel_path.is_over_ip()),
            "this agent allows no pre-flight, which tries the paths of sockets over IP: it allows \
             {} (--transports)",
            names(&self.transports)
        );
        Ok(())
    }

    fn check_rate(&self, case: &Case) -> Result<(), String> {
        let Some(highest) = self.highest_rate else { return Ok(()) };
        match rate(case).map(|rate| MessageRate(rate * f64::from(case.threads()))) {
            Some(rate) if rate.0 <= highest.0 => Ok(()),
            Some(rate) => Err(format!(
                "the round sends {rate}, and this agent allows at most {highest} (--highest-rate)"
            )),
            None => Err(format!(
                "the round sends as fast as it can, and this agent allows at most {highest} \
                 (--highest-rate): pace it with --rate or --pause"
            )),
        }
    }

    /// Marks transports that are not allowed as unavailable on this host.
    pub fn narrow(&self, probe: &mut HostProbe, asked: &[TransportKind]) {
        for transport in asked {
            if let Err(sentence) = self.check_transport(*transport)
                && !probe.unavailable.iter().any(|(known, _)| known == transport)
            {
                probe.unavailable.push((*transport, sentence));
            }
        }
    }
}

/// Messages per second, where the case bounds them; within a burst for bursty schedules, and in
/// the second that has most of them for a trace.
fn rate(case: &Case) -> Option<f64> {
    match case.schedule {
        Schedule::Periodic { rate } | Schedule::Poisson { rate } => Some(rate.0),
        Schedule::Trace { .. } => case.trace.as_ref().map(Trace::highest_rate),
        Schedule::OnOff { rate, on, off } => Some(rate.0 * (on.0 + off.0) as f64 / on.0 as f64),
        Schedule::ClosedLoop => {
            let CaseProfile { burst, pause, .. } = case.profile();
            (pause.0 > 0).then(|| f64::from(burst) * 1e9 / pause.0 as f64)
        }
    }
}

/// The least duration of the loop in nanoseconds, where it is known.
fn length(case: &Case) -> Option<f64> {
    let by_time = case.bound.time.map(|time| time.0 as f64);
    let messages = case.bound.count.map(|count| count.saturating_add(case.warmup) as f64);
    let mean = case.schedule.rate().map_or_else(|| rate(case), |mean| Some(mean.0));
    let by_count = messages.zip(mean).map(|(messages, rate)| messages / rate * 1e9);
    match (by_time, by_count) {
        (Some(time), Some(count)) => Some(time.min(count)),
        (time, count) => time.or(count),
    }
}

/// Bytes for samples, payloads both ways, what the pattern needs beside, and the overhead
/// measurement, of all threads.
fn memory(case: &Case, (role, threads): (Role, u32), rows: u64, overhead_messages: u32) -> u64 {
    let row = size_of::<Row>() as u64;
    let slots = u64::from(case.profile().queue_depth).saturating_mul(2);
    let beside = (case.transport.descriptor().memory_beside_slots)(&setup(case, role, [0; 32]));
    let endpoint =
        case.size.0.saturating_mul(slots).saturating_add(beside).saturating_add(ENDPOINT);
    let endpoints = u64::from(case.topology.endpoints_of_role(role));
    // Each thread has the times of a trace as numbers of its clock.
    let times = case.trace.as_ref().map_or(0, |trace| trace.times_ns.len() as u64);
    rows.saturating_add(overhead_messages.into())
        .saturating_mul(row)
        .saturating_add(endpoint.saturating_mul(endpoints))
        .saturating_add(case.pattern.memory(case, role))
        .saturating_add(2 * times * size_of::<u64>() as u64)
        .saturating_mul(threads.into())
}

/// Most frames of a session: a round has five, and one per thread.
const MOST_FRAMES: u32 = 32 + MOST_THREADS;

/// The state of a session, by which its next frame is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SessionState {
    /// Nothing has come.
    New,
    /// The controller has greeted.
    Greeted,
    /// The host is probed.
    Probing,
    /// A round's endpoints are opened.
    Opening,
    /// They are connected.
    Connecting,
    /// A round runs.
    Running,
    /// Clock exchanges are answered.
    AnsweringClock,
    /// An end of a pre-flight can be reached.
    PathOpen,
    /// It reaches others.
    TryingPath,
    /// The controller has ended it.
    Stopped,
}

impl SessionState {
    /// The state after a frame; `None`: the frame is not due. An agent takes each frame in one
    /// state only, so whatever else comes would wait in its memory.
    fn after(self, said: &ToAgent) -> Option<SessionState> {
        match (self, said) {
            (SessionState::New, ToAgent::Hello { .. }) => Some(SessionState::Greeted),
            (SessionState::New | SessionState::Stopped, _) => None,
            (_, ToAgent::Stop) => Some(SessionState::Stopped),
            (SessionState::Greeted, ToAgent::Probe(_)) => Some(SessionState::Probing),
            (SessionState::Greeted, ToAgent::Open(..)) => Some(SessionState::Opening),
            (SessionState::Greeted, ToAgent::AnswerClock(_)) => Some(SessionState::AnsweringClock),
            (SessionState::Greeted, ToAgent::OpenPath(_)) => Some(SessionState::PathOpen),
            (SessionState::PathOpen, ToAgent::TryPath { .. }) => Some(SessionState::TryingPath),
            (SessionState::Opening, ToAgent::Connect(_)) => Some(SessionState::Connecting),
            (SessionState::Connecting, ToAgent::Start(_)) => Some(SessionState::Running),
            (SessionState::Running, ToAgent::Expect { .. }) => Some(SessionState::Running),
            (SessionState::Running, ToAgent::Again) => Some(SessionState::Greeted),
            _ => None,
        }
    }
}

/// Follows a session by its controller's frames.
#[derive(Debug)]
pub struct Inspector {
    caps: Caps,
    find: FindPattern,
    /// The state of the session.
    pub state: SessionState,
    frames: u32,
    /// The connections of each thread of its round, one number per thread.
    connections: Vec<u32>,
    /// The memory of its round.
    pub memory: Bytes,
    /// The purpose of the session, in a few words.
    pub what: String,
    /// The transports of a probe.
    pub probed: Vec<TransportKind>,
}

impl Inspector {
    /// A session without frames so far.
    pub fn new(caps: Caps, find: FindPattern) -> Inspector {
        let (state, what) = (SessionState::New, "nothing".into());
        let (memory, connections) = (Bytes(0), Vec::new());
        Inspector { caps, find, state, frames: 0, connections, memory, what, probed: Vec::new() }
    }

    /// Whether a frame may pass, else the reason for the controller.
    pub fn admit(&mut self, body: &[u8]) -> Result<(), String> {
        self.frames += 1;
        let is_few = self.frames <= MOST_FRAMES;
        ensure!(is_few, "too many frames in one session: at most {MOST_FRAMES}");
        let said: ToAgent = match postcard::from_bytes(body) {
            Ok(said) => said,
            // The first may be of another version, which the agent itself explains best.
            Err(_) if self.frames == 1 => return Ok(()),
            Err(error) => return Err(FrameError::Foreign(error).to_string()),
        };
        let state = self.state.after(&said);
        let state = state.ok_or("the controller sent a message that is not due")?;
        match said {
            ToAgent::Open(case, assignment) => {
                let (case, role) = (case.read(self.find)?, assignment.role);
                self.what = format!("{} ({})", case.label(), role.name());
                self.memory = self.caps.check(&case, &assignment)?;
                let each = case.topology.endpoints_of(assignment.rank as usize);
                self.connections = vec![each; assignment.slots.len()];
            }
            ToAgent::Probe(request) => {
                let (transports, cpus) = (request.transports.len(), request.cpus.len());
                ensure!(
                    transports <= TransportKind::ALL.len()
                        && cpus <= MOST_CPUS
                        && request.threads <= MOST_THREADS,
                    "a probe of {transports} transports, {cpus} CPUs and {} threads exceeds every \
                     limit of wiregauge itself",
                    request.threads
                );
                (self.what, self.probed) = ("probe".into(), request.transports);
            }
            ToAgent::AnswerClock(task) => {
                let cpus = task.leaves.len();
                ensure!(cpus <= MOST_CPUS, "{cpus} CPUs are more than a host has");
                self.what = "clocks".into();
            }
            ToAgent::OpenPath(_) => {
                self.caps.check_path()?;
                self.what = "data path".into();
            }
            ToAgent::TryPath { peers, .. } => {
                let count = peers.len();
                ensure!(count <= MAX_PEERS, "a pre-flight to {count} ends: at most {MAX_PEERS}");
            }
            ToAgent::Connect(others) => {
                let those = others.iter().map(|each| each.len() as u32);
                let are_due = those.eq(self.connections.iter().copied());
                ensure!(are_due, "the controller sent addresses for other connections");
            }
            // What a session may send is counted for each of its rounds.
            ToAgent::Again => self.frames = 1,
            ToAgent::Hello { .. } | ToAgent::Start(_) | ToAgent::Expect { .. } | ToAgent::Stop => {}
        }
        self.state = state;
        Ok(())
    }

    /// How long the next frame may take after a change of state; `None`: no limit.
    pub fn patience(&self) -> Option<Duration> {
        match self.state {
            SessionState::Running => Some(self.caps.longest_run.duration().saturating_add(BESIDE)),
            // They go on until the controller leaves.
            SessionState::AnsweringClock => None,
            SessionState::PathOpen => self.caps.idle.map(|_| OPENING),
            _ => self.caps.idle,
        }
    }

    /// Why it was ended when a frame took too long.
    pub fn overdue(&self) -> String {
        match self.state {
            SessionState::Running => format!(
                "the round was ended after {}, the longest that this agent allows (--longest-run)",
                self.caps.longest_run
            ),
            SessionState::PathOpen => format!("idle for {} s", OPENING.as_secs()),
            _ => format!("idle for {} s", IDLE.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests;
