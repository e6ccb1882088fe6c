//! Messages of which several are on the way, with made-up stamps: each has its own.

use super::super::Cause;
use super::super::causes::{Evidence, cause};
use super::super::disturbance::Disturbances;
use super::super::path::Way;
use super::super::split::{RoundSplit, Split, StageDef};
use super::super::stamps::Stamps;
use super::super::tests::{clock, split_by, way_over};
use wiregauge_host::trace::{Kind, Stamp, Trace};
use wiregauge_plan::Followed;
use wiregauge_sample::{Flags, Sample};
use wiregauge_transport::KernelPath;

const CLIENT: u32 = 100;
const SERVER: u32 = 200;
const THERE: u32 = 5000 << 16 | 6000;
const BACK: u32 = 6000 << 16 | 5000;
/// Of the first message, near the end of the numbers.
const BASE: u32 = u32::MAX - 150;

fn stamp(time_ns: u64, kind: Kind, tid: u32, flow: u32, [number, length]: [u32; 2]) -> Stamp {
    let cpu = u16::from(tid == SERVER);
    Stamp { time_ns, tid, flow, number, length, cpu, kind, in_kernel_thread: false }
}

fn way(path: KernelPath, followed: Followed, is_scheduled: bool) -> Way {
    Way { is_scheduled, ..way_over(path, followed) }
}

/// A message of 100 B: intended, submitted, received.
fn sample(sequence: u64, [intended, submit, receive]: [u64; 3]) -> Sample {
    let stamps = [intended as f64, submit as f64, f64::NAN, receive as f64, f64::NAN];
    Sample::new(sequence, 100, stamps, Flags::default())
}

/// The stamps of a segment on its way to the socket, 10 ns apart, from its first byte on.
fn segment(at: u64, tid: u32, flow: u32, base: u32, [from, to]: [u32; 2]) -> Vec<Stamp> {
    let number = base.wrapping_add(from);
    let kinds = [Kind::Queue, Kind::Xmit, Kind::NetifRx, Kind::Receive, Kind::TcpProbe];
    let packet =
        |(step, kind): (u64, Kind)| stamp(at + 10 * step, kind, tid, flow, [number, to - from]);
    let mut all: Vec<Stamp> = (0..).zip(kinds).map(packet).collect();
    all.push(stamp(at + 50, Kind::Ready, tid, flow, [base.wrapping_add(to), 0]));
    all
}

fn trace(mut stamps: Vec<Stamp>) -> Trace {
    stamps.sort_by_key(|stamp| stamp.time_ns);
    Trace { stamps, ..Trace::default() }
}

fn splits(samples: &[Sample], trace: &Trace, way: &Way) -> RoundSplit {
    split_by(samples, &Stamps::new(trace, &clock()), way)
}

fn stage(round: &RoundSplit, message: &Split, leg: usize, name: &str) -> f64 {
    let is_it = |stage: &StageDef| stage.leg == leg && stage.name == name;
    message.stages_ns[round.stages.iter().position(is_it).unwrap()]
}

/// Three messages that a schedule wants at 1000, 1100 and 1200: the second is sent late, the second
/// and the third go in one segment, and the server takes all three at 5000 and later.
fn three() -> (Vec<Sample>, Trace) {
    let samples = vec![
        sample(0, [1000, 1010, 5100]),
        sample(1, [1100, 1400, 5300]),
        sample(2, [1200, 1410, 5400]),
    ];
    let mut stamps = vec![
        // The cookie, which is no message.
        stamp(500, Kind::Send, CLIENT, THERE, [BASE.wrapping_sub(32), 0]),
        stamp(600, Kind::Copied, SERVER, THERE, [BASE, 0]),
        stamp(1020, Kind::Send, CLIENT, THERE, [BASE, 0]),
        // The kernel took nothing of the first call.
        stamp(1405, Kind::Send, CLIENT, THERE, [BASE.wrapping_add(100), 0]),
        stamp(1420, Kind::Send, CLIENT, THERE, [BASE.wrapping_add(100), 0]),
        stamp(5000, Kind::Copied, SERVER, THERE, [BASE.wrapping_add(100), 0]),
        stamp(5200, Kind::Copied, SERVER, THERE, [BASE.wrapping_add(200), 0]),
        stamp(5300, Kind::Copied, SERVER, THERE, [BASE.wrapping_add(300), 0]),
    ];
    stamps.extend(segment(1030, CLIENT, THERE, BASE, [0, 100]));
    stamps.extend(segment(1500, CLIENT, THERE, BASE, [100, 300]));
    // An acknowledgement is no message.
    stamps.push(stamp(1470, Kind::Queue, CLIENT, THERE, [BASE.wrapping_add(100), 0]));
    (samples, trace(stamps))
}

