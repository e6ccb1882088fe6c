//! Messages and disturbances that are made up: causes with known answers.

use super::super::tests::{clock, way_over};
use super::*;
use wiregauge_host::Owner;
use wiregauge_plan::Followed;
use wiregauge_sample::Flags;
use wiregauge_transport::KernelPath;

const CLIENT: End = End { tid: 100, cpu: 0 };
const SERVER: End = End { tid: 200, cpu: 1 };
const OTHER: u32 = 300;

fn way(is_scheduled: bool) -> Way {
    Way { is_scheduled, ..way_over(KernelPath::Segments, Followed::Alone) }
}

fn stamp(time_ns: u64, kind: Kind, end: End, flow: u32) -> Stamp {
    let End { tid, cpu } = end;
    Stamp { time_ns, tid, flow, number: 0, length: 0, cpu, kind, in_kernel_thread: false }
}

/// A thread leaves its CPU in this state for another one, and comes back.
fn away(end: End, from: u64, to: u64, state: u32) -> [Stamp; 2] {
    let leaves = Stamp { number: state, length: 1, ..stamp(from, Kind::Switch, end, OTHER) };
    let other = End { tid: OTHER, ..end };
    [leaves, Stamp { length: 2, ..stamp(to, Kind::Switch, other, end.tid) }]
}

/// A thread sleeps, is woken, and has the idle CPU after 5 us.
fn sleeps(end: End, from: u64, woken: u64) -> [Stamp; 3] {
    let leaves = Stamp { number: 1, length: 1, ..stamp(from, Kind::Switch, end, 0) };
    let idle = End { tid: 0, ..end };
    let takes = Stamp { length: 2, ..stamp(woken + 5_000, Kind::Switch, idle, end.tid) };
    [leaves, stamp(woken, Kind::Waking, CLIENT, end.tid), takes]
}

/// When message `number` of a round is sent.
fn sent(number: u64) -> u64 {
    1_000_000 + number * 1_000_000
}

/// 1000 messages of 10 us, 1 ms apart; the hundredth of every hundred takes longer.
fn round(extra_ns: f64) -> RoundSamples {
    let one = |number: u64| {
        let total = 10_000.0 + number as f64 / 1e3 + if is_slow(number) { extra_ns } else { 0.0 };
        let (at, none) = (sent(number) as f64, f64::NAN);
        Sample::new(number, 64, [none, at, none, at + total, none], Flags::default())
    };
    RoundSamples { run: 3, round: 0, samples: (0..1000).map(one).collect() }
}

fn is_slow(number: u64) -> bool {
    number % 100 == 50
}

fn causes_of(samples: &RoundSamples, stamps: Vec<Stamp>, is_scheduled: bool) -> TailCauses {
    causes_with_tcp(samples, stamps, is_scheduled, &[])
}

fn causes_with_tcp(
    samples: &RoundSamples,
    stamps: Vec<Stamp>,
    is_scheduled: bool,
    tcp: &[TcpEvent],
) -> TailCauses {
    let mut trace = Trace { stamps, ..Trace::default() };
    trace.stamps.sort_by_key(|stamp| stamp.time_ns);
    trace.names.insert(OTHER, "hog".to_owned());
    trace.interrupts.insert(33, "IRQ 33 (eth0)".to_owned());
    let (clock, ends) = (clock(), Ends([vec![CLIENT], vec![SERVER]]));
    let way = way(is_scheduled);
    let mut reader = TailReader::default();
    let round = TailRound { samples, trace: &trace, clock: &clock, ends: &ends, way: &way, tcp };
    reader.add(&round, 1);
    reader.causes(3, &[]).unwrap()
}

/// Of the ten slow ones, by what was stamped in each.
fn cause_of(extra_ns: f64, of_slow: impl Fn(u64) -> Vec<Stamp>) -> (Cause, String) {
    let stamps = (0..1000).filter(|number| is_slow(*number)).flat_map(|n| of_slow(sent(n)));
    let found = causes_of(&round(extra_ns), stamps.collect(), false);
    assert_eq!((found.run, found.messages, found.slow.count), (3, 1000, 10));
    let [(named, 10)] = &found.slow.causes[..] else { panic!("{:?}", found.slow) };
    (named.cause, named.who.clone())
}

