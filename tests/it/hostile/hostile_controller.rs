//! A paired controller that is hostile to the agent daemon: what it asks for is refused before
//! anything is sent, and nothing that it sends brings the daemon down or fills its memory.

use super::Random;
use crate::support::controller::Scratch;
use crate::support::daemon::{Daemon, controller_folder, driven, status};
use crate::support::program::PROGRAM;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wiregauge::clock::exchange::{ExchangeEnd, Local};
use wiregauge::clock::{Source, Ticks, Timebase};
use wiregauge::control::case::CaseFrame;
use wiregauge::control::frame::{self, LONGEST};
use wiregauge::control::protocol::*;
use wiregauge::host::trace::report::TraceRequest;
use wiregauge::host::trace::{CopiedAt, Kind};
use wiregauge::pattern::latency;
use wiregauge::plan::Case;
use wiregauge::remote::daemon::dial;
use wiregauge::remote::daemon::tls::{Reader, Writer};
use wiregauge::transport::preflight::{
    POLL_TIMEOUT, PathNeeds, PreflightAddresses, PreflightEnd, PreflightPeer,
};
use wiregauge::transport::{Blob, Role, Site, TransportKind};
use wiregauge::units::Span;
use wiregauge_test_support::bounded::{LIMIT, SOON, until};

/// Hostile sessions at once.
const AT_ONCE: usize = 16;
/// What a daemon may take beside its agents' processes.
const MOST_KIB: u64 = 256 << 10;
/// What one of those processes may take: some 60 MiB with the samples of these rounds.
const MOST_OF_AGENT_KIB: u64 = 128 << 10;
/// Frames that follow a round and are not due, each of some MiB where it is kept.
const NOT_DUE: usize = 90;
const PACED: &str = "latency --wait block --count 100 --rounds 1 --out run";

/// A session of a paired controller that says what it likes.
struct Session {
    reader: Reader,
    writer: Writer,
}

impl Session {
    fn open(scratch: &Scratch, daemon: &Daemon) -> Session {
        let (host, port) = (daemon.at.ip().to_string(), daemon.at.port());
        let opened = dial::open(&controller_folder(scratch), &host, port);
        let (mut reader, writer) = opened.map_err(|fault| fault.to_string()).unwrap();
        reader.deadline = Some(Instant::now() + LIMIT);
        Session { reader, writer }
    }

    fn send(&mut self, message: &ToAgent) {
        // Where the daemon has closed the answer says why.
        let _ = frame::write(&mut self.writer, message);
    }

    fn answer(&mut self) -> FromAgent {
        frame::read(&mut self.reader).unwrap()
    }

    /// Greeted, as every agent must be.
    fn greeted(scratch: &Scratch, daemon: &Daemon) -> Session {
        let mut session = Session::open(scratch, daemon);
        session.send(&ToAgent::Hello {
            magic: MAGIC,
            version: VERSION,
            secret: [0; 32],
            asks_program: false,
        });
        let welcome = session.answer();
        assert!(matches!(welcome, FromAgent::Welcome { .. }), "{welcome:?}");
        session
    }

    /// What it is refused with.
    fn refused(&mut self) -> String {
        match self.answer() {
            FromAgent::Refused { sentence, .. } => sentence,
            other => panic!("{other:?}"),
        }
    }

    /// Opens one end of a round.
    fn open_end(&mut self, transport: TransportKind, role: Role, change: impl Fn(&mut Assignment)) {
        let (case, mut assignment) = end(transport, role);
        change(&mut assignment);
        self.send(&ToAgent::Open(Box::new(CaseFrame::from(&case)), Box::new(assignment)));
    }

    /// Reads until the daemon closes; how many bytes came.
    fn drain(mut self) -> usize {
        let mut all = Vec::new();
        let _ = self.reader.read_to_end(&mut all);
        all.len()
    }
}

fn clock() -> Local {
    let time = Timebase::nanoseconds(Ticks(0));
    Local { source: Source::MonotonicRaw, time, injected_error: None }
}

fn end(transport: TransportKind, role: Role) -> (Case, Assignment) {
    let mut request = latency::request(Default::default());
    request.transports = vec![transport];
    let case = request.plan().unwrap().cases.remove(0);
    let slot = ThreadSlot { cpu: None, arena: "".into(), stamps: None };
    let assignment = Assignment {
        role,
        rank: role.pick(0, 1),
        slots: vec![slot],
        others: Vec::new(),
        server_arena: None,
        remote_rows: Some(1000),
        site: Some(Site::Session),
        run: 0,
        cookie: [7; 32],
        clock: clock(),
        epoch_of_day_ns: None,
        noise: Span(0),
        overhead_messages: 0,
        trace: None,
    };
    (case, assignment)
}

