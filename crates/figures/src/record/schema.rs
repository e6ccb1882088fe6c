//! `record.json`, field by field: `docs/record.md` describes the same for its readers.
//!
//! A field is added with a default, which `None` needs not say; a changed meaning raises
//! [`VERSION`].
#![warn(missing_docs)]

use crate::explain::Explanation;
use crate::explain::tail::TailCauses;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wiregauge_clock::LocalNs;
use wiregauge_clock::offset::{Exchange, Model};
pub use wiregauge_host::together::{CauseFigures, InterruptCount, Kind, ShownGap, Together};
pub use wiregauge_host::{Environment, Noise};
use wiregauge_plan::CpuPair;
pub use wiregauge_stats::{Metric, RateMetric};
use wiregauge_stats::{Rate, Summary, Value, as_value, knee::Requests};

pub use super::case::{CaseRecord, PlanRecord};
pub use super::client_host::ClientHost;
pub use super::impact::{Factor, ImpactFigures};
pub use super::pairs::{Bisection, PairFigures, SlowPair};
pub use wiregauge_clock::ClockReport;
pub use wiregauge_clock::check::OffsetCheck;

/// What stands in `schema` of every record.
pub const SCHEMA: &str = "wiregauge.record";
/// The version of the schema that this build writes.
pub const VERSION: u32 = 3;

/// A whole run directory's `record.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`] of the build that wrote it.
    pub version: u32,
    /// Version of wiregauge.
    pub tool: String,
    /// SHA-256 of the program's file, which agents on all hosts of its architecture have, too;
    /// empty in older records.
    #[serde(default)]
    pub program_sha256: String,
    /// The command as typed.
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// End, RFC 3339, UTC.
    pub finished: String,
    /// Whether everything that was planned has been measured.
    pub complete: bool,
    /// Why not, a sentence each.
    pub faults: Vec<String>,
    /// What was to be done.
    pub plan: Box<PlanRecord>,
    /// What the result depends on.
    pub environment: Box<Environment>,
    /// The clock and its own errors.
    pub clock: ClockReport,
    /// What the instrument itself takes.
    pub instrument: Instrument,
    /// Gaps seen by a spinning loop on each measuring CPU, beside the runs.
    pub noise: Vec<Noise>,
    /// The runs, in the order of the plan's cases.
    pub runs: Vec<Run>,
    /// Transports that were asked for and could not be measured, with the reason.
    pub unavailable: Vec<Unavailable>,
    /// What weakens the whole record.
    pub warnings: Vec<RecordedWarning>,
    /// The plan's other hosts, in its order; all above is of the controller's host.
    #[serde(default)]
    pub hosts: Vec<OtherHost>,
    /// The data paths between hosts, as the pre-flight found them, a pair of ends each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<DataPath>,
    /// What pairs of several hosts show together; `None` where no more than one was measured.
    pub pairs: Option<PairFigures>,
    /// What cases that were measured alone and beside others suffer from these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impacts: Vec<ImpactFigures>,
    /// The other hosts' clocks over a time, where the command was `clocks`.
    #[serde(default)]
    pub clocks: Vec<ClockHistory>,
    /// What took the CPUs, where the command was `noise --together`.
    pub together: Option<Box<Together>>,
    /// Why messages took what they took, where the command was `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Box<Explanation>>,
    /// Why slow messages of each run were slow, where that was asked for (`--causes`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailCauses>,
    /// The `samples.parquet` that was written with this; `None` where only printed, or older.
    pub samples: Option<SamplesFile>,
    /// SHA-256 of its own file; empty before it is written.
    #[serde(skip)]
    pub sha256: String,
}

/// What `samples.parquet` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplesFile {
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all of it, in hex.
    pub sha256: String,
}

