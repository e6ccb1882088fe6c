//! From a case and a role to the loop that plays it.

use super::gate::Gate;
use super::load::{Line, OneServer, Outstanding};
use super::receivers::{Given, Split};
use super::rpc::{self, Mesh};
use super::schedule::Generator;
use super::store::Store;
use super::stream::{self, Streaming};
use super::waiter::{Adaptive, Any, Block, Busy, Waiter};
use super::{Ended, Loop, bandwidth, closed, load, one_sided, open, store};
use crate::clock::{Clock, TickSpan};
use crate::plan::load::MOST_BUFFERS;
use crate::plan::rpc::Draws;
use crate::plan::{Case, Direction, Pattern, Schedule};
use crate::sample::recorder::Recorder;
use crate::signal::TimeOfDay;
use crate::transport::fan::Fan;
use crate::transport::{Endpoint, Role, Setup, Site, Traffic, Wait};
use crate::units::Span;

/// How long an adaptive wait polls before it sleeps: about what a sleep and a wake-up cost, so that
/// it never takes more than twice the better of the two (the classic competitive argument).
pub const ADAPTIVE_SPIN: Span = Span(50_000);
/// Memory for the sending slots of one connection of `rpc`.
const RPC_BYTES: u64 = 4 << 20;
/// How long a receiver goes on after the sender has ended: many times any queue's delay on a path
/// that is worth measuring.
const DRAIN: Span = Span(200_000_000);
/// Between the start of an open loop and its first intended time.
const LEAD: Span = Span(1_000_000);
/// One sample of a bandwidth round stands for about so many bytes, so that a clock reading (about
/// 20 ns) stays below a hundredth of the time that they take at 100 GB/s ...
const STRIDE_BYTES: u64 = 16 << 10;
/// ... and for at most so many messages.
const MOST_STRIDE: u64 = 256;

/// Whether the other end takes no part.
pub fn is_one_sided(case: &Case) -> bool {
    case.settings.operation().is_one_sided(case.pattern == Pattern::Bandwidth)
}

/// What flows in a case.
pub fn traffic(case: &Case) -> Traffic {
    if is_one_sided(case) {
        return Traffic::OneSided;
    }
    match (case.pattern, case.schedule, case.direction) {
        (Pattern::Latency | Pattern::Load, ..) => Traffic::Echo { every: 1 },
        (Pattern::Oneway, Schedule::ClosedLoop, _) => Traffic::Echo { every: case.burst.max(1) },
        (Pattern::Oneway, ..) | (Pattern::Bandwidth, _, Direction::Uni) => Traffic::Forward,
        (Pattern::Bandwidth, _, Direction::Bi) => Traffic::Both,
    }
}

/// Messages for one sample of a case.
pub fn stride(case: &Case) -> u64 {
    match case.pattern {
        Pattern::Bandwidth => (STRIDE_BYTES / case.size.0.max(1)).clamp(1, MOST_STRIDE),
        Pattern::Latency | Pattern::Oneway | Pattern::Load => 1,
    }
}

/// What the transport is told.
pub fn setup(case: &Case, role: Role, cookie: [u8; 32]) -> Setup {
    Setup {
        role,
        traffic: traffic(case),
        wait: case.wait,
        size: case.size.0 as usize,
        // A closed loop never has more than a burst on the way.
        window: match (traffic(case), case.pattern) {
            (_, Pattern::Load) if case.rpc.is_some() => rpc_window(case),
            (_, Pattern::Load) => MOST_BUFFERS,
            (Traffic::Echo { .. }, _) | (Traffic::OneSided, Pattern::Latency) => case.burst,
            (Traffic::Forward | Traffic::Both | Traffic::OneSided, _) => {
                case.window.max(case.burst)
            }
        },
        loss_after: case.loss_after,
        timeout: case.timeout,
        cookie,
        seed: case.seed,
        site: site(case, role),
        opened: TimeOfDay::default(),
        kind: case.stream.as_ref().map(|stream| stream.shape.kind).unwrap_or_default(),
        settings: case.settings_of(role),
    }
}

/// Slots of one connection of `rpc`: so many that their memory stays within what a cache holds,
/// since the kernel's buffers, or the ring's, are queues of their own.
pub fn rpc_window(case: &Case) -> u32 {
    (RPC_BYTES / case.size.0.max(1)).clamp(2, u64::from(MOST_BUFFERS)) as u32
}

/// Where an end is to be reached on the host that starts it.
fn site(case: &Case, role: Role) -> Site {
    let named = case.settings.interfaces();
    named.map_or(Site::Loopback, |names| Site::Interface(names.of(role).to_string()))
}

