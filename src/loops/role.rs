//! From a case and a role to the loop that plays it.

use super::compiled::{self, Compiled, CompiledOverSet};
use super::gate::Gate;
use super::load::{Line, OneServer, Outstanding};
use super::receivers::{Given, Split};
use super::rpc::{self, Mesh};
use super::schedule::Generator;
use super::store::Store;
use super::stream::{self, Streaming};
use super::waiter::{AnyWaiter, Busy, Waiter};
use super::{Ended, Loop, bandwidth, closed, load, one_sided, open, store};
use crate::clock::{AnyClock, Clock, TickSpan};
use crate::plan::load::MOST_BUFFERS;
use crate::plan::rpc::Draws;
use crate::plan::{Case, Direction, Pattern, Schedule};
use crate::sample::recorder::Recorder;
use crate::transport::endpoint_set::EndpointSet;
use crate::transport::{Endpoint, Lengths, Role, Setup, Site, Traffic};
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
        lengths: if case.rpc.is_some() { Lengths::Varied } else { Lengths::Fixed },
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
        kind: case.stream.as_ref().map(|stream| stream.shape.kind).unwrap_or_default(),
        settings: case.settings_of(role),
        ..Setup::new(role, traffic(case), case.wait, case.size.0 as usize)
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

/// What a loop of one role of one round reads, beside its endpoint and its clock.
pub struct LoopContext<'a> {
    /// The case.
    pub case: &'a Case,
    /// Which end of it.
    pub role: Role,
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
    /// How long an adaptive wait polls before it sleeps.
    pub spin: TickSpan,
}

impl LoopContext<'_> {
    /// How the case waits.
    pub fn waiter(&self) -> AnyWaiter {
        AnyWaiter::of(self.case.wait, self.spin)
    }
}

/// Runs a role to its end.
pub fn run(
    endpoint: &mut Box<dyn Endpoint>,
    clock: AnyClock,
    context: LoopContext<'_>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    compiled::run(endpoint, context.waiter(), clock, RoleLoop { context, recorder })
}

/// The loop of a role, by pattern.
struct RoleLoop<'a, 'r, 'm> {
    context: LoopContext<'a>,
    recorder: &'r mut Recorder<'m>,
}

impl Compiled for RoleLoop<'_, '_, '_> {
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended {
        let RoleLoop { context, recorder } = self;
        if context.stream.is_some() {
            return run_stream(endpoint, clock, context, recorder);
        }
        let LoopContext { case, role, gate, plan, .. } = context;
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
            (Pattern::Oneway, Role::Client) => match context.generator {
                None => closed::client(endpoint, waiter, clock, gate, plan, recorder),
                Some(generator) => {
                    open::sender(endpoint, waiter, clock, gate, plan, generator, recorder)
                }
            },
            (Pattern::Oneway, Role::Server) => {
                closed::server::<_, _, _, true>(endpoint, waiter, clock, gate, plan, recorder)
            }
            (Pattern::Load, _) => run_load(endpoint, waiter, clock, context, recorder),
            (Pattern::Bandwidth, role) => match (case.direction, role) {
                (Direction::Bi, _) => {
                    bandwidth::both(endpoint, waiter, clock, gate, plan, recorder)
                }
                (Direction::Uni, Role::Client) => {
                    bandwidth::sender(endpoint, waiter, clock, gate, plan, recorder)
                }
                (Direction::Uni, Role::Server) => {
                    bandwidth::receiver(endpoint, waiter, clock, gate, plan, recorder)
                }
            },
        }
    }
}

/// Compiled once for all wait modes: a source polls while it has no room, and a receiver's mode is
/// looked at once a wait.
#[inline(never)]
fn run_stream<E: Endpoint, C: Clock>(
    endpoint: &mut E,
    clock: C,
    context: LoopContext<'_>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let waiter = context.waiter();
    let LoopContext { gate, plan, generator, stream, .. } = context;
    match (stream, generator) {
        (Some(Streaming::From(steps)), Some(generator)) => {
            stream::source(endpoint, Busy, clock, gate, plan, generator, steps, recorder)
        }
        (Some(Streaming::To(sink)), _) => closed::server_with::<_, _, _, _, true>(
            endpoint, waiter, clock, gate, plan, sink, recorder,
        ),
        // A source is never without its schedule: the plan refuses it.
        (Some(Streaming::From(_)) | None, _) => Ended::Stopped,
    }
}

fn run_load<E: Endpoint, W: Waiter, C: Clock>(
    endpoint: &mut E,
    waiter: W,
    clock: C,
    context: LoopContext<'_>,
    recorder: &mut Recorder<'_>,
) -> Ended {
    let LoopContext { role, gate, plan, generator, store, .. } = context;
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

/// Runs a role of `rpc` over all connections of a thread.
pub fn run_rpc(
    set: &mut EndpointSet<Box<dyn Endpoint>>,
    clock: AnyClock,
    context: LoopContext<'_>,
    draws: Draws,
    recorder: &mut Recorder<'_>,
) -> Ended {
    compiled::run_over_set(set, clock, RpcLoop { context, draws, recorder })
}

struct RpcLoop<'a, 'r, 'm> {
    context: LoopContext<'a>,
    draws: Draws,
    recorder: &'r mut Recorder<'m>,
}

impl CompiledOverSet for RpcLoop<'_, '_, '_> {
    fn run<E: Endpoint, C: Clock>(self, set: &mut EndpointSet<E>, clock: C) -> Ended {
        let RpcLoop { context, draws, recorder } = self;
        let waiter = context.waiter();
        let LoopContext { role, gate, plan, generator, .. } = context;
        if role == Role::Server {
            return rpc::server(set, waiter, clock, gate, plan, recorder);
        }
        let mut line = Mesh::over(set, draws);
        ask(&mut line, waiter, (clock, gate, plan), generator, recorder)
    }
}

/// Runs the client of `rpc` whose replies other threads take.
pub fn run_split(
    set: &mut EndpointSet<Box<dyn Endpoint>>,
    clock: AnyClock,
    context: LoopContext<'_>,
    draws: Draws,
    given: &mut [Given],
    recorder: &mut Recorder<'_>,
) -> Ended {
    let LoopContext { gate, plan, generator, .. } = context;
    let mut line = Split::over(set, draws, given);
    ask(&mut line, AnyWaiter::Busy, (clock, gate, plan), generator, recorder)
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
