//! What each limit refuses, and that nothing passes beside them.

use super::*;
use proptest::prelude::*;
use std::sync::Arc;
use wiregauge_clock::exchange::Local;
use wiregauge_clock::{Source, Ticks, Timebase};
use wiregauge_measure::control::case::CaseFrame;
use wiregauge_patterns::latency::Spec;
use wiregauge_patterns::{latency, registry};
use wiregauge_plan::topology::Wiring;
use wiregauge_plan::{OneSpec, PatternRequest, Request, Topology};
use wiregauge_transport::preflight::{PathNeeds, PreflightAddresses, PreflightPeer};
use wiregauge_transport::{Blob, Role, Site};

fn assignment(change: impl FnOnce(&mut Request)) -> (Case, Assignment) {
    let mut request = latency::request(Default::default());
    change(&mut request);
    let case = request.plan().unwrap().cases.remove(0);
    let slot = ThreadSlot { cpu: None, arena: "".into(), stamps: None };
    let assignment = Assignment {
        slots: vec![slot; case.threads() as usize],
        others: Vec::new(),
        role: Role::Server,
        rank: 1,
        server_arena: None,
        remote_rows: Some(1000),
        site: None,
        run: 0,
        cookie: [0; 32],
        clock: Local {
            source: Source::MonotonicRaw,
            time: Timebase::nanoseconds(Ticks(0)),
            injected_error: None,
        },
        epoch_of_day_ns: None,
        noise: Span(0),
        overhead_messages: 0,
        trace: None,
    };
    (case, assignment)
}

#[test]
fn the_daemon_s_own_host_is_a_peer_only_where_it_is_named() {
    let of = |reach: &Reach, peer: &str, own: &str| {
        reach.of_peers([peer.parse().unwrap(), own.parse().unwrap()])
    };
    let controller = Reach::Connection;
    assert_eq!(of(&controller, "10.1.0.9", "10.1.0.7").as_deref(), Some("10.1.0.9/32"));
    for [peer, own] in [["127.0.0.1", "127.0.0.1"], ["::1", "::1"], ["10.1.0.7", "10.1.0.7"]] {
        assert_eq!(of(&controller, peer, own).as_deref(), Some(""), "{peer}");
        let named = Reach::Networks(vec![peer.parse().unwrap()]);
        assert!(of(&named, peer, own).unwrap().starts_with(peer));
    }
    assert_eq!(of(&Reach::Any, "127.0.0.1", "127.0.0.1"), None);
    assert_eq!(controller.of_own("127.0.0.1".parse().unwrap()).as_deref(), Some("127.0.0.1/32"));
}

/// Ping-pong with this pause between messages.
fn paced(pause_ns: u64) -> Arc<dyn PatternRequest> {
    Arc::new(OneSpec(Spec { pause: Span(pause_ns), ..Spec::default() }))
}

fn hello() -> ToAgent {
    ToAgent::Hello { magic: MAGIC, version: VERSION, secret: [0; 32], asks_program: false }
}

fn open((case, assignment): (Case, Assignment)) -> ToAgent {
    ToAgent::Open(Box::new(CaseFrame::from(&case)), Box::new(assignment))
}

fn admit(inspector: &mut Inspector, message: &ToAgent) -> Result<(), String> {
    inspector.admit(&postcard::to_stdvec(message).unwrap())
}

/// A session that has been greeted.
fn greeted(caps: &Caps) -> Inspector {
    let mut inspector = Inspector::new(caps.clone(), registry::find);
    assert_eq!(admit(&mut inspector, &hello()), Ok(()));
    inspector
}

fn said(caps: &Caps, asked: (Case, Assignment)) -> Result<(), String> {
    admit(&mut greeted(caps), &open(asked))
}

#[track_caller]
fn refused(caps: &Caps, assignment: (Case, Assignment), sentence: &str) {
    let refused = said(caps, assignment).unwrap_err();
    assert_eq!(refused, sentence);
}

