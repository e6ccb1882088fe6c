//! What to measure: the validated [`Case`]s of a run. Pure.
//!
//! Takes a request from the command line (`cli`) or a study; gives a [`Plan`] that is
//! valid and complete. An invalid plan is refused here, with a sentence that says what is allowed.

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod case_frame;
mod cpus;
mod duration;
mod ended;
pub mod host_spec;
pub mod impact;
pub mod pairs;
mod part;
mod pattern;
pub mod plain;
pub mod rails;
pub mod reference;
pub mod request;
mod schedule;
pub mod shipped;
mod slo;
pub mod study;
pub mod sweep;
pub mod topology;
pub mod trace;
pub mod written;

pub use wiregauge_base::options::UsageError;
pub use wiregauge_host::CpuPair;
pub use wiregauge_transport::{Settings, Wait};

pub use ended::Ended;
pub use host_spec::HostSpec;
pub use pairs::{Layout, Pairs, Place};
pub use part::{Impact, Part};
pub use pattern::{
    CaseProfile, CasesSoFar, Combination, Ending, FindPattern, Followed, OneSpec, PatternRef,
    PatternRequest, PatternSpec, Spec, Specification, check_limits,
};
pub use rails::Rails;
pub use schedule::{Schedule, TimerKind};
pub use slo::Slo;
pub use study::{Axis, Study};
pub use topology::{HostPair, Topology};
pub use trace::Trace;

use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wiregauge_base::units::{Bytes, InjectedClockError, Span};
use wiregauge_transport::{Role, TransportKind};

/// The time of a round that its user ends: ten years, which every clock still counts.
pub const FOREVER: Span = Span(10 * 365 * 86_400 * 1_000_000_000);

/// Most messages of a burst: their send stamps lie on the measured loop's stack.
pub const MOST_BURST: usize = 1024;

/// What is to be done: all cases, and how often and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan<C = Case> {
    /// The command's name: `survey`, `latency`, ...
    pub name: String,
    /// The cases, in the order in which they are reported.
    pub cases: Vec<C>,
    /// Rounds of each case; the order of the cases is shuffled anew within each round.
    pub rounds: Rounds,
    /// CPUs of the client and of the server, a pair for each thread. None: chosen at launch.
    #[serde(with = "cpus")]
    pub cpus: Vec<CpuPair>,
    /// Other hosts than this one, of which the cases' ends are numbers.
    pub hosts: Vec<HostSpec>,
    /// Which pairs of several hosts are measured.
    pub pairs: Option<Pairs>,
    /// The rails of its hosts, where each is a case.
    #[serde(default)]
    pub rails: Option<Rails>,
    /// Cases that run at the same time, by their numbers; one that is in no list runs alone.
    pub concurrent: Vec<Vec<u32>>,
    /// Cases that are compared with themselves beside others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impacts: Vec<Impact>,
    /// What the other hosts' clocks are made wrong by, to prove that this is found.
    #[serde(alias = "untrue_clock")]
    pub injected_clock_error: Option<InjectedClockError>,
    /// Seed of the order of the cases.
    pub seed: u64,
    /// Samples above this count as slow (a share is printed).
    pub threshold: Span,
    /// Time of all rounds: if they take longer, each case has fewer of them, and one at least.
    /// `None`: they take as long as they take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Span>,
    /// The study that the plan carries out, where it is one.
    pub study: Option<Study>,
}

/// How many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// At least this many.
    pub least: u32,
    /// At most this many.
    pub most: u32,
    /// Stop between the two as soon as the interval of p50 and of p99 (for bandwidth: of the
    /// rate) is within this fraction of its value on either side.
    pub until: Option<f64>,
}

/// Longest label of a run in a record, in bytes: exports repeat it in each row. Of a name as it is
/// made here the parts have limits, so that it is a tenth of it.
pub const MAX_LABEL: usize = 1024;

/// What stands for the rest of a label that is too long.
const REST: &str = "...";

/// Cuts a label at [`MAX_LABEL`].
pub fn shorter(mut label: String) -> String {
    if label.len() > MAX_LABEL {
        let most = MAX_LABEL - REST.len();
        let end = (0..=most).rev().find(|end| label.is_char_boundary(*end));
        label.truncate(end.unwrap_or(0));
        label += REST;
    }
    label
}

