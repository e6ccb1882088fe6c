//! What every warning has.
#![allow(clippy::unwrap_used)]

use super::RecordedWarning;
use super::kinds::{ALSO_BY_QUOTA, KINDS, Warning};
use std::collections::BTreeSet;

const CPUS: &str = "CPUs 10-11";
const HOST: &str = "the server on user@node07";

/// One of each kind, with numbers as long as they get.
fn of_machine() -> Vec<Warning> {
    use Warning::*;
    let (role, s) = ("client", str::to_string);
    let reason = || s("cannot lock 4096 B");
    vec![
        Unpinned { role },
        OneCpu { cpu: 127 },
        FewerCpus { threads: 64, cpus: 32 },
        ThreadsNotConcurrent { rounds: 30 },
        NoRate { messages: 16_000_000, stride: 256 },
        SmtSiblings { cpus: s(CPUS) },
        NumaNodes { one: 100, other: 127 },
        Governor { cpus: s(CPUS), governor: s("conservative") },
        DeepIdle { cpus: s(CPUS), state: s("C10"), exit_us: 1033, limit_us: 10 },
        NotIsolated { cpus: s(CPUS) },
        NoisyCore { cpu: 127, share: 0.0214, longest_ns: 4_210_000.0 },
        OtherLoad { load: 100.25, cpus: 256 },
        Throttled { ends: "the server", times: 1_000_000, ns: 123.4e9 },
        SharedCpus { cpus: s("10-11") },
        Suspended { round: 1000, length_ns: 123_456_789_012.0 },
        VirtualMachine { hypervisor: s("Microsoft Hyper-V") },
        InvoluntarySwitches { role, count: 100_000 },
        MemoryNotLocked { role, reason: reason() },
        PageFaults { role, count: 1_000_000 },
        ClockSource { source: s("acpi_pm") },
        TransparentHugePages,
        Uncongested { congestor: s("congestor all-to-all"), rounds: 30, share: 0.1234 },
        CongestorOnCpus { congestor: s("congestor all-to-all"), cpus: 64 },
        BelowClockBound { metric: "half_rtt", bound_ns: 1.234e6, p50_ns: 12_345.0 },
        ClocksDisagree { by: "the exchange of times", beyond_ns: 123_000.0 },
        BelowOverhead { metric: "half_rtt", p50_ns: 12.34, error_ns: 123.4 },
        ClockStepped { times: 12 },
        WaysDiffer { there: 123_456_789_012.0, back: 123_456_789_012.0 },
        WallClockSet { by_s: -86_400.0 * 365.0 },
        InjectedClockError { is_remote: false },
        CoarseClock { round: 12, bound_ns: 1.234e6, within_ns: 123_400.0 },
        LateStart { end: s(HOST), round: 12, late_ns: 5e6, bound_ns: 5e4, allowed_ns: 1e5 },
        NotOnTheWire { interface: s("enp129s0f0np0") },
        LateEntries { late: 999_999, of: 1_000_000, allowed_ns: 1e6 },
        AnotherDevice { role, interface: s("enp129s0f0np0"), seen: s("enp129s0f1np1") },
        AdapterLoopback { port: s("mlx5_bond_0/1") },
        PathMtu {
            from: s("node-1234"),
            to: s("node-1235"),
            interface: s("enp129s0f0np0"),
            mtu_bytes: 9000,
            passes_bytes: 1500,
        },
        NotGranted {
            role,
            option: "receive-buffer",
            asked: s("1048575 KiB"),
            granted: s("1048575 KiB"),
            advice: "raise net.core.rmem_max, run as root, or ask for less",
        },
        SegmentsResent { role, segments: 1_000_000_000, messages: 1_000_000_000 },
        UnusedConnections { used: 1_000_000, connections: 1_000_000 },
        PacketsResent { resent: 1_000_000_000, discarded: 1_000_000_000 },
        ReceiverNotReady { count: 1_000_000_000, counter: "rnr_nak_retry_err" },
        HostStandsOut { host: "node-1234".into(), figure: "response p99".into(), ratio: 1234.5 },
        PortDrops { count: 1_000_000, counter: "port_xmit_constraint_errors" },
        NotInterleaved,
    ]
}

