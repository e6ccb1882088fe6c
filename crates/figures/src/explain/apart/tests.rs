//! Round trips between two kernels whose clocks differ by a known offset.

use super::*;
use crate::explain::path::{Way, begin, steps};
use crate::explain::split::{RoundSplit, split_rounds};
use crate::explain::stamps::Stamps;
use crate::explain::{Cause, causes};
use wiregauge_clock::offset::Offset;
use wiregauge_clock::{TickSpan, Ticks};
use wiregauge_plan::Followed;
use wiregauge_sample::{Flags, Sample};
use wiregauge_transport::KernelPath;

const CLIENT: u32 = 100;
const SERVER: u32 = 200;
const THERE: u32 = 5000 << 16 | 6000;
const BACK: u32 = 6000 << 16 | 5000;
/// CLOCK_MONOTONIC of the server's host less that of its samples, and these less the client's.
const BOOT_NS: u64 = 7_000_000;
const OFFSET_NS: u64 = 50_000;

fn stamp(time_ns: u64, kind: Kind, tid: u32, flow: u32) -> Stamp {
    Stamp { time_ns, tid, flow, number: 0, length: 64, cpu: 1, kind, in_kernel_thread: false }
}

/// What a sender stamps, each step 100 ns after the one before, and a receiver, each 10 ns.
fn sends(at: u64, tid: u32, flow: u32) -> Vec<Stamp> {
    let kinds = [Kind::Send, Kind::Queue, Kind::Xmit];
    (1..).zip(kinds).map(|(step, kind)| stamp(at + 100 * step, kind, tid, flow)).collect()
}

fn receives(at: u64, tid: u32, flow: u32) -> Vec<Stamp> {
    let kinds = [Kind::Gro, Kind::Receive, Kind::TcpProbe, Kind::Ready, Kind::Copied];
    (0..).zip(kinds).map(|(step, kind)| stamp(at + 10 * step, kind, tid, flow)).collect()
}

/// A round trip from an instant of the client's time on: the wire takes 700 ns there and 900 back.
fn message(at: u64, wire_ns: [u64; 2]) -> (Sample, Vec<Stamp>, Vec<Stamp>) {
    let mut own = sends(at, CLIENT, THERE);
    let comes = at + 300 + wire_ns[0];
    let answers = comes + 40;
    let mut other = receives(comes, SERVER, THERE);
    other.extend(sends(answers, SERVER, BACK));
    let back = answers + 300 + wire_ns[1];
    own.extend(receives(back, CLIENT, BACK));
    let none = f64::NAN;
    let end = (back + 40 + 25) as f64;
    let sample = Sample::new(0, 64, [none, at as f64, none, end, none], Flags::default());
    (sample, own, other)
}

fn report(offset_ns: u64, stamps: usize) -> TraceReport {
    let anchor =
        |at: u64| Anchor { ticks: Ticks(at), raw_ns: at + offset_ns, half_width: TickSpan(20) };
    TraceReport {
        kinds: Kind::ALL.to_vec(),
        missing: Vec::new(),
        anchors: [anchor(0), anchor(1 << 30)],
        stamps: stamps as u64,
        full_ns: None,
        names: vec![(9, "hog".into())],
        interrupts: vec![(33, "IRQ 33 (eth0)".into())],
    }
}

/// Both ends' stamps, merged by a model that errs by so much.
fn merge(own: &[Stamp], other: Option<&[Stamp]>, error_ns: f64) -> Merged {
    let time = Timebase::nanoseconds(Ticks(0));
    let stated = Offset { ns: OFFSET_NS as f64 + error_ns, bound_ns: 100.0 };
    let model = Model::stated(stated);
    let of_own = report(0, own.len());
    let of_other = report(BOOT_NS, own.len());
    let place = |one: &Stamp| Stamp { time_ns: one.time_ns + OFFSET_NS + BOOT_NS, ..*one };
    let there: Option<Vec<Stamp>> = other.map(|all| all.iter().map(place).collect());
    let there =
        there.as_ref().map(|stamps| (OfHost { report: &of_other, stamps, time: &time }, &model));
    merged(OfHost { report: &of_own, stamps: own, time: &time }, there)
}

fn split(sample: Sample, merged: &Merged, kernels: Kernels, followed: Followed) -> RoundSplit {
    let path = KernelPath::Segments;
    let is_scheduled = false;
    let way = Way { path, steps: steps(path), followed, framing: 0, is_scheduled, kernels };
    let stamps = Stamps { bound_ns: merged.bound_ns, ..Stamps::new(&merged.trace, &merged.clock) };
    let has = |kind| stamps.all.iter().any(|stamp| stamp.kind == kind);
    split_rounds(&[(&[sample], &stamps)], &way, begin(way.steps, has).unwrap()).remove(0)
}

fn stages(split: &RoundSplit) -> Vec<(&str, f64)> {
    let names = split.stages.iter().map(|stage| stage.name.as_str());
    names.zip(split.messages[0].stages_ns.iter().copied()).collect()
}

