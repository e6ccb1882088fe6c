//! Between arm and disarm of a measured loop nothing is allocated (rule 5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::mpsc::channel;
use wiregauge::clock::{AnyClock, TickSpan};
use wiregauge::loops::gate::Gate;
use wiregauge::loops::role::{self, LoopContext};
use wiregauge::loops::schedule::Generator;
use wiregauge::loops::stream::{Steps, Streaming};
use wiregauge::loops::{Ended, Loop};
use wiregauge::plan::rpc::{Draws, Wanted};
use wiregauge::plan::{Case, Direction, Pattern, Request, Schedule, Stream, Wait, stream};
use wiregauge::sample::arena::Arena;
use wiregauge::sample::recorder::Recorder;
use wiregauge::signal::signal::Source;
use wiregauge::transport::endpoint_set::EndpointSet;
use wiregauge::transport::{Blob, Opening, Role, TransportKind};
use wiregauge::units::{Bytes, MessageRate};

/// Counts what the calling thread allocates and frees while it is armed.
struct Counting;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    if ARMED.get() {
        COUNT.set(COUNT.get() + 1);
    }
}

// SAFETY: every call is passed on to the system's allocator as it came; the counters are
// thread-local cells without destructors, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note();
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: passed on to the caller.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs one role on a connected endpoint; how it ended and what was allocated meanwhile.
fn run(
    case: &Case,
    role: Role,
    gate: &Gate,
    opening: Box<dyn Opening>,
    other: &Blob,
) -> (Ended, u64) {
    let ticks = |span: wiregauge::units::Span| TickSpan(span.0 as i64);
    let plan = Loop::of(case, ticks);
    let time = wiregauge::clock::Timebase::nanoseconds(wiregauge::clock::Ticks(0));
    let mut arena = Arena::create(2000).unwrap();
    let generator = match role {
        Role::Client => Generator::of(case, &time).unwrap(),
        Role::Server => None,
    };
    let mut recorder = Recorder::new(&mut arena, case.warmup);
    let stream = case.stream.as_ref().filter(|_| role == Role::Client);
    let mut steps = stream.map(|stream| {
        let source = Source::new(stream.shape, stream.values as usize, case.seed);
        Steps::new(source, case.schedule.rate().unwrap().0, time, 0)
    });
    let context = LoopContext {
        case,
        role,
        gate,
        plan: &plan,
        generator,
        store: None,
        stream: steps.as_mut().map(Streaming::From),
        spin: TickSpan(1000),
    };
    // The clock of the loops that are compiled apart; its rate does not matter here.
    let clock = AnyClock::Tsc;
    let mut endpoint = opening.connect(other).unwrap().endpoint;
    if let Some(draws) = Draws::of(case, 0) {
        let mut set = EndpointSet::new(vec![endpoint], None).unwrap();
        return counted(|| role::run_rpc(&mut set, clock, context, draws, &mut recorder));
    }
    counted(|| role::run(&mut endpoint, clock, context, &mut recorder))
}

/// What was allocated and freed meanwhile.
fn counted(run: impl FnOnce() -> Ended) -> (Ended, u64) {
    COUNT.set(0);
    ARMED.set(true);
    let ended = run();
    ARMED.set(false);
    (ended, COUNT.get())
}

/// Both ends of a case, each on a thread: how they ended, and how often memory was asked for.
fn ends_of(case: &Case) -> [(Ended, u64); 2] {
    let (to_server, from_client) = channel();
    let (to_client, from_server) = channel();
    let gates = [Gate::default(), Gate::default()];
    std::thread::scope(|scope| {
        let ends = [(Role::Server, to_client, from_client), (Role::Client, to_server, from_server)];
        let gates = &gates;
        let ends = ends.map(|(role, tell, told)| {
            scope.spawn(move || {
                let opening = case.transport.open(&role::setup(case, role, [1; 32])).unwrap();
                tell.send(opening.address()).unwrap();
                let own = &gates[usize::from(role == Role::Server)];
                let outcome = run(case, role, own, opening, &told.recv().unwrap());
                // As the driver says it when the client has ended.
                gates[1].expect(case.bound.count.unwrap() + case.warmup);
                outcome
            })
        });
        ends.map(|end| end.join().unwrap())
    })
}

