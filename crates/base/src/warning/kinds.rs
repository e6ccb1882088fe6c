//! All warnings: what each is called, how severe it is, what it says and what to do.
//!
//! Kinds are stable, since records and scripts rely on them. A sentence has at most 100 characters
//! and names the figure and the numbers; what needs more words stands in docs/warnings.md.

use super::Subject::{Cpu, Interface, Metric, Role};
use super::number::{of_missing, percent, share, time, times};
use super::{RecordedWarning, Severity};
use crate::units::{counted, quantile_name};

/// Advice for a run whose ends a CPU quota stops.
const QUOTA_ADVICE: &str = "raise the CPU quota (cpu.max of the cgroup; docker --cpus)";

/// Kinds that are also due to a CPU quota where that stopped the ends: what they advise against
/// other processes would not help then.
pub(super) const ALSO_BY_QUOTA: [&str; 5] =
    ["late_entries", "uncongested", "noisy_core", "other_load", "involuntary_switches"];

impl RecordedWarning {
    /// Returns the warning as it is in a run whose ends a CPU quota stopped.
    #[must_use]
    pub fn under_quota(self) -> RecordedWarning {
        if !ALSO_BY_QUOTA.contains(&self.kind.as_str()) {
            return self;
        }
        let sentence = self.sentence.replace("to other work", "to the CPU quota or other work");
        RecordedWarning { sentence, advice: QUOTA_ADVICE.into(), ..self }
    }
}

/// What a field of this name says that a warning is about.
macro_rules! subject {
    (metric $name:ident) => {
        Some(Metric($name.to_string()))
    };
    (role $name:ident) => {
        Some(Role($name.to_string()))
    };
    (interface $name:ident) => {
        Some(Interface($name.to_string()))
    };
    (cpu $number:ident) => {
        Some(Cpu(*$number))
    };
    ($other:ident $value:ident) => {
        None
    };
}

