//! What to measure: the validated [`Case`]s of a run. Pure.
//!
//! Takes what was typed (through [`crate::cli`]) or written in a file; gives a [`Plan`] that can
//! be run as it stands. A wrong plan cannot be expressed past this stage: it is refused in one
//! sentence that says what is allowed.

pub mod cpus;
pub mod host_spec;
pub mod load;
pub mod pairs;
pub mod probe;
pub mod reference;
pub mod request;
pub mod rpc;
pub mod stream;
pub mod study;
pub mod survey;
pub mod sweep;
mod threads;
pub mod trace;
pub mod workload;
pub mod written;

pub use crate::host::CpuPair;
pub use crate::options::UsageError;
pub use crate::transport::{Settings, Wait};

pub use host_spec::HostSpec;
pub use load::Load;
pub use pairs::{Ends, Pairs, Place};
pub use request::{Refusal, Request};
pub use rpc::Rpc;
pub use stream::Stream;
pub use study::Study;
pub use trace::Trace;

use crate::transport::{Traffic, TransportKind};
use crate::units::{Bytes, MessageRate, Span, Untrue};
use serde::{Deserialize, Serialize};

/// Most messages of a burst: their send stamps lie on the measured loop's stack.
pub const MOST_BURST: usize = 1024;

/// The question that a case asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Ping-pong: one message (or one burst) there and back before the next.
    Latency,
    /// Messages one way, stamped at both ends by clocks that agree.
    Oneway,
    /// As many messages as the transport takes, one way or both.
    Bandwidth,
    /// Requests that a server answers from a table of objects, by a schedule.
    Load,
}

impl Pattern {
    /// All.
    pub const ALL: &'static [Pattern] =
        &[Pattern::Latency, Pattern::Oneway, Pattern::Bandwidth, Pattern::Load];

    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Latency => "latency",
            Pattern::Oneway => "oneway",
            Pattern::Bandwidth => "bandwidth",
            Pattern::Load => "load",
        }
    }

    /// Whether a transport can carry it, in some direction; as a stream `oneway` is carried
    /// wherever messages go forward.
    pub fn is_carried_by(self, transport: TransportKind) -> bool {
        let carries = |traffic: Traffic| {
            let descriptor = transport.descriptor();
            let known = descriptor.traffic.iter().any(|known| known.same_kind(traffic));
            known && !descriptor.samples_only
        };
        match self {
            Pattern::Latency | Pattern::Load => carries(Traffic::Echo { every: 1 }),
            Pattern::Oneway | Pattern::Bandwidth => carries(Traffic::Forward),
        }
    }
}

/// The commands that measure over a transport, but for `rpc`.
pub fn commands_over(transport: TransportKind) -> Vec<&'static str> {
    let patterns = Pattern::ALL.iter().filter(|pattern| pattern.is_carried_by(transport));
    let streams = transport.descriptor().traffic.contains(&Traffic::Forward);
    patterns.map(|pattern| pattern.name()).chain(streams.then_some("stream")).collect()
}

/// The intended send times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The next message when the last has ended (latency) or as soon as the transport takes it.
    ClosedLoop,
    /// One message every 1/rate.
    Periodic {
        /// Messages per second.
        rate: MessageRate,
    },
    /// Exponential intervals of mean 1/rate.
    Poisson {
        /// Messages per second, on average.
        rate: MessageRate,
    },
    /// Bursts: exponential intervals while the source is on, nothing while it is off.
    OnOff {
        /// Messages per second, on average over both.
        rate: MessageRate,
        /// How long it is on ...
        on: Span,
        /// ... and off.
        off: Span,
    },
    /// The times of [`Case::trace`].
    Trace {
        /// Messages per second, from the first to the last.
        rate: MessageRate,
    },
}

impl Schedule {
    /// Messages per second on average; `None` for a closed loop.
    pub fn rate(self) -> Option<MessageRate> {
        match self {
            Schedule::ClosedLoop => None,
            Schedule::Periodic { rate }
            | Schedule::Poisson { rate }
            | Schedule::OnOff { rate, .. }
            | Schedule::Trace { rate } => Some(rate),
        }
    }

    /// The same at another rate; a Poisson process where it has none.
    #[must_use]
    pub fn at(self, rate: MessageRate) -> Schedule {
        match self {
            Schedule::Periodic { .. } => Schedule::Periodic { rate },
            Schedule::OnOff { on, off, .. } => Schedule::OnOff { rate, on, off },
            Schedule::ClosedLoop | Schedule::Poisson { .. } | Schedule::Trace { .. } => {
                Schedule::Poisson { rate }
            }
        }
    }

