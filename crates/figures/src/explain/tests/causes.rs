//! Causes of slow messages, from made-up stamps.

use super::*;

/// The cause of message 50 of 100, whose server takes longer to copy.
fn cause_of(extra_ns: u64, more: impl Fn(u64) -> Vec<Stamp>) -> (Named, f64) {
    let slow =
        |number| (number == 50).then_some(([100, 200, 30, 40, 50, 60, 70, 300 + extra_ns], USUAL));
    let (samples, mut trace) = round(100, slow, Vec::new());
    // When the message was readable.
    let ready = samples[50].submit_ns as u64 + 550;
    trace.stamps.extend(more(ready));
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    let usual = USUAL.map(|ns| ns as f64);
    cause_in(&samples, &trace, &[&usual[..], &usual, &[80.0]].concat())
}

/// The cause of message 50, beside these medians of the stages.
fn cause_in(samples: &[Sample], trace: &Trace, medians: &[f64]) -> (Named, f64) {
    let clock = clock();
    let stamps = Stamps::new(trace, &clock);
    let split = splits(samples, &stamps);
    let disturbances = Disturbances::new(trace, &stamps);
    let evidence = Evidence { trace, stamps: &stamps, disturbances: &disturbances, sees_all: true };
    cause(&split.messages[50], &split, medians, &evidence)
}

fn named(cause: Cause, who: &str) -> Named {
    Named { cause, who: who.to_owned() }
}

#[test]
fn a_task_that_took_the_cpu_is_named() {
    let preempted =
        |ready| vec![leaves(ready + 50, SERVER, 0, OTHER), comes(ready + 9_950, OTHER, SERVER)];
    let (found, covered) = cause_of(10_000, preempted);
    assert_eq!(found, named(Cause::Task, "hog, on CPU 1"));
    assert!(covered > 0.9, "{covered}");
    // It ran for a quarter of the time alone.
    let short =
        |ready| vec![leaves(ready + 50, SERVER, 0, OTHER), comes(ready + 1_050, OTHER, SERVER)];
    assert_eq!(cause_of(4_000, short).0.cause, Cause::Unexplained);
}

#[test]
fn a_stopped_process_an_interrupt_and_a_gap_are_told_apart() {
    let stopped =
        |ready| vec![leaves(ready + 50, SERVER, 0x104, 0), comes(ready + 250_000, 0, SERVER)];
    assert_eq!(cause_of(250_000, stopped).0.cause, Cause::Stopped);
    let interrupt = |ready| {
        let entry = stamp(ready + 50, Kind::IrqEntry, SERVER, 0);
        let entry = Stamp { number: 33, ..entry };
        vec![entry, Stamp { kind: Kind::IrqExit, time_ns: ready + 8_050, ..entry }]
    };
    assert_eq!(cause_of(10_000, interrupt).0, named(Cause::Interrupt, "IRQ 33 (eth0)"));
    // The same on a CPU that had nothing to do with it.
    let elsewhere = |ready| -> Vec<Stamp> {
        interrupt(ready).into_iter().map(|stamp| Stamp { cpu: 7, ..stamp }).collect()
    };
    assert_eq!(cause_of(10_000, elsewhere).0, named(Cause::Gap, "CPU 1"));
    assert_eq!(cause_of(1_000, |_| Vec::new()).0.cause, Cause::Unexplained);
}

#[test]
fn a_gap_in_which_the_tick_of_another_cpu_was_held_up_is_one_of_all() {
    // The client's CPU ticks every 90 us; one tick was due in the gap of the server's.
    let ticks = |ready: u64, held_up: u64| {
        let due = ready + 5_000;
        let at = (1..7).flat_map(move |number| [due - number * 90_000, due + number * 90_000]);
        let at = at.chain([if held_up > 0 { held_up } else { due }]);
        at.map(|at| stamp(at, Kind::TimerEntry, CLIENT, 0)).collect::<Vec<_>>()
    };
    let both = |ready| ticks(ready, ready + 60_400);
    assert_eq!(cause_of(60_000, both).0, named(Cause::GapOfAll, "CPUs 0, 1"));
    let one = |ready| ticks(ready, 0);
    assert_eq!(cause_of(60_000, one).0, named(Cause::Gap, "CPU 1"));
}

