//! Why is it slow: the time of each message in stages, and the causes of the slow ones.
//!
//! Takes the samples of rounds and what the kernel stamped during them; gives an [`Explanation`]
//! for the record. The stages of a message are the times between one stamp and the next on its way,
//! from the program's submit stamp to its receive stamp, so they add up to the measured time.
//! Messages of which a stamp is missing or out of order are left out and counted.
//!
//! Must never: run while something is measured; name a cause without evidence.

pub mod apart;
pub mod causes;
mod clock;
mod disturbance;
mod gaps;
mod on_cpu;
pub mod packets;
pub mod path;
pub mod program;
pub mod split;
mod stages;
pub mod stamps;
mod streams;
mod summary;
pub mod tail;

pub use clock::KernelClock;
pub use stages::is_wire;
pub use summary::{Explainer, RoundTrace, Tracing};

use serde::{Deserialize, Serialize};
use wiregauge_stats::Interval;

/// Quantiles of the table, 0 and 1 included.
pub const QUANTILES: [f64; 8] = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0];
/// The quantile above which a message is slow.
pub const SLOW: f64 = 0.99;
/// The quantile below which a message is one of the best.
pub const BEST: f64 = 0.1;

/// Of a stamp whose CPU is not known.
pub const NO_CPU: u16 = u16::MAX;

wiregauge_base::options::named_enum! {
    /// Why a message was slow.
    #[derive(PartialOrd, Ord)]
    pub enum Cause {
        /// The thread was ready, and another one had its CPU.
        Task = "another task ran",
        /// The process was stopped.
        Stopped = "the process was stopped",
        /// The interrupt of a device.
        Interrupt = "interrupt",
        /// The CPU's timer.
        Timer = "timer interrupt",
        /// Deferred work of interrupts that is not the network's.
        Softirq = "SoftIRQ",
        /// The network's work was left to a thread.
        Deferred = "SoftIRQ deferred to ksoftirqd",
        /// The CPU ran at a lower frequency than at other times of the round.
        Frequency = "lower frequency of the CPU",
        /// The thread was moved to another CPU.
        Migration = "migration",
        /// The CPU slept and had to wake up.
        Idle = "wake-up of an idle CPU",
        /// A page was not mapped.
        Fault = "page fault",
        /// The thread waited in the kernel.
        Uninterruptible = "uninterruptible wait",
        /// It was due, and the sender had not come to it.
        Generator = "generator late",
        /// Other messages were before it, in a queue or at the server.
        Ahead = "queue ahead of it",
        /// The packet waited in the queue of the network device.
        Qdisc = "held in the device queue (qdisc)",
        /// TCP sent it again.
        Retransmission = "retransmission",
        /// Neither kernel had it.
        Wire = "between the hosts (adapter, wire, switch or interrupt)",
        /// The same of other CPUs at the same time.
        GapOfAll = "gap on all CPUs at once (hypervisor or firmware)",
        /// Nothing ran that the kernel knows of.
        Gap = "gap on one CPU (hypervisor, firmware or an interrupt without a trace point)",
        /// None of these.
        Unexplained = "not explained",
    }
}

/// A cause, and who or where it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Named {
    /// The cause.
    pub cause: Cause,
    /// Which task, device or CPU; may be empty.
    pub who: String,
}

