//! Stamps of a program with known answers.

use super::super::path::Way;
use super::super::split::RoundSplit;
use super::super::stamps::Stamps;
use super::super::tests::{clock, split_by, way_over};
use super::*;
use wiregauge_plan::Followed;
use wiregauge_sample::Flags;
use wiregauge_transport::KernelPath;

const CLIENT: u32 = 100;
const SERVER: u32 = 200;
/// A line of `room` that is never full.
const ROOM: usize = 1 << 10;

fn way(followed: Followed) -> Way {
    way_over(KernelPath::Bypassed, followed)
}

/// The memory of a thread: its number, then posts (before, after) and arrivals.
fn memory(tid: u32, rows: &[(u32, [u64; 3])]) -> Vec<Row> {
    let row = |(number, [submit, complete, receive]): &(u32, [u64; 3])| Row {
        submit: Ticks(*submit),
        complete: Ticks(*complete),
        receive: Ticks(*receive),
        order: *number,
        flags: Flags(u32::from(tid == SERVER)),
        ..Row::default()
    };
    let first = Row { order: tid, ..Row::default() };
    [first].into_iter().chain(rows.iter().map(row)).collect()
}

fn add_to(trace: &mut Trace, role: Role, thread: u32, rows: &[Row], room: usize) {
    let time = Timebase::nanoseconds(Ticks(0));
    add(trace, (role, thread), (rows, room), &time, &clock());
}

fn sample(number: u64, from: f64, to: f64) -> Sample {
    Sample::new(number, 64, [f64::NAN, from, f64::NAN, to, f64::NAN], Flags::default())
}

fn kernel(time_ns: u64, kind: Kind, tid: u32, flow: u32) -> Stamp {
    let (number, length, cpu, in_kernel_thread) = (0, 0, 1, false);
    Stamp { time_ns, tid, flow, number, length, cpu, kind, in_kernel_thread }
}

fn split(samples: &[Sample], trace: &Trace, followed: Followed) -> RoundSplit {
    split_by(samples, &Stamps::new(trace, &clock()), &way(followed))
}

/// Names and times of the stages of a message.
fn stages(found: &RoundSplit, message: usize) -> Vec<(&str, f64)> {
    let names = found.stages.iter().map(|stage| stage.name.as_str());
    names.zip(found.messages[message].stages_ns.iter().copied()).collect()
}

#[test]
fn a_round_trip_has_the_stages_between_the_stamps_of_both_programs() {
    let mut trace = Trace::default();
    // The server's call returns after the client has the answer, that of the first message after
    // the second was sent.
    let client = [(0, [1010, 1040, 0]), (0, [0, 0, 1400]), (1, [1430, 1450, 0]), (1, [0, 0, 1800])];
    let server = [(0, [0, 0, 1200]), (0, [1230, 1435, 0]), (1, [0, 0, 1600]), (1, [1640, 1700, 0])];
    add_to(&mut trace, Role::Client, 0, &memory(CLIENT, &client), ROOM);
    add_to(&mut trace, Role::Server, 0, &memory(SERVER, &server), ROOM);
    let samples = [sample(0, 1000.0, 1405.0), sample(1, 1420.0, 1810.0)];
    let found = split(&samples, &trace, Followed::Alone);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (2, 0, 0));
    let first = [
        ("post", 40.0),
        ("way and poll", 160.0),
        ("turn-round", 30.0),
        ("post", 170.0),
        ("way and poll", 0.0),
        ("to the application", 5.0),
    ];
    assert_eq!(stages(&found, 0), first);
    let second = [30.0, 150.0, 40.0, 60.0, 100.0, 10.0];
    assert_eq!(found.messages[1].stages_ns, second);
    assert_eq!(found.messages[1].threads, [CLIENT, SERVER]);
    assert_eq!(found.messages[1].cpus, [0, 1, 1, 1, 0, 0]);
}

#[test]
fn a_thread_that_slept_was_woken_within_the_call_that_posts() {
    let mut trace = Trace::default();
    let client = [(0, [1010, 1300, 0]), (0, [0, 0, 2000])];
    let server = [(0, [0, 0, 1500]), (0, [1520, 1560, 0])];
    add_to(&mut trace, Role::Client, 0, &memory(CLIENT, &client), ROOM);
    add_to(&mut trace, Role::Server, 0, &memory(SERVER, &server), ROOM);
    // It was woken for something else before.
    for (at, kind, tid) in [
        (1020, Kind::Waking, CLIENT),
        (1030, Kind::Switch, 0),
        (1100, Kind::Waking, CLIENT),
        (1400, Kind::Switch, 0),
    ] {
        trace.stamps.push(kernel(at, kind, tid, SERVER));
    }
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    let found = split(&[sample(0, 1000.0, 2005.0)], &trace, Followed::Alone);
    let expected = [
        ("post", 100.0),
        ("way, to the wake-up call", 0.0),
        ("wake-up", 300.0),
        ("running and poll", 100.0),
        ("turn-round", 20.0),
        ("post", 40.0),
        ("way and poll", 440.0),
        ("to the application", 5.0),
    ];
    assert_eq!(stages(&found, 0), expected);
}