#[test]
fn what_nobody_limits_passes() {
    let caps = Caps::default();
    assert_eq!(said(&caps, assignment(|_| ())), Ok(()));
    assert_eq!(said(&caps, assignment(|request| request.time = Some(Span(1_000_000_000)))), Ok(()));
}

#[test]
fn a_round_that_is_too_long_is_refused() {
    let caps = Caps { longest_run: Span(1_000_000_000), ..Caps::default() };
    let sentence = "the round takes 2 s, and this agent allows at most 1 s (--longest-run)";
    refused(&caps, assignment(|request| request.time = Some(Span(2_000_000_000))), sentence);
    // By its schedule, too.
    let slow = |request: &mut Request| {
        (request.count, request.warmup) = (Some(2), Some(0));
        request.asked = self::paced(1_000_000_000);
    };
    refused(&caps, assignment(slow), sentence);
    assert_eq!(said(&caps, assignment(|request| request.time = Some(Span(999)))), Ok(()));
}

#[test]
fn a_rate_that_is_too_high_or_has_no_end_is_refused() {
    let caps = Caps { highest_rate: Some(MessageRate(1000.0)), ..Caps::default() };
    let as_fast = "the round sends as fast as it can, and this agent allows at most 1.000 k msg/s \
                   (--highest-rate): pace it with --rate or --pause";
    refused(&caps, assignment(|_| ()), as_fast);
    let paced = |pause| assignment(|request| request.asked = self::paced(pause));
    assert_eq!(said(&caps, paced(1_000_000)), Ok(()));
    let wrong = said(&caps, paced(500_000)).unwrap_err();
    let sentence = "the round sends 2.000 k msg/s, and this agent allows at most 1.000 k msg/s \
                    (--highest-rate)";
    assert_eq!(wrong, sentence);
}

#[test]
fn each_thread_counts() {
    let threads = |count| assignment(|request| request.threads = vec![count]);
    let caps = Caps { highest_rate: Some(MessageRate(1000.0)), ..Caps::default() };
    let paced = assignment(|request| {
        (request.threads, request.asked) = (vec![2], self::paced(1_500_000));
    });
    assert!(said(&caps, paced).unwrap_err().contains("the round sends 1.33"));
    let caps = Caps { most_memory: Bytes(200_000), ..Caps::default() };
    assert_eq!(said(&caps, threads(1)), Ok(()));
    assert!(said(&caps, threads(2)).unwrap_err().contains("--most-memory"));
    let mut without_slot = threads(2);
    without_slot.1.slots.pop();
    assert!(said(&Caps::default(), without_slot).unwrap_err().contains("exceeds every limit"));
    let mut endless = threads(1);
    (endless.0.topology, endless.1.slots) =
        (Topology::pair(65), vec![endless.1.slots[0].clone(); 65]);
    assert!(said(&Caps::default(), endless).unwrap_err().contains("the case is too large"));
}

#[test]
fn too_much_memory_is_refused() {
    let caps = Caps { most_memory: Bytes(180_000), ..Caps::default() };
    assert_eq!(said(&caps, assignment(|_| ())), Ok(()));
    let mut large = assignment(|_| ());
    large.1.remote_rows = Some(1300);
    let wrong = said(&caps, large).unwrap_err();
    // Rows, two slots, what tcp receives at once, and the endpoint.
    let needs = 1300 * 40 + 2 * 64 + (128 << 10) + ENDPOINT;
    assert!(wrong.contains(&format!("the round needs {} of memory", Bytes(needs))), "{wrong}");
    let payloads = assignment(|request| request.sizes = vec![Bytes(1 << 20)]);
    assert!(said(&caps, payloads).is_err());
    // Numbers that would overflow are refused and not wrapped.
    let mut endless = assignment(|_| ());
    endless.1.remote_rows = Some(u64::MAX);
    assert!(said(&Caps::default(), endless).is_err());
}