fn transport(name: &str) -> TransportKind {
    *TransportKind::ALL.iter().find(|one| one.name() == name).unwrap()
}

fn paired(scratch: &Scratch, options: &str) -> Daemon {
    let daemon = Daemon::start(scratch, options);
    daemon.pair(scratch);
    daemon
}

/// What an agent says that is to connect there.
fn connecting(scratch: &Scratch, daemon: &Daemon, name: &str, to: SocketAddr) -> FromAgent {
    let mut session = Session::greeted(scratch, daemon);
    session.open_end(transport(name), Role::Client, |_| ());
    let opened = session.answer();
    assert!(matches!(opened, FromAgent::Opened(_)), "{opened:?}");
    // A listening socket of tcp has ends behind it, by their numbers.
    let number = if name == "tcp" { "#0" } else { "" };
    let address = format!("{to}{number}");
    session.send(&ToAgent::Connect(vec![vec![Blob(address.into_bytes())]]));
    session.answer()
}

#[test]
fn a_daemon_connects_its_rounds_to_no_third_host_and_tells_nothing_of_its_ports() {
    let scratch = Scratch::new();
    let daemon = paired(&scratch, "");
    let third: IpAddr = "127.0.0.2".parse().unwrap();
    let listener = TcpListener::bind((third, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let open = listener.local_addr().unwrap();
    let closed = {
        let gone = TcpListener::bind((third, 0)).unwrap();
        gone.local_addr().unwrap()
    };
    let datagrams = UdpSocket::bind((third, 0)).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let refused = "this agent does not allow rounds to exchange data with 127.0.0.2: start it with \
                   --peers 127.0.0.2";
    for (name, to) in [("tcp", open), ("tcp", closed), ("udp", datagrams.local_addr().unwrap())] {
        match connecting(&scratch, &daemon, name, to) {
            FromAgent::Refused { sentence, .. } => assert_eq!(sentence, refused, "{name}"),
            other => panic!("{name} {to}: {other:?}"),
        }
    }
    assert!(listener.accept().is_err(), "somebody connected");
    assert!(datagrams.recv(&mut [0; 64]).is_err(), "something was sent");
    // To the controller's own host it connects, and to others where it was told so.
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let allowed = paired(&scratch, "--peers 127.0.0.2,192.0.2.0/24");
    let (own, third) = (own.local_addr().unwrap(), open);
    for (daemon, to) in [(&daemon, own), (&allowed, third)] {
        let said = connecting(&scratch, daemon, "tcp", to);
        assert!(matches!(said, FromAgent::Connected(_)), "{to}: {said:?}");
    }
    let said = connecting(&scratch, &allowed, "tcp", own);
    assert!(matches!(said, FromAgent::Refused { .. }), "{said:?}");
    daemon.await_no_processes();
}

#[test]
fn a_pre_flight_sends_nothing_to_an_end_that_is_not_allowed_and_goes_on_with_others() {
    let scratch = Scratch::new();
    let daemon = paired(&scratch, "");
    let third: IpAddr = "127.0.0.2".parse().unwrap();
    let listener = TcpListener::bind((third, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let datagrams = UdpSocket::bind((third, 0)).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let own = Site::Address("127.0.0.1".parse().unwrap());
    let mut allowed = PreflightEnd::open(&own, None, None, true).unwrap();
    let mut session = Session::greeted(&scratch, &daemon);
    let task = OpenPath { site: Site::Session, family: None, device: None, listens: true };
    session.send(&ToAgent::OpenPath(Box::new(task)));
    let FromAgent::PathOpened(opened) = session.answer() else { panic!() };
    let needs = PathNeeds { tcp: true, udp: true };
    let of_third = PreflightAddresses {
        tcp: listener.local_addr().ok(),
        udp: datagrams.local_addr().unwrap(),
        ..allowed.addresses().clone()
    };
    let cookie = [7; 32];
    let of_allowed = allowed.addresses().clone();
    let own = PreflightPeer { number: 0, addresses: opened, cookie, needs };
    let ends = [(1, of_third), (2, of_allowed)];
    let peers = ends.map(|(number, addresses)| PreflightPeer { number, addresses, cookie, needs });
    allowed.begin(2, &[own]).unwrap();
    session.send(&ToAgent::TryPath { number: 0, peers: peers.into() });
    let deadline = Instant::now() + LIMIT;
    while !allowed.is_over() && Instant::now() < deadline {
        allowed.step(POLL_TIMEOUT).unwrap();
    }
    let FromAgent::PathTried(reports) = session.answer() else { panic!() };
    let refused = "this agent does not allow rounds to exchange data with 127.0.0.2: start it with \
                   --peers 127.0.0.2";
    assert_eq!((reports[0].refused.as_deref(), &reports[0].tcp), (Some(refused), &None));
    assert_eq!((&reports[1].refused, &reports[1].tcp), (&None, &Some(Ok(()))));
    assert!(reports[1].acknowledged.contains(&1500), "{reports:?}");
    assert_eq!(allowed.report()[0].tcp, Some(Ok(())));
    assert!(listener.accept().is_err(), "somebody connected");
    assert!(datagrams.recv(&mut [0; 64]).is_err(), "something was sent");
    drop(session);
    daemon.await_no_processes();
}

#[test]
fn a_controller_behind_a_tunnel_reaches_no_port_of_the_daemon_s_host() {
    let scratch = Scratch::new();
    // As a tunnel's end on this host does, the controller comes from loopback.
    let daemon = Daemon::of(&scratch, Command::new(PROGRAM), "--listen 127.0.0.1:0");
    daemon.pair(&scratch);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let refused = "this agent does not allow rounds to exchange data with 127.0.0.1, because its \
                   controller comes from this same host, as it does behind a tunnel: start it with \
                   --peers 127.0.0.1";
    match connecting(&scratch, &daemon, "tcp", listener.local_addr().unwrap()) {
        FromAgent::Refused { sentence, .. } => assert_eq!(sentence, refused),
        other => panic!("{other:?}"),
    }
    assert!(listener.accept().is_err(), "somebody connected");
}

/// Asks the agent of a daemon for stamps of its kernel; returns what it says of them.
fn traced(scratch: &Scratch, options: &str) -> Result<(), String> {
    let daemon = paired(scratch, options);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut session = Session::greeted(scratch, &daemon);
    session.open_end(transport("tcp"), Role::Client, |asked| {
        asked.trace = Some(TraceRequest { kinds: vec![Kind::Queue], copied: CopiedAt::Stream });
    });
    let opened = session.answer();
    assert!(matches!(opened, FromAgent::Opened(_)), "{opened:?}");
    let address = format!("{}#0", listener.local_addr().unwrap());
    session.send(&ToAgent::Connect(vec![vec![Blob(address.into_bytes())]]));
    let connected = session.answer();
    assert!(matches!(connected, FromAgent::Connected(_)), "{connected:?}");
    session.send(&ToAgent::Start(None));
    session.send(&ToAgent::Stop);
    loop {
        if let FromAgent::Traced(report) = session.answer() {
            return report.map(drop);
        }
    }
}

#[test]
fn stamps_of_the_daemon_s_kernel_are_given_only_where_an_option_allows_it() {
    let scratch = Scratch::new();
    let denied = "this agent gives no stamps of its kernel, which carry names of other processes: \
                  start it with --kernel-stamps";
    assert_eq!(traced(&scratch, ""), Err(denied.to_string()));
    // Whether this kernel has them is another matter.
    let allowed = traced(&scratch, "--kernel-stamps");
    assert_ne!(allowed, Err(denied.to_string()), "{allowed:?}");
}

#[test]
fn a_daemon_uses_the_address_that_the_controller_reached_unless_told_otherwise() {
    let scratch = Scratch::new();
    let daemon = paired(&scratch, "");
    let other = Site::Address("127.0.0.3".parse().unwrap());
    let refused = "this agent does not allow rounds to use its address 127.0.0.3: start it with \
                   --bind 127.0.0.3";
    for (name, role) in [("tcp", Role::Server), ("udp", Role::Server), ("udp", Role::Client)] {
        let mut session = Session::greeted(&scratch, &daemon);
        session.open_end(transport(name), role, |asked| asked.site = Some(other.clone()));
        assert_eq!(session.refused(), refused, "{name}");
    }
    let mut session = Session::greeted(&scratch, &daemon);
    let everywhere = Site::Address("0.0.0.0".parse().unwrap());
    session.open_end(transport("tcp"), Role::Server, |asked| asked.site = Some(everywhere.clone()));
    assert!(session.refused().contains("its address 0.0.0.0"));
    let mut session = Session::greeted(&scratch, &daemon);
    let task = AnswerClock { site: other.clone(), clock: clock(), cookie: [7; 32], leaves: vec![] };
    session.send(&ToAgent::AnswerClock(Box::new(task)));
    assert!(session.refused().contains("its address 127.0.0.3"));
    let allowed = paired(&scratch, "--bind 127.0.0.0/8");
    let mut session = Session::greeted(&scratch, &allowed);
    session.open_end(transport("tcp"), Role::Server, |asked| asked.site = Some(other.clone()));
    let said = session.answer();
    assert!(matches!(said, FromAgent::Opened(_)), "{said:?}");
}

#[test]
fn clock_exchanges_answer_the_controller_s_host_alone() {
    let _ = Source::choose();
    let scratch = Scratch::new();
    let daemon = paired(&scratch, "");
    let mut session = Session::greeted(&scratch, &daemon);
    let task = AnswerClock { site: Site::Session, clock: clock(), cookie: [7; 32], leaves: vec![] };
    session.send(&ToAgent::AnswerClock(Box::new(task)));
    let FromAgent::ClockAddress(at) = session.answer() else { panic!() };
    // A third host that knows the cookie, or whose address was forged.
    let asking = |from: &str| {
        let from = SocketAddr::new(from.parse().unwrap(), 0);
        ExchangeEnd::bind(from, clock(), [7; 32]).unwrap()
    };
    let answered = asking("127.0.0.1").ask(at, LIMIT).unwrap();
    assert!(answered.is_some(), "the controller is answered");
    // What is answered was asked later: its answer shows that the others were passed over.
    let mut third = asking("127.0.0.2");
    assert!(third.ask(at, Duration::from_millis(1)).unwrap().is_none());
    assert!(asking("127.0.0.1").ask(at, LIMIT).unwrap().is_some());
    assert!(third.ask(at, Duration::from_millis(200)).unwrap().is_none());
}

#[test]
fn rounds_share_the_memory_that_a_daemon_has_for_all() {
    let scratch = Scratch::new();
    let daemon = paired(&scratch, "--total-memory 6MiB");
    daemon.await_log("6 MiB for all rounds");
    let open = || {
        let mut session = Session::greeted(&scratch, &daemon);
        session.open_end(transport("tcp"), Role::Server, |asked| asked.remote_rows = Some(100_000));
        let said = session.answer();
        (session, said)
    };
    let (first, said) = open();
    assert!(matches!(said, FromAgent::Opened(_)), "{said:?}");
    let (_, said) = open();
    let FromAgent::Refused { wrong_use: false, sentence } = said else { panic!("{said:?}") };
    assert!(sentence.contains("of the 6 MiB that this agent allows for all rounds"), "{sentence}");
    drop(first);
    daemon.await_no_processes();
    until("there is room again", SOON, || matches!(open().1, FromAgent::Opened(_)));
}

/// The frames that controllers have sent, each session's: the seeds of the fuzzer.
fn recorded() -> Vec<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/agent_inspector");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    files.sort();
    let frames = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        let mut bytes = &bytes[..];
        std::iter::from_fn(|| frame::read_body(&mut bytes).ok()).collect()
    };
    files.iter().map(frames).collect()
}

fn framed(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    bodies.iter().for_each(|body| frame::write_body(&mut all, body).unwrap());
    all
}

/// Hostile sessions of a usual run. All together take ten minutes: many are rounds of hundreds of
/// connections.
const USUAL_SESSIONS: usize = 800;

/// Returns the hostile sessions of this run: the first of each kind, and others that are drawn, as
/// many as `FAULTS` says where it is set.
fn drawn_sessions(random: &mut Random) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = hostile_sessions(random);
    let count = all.len();
    let asked = std::env::var("FAULTS").ok().map(|text| text.parse().unwrap());
    let wanted = asked.unwrap_or(USUAL_SESSIONS).max(USUAL_SESSIONS);
    let mut known = BTreeSet::new();
    all.retain(|(kind, _)| known.insert(*kind) || random.next(count) < wanted);
    all
}

/// The bytes of hostile sessions, each with its kind.
fn hostile_sessions(random: &mut Random) -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&str, Vec<u8>)> = Vec::new();
    let noise: Vec<u8> = (0..5000).map(|_| random.next(256) as u8).collect();
    all.push(("noise", noise.clone()));
    all.push(("nothing", Vec::new()));
    let sessions = recorded();
    for session in &sessions {
        for end in 0..session.len() {
            let before = framed(&session[..end]);
            let with = |more: &[u8]| [&before[..], more].concat();
            all.push(("cut off between frames", before.clone()));
            let next = framed(&session[end..=end]);
            all.push(("cut off within a frame", with(&next[..next.len() / 2])));
            all.push(("oversize", with(&(LONGEST as u32 + 1).to_le_bytes())));
            all.push(("oversize", with(&[0xff; 4])));
            all.push(("noise in a frame", with(&framed(&[noise[..600].to_vec()]))));
            all.push(("an empty frame", with(&framed(&[Vec::new()]))));
            all.push(("a frame again", with(&framed(&[&session[end..=end]; 3].concat()))));
            all.push(("frames left out", framed(&session[end..])));
            for _ in 0..2 {
                let mut body = session[end].clone();
                let bit = random.next(8 * body.len());
                body[bit / 8] ^= 1 << (bit % 8);
                let rest = [&[body], &session[end + 1..]].concat();
                all.push(("a flipped bit", with(&framed(&rest))));
            }
        }
        let greeted = framed(&session[..1]);
        let with = |more: &[u8]| [&greeted[..], more].concat();
        all.push(("the largest frame", with(&framed(&[vec![0xff; LONGEST]]))));
        let many = ToAgent::Connect(vec![Vec::new(); 500_000]);
        all.push(("lies in sizes", with(&framed(&[postcard::to_stdvec(&many).unwrap()]))));
        let many = ToAgent::Connect(vec![vec![Blob::default(); 1024]; 64]);
        let many = vec![postcard::to_stdvec(&many).unwrap(); NOT_DUE];
        all.push(("addresses without end", [framed(session), framed(&many)].concat()));
        let mut backwards = session.clone();
        backwards.reverse();
        all.push(("out of order", framed(&backwards)));
        let stop = postcard::to_stdvec(&ToAgent::Stop).unwrap();
        all.push(("a flood", [framed(session), framed(&vec![stop; 10_000])].concat()));
    }
    all
}