    /// Whether messages go by a clock of their own.
    pub fn is_open(self) -> bool {
        self.rate().is_some()
    }
}

/// What waits for a time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// Reads the clock until it is time.
    #[default]
    Busy,
    /// Sleeps in a read of a timerfd.
    Timerfd,
    /// Sleeps in clock_nanosleep.
    Nanosleep,
    /// Sleeps in io_uring_enter until a time-out completes.
    IoUring,
}

impl TimerKind {
    /// All.
    pub const ALL: &'static [TimerKind] =
        &[TimerKind::Busy, TimerKind::Timerfd, TimerKind::Nanosleep, TimerKind::IoUring];

    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            TimerKind::Busy => "busy",
            TimerKind::Timerfd => "timerfd",
            TimerKind::Nanosleep => "nanosleep",
            TimerKind::IoUring => "io_uring",
        }
    }
}

/// Whether data goes one way or both ways at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From client to server.
    Uni,
    /// Both ways at once.
    Bi,
}

/// When a round ends: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Messages after the warm-up.
    pub count: Option<u64>,
    /// Time after the warm-up.
    pub time: Option<Span>,
}

/// One measurement with fixed parameters. A run executes a case in several rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The question.
    pub pattern: Pattern,
    /// How messages move.
    pub transport: TransportKind,
    /// How both ends wait.
    pub wait: Wait,
    /// Threads of each end: each has an endpoint of its own, connected to its fellow's at the other
    /// end, and plays the pattern by itself.
    #[serde(default = "one_thread")]
    pub threads: u32,
    /// Payload of one message.
    pub size: Bytes,
    /// When a round of a thread ends.
    pub bound: Bound,
    /// Messages at the start of each round that are kept but left out of the figures.
    pub warmup: u64,
    /// Pause between two bursts (between two messages where the burst is 1).
    pub pause: Span,
    /// Messages posted together.
    pub burst: u32,
    /// Most messages posted and not completed (bandwidth).
    pub window: u32,
    /// One way or both (bandwidth).
    pub direction: Direction,
    /// The intended send times.
    pub schedule: Schedule,
    /// The messages of a schedule that was written down.
    #[serde(default)]
    pub trace: Option<Trace>,
    /// What waits for the intended times.
    #[serde(default)]
    pub timer: TimerKind,
    /// What `load` reads, and for how many clients.
    #[serde(default)]
    pub load: Load,
    /// What the messages of a stream are; `None`: it is none.
    #[serde(default)]
    pub stream: Option<Stream>,
    /// What `rpc` sends, and over how many connections; `None`: it is none.
    #[serde(default)]
    pub rpc: Option<Rpc>,
    /// Whether the receiver verifies the payload.
    pub check: bool,
    /// A message that has not come by then is lost (transports that lose messages).
    pub loss_after: Span,
    /// A round without progress for so long has stalled.
    pub timeout: Span,
    /// Settings of the transport.
    #[serde(alias = "options")]
    pub settings: Settings,
    /// Seed of all that is drawn in this case.
    pub seed: u64,
    /// The hosts of its two ends.
    #[serde(default)]
    pub ends: Ends,
}

/// What is to be done: all cases, and how often and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The command's name: `survey`, `latency`, ...
    pub name: String,
    /// The cases, in the order in which they are reported.
    pub cases: Vec<Case>,
    /// Rounds of each case; the order of the cases is shuffled anew within each round.
    pub rounds: Rounds,
    /// CPUs of the client and of the server, a pair for each thread. None: chosen at launch.
    #[serde(with = "cpus")]
    pub cpus: Vec<CpuPair>,
    /// Other hosts than this one, of which the cases' ends are numbers.
    #[serde(default)]
    pub hosts: Vec<HostSpec>,
    /// Which pairs of several hosts are measured.
    #[serde(default)]
    pub pairs: Option<Pairs>,
    /// Cases that run at the same time, by their numbers; one that is in no list runs by itself.
    #[serde(default)]
    pub at_once: Vec<Vec<u32>>,
    /// What the other hosts' clocks are made wrong by, to prove that this is found.
    #[serde(default)]
    pub untrue_clock: Option<Untrue>,
    /// Seed of the order of the cases.
    pub seed: u64,
    /// Samples above this count as slow (a share is printed).
    pub threshold: Span,
    /// Whether points are added while it runs, and the bound that the highest rate is wanted for.
    #[serde(default)]
    pub search: load::Search,
    /// The study that the plan carries out, where it is one.
    #[serde(default)]
    pub study: Option<Study>,
}

