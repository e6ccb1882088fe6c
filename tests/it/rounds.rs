//! Whole rounds with real processes: every transport, pattern and wait mode, short.

use std::sync::atomic::AtomicBool;
use wiregauge::clock::exchange::Local;
use wiregauge::clock::{Source, Ticks, Timebase};
use wiregauge::loops::Ended;
use wiregauge::pattern::bandwidth::Direction;
use wiregauge::pattern::{bandwidth, latency, oneway, registry};
use wiregauge::plan::{Case, PatternRef, Request, Topology, Wait};
use wiregauge::remote::program::{AgentProgram, Programs};
use wiregauge::run::RunContext;
use wiregauge::run::conditions::Conditions;
use wiregauge::run::round::{self, RoundResult};
use wiregauge::run::start_barrier::StartBarrier;
use wiregauge::sample::Flags;
use wiregauge::sample::join::Times;
use wiregauge::transport::{Lengths, Role, Settings, Traffic, TransportKind, TransportRequest};
use wiregauge::units::{Bytes, Span};
use wiregauge_test_support::bounded;

const MESSAGES: u64 = 500;
const WARMUP: u64 = 50;
const ALL: u64 = MESSAGES + WARMUP;

fn latency() -> Request {
    latency::request(Default::default())
}

fn oneway() -> Request {
    oneway::request(oneway::Spec::default())
}

fn bandwidth(direction: Direction) -> Request {
    bandwidth::request(bandwidth::Spec { direction, ..bandwidth::Spec::default() })
}

fn case(request: Request, transport: TransportKind, wait: Wait) -> Case {
    let request = Request {
        transports: vec![transport],
        waits: vec![wait],
        sizes: vec![Bytes(64)],
        count: Some(MESSAGES),
        warmup: Some(WARMUP),
        check: true,
        // A round that stalls ends by itself.
        timeout: Span(30_000_000_000),
        // Far above what a busy machine takes a thread away for.
        loss_after: Span(2_000_000_000),
        ..request
    };
    request.plan().unwrap().cases.remove(0)
}

fn play(case: &Case) -> RoundResult {
    let _bound = bounded::Bound::new();
    let interrupted = AtomicBool::new(false);
    let context = RunContext {
        program: AgentProgram::Other(env!("CARGO_BIN_EXE_wiregauge").into()),
        command: Vec::new(),
        clock: None,
        interrupted: &interrupted,
        hosts: &[],
        unavailable: Vec::new(),
        report_every: None,
        patterns: registry::analysis,
        sides: Default::default(),
        observer: None,
    };
    let conditions = Conditions {
        run: 1,
        context: &context,
        program: context.program.clone(),
        programs: Programs::default(),
        clocks: Vec::new(),
        residents: Default::default(),
        rails: None,
        cpus: Vec::new(),
        clock: Local {
            source: Source::MonotonicRaw,
            time: Timebase::nanoseconds(Ticks(0)),
            injected_error: None,
        },
        epoch_of_day_ns: 0,
        injected_clock_error: None,
        noise: Span(0),
        overhead_messages: 100,
    };
    let finished = round::run(case, &conditions, StartBarrier::none(), &mut |_| {}).unwrap();
    let fault = finished.fault.as_ref().map(|fault| fault.to_string());
    assert_eq!(fault, None, "{}", case.label());
    finished
}

/// Every case of a pattern, for all transports that carry it.
fn each(request: Request, change: impl Fn(&mut Case), check: impl Fn(&Case, &RoundResult)) {
    for transport in TransportKind::ALL {
        if !is_carried(request.pattern, *transport) || transport.available().is_err() {
            continue;
        }
        for wait in Wait::ALL.iter().filter(|wait| is_supported(*transport, **wait)) {
            let mut case = case(request.clone(), *transport, *wait);
            change(&mut case);
            check(&case, &play(&case));
        }
    }
}

fn is_carried(pattern: PatternRef, over: TransportKind) -> bool {
    pattern.is_carried_by(over.descriptor())
}

/// Whether the transport has this wait mode.
fn is_supported(transport: TransportKind, wait: Wait) -> bool {
    let (settings, traffic) = (&Settings::default(), Traffic::Echo { every: 1 });
    let lengths = Lengths::Fixed;
    let asked =
        TransportRequest { size: 64, wait, traffic, lengths, settings, reads_payloads: true };
    (transport.descriptor().check)(&asked).is_ok()
}

fn loses_nothing(case: &Case) -> bool {
    // The synthetic one is asked for no loss.
    !case.transport.descriptor().loses || case.transport == TransportKind::Synthetic
}