/// Declares a variant a line of the table. `size`: by which warnings of a kind are compared, the
/// larger the worse; without one they are alike.
macro_rules! warnings {
    ($(
        $(#[$doc:meta])*
        $kind:literal $severity:ident $variant:ident $({ $($field:ident: $type:ty),* $(,)? })?
        $(about $subject:expr,)?
        $(size $size:expr,)?
        says($($sentence:tt)*),
        advises($($advice:tt)*);
    )*) => {
        /// Something that weakens a figure.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Of fields, whose names say what they are.
        pub enum Warning { $($(#[$doc])* $variant $({ $($field: $type),* })?,)* }

        /// Every kind and its severity, in the order of the table.
        pub const KINDS: &[(&str, Severity)] = &[$(($kind, Severity::$severity)),*];

        impl From<&Warning> for RecordedWarning {
            #[allow(unused_variables)] // A field is in the sentence, in the advice or in both.
            fn from(warning: &Warning) -> RecordedWarning {
                match warning {
                    $(Warning::$variant $({ $($field),* })? => RecordedWarning {
                        kind: $kind.into(), severity: Severity::$severity,
                        subject: None$($(.or(subject!($field $field)))*)?$(.or(Some($subject)))?,
                        sentence: format!($($sentence)*),
                        magnitude: None$(.or(Some($size)))?.filter(|size: &f64| size.is_finite()),
                        advice: format!($($advice)*),
                    },)*
                }
            }
        }
    };
}

/// Returns the advice for rounds that are missing.
fn again(why: &str) -> &'static str {
    if why.contains("interrupted by the user") {
        "let it come to its end, or ask for less: --rounds, --time, --count"
    } else {
        "run it again once the reason is gone"
    }
}

warnings! {
    // What was measured is not what was asked for.

    /// Not everything that was planned has been measured.
    "incomplete" Severe Incomplete { done: u32, planned: u32, why: String }
    size 1.0 - share(*done, *planned),
    says("{done} of {planned} rounds were completed: {why}"),
    advises("{}", again(why));

    /// Messages came with another payload than was sent.
    "corrupt_payload" Severe CorruptPayload { count: u64 }
    size *count as f64,
    says("{count} messages arrived with a payload that differs from the one sent"),
    advises("check adapter, cable, driver and memory before you trust this path");

    /// A rank entered collective operations later than all had agreed.
    "late_entries" Severe LateEntries { late: u64, of: u64, allowed_ns: f64 }
    size *late as f64 / *of as f64,
    says("a rank entered {late} of {of} operations more than {} late: they are in no figure",
         time(*allowed_ns)),
    advises("use no more ranks than CPUs, stop other processes, or raise --max-late");

    /// Both ends are on one host, and a network interface was named.
    "not_on_the_wire" Severe NotOnTheWire { interface: String }
    says("both ends are on one host: no message crossed the wire of {interface}"),
    advises("run the server's end on another host (--to HOST)");

    /// Another interface carried the messages than was asked for.
    "another_device" Severe AnotherDevice {
        role: &'static str, interface: String, seen: String,
    }
    says("--interface {interface} was asked of the {role}, and {seen} carried the messages"),
    advises("look at the routes and at arp_ignore of both hosts (docs/evidence.md)");

    /// Both ends use one port of one adapter.
    "adapter_loopback" Warning AdapterLoopback { port: String }
    says("both ends use {port}: the adapter loops messages back, and no wire is in the figures"),
    advises("give each end a port of its own (--device A,B or --port A,B), or use --to HOST");

    /// An end has another setting than was asked for.
    "not_granted" Warning NotGranted {
        role: &'static str, option: &'static str, asked: String, granted: String,
        advice: &'static str,
    }
    says("--{option} {asked} was asked of the {role}, which has {granted}"),
    advises("{advice}");

    /// The transport's own packets were lost, and sent again after a timeout.
    "packets_resent" Warning PacketsResent { resent: u64, discarded: u64 }
    size (*resent + *discarded) as f64,
    says("{resent} packets were sent again and {discarded} discarded: latencies include timeouts"),
    advises("check for loss; over loopback and veth Homa drops the first packet of each message");

    /// TCP has sent segments again.
    "segments_resent" Warning SegmentsResent { role: &'static str, segments: u64, messages: u64 }
    size *segments as f64 / *messages as f64,
    says("TCP of the {role} sent {segments} segments again, of {messages} messages"),
    advises("look at where packets were lost, and at tcp.spurious and tcp.reordered in the record");

    /// Some of several connections carried no message.
    "unused_connections" Warning UnusedConnections { used: u64, connections: u64 }
    size *connections as f64 / (*used).max(1) as f64,
    says("{used} of {connections} connections carried a message: the figures are of fewer"),
    advises("raise --time or --count, so that each has its turn");

    /// Messages came for which the receiver had posted no receive, some more than once.
    "receiver_not_ready" Warning ReceiverNotReady { count: u64, counter: &'static str }
    size *count as f64,
    says("a receiver had no receive posted {} ({counter}): senders waited to resend",
         counted(*count, "time")),
    advises("raise --receive-depth or --rx-buffers, or lower --rnr-timer (docs/under-load.md)");

    /// A port dropped packets, or received some in error.
    "port_drops" Warning PortDrops { count: u64, counter: &'static str }
    size *count as f64,
    says("an RDMA port dropped {count} packets ({counter}): latencies include resent packets"),
    advises("check cables, MTU, PFC and ECN along the path, and other traffic of the port");

    /// The clients of one host saw another latency than those of all other hosts.
    "host_stands_out" Warning HostStandsOut { host: String, figure: String, ratio: f64 }
    size ratio.ln().abs(),
    says("clients on {host} stand out: their {figure} is {ratio:.2} times that of all hosts"),
    advises("look for what differs there (CPU, adapter, path), or leave it out of --client-hosts");

    /// The two ways of a rate both ways differ beyond their intervals.
    "ways_differ" Warning WaysDiffer { there: f64, back: f64 }
    about Metric("bandwidth".into()),
    size (there / back).ln().abs(),
    says("{:.4} MB/s arrived at the server and {:.4} at the client: bandwidth is their sum",
         there / 1e6, back / 1e6),
    advises("read each way by itself; where both are to be equal, look at CPUs, routes and queues");

    /// The wall clock was set in mid run.
    "wall_clock_set" Note WallClockSet { by_s: f64 }
    size by_s.abs(),
    says("the wall clock was set by {by_s:.1} s: times of day are by the clock of the start"),
    advises("nothing: no figure is taken by the wall clock");

    /// Messages left before the thread of `--stamp-send` had written a time into them.
    "never_stamped" Warning NeverStamped { count: u64, of: u64 }
    about Metric("transfer".into()),
    size *count as f64 / *of as f64,
    says("{count} of {of} messages left before a time was written: transfer lacks them"),
    advises("give the thread of --stamp-send a CPU of its own: use 3 CPUs or more");

    /// More than a tenth of the messages left before a time was written into them.
    "few_stamped" Severe FewStamped { count: u64, of: u64 }
    about Metric("transfer".into()),
    size *count as f64 / *of as f64,
    says("{count} of {of} messages left before a time was written: transfer is of the few others"),
    advises("give the thread of --stamp-send a CPU of its own: use 3 CPUs or more");

    /// The generator did not reach the offered rate.
    "generator_bound" Severe GeneratorBound { offered: f64, achieved: f64 }
    about Metric("offered_rate".into()),
    size offered / achieved,
    says("generator-bound: {achieved:.0} of {offered:.0} messages/s were sent; \
          the transport was not the limit"),
    advises("lower --rate, or use a faster CPU for the client");

    /// Two sources of the offset between two hosts' clocks cannot both be true.
    "clocks_disagree" Severe ClocksDisagree { by: &'static str, beyond_ns: f64 }
    about Metric("one_way".into()),
    size *beyond_ns,
    says("{by} contradicts the clock offset by {} beyond all bounds: do not trust one_way",
         time(*beyond_ns)),
    advises("check PTP on both hosts, and watch their clocks with `wiregauge clocks`");

    /// A clock was made wrong on purpose: the other hosts', or this host's.
    "injected_clock_error" Severe InjectedClockError { is_remote: bool }
    says("a known error was injected into {} (--injected-clock-error)",
         if *is_remote { "the remote clock" } else { "this host's clock" }),
    advises("do not measure with --injected-clock-error: it tests the instrument");

    // Two hosts' clocks.

    /// A figure below the clock-error bound was dropped.
    "below_clock_bound" Warning BelowClockBound { metric: &'static str, bound_ns: f64, p50_ns: f64 }
    size bound_ns / p50_ns,
    says("{metric} dropped: its median ({}) is below the clock-error bound ({})",
         time(*p50_ns), time(*bound_ns)),
    advises("use `latency` (half_rtt), or a quieter network between the hosts");

    /// A host's clock was set, or changed its rate, while rounds ran.
    "clock_stepped" Warning ClockStepped { times: u64 }
    about Metric("one_way".into()),
    size *times as f64,
    says("a host's clock was stepped or changed its rate ({}): the clock-error bound is wide",
         counted(*times, "time")),
    advises("stop what sets the clock during a run (ntpd, chronyd, ptp4l)");

    /// The clocks of hosts became known less well than the slots of a round need.
    "coarse_clock" Warning CoarseClock { round: u32, bound_ns: f64, within_ns: f64 }
    about Metric("lateness".into()),
    size *bound_ns,
    says("clocks were known to {} only in round {round}: sends may miss slots", time(*bound_ns)),
    advises("use longer slots, or better clocks: these need {}", time(*within_ns));

    /// An end of rounds that were to start at one instant started later.
    "late_start" Warning LateStart {
        end: String, round: u32, late_ns: f64, bound_ns: f64, allowed_ns: f64,
    }
    size *late_ns,
    says("{end} started round {round} {} late (±{}): the others ran uncontended",
         time(*late_ns), time(*bound_ns)),
    advises("check the load of that host, or have fewer ends start at once (allowed: {})",
            time(*allowed_ns));

    /// Packets that an interface sends do not reach the other end, and smaller ones do.
    "path_mtu" Warning PathMtu {
        from: String, to: String, interface: String, mtu_bytes: u32, passes_bytes: u32,
    }
    size share(*mtu_bytes, *passes_bytes),
    says("packets of {mtu_bytes} B ({interface} on {from}) do not reach {to}; {passes_bytes} B do"),
    advises("set one MTU on both ends and on what lies between (`ip link set DEVICE mtu \
             {passes_bytes}`)");

    /// Congestors did not run during all of a victim's round.
    "uncongested" Warning Uncongested { congestor: String, rounds: u32, share: f64 }
    size 1.0 - share,
    says("{congestor} ran during {} of a round ({} not whole): samples are without it",
         percent(*share), counted(u64::from(*rounds), "round")),
    advises("stop other processes, or use a longer --time");

    /// Congestors had CPUs of the victim.
    "congestor_on_cpus" Warning CongestorOnCpus { congestor: String, cpus: u32 }
    size f64::from(*cpus),
    says("{congestor} ran on {} of the victim: the factor is the scheduler's too",
         counted(u64::from(*cpus), "CPU")),
    advises("use fewer congestors (--congestor '--nodes 2'), more CPUs, or other hosts");

    /// A latency is within what the measuring loop adds.
    "below_overhead" Warning BelowOverhead { metric: &'static str, p50_ns: f64, error_ns: f64 }
    size error_ns / p50_ns,
    says("the median of {metric} ({}) is within what the measuring loop adds ({})",
         time(*p50_ns), time(*error_ns)),
    advises("take it as an upper bound: the transport is faster than this clock and CPU can show");

    // CPUs, processes and memory.

    /// The ends of a round were suspended while it ran.
    "suspended" Severe Suspended { round: u32, length_ns: f64 }
    size *length_ns,
    says("the run was suspended for {} in round {round}: its figures include that",
         time(*length_ns)),
    advises("measure again without stop signals, debuggers, paused machines or sleep");

    /// A role's threads were not bound to their CPUs.
    "unpinned" Warning Unpinned { role: &'static str }
    says("the {role} was not pinned: it may have moved between CPUs, which lengthens the tail"),
    advises("allow pinning (cpuset, container limits), or name other CPUs with --cpus");

    /// Both roles share one CPU.
    "one_cpu" Warning OneCpu { cpu: u32 }
    says("both ends share CPU {cpu}: every message includes a context switch"),
    advises("give each end a CPU of its own with --cpus");

    /// Threads of one end take turns on a CPU.
    "fewer_cpus" Warning FewerCpus { threads: u32, cpus: u32 }
    size share(*threads, *cpus),
    says("{threads} threads of an end share {}: messages wait until their thread is scheduled",
         counted(u64::from(*cpus), "CPU")),
    advises("use fewer --threads, or name more CPUs with --cpus");

    /// In some rounds no time was found in which all threads were under way.
    "threads_not_concurrent" Warning ThreadsNotConcurrent { rounds: u32 }
    size f64::from(*rounds),
    says("no rate of {}: one flow finished before another had warmed up",
         counted(u64::from(*rounds), "round")),
    advises("use --time instead of --count");

    /// No round has enough messages for a rate.
    "no_rate" Warning NoRate { messages: u64, stride: u64 }
    says("no rate: {}", match messages {
        0 => "no message arrived".to_string(),
        _ => format!("{messages} messages are less than two timestamps, one per {stride}, \
                      after the warm-up"),
    }),
    advises("{}", match messages {
        0 => "see what became of the messages that were sent".to_string(),
        _ => format!("measure longer: a --count of {} or more, or a longer --time", 3 * stride),
    });

    /// The two roles run on hardware threads of one core.
    "smt_siblings" Warning SmtSiblings { cpus: String }
    says("{cpus} are hardware threads of one core: each slows the other"),
    advises("use two cores (--cpus)");

    /// The two roles run on different NUMA nodes.
    "numa_nodes" Warning NumaNodes { one: u32, other: u32 }
    says("CPU {one} and CPU {other} are on different NUMA nodes: memory between them is slower"),
    advises("use CPUs of one node (--cpus)");

    /// The CPU's frequency is not held up.
    "governor" Warning Governor { cpus: String, governor: String }
    says("the frequency of {cpus} changes during a run: the governor is {governor}"),
    advises("set it to performance: cpupower frequency-set -g performance");

    /// A measuring CPU may enter an idle state that takes long to leave.
    "deep_idle" Warning DeepIdle { cpus: String, state: String, exit_us: u64, limit_us: u64 }
    size *exit_us as f64,
    says("{cpus} may enter idle state {state}: an end that sleeps wakes up to {exit_us} us late"),
    advises("disable it (cpupower idle-set -D {limit_us}), or use --wait busy");

    /// Other tasks may be scheduled on a measuring CPU.
    "not_isolated" Note NotIsolated { cpus: String }
    says("other tasks may run on {cpus} (not isolated) and show in the tail"),
    advises("isolate them: kernel parameters isolcpus= and nohz_full=");

    /// A measuring core loses time to something else.
    "noisy_core" Warning NoisyCore { cpu: u32, share: f64, longest_ns: f64 }
    size *share,
    says("CPU {cpu} lost {} of its time to other work (longest gap {})",
         percent(*share), time(*longest_ns)),
    advises("stop other processes, or isolate the CPU (isolcpus=, nohz_full=)");

    /// The CPU quota of the control group stopped the ends of a run.
    "throttled" Warning Throttled { ends: &'static str, times: u64, ns: f64 }
    size *ns,
    says("the CPU quota stopped {ends} {} for {} in all: the tail includes that",
         counted(*times, "time"), time(*ns)),
    advises("{QUOTA_ADVICE}");

    /// The machine had other work.
    "other_load" Warning OtherLoad { load: f64, cpus: u32 }
    size load / f64::from(*cpus),
    says("load average {load:.2} on {cpus} CPUs: other processes competed with the measurement"),
    advises("stop other processes, or isolate CPUs (isolcpus=, nohz_full=)");

    /// Another run of this program used the same CPUs.
    "shared_cpus" Warning SharedCpus { cpus: String }
    says("another wiregauge measured on CPU {cpus} at the same time and disturbed this run"),
    advises("measure one after the other, or on different CPUs (--cpus)");

    /// A hypervisor stands between the program and the machine.
    "virtual_machine" Note VirtualMachine { hypervisor: String }
    says("virtual machine ({hypervisor}): its host may pause a CPU, and the tail includes that"),
    advises("measure on bare metal where the tail matters");

    /// The kernel took the CPU from a role.
    "involuntary_switches" Warning InvoluntarySwitches { role: &'static str, count: u64 }
    size *count as f64,
    says("the kernel took the CPU from the {role} {count} times: the tail includes these pauses"),
    advises("stop other processes, or isolate CPUs (isolcpus=, nohz_full=)");

    /// The sample memory could be paged out.
    "memory_not_locked" Note MemoryNotLocked { role: &'static str, reason: String }
    says("the sample memory of the {role} is not locked: page faults may delay samples"),
    advises("allow it (ulimit -l unlimited, or CAP_IPC_LOCK): {reason}");

    /// Memory was touched for the first time while it measured.
    "page_faults" Warning PageFaults { role: &'static str, count: u64 }
    size *count as f64,
    says("the {role} had {count} page faults while it measured: the tail includes them"),
    advises("free memory, and allow it to be locked (ulimit -l unlimited)");

    /// The kernel reads its time from something slower than the counter.
    "clock_source" Warning ClockSource { source: String }
    says("the kernel's clock source is {source}: reading time is slow, the TSC may be unstable"),
    advises("look for the reason in the kernel's log: dmesg | grep -i tsc");

    /// The kernel may stop a process to merge its pages.
    "transparent_huge_pages" Note TransparentHugePages
    says("transparent huge pages are always on: the kernel may pause a process to merge pages"),
    advises("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");

    // What the samples say.

    /// A quantile is not shown.
    "too_few_samples" Note TooFewSamples { metric: &'static str, p: f64, count: u64, needed: u64 }
    size *needed as f64 / *count as f64,
    says("{count} samples are too few for {} of {metric}, which needs {needed}", quantile_name(*p)),
    advises("raise --count, --time or --rounds");

    /// The time for all rounds was over before each case had all of its own.
    "fewer_rounds" Warning FewerRounds { rounds: u32, planned: u32, limit_s: f64 }
    size 1.0 - share(*rounds, *planned),
    says("cases have {rounds} of {planned} rounds: all took longer than {limit_s:.0} s here"),
    advises("measure on an idle machine, or each transport by a command of its own (--transport)");

    /// There are too few rounds for an interval between them that covers as often as stated.
    "few_rounds" Note FewRounds { rounds: u32, missed: f64 }
    size *missed,
    says("with {}, a state that 30 % of rounds have is missed with a probability of {}",
         counted(u64::from(*rounds), "round"), percent(*missed)),
    advises("raise --rounds: with 6 the probability is 12 %, with 10 it is 3 %");

    /// Rounds are of two kinds, with a gap between them.
    "rounds_in_groups" Note RoundsInGroups { what: String, high: u64, rounds: u64, share: f64 }
    size *share,
    says("{what}: {high} of {rounds} rounds are {} or more above the others; the median is shown",
         percent(*share)),
    advises("find what differs between processes (CPU, memory placement, connection)");

    /// Rounds differ by more than chance within them explains.
    "rounds_disagree" Warning RoundsDisagree { metric: &'static str, p: f64, ratio: f64 }
    size *ratio,
    says("{} of {metric} varies {} more between rounds than within one",
         quantile_name(*p), times(*ratio)),
    advises("find what differs between processes (CPU, memory placement); raise --rounds");

    /// The rates of rounds differ.
    "rate_varies" Warning RateVaries { metric: &'static str, share: f64 }
    size *share,
    says("{metric} is known only to ±{}: it differs from round to round", percent(*share)),
    advises("find what differs between processes (CPU, memory placement); raise --rounds");

    /// Durations change while they are measured.
    "not_stationary" Warning NotStationary {
        metric: &'static str,
        round: u64,
        change: f64,
        z: f64,
        rounds: u64,
    }
    size change.abs(),
    says("not stationary: {metric} {} {} during round {round} (z = {z:.1}; so in {})",
         if *change > 0.0 { "rose" } else { "fell" }, percent(change.abs()),
         counted(*rounds, "round")),
    advises("raise --warmup (of exchange: --time), and look for what changes (CPU frequency, \
             other processes)");

    /// The start of the rounds is slower than the rest.
    "warmup_short" Warning WarmupShort {
        metric: &'static str,
        excess: f64,
        rounds: u64,
        window: u64,
    }
    size *excess,
    says("warm-up too short: {metric} is {} higher at the start of {} than later",
         percent(*excess), counted(*rounds, "round")),
    advises("raise --warmup by {window} messages");

    /// Neighbouring samples are not independent.
    "autocorrelated" Note Autocorrelated {
        metric: &'static str,
        p: f64,
        count: u64,
        effective_n: f64,
    }
    size *count as f64 / effective_n,
    says("{metric} is autocorrelated: effective n = {effective_n:.0} of {count} samples at {}",
         quantile_name(*p)),
    advises("nothing is wrong: intervals account for it; more --rounds narrow them");

    /// Not every sample was kept.
    "histogram_only" Note HistogramOnly { count: u64, of: u64 }
    size *count as f64 / *of as f64,
    says("{count} of {of} samples are only in the histogram: error 0.05 %, time order unknown"),
    advises("use a shorter --time to keep every sample");

    /// One message, or one time between two stamps, stands out.
    "stall" Note Stall { length_ns: f64, at_s: f64, round: u32, why: String }
    size *length_ns,
    says("one gap of {} at {at_s:.1} s of round {round}: {why}", time(*length_ns)),
    advises("isolate the CPUs (isolcpus=, nohz_full=); \
             if neither end waited, check the hypervisor and the network");

    /// Messages never came.
    "loss" Warning Loss { lost: u64, sent: u64, in_figures: bool }
    size *lost as f64 / *sent as f64,
    says("{lost} of {sent} messages were lost ({}); {}",
         percent(*lost as f64 / (*sent).max(1) as f64), of_missing(*in_figures)),
    advises("{}", match lost {
        all if all == sent => "a firewall or an MTU drops them all: try `wiregauge hosts`",
        _ => "where no loss is expected: lower the rate, or raise the receive buffer",
    });

    /// Messages were under way when a round over a reliable transport ended.
    "unfinished" Note Unfinished { unfinished: u64, sent: u64, in_figures: bool }
    size *unfinished as f64 / *sent as f64,
    says("{unfinished} of {sent} messages were under way when their round ended; {}",
         of_missing(*in_figures)),
    advises("raise --time, or let fewer messages be outstanding");

    /// Requests that the schedule intended were never sent.
    "unsent" Warning Unsent { unsent: u64, sent: u64 }
    about Metric("response".into()),
    size *unsent as f64 / *sent as f64,
    says("{unsent} requests were due but never sent ({sent} were); their response is infinite"),
    advises("lower --rate (rpc: --rps): the server does not keep up with it");

    /// Messages had a number that was never sent.
    "unknown_sequence" Warning UnknownSequence { messages: u64 }
    size *messages as f64,
    says("{messages} messages had a sequence number that was never sent; no figure has them"),
    advises("find what renumbers messages; for a VILLASnode, set original_sequence_no");

    // The generator and what is kept.

    /// Messages were posted later than their intended time.
    "generator_late" Warning GeneratorLate { share: f64, allowed_ns: f64, worst_ns: f64 }
    about Metric("response".into()),
    size *share,
    says("{} of messages were posted more than {} late (worst {}); response includes it",
         percent(*share), time(*allowed_ns), time(*worst_ns)),
    advises("lower --rate, or give the client an isolated CPU");

    /// Requests that were due waited for a buffer, or because too many were outstanding.
    "generator_blocked" Warning GeneratorBlocked { times: u64, sent: u64 }
    about Metric("response".into()),
    size *times as f64 / *sent as f64,
    says("{times} of {sent} requests were held up: no buffer, or too many outstanding"),
    advises("lower the load, or raise --window (rpc: --outstanding)");

    /// Rounds ended before their time, because no more messages are kept one by one.
    "cut_short" Warning CutShort { messages: u64 }
    says("rounds ended early, after {messages} messages: the limit of stored samples"),
    advises("use --count, or a shorter --time");

    /// A stream's file was written on the CPU of its receiver.
    "file_on_receiver_cpu" Warning FileOnReceiverCpu
    says("the stream's file was written on the receiver's CPU: messages waited or were lost"),
    advises("leave a third CPU free for the file");

    /// A stream's file does not have all samples that arrived.
    "file_incomplete" Warning FileIncomplete { left_out: u64 }
    size *left_out as f64,
    says("the stream's file lacks {left_out} samples that arrived: it was slower than the stream"),
    advises("write to a faster disk, or lower --rate; the figures include all samples");

    /// A stream's file could not be written to its end.
    "file_failed" Warning FileFailed { left_out: u64, reason: String }
    size *left_out as f64,
    says("the stream's file lacks {left_out} samples that arrived: {reason}"),
    advises("name a file that can be written; the figures include all samples");

    // Comparisons and reports.

    /// Two runs that are compared were not measured in turns.
    "not_interleaved" Warning NotInterleaved
    says("the two were not interleaved, so drift looks like a difference"),
    advises("measure both in turns: use `wiregauge ab`");

    /// Curves lack samples that were only counted.
    "curve_incomplete" Note CurveIncomplete { of: String, left_out: u64, shown: u64 }
    size *left_out as f64 / *shown as f64,
    says("{of}: the curve shows {shown} samples; {left_out} are only in the histogram"),
    advises("read quantiles from the table, which includes all samples");

    /// The record and its samples have different numbers of samples.
    "sample_count_differs" Severe SampleCountDiffers { of: String, figures: u64, samples: u64 }
    size figures.abs_diff(*samples) as f64,
    says("{of}: the figures cover {figures} samples, the curves {samples}"),
    advises("samples.parquet and record.json are from different runs: do not use them");

    /// The record and its samples have different maxima.
    "maximum_differs" Severe MaximumDiffers { of: String, figures_ns: f64, sample_ns: f64 }
    size (figures_ns - sample_ns).abs(),
    says("{of}: the largest sample is {sample_ns} ns, the figures say {figures_ns} ns"),
    advises("samples.parquet and record.json are from different runs: do not use them");
}
