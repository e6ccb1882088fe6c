//! The messages between the controller and an agent.
//!
//! The controller sends every setting; an agent takes no options. One agent process runs one rank
//! of one round, with as many threads as the case has (both ends of a simulated transport):
//!
//! ```text
//! controller: Hello      agent: Welcome
//! controller: Open       agent: Opened
//! controller: Connect    agent: Connected
//! controller: Start      agent: Ended, once per thread
//! ```
//!
//! `Expect` and `Stop` may follow `Start` at any time; `Refused` replaces any answer. An agent on
//! another host sends its samples as `Rows` before `Ended`; one that was asked for the stamps of
//! its host's kernel sends these before both, as `Stamps` and last `Traced`. It also serves
//! other sessions: `Probe` is answered by `Probed` before anything runs, and `AnswerClock` by
//! `ClockAddress` while rounds run. A pre-flight of the data path is a third one: `OpenPath` is
//! answered by `PathOpened`, and `TryPath` by `PathTried`.

use crate::control::program::ProgramIdentity;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use wiregauge_base::units::Span;
use wiregauge_clock::exchange::Local;
use wiregauge_clock::{ClockReport, Source, Ticks};
use wiregauge_host::doctor::{Checkup, Use};
use wiregauge_host::trace::Stamp;
use wiregauge_host::trace::report::{TraceReport, TraceRequest};
use wiregauge_host::{Environment, Family, Noise, RdmaPort, ResourceUse, Suspension};
use wiregauge_plan::Ended;
use wiregauge_plan::case_frame::CaseFrame;
use wiregauge_sample::arena::Row;
use wiregauge_sample::recorder::{Beyond, MessageCounts, PoolUse};
use wiregauge_transport::counter::FinalCounters;
use wiregauge_transport::preflight::{PeerReport, PreflightAddresses, PreflightPeer};
use wiregauge_transport::{Blob, Role, Site, TransportKind};

/// Version of this protocol. An agent refuses any other.
pub const VERSION: u32 = 29;
/// The first bytes of a greeting.
pub const MAGIC: [u8; 8] = *b"wiregaug";
/// Environment variable that holds the session's secret for an agent on this host.
pub const SECRET_VARIABLE: &str = "WIREGAUGE_SECRET";

/// From controller to agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// Greeting. Its first two fields keep their form in every version.
    Hello {
        /// [`MAGIC`].
        magic: [u8; 8],
        /// [`VERSION`].
        version: u32,
        /// Known only to the process that started the agent.
        secret: [u8; 32],
        /// Ask which program it is, where its path may name another one.
        asks_program: bool,
    },
    /// Prepare a round of this case.
    Open(Box<CaseFrame>, Box<Assignment>),
    /// For each thread, the remote address of each of its connections.
    Connect(Vec<Vec<Blob>>),
    /// Start at this reading of the agent's clock; `None`: at once.
    Start(Option<Ticks>),
    /// The peer of this thread has sent all of its messages.
    Expect {
        /// The receiving thread.
        thread: u32,
        /// How many there were.
        messages: u64,
    },
    /// End the round now and report what was measured.
    Stop,
    /// Report the host's properties, instead of a round.
    Probe(HostProbeRequest),
    /// Answer clock exchanges until the channel is closed, instead of a round.
    AnswerClock(Box<AnswerClock>),
    /// The round is over: release its endpoints, and await another [`ToAgent::Open`].
    Again,
    /// Open an end of the pre-flight of the data path, instead of a round.
    OpenPath(Box<OpenPath>),
    /// Reach these ends as the end of this number, as far as each path is needed.
    TryPath {
        /// The number of this end.
        number: u32,
        /// The others.
        peers: Vec<PreflightPeer>,
    },
}

/// An end of the pre-flight of the data path, which can be reached until the channel is closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenPath {
    /// The interface or address of its end.
    pub site: Site,
    /// The version of IP, where one was asked for.
    pub family: Option<Family>,
    /// The device that its packets are to use.
    pub device: Option<String>,
    /// Accept connections: others are to connect to it.
    pub listens: bool,
}