impl Plan {
    /// A plan of no cases, on this host, of which nothing more was asked.
    pub fn new(name: &str, rounds: Rounds, seed: u64) -> Plan {
        Plan {
            name: name.into(),
            cases: Vec::new(),
            rounds,
            cpus: Vec::new(),
            hosts: Vec::new(),
            pairs: None,
            rails: None,
            concurrent: Vec::new(),
            impacts: Vec::new(),
            injected_clock_error: None,
            seed,
            threshold: Span(0),
            time_limit: None,
            study: None,
        }
    }

    /// A short name that distinguishes a case from the others; in a study the series comes first.
    /// It has at most [`MAX_LABEL`] bytes.
    pub fn label(&self, number: usize) -> String {
        shorter(self.whole_label(number))
    }

    fn whole_label(&self, number: usize) -> String {
        let Some(case) = self.cases.get(number) else { return String::new() };
        let label = match self.pairs {
            Some(_) => format!("{} {}", case.label(), self.hosts_of(case)),
            None => case.pattern.label_in(self, number).unwrap_or_else(|| case.label()),
        };
        let label = match case.part.pair {
            Some(_) if case.topology.is_between_hosts() => {
                format!("{label} {}", self.hosts_of(case))
            }
            Some([from, to]) => format!("{label} {from} to {to}"),
            None => label,
        };
        let label = match self.rail(case) {
            Some(rail) => format!("{label} rail {rail}"),
            None => label,
        };
        let series = self.study.as_ref().and_then(|study| study.series_of(number as u32));
        series.map_or(label.clone(), |series| format!("{}: {label}", series.name))
    }

    /// Cases that run at the same time, those that run alone included.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let numbers = |group: &Vec<u32>| group.iter().map(|number| *number as usize).collect();
        let mut groups: Vec<Vec<usize>> = self.concurrent.iter().map(numbers).collect();
        let grouped: BTreeSet<usize> = groups.iter().flatten().copied().collect();
        let alone = (0..self.cases.len()).filter(|case| !grouped.contains(case));
        groups.extend(alone.map(|case| vec![case]));
        groups
    }

    /// CPUs that the ends of its cases want at the same time, at most: those of a case, of what
    /// runs beside it, and of the other rails.
    pub fn cpus_at_once(&self) -> u32 {
        let of = |case: &Case| case.topology.cpu_pairs() + case.cpus_before();
        let rails = self.rails.as_ref().map_or(1, Rails::at_once);
        rails * self.cases.iter().map(of).max().unwrap_or(1)
    }
}

impl<C> Plan<C> {
    /// The same with its cases in another form.
    pub fn into_form<D>(self, form: impl FnMut(C) -> D) -> Plan<D> {
        Plan {
            name: self.name,
            cases: self.cases.into_iter().map(form).collect(),
            rounds: self.rounds,
            cpus: self.cpus,
            hosts: self.hosts,
            pairs: self.pairs,
            rails: self.rails,
            concurrent: self.concurrent,
            impacts: self.impacts,
            injected_clock_error: self.injected_clock_error,
            seed: self.seed,
            threshold: self.threshold,
            time_limit: self.time_limit,
            study: self.study,
        }
    }

    /// The name of one of its hosts; `None`: this one.
    pub fn host(&self, number: Option<u32>) -> &str {
        let other = number.and_then(|number| self.hosts.get(number as usize));
        other.map_or(pairs::HERE, |spec| &spec.host)
    }

    /// The name of the rail of a case, where there are rails.
    pub fn rail<P, S>(&self, case: &Case<P, S>) -> Option<String> {
        self.rails.as_ref()?.name(case)
    }

    /// The names of the hosts of a case.
    pub fn hosts_of<P, S>(&self, case: &Case<P, S>) -> String {
        let HostPair { client, server } = case.topology.hosts();
        format!("{} to {}", self.host(client), self.host(server))
    }
}

/// Converts the cases of a plan to the form of a record.
impl<C: for<'a> From<&'a Case>> From<&Plan> for Plan<C> {
    fn from(plan: &Plan) -> Plan<C> {
        plan.clone().into_form(|case| C::from(&case))
    }
}

/// When a round ends: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Messages after the warm-up.
    pub count: Option<u64>,
    /// Time after the warm-up.
    pub time: Option<Span>,
}