/// How far the server's clock was from the client's during a round between two hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The server's clock less the client's, at the sample with the widest bound.
    pub offset_ns: f64,
    /// No one-way time of the round is wrong by more than this.
    pub bound_ns: f64,
    /// What the server's clock gains on the client's, in parts per million.
    pub drift_ppm: f64,
    /// What that may be wrong by.
    pub drift_bound_ppm: f64,
    /// Exchanges of times from the start of the run to the end of the round.
    pub exchanges: u64,
    /// The shortest round trip among them.
    pub shortest_round_trip_ns: f64,
    /// How often a clock was set, or changed its rate, in that time.
    pub steps: u64,
    /// By what the offset is known: `exchanges` of times, or `ptp`, what keeps both clocks right.
    #[serde(default)]
    pub by: String,
    /// What the round's own messages say of the offset at that sample.
    pub traffic: Option<OffsetCheck>,
    /// What the exchanges say of it, where it is known by `ptp`.
    pub exchanged: Option<OffsetCheck>,
}

impl ClockOffset {
    /// What the model of these exchanges says of a time of this host's clock.
    pub fn at(model: &Model, exchanges: &[Exchange], at: LocalNs) -> Option<ClockOffset> {
        let (offset, drift) = (model.offset_at(at), model.drift_at(at)?);
        let shortest = exchanges.iter().map(Exchange::round_trip_ns).reduce(f64::min);
        Some(ClockOffset {
            offset_ns: offset.ns,
            bound_ns: offset.bound_ns,
            drift_ppm: drift.ppm,
            drift_bound_ppm: drift.bound_ppm,
            exchanges: exchanges.len() as u64,
            shortest_round_trip_ns: shortest.unwrap_or(0.0),
            steps: model.steps.len() as u64,
            by: "exchanges".into(),
            traffic: None,
            exchanged: None,
        })
    }
}

/// What it took to compare the clocks of two hosts while rounds ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockCost {
    /// How long, from the first exchange to the last.
    pub length_ns: f64,
    /// Exchanges that came back.
    pub exchanges: u64,
    /// Datagrams sent by both hosts.
    pub datagrams: u64,
    /// Their payloads.
    pub bytes: u64,
    /// CPU time of the thread that asks, on this host.
    pub client_cpu_ns: f64,
    /// CPU time of the one that answers, on the other; `None`: it did not say.
    pub server_cpu_ns: Option<f64>,
}

/// How another host's clock went against this one's over a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockHistory {
    /// Which of the record's hosts.
    pub host: u32,
    /// What was known by then, at ten times.
    pub known: Vec<ClockKnown>,
    /// What is known at the end, of 201 times.
    pub points: Vec<ClockPoint>,
    /// What is known at the end of a time 100 s later, without another exchange.
    pub later: ClockPoint,
}

/// What the exchanges until a time told of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockKnown {
    /// Seconds since the first exchange.
    pub after_s: f64,
    /// The offset then.
    #[serde(flatten)]
    pub clock: ClockOffset,
    /// The truth, where the other host's clock was made wrong by a known amount.
    pub true_offset_ns: Option<f64>,
    /// The same of the drift.
    pub true_drift_ppm: Option<f64>,
}

/// What is known of one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockPoint {
    /// Seconds since the first exchange.
    pub after_s: f64,
    /// The other host's clock less this one's, each since its own epoch.
    pub offset_ns: f64,
    /// The truth lies within so much of it.
    pub bound_ns: f64,
    /// What the other host's clock gains, in parts per million.
    pub drift_ppm: f64,
    /// The truth lies within so much of it.
    pub drift_bound_ppm: f64,
    /// The truth, where the other host's clock was made wrong by a known amount.
    pub true_offset_ns: Option<f64>,
}

/// Another host, on which ends ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OtherHost {
    /// Its name, as it was typed.
    pub name: String,
    /// The address at which it was reached; `None` where an interface was named.
    pub address: Option<String>,
    /// What the result depends on there.
    pub environment: Box<Environment>,
    /// Its clock and that one's own errors.
    pub clock: ClockReport,
    /// Gaps seen by a spinning loop on its measuring CPU, beside the runs.
    pub noise: Vec<Noise>,
    /// What the comparison of its clock with the controller's has cost, where there was one.
    pub clock_cost: Option<ClockCost>,
}