#[test]
fn messages_of_several_threads_are_told_apart_by_thread_and_number() {
    let mut trace = Trace::default();
    for thread in 0..3 {
        let late = u64::from(thread) * 7;
        let client = [(0, [1010, 1020, 0]), (1, [1030, 1040, 0])];
        let server = [(0, [0, 0, 1200 + late]), (1, [0, 0, 1300 + late])];
        add_to(&mut trace, Role::Client, thread, &memory(CLIENT + thread, &client), ROOM);
        add_to(&mut trace, Role::Server, thread, &memory(SERVER + thread, &server), ROOM);
    }
    let each = (0..3).flat_map(|thread| {
        [sample(0, 1000.0, 1250.0), sample(1, 1025.0, 1350.0)].map(|one| one.of_thread(thread))
    });
    let samples: Vec<Sample> = each.collect();
    let found = split(&samples, &trace, Followed::OneWay);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (6, 0, 0));
    assert_eq!(found.messages[4].stages_ns, [20.0, 194.0, 36.0]);
    assert_eq!(found.messages[5].stages_ns, [15.0, 274.0, 36.0]);
    assert_eq!(found.messages[5].threads, [CLIENT + 2, SERVER + 2]);
}

#[test]
fn messages_after_the_memory_was_full_are_counted_apart() {
    let mut trace = Trace::default();
    let client = [(0, [1010, 1020, 0]), (1, [2010, 2020, 0])];
    let server = memory(SERVER, &[(0, [0, 0, 1200])]);
    add_to(&mut trace, Role::Client, 0, &memory(CLIENT, &client), ROOM);
    add_to(&mut trace, Role::Server, 0, &server, server.len());
    assert_eq!(trace.full_ns, Some(1200));
    let samples = [sample(0, 1000.0, 1200.0), sample(1, 2000.0, 2250.0)];
    let found = split(&samples, &trace, Followed::OneWay);
    assert_eq!((found.messages.len(), found.incomplete, found.beyond), (1, 0, 1));
}

#[test]
fn a_thread_of_a_pid_namespace_is_known_by_a_switch() {
    let mut trace = Trace::default();
    // It leaves a CPU: 12 there, SERVER here.
    let leaves = |own: u32| Stamp { length: 1 | own << 2, ..kernel(500, Kind::Switch, SERVER, 0) };
    trace.stamps.push(leaves(12));
    let add = |trace: &mut Trace, own: u32| {
        let time = Timebase::nanoseconds(Ticks(0));
        add(trace, (Role::Server, 0), (&memory(own, &[]), 1), &time, &clock())
    };
    assert_eq!([12, 13].map(|own| add(&mut trace, own)), [Some(SERVER), Some(13)]);
    assert_eq!((trace.stamps.len(), trace.full_ns), (1, None));
}

#[test]
fn what_the_adapter_read_last_ends_a_stage_before_the_message_arrives() {
    let mut trace = Trace::default();
    let client = [(0, [1010, 1100, 0]), (1, [2010, 2020, 0])];
    let server = [(0, [0, 0, 1500]), (1, [0, 0, 2400])];
    add_to(&mut trace, Role::Client, 0, &memory(CLIENT, &client), ROOM);
    add_to(&mut trace, Role::Server, 0, &memory(SERVER, &server), ROOM);
    let mut samples = [sample(0, 1000.0, 1510.0), sample(1, 2000.0, 2405.0)];
    // Of the second it stood in the message before the post.
    (samples[0].send_ns, samples[1].send_ns) = (1250.0, 1999.0);
    add_taken(&mut trace, &samples, &clock());
    let found = split(&samples, &trace, Followed::OneWay);
    let first = [
        ("post", 100.0),
        ("adapter reads it", 150.0),
        ("way and poll", 250.0),
        ("to the application", 10.0),
    ];
    assert_eq!(stages(&found, 0), first);
    assert_eq!(found.messages[1].stages_ns, [20.0, 0.0, 380.0, 5.0]);
}