/// What all patterns have of one measurement, and the pattern's own specification. A run executes
/// a case in several rounds. Records and control messages carry pattern and specification in forms
/// of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case<P = PatternRef, S = Spec> {
    /// The question.
    pub pattern: P,
    /// What the pattern asks beyond the rest.
    pub spec: S,
    /// How messages move.
    pub transport: TransportKind,
    /// How all ends wait.
    pub wait: Wait,
    /// Who talks to whom.
    pub topology: Topology,
    /// When it starts, beside others.
    #[serde(default)]
    pub part: Part,
    /// Payload of one message; the longest where they differ.
    pub size: Bytes,
    /// When a round of a thread ends.
    pub bound: Bound,
    /// Messages at the start of each round that are kept but left out of the figures.
    pub warmup: u64,
    /// Whether that number was asked for. Otherwise time may end the warm-up before
    /// ([`Case::warmup_time`]).
    #[serde(default)]
    pub exact_warmup: bool,
    /// The intended send times.
    pub schedule: Schedule,
    /// The messages of a schedule that is read from a file.
    pub trace: Option<Trace>,
    /// What waits for the intended times.
    pub timer: TimerKind,
    /// Whether the receiver verifies the payload.
    pub check: bool,
    /// A message that has not arrived by then is lost (transports that lose messages).
    pub loss_after: Span,
    /// A round without progress for so long has stalled.
    pub timeout: Span,
    /// Settings of the transport.
    pub settings: Settings,
    /// Random seed.
    pub seed: u64,
}

impl Case {
    /// The specification as the pattern's own type. Only the pattern of a case knows the type, and
    /// makes it ([`PatternSpec::read_spec`]).
    pub fn spec<T: Any>(&self) -> &T {
        #[expect(clippy::expect_used, reason = "a pattern is only called with cases it has made")]
        let spec = self.spec.get().expect("a case holds the specification of its own pattern");
        spec
    }

    /// The same case with another specification.
    #[must_use]
    pub fn with_spec(&self, spec: impl Specification) -> Case {
        Case { spec: Spec::new(spec), ..self.clone() }
    }

    /// What it asks of its transport and its ranks.
    pub fn profile(&self) -> CaseProfile {
        self.pattern.profile(self)
    }

    /// Pairs of CPUs that what runs at the same time takes first.
    pub fn cpus_before(&self) -> u32 {
        self.profile().cpus_before + self.part.cpus_before
    }

    /// A short name that distinguishes the case from the others of a plan.
    pub fn label(&self) -> String {
        shorter(self.pattern.label(self))
    }

    /// The usual form of such a name: what is measured, over what, of which size.
    pub fn label_as(&self, what: &str, more: &str) -> String {
        let point = self.pattern.point(self).map(|point| format!(" {point}")).unwrap_or_default();
        let threads = match self.threads() {
            1 => String::new(),
            several => format!(" {several} threads"),
        };
        let connections = match self.topology.connections_each() {
            1 => String::new(),
            several => format!(" {several} connections"),
        };
        let (transport, wait, size) = (self.transport, self.wait.name(), self.size);
        format!("{what}{more} {transport} {wait} {size}{point}{threads}{connections}")
    }

    /// Its value on an axis of graphs; `None`: it has none, or, of the answered rate, only its run
    /// has.
    pub fn on_axis(&self, axis: Axis) -> Option<f64> {
        match axis {
            Axis::Size => Some(self.size.0 as f64),
            Axis::Rate => self.schedule.rate().map(|rate| rate.0),
            Axis::Answered => None,
            Axis::Values => self.profile().values.map(f64::from),
            Axis::Clients => self.profile().clients.map(f64::from),
            Axis::Connections => Some(f64::from(self.topology.connections_each())),
        }
    }

    /// Longest time in which a rank opens or connects its endpoints.
    pub fn setup_time(&self) -> Duration {
        let memory = Duration::from_nanos(self.slot_bytes().saturating_mul(BYTE_SETUP_NS));
        Duration::from_nanos(self.timeout.0)
            .saturating_add(self.queue_time())
            .saturating_add(memory)
    }

    /// Bytes of the messages on their way, both ways, of the rank that has the most endpoints.
    fn slot_bytes(&self) -> u64 {
        let slots = u64::from(self.profile().queue_depth).saturating_mul(2);
        self.size.0.saturating_mul(slots).saturating_mul(self.most_endpoints())
    }
}

impl<P, S> Case<P, S> {
    /// The same with pattern and specification in another form.
    pub fn into_form<Q, T>(self, pattern: Q, spec: T) -> Case<Q, T> {
        Case {
            pattern,
            spec,
            transport: self.transport,
            wait: self.wait,
            topology: self.topology,
            part: self.part,
            size: self.size,
            bound: self.bound,
            warmup: self.warmup,
            exact_warmup: self.exact_warmup,
            schedule: self.schedule,
            trace: self.trace,
            timer: self.timer,
            check: self.check,
            loss_after: self.loss_after,
            timeout: self.timeout,
            settings: self.settings,
            seed: self.seed,
        }
    }