/// How many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// At least so many.
    pub least: u32,
    /// At most so many.
    pub most: u32,
    /// Stop between the two as soon as the interval of p50 and of p99 (for bandwidth: of the
    /// rate) is within this fraction of its value on either side.
    pub until: Option<f64>,
}

impl Plan {
    /// A short name that tells a case from the others; in a study the series comes first.
    pub fn label(&self, case: usize) -> String {
        let of = |own: &Case| match (self.pairs, self.probed(case)) {
            (Some(_), _) => format!("{} {}", own.label(), self.ends_of(own)),
            (None, Some(point)) if own.load.probe => {
                let beside = self.cases.get(point).map(Case::label).unwrap_or_default();
                format!("{}, beside {beside}", own.label())
            }
            (None, _) if own.load.probe => format!("{}, alone", own.label()),
            (None, _) => own.label(),
        };
        let label = self.cases.get(case).map(of).unwrap_or_default();
        let series = self.study.as_ref().and_then(|study| study.series_of(case as u32));
        series.map_or(label.clone(), |series| format!("{}: {label}", series.name))
    }
}

/// Records that are older than threads had one.
fn one_thread() -> u32 {
    1
}

impl Plan {
    /// The name of one of its hosts; `None`: this one.
    pub fn host(&self, number: Option<u32>) -> &str {
        let other = number.and_then(|number| self.hosts.get(number as usize));
        other.map_or(pairs::HERE, |spec| &spec.host)
    }

    /// The names of the hosts of a case.
    pub fn ends_of(&self, case: &Case) -> String {
        format!("{} to {}", self.host(case.ends.client), self.host(case.ends.server))
    }

    /// Cases that run at the same time, those that run by themselves included.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut alone = vec![true; self.cases.len()];
        let grouped = |numbers: &Vec<u32>| -> Vec<usize> {
            numbers.iter().map(|number| *number as usize).collect()
        };
        let mut groups: Vec<Vec<usize>> = self.at_once.iter().map(grouped).collect();
        for case in groups.iter().flatten() {
            if let Some(alone) = alone.get_mut(*case) {
                *alone = false;
            }
        }
        groups.extend((0..alone.len()).filter(|case| alone[*case]).map(|case| vec![case]));
        groups
    }
}

impl Case {
    /// What tells the points of a curve apart, of `load` and `stream`.
    pub fn pace(&self) -> Option<String> {
        let rate = self.schedule.rate().map(|rate| format!("at {}/s", rate.0.round()));
        let clients = || format!("of {} clients", self.load.clients);
        match (&self.rpc, self.pattern) {
            (Some(rpc), _) => {
                let unloaded = rpc.unloaded.then(|| "unloaded".to_string());
                let load = unloaded.or(rate).unwrap_or_else(clients);
                Some(format!("{} {load}", rpc.workload.label()))
            }
            (None, Pattern::Load) => {
                Some(rate.filter(|_| self.load.clients == 0).unwrap_or_else(clients))
            }
            (None, _) => rate.filter(|_| self.stream.is_some()),
        }
    }

    /// The command that asks for it; of what runs beside a load its name.
    pub fn command(&self) -> &'static str {
        match (&self.stream, &self.rpc) {
            (Some(_), _) => "stream",
            (_, Some(_)) => "rpc",
            _ if self.load.probe => "probe",
            _ => self.pattern.name(),
        }
    }

    /// A short name that tells the case from the others of a plan.
    pub fn label(&self) -> String {
        let both = if self.direction == Direction::Bi { " both ways" } else { "" };
        let pace = self.pace().map(|pace| format!(" {pace}")).unwrap_or_default();
        let (transport, wait) = (self.transport, self.wait.name());
        if let Some(rpc) = &self.rpc {
            let control = self.settings.text("congestion");
            let control = control.map(|name| format!(" {name}")).unwrap_or_default();
            let mut ports = match (self.threads, rpc.server_ports, rpc.connections) {
                (1, 1, 1) => String::new(),
                (own, others, 1) => format!(" {own} to {others} ports"),
                (own, others, each) => format!(" {own} to {others} ports, {each} connections each"),
            };
            if rpc.receivers > 0 {
                ports.push_str(&format!(" {} receivers", rpc.receivers));
            }
            let mss =
                self.settings.size("mss").map(|mss| format!(" mss {}", mss.0)).unwrap_or_default();
            return format!("rpc {transport}{control}{mss} {wait}{pace}{ports}");
        }
        let threads = match self.threads {
            1 => String::new(),
            several => format!(" {several} threads"),
        };
        let pattern = self.command();
        format!("{pattern}{both} {transport} {wait} {} B{pace}{threads}", self.size.0)
    }
}