#[test]
fn each_endpoint_counts_with_what_its_transport_allocates() {
    let mut many = assignment(|request| request.threads = vec![64]);
    // Many share the memory of a few for what they receive, and each has its own messages.
    many.0.size = Bytes(16 << 10);
    many.0.topology = Topology::client_server(64, 64, Wiring::Mesh { each: 16 });
    let wrong = said(&Caps::default(), many.clone()).unwrap_err();
    assert!(wrong.contains("--most-memory"), "{wrong}");
    many.0.topology = Topology::client_server(64, 64, Wiring::Mesh { each: 1 });
    assert_eq!(said(&Caps::default(), many), Ok(()));
    for name in ["homa", "verbs"] {
        let over = TransportKind::ALL.iter().find(|one| one.name() == name).unwrap();
        let caps = Caps { most_memory: Bytes(1 << 20), ..Caps::default() };
        let mut one = assignment(|_| ());
        one.0.transport = *over;
        let needs = memory(&one.0, (Role::Server, 1), 0, 0);
        assert!(said(&caps, one).is_err(), "{name}: {needs}");
    }
}

#[test]
fn a_trace_counts_by_its_times_and_must_be_one() {
    let traced = |times_ns: &[u64], rate: f64| {
        let mut asked = assignment(|_| ());
        let trace = Trace { file: "t".into(), times_ns: times_ns.into(), sizes: Vec::new() };
        (asked.0.trace, asked.0.schedule) =
            (Some(trace), Schedule::Trace { rate: MessageRate(rate) });
        asked
    };
    let caps = Caps { highest_rate: Some(MessageRate(1000.0)), ..Caps::default() };
    assert_eq!(said(&caps, traced(&[0, 1_000_000], 1.0)), Ok(()));
    let wrong = said(&caps, traced(&[0, 1000], 1.0)).unwrap_err();
    assert!(wrong.contains("the round sends 1.000 M msg/s"), "{wrong}");
    // Many at once, and the last one late.
    let mut late = vec![0; 5000];
    late.push(3_000_000_000);
    let wrong = said(&caps, traced(&late, 1.0)).unwrap_err();
    assert!(wrong.contains("the round sends 5.000 k msg/s"), "{wrong}");
    for times in [&[5, 3][..], &[], &[7], &[7, 7]] {
        assert!(said(&Caps::default(), traced(times, 1.0)).is_err(), "{times:?}");
    }
    let mut without = traced(&[0, 1], 1.0);
    without.0.trace = None;
    assert!(said(&Caps::default(), without).is_err());
}

#[test]
fn a_transport_that_is_not_allowed_is_refused_and_told_before() {
    let caps = Caps { transports: vec![TransportKind::Udp], ..Caps::default() };
    let sentence = "this agent does not allow tcp: use one of udp (--transports)";
    refused(&caps, assignment(|_| ()), sentence);
    // One of this host alone is never allowed.
    let near = assignment(|request| request.transports = vec![TransportKind::Shm]);
    assert!(said(&Caps::default(), near).unwrap_err().contains("does not allow shm"));
}

#[test]
fn a_datagram_as_large_as_its_family_has_is_allowed() {
    for (family, is_allowed) in [("ipv6", true), ("ipv4", false)] {
        let mut asked = assignment(|request| request.transports = vec![TransportKind::Udp]);
        asked.0.size = Bytes(65_527);
        asked.0.settings.set("family", family).unwrap();
        assert_eq!(said(&Caps::default(), asked).is_ok(), is_allowed, "{family}");
    }
}

fn open_path() -> ToAgent {
    let site = Site::Session;
    ToAgent::OpenPath(Box::new(OpenPath { site, family: None, device: None, listens: true }))
}

/// Returns the request of a pre-flight to this number of ends.
fn try_path(peers: usize) -> ToAgent {
    let udp = "10.1.0.9:7500".parse().unwrap();
    let addresses = PreflightAddresses { tcp: None, udp, interface: None, mtu_bytes: None };
    let needs = PathNeeds::default();
    let peer = PreflightPeer { number: 0, addresses, cookie: [0; 32], needs };
    ToAgent::TryPath { number: 1, peers: vec![peer; peers] }
}