impl Loop {
    /// A case as its loops need it. `ticks` turns a span into ticks of the clock that they read.
    pub fn of(case: &Case, ticks: impl Fn(Span) -> TickSpan) -> Loop {
        let every = match traffic(case) {
            Traffic::Echo { every } => every,
            Traffic::Forward | Traffic::Both | Traffic::OneSided => 0,
        };
        Loop {
            size: case.size.0 as usize,
            messages: case.bound.count.map_or(u64::MAX, |n| n.saturating_add(case.warmup)),
            warmup: case.warmup,
            time: case.bound.time.map(&ticks),
            pause: ticks(case.pause),
            burst: u64::from(case.burst.max(1)),
            window: u64::from(case.window.max(case.burst)),
            every,
            check: case.check,
            loss_after: case.transport.loses(&case.settings).then(|| ticks(case.loss_after)),
            drain: ticks(DRAIN),
            lead: ticks(LEAD),
            stride: stride(case),
            completions: case.pattern == Pattern::Oneway
                && case.transport.completes_each(&case.settings),
            reads_send: case.settings.stamps_send(),
            load: case.load,
            stamper: None,
        }
    }
}

/// One role of one round: everything that a loop reads.
pub struct Part<'a, E, C> {
    /// The connected end.
    pub endpoint: &'a mut E,
    /// The clock that stamps.
    pub clock: C,
    /// How the world outside reaches in.
    pub gate: &'a Gate,
    /// The case in ticks.
    pub plan: &'a Loop,
    /// What says when to send, where the case has a schedule and this role sends by it.
    pub generator: Option<Generator>,
    /// The objects that a server of `load` reads.
    pub store: Option<Store>,
    /// What a stream has beside the messages of oneway.
    pub stream: Option<Streaming<'a>>,
}

