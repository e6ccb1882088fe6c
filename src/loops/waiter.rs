//! How a loop waits: one type for each wait mode, and one for any of them.

use super::gate::Gate;
use crate::clock::{Clock, TickSpan, Ticks};
use crate::transport::{Endpoint, Events, Wait};
use crate::units::Span;

/// Polls between two looks at the gate and the clock. A poll is at least some nanoseconds, so that
/// a stop is seen within a microsecond on a fast transport and within 100 us on a slow one.
pub const POLLS: u32 = 256;

/// How long an adaptive wait polls before it sleeps: about what a sleep and a wake-up cost, so that
/// it never takes more than twice the better of the two (the classic competitive argument).
pub const ADAPTIVE_SPIN: Span = Span(50_000);

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Something has happened: look at the events.
    Something,
    /// The time was up.
    TimeUp,
    /// The gate says stop, or a receiver's expectation was set: look at the gate.
    Look,
}

/// A way to wait.
pub trait Waiter {
    /// Whether it ever sleeps in the kernel.
    fn sleeps(&self) -> bool;

    /// How long it polls before it does.
    fn spin(&self) -> TickSpan {
        TickSpan(0)
    }

    /// One attempt: a poll, or (where the mode sleeps) a wait.
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events);

    /// Attempts until something has happened, the time is up, or the gate has news.
    fn next<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: Option<Ticks>,
    ) -> Waited;
}

/// What is looked at when nothing has happened for a while.
#[inline]
pub fn look<C: Clock>(clock: C, gate: &Gate, until: Option<Ticks>) -> Option<Waited> {
    if gate.is_stopped() || gate.expected().is_some() {
        return Some(Waited::Look);
    }
    until.is_some_and(|until| clock.now() >= until).then_some(Waited::TimeUp)
}

/// Polls without a pause.
pub struct Busy;

impl Waiter for Busy {
    #[inline(always)]
    fn sleeps(&self) -> bool {
        false
    }

    #[inline(always)]
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events) {
        // What was found stands in the events.
        let _ = endpoint.poll(events);
    }

    #[inline(always)]
    fn next<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: Option<Ticks>,
    ) -> Waited {
        loop {
            for _ in 0..POLLS {
                if endpoint.poll(events) {
                    return Waited::Something;
                }
            }
            if let Some(reason) = look(clock, gate, until) {
                return reason;
            }
        }
    }
}

/// Sleeps in the kernel.
pub struct Block;

impl Waiter for Block {
    #[inline(always)]
    fn sleeps(&self) -> bool {
        true
    }

    #[inline(always)]
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events) {
        endpoint.wait(events);
    }

    #[inline(always)]
    fn next<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: Option<Ticks>,
    ) -> Waited {
        loop {
            endpoint.wait(events);
            if events.any() {
                return Waited::Something;
            }
            if let Some(reason) = look(clock, gate, until) {
                return reason;
            }
        }
    }
}

/// Any of the modes, told apart at each wait: for loops that are not compiled once for each mode.
#[derive(Clone, Copy)]
pub enum AnyWaiter {
    /// Polls.
    Busy,
    /// Sleeps.
    Block,
    /// Does the one, then the other.
    Adaptive(Adaptive),
}

impl AnyWaiter {
    /// That of a wait mode.
    pub fn of(wait: Wait, spin: TickSpan) -> AnyWaiter {
        match wait {
            Wait::Busy => AnyWaiter::Busy,
            Wait::Block => AnyWaiter::Block,
            Wait::Adaptive => AnyWaiter::Adaptive(Adaptive { spin }),
        }
    }
}

impl Waiter for AnyWaiter {
    #[inline(always)]
    fn sleeps(&self) -> bool {
        !matches!(self, AnyWaiter::Busy)
    }

    #[inline(always)]
    fn spin(&self) -> TickSpan {
        match self {
            AnyWaiter::Busy | AnyWaiter::Block => TickSpan(0),
            AnyWaiter::Adaptive(adaptive) => adaptive.spin,
        }
    }

    #[inline(always)]
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events) {
        match self {
            AnyWaiter::Busy => Busy.once(endpoint, events),
            AnyWaiter::Block => Block.once(endpoint, events),
            AnyWaiter::Adaptive(adaptive) => adaptive.once(endpoint, events),
        }
    }

    #[inline(always)]
    fn next<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: Option<Ticks>,
    ) -> Waited {
        match self {
            AnyWaiter::Busy => Busy.next(endpoint, events, clock, gate, until),
            AnyWaiter::Block => Block.next(endpoint, events, clock, gate, until),
            AnyWaiter::Adaptive(adaptive) => adaptive.next(endpoint, events, clock, gate, until),
        }
    }
}

/// Polls for a while, then sleeps.
#[derive(Clone, Copy)]
pub struct Adaptive {
    /// How long it polls.
    pub spin: TickSpan,
}

impl Waiter for Adaptive {
    #[inline(always)]
    fn sleeps(&self) -> bool {
        true
    }

    #[inline(always)]
    fn spin(&self) -> TickSpan {
        self.spin
    }

    #[inline(always)]
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events) {
        if !endpoint.poll(events) {
            endpoint.wait(events);
        }
    }

    #[inline(always)]
    fn next<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: Option<Ticks>,
    ) -> Waited {
        let sleepy = clock.now() + self.spin;
        while clock.now() < sleepy {
            if endpoint.poll(events) {
                return Waited::Something;
            }
        }
        Block.next(endpoint, events, clock, gate, until)
    }
}