#[test]
fn a_pre_flight_is_tried_once_and_with_as_many_ends_as_a_rank_has() {
    let mut inspector = greeted(&Caps::default());
    assert!(admit(&mut inspector, &try_path(1)).is_err(), "no end is open");
    let mut inspector = greeted(&Caps::default());
    assert_eq!(admit(&mut inspector, &open_path()), Ok(()));
    // Those of all other hosts are opened meanwhile.
    assert_eq!((inspector.state, inspector.patience()), (SessionState::PathOpen, Some(OPENING)));
    assert!(inspector.overdue().contains("600 s"), "{}", inspector.overdue());
    assert!(admit(&mut inspector, &open_path()).unwrap_err().contains("not due"));
    let many = admit(&mut inspector, &try_path(MAX_PEERS + 1)).unwrap_err();
    assert!(many.contains("at most 1024"), "{many}");
    assert_eq!(admit(&mut inspector, &try_path(MAX_PEERS)), Ok(()));
    assert_eq!((inspector.state, inspector.patience()), (SessionState::TryingPath, Some(IDLE)));
    assert!(admit(&mut inspector, &try_path(1)).unwrap_err().contains("not due"));
}

#[test]
fn a_pre_flight_needs_a_transport_that_takes_its_path() {
    fn allowing(transports: &[TransportKind]) -> Result<(), String> {
        let caps = Caps { transports: transports.to_vec(), ..Caps::default() };
        admit(&mut greeted(&caps), &open_path())
    }
    let sentence = "this agent allows no pre-flight, which tries the paths of sockets over IP: \
                    it allows verbs,homa (--transports)";
    assert_eq!(allowing(&[TransportKind::Verbs, TransportKind::Homa]), Err(sentence.to_string()));
    assert_eq!(allowing(&[TransportKind::Udp]), Ok(()));
    assert_eq!(allowing(&[TransportKind::Tcp, TransportKind::Verbs]), Ok(()));
}

#[test]
fn no_controller_names_memory_of_this_host() {
    let mut near = assignment(|_| ());
    (near.1.remote_rows, near.1.slots[0].arena) = (None, "/etc/passwd".into());
    assert!(said(&Caps::default(), near).unwrap_err().contains("memory of its own"));
    let mut both = assignment(|_| ());
    both.1.server_arena = Some("/etc/passwd".into());
    assert!(said(&Caps::default(), both).unwrap_err().contains("memory of its own"));
}

/// The frames of a round, in order, with the state after each.
fn round() -> Vec<(ToAgent, SessionState)> {
    vec![
        (hello(), SessionState::Greeted),
        (open(assignment(|_| ())), SessionState::Opening),
        (ToAgent::Connect(vec![vec![Blob::default()]]), SessionState::Connecting),
        (ToAgent::Start(None), SessionState::Running),
        (ToAgent::Expect { thread: 0, messages: 1 }, SessionState::Running),
        (ToAgent::Stop, SessionState::Stopped),
    ]
}

#[test]
fn a_round_is_limited_at_each_step() {
    let caps = Caps { longest_run: Span(1_000_000_000), ..Caps::default() };
    let mut inspector = Inspector::new(caps, registry::find);
    for (message, state) in round() {
        admit(&mut inspector, &message).unwrap();
        assert_eq!(inspector.state, state);
        let runs = state == SessionState::Running;
        let limit = if runs { Duration::from_secs(1) + BESIDE } else { IDLE };
        assert_eq!(inspector.patience(), Some(limit), "{state:?}");
    }
}