#[test]
fn messages_of_a_stream_have_the_stamps_that_cover_their_bytes() {
    let (samples, trace) = three();
    let found = splits(&samples, &trace, &way(KernelPath::Segments, Followed::OneWay, true));
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (3, 0, 0));
    let of = |message: usize, name: &str| stage(&found, &found.messages[message], 0, name);
    let late: Vec<f64> = (0..3).map(|message| of(message, "generator lateness")).collect();
    assert_eq!(late, [10.0, 300.0, 210.0]);
    let calls = (0..3).map(|message| of(message, "application call, system call"));
    assert_eq!(calls.collect::<Vec<_>>(), [10.0, 20.0, 10.0]);
    let sends = (0..3).map(|message| of(message, "TCP and IP send"));
    assert_eq!(sends.collect::<Vec<_>>(), [10.0, 80.0, 80.0]);
    let ahead = (0..3).map(|message| of(message, "behind others in the socket buffer"));
    assert_eq!(ahead.collect::<Vec<_>>(), [0.0, 3450.0, 3650.0]);
    let copies = (0..3).map(|message| of(message, "poll and copy"));
    assert_eq!(copies.collect::<Vec<_>>(), [3920.0, 200.0, 100.0]);
    for message in &found.messages {
        assert_eq!(message.stages_ns.iter().sum::<f64>(), message.total_ns);
    }
    assert_eq!(found.messages.iter().map(|one| one.ahead[0]).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(found.messages[0].threads, [CLIENT, SERVER]);
}

#[test]
fn a_late_generator_and_a_queue_are_causes_with_their_evidence() {
    let (samples, trace) = three();
    let found = splits(&samples, &trace, &way(KernelPath::Segments, Followed::OneWay, true));
    let clock = clock();
    let stamps = Stamps::new(&trace, &clock);
    let disturbances = Disturbances::new(&trace, &stamps);
    let evidence =
        Evidence { trace: &trace, stamps: &stamps, disturbances: &disturbances, sees_all: false };
    let usual = |name: &str| -> Vec<f64> {
        let own = found.stages.iter().zip(&found.messages[2].stages_ns);
        own.map(|(stage, ns)| if stage.name == name { 0.0 } else { *ns }).collect()
    };
    let (queue, covered) =
        cause(&found.messages[2], &found, &usual("behind others in the socket buffer"), &evidence);
    assert_eq!((queue.cause, queue.who.as_str()), (Cause::Ahead, "socket buffer of the server"));
    assert_eq!(covered, 1.0);
    let (late, _) = cause(&found.messages[2], &found, &usual("generator lateness"), &evidence);
    let who = "busy with other messages";
    assert_eq!((late.cause, late.who.as_str()), (Cause::Generator, who));
    // Nothing of it was in the way.
    let (none, _) = cause(&found.messages[2], &found, &usual("poll and copy"), &evidence);
    assert_eq!(none.cause, Cause::Unexplained);
}

#[test]
fn a_segment_that_was_sent_again_has_the_stamps_of_its_first_time_until_it_was_lost() {
    let samples = [sample(0, [0, 1000, 9000])];
    let mut stamps = segment(1100, CLIENT, THERE, BASE, [0, 100]);
    // The wire lost it.
    stamps.truncate(2);
    stamps.extend(segment(5000, CLIENT, THERE, BASE, [0, 100]));
    stamps.push(stamp(1050, Kind::Send, CLIENT, THERE, [BASE, 0]));
    stamps.push(stamp(4990, Kind::Retransmit, 0, THERE, [0, 0]));
    stamps.push(stamp(8000, Kind::Copied, SERVER, THERE, [BASE.wrapping_add(100), 0]));
    let way = way(KernelPath::Segments, Followed::OneWay, false);
    let found = splits(&samples, &trace(stamps), &way);
    let of = |name: &str| stage(&found, &found.messages[0], 0, name);
    assert_eq!([of("TCP and IP send"), of("device queue (qdisc)")], [50.0, 10.0]);
    assert_eq!([of("driver"), of("SoftIRQ and NAPI")], [3910.0, 10.0]);
}