#[test]
fn the_networks_work_for_others_and_a_lower_frequency_are_told_apart() {
    let flood = |ready| {
        let entry = Stamp { number: 3, ..stamp(ready + 50, Kind::SoftirqEntry, SERVER, 0) };
        vec![entry, Stamp { kind: Kind::SoftirqExit, time_ns: ready + 9_050, ..entry }]
    };
    assert_eq!(cause_of(10_000, flood).0, named(Cause::Softirq, "NET_RX on CPU 1"));
    let changes = |at: u64, khz: u32| {
        let change = stamp(at, Kind::Frequency, OTHER, 1);
        vec![Stamp { number: 3_000_000, time_ns: 10, ..change }, Stamp { number: khz, ..change }]
    };
    // At a quarter of the frequency three quarters of the time are lost.
    let (found, covered) = cause_of(4_000, |ready| changes(ready - 100, 750_000));
    assert_eq!(found, named(Cause::Frequency, "CPU 1 at 750 of 3000 MHz"));
    assert!((0.7..0.9).contains(&covered), "{covered}");
    // What is a tenth slower does not explain a message that takes six times as long.
    let (found, _) = cause_of(4_000, |ready| changes(ready - 100, 2_700_000));
    assert_eq!(found.cause, Cause::Unexplained);
    // It was slower only afterwards.
    let (found, _) = cause_of(4_000, |ready| changes(ready + 4_300, 750_000));
    assert_eq!(found.cause, Cause::Unexplained);
}

#[test]
fn a_sender_that_tries_the_same_byte_again_has_no_room() {
    let late = |number| (number == 50).then_some(([9_100, 200, 30, 40, 50, 60, 70, 300], USUAL));
    let of_tries = |tries: &[(u64, u32)]| {
        let (samples, mut trace) = round(100, late, Vec::new());
        let at = samples[50].submit_ns as u64;
        let one = |(after, number): &(u64, u32)| {
            let number = *number;
            Stamp { number, ..stamp(at + after, Kind::Send, CLIENT, THERE) }
        };
        trace.stamps.extend(tries.iter().map(one));
        trace.stamps.sort_by_key(|stamp| stamp.time_ns);
        let (clock, usual) = (clock(), USUAL.map(|ns| ns as f64));
        let stamps = Stamps::new(&trace, &clock);
        // All of its attempts lie in the stage, as they do where places are by bytes.
        let mut split = splits(&samples, &stamps);
        let (first, second) = (split.messages[50].stages_ns[0], split.messages[50].stages_ns[1]);
        split.messages[50].stages_ns[..2].copy_from_slice(&[9_100.0, first + second - 9_100.0]);
        let disturbances = Disturbances::new(&trace, &stamps);
        let (trace, disturbances) = (&trace, &disturbances);
        let evidence = Evidence { trace, stamps: &stamps, disturbances, sees_all: true };
        let medians = [&usual[..], &usual, &[80.0]].concat();
        cause(&split.messages[50], &split, &medians, &evidence).0
    };
    let full = named(Cause::Ahead, "full send buffer of the socket");
    assert_eq!(of_tries(&[(200, 7), (3_000, 7)]), full);
    // Each took the bytes that it was given.
    assert_eq!(of_tries(&[(200, 7), (3_000, 71)]).cause, Cause::Gap);
}

#[test]
fn a_wake_up_of_an_idle_cpu_is_not_a_task() {
    let idle = |ready| {
        vec![
            leaves(ready - 5_000, SERVER, 1, 0),
            Stamp { kind: Kind::Waking, ..stamp(ready + 10, Kind::Waking, CLIENT, SERVER) },
            comes(ready + 9_000, 0, SERVER),
        ]
    };
    assert_eq!(cause_of(10_000, idle).0, named(Cause::Idle, "CPU 1"));
}

#[test]
fn network_work_that_was_left_to_ksoftirqd_is_named() {
    let slow = |number| (number == 50).then_some(([100, 200, 30, 40, 20_050, 60, 70, 300], USUAL));
    let (samples, mut trace) = round(100, slow, Vec::new());
    let at = samples[50].submit_ns as u64 + 370 + 20_050;
    for stamp in &mut trace.stamps {
        if stamp.time_ns == at && stamp.kind == Kind::Receive {
            (stamp.tid, stamp.in_kernel_thread) = (17, true);
        }
    }
    let found = cause_in(&samples, &trace, &[60.0; 17]);
    assert_eq!(found.0, named(Cause::Deferred, "ksoftirqd/1"));
}

/// Numbers the bytes of TCP, 64 a message: message `n` begins at `64 (n + 1)`.
fn number_bytes(trace: &mut Trace) {
    let mut sent = BTreeMap::new();
    for stamp in &mut trace.stamps {
        let number: &mut u32 = sent.entry(stamp.flow).or_default();
        *number += u32::from(stamp.kind == Kind::Send) * 64;
        stamp.number = *number;
    }
}