/// How an agent answers clock exchanges.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerClock {
    /// The interface or address to listen on.
    pub site: Site,
    /// The clock that is compared.
    pub clock: Local,
    /// The first bytes of every datagram.
    pub cookie: [u8; 32],
    /// The measuring CPUs, which it avoids.
    pub leaves: Vec<u32>,
}

/// What must be known of another host before anything runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostProbeRequest {
    /// The transports to measure.
    pub transports: Vec<TransportKind>,
    /// The network interface to use; `None`: that of the ssh session.
    pub interface: Option<String>,
    /// The requested CPUs, one per thread; empty: the agent chooses.
    pub cpus: Vec<u32>,
    /// Most threads of any case.
    pub threads: u32,
    /// The requested clock.
    pub clock: Option<Source>,
    /// What is to be measured, where the host is to be examined for it.
    pub checkup: Option<Use>,
}

/// The properties of another host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostProbe {
    /// The fingerprint of the machine.
    pub environment: Environment,
    /// The CPUs to measure on: one per thread, where there are enough.
    pub cpus: Vec<u32>,
    /// The timestamp clock and its scale.
    pub local: Local,
    /// Its resolution and calibration, for the record.
    pub clock: ClockReport,
    /// Its address for data connections, if it could be determined.
    pub address: Option<IpAddr>,
    /// The ports of its RDMA devices whose links are up.
    pub rdma_ports: Vec<RdmaPort>,
    /// Names of the network interfaces that are up and have an address at which other hosts may
    /// reach them.
    pub ip_interfaces: Vec<String>,
    /// Transports that do not work there, with the reason.
    pub unavailable: Vec<(TransportKind, String)>,
    /// What is wrong with it, where that was asked.
    pub checkup: Option<Checkup>,
    /// What its kernel calls this boot: the same of two hosts that share one.
    pub boot: Option<String>,
}

/// The resources of one thread of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadSlot {
    /// The CPU to pin it to.
    pub cpu: Option<u32>,
    /// The file of its sample memory.
    pub arena: PathBuf,
    /// That of the stamps of its posts and arrivals, where these are to be stamped, and of its
    /// number.
    pub stamps: Option<PathBuf>,
}

/// What an agent needs beside the case to run its part of a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Which end this is.
    pub role: Role,
    /// Which rank of the case's topology.
    pub rank: u32,
    /// One slot per thread.
    pub slots: Vec<ThreadSlot>,
    /// The CPUs of this host on which the peer measures.
    pub others: Vec<u32>,
    /// The server's sample memory, where this process runs both ends.
    pub server_arena: Option<PathBuf>,
    /// Rows of sample memory to allocate per thread, set if the agent is on another host: it sends
    /// them back.
    pub remote_rows: Option<u64>,
    /// The interface or address of its end; `None`: as the case says.
    pub site: Option<Site>,
    /// A random number of the run, for [`wiregauge_host::Claims`].
    pub run: u64,
    /// The cookie that data connections must present.
    pub cookie: [u8; 32],
    /// The timestamp clock, and its scale, measured on the agent's host before the first round.
    pub clock: Local,
    /// Time of day at its epoch in nanoseconds since 1970, the same for both ends; `None`: read on
    /// the agent's host.
    pub epoch_of_day_ns: Option<u64>,
    /// Duration of the CPU noise measurement before the round.
    pub noise: Span,
    /// Messages over the null transport that measure the instrument overhead before the round.
    pub overhead_messages: u32,
    /// What the kernel of the agent's host is to stamp of it, where it is to send that back.
    pub trace: Option<TraceRequest>,
}

impl Assignment {
    /// A CPU on which no thread of the agent measures, where there is one.
    pub fn cpu_beside(&self) -> Option<u32> {
        let measuring: Vec<u32> = self.slots.iter().filter_map(|slot| slot.cpu).collect();
        wiregauge_host::cpu_beside(&measuring)
    }

