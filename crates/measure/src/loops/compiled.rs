//! For which endpoints, wait modes and clocks the measured loops are compiled: the one place where
//! a `Box<dyn Endpoint>` becomes a type.
//!
//! Loops are compiled apart for the transports whose messages cost less than a microsecond, with
//! the processor's counter, where they poll; all else shares one copy. A call through a table costs
//! 1 to 2 ns, and a poll or a post is a system call there, of 200 ns at least, a sleep one of
//! microseconds. A message over mpi takes 300 ns, most of it in MPI's own calls. What these copies
//! would add to the program's size (a loop's has 10 to 50 kB) buys nothing that a figure shows.

use super::waiter::{AnyWaiter, Busy, Waiter};
use super::{Ended, LoopContext};
use std::any::Any;
use wiregauge_clock::{AnyClock, Clock, Tsc};
use wiregauge_transport::Endpoint;
use wiregauge_transport::counter::FinalCounters;
use wiregauge_transport::endpoint_set::EndpointSet;
use wiregauge_transport::null::NullEndpoint;
use wiregauge_transport::shm::ShmEndpoint;
use wiregauge_transport::verbs::{LeanEndpoint, LeanRemote, LeanSend, VerbsEndpoint};

/// The context of a loop whose endpoints are of any transport.
pub type AnyContext<'a, 'm, E> = LoopContext<'a, 'm, E, AnyWaiter, AnyClock>;

/// A measured loop before its endpoint, wait mode and clock are known.
pub trait Compiled {
    /// Its copies for verbs.
    const FOR_VERBS: ForVerbs = ForVerbs::All;

    /// Runs it over these.
    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended;

    /// What it has counted, when the round is over.
    fn finish(self: Box<Self>) -> FinalCounters {
        FinalCounters::new()
    }
}

/// For which endpoints of verbs a loop has copies.
#[derive(Clone, Copy)]
pub enum ForVerbs {
    /// For all: its figure is a rate, and lists of requests take 100 ns a message.
    All,
    /// For those on a lean path: its figure is the time of one message, 600 ns at least, and what
    /// is not lean takes longer than the calls through a table.
    Lean,
    /// For those on a lean path that send.
    LeanSend,
    /// For those on a lean path that work on the other end's memory.
    LeanRemote,
    /// For none, nor for `null`: its messages wait for a schedule or an answer.
    None,
}

/// The same over several endpoints. Its wait mode is looked at once a wait, and a message over
/// verbs costs more than the calls through a table.
pub trait CompiledOverSet {
    /// Runs it over these.
    fn run<E: Endpoint, C: Clock>(
        &mut self,
        context: LoopContext<'_, '_, EndpointSet<E>, AnyWaiter, C>,
    ) -> Ended;
}

/// The context with another endpoint, wait mode and clock.
macro_rules! with {
    ($context:expr, $endpoint:expr, $waiter:expr, $clock:expr) => {
        LoopContext {
            endpoint: $endpoint,
            waiter: $waiter,
            clock: $clock,
            gate: $context.gate,
            plan: $context.plan,
            generator: $context.generator.take(),
            recorder: &mut *$context.recorder,
        }
    };
}

/// Runs a loop in the copy that is compiled for this endpoint, wait mode and clock.
pub fn run<L: Compiled>(
    mut context: AnyContext<'_, '_, Box<dyn Endpoint>>,
    measured: &mut L,
) -> Ended {
    let polls = !context.waiter.sleeps();
    if let (AnyClock::Tsc, true) = (context.clock, polls) {
        let ended = run_apart::<ShmEndpoint, L>(&mut context, measured)
            .or_else(|| run_apart_otherwise(&mut context, measured));
        if let Some(ended) = ended {
            return ended;
        }
    }
    measured.run(context)
}

fn run_apart_otherwise<L: Compiled>(
    context: &mut AnyContext<'_, '_, Box<dyn Endpoint>>,
    measured: &mut L,
) -> Option<Ended> {
    // Constants, so that copies which no loop takes are not compiled.
    if const { matches!(L::FOR_VERBS, ForVerbs::None) } {
        return None;
    }
    let mut ended = run_apart::<NullEndpoint, L>(context, measured);
    if const { !matches!(L::FOR_VERBS, ForVerbs::LeanRemote) } {
        ended = ended.or_else(|| run_apart::<LeanEndpoint<LeanSend>, L>(context, measured));
    }
    if const { !matches!(L::FOR_VERBS, ForVerbs::LeanSend) } {
        ended = ended.or_else(|| run_apart::<LeanEndpoint<LeanRemote>, L>(context, measured));
    }
    if const { matches!(L::FOR_VERBS, ForVerbs::All) } {
        ended = ended.or_else(|| run_apart::<VerbsEndpoint, L>(context, measured));
    }
    ended
}

/// Runs a loop that polls, where the endpoint is an `E`.
fn run_apart<E: Endpoint, L: Compiled>(
    context: &mut AnyContext<'_, '_, Box<dyn Endpoint>>,
    measured: &mut L,
) -> Option<Ended> {
    let any: &mut dyn Any = &mut **context.endpoint;
    let endpoint = any.downcast_mut::<E>()?;
    Some(measured.run(with!(context, endpoint, Busy, Tsc)))
}

/// Runs a loop in the copy that is compiled for these endpoints and this clock.
pub fn run_over_set<L: CompiledOverSet>(
    mut context: AnyContext<'_, '_, EndpointSet<Box<dyn Endpoint>>>,
    measured: &mut L,
) -> Ended {
    let ended = match context.clock {
        AnyClock::Tsc => run_set_apart::<ShmEndpoint, L>(&mut context, measured),
        AnyClock::Kernel(_) | AnyClock::Virtual(_) => None,
    };
    ended.unwrap_or_else(|| measured.run(context))
}

/// Runs a loop where all endpoints are an `E`.
fn run_set_apart<E: Endpoint, L: CompiledOverSet>(
    context: &mut AnyContext<'_, '_, EndpointSet<Box<dyn Endpoint>>>,
    measured: &mut L,
) -> Option<Ended> {
    let mut typed = context.endpoint.take_typed::<E>()?;
    let ended = measured.run(with!(context, &mut typed, context.waiter, Tsc));
    context.endpoint.put_back(typed);
    Some(ended)
}