fn of_samples() -> Vec<Warning> {
    use Warning::*;
    let (metric, many, s) = ("half_rtt", 1_000_000_000, str::to_string);
    let of = || "latency tcp busy 64 B half_rtt".to_string();
    vec![
        Incomplete { done: 20, planned: 30, why: s("interrupted by the user") },
        CorruptPayload { count: many },
        NeverStamped { count: many - 1, of: many },
        FewStamped { count: many - 1, of: many },
        GeneratorBound { offered: 1e7, achieved: 9_123_456.0 },
        TooFewSamples { metric, p: 0.9999, count: 99_999, needed: 100_000 },
        FewRounds { rounds: 5, missed: 0.168 },
        RoundsInGroups { what: s("p99.99 of half_rtt"), high: 500, rounds: 1000, share: 123.4 },
        RoundsDisagree { metric, p: 0.9999, ratio: 1234.56 },
        RateVaries { metric: "payload_rate", share: 0.5 },
        NotStationary { metric: "lateness", round: 12, change: -0.12, z: -4.5, rounds: 30 },
        WarmupShort { metric, excess: 0.123, rounds: 30, window: 50_000 },
        Autocorrelated { metric, p: 0.9999, count: many, effective_n: 95.2 },
        HistogramOnly { count: many, of: 10 * many },
        FewerRounds { rounds: 10, planned: 100, limit_s: 100.0 },
        Loss { lost: 700_000, sent: many, in_figures: true },
        Unfinished { unfinished: 70_000, sent: many, in_figures: true },
        Unsent { unsent: many, sent: many },
        Stall {
            length_ns: 1.2345e9,
            at_s: 100.8,
            round: 29,
            why: "the server waited 1234.5 ms for its CPU in that round".into(),
        },
        UnknownSequence { messages: many },
        GeneratorLate { share: 0.1234, allowed_ns: 1000.0, worst_ns: 4.2e6 },
        GeneratorBlocked { times: many / 100, sent: many },
        CutShort { messages: many },
        FileOnReceiverCpu,
        FileIncomplete { left_out: many },
        FileFailed { left_out: many, reason: "No space left on device".into() },
        CurveIncomplete { of: of(), left_out: many / 1000, shown: 1_000_000 },
        SampleCountDiffers { of: of(), figures: many, samples: many },
        MaximumDiffers { of: of(), figures_ns: 12_345_678.9, sample_ns: 1234.5 },
    ]
}

#[test]
fn every_kind_has_a_name_of_its_own_a_short_sentence_and_advice() {
    let all: Vec<Warning> = of_machine().into_iter().chain(of_samples()).collect();
    let all: Vec<RecordedWarning> = all.iter().map(RecordedWarning::from).collect();
    let kinds: BTreeSet<_> = all.iter().map(|warning| warning.kind.as_str()).collect();
    assert_eq!(kinds, KINDS.iter().map(|(kind, _)| *kind).collect());
    assert_eq!(KINDS.len(), all.len());
    for warning in all {
        let RecordedWarning { kind, severity, sentence, advice, .. } = warning;
        assert!((20..=100).contains(&sentence.chars().count()), "{sentence}");
        assert!((10..=120).contains(&advice.len()), "{advice}");
        assert!(KINDS.contains(&(&kind, severity)));
    }
}

#[test]
fn sentences_name_their_values() {
    let said = |warning: Warning| RecordedWarning::from(&warning).sentence;
    assert_eq!(
        said(Warning::Loss { lost: 3, sent: 1000, in_figures: true }),
        "3 of 1000 messages were lost (0.3 %); they count as infinitely late"
    );
    // A rate is that of what arrived.
    assert_eq!(
        said(Warning::Loss { lost: 3, sent: 1000, in_figures: false }),
        "3 of 1000 messages were lost (0.3 %); no figure includes them"
    );
    assert_eq!(
        said(Warning::NoisyCore { cpu: 3, share: 0.021, longest_ns: 4_210_000.0 }),
        "CPU 3 lost 2.1 % of its time to other work (longest gap 4.21 ms)"
    );
    let few = Warning::TooFewSamples { metric: "rtt", p: 0.9999, count: 5, needed: 100_000 };
    assert_eq!(said(few), "5 samples are too few for p99.99 of rtt, which needs 100000");
    let change =
        |change| Warning::NotStationary { metric: "rtt", round: 2, change, z: -4.5, rounds: 1 };
    assert_eq!(
        said(change(-0.12)),
        "not stationary: rtt fell 12 % during round 2 (z = -4.5; so in 1 round)"
    );
    assert!(said(change(0.12)).contains("rtt rose 12 %"));
}

#[test]
fn an_injected_error_is_said_of_the_clock_that_has_it() {
    for (spec, of) in [("offset(1s)", "the remote clock"), ("scale(100ppm)", "this host's clock")] {
        let error: crate::units::InjectedClockError = spec.parse().unwrap();
        let warning = Warning::InjectedClockError { is_remote: error.is_remote() };
        let recorded = RecordedWarning::from(&warning);
        assert!(recorded.sentence.contains(of) && recorded.subject.is_none(), "{recorded:?}");
    }
}

fn is_against_others(warning: &RecordedWarning) -> bool {
    warning.advice.contains("stop other processes")
}

/// No warning of a run that a quota stops sends the reader after other processes.
#[test]
fn under_a_quota_no_advice_is_against_other_processes() {
    let all: Vec<Warning> = of_machine().into_iter().chain(of_samples()).collect();
    let all: Vec<RecordedWarning> = all.iter().map(RecordedWarning::from).collect();
    let kinds: Vec<&str> =
        all.iter().filter(|one| is_against_others(one)).map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds.iter().collect::<BTreeSet<_>>(), ALSO_BY_QUOTA.iter().collect());
    for one in all {
        let after = one.clone().under_quota();
        assert!(!is_against_others(&after) && after.sentence.chars().count() <= 100, "{after:?}");
        assert_eq!(after == one, !is_against_others(&one), "{after:?}");
    }
}