#[test]
fn what_held_up_an_end_while_a_message_was_on_its_way_is_named() {
    let ran = |at| away(SERVER, at + 1_000, at + 40_000, 0).to_vec();
    assert_eq!(cause_of(50_000.0, ran), (Cause::Task, "hog, on CPU 1".to_owned()));
    let stopped = |at| away(CLIENT, at + 1_000, at + 250_000, 0x4).to_vec();
    assert_eq!(cause_of(250_000.0, stopped).0, Cause::Stopped);
    let interrupt = |cpu: u16| {
        move |at| {
            let end = End { tid: 7, cpu };
            let begins = Stamp { number: 33, ..stamp(at + 500, Kind::IrqEntry, end, 0) };
            vec![begins, Stamp { time_ns: at + 40_500, kind: Kind::IrqExit, ..begins }]
        }
    };
    assert_eq!(cause_of(50_000.0, interrupt(0)), (Cause::Interrupt, "IRQ 33 (eth0)".to_owned()));
    // On a CPU that had nothing to do with it.
    assert_eq!(cause_of(50_000.0, interrupt(5)).0, Cause::Unexplained);
    // Too short for what it took more.
    let short = |at| away(SERVER, at + 1_000, at + 21_000, 0).to_vec();
    assert_eq!(cause_of(50_000.0, short).0, Cause::Unexplained);
    // Before it was sent.
    let before = |at| away(SERVER, at - 40_000, at, 0).to_vec();
    assert_eq!(cause_of(50_000.0, before).0, Cause::Unexplained);
    let fault = |at| vec![stamp(at + 10, Kind::Fault, SERVER, 0)];
    assert_eq!(cause_of(12_000.0, fault).0, Cause::Fault);
    assert_eq!(cause_of(50_000.0, fault).0, Cause::Unexplained);
}

#[test]
fn what_every_message_has_makes_none_slow() {
    let woken = |number: u64| sleeps(SERVER, sent(number) - 900_000, sent(number) + 2_000);
    let stamps: Vec<Stamp> = (0..1000).flat_map(woken).collect();
    let found = causes_of(&round(8_000.0), stamps, false);
    assert_eq!(found.slow.causes, [(named(Cause::Unexplained, String::new()), 10)]);
    // Those of slow ones took 25 us longer.
    let late = |number: u64| {
        let mut own = woken(number);
        own[2].time_ns += if is_slow(number) { 25_000 } else { 0 };
        own
    };
    let found = causes_of(&round(25_000.0), (0..1000).flat_map(late).collect(), false);
    assert_eq!(found.slow.causes, [(named(Cause::Idle, "CPU 1".to_owned()), 10)]);
}

#[test]
fn a_message_that_was_due_and_not_sent_is_the_generators() {
    let mut samples = round(0.0);
    for sample in &mut samples.samples {
        let late = if is_slow(sample.sequence) { 30_000.0 } else { 100.0 };
        sample.intended_ns = sample.submit_ns - late;
    }
    let found = causes_of(&samples, Vec::new(), true);
    assert_eq!(found.slow.causes, [(named(Cause::Generator, String::new()), 10)]);
    // Another task had its CPU meanwhile.
    let slow = (0..1000).filter(|number| is_slow(*number)).map(sent);
    let stamps = slow.flat_map(|at| away(CLIENT, at - 29_000, at - 50, 0)).collect();
    let found = causes_of(&samples, stamps, true);
    assert_eq!(found.slow.causes[0].0.cause, Cause::Task);
}