/// A data path between two hosts, as the pre-flight found it before the first round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataPath {
    /// The client's host.
    pub client: String,
    /// The server's host.
    pub server: String,
    /// The client's address.
    pub client_address: String,
    /// The server's address.
    pub server_address: String,
    /// The client's network interface, where that is known.
    pub client_interface: Option<String>,
    /// The server's network interface, where that is known.
    pub server_interface: Option<String>,
    /// The MTU of the client's interface.
    pub client_mtu_bytes: Option<u32>,
    /// The MTU of the server's interface.
    pub server_mtu_bytes: Option<u32>,
    /// Why the client cannot connect to the server, in a sentence; `None`: it can, or no case needs
    /// it.
    pub tcp: Option<String>,
    /// Why the server cannot connect to the client; `None`: it can, or was not tried: no case needs
    /// it.
    pub tcp_back: Option<String>,
    /// Why datagrams do not pass both ways, in a sentence; `None`: they do.
    pub udp: Option<String>,
    /// The largest IP packet that came to the server, of the sizes that were tried; `None`: none.
    pub to_server_bytes: Option<u32>,
    /// The largest IP packet that came to the client; `None`: none.
    pub to_client_bytes: Option<u32>,
}

/// The instrument's own overhead: the latency loop on the null transport, same CPU, same clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Instrument {
    /// Median over the passes of the p50 of what the null transport's loop measures, per round
    /// trip.
    #[serde(with = "as_value", alias = "floor_p50_ns")]
    pub overhead_p50_ns: f64,
    /// p99 of the same.
    #[serde(with = "as_value", alias = "floor_p99_ns")]
    pub overhead_p99_ns: f64,
    /// Messages behind the two.
    pub count: u64,
    /// Passes that they were sent in, some before each round.
    #[serde(default)]
    pub passes: u64,
    /// The error that stands beside every latency: the overhead's p99 plus the clock's resolution.
    #[serde(with = "as_value")]
    pub error_ns: f64,
    /// Cost of recording one sample without its clock readings.
    #[serde(with = "as_value")]
    pub recording_ns: f64,
}

pub use super::round::{Begin, RoundEnd, Stall, StallCause, Start};
pub use wiregauge_base::warning::{RecordedWarning, Severity, Subject};

/// A transport that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Its name.
    pub transport: String,
    /// Why, a sentence.
    pub reason: String,
}

/// The execution of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Number of the run: its position in the record, and `run` in `samples.parquet`.
    pub index: u32,
    /// A short name that distinguishes the run from the others of the record.
    pub label: String,
    /// What was measured.
    pub case: CaseRecord,
    /// The metric or rate that answers the question.
    pub headline: String,
    /// Whether all its rounds ended as planned.
    pub complete: bool,
    /// Why the rounds stopped, a sentence.
    pub stopped: String,
    /// Its rounds, in the order of time.
    pub rounds: Vec<Round>,
    /// Distributions.
    pub figures: Vec<Figure>,
    /// Rates (bandwidth, and what a schedule offered and achieved).
    pub rates: Vec<RateFigure>,
    /// What the pattern keeps beside, in its own form.
    pub details: Option<serde_json::Value>,
    /// All messages of all rounds, by what became of them.
    pub counts: Counts,
    /// The longest gaps that stand out of its rounds, the longest first; few.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// Each host of clients by itself, where one server has clients on several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHost>,
    /// What was included in the figures: name, value.
    pub included: BTreeMap<String, String>,
    /// What weakens its figures.
    pub warnings: Vec<RecordedWarning>,
}

/// A distribution of one metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// What it is.
    pub metric: Metric,
    /// Always `ns`.
    pub unit: String,
    /// The figures.
    pub summary: Summary,
    /// Where its stamps are of two hosts' clocks: no sample is wrong by more than this because of
    /// them.
    pub clock_bound_ns: Option<f64>,
}