    /// Whether a thread of another rank measures on the CPU of this one.
    pub fn shares_cpu(&self, thread: usize) -> bool {
        let own = self.slots.get(thread).and_then(|slot| slot.cpu);
        own.is_some_and(|own| self.others.contains(&own))
    }

    /// A CPU on which neither end measures, where there is one.
    pub fn cpu_free(&self) -> Option<u32> {
        let own = self.slots.iter().filter_map(|slot| slot.cpu);
        wiregauge_host::cpu_beside(&own.chain(self.others.iter().copied()).collect::<Vec<_>>())
    }
}

/// From agent to controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromAgent {
    /// The versions and secrets agree.
    Welcome {
        /// The agent's process.
        pid: u32,
        /// Its version of wiregauge.
        tool: String,
        /// Which program it is, where it was asked.
        program: Option<ProgramIdentity>,
    },
    /// The round is prepared. For each thread, the local address of each of its connections.
    Opened(Vec<Vec<Blob>>),
    /// All connections stand. The effective settings of each thread.
    Connected(Vec<Vec<(String, String)>>),
    /// A thread has finished.
    Ended {
        /// Its number.
        thread: u32,
        /// Its results.
        outcome: Box<Outcome>,
    },
    /// The request cannot be met.
    Refused {
        /// Whether the request was wrong (exit code 2), rather than the machine unable.
        wrong_use: bool,
        /// The reason.
        sentence: String,
    },
    /// The properties of its host.
    Probed(Box<HostProbe>),
    /// Clock exchanges are answered at this address.
    ClockAddress(SocketAddr),
    /// The clock exchanges are over.
    ClockAnswered {
        /// Datagrams sent.
        datagrams: u64,
        /// CPU time of the answering thread.
        cpu_ns: f64,
    },
    /// The next samples of a thread whose agent has memory of its own, before its `Ended`.
    Rows {
        /// Its number.
        thread: u32,
        /// The samples.
        rows: Vec<Row>,
    },
    /// Messages handled so far by an agent whose memory the controller cannot read, sent now and
    /// then while a round runs.
    Progress(u64),
    /// The endpoints of the last round are released.
    Released,
    /// The next stamps of its host's kernel, where these were asked for, in the order of time.
    Stamps(Vec<Stamp>),
    /// What is to be known of them, before the first `Ended`; or why there are none.
    Traced(Result<Box<TraceReport>, String>),
    /// An end of the pre-flight can be reached at these addresses.
    PathOpened(PreflightAddresses),
    /// The results of its attempts, in the order of the others.
    PathTried(Vec<PeerReport>),
}

/// The results of a thread of a role, beside its samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What this end has counted.
    pub counters: FinalCounters,
    /// Why it ended.
    pub ended: Ended,
    /// Messages by what became of them.
    pub counts: MessageCounts,
    /// The same of the server, when this process ran both roles.
    pub server_counts: Option<MessageCounts>,
    /// Connections and datagrams of rejected peers that were dropped.
    pub rejected_peers: u64,
    /// What the thread used between arming and disarming.
    pub usage: ResourceUse,
    /// Evidence that it was suspended meanwhile.
    pub suspension: Suspension,
    /// Whether it was pinned; if not, why.
    pub pinned: Result<(), String>,
    /// Whether another run measured on its CPU. An agent on the controller's host leaves that to
    /// the controller.
    pub shares_cpu: bool,
    /// Whether its sample memory was locked; if not, why.
    pub locked: Result<(), String>,
    /// Whether it had descriptors of its own, not those of the agent's other threads.
    pub own_descriptors: bool,
    /// When the loop began and ended.
    pub span: (Ticks, Ticks),
    /// What the CPU did by itself before the round.
    pub noise: Option<Noise>,
    /// Round trips of the null transport on this CPU, in ticks.
    pub overhead: Vec<u32>,
    /// Ticks of recording one sample, beyond the clock's readings, on average over many.
    pub recording_ticks: f64,
    /// Latencies in ticks of messages for which there was no row.
    pub beyond: Beyond,
    /// What the pools of a server of `load` cost.
    pub pool: PoolUse,
}
