//! Between arm and disarm of a measured loop nothing is allocated (rule 5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::mpsc::channel;
use wiregauge::agent::execution::ThreadContext;
use wiregauge::agent::setup::setup;
use wiregauge::clock::{AnyClock, TickSpan, Ticks, Timebase};
use wiregauge::loops::gate::Gate;
use wiregauge::loops::schedule::Generator;
use wiregauge::loops::waiter::AnyWaiter;
use wiregauge::loops::{Ended, LoopContext};
use wiregauge::pattern::bandwidth::Direction;
use wiregauge::pattern::{bandwidth, latency, load, oneway, registry, rpc, stream};
use wiregauge::plan::{Case, Request, Schedule, Wait};
use wiregauge::sample::arena::Arena;
use wiregauge::sample::recorder::Recorder;
use wiregauge::transport::endpoint_set::EndpointSet;
use wiregauge::transport::{Blob, Opening, Role, TransportKind};
use wiregauge::units::{Bytes, MessageRate, Span};
use wiregauge_test_support::bounded::Bound;

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
fn run(case: &Case, role: Role, gate: &Gate, opening: Opening, other: &Blob) -> (Ended, u64) {
    let time = Timebase::nanoseconds(Ticks(0));
    let mut arena = Arena::create(2000).unwrap();
    let thread = ThreadContext {
        case,
        role,
        thread: 0,
        time: &time,
        epoch_of_day_ns: 0,
        rows: arena.capacity() as u64,
        free_cpu: None,
        cpu_beside: None,
        shares_cpu: false,
        is_remote: false,
    };
    let pattern = registry::execution(case.pattern.name()).unwrap();
    let (plan, mut role_loop) = thread.prepare(pattern).unwrap();
    let generator = match role {
        Role::Client | Role::Node => Generator::of(case, &time).unwrap(),
        Role::Server => None,
    };
    let mut recorder = Recorder::new(&mut arena, case.warmup);
    // The clock of the loops that are compiled apart; its rate does not matter here.
    let clock = AnyClock::Tsc;
    let waiter = AnyWaiter::new(case.wait, TickSpan(1000));
    let endpoint = opening.connect(other).unwrap().endpoint;
    let mut endpoints = EndpointSet::new(vec![endpoint], None).unwrap();
    role_loop.connected(&endpoints).unwrap();
    let (endpoint, plan, recorder) = (&mut endpoints, &plan, &mut recorder);
    let context = LoopContext { endpoint, waiter, clock, gate, plan, generator, recorder };
    counted(|| role_loop.run(context))
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
    let _bound = Bound::new();
    let (to_server, from_client) = channel();
    let (to_client, from_server) = channel();
    let gates = [Gate::default(), Gate::default()];
    std::thread::scope(|scope| {
        let ends = [(Role::Server, to_client, from_client), (Role::Client, to_server, from_server)];
        let gates = &gates;
        let ends = ends.map(|(role, tell, told)| {
            scope.spawn(move || {
                let opening = case.transport.open(&setup(case, role, [1; 32])).unwrap();
                tell.send(opening.address.clone()).unwrap();
                let own = &gates[usize::from(role == Role::Server)];
                let outcome = run(case, role, own, opening, &told.recv().unwrap());
                // As the controller says it when the client has ended.
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
        let opening = case.transport.open(&setup(&case, Role::Client, [1; 32])).unwrap();
        let outcome = run(&case, Role::Client, &Gate::default(), opening, &Blob::default());
        assert_eq!(outcome, (Ended::Count, 0), "{}", case.label());
        return;
    }
    for (ended, count) in ends_of(&case) {
        assert!(ended.as_planned(), "{}: {ended:?}", case.label());
        assert_eq!(count, 0, "{}: so often memory was asked for", case.label());
    }
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
        count: Some(1000),
        check: true,
        ..request
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
            let latency = latency::request(Default::default());
            asks_for_nothing(case(latency, transport, *wait));
            if transport == Null {
                continue;
            }
            asks_for_nothing(case(oneway(), transport, *wait));
            let rate = MessageRate(100_000.0);
            let schedule = Schedule::Poisson { rate };
            let open = Case { schedule, ..case(oneway(), transport, *wait) };
            asks_for_nothing(open);
            let window = oneway::Spec { outstanding: Some(16), burst: Some(100), pause: Span(50) };
            asks_for_nothing(case(oneway::request(window), transport, *wait));
            for direction in [Direction::Bi, Direction::Uni] {
                asks_for_nothing(case(bandwidth(direction), transport, *wait));
            }
        }
    }
}

/// The first case of a request over a transport, without a warm-up.
fn first(request: Request, transport: TransportKind) -> Case {
    let transports = vec![transport];
    let request = Request { transports, count: Some(1000), warmup: Some(0), ..request };
    request.plan().unwrap().cases.remove(0)
}

#[test]
fn no_message_of_load_rpc_or_stream_asks_for_memory() {
    let rate = MessageRate(50_000.0);
    let poisson = Schedule::Poisson { rate };
    for transport in [TransportKind::Shm, TransportKind::Tcp] {
        for (schedule, clients) in [(poisson, 0), (Schedule::ClosedLoop, 4)] {
            let rates: Vec<_> = (clients == 0).then_some(rate).into_iter().collect();
            let clients: Vec<_> = (clients > 0).then_some(clients).into_iter().collect();
            let load = load::LoadRequest {
                rates: rates.clone(),
                clients: clients.clone(),
                ..load::LoadRequest::default()
            };
            let rpc =
                rpc::RpcRequest { rates, clients, baseline: false, ..rpc::RpcRequest::default() };
            for request in [load::request(load), rpc::request(rpc)] {
                asks_for_as_much(first(Request { schedule, ..request }, transport));
            }
        }
        let stream =
            stream::StreamRequest { rates: vec![rate], ..stream::StreamRequest::default() };
        asks_for_as_much(first(stream::request(stream, &[8]), transport));
    }
}
