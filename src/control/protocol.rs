//! What driver and agent say to each other.
//!
//! The driver pushes everything; the far side takes no options. One agent process plays one role of
//! one round (both roles of a simulated transport) with as many threads as the case has, so the
//! order is always the same:
//!
//! ```text
//! driver: Hello        agent: Welcome
//! driver: Open         agent: Opened
//! driver: Connect      agent: Connected
//! driver: Start        agent: Ended, once for each thread
//! ```
//!
//! `Expect` and `Stop` may come at any time after `Start`; `Refused` instead of any answer. An
//! agent on another host is first asked, in a session of its own, what there is: `Look`, `Seen`; in
//! another one it exchanges times while rounds run: `KeepTime`, `KeepsTime`. Of
//! a round it sends its samples before the end: `Rows`.

use crate::clock::{ClockReport, Source, Ticks, Timebase};
use crate::host::{self, Environment, Noise, ResourceUse};
use crate::loops::Ended;
use crate::plan::Case;
use crate::sample::arena::Row;
use crate::sample::recorder::{Beyond, MessageCounts, PoolUse};
use crate::transport::{Blob, Role, Site, TransportKind};
use crate::units::{Span, Untrue};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The version of this protocol: another one is refused in a sentence.
pub const VERSION: u32 = 11;
/// What every first frame begins with.
pub const MAGIC: [u8; 8] = *b"wiregaug";
/// The environment variable through which an agent on this host is told the run's secret.
pub const SECRET_VARIABLE: &str = "WIREGAUGE_SECRET";

/// From driver to agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// Who speaks. Its first two fields never change their form, whatever the version.
    Hello {
        /// [`MAGIC`].
        magic: [u8; 8],
        /// [`VERSION`].
        version: u32,
        /// What only the one who started the agent knows.
        secret: [u8; 32],
    },
    /// Prepare a round.
    Open(Box<Assignment>),
    /// What each thread is to connect to, an address for each of its connections.
    Connect(Vec<Vec<Blob>>),
    /// Go: at this time of the agent's own clock, or at once.
    Start(Option<Ticks>),
    /// The other end's thread of this number has sent so many messages and sends no more.
    Expect {
        /// The thread.
        thread: u32,
        /// What it has sent.
        messages: u64,
    },
    /// End the round now and tell what there is.
    Stop,
    /// Say what there is on your host, instead of a round.
    Probe(HostProbeRequest),
    /// Answer exchanges of times until the channel is closed, instead of a round.
    KeepTime(Box<KeepTime>),
}

/// What an agent is told that exchanges times while rounds run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeepTime {
    /// Where it is to be reached.
    pub site: Site,
    /// Its clock ...
    pub source: Source,
    /// ... and its scale.
    pub time: Timebase,
    /// What its datagrams must begin with.
    pub cookie: [u8; 32],
    /// The measuring CPUs, which it leaves alone.
    pub leaves: Vec<u32>,
    /// What its clock is made wrong by, in a test.
    pub untrue: Option<Untrue>,
}

/// What is asked of another host before anything runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostProbeRequest {
    /// The transports that are to be measured.
    pub transports: Vec<TransportKind>,
    /// The network interface that is to be used; `None`: that of the ssh session.
    pub interface: Option<String>,
    /// The CPUs that were asked for, one for each thread; none: it chooses.
    pub cpus: Vec<u32>,
    /// Most threads of a case.
    pub threads: u32,
    /// The clock that was asked for.
    pub clock: Option<Source>,
}

/// What another host is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostProbe {
    /// What its figures depend on.
    pub environment: Environment,
    /// The CPUs to measure on, one for each thread where there are as many.
    pub cpus: Vec<u32>,
    /// Its clock ...
    pub source: Source,
    /// ... with its scale ...
    pub time: Timebase,
    /// ... and what is to be said of it.
    pub clock: ClockReport,
    /// The address at which it is to be reached; `None` where that could not be found out.
    pub address: Option<IpAddr>,
    /// Transports that do not work there, each with the reason.
    pub unavailable: Vec<(TransportKind, String)>,
}

/// What only an agent on another host is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoteSettings {
    /// Rows of sample memory that it is to make for each thread; it sends them back.
    pub rows: u64,
    /// What its clock is made wrong by, in a test.
    pub untrue: Option<Untrue>,
}

/// What one thread of an agent has to itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadSlot {
    /// The CPU to be pinned to.
    pub cpu: Option<u32>,
    /// Where its sample memory is.
    pub arena: PathBuf,
}

