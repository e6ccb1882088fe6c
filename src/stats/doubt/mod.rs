//! Everything that weakens a figure, as values that are printed beside it.
//!
//! A stage that finds a reason to doubt makes the variant; the sentences stand in `sentence.rs`,
//! and those that the samples themselves give are found in `found.rs`. `kind` is stable: records
//! and scripts rely on it.

use super::stationarity::{Drift, ShortWarmup};

mod found;
mod sentence;

pub use found::{of_rate, of_summary};
pub use sentence::quantile_name;

/// A core that loses more than this share of its time to gaps is noisy.
pub const NOISE_LIMIT: f64 = 0.01;
/// Something that weakens a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// A role's process was not bound to a CPU.
    Unpinned {
        /// `client` or `server`.
        role: String,
    },
    /// Both roles share one CPU.
    OneCpu {
        /// That CPU.
        cpu: u32,
    },
    /// Threads of one end take turns on a CPU.
    FewerCpus {
        /// Threads of each end.
        threads: u32,
        /// Different CPUs that an end has for them.
        cpus: u32,
    },
    /// In some rounds no time was found in which all threads were under way.
    ThreadsApart {
        /// Those rounds, which have no rate.
        rounds: u32,
    },
    /// The CPU's frequency is not held up.
    Governor {
        /// The CPU.
        cpu: u32,
        /// Its governor.
        governor: String,
    },
    /// The two roles run on hardware threads of one core.
    SmtSiblings {
        /// CPU of the client.
        client: u32,
        /// CPU of the server.
        server: u32,
    },
    /// The counter does not run at one rate, so the system's clock was read instead.
    TscNotInvariant {
        /// What was read instead.
        source: String,
    },
    /// A quantile is not shown.
    TooFewSamples {
        /// The probability.
        p: f64,
        /// The samples there are.
        count: u64,
        /// The samples that it needs.
        needed: u64,
    },
    /// Durations change while they are measured.
    Drifts(Drift),
    /// The start of the rounds is slower than the rest.
    WarmupShort(ShortWarmup),
    /// Messages were posted later than their intended time.
    GeneratorLate {
        /// Share of messages posted later than allowed, 0 to 1.
        share: f64,
        /// The lateness that is allowed, in ns.
        allowed_ns: f64,
        /// The largest lateness, in ns.
        worst_ns: f64,
    },
    /// The generator did not reach the offered rate.
    GeneratorBound {
        /// Messages per second that were intended.
        offered: f64,
        /// Messages per second that were posted.
        achieved: f64,
    },
    /// Requests that were due waited for a buffer, or because too many were on the way.
    HeldUp {
        /// How often the loop found it so.
        times: u64,
        /// Requests.
        sent: u64,
    },
    /// Rounds ended before their time, because no more messages are kept one by one.
    CutShort {
        /// Messages of a round.
        messages: u64,
    },
    /// Messages had a number that was never sent.
    Foreign {
        /// How many.
        messages: u64,
    },
    /// A stream's file was written on the CPU of its receiver.
    FileBeside,
    /// A stream's file has not all samples that arrived.
    FileShort {
        /// Samples that it lacks.
        left_out: u64,
        /// Why it ends before the stream, a sentence.
        reason: Option<String>,
    },
    /// Rounds differ by more than chance within them explains.
    RoundsDisagree {
        /// The probability of the quantile that shows it most, `None` for a rate.
        p: Option<f64>,
        /// Width of the interval between rounds over that within; for a rate half the width of its
        /// interval over its value.
        ratio: f64,
    },
    /// Neighbouring samples say much the same.
    Correlated {
        /// The probability of the quantile that shows it most.
        p: f64,
        /// The samples.
        count: u64,
        /// What they are worth.
        effective_n: f64,
    },
    /// The kernel took the CPU from a role.
    InvoluntarySwitches {
        /// `client` or `server`.
        role: String,
        /// How often, while it measured.
        count: u64,
    },
    /// The sample memory could be paged out.
    MemoryNotLocked {
        /// `client` or `server`.
        role: String,
        /// What the system said.
        reason: String,
    },
    /// Memory was touched for the first time while it measured.
    PageFaults {
        /// `client` or `server`.
        role: String,
        /// How often.
        count: u64,
    },
    /// Not every sample was kept.
    HistogramOnly {
        /// Samples that stand in the histogram alone.
        count: u64,
        /// All samples.
        of: u64,
    },
    /// Messages never came.
    Loss {
        /// How many.
        lost: u64,
        /// Of how many.
        sent: u64,
    },
    /// Messages came with another payload than was sent.
    CorruptPayload {
        /// How many.
        count: u64,
    },
    /// A measuring core loses time to something else.
    NoisyCore {
        /// The CPU.
        cpu: u32,
        /// Share of the time lost in gaps, 0 to 1.
        share: f64,
        /// The longest gap in ns.
        longest_ns: f64,
    },
    /// A hypervisor stands between the program and the machine.
    VirtualMachine {
        /// Its name, as far as it tells.
        hypervisor: String,
    },
    /// The timer's interrupts fall into the samples.
    TimerInterrupted {
        /// The CPU.
        cpu: u32,
        /// Interrupts per second.
        per_second: f64,
    },
    /// Not everything that was planned has been measured.
    Incomplete {
        /// Rounds that ended as planned.
        done: u32,
        /// Rounds that were planned.
        planned: u32,
    },
    /// Both ends are on one host, and a network interface was named.
    NotOnTheWire {
        /// The client's interface.
        interface: String,
    },
    /// What is known of two hosts' clocks is less than a figure needs, so it was left out.
    ClocksUnknown {
        /// The metric.
        metric: String,
        /// What the clocks may be wrong by.
        bound_ns: f64,
        /// What the median would have been.
        p50_ns: f64,
    },
    /// What is known of two hosts' clocks from two sources cannot both be true.
    ClocksDisagree {
        /// What contradicts that by which times were converted.
        by: String,
        /// How far apart the two are, beyond what both allow.
        beyond_ns: f64,
    },
    /// The other host's clock was made wrong on purpose.
    UntrueClock,
    /// One of two hosts' clocks was set, or changed its rate, while rounds ran.
    ClockSet {
        /// How often.
        times: u64,
    },
    /// An end of rounds that were to begin at one instant began later.
    BeganLate {
        /// Which, with its host.
        end: String,
        /// The round.
        round: u32,
        /// By how much, in ns.
        late_ns: f64,
        /// What that may be wrong by, in ns.
        bound_ns: f64,
        /// What is allowed beyond that, in ns.
        allowed_ns: f64,
    },
    /// Two runs that are compared were not measured in turns.
    NotInterleaved,
}