/// A rate of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RateFigure {
    /// What it is.
    pub metric: RateMetric,
    /// `msg/s` or `B/s`.
    pub unit: String,
    /// The figures.
    pub rate: Rate,
}

/// One repetition of a case by fresh processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round, from 0.
    pub index: u32,
    /// Position in the order in which all rounds of the record were executed.
    pub position: u32,
    /// Start, nanoseconds since the record's epoch.
    pub started_ns: f64,
    /// From the first submit to the last receipt.
    pub length_ns: f64,
    /// What ended it.
    pub ended: RoundEnd,
    /// The CPUs of the two roles, of several threads those of the first.
    pub cpus: Option<CpuPair>,
    /// Raw samples of this round in `samples.parquet`.
    pub samples: u64,
    /// Samples that stand only in the histogram, since the memory for raw samples was full.
    pub samples_in_histogram_only: u64,
    /// Messages that one row of `samples.parquet` stands for (1 unless `bandwidth`).
    pub stride: u64,
    /// Messages by what became of them.
    pub counts: Counts,
    /// What the client's process used.
    pub client: Usage,
    /// What the server's process used.
    pub server: Usage,
    /// Of a case of several threads what each did, in their order; of one thread nothing more is
    /// to be said.
    #[serde(default)]
    pub threads: Vec<Thread>,
    /// How far the clocks of two hosts were apart, where one-way times were taken between them.
    pub clock: Option<ClockOffset>,
    /// Of rounds on several pairs of hosts at the same time: the share of the time from the first
    /// begin to the last end in which all ran.
    pub overlap: Option<f64>,
    /// How the ends of such a round began, where all were told one instant.
    pub start: Option<Start>,
    /// Of a round beside congestors: the share of its time in which all of them ran.
    pub congested: Option<f64>,
    /// For how long its ends were suspended meanwhile: stopped, paused, or their computer slept. 0
    /// where they were not, and in older records.
    #[serde(default)]
    pub suspended_ns: f64,
}

/// What one thread of both ends did in a round of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Thread {
    /// The CPUs of its two ends; `None` where one of them was not bound.
    pub cpus: Option<CpuPair>,
    /// When the client's loop began, nanoseconds since the record's epoch.
    pub started_ns: f64,
    /// How long it ran.
    pub length_ns: f64,
    /// What ended it.
    pub ended: RoundEnd,
    /// Its messages by what became of them.
    pub counts: Counts,
    /// What the client's thread used and saw.
    pub client: Usage,
    /// The same of the server's.
    pub server: Usage,
}

/// Messages by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Posted by the client, warm-up included.
    pub sent: u64,
    /// Came back (latency) or arrived (oneway, bandwidth), duplicates not counted.
    pub received: u64,
    /// Of those sent, cut as warm-up.
    pub warmup: u64,
    /// Sent and dropped by the transport: never came.
    pub lost: u64,
    /// Came more than once.
    pub duplicates: u64,
    /// Came after one that was sent later.
    pub reordered: u64,
    /// Came with a payload that was not the one sent (`--check`).
    pub corrupt: u64,
    /// Connections of foreign peers that were dropped during set-up.
    #[serde(alias = "strangers")]
    pub rejected_peers: u64,
    /// Steps of a schedule that had passed before the generator came to them; none was dropped, but
    /// of a stream, which leaves them out.
    #[serde(default)]
    pub missed_steps: u64,
    /// Sequence numbers that were passed over when a later one arrived at the server.
    #[serde(default)]
    pub gaps: u64,
    /// Requests that were due and waited: they had no buffer, or too many were on the way.
    #[serde(default)]
    pub held_up: u64,
    /// Requests that were intended and never sent. They are not in `lost`; their response is
    /// infinite.
    #[serde(default)]
    pub unsent: u64,
    /// Of those sent: under way when the round ended, over a transport that loses nothing. They are
    /// not in `lost`.
    #[serde(default)]
    pub unfinished: u64,
    /// Of a stream: those of `lost` before the first that arrived.
    #[serde(default)]
    pub lost_before_first: u64,
}