/// All that an agent needs to know of its round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The case.
    pub case: Case,
    /// Which end.
    pub role: Role,
    /// What each thread has to itself.
    pub slots: Vec<ThreadSlot>,
    /// The CPUs of this host on which the other end measures.
    pub others: Vec<u32>,
    /// Where the server's is, when this process plays both roles.
    pub server_arena: Option<PathBuf>,
    /// Set where the agent is on another host: the memory is then its own.
    pub remote: Option<RemoteSettings>,
    /// Where its end is to be reached; `None`: as the case says.
    pub site: Option<Site>,
    /// What data connections must present.
    pub cookie: [u8; 32],
    /// The clock.
    pub clock: Source,
    /// Its scale as measured on the agent's host before the first round.
    pub time: Timebase,
    /// Time of day at its epoch, nanoseconds since 1970, so that both ends say the same; `None`:
    /// the agent's own host knows it.
    pub epoch_of_day_ns: Option<u64>,
    /// How long the noise of the CPU is watched before the round.
    pub noise: Span,
    /// Messages of the null transport that measure the instrument's floor before the round.
    pub floor: u32,
}

impl Assignment {
    /// A CPU on which no thread of the agent measures, where there is one.
    pub fn cpu_beside(&self) -> Option<u32> {
        let measuring: Vec<u32> = self.slots.iter().filter_map(|slot| slot.cpu).collect();
        host::cpu_beside(&measuring)
    }

    /// A CPU on which neither end measures, where there is one.
    pub fn cpu_free(&self) -> Option<u32> {
        let own = self.slots.iter().filter_map(|slot| slot.cpu);
        host::cpu_beside(&own.chain(self.others.iter().copied()).collect::<Vec<_>>())
    }
}

/// From agent to driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromAgent {
    /// It speaks the same version and knows the same secret.
    Welcome {
        /// Its process.
        pid: u32,
        /// Its version of wiregauge.
        tool: String,
    },
    /// The round is prepared: the addresses of each thread, one for each of its connections.
    Opened(Vec<Vec<Blob>>),
    /// It is connected: settings as granted to each thread.
    Connected(Vec<Vec<(String, String)>>),
    /// The round is over for one thread.
    Ended {
        /// Which.
        thread: u32,
        /// What it brings home.
        outcome: Box<Outcome>,
    },
    /// It cannot: a sentence.
    Refused {
        /// Whether the request was wrong (exit code 2) and not the machine.
        wrong_use: bool,
        /// Why.
        sentence: String,
    },
    /// What its host is.
    Probed(Box<HostProbe>),
    /// Exchanges of times are answered there.
    KeepsTime(SocketAddr),
    /// They were, until its channel was closed.
    KeptTime {
        /// Datagrams that it has sent.
        datagrams: u64,
        /// CPU time of the thread that answered.
        cpu_ns: f64,
    },
    /// The next rows of a thread of an agent whose memory is its own, before it tells of its end.
    Rows {
        /// Which.
        thread: u32,
        /// What it has recorded.
        rows: Vec<Row>,
    },
    /// So many messages have been handled by an agent on another host, where the driver does not
    /// see it. Said now and then while a round runs.
    Progress(u64),
}

/// What a thread of a role brings home beside its samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What the endpoint has seen: name, value.
    pub afterwards: Vec<(String, String)>,
    /// Why it ended.
    pub ended: Ended,
    /// Messages by what became of them.
    pub seen: MessageCounts,
    /// The same of the server, when this process played both roles.
    pub server_seen: Option<MessageCounts>,
    /// Connections and datagrams of strangers that were dropped.
    pub strangers: u64,
    /// What the thread used between arming and disarming.
    pub usage: ResourceUse,
    /// Whether it was pinned; if not, why.
    pub pinned: Result<(), String>,
    /// Whether its sample memory was locked; if not, why.
    pub locked: Result<(), String>,
    /// When the loop began and ended.
    pub span: (Ticks, Ticks),
    /// What the CPU did by itself before the round.
    pub noise: Option<Noise>,
    /// Round trips of the null transport on this CPU, in ticks.
    pub floor: Vec<u32>,
    /// Ticks of recording one sample, beyond the clock's readings, on average over many.
    pub recording_ticks: f64,
    /// Latencies in ticks of messages for which there was no row.
    pub beyond: Beyond,
    /// What the pools of a server of `load` cost.
    pub pool: PoolUse,
}