/// The cause of message 50, whose stages there took this long, beside more stamps so long after its
/// begin, whose numbers count from its first byte.
fn cause_of_stages(there: [u64; 8], more: &[(u64, Stamp)]) -> Named {
    let slow = |number| (number == 50).then_some((there, USUAL));
    let (samples, mut trace) = round(100, slow, Vec::new());
    number_bytes(&mut trace);
    let at = samples[50].submit_ns as u64;
    let one = |(after, stamp): &(u64, Stamp)| {
        let is_call = matches!(stamp.kind, Kind::SysEnter | Kind::SysExit);
        let number = stamp.number + if is_call { 0 } else { 51 * 64 };
        Stamp { time_ns: at + after, number, ..*stamp }
    };
    trace.stamps.extend(more.iter().map(one));
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    let usual = USUAL.map(|ns| ns as f64);
    cause_in(&samples, &trace, &[&usual[..], &usual, &[80.0]].concat()).0
}

#[test]
fn a_segment_for_which_the_receive_window_had_no_room_waits_for_the_receiver() {
    let late = [100, 20_200, 30, 40, 50, 60, 70, 300];
    let reply = |window_end: u32| Stamp {
        number: window_end,
        length: 0,
        ..stamp(0, Kind::TcpProbe, SERVER, BACK)
    };
    let full = named(Cause::Ahead, "full receive buffer of the server");
    // The segment ends at 64.
    assert_eq!(cause_of_stages(late, &[(20_000, reply(63))]), full);
    // There was room: something else held it up.
    assert_eq!(cause_of_stages(late, &[(20_000, reply(64))]).cause, Cause::Gap);
    // The window opened long before it was sent.
    assert_eq!(cause_of_stages(late, &[(2_000, reply(63))]).cause, Cause::Gap);
}

#[test]
fn a_call_that_the_kernel_refused_found_a_full_buffer() {
    let late = [20_100, 200, 30, 40, 50, 60, 70, 300];
    let call = |number: i64, result: i32| {
        let exit = Stamp { length: result as u32, ..stamp(0, Kind::SysExit, CLIENT, 0) };
        let entry = stamp(0, Kind::SysEnter, CLIENT, 0);
        [(50, Stamp { number: number as u32, ..entry }), (150, exit)]
    };
    // The call that succeeds begins late.
    let cause_of = |calls: &[(u64, Stamp)]| cause_of_stages(late, calls);
    let full = named(Cause::Ahead, "full send buffer of the socket");
    assert_eq!(cause_of(&call(libc::SYS_sendto, -libc::EAGAIN)), full);
    // Of a thread that polls no call is stamped, but that it was refused.
    assert_eq!(cause_of(&[(150, stamp(0, Kind::Refused, CLIENT, 0))]), full);
    assert_eq!(cause_of(&[(150, stamp(0, Kind::Refused, SERVER, 0))]).cause, Cause::Gap);
    assert_eq!(cause_of(&call(libc::SYS_sendto, 64)).cause, Cause::Gap);
    assert_eq!(cause_of(&call(libc::SYS_recvfrom, -libc::EAGAIN)).cause, Cause::Gap);
}

#[test]
fn a_packet_that_was_sent_again_while_it_waited_was_held_in_the_queue() {
    let late = [100, 200, 20_030, 40, 50, 60, 70, 300];
    let queued = (310, stamp(0, Kind::Qdisc, CLIENT, THERE));
    let again = (15_000, stamp(0, Kind::Retransmit, CLIENT, THERE));
    let copy_leaves = (20_600, stamp(0, Kind::Xmit, CLIENT, THERE));
    assert_eq!(cause_of_stages(late, &[queued]).cause, Cause::Qdisc);
    assert_eq!(cause_of_stages(late, &[queued, again, copy_leaves]).cause, Cause::Qdisc);
    // It was lost there: what left is the copy.
    assert_eq!(cause_of_stages(late, &[queued, again]).cause, Cause::Retransmission);
    assert_eq!(cause_of_stages(late, &[again]).cause, Cause::Retransmission);
    // The other end, which waits for it, sends its own again.
    let by_other = (15_000, stamp(0, Kind::Retransmit, SERVER, BACK));
    assert_eq!(cause_of_stages(late, &[queued, by_other]).cause, Cause::Qdisc);
}

#[test]
fn a_late_copy_of_the_message_before_has_no_stamp_of_the_next() {
    let (samples, mut trace) = round(10, |_| None, Vec::new());
    number_bytes(&mut trace);
    let before = split_of(&samples, &trace);
    let at = samples[5].submit_ns as u64;
    let copies = [(Kind::Xmit, 320), (Kind::NetifRx, 325), (Kind::Receive, 380)];
    let late = |(kind, after): (Kind, u64)| {
        let own = stamp(at + after, kind, CLIENT, THERE);
        Stamp { number: 5 * 64, ..own }
    };
    trace.stamps.extend(copies.map(late));
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    assert_eq!(split_of(&samples, &trace).messages[5].stages_ns, before.messages[5].stages_ns);
}
