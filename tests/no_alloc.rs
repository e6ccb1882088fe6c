//! Between arm and disarm of a measured loop nothing is allocated (rule 5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::mpsc::channel;
use wiregauge::clock::{KernelClock, TickSpan};
use wiregauge::pattern::gate::Gate;
use wiregauge::pattern::role::{self, Part};
use wiregauge::pattern::schedule::Generator;
use wiregauge::pattern::{Ended, Loop};
use wiregauge::plan::{Case, Direction, Pattern, Request, Schedule, Wait};
use wiregauge::sample::arena::Arena;
use wiregauge::sample::recorder::Recorder;
use wiregauge::transport::{
    Blob, Opening, Role, Transport, TransportKind, Visitor, with_transport,
};
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

/// Plays one role on a connected endpoint; how it ended and what was allocated meanwhile.
fn play<T: Transport>(case: &Case, role: Role, opening: T::Opening, other: &Blob) -> (Ended, u64) {
    let mut endpoint = opening.connect(other).unwrap();
    let ticks = |span: wiregauge::units::Span| TickSpan(span.0 as i64);
    let plan = Loop::of(case, ticks);
    let time = wiregauge::clock::Timebase::nanoseconds(wiregauge::clock::Ticks(0));
    let mut arena = Arena::create(2000).unwrap();
    let generator = match role {
        Role::Client => Generator::of(case, &time).unwrap(),
        Role::Server => None,
    };
    let gate = Gate::default();
    let mut recorder = Recorder::new(&mut arena, case.warmup);
    let part = Part {
        endpoint: &mut endpoint,
        clock: KernelClock::MONOTONIC_RAW,
        gate: &gate,
        plan: &plan,
        generator,
        store: None,
        stream: None,
    };
    COUNT.set(0);
    ARMED.set(true);
    let ended = role::play(case, role, part, &mut recorder, TickSpan(1000));
    ARMED.set(false);
    (ended, COUNT.get())
}

struct Both(Case);

impl Visitor for Both {
    type Output = ();

    fn visit<T: Transport>(self) {
        let case = &self.0;
        if case.transport.descriptor().one_process {
            let opening = T::open(&role::setup(case, Role::Client, [1; 32])).unwrap();
            let (ended, count) = play::<T>(case, Role::Client, opening, &Blob::default());
            assert_eq!((ended, count), (Ended::Count, 0), "{}", case.label());
            return;
        }
        let (to_server, from_client) = channel();
        let (to_client, from_server) = channel();
        std::thread::scope(|scope| {
            let ends =
                [(Role::Server, to_client, from_client), (Role::Client, to_server, from_server)];
            let ends = ends.map(|(role, tell, told)| {
                scope.spawn(move || {
                    let opening = T::open(&role::setup(case, role, [1; 32])).unwrap();
                    tell.send(opening.address()).unwrap();
                    play::<T>(case, role, opening, &told.recv().unwrap())
                })
            });
            for end in ends {
                let (ended, count) = end.join().unwrap();
                assert!(ended.as_planned(), "{}: {ended:?}", case.label());
                assert_eq!(count, 0, "{}: so often memory was asked for", case.label());
            }
        });
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
            with_transport(transport, Both(case(Pattern::Latency, transport, *wait)));
            if transport == Null {
                continue;
            }
            with_transport(transport, Both(case(Pattern::Oneway, transport, *wait)));
            let rate = MessageRate(100_000.0);
            let schedule = Schedule::Poisson { rate };
            let open = Case { schedule, ..case(Pattern::Oneway, transport, *wait) };
            with_transport(transport, Both(open));
            let uni = case(Pattern::Bandwidth, transport, *wait);
            with_transport(transport, Both(Case { direction: Direction::Bi, ..uni.clone() }));
            with_transport(transport, Both(uni));
        }
    }
}