#[test]
fn a_frame_that_is_not_due_is_refused_before_an_agent_keeps_it() {
    let frames = round();
    let clock = assignment(|_| ()).1.clock;
    let task = AnswerClock { site: Site::Session, clock, cookie: [0; 32], leaves: Vec::new() };
    let others = [ToAgent::AnswerClock(Box::new(task)), ToAgent::Stop];
    for step in 0..=frames.len() {
        for wrong in frames.iter().map(|(frame, _)| frame).chain(&others) {
            let mut inspector = Inspector::new(Caps::default(), registry::find);
            frames[..step].iter().for_each(|(frame, _)| admit(&mut inspector, frame).unwrap());
            let is_next = frames.get(step).is_some_and(|(next, _)| same_kind(next, wrong));
            let is_due = match wrong {
                ToAgent::Stop => (1..frames.len()).contains(&step),
                ToAgent::Expect { .. } => step == 4 || step == 5,
                ToAgent::AnswerClock(_) => step == 1,
                _ => is_next,
            };
            let said = admit(&mut inspector, wrong);
            assert_eq!(said.is_ok(), is_due, "{wrong:?} after {step} frames: {said:?}");
        }
    }
    let mut inspector = greeted(&Caps::default());
    admit(&mut inspector, &frames[1].0).unwrap();
    let many = ToAgent::Connect(vec![vec![Blob::default(); 1024]; 64]);
    let wrong = admit(&mut inspector, &many).unwrap_err();
    assert_eq!(wrong, "the controller sent addresses for other connections");
}

fn same_kind(one: &ToAgent, other: &ToAgent) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

#[test]
fn only_the_first_frame_may_be_of_another_version() {
    let mut inspector = Inspector::new(Caps::default(), registry::find);
    assert_eq!(inspector.admit(&[77, 1, 2]), Ok(()), "the process behind says what is wrong");
    assert!(inspector.admit(&[77, 1, 2]).unwrap_err().contains("invalid control frame"));
}

#[test]
fn what_a_refusal_quotes_stays_on_its_line() {
    let (case, asked) = assignment(|_| ());
    let mut case = CaseFrame::from(&case);
    case.pattern = "la\n\u{1b}".into();
    let open = ToAgent::Open(Box::new(case), Box::new(asked));
    let refused = admit(&mut greeted(&Caps::default()), &open);
    assert_eq!(refused, Err("unknown pattern 'la \\u{1b}'".to_string()));
}

#[test]
fn frames_without_end_are_refused() {
    let mut inspector = Inspector::new(Caps::default(), registry::find);
    round()[..4].iter().for_each(|(frame, _)| admit(&mut inspector, frame).unwrap());
    let expect = ToAgent::Expect { thread: 0, messages: 1 };
    assert!((4..MOST_FRAMES).all(|_| admit(&mut inspector, &expect).is_ok()));
    let wrong = admit(&mut inspector, &expect).unwrap_err();
    assert!(wrong.contains(&format!("at most {MOST_FRAMES}")), "{wrong}");
}

proptest! {
    #[test]
    fn no_frame_panics(frames: Vec<Vec<u8>>) {
        let mut inspector = Inspector::new(Caps::default(), registry::find);
        for frame in &frames {
            let _ = inspector.admit(frame);
        }
    }

    #[test]
    fn what_passes_is_within_the_limits(
        rows: u64, size in 0u64..1 << 40, burst: u32, time in 0u64..1 << 42,
        pause in 0u64..1 << 32, overhead_messages: u32,
    ) {
        let mut asked = assignment(|_| ());
        asked.1.remote_rows = Some(rows);
        asked.1.overhead_messages = overhead_messages;
        asked.0.size = Bytes(size);
        asked.0 = asked.0.with_spec(Spec { pause: Span(pause), burst });
        asked.0.bound.time = Some(Span(time));
        let caps = Caps {
            highest_rate: Some(MessageRate(1e6)),
            longest_run: Span(1 << 40),
            ..Caps::default()
        };
        if said(&caps, asked).is_ok() {
            prop_assert!(u128::from(rows) * 40 + u128::from(overhead_messages) * 40 <= 2 << 30);
            prop_assert!(u128::from(size) * u128::from(burst) * 2 <= 2 << 30);
            prop_assert!(time <= 1 << 40 && pause > 0);
            prop_assert!(f64::from(burst) * 1e9 / pause as f64 <= 1e6);
        }
    }
}