    /// Whether the user ends it: an interrupt is then its planned end.
    pub fn is_endless(&self) -> bool {
        self.bound.time == Some(FOREVER)
    }

    /// Threads that measure: the client's.
    pub fn threads(&self) -> u32 {
        self.topology.threads_of(Role::Client).max(1)
    }

    /// Queue pairs of the rank that has the most, each with an address.
    pub fn queues(&self) -> u64 {
        let of_endpoint = u64::from((self.transport.descriptor().queues)(&self.settings));
        of_endpoint.saturating_mul(self.most_endpoints())
    }

    /// Endpoints of the rank that has the most.
    fn most_endpoints(&self) -> u64 {
        let ends = self.topology.endpoints_of_each().into_iter();
        u64::from(ends.max().unwrap_or(1)).saturating_mul(self.topology.most_threads().into())
    }

    /// How long its queue pairs take to be made, connected or released.
    pub fn queue_time(&self) -> Duration {
        // Around a ring of nodes each connection may wait for the one before it.
        let ranks = if self.topology.has_nodes() { self.topology.ranks.len() as u64 } else { 1 };
        let queues = self.queues().max(ranks);
        QUEUE_SETUP.saturating_mul(u32::try_from(queues).unwrap_or(u32::MAX))
    }
}

/// How long a queue pair is waited for beside `--timeout`: the connection manager takes four
/// messages, and an adapter's firmware some 0.1 ms for each change of a state.
const QUEUE_SETUP: Duration = Duration::from_millis(4);

/// How long a byte of the messages is waited for beside `--timeout`: the kernel gives each page,
/// and an adapter's driver registers it, at some 0.3 ns a byte; an emulated processor takes some
/// 10 ns.
const BYTE_SETUP_NS: u64 = 20;

/// What was asked for. `None`: the default of the pattern.
#[derive(Clone, Debug)]
pub struct Request {
    /// The question.
    pub pattern: PatternRef,
    /// What is asked of the pattern.
    pub asked: Arc<dyn PatternRequest>,
    /// When a round ends where neither a count nor a time was given.
    pub usual_bound: Bound,
    /// Whether messages that go the other way are another case: not of round trips.
    pub is_directed: bool,
    /// Whether random matchings of all hosts tell the bandwidth of the whole network.
    pub measures_bisection: bool,
    /// Transports, each a case.
    pub transports: Vec<TransportKind>,
    /// Sizes, each a case.
    pub sizes: Vec<Bytes>,
    /// Whether each size also gets its neighbours.
    pub perturb: bool,
    /// Wait modes, each a case.
    pub waits: Vec<Wait>,
    /// The user named the wait modes; else others are used where busy waits lack CPUs.
    pub is_wait_chosen: bool,
    /// Numbers of threads of each end, each a case.
    pub threads: Vec<u32>,
    /// Messages of a round.
    pub count: Option<u64>,
    /// Time of a round.
    pub time: Option<Span>,
    /// Messages of the warm-up.
    pub warmup: Option<u64>,
    /// The intended send times.
    pub schedule: Schedule,
    /// The messages of a schedule that was written down.
    pub trace: Option<Trace>,
    /// What waits for the intended times; `None`: the busy one.
    pub timer: Option<TimerKind>,
    /// Whether payloads are verified.
    pub check: bool,
    /// When a message counts as lost.
    pub loss_after: Span,
    /// When a round counts as stalled.
    pub timeout: Span,
    /// Rounds.
    pub rounds: Option<u32>,
    /// The interval width at which rounds end.
    pub until: Option<f64>,
    /// CPUs, a pair for each thread; none: chosen.
    pub cpus: Vec<CpuPair>,
    /// The hosts of both ends.
    pub place: Place,
    /// When it starts, beside those of its group.
    pub part: Part,
    /// The name of those that run at the same time; `None`: it runs alone.
    pub group: Option<String>,
    /// What the other hosts' clocks are made wrong by.
    pub injected_clock_error: Option<InjectedClockError>,
    /// What counts as slow.
    pub threshold: Span,
    /// Settings of the transport.
    pub settings: Settings,
    /// The seed.
    pub seed: u64,
}
