//! For which endpoints, wait modes and clocks the measured loops are compiled: the one place where
//! a `Box<dyn Endpoint>` becomes a type.
//!
//! Loops are compiled apart for the transports whose messages cost less than a microsecond, with
//! the processor's counter; all else shares one copy. A call through a table costs 1 to 2 ns, and
//! a poll or a post is a system call there, of 200 ns at least.

use super::Ended;
use super::waiter::{AnyWaiter, Busy, Waiter};
use crate::clock::{AnyClock, Clock, Tsc};
use crate::transport::Endpoint;
use crate::transport::endpoint_set::EndpointSet;
use crate::transport::null::NullEndpoint;
use crate::transport::shm::ShmEndpoint;
use crate::transport::verbs::VerbsEndpoint;
use std::any::Any;

/// A measured loop before its endpoint, wait mode and clock are known.
pub trait Compiled {
    /// Runs it over these.
    fn run<E: Endpoint, W: Waiter, C: Clock>(self, endpoint: &mut E, waiter: W, clock: C) -> Ended;
}

/// The same over several endpoints. Its wait mode is looked at once a wait.
pub trait CompiledOverSet {
    /// Runs it over these.
    fn run<E: Endpoint, C: Clock>(self, set: &mut EndpointSet<E>, clock: C) -> Ended;
}

/// Runs a loop in the copy that is compiled for this endpoint, wait mode and clock.
pub fn run<L: Compiled>(
    endpoint: &mut Box<dyn Endpoint>,
    waiter: AnyWaiter,
    clock: AnyClock,
    measured: L,
) -> Ended {
    if !matches!(clock, AnyClock::Tsc) {
        return measured.run(endpoint, waiter, clock);
    }
    run_apart::<ShmEndpoint, L>(endpoint, waiter, measured)
        .or_else(|measured| run_apart::<VerbsEndpoint, L>(endpoint, waiter, measured))
        .or_else(|measured| run_apart::<NullEndpoint, L>(endpoint, waiter, measured))
        .unwrap_or_else(|measured| measured.run(endpoint, waiter, clock))
}

/// Runs a loop where the endpoint is an `E`; else gives it back.
fn run_apart<E: Endpoint, L: Compiled>(
    endpoint: &mut Box<dyn Endpoint>,
    waiter: AnyWaiter,
    measured: L,
) -> Result<Ended, L> {
    let any: &mut dyn Any = &mut **endpoint;
    let Some(endpoint) = any.downcast_mut::<E>() else { return Err(measured) };
    Ok(match waiter {
        AnyWaiter::Busy => measured.run(endpoint, Busy, Tsc),
        sleeping => measured.run(endpoint, sleeping, Tsc),
    })
}

/// Runs a loop in the copy that is compiled for these endpoints and this clock.
pub fn run_over_set<L: CompiledOverSet>(
    set: &mut EndpointSet<Box<dyn Endpoint>>,
    clock: AnyClock,
    measured: L,
) -> Ended {
    if !matches!(clock, AnyClock::Tsc) {
        return measured.run(set, clock);
    }
    run_set_apart::<ShmEndpoint, L>(set, measured)
        .or_else(|measured| run_set_apart::<VerbsEndpoint, L>(set, measured))
        .unwrap_or_else(|measured| measured.run(set, clock))
}

/// Runs a loop where all endpoints are an `E`; else gives it back.
fn run_set_apart<E: Endpoint, L: CompiledOverSet>(
    set: &mut EndpointSet<Box<dyn Endpoint>>,
    measured: L,
) -> Result<Ended, L> {
    let Some(mut typed) = set.take_typed::<E>() else { return Err(measured) };
    let ended = measured.run(&mut typed, Tsc);
    set.put_back(typed);
    Ok(ended)
}