/// Why the messages of a run took what they took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The run that was traced.
    pub run: u32,
    /// The same without tracing, its rounds in turns with those of the other.
    pub untraced: u32,
    /// The stages in their order; the last is what the probes add.
    pub stages: Vec<StageFigures>,
    /// What was measured, which the stages of each message add up to.
    pub total: StageFigures,
    /// Messages whose time was split.
    pub messages: u64,
    /// Messages of which a stamp is missing.
    pub incomplete: u64,
    /// Messages whose stamps are not in the order of the way.
    pub disordered: u64,
    /// Messages sent after the memory for stamps was full.
    pub beyond: u64,
    /// Largest difference between the sum of the stages of a message and its measured time, as a
    /// share of the latter.
    pub sum_error: f64,
    /// By how much the kernel's clock may be off against that of the samples.
    pub anchor_ns: f64,
    /// Median of a typical traced round over that of the others.
    pub factor: f64,
    /// 95 % interval of the factor over rounds; `None`: fewer than two of a kind, or an older
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor_interval: Option<Interval>,
    /// Median without tracing.
    pub untraced_p50_ns: f64,
    /// Stamps that lie in a message, in the mean.
    pub stamps: f64,
    /// What one stamp of the way adds, by the lesser difference of p10 and p50.
    pub probe_ns: f64,
    /// The 95 % interval of what one adds to the median, over rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_interval: Option<Interval>,
    /// Messages in front of one when it came to the socket of each leg, by [`QUANTILES`]; empty
    /// where messages go one at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Vec<f64>>,
    /// Packets of the poll (NAPI) that took a message from the device of each leg, by
    /// [`QUANTILES`]; empty where that was not stamped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Vec<f64>>,
    /// Packets that GRO made one of, of which a message of each leg was the last, by
    /// [`QUANTILES`]; empty where that was not stamped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<Vec<f64>>,
    /// The slow messages.
    pub slow: Slow,
    /// The slowest ones, each in detail.
    pub slowest: Vec<SlowMessage>,
    /// Trace points that this kernel lacks.
    pub missing: Vec<String>,
    /// Where each end has a kernel of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Apart>,
    /// Why the kernel stamped the sockets of the run alone (SO_TIMESTAMPING); empty: it stamped the
    /// way of messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_traced: String,
}

/// Two ends of which each has a kernel of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// What a time from a stamp of one host to a stamp of the other may err by: the bound of the
    /// stage 'wire', at most.
    pub bound_ns: f64,
    /// Why the kernel of the server's host stamped nothing, where it did not.
    pub refused: Option<String>,
}

/// A stage of all messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageFigures {
    /// 0: from the client to the server, 1: back.
    pub leg: u32,
    /// In words.
    pub name: String,
    /// Whether the end that sends works, or the one that receives.
    pub sends: bool,
    /// The trace point at which it ends; empty: the program's own stamp.
    pub ends_at: String,
    /// By [`QUANTILES`]: of this stage alone, so a row does not add up. The median is that of a
    /// typical round, the others are of all messages together.
    pub quantiles_ns: Vec<f64>,
    /// 95 % interval of the median, over rounds; `None`: fewer than two, or an older record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_interval: Option<Interval>,
    /// Mean of the fastest messages, of which the stages add up.
    pub best_ns: f64,
    /// 95 % interval of that mean, over rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_interval: Option<Interval>,
    /// Mean of the slow messages, of which the stages add up.
    pub slow_ns: f64,
    /// Mean of the time in which the thread or the kernel that works in it had a CPU; `None`: an
    /// adapter or a queue works, or it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cpu_ns: Option<f64>,
    /// CPUs on which it ended, and how many messages on each.
    pub cpus: Vec<(u32, u64)>,
}

/// The slow messages together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// How many.
    pub count: u64,
    /// All of them took longer.
    pub above_ns: f64,
    /// Each cause with how many it made slow, the most first.
    pub causes: Vec<(Named, u64)>,
}

impl Slow {
    /// With the most frequent cause first, and last what is not explained.
    fn new(count: u64, above_ns: f64, mut causes: Vec<(Named, u64)>) -> Slow {
        causes.sort_by_key(|(named, count)| {
            (named.cause == Cause::Unexplained, std::cmp::Reverse(*count))
        });
        Slow { count, above_ns, causes }
    }
}

/// A slow message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowMessage {
    /// Its round.
    pub round: u32,
    /// Its number in the round.
    pub sequence: u64,
    /// When it was submitted.
    pub start_ns: f64,
    /// What it took.
    pub total_ns: f64,
    /// Its stages and the CPU at the end of each, in the order of [`Explanation::stages`] without
    /// the last; none where messages were not split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<(f64, u32)>,
    /// Why.
    pub cause: Named,
    /// The share of what it took above the median that the cause covers.
    pub covered: f64,
}

#[cfg(test)]
mod tests;