/// What a role's threads used from arm to disarm, and the settings that it really got.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// User CPU time.
    pub user_ns: f64,
    /// System CPU time.
    pub system_ns: f64,
    /// CPU time of both kinds, by the clocks of the threads; 0 in older records.
    #[serde(default)]
    pub cpu_ns: f64,
    /// For how long its threads were ready to run and others had their CPUs; `None`: not counted.
    pub waited_ns: Option<f64>,
    /// Context switches that it asked for.
    pub voluntary_switches: u64,
    /// Context switches that it suffered.
    pub involuntary_switches: u64,
    /// Page faults.
    pub page_faults: u64,
    /// Whether each thread was bound to its CPU.
    pub pinned: bool,
    /// Whether the sample memory was locked.
    pub locked: bool,
    /// Whether each thread had a table of file descriptors of its own; `false` in older records.
    #[serde(default)]
    pub own_descriptors: bool,
    /// Effective settings of the endpoint, as the system reports them: name, value.
    #[serde(alias = "granted")]
    pub effective_settings: BTreeMap<String, String>,
    /// What the endpoint had seen when the round was over: name, value. Errors of completions by
    /// name, and counters of the port as differences.
    #[serde(default, alias = "seen")]
    pub final_counters: BTreeMap<String, String>,
}

impl Counts {
    /// What became of the requests of a point of a curve over load.
    pub fn requests(&self) -> Requests {
        let Counts { sent, unsent, received: answered, held_up, .. } = *self;
        Requests { sent, unsent, answered, held_up }
    }
}

impl Run {
    /// Of rounds between two hosts what was known of their clocks in the worst.
    pub fn widest_clock(&self) -> Option<&ClockOffset> {
        let rounds = self.rounds.iter().filter_map(|round| round.clock.as_ref());
        rounds.max_by(|a, b| a.bound_ns.total_cmp(&b.bound_ns))
    }

    /// The summary of one metric, where the run has it.
    pub fn summary(&self, metric: Metric) -> Option<&Summary> {
        self.figures.iter().find(|f| f.metric == metric).map(|f| &f.summary)
    }

    /// Returns how many of the messages behind the figures of a metric were lost: without the
    /// warm-up, as these are. All of them are in `counts`.
    pub fn lost_of(&self, metric: Metric) -> u64 {
        let infinite = self.summary(metric).map_or(self.counts.lost, |summary| summary.lost);
        infinite.saturating_sub(self.unsent_of(metric)).min(self.counts.lost)
    }

    /// Returns how many of them were under way when their round ended.
    pub fn unfinished_of(&self, metric: Metric) -> u64 {
        let infinite = self.summary(metric).map_or(0, |summary| summary.lost);
        infinite.saturating_sub(self.unsent_of(metric)).min(self.counts.unfinished)
    }

    /// Returns how many messages of a metric were intended and never posted: the response of these
    /// is infinite, and no other metric has them.
    fn unsent_of(&self, metric: Metric) -> u64 {
        if metric == Metric::Response { self.counts.unsent } else { 0 }
    }

    /// The value of one quantile of one metric, where it may be shown.
    pub fn quantile(&self, metric: Metric, p: f64) -> Option<Value> {
        self.summary(metric)?.quantile(p)?.value
    }

    /// A rate, where the run has it.
    pub fn rate(&self, metric: RateMetric) -> Option<&Rate> {
        self.rates.iter().find(|figure| figure.metric == metric).map(|figure| &figure.rate)
    }
}

impl wiregauge_stats::limit::Figures for Run {
    fn summary(&self, metric: Metric) -> Option<&Summary> {
        Run::summary(self, metric)
    }

    fn rate(&self, metric: RateMetric) -> Option<&Rate> {
        Run::rate(self, metric)
    }
}
