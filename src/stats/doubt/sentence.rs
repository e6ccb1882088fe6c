//! The sentence of each doubt, its values in it.

use super::Doubt;
use std::fmt;

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Drifts(_)
            | Doubt::WarmupShort(_)
            | Doubt::TooFewSamples { .. }
            | Doubt::RoundsDisagree { .. }
            | Doubt::Correlated { .. } => self.of_samples(f),
            Doubt::GeneratorLate { .. }
            | Doubt::GeneratorBound { .. }
            | Doubt::HeldUp { .. }
            | Doubt::HistogramOnly { .. }
            | Doubt::Loss { .. }
            | Doubt::CorruptPayload { .. }
            | Doubt::Incomplete { .. }
            | Doubt::NotInterleaved => self.of_messages(f),
            Doubt::CutShort { .. }
            | Doubt::Foreign { .. }
            | Doubt::FileBeside
            | Doubt::FileShort { .. } => self.of_what_is_kept(f),
            Doubt::FewerCpus { .. } | Doubt::ThreadsApart { .. } => self.of_threads(f),
            Doubt::ClocksUnknown { .. }
            | Doubt::ClocksDisagree { .. }
            | Doubt::UntrueClock
            | Doubt::BeganLate { .. }
            | Doubt::ClockSet { .. } => self.of_clocks(f),
            _ => self.of_machine(f),
        }
    }
}