/// The command line of a process; empty where it has ended.
fn command_line(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Returns the most memory of its own of any process that a daemon has, seen now and then until
/// `is_over`, in KiB: the pages of the program and its libraries, which all share, do not count.
fn watch_agents(daemon: &Daemon, is_over: &AtomicBool) -> u64 {
    let of_daemon = command_line(daemon.pid());
    let mut peak = 0;
    while !is_over.load(Ordering::Relaxed) {
        // A child that has not called exec(2) yet shows the daemon's memory.
        let agents = daemon.processes().into_iter().filter(|pid| command_line(*pid) != of_daemon);
        peak = agents.filter_map(|pid| status(pid, "RssAnon:")).fold(peak, u64::max);
        std::thread::sleep(Duration::from_millis(10));
    }
    peak
}

#[test]
fn no_controller_brings_a_daemon_down_or_fills_its_memory() {
    let scratch = Scratch::new();
    let daemon = paired(&scratch, "");
    let begin = Instant::now();
    let sessions = drawn_sessions(&mut Random(2));
    let (next, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (is_over, of_agents) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| of_agents.store(watch_agents(&daemon, &is_over), Ordering::Relaxed));
        let each = std::array::from_fn::<_, AT_ONCE, _>(|_| {
            scope.spawn(|| {
                while let Some((_, bytes)) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut session = Session::open(&scratch, &daemon);
                    // Where the daemon has had enough it closes while more is sent.
                    let _ = session.writer.write_all(bytes);
                    session.writer.close();
                    answered.fetch_add(session.drain(), Ordering::Relaxed);
                }
            })
        });
        let ended = each.map(|one| one.join());
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    let of_agents = of_agents.into_inner();
    assert!((1..MOST_OF_AGENT_KIB).contains(&of_agents), "an agent has {of_agents} KiB");
    let mut kinds = BTreeMap::<&str, u32>::new();
    sessions.iter().for_each(|(kind, _)| *kinds.entry(kind).or_default() += 1);
    let (count, answered) = (sessions.len(), answered.into_inner());
    // One byte of a greeting a second, of as many sessions as there may be, holds up nobody else.
    let hello =
        ToAgent::Hello { magic: MAGIC, version: VERSION, secret: [0; 32], asks_program: false };
    let hello = framed(&[postcard::to_stdvec(&hello).unwrap()]);
    let mut dripping: Vec<Session> = (0..40).map(|_| Session::open(&scratch, &daemon)).collect();
    for byte in &hello[..3] {
        dripping.iter_mut().for_each(|one| drop(one.writer.write_all(&[*byte])));
        std::thread::sleep(Duration::from_millis(100));
    }
    let ended = driven(&scratch, &daemon.host(), PACED);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    drop(dripping);
    daemon.await_no_processes();
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
    assert!(!daemon.log().contains(|c: char| c.is_control() && c != '\n'));
    let peak = daemon.peak_kib();
    assert!(peak < MOST_KIB, "{peak} KiB");
    println!(
        "{count} hostile controllers in {:.0} s ({kinds:?}, {answered} B of answers), 40 slow \
         ones: none lost, the most memory {peak} KiB, of an agent {of_agents} KiB",
        begin.elapsed().as_secs_f64()
    );
}