#[test]
fn latency_keeps_every_message_of_every_transport() {
    each(
        latency(),
        |_| {},
        |case, finished| {
            let label = case.label();
            let rows = finished.threads_of(Role::Client)[0].arena.rows();
            assert_eq!(rows.len() as u64, ALL, "{label}");
            let warm = rows.iter().filter(|row| row.flags.has(Flags::WARMUP)).count() as u64;
            assert_eq!(warm, WARMUP, "{label}");
            let lost = rows.iter().filter(|row| row.flags.has(Flags::LOST)).count() as u64;
            assert!(lost == 0 || !loses_nothing(case), "{label}: {lost} lost");
            let heard: Vec<_> = rows.iter().filter(|row| row.receive.0 != 0).collect();
            assert_eq!(heard.len() as u64 + lost, ALL, "{label}");
            assert!(heard.iter().all(|row| row.receive >= row.submit), "{label}");
            let outcome = finished.threads_of(Role::Client)[0].outcome.as_ref().unwrap();
            assert_eq!(outcome.ended, Ended::Count, "{label}");
            let seen = outcome.counts;
            assert_eq!((seen.sent, seen.received), (ALL, ALL - lost), "{label}");
            assert_eq!((seen.corrupt, seen.foreign, seen.duplicates), (0, 0, 0), "{label}");
            if !case.transport.descriptor().one_process {
                let below = outcome.overhead.iter().filter(|ticks| **ticks == 0).count();
                assert!(outcome.overhead.len() == 100 && below < 100, "{label}: no overhead");
            }
        },
    );
}

#[test]
fn a_burst_longer_than_the_queues_is_answered_whole() {
    each(
        latency::request(latency::Spec { burst: 512, ..latency::Spec::default() }.into()),
        |case| {
            case.size = Bytes(8192);
            (case.bound.count, case.warmup) = (Some(2048), 0);
        },
        |case, finished| {
            if case.transport == TransportKind::Udp {
                return; // It loses what its buffer has no room for.
            }
            let label = case.label();
            let rows = finished.threads_of(Role::Client)[0].arena.rows();
            assert_eq!(rows.len(), 2048, "{label}");
            assert!(rows.iter().all(|row| row.receive > Ticks(0)), "{label}");
            assert!(rows.iter().all(|row| row.receive >= row.submit), "{label}");
            let seen = finished.threads_of(Role::Client)[0].outcome.as_ref().unwrap().counts;
            assert_eq!((seen.sent, seen.received, seen.corrupt), (2048, 2048, 0), "{label}");
        },
    );
}

#[test]
fn one_way_is_within_the_round_trip() {
    each(
        oneway(),
        |_| {},
        |case, finished| {
            let label = case.label();
            let (client, server) = (
                finished.threads_of(Role::Client)[0].arena.rows(),
                finished.threads_of(Role::Server)[0].arena.rows(),
            );
            assert_eq!(client.len() as u64, ALL, "{label}");
            let time = Timebase::nanoseconds(Ticks(0));
            let analysis = registry::analysis("oneway").unwrap();
            let times = Times::of_one_host(&time);
            let samples = analysis.samples(case, 0, [client, server], times);
            assert_eq!(samples.len() as u64, ALL, "{label}");
            for (sample, row) in samples.iter().zip(client) {
                if sample.flags.has(Flags::LOST) {
                    assert!(!loses_nothing(case), "{label}: {} is lost", sample.sequence);
                    continue;
                }
                let one_way = sample.receive_ns - sample.submit_ns;
                let round_trip = (row.receive - row.submit).0 as f64;
                assert!((0.0..=round_trip).contains(&one_way), "{label}: {one_way}, {round_trip}");
            }
            let client = finished.threads_of(Role::Client)[0].outcome.as_ref().unwrap();
            let server =
                finished.threads_of(Role::Server)[0].outcome.as_ref().map(|outcome| outcome.counts);
            let server = server.or(client.server_counts).unwrap();
            assert_eq!((server.corrupt, server.foreign, server.duplicates), (0, 0, 0), "{label}");
            assert!(server.received == ALL || !loses_nothing(case), "{label}");
        },
    );
}