impl Doubt {
    /// Sentences about what of the messages is kept, and where.
    fn of_what_is_kept(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::CutShort { messages } => write!(
                f,
                "its rounds ended after {messages} messages, before their time was over: so many \
                 are kept one by one; write --count, or a shorter --time"
            ),
            Doubt::Foreign { messages } => write!(
                f,
                "{messages} messages came with a number that was never sent, and are in no figure: \
                 something on the way gives numbers of its own (of a node of VILLASnode, set \
                 original_sequence_no)"
            ),
            Doubt::FileBeside => write!(
                f,
                "no CPU was free for the file, which was written on the receiver's: what came \
                 meanwhile waited in the transport, or was lost where its queue was too short"
            ),
            Doubt::FileShort { left_out, reason: None } => write!(
                f,
                "{left_out} samples that arrived are not in the file, which was slower than the \
                 stream; the figures have them"
            ),
            Doubt::FileShort { left_out, reason: Some(reason) } => write!(
                f,
                "{reason}; {left_out} samples that arrived are not in the file, and the figures \
                 have them"
            ),
            _ => Ok(()),
        }
    }

    /// Sentences about the clocks of two hosts.
    fn of_clocks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::ClocksUnknown { metric, bound_ns, p50_ns } => write!(
                f,
                "{metric} is not told: its median would be {}, and the clocks of the two hosts are \
                 known within {} only; latency gives half_rtt",
                Time(*p50_ns),
                Time(*bound_ns)
            ),
            Doubt::ClocksDisagree { by, beyond_ns } => write!(
                f,
                "{by} contradicts the offset of the two hosts' clocks by {} more than both may be \
                 wrong by: one-way times of this run are not to be trusted",
                Time(*beyond_ns)
            ),
            Doubt::UntrueClock => write!(
                f,
                "the other host's clock was made wrong on purpose (--untrue-clock), to see whether \
                 that is found"
            ),
            Doubt::ClockSet { times } => write!(
                f,
                "the clock of one of the hosts was set, or changed its rate, {times} times while \
                 rounds ran: one-way times around it have a wide bound"
            ),
            Doubt::BeganLate { end, round, late_ns, bound_ns, allowed_ns } => write!(
                f,
                "in round {round} {end} began {} after the instant that all ends had agreed on \
                 (its clock is known within {}, and {} are allowed): the others had the network \
                 without it",
                Time(*late_ns),
                Time(*bound_ns),
                Time(*allowed_ns)
            ),
            _ => Ok(()),
        }
    }

    /// Sentences about several threads of one end.
    fn of_threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::FewerCpus { threads, cpus } => write!(
                f,
                "{threads} threads of an end take turns on {cpus} CPU{}: a message waits until its \
                 thread has its turn, and a rate is not that of {threads} CPUs",
                if *cpus == 1 { "" } else { "s" }
            ),
            Doubt::ThreadsApart { rounds } => write!(
                f,
                "in {rounds} rounds one thread was over before another had ended its warm-up: they \
                 have no rate of all threads; give --time instead of --count"
            ),
            _ => Ok(()),
        }
    }

    /// Sentences about the machine and the processes.
    fn of_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Unpinned { role } => write!(
                f,
                "the {role} was not bound to a CPU: it may have moved, which lengthens the tail"
            ),
            Doubt::OneCpu { cpu } => write!(
                f,
                "client and server share CPU {cpu}: every message includes switches between them"
            ),
            Doubt::Governor { cpu, governor } => write!(
                f,
                "CPU {cpu} has the governor '{governor}', not 'performance': its frequency may \
                 have changed during the run"
            ),
            Doubt::SmtSiblings { client, server } => write!(
                f,
                "CPUs {client} and {server} are threads of one core: each slows the other, and \
                 messages between them take a path that two cores do not have"
            ),
            Doubt::TscNotInvariant { source } => write!(
                f,
                "the CPU's counter does not run at one rate: {source} was read instead, which \
                 costs more and resolves less"
            ),
            Doubt::InvoluntarySwitches { role, count } => write!(
                f,
                "the kernel took the CPU from the {role} {count} times while it measured: the \
                 tail holds those pauses"
            ),
            Doubt::MemoryNotLocked { role, reason } => write!(
                f,
                "the sample memory of the {role} could not be locked ({reason}): a page fault may \
                 have fallen into a sample; raise the limit with ulimit -l unlimited"
            ),
            Doubt::PageFaults { role, count } => {
                write!(
                    f,
                    "the {role} had {count} page faults while it measured: the tail holds them"
                )
            }
            Doubt::NoisyCore { cpu, share, longest_ns } => write!(
                f,
                "CPU {cpu} lost {} of its time to something else, at most {} at once: quantiles \
                 beyond that share are the machine's and not the transport's",
                Percent(*share),
                Time(*longest_ns)
            ),
            Doubt::VirtualMachine { hypervisor } => write!(
                f,
                "this is a virtual machine ({hypervisor}): the host may take CPUs away unseen, \
                 and its devices are not the hardware's"
            ),
            Doubt::NotOnTheWire { interface } => write!(
                f,
                "both ends are on this host: the kernel delivers between addresses of one host in \
                 memory, and no message touched the wire of {interface}"
            ),
            Doubt::TimerInterrupted { cpu, per_second } => write!(
                f,
                "the timer interrupts CPU {cpu} {per_second:.0} times a second: some samples hold \
                 an interrupt; nohz_full= keeps it away"
            ),
            _ => Ok(()),
        }
    }

    /// Sentences about what the samples say.
    fn of_samples(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::TooFewSamples { p, count, needed } => write!(
                f,
                "{count} samples are too few for {}, which needs {needed}",
                quantile_name(*p)
            ),
            Doubt::Drifts(d) => write!(
                f,
                "durations {} by {} within round {} (trend z = {:.1}; {} of the rounds drift): \
                 the figures mix different states",
                if d.change > 0.0 { "grow" } else { "shrink" },
                Percent(d.change.abs()),
                d.round,
                d.z,
                d.rounds_drifting
            ),
            Doubt::WarmupShort(w) => write!(
                f,
                "the first part of {} rounds is {} slower than the rest: the warm-up was too \
                 short; lengthen it by {} messages",
                w.rounds_slow,
                Percent(w.excess),
                w.window
            ),
            Doubt::RoundsDisagree { p: Some(p), ratio } => write!(
                f,
                "rounds disagree: their {} scatters {ratio:.1} times as far as chance within \
                 rounds explains; something differs from process to process",
                quantile_name(*p)
            ),
            Doubt::RoundsDisagree { p: None, ratio } => write!(
                f,
                "rounds disagree: the rate is known within {} only; something differs from \
                 process to process",
                Percent(*ratio)
            ),
            Doubt::Correlated { p, count, effective_n } => write!(
                f,
                "{count} samples are worth {effective_n:.0} independent ones at {}: slow messages \
                 come in spells, and the intervals are as wide as that makes them",
                quantile_name(*p)
            ),
            _ => Ok(()),
        }
    }

    /// Sentences about what became of messages and rounds.
    fn of_messages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::GeneratorLate { share, allowed_ns, worst_ns } => write!(
                f,
                "{} of the messages were posted more than {} after their intended time, at worst \
                 {}: response times hold that lateness",
                Percent(*share),
                Time(*allowed_ns),
                Time(*worst_ns)
            ),
            Doubt::GeneratorBound { offered, achieved } => write!(
                f,
                "generator-bound: {achieved:.0} of {offered:.0} messages/s offered were posted, so \
                 the load was the generator's limit and not the transport's"
            ),
            Doubt::HeldUp { times, sent } => write!(
                f,
                "of {sent} requests some that were due had no buffer or found too many on the way \
                 ({times} looks): they waited in the schedule, which their response has, and the \
                 arrivals at the server were not those of the schedule"
            ),
            Doubt::HistogramOnly { count, of } => write!(
                f,
                "{count} of {of} samples stand in the histogram alone (relative error 0.05 %): \
                 their order in time is not known"
            ),
            Doubt::Loss { lost, sent } => write!(
                f,
                "{lost} of {sent} messages were lost ({}): they count as infinitely late",
                Percent(*lost as f64 / (*sent).max(1) as f64)
            ),
            Doubt::CorruptPayload { count } => {
                write!(f, "{count} messages came with a payload that was not the one sent")
            }
            Doubt::Incomplete { done, planned } => {
                write!(f, "incomplete: {done} of {planned} rounds were measured")
            }
            Doubt::NotInterleaved => write!(
                f,
                "the two were not measured in turns: what changed on the machine between them \
                 looks like a difference; compare them in one run"
            ),
            _ => Ok(()),
        }
    }
}