#[test]
fn the_wire_lies_between_the_stamps_of_two_kernels_by_the_model_of_their_clocks() {
    let (sample, own, other) = message(1000, [700, 900]);
    let merged = merge(&own, Some(&other), 0.0);
    assert!(
        (merged.bound_ns - 140.0).abs() < 1.0,
        "of the model and both anchors: {}",
        merged.bound_ns
    );
    let found = split(sample, &merged, Kernels::Both, Followed::Alone);
    let wires: Vec<_> = found.stages.iter().filter(|stage| stage.is_wire).collect();
    assert_eq!(wires.iter().map(|stage| stage.leg).collect::<Vec<_>>(), [0, 1]);
    let all = stages(&found);
    let of_wire: Vec<f64> = all.iter().filter(|one| one.0 == "wire").map(|one| one.1).collect();
    assert_eq!(of_wire, [700.0, 900.0]);
    assert_eq!(all.iter().map(|one| one.1).sum::<f64>(), sample.receive_ns - sample.submit_ns);
    let cpus = &found.messages[0].cpus;
    assert!(cpus.contains(&1) && cpus.contains(&(MOST_CPUS as u16 + 1)), "{cpus:?}");
    assert_eq!(found.messages[0].threads, [CLIENT, SERVER | MOST_THREADS]);
}

#[test]
fn an_error_of_the_model_moves_time_from_one_wire_to_the_other_and_changes_no_sum() {
    let (sample, own, other) = message(1000, [700, 900]);
    let found = split(sample, &merge(&own, Some(&other), 80.0), Kernels::Both, Followed::Alone);
    let wires = stages(&found).into_iter().filter(|one| one.0 == "wire").map(|one| one.1);
    assert_eq!(wires.collect::<Vec<_>>(), [620.0, 980.0]);
}

#[test]
fn a_wire_shorter_than_what_the_clocks_err_by_is_no_disorder_and_one_beyond_the_bound_is() {
    let (sample, own, other) = message(1000, [30, 900]);
    let found = split(sample, &merge(&own, Some(&other), 80.0), Kernels::Both, Followed::Alone);
    let all = stages(&found);
    assert_eq!(all.iter().find(|one| one.0 == "wire").unwrap().1, 0.0);
    assert_eq!(all.iter().map(|one| one.1).sum::<f64>(), sample.receive_ns - sample.submit_ns);
    let found = split(sample, &merge(&own, Some(&other), 300.0), Kernels::Both, Followed::Alone);
    assert_eq!((found.messages.len(), found.disordered), (0, 1));
}

#[test]
fn an_end_that_may_not_stamp_is_one_stage_with_the_wire() {
    let (sample, own, _) = message(1000, [700, 900]);
    let merged = merge(&own, None, 0.0);
    let found = split(sample, &merged, Kernels::Ours, Followed::Alone);
    let names: Vec<&str> = stages(&found).iter().map(|one| one.0).collect();
    assert_eq!(
        names,
        [
            "application call, system call",
            "TCP and IP send",
            "device queue (qdisc)",
            "wire and other end",
            "SoftIRQ and NAPI",
            "IP receive",
            "TCP receive",
            "poll and copy",
            "return, to the application"
        ],
    );
    assert_eq!(stages(&found)[3].1, 1940.0);
    // One way nothing comes back.
    let found = split(sample, &merged, Kernels::Ours, Followed::OneWay);
    let last = *stages(&found).last().unwrap();
    assert_eq!(last, ("wire and other end", 2005.0));
}

#[test]
fn threads_cpus_and_interrupts_of_the_other_host_are_not_taken_for_our_own() {
    let of = |kind, flow, number| renumbered(&Stamp { number, ..stamp(5, kind, 9, flow) });
    let switch = of(Kind::Switch, 7, 0);
    assert_eq!((switch.tid, switch.flow), (9 | MOST_THREADS, 7 | MOST_THREADS));
    assert_eq!(of(Kind::Switch, 0, 0).flow, 0, "the idle thread");
    assert_eq!(of(Kind::Queue, THERE, 3).flow, THERE);
    assert_eq!(of(Kind::IrqEntry, 0, 33).number, 33 | MOST_THREADS);
    assert_eq!(of(Kind::SoftirqEntry, 0, 3).number, 3);
    assert_eq!(of(Kind::Frequency, 2, 1_000_000).flow, MOST_CPUS + 2);
    let merged = merge(&[], Some(&[]), 0.0);
    assert_eq!(merged.trace.names[&(9 | MOST_THREADS)], "hog");
    assert_eq!(merged.trace.interrupts[&33], "IRQ 33 (eth0)");
    let there = &merged.trace.interrupts[&(33 | MOST_THREADS)];
    assert_eq!(there, "IRQ 33 (eth0) of the other host");
    assert_eq!((cpu_name(3), cpu_name(1027)), ("3".into(), "3 of the other host".into()));
}

#[test]
fn a_wire_that_takes_long_is_named_and_no_gap_of_a_cpu() {
    let (sample, own, other) = message(1000, [900_000, 900]);
    let merged = merge(&own, Some(&other), 0.0);
    let found = split(sample, &merged, Kernels::Both, Followed::Alone);
    let stamps = Stamps { bound_ns: merged.bound_ns, ..Stamps::new(&merged.trace, &merged.clock) };
    let disturbances = crate::explain::disturbance::Disturbances::new(&merged.trace, &stamps);
    let evidence = causes::Evidence {
        trace: &merged.trace,
        stamps: &stamps,
        disturbances: &disturbances,
        sees_all: true,
    };
    let medians = vec![100.0; found.stages.len()];
    let (named, _) = causes::cause(&found.messages[0], &found, &medians, &evidence);
    assert_eq!(named.cause, Cause::Wire);
}