#[test]
fn bursts_through_a_window_arrive_whole_and_each_has_its_latency() {
    let spec = oneway::Spec { outstanding: Some(24), burst: Some(200), pause: Span(20_000) };
    each(
        oneway::request(spec),
        |_| {},
        |case, finished| {
            let label = case.label();
            let ends = [Role::Client, Role::Server].map(|role| &finished.threads_of(role)[0]);
            let time = Timebase::nanoseconds(Ticks(0));
            let rows = ends.map(|end| end.arena.rows());
            let analysis = registry::analysis("oneway").unwrap();
            let samples = analysis.samples(case, 0, rows, Times::of_one_host(&time));
            assert_eq!(samples.len() as u64, ALL, "{label}");
            for sample in &samples {
                let lost = sample.flags.has(Flags::LOST);
                assert!(!lost || !loses_nothing(case), "{label}: {} is lost", sample.sequence);
                assert!(lost || sample.receive_ns >= sample.submit_ns, "{label}");
            }
            let client = ends[0].outcome.as_ref().unwrap();
            let server = ends[1].outcome.as_ref().map(|outcome| outcome.counts);
            let server = server.or(client.server_counts).unwrap();
            assert_eq!((client.ended, client.counts.sent), (Ended::Count, ALL), "{label}");
            assert_eq!((server.corrupt, server.foreign, server.duplicates), (0, 0, 0), "{label}");
            assert!(server.received == ALL || !loses_nothing(case), "{label}");
        },
    );
}

#[test]
fn bandwidth_delivers_what_was_sent() {
    each(
        bandwidth(Direction::Uni),
        |case| case.bound.count = Some(5000),
        |case, finished| {
            let label = case.label();
            let client = finished.threads_of(Role::Client)[0].outcome.as_ref().unwrap();
            let server =
                finished.threads_of(Role::Server)[0].outcome.as_ref().map(|outcome| outcome.counts);
            let server = server.or(client.server_counts).unwrap();
            assert_eq!(client.counts.sent, 5000 + WARMUP, "{label}");
            assert_eq!(server.corrupt, 0, "{label}");
            let delivered = server.received;
            assert!(delivered <= 5000 + WARMUP, "{label}");
            assert!(delivered == 5000 + WARMUP || !loses_nothing(case), "{label}: {delivered}");
        },
    );
}

#[test]
fn both_ways_each_end_delivers_what_was_sent() {
    for transport in TransportKind::ALL {
        let descriptor = transport.descriptor();
        let carried = descriptor.traffic.contains(&Traffic::Both);
        if descriptor.one_process || !carried || transport.available().is_err() {
            continue;
        }
        for wait in Wait::ALL.iter().filter(|wait| is_supported(*transport, **wait)) {
            let mut case = case(bandwidth(Direction::Bi), *transport, *wait);
            case.bound.count = Some(5000);
            let finished = play(&case);
            for part in
                [&finished.threads_of(Role::Client)[0], &finished.threads_of(Role::Server)[0]]
            {
                let seen = part.outcome.as_ref().unwrap().counts;
                assert_eq!(seen.corrupt, 0, "{}", case.label());
                // Without acknowledgements an end may have done before the other has begun, which
                // then stops.
                let all = (seen.sent, seen.received) == (5000 + WARMUP, 5000 + WARMUP);
                assert!(all || descriptor.loses, "{}: {seen:?}", case.label());
            }
        }
    }
}

/// Every transport whose ends are processes of their own, in both patterns that stream and echo.
#[test]
fn threads_of_one_end_have_connections_and_samples_of_their_own() {
    for transport in TransportKind::ALL {
        if transport.descriptor().one_process || transport.available().is_err() {
            continue;
        }
        let all = [latency(), oneway(), bandwidth(Direction::Uni)];
        let wait = if is_supported(*transport, Wait::Block) { Wait::Block } else { Wait::Busy };
        for request in all.into_iter().filter(|all| is_carried(all.pattern, *transport)) {
            let mut case = case(request, *transport, wait);
            case.topology = Topology::pair(3);
            let (finished, label) = (play(&case), case.label());
            assert_eq!(
                (finished.threads_of(Role::Client).len(), finished.threads_of(Role::Server).len()),
                (3, 3),
                "{label}"
            );
            for (client, server) in
                finished.threads_of(Role::Client).iter().zip(finished.threads_of(Role::Server))
            {
                let sent = client.outcome.as_ref().unwrap().counts;
                let seen = server.outcome.as_ref().unwrap().counts;
                assert_eq!((sent.sent, sent.corrupt, seen.corrupt), (ALL, 0, 0), "{label}");
                assert_eq!((sent.foreign, seen.foreign), (0, 0), "{label}: another's messages");
                let is_latency = case.pattern.name() == "latency";
                let received = if is_latency { sent } else { seen }.received;
                assert!(received == ALL || !loses_nothing(&case), "{label}: {received}");
                assert!(
                    !client.effective_settings.is_empty() || *transport == TransportKind::Shm,
                    "{label}"
                );
            }
            let begins = finished
                .threads_of(Role::Client)
                .iter()
                .map(|part| part.outcome.as_ref().unwrap().span.0);
            let ends = finished
                .threads_of(Role::Client)
                .iter()
                .map(|part| part.outcome.as_ref().unwrap().span.1);
            assert!(begins.max().unwrap() <= ends.max().unwrap(), "{label}");
        }
    }
}