impl<'a, E, C> Part<'a, E, C> {
    /// The same over another end.
    pub fn over<F>(self, endpoint: &'a mut F) -> Part<'a, F, C> {
        let Part { clock, gate, plan, generator, store, stream, .. } = self;
        Part { endpoint, clock, gate, plan, generator, store, stream }
    }
}

/// Plays a role to its end: the one place where a wait mode and a pattern become a loop.
pub fn play<E: Endpoint, C: Clock>(
    case: &Case,
    role: Role,
    part: Part<'_, E, C>,
    recorder: &mut Recorder<'_>,
    adaptive_spin: TickSpan,
) -> Ended {
    if part.stream.is_some() {
        return play_stream(case, part, recorder, adaptive_spin);
    }
    match case.wait {
        Wait::Busy => play_waiting(case, role, part, recorder, Busy),
        Wait::Block => play_waiting(case, role, part, recorder, Block),
        Wait::Adaptive => {
            play_waiting(case, role, part, recorder, Adaptive { spin: adaptive_spin })
        }
    }
}

fn play_waiting<E: Endpoint, C: Clock, W: Waiter>(
    case: &Case,
    role: Role,
    part: Part<'_, E, C>,
    recorder: &mut Recorder<'_>,
    waiter: W,
) -> Ended {
    let Part { endpoint, clock, gate, plan, generator, store, .. } = part;
    if is_one_sided(case) {
        return match (case.pattern, case.direction, role) {
            (Pattern::Latency | Pattern::Oneway | Pattern::Load, _, Role::Client) => {
                one_sided::latency(endpoint, waiter, clock, gate, plan, recorder)
            }
            (Pattern::Bandwidth, Direction::Bi, _) | (Pattern::Bandwidth, _, Role::Client) => {
                one_sided::stream(endpoint, waiter, clock, gate, plan, recorder)
            }
            (_, _, Role::Server) => one_sided::memory(gate, recorder),
        };
    }
    match (case.pattern, role) {
        (Pattern::Latency, Role::Client) => {
            closed::client(endpoint, waiter, clock, gate, plan, recorder)
        }
        (Pattern::Latency, Role::Server) => {
            closed::server::<_, _, _, false>(endpoint, waiter, clock, gate, plan, recorder)
        }
        (Pattern::Oneway, Role::Client) => match generator {
            None => closed::client(endpoint, waiter, clock, gate, plan, recorder),
            Some(generator) => {
                open::sender(endpoint, waiter, clock, gate, plan, generator, recorder)
            }
        },
        (Pattern::Oneway, Role::Server) => {
            closed::server::<_, _, _, true>(endpoint, waiter, clock, gate, plan, recorder)
        }
        (Pattern::Load, role) => {
            let part = Part { endpoint, clock, gate, plan, generator, store, stream: None };
            play_load(role, part, recorder, waiter)
        }
        (Pattern::Bandwidth, role) => match (case.direction, role) {
            (Direction::Bi, _) => bandwidth::both(endpoint, waiter, clock, gate, plan, recorder),
            (Direction::Uni, Role::Client) => {
                bandwidth::sender(endpoint, waiter, clock, gate, plan, recorder)
            }
            (Direction::Uni, Role::Server) => {
                bandwidth::receiver(endpoint, waiter, clock, gate, plan, recorder)
            }
        },
    }
}

/// Compiled once for all wait modes: a source polls while it has no room, and a receiver's mode is
/// looked at once a wait.
#[inline(never)]
fn play_stream<E: Endpoint, C: Clock>(
    case: &Case,
    part: Part<'_, E, C>,
    recorder: &mut Recorder<'_>,
    spin: TickSpan,
) -> Ended {
    let Part { endpoint, clock, gate, plan, generator, stream, .. } = part;
    match (stream, generator) {
        (Some(Streaming::From(steps)), Some(generator)) => {
            stream::source(endpoint, Busy, clock, gate, plan, generator, steps, recorder)
        }
        (Some(Streaming::To(sink)), _) => {
            let waiter = Any::of(case.wait, spin);
            closed::server_with::<_, _, _, _, true>(
                endpoint, waiter, clock, gate, plan, sink, recorder,
            )
        }
        // A source is never without its schedule: the plan refuses it.
        (Some(Streaming::From(_)) | None, _) => Ended::Stopped,
    }
}

fn play_load<E: Endpoint, C: Clock, W: Waiter>(
    role: Role,
    part: Part<'_, E, C>,
    recorder: &mut Recorder<'_>,
    waiter: W,
) -> Ended {
    let Part { endpoint, clock, gate, plan, generator, store, .. } = part;
    if role == Role::Server {
        let store = store.unwrap_or_else(|| Store::of(&plan.load));
        return match plan.load.buffers {
            // Its polls are timed, so it makes them.
            Some(_) => {
                store::server::<_, _, _, true>(endpoint, Busy, clock, gate, plan, &store, recorder)
            }
            None => store::server::<_, _, _, false>(
                endpoint, waiter, clock, gate, plan, &store, recorder,
            ),
        };
    }
    let mut line = OneServer::over(endpoint, plan);
    ask(&mut line, waiter, (clock, gate, plan), generator, recorder)
}

/// Plays a role of `rpc`. Compiled once for all wait modes, as a stream.
#[inline(never)]
pub fn play_rpc<E: Endpoint, C: Clock>(
    case: &Case,
    role: Role,
    part: Part<'_, Fan<E>, C>,
    draws: Draws,
    recorder: &mut Recorder<'_>,
    spin: TickSpan,
) -> Ended {
    let Part { endpoint: fan, clock, gate, plan, generator, .. } = part;
    let waiter = Any::of(case.wait, spin);
    if role == Role::Server {
        return rpc::server(fan, waiter, clock, gate, plan, recorder);
    }
    let mut line = Mesh::over(fan, draws);
    ask(&mut line, waiter, (clock, gate, plan), generator, recorder)
}

/// Plays the client of `rpc` whose replies other threads take.
#[inline(never)]
pub fn play_split<E: Endpoint, C: Clock>(
    part: Part<'_, Fan<E>, C>,
    draws: Draws,
    given: &mut [Given],
    recorder: &mut Recorder<'_>,
) -> Ended {
    let Part { endpoint: fan, clock, gate, plan, generator, .. } = part;
    let mut line = Split::over(fan, draws, given);
    ask(&mut line, Any::Busy, (clock, gate, plan), generator, recorder)
}

/// Asks by a schedule, or in a closed loop where there is none.
fn ask<L: Line, W: Waiter, C: Clock>(
    line: &mut L,
    waiter: W,
    (clock, gate, plan): (C, &Gate, &Loop),
    generator: Option<Generator>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let mut requests = Outstanding::new();
    match generator {
        // It never sleeps while answers are awaited, however the server waits.
        Some(pace) => load::client(line, Busy, clock, gate, plan, pace, &mut requests, recorder),
        None => {
            let pace = load::Clients(u64::from(plan.load.clients.max(1)));
            load::client(line, waiter, clock, gate, plan, pace, &mut requests, recorder)
        }
    }
}