#[test]
fn slow_messages_are_those_of_all_rounds_together() {
    let (clock, ends, way) = (clock(), Ends::default(), way(false));
    let trace = Trace::default();
    let mut reader = TailReader::default();
    let mut all = Vec::new();
    for (number, extra) in [(0, 0.0), (1, 900_000.0), (2, 5_000.0)] {
        let samples = RoundSamples { round: number, ..round(extra) };
        all.extend(samples.samples.iter().map(|sample| way.total_ns(sample)));
        let (samples, trace, clock, tcp) = (&samples, &trace, &clock, &[]);
        reader.add(&TailRound { samples, trace, clock, ends: &ends, way: &way, tcp }, 3);
    }
    all.sort_by(f64::total_cmp);
    let found = reader.causes(0, &[]).unwrap();
    let p99 = all[rank(SLOW, 3000) as usize - 1];
    assert_eq!((found.messages, found.slow.above_ns), (3000, p99));
    let above = all.iter().filter(|total| **total > p99).count();
    assert_eq!(found.slow.count, above as u64);
    let is_long = |one: &&SlowMessage| one.total_ns > 100_000.0;
    let of_second = found.slowest.iter().filter(is_long).filter(|one| one.round == 1).count();
    assert_eq!(of_second, 10);
}

#[test]
fn messages_after_the_memory_was_full_are_counted_and_not_looked_at() {
    let (clock, ends, way) = (clock(), Ends::default(), way(false));
    let trace = Trace { full_ns: Some(sent(400)), ..Trace::default() };
    let (samples, mut reader) = (round(0.0), TailReader::default());
    let (samples, trace, clock, tcp) = (&samples, &trace, &clock, &[]);
    reader.add(&TailRound { samples, trace, clock, ends: &ends, way: &way, tcp }, 1);
    let found = reader.causes(0, &[]).unwrap();
    assert_eq!((found.messages, found.beyond), (400, 600));
}

/// Returns an event of TCP while each slow message is on its way: between a look 100 us after it
/// was sent, and one 1 ms later.
fn seen(kind: TcpEventKind, amount: u64, is_client: bool) -> Vec<TcpEvent> {
    seen_of(0, kind, amount, is_client)
}

/// Returns the same of this thread.
fn seen_of(thread: u32, kind: TcpEventKind, amount: u64, is_client: bool) -> Vec<TcpEvent> {
    let slow = (0..1000).filter(|number| is_slow(*number)).map(sent);
    slow.map(|at| TcpEvent {
        from_ns: at + 100_000,
        to_ns: at + 1_100_000,
        kind,
        amount,
        owner: Owner { is_client, thread },
    })
    .collect()
}

/// Returns the cause of the ten slow messages, each this much slower, by what TCP did.
fn cause_by_tcp(extra_ns: f64, tcp: &[TcpEvent]) -> (Cause, String) {
    let found = causes_with_tcp(&round(extra_ns), Vec::new(), false, tcp);
    let [(named, 10)] = &found.slow.causes[..] else { panic!("{:?}", found.slow) };
    (named.cause, named.who.clone())
}

#[test]
fn what_tcp_did_while_a_message_was_on_its_way_is_named_without_a_trace() {
    let resent = seen(TcpEventKind::Resent, 1, true);
    let expected = (Cause::Retransmission, "TCP sent a segment again".to_owned());
    assert_eq!(cause_by_tcp(200e6, &resent), expected);
    // Of the connection of another thread.
    let other = seen_of(1, TcpEventKind::Resent, 1, true);
    assert_eq!(cause_by_tcp(200e6, &other).0, Cause::Unexplained);
    // A message that came and went between two looks may have nothing to do with it.
    assert_eq!(cause_by_tcp(50_000.0, &resent).0, Cause::Unexplained);
    for (is_client, other) in [(true, "server"), (false, "client")] {
        let window = cause_by_tcp(2e6, &seen(TcpEventKind::ReceiveWindow, 1_900_000, is_client));
        assert_eq!(window, (Cause::Ahead, format!("full receive buffer of the {other}")));
    }
    // Held back for less than half of what it took more.
    let short = cause_by_tcp(2e6, &seen(TcpEventKind::SendBuffer, 900_000, true));
    assert_eq!(short.0, Cause::Unexplained);
}