/// `p50`, `p99.9`: the usual name of a quantile.
pub fn quantile_name(p: f64) -> String {
    // Six digits: 0.9999 * 100 is 99.99000000000001.
    format!("p{}", (p * 1e8).round() / 1e6)
}

/// A share as a person reads it.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let digits = if percent >= 10.0 {
            0
        } else if percent >= 0.1 {
            1
        } else {
            4
        };
        write!(f, "{percent:.digits$} %")
    }
}

/// A time in ns as a person reads it: three digits or more.
struct Time(f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scales = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        let (scale, unit) =
            scales.into_iter().find(|(s, _)| self.0.abs() >= *s).unwrap_or((1.0, "ns"));
        let x = self.0 / scale;
        let digits = if x.abs() >= 100.0 {
            0
        } else if x.abs() >= 10.0 {
            1
        } else {
            2
        };
        write!(f, "{x:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::stationarity::{Drift, ShortWarmup};

    #[test]
    fn sentences_name_their_values() {
        let loss = Doubt::Loss { lost: 3, sent: 1000 };
        assert_eq!(
            loss.to_string(),
            "3 of 1000 messages were lost (0.3 %): they count as infinitely late"
        );
        let noisy = Doubt::NoisyCore { cpu: 3, share: 0.021, longest_ns: 4_210_000.0 };
        assert!(noisy.to_string().starts_with("CPU 3 lost 2.1 % of its time"), "{noisy}");
        assert!(noisy.to_string().contains("4.21 ms"), "{noisy}");
        let few = Doubt::TooFewSamples { p: 0.9999, count: 5, needed: 100_000 };
        assert_eq!(few.to_string(), "5 samples are too few for p99.99, which needs 100000");
        let drift = Drift { round: 2, z: -4.5, change: -0.12, rounds_drifting: 1 };
        assert!(Doubt::Drifts(drift).to_string().starts_with("durations shrink by 12 % "));
    }

    #[test]
    fn every_doubt_has_a_sentence_and_a_kind_of_its_own() {
        let s = String::new;
        let window = ShortWarmup { excess: 0.1, rounds_slow: 3, window: 100 };
        let drift = Drift { round: 0, z: 4.0, change: 0.1, rounds_drifting: 1 };
        let all = [
            Doubt::Unpinned { role: s() },
            Doubt::OneCpu { cpu: 0 },
            Doubt::FewerCpus { threads: 2, cpus: 1 },
            Doubt::ThreadsApart { rounds: 1 },
            Doubt::Governor { cpu: 0, governor: s() },
            Doubt::SmtSiblings { client: 0, server: 1 },
            Doubt::TscNotInvariant { source: s() },
            Doubt::TooFewSamples { p: 0.5, count: 1, needed: 20 },
            Doubt::Drifts(drift),
            Doubt::WarmupShort(window),
            Doubt::GeneratorLate { share: 0.1, allowed_ns: 1.0, worst_ns: 2.0 },
            Doubt::GeneratorBound { offered: 2.0, achieved: 1.0 },
            Doubt::HeldUp { times: 2, sent: 1 },
            Doubt::CutShort { messages: 1 },
            Doubt::Foreign { messages: 1 },
            Doubt::FileBeside,
            Doubt::FileShort { left_out: 1, reason: None },
            Doubt::RoundsDisagree { p: None, ratio: 0.5 },
            Doubt::Correlated { p: 0.5, count: 100, effective_n: 2.0 },
            Doubt::InvoluntarySwitches { role: s(), count: 1 },
            Doubt::MemoryNotLocked { role: s(), reason: s() },
            Doubt::PageFaults { role: s(), count: 1 },
            Doubt::HistogramOnly { count: 1, of: 2 },
            Doubt::Loss { lost: 1, sent: 2 },
            Doubt::CorruptPayload { count: 1 },
            Doubt::NoisyCore { cpu: 0, share: 0.1, longest_ns: 1.0 },
            Doubt::VirtualMachine { hypervisor: s() },
            Doubt::TimerInterrupted { cpu: 0, per_second: 1000.0 },
            Doubt::Incomplete { done: 1, planned: 2 },
            Doubt::ClocksUnknown { metric: s(), bound_ns: 1.0, p50_ns: 0.5 },
            Doubt::ClocksDisagree { by: s(), beyond_ns: 1.0 },
            Doubt::ClockSet { times: 1 },
            Doubt::BeganLate { end: s(), round: 1, late_ns: 1.0, bound_ns: 1.0, allowed_ns: 1.0 },
            Doubt::UntrueClock,
            Doubt::NotOnTheWire { interface: s() },
            Doubt::NotInterleaved,
        ];
        let kinds: std::collections::BTreeSet<_> = all.iter().map(Doubt::kind).collect();
        assert_eq!(kinds.len(), all.len());
        for doubt in all {
            assert!(doubt.to_string().len() > 20, "{}", doubt.kind());
        }
    }
}