#[test]
fn what_a_server_took_together_waits_in_the_server() {
    let samples = [sample(0, [0, 1000, 4000]), sample(1, [0, 1010, 4500])];
    let mut stamps = vec![
        stamp(1005, Kind::Send, CLIENT, THERE, [BASE, 0]),
        stamp(1015, Kind::Send, CLIENT, THERE, [BASE.wrapping_add(100), 0]),
        // One call takes both.
        stamp(2000, Kind::Copied, SERVER, THERE, [BASE.wrapping_add(200), 0]),
        stamp(2100, Kind::Send, SERVER, BACK, [7, 0]),
        stamp(2500, Kind::Send, SERVER, BACK, [107, 0]),
        stamp(3900, Kind::Copied, CLIENT, BACK, [107, 0]),
        stamp(4400, Kind::Copied, CLIENT, BACK, [207, 0]),
    ];
    stamps.extend(segment(1100, CLIENT, THERE, BASE, [0, 200]));
    // The poll that took the segment, one of another CPU, and a later one.
    let poll = |at, tid, packets| stamp(at, Kind::Napi, tid, 0, [0, packets]);
    stamps.extend([poll(1160, CLIENT, 3), poll(1140, SERVER, 9), poll(1990, CLIENT, 5)]);
    stamps.extend(segment(2200, SERVER, BACK, 7, [0, 100]));
    stamps.extend(segment(2600, SERVER, BACK, 7, [100, 200]));
    let way = way(KernelPath::Segments, Followed::RoundTrips { reply: None }, false);
    let found = splits(&samples, &trace(stamps), &way);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (2, 0, 0));
    let served =
        |message: usize| stage(&found, &found.messages[message], 1, "behind others in the server");
    // Until the first reply's last stamp on the server's CPU.
    assert_eq!([served(0), served(1)], [0.0, 250.0]);
    assert_eq!(found.messages[1].ahead, [1, 1]);
    assert_eq!(found.messages[1].batches, [Some(3), None]);
}

#[test]
fn a_call_that_goes_on_in_another_page_and_what_interrupts_it_are_no_other_message_s() {
    let samples = [sample(0, [0, 1000, 4000]), sample(1, [0, 5000, 9000])];
    let mut stamps = Vec::new();
    for (at, sent) in [(1000, 0), (5000, 100)] {
        let there = BASE.wrapping_add(sent);
        let back = 7 + sent;
        stamps.extend([
            stamp(at + 50, Kind::SysEnter, CLIENT, 0, [0, 0]),
            stamp(at + 60, Kind::Send, CLIENT, THERE, [there, 0]),
            stamp(at + 500, Kind::Copied, SERVER, THERE, [there.wrapping_add(100), 0]),
            stamp(at + 510, Kind::SysExit, SERVER, 0, [0, 0]),
            stamp(at + 600, Kind::SysEnter, SERVER, 0, [0, 0]),
            // An interrupt takes a packet of another connection.
            stamp(at + 605, Kind::Receive, SERVER, 77, [1, 64]),
            // The answer goes on in another page.
            stamp(at + 610, Kind::Send, SERVER, BACK, [back, 0]),
            stamp(at + 620, Kind::Send, SERVER, BACK, [back + 56, 0]),
            stamp(at + 2900, Kind::Copied, CLIENT, BACK, [back + 100, 0]),
            stamp(at + 2910, Kind::SysExit, CLIENT, 0, [0, 0]),
        ]);
        stamps.extend(segment(at + 100, CLIENT, THERE, BASE, [sent, sent + 100]));
        stamps.extend(segment(at + 700, SERVER, BACK, 7, [sent, sent + 100]));
    }
    let way = way(KernelPath::Segments, Followed::RoundTrips { reply: None }, false);
    let found = splits(&samples, &trace(stamps), &way);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (2, 0, 0));
    let names: Vec<&str> = found.stages.iter().map(|one| one.name.as_str()).collect();
    assert!(!names.contains(&"behind others in the server"), "{names:?}");
    assert_eq!(stage(&found, &found.messages[1], 1, "system call"), 20.0);
}

#[test]
fn packets_that_became_one_are_counted_since_the_stack_took_one_before() {
    let samples = [sample(0, [0, 1000, 4000]), sample(1, [0, 1010, 4100])];
    let next = BASE.wrapping_add(100);
    let mut stamps = vec![
        stamp(900, Kind::Gro, CLIENT, THERE, [BASE.wrapping_sub(32), 32]),
        stamp(910, Kind::Receive, CLIENT, THERE, [BASE.wrapping_sub(32), 32]),
        stamp(1005, Kind::Send, CLIENT, THERE, [BASE, 0]),
        stamp(1015, Kind::Send, CLIENT, THERE, [next, 0]),
        stamp(1120, Kind::Gro, CLIENT, THERE, [BASE, 100]),
        stamp(1121, Kind::Gro, SERVER, BACK, [7, 100]),
        stamp(1122, Kind::Gro, CLIENT, THERE, [next, 100]),
        stamp(2000, Kind::Copied, SERVER, THERE, [BASE.wrapping_add(200), 0]),
    ];
    let segment = segment(1100, CLIENT, THERE, BASE, [0, 200]);
    stamps.extend(segment.into_iter().filter(|stamp| stamp.kind != Kind::NetifRx));
    let way = way(KernelPath::Segments, Followed::OneWay, false);
    let found = splits(&samples, &trace(stamps), &way);
    let merged: Vec<_> = found.messages.iter().map(|message| &message.merged[..]).collect();
    assert_eq!(merged, [[Some(2)], [Some(2)]]);
}