/// A case whose loop is armed with what it makes before its first message: as much for few messages
/// as for many.
fn asks_for_as_much(case: Case) {
    let label = case.label();
    let of = |count: u64| {
        let mut case = case.clone();
        case.bound.count = Some(count);
        let ends = ends_of(&case);
        // The client's end may be gone before the server has looked.
        let planned = |ended: Ended| ended.as_planned() || ended == Ended::Closed;
        assert!(ends.iter().all(|(ended, _)| planned(*ended)), "{label}: {ends:?}");
        ends.map(|(_, allocated)| allocated)
    };
    assert_eq!(of(200), of(1800), "{label}");
}

fn asks_for_nothing(case: Case) {
    if case.transport.descriptor().one_process {
        let opening = case.transport.open(&role::setup(&case, Role::Client, [1; 32])).unwrap();
        let outcome = run(&case, Role::Client, &Gate::default(), opening, &Blob::default());
        assert_eq!(outcome, (Ended::Count, 0), "{}", case.label());
        return;
    }
    for (ended, count) in ends_of(&case) {
        assert!(ended.as_planned(), "{}: {ended:?}", case.label());
        assert_eq!(count, 0, "{}: so often memory was asked for", case.label());
    }
}

fn case(pattern: Pattern, transport: TransportKind, wait: Wait) -> Case {
    let request = Request {
        transports: vec![transport],
        waits: vec![wait],
        sizes: vec![Bytes(64)],
        count: Some(1000),
        check: true,
        ..Request::new(pattern)
    };
    request.plan().unwrap().cases.remove(0)
}

#[test]
fn the_counter_counts() {
    ARMED.set(true);
    drop(std::hint::black_box(vec![1u8; 100]));
    ARMED.set(false);
    assert_eq!(COUNT.get(), 2);
}

#[test]
fn no_loop_asks_for_memory() {
    use TransportKind::{Null, Shm, Tcp, Unix};
    for wait in Wait::ALL {
        for transport in [Null, Shm, Tcp, Unix] {
            asks_for_nothing(case(Pattern::Latency, transport, *wait));
            if transport == Null {
                continue;
            }
            asks_for_nothing(case(Pattern::Oneway, transport, *wait));
            let rate = MessageRate(100_000.0);
            let schedule = Schedule::Poisson { rate };
            let open = Case { schedule, ..case(Pattern::Oneway, transport, *wait) };
            asks_for_nothing(open);
            let uni = case(Pattern::Bandwidth, transport, *wait);
            asks_for_nothing(Case { direction: Direction::Bi, ..uni.clone() });
            asks_for_nothing(uni);
        }
    }
}

#[test]
fn no_message_of_load_rpc_or_stream_asks_for_memory() {
    let rate = MessageRate(50_000.0);
    let poisson = Schedule::Poisson { rate };
    for transport in [TransportKind::Shm, TransportKind::Tcp] {
        for (schedule, clients) in [(poisson, 0), (Schedule::ClosedLoop, 4)] {
            let request = || Request {
                transports: vec![transport],
                schedule,
                clients: (clients > 0).then_some(clients).into_iter().collect(),
                rates: (clients == 0).then_some(rate).into_iter().collect(),
                count: Some(1000),
                warmup: Some(0),
                ..Request::new(Pattern::Load)
            };
            let load = request();
            asks_for_as_much(load.plan().unwrap().cases.remove(0));
            let wanted = Wanted { baseline: false, ..Wanted::default() };
            let rpc = Request { rpc: Some(wanted), ..request() };
            asks_for_as_much(rpc.plan().unwrap().cases.remove(0));
        }
        let stream = Request {
            transports: vec![transport],
            schedule: Schedule::Periodic { rate },
            sizes: vec![stream::message(8)],
            count: Some(1000),
            warmup: Some(0),
            stream: Some(Stream::default()),
            ..Request::new(Pattern::Oneway)
        };
        asks_for_as_much(stream.plan().unwrap().cases.remove(0));
    }
}