impl Doubt {
    /// The stable name.
    pub fn kind(&self) -> &'static str {
        match self {
            Doubt::Unpinned { .. } => "unpinned",
            Doubt::OneCpu { .. } => "one_cpu",
            Doubt::FewerCpus { .. } => "fewer_cpus",
            Doubt::ThreadsApart { .. } => "threads_apart",
            Doubt::Governor { .. } => "governor",
            Doubt::SmtSiblings { .. } => "smt_siblings",
            Doubt::TscNotInvariant { .. } => "tsc_not_invariant",
            Doubt::TooFewSamples { .. } => "too_few_samples",
            Doubt::Drifts(_) => "drifts",
            Doubt::WarmupShort(_) => "warmup_short",
            Doubt::GeneratorLate { .. } => "generator_late",
            Doubt::GeneratorBound { .. } => "generator_bound",
            Doubt::HeldUp { .. } => "held_up",
            Doubt::CutShort { .. } => "cut_short",
            Doubt::Foreign { .. } => "foreign",
            Doubt::FileBeside => "file_beside",
            Doubt::FileShort { .. } => "file_short",
            Doubt::RoundsDisagree { .. } => "rounds_disagree",
            Doubt::Correlated { .. } => "correlated",
            Doubt::InvoluntarySwitches { .. } => "involuntary_switches",
            Doubt::MemoryNotLocked { .. } => "memory_not_locked",
            Doubt::PageFaults { .. } => "page_faults",
            Doubt::HistogramOnly { .. } => "histogram_only",
            Doubt::Loss { .. } => "loss",
            Doubt::CorruptPayload { .. } => "corrupt_payload",
            Doubt::NoisyCore { .. } => "noisy_core",
            Doubt::VirtualMachine { .. } => "virtual_machine",
            Doubt::TimerInterrupted { .. } => "timer_interrupted",
            Doubt::Incomplete { .. } => "incomplete",
            Doubt::NotOnTheWire { .. } => "not_on_the_wire",
            Doubt::ClocksUnknown { .. } => "clocks_unknown",
            Doubt::ClocksDisagree { .. } => "clocks_disagree",
            Doubt::UntrueClock => "untrue_clock",
            Doubt::ClockSet { .. } => "clock_set",
            Doubt::BeganLate { .. } => "began_late",
            Doubt::NotInterleaved => "not_interleaved",
        }
    }
}