#[test]
fn neither_a_dropped_datagram_nor_copies_of_other_threads_shift_those_behind_it() {
    let (mut samples, mut stamps) = (Vec::new(), Vec::new());
    // Of another thread, from a socket without ports, as those of netlink are.
    stamps.extend([4000, 4001].map(|at| stamp(at, Kind::Copied, 99, 0, [0, 100])));
    for number in 0..4_u32 {
        let at = 1000 + 100 * u64::from(number);
        let packet = |step: u64, kind| stamp(at + step, kind, CLIENT, THERE, [number, 100]);
        let kinds = [Kind::Queue, Kind::Xmit, Kind::NetifRx, Kind::Receive];
        stamps
            .extend([10, 20, 30, 40].into_iter().zip(kinds).map(|(step, kind)| packet(step, kind)));
        let mut sent = sample(number.into(), [0, at, 5000 + 10 * u64::from(number)]);
        if number == 1 {
            stamps.push(stamp(at + 50, Kind::Dropped, CLIENT, THERE, [0, 0]));
            (sent.flags, sent.receive_ns) = (Flags::LOST, f64::NAN);
        } else {
            stamps.push(stamp(at + 50, Kind::Ready, CLIENT, THERE, [0, 0]));
            let copied = 4990 + 10 * u64::from(number);
            stamps.push(stamp(copied, Kind::Copied, SERVER, THERE, [0, 100]));
        }
        samples.push(sent);
    }
    let way = way(KernelPath::Datagrams, Followed::OneWay, false);
    let found = splits(&samples, &trace(stamps), &way);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (3, 0, 0));
    let names: Vec<&str> = found.stages.iter().map(|one| one.name.as_str()).collect();
    assert!(names.contains(&"IP and UDP receive"), "{names:?}");
    for message in &found.messages {
        assert_eq!(stage(&found, message, 0, "IP and UDP receive"), 10.0);
        assert_eq!(*message.stages_ns.last().unwrap(), 10.0);
    }
}

#[test]
fn a_buffer_of_a_unix_socket_may_have_several_messages_and_be_copied_in_parts() {
    let samples =
        [sample(0, [0, 1000, 3000]), sample(1, [0, 1100, 3100]), sample(2, [0, 1110, 3300])];
    let stamps = vec![
        stamp(1050, Kind::Ready, CLIENT, 0, [0, 0]),
        stamp(1200, Kind::Ready, CLIENT, 0, [0, 0]),
        stamp(2000, Kind::Copied, SERVER, 0, [100, 100]),
        // 200 B were sent together, and come in two parts.
        stamp(3050, Kind::Copied, SERVER, 0, [200, 150]),
        stamp(3250, Kind::Copied, SERVER, 0, [200, 50]),
    ];
    let way = way(KernelPath::LocalStream, Followed::OneWay, false);
    let found = splits(&samples, &trace(stamps), &way);
    assert_eq!((found.messages.len(), found.incomplete, found.disordered), (3, 0, 0));
    let sends = found.messages.iter().map(|one| one.stages_ns[0]);
    assert_eq!(sends.collect::<Vec<_>>(), [50.0, 100.0, 90.0]);
    let last = found.messages.iter().map(|one| *one.stages_ns.last().unwrap());
    assert_eq!(last.collect::<Vec<_>>(), [1000.0, 50.0, 50.0]);
}

#[test]
fn without_the_stamps_of_a_connection_nothing_is_split() {
    let samples = [sample(0, [0, 1000, 3000]), sample(1, [0, 1100, 3100])];
    let stamps = trace(vec![stamp(1200, Kind::Send, CLIENT, THERE, [BASE, 0])]);
    let way = way(KernelPath::Segments, Followed::OneWay, false);
    let found = splits(&samples, &stamps, &way);
    assert_eq!((found.messages.len(), found.incomplete), (0, 2));
}
