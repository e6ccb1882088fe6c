//! How a loop waits: a type for the busy wait, and one for any wait mode.

use super::gate::Gate;
use super::{Ended, Scope};
use wiregauge_base::units::Span;
use wiregauge_clock::{Clock, TickSpan, Ticks};
use wiregauge_transport::{Endpoint, Events, Polled, Wait};

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
    #[inline(always)]
    fn sleeps(&self) -> bool {
        false
    }

    /// How long it polls before it does.
    fn spin(&self) -> TickSpan {
        TickSpan(0)
    }

    /// One attempt: a poll, or (where the mode sleeps) a wait.
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events);

    /// One attempt that sleeps only where it may.
    #[inline(always)]
    fn attempt<E: Endpoint>(&mut self, may_sleep: bool, endpoint: &mut E, events: &mut Events) {
        if may_sleep {
            self.once(endpoint, events);
        } else {
            // What was found stands in the events.
            let _ = endpoint.poll(events);
        }
    }

    /// Attempts until something has happened, the time is up, or the gate has news.
    fn next<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: Option<Ticks>,
    ) -> Waited;

    /// The same, and hands each message over to `take` (`Endpoint::poll_each`).
    #[inline(always)]
    fn next_each<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        Scope { clock, gate, .. }: Scope<'_, C>,
        until: Option<Ticks>,
        mut take: impl FnMut(&[u8]),
    ) -> Waited {
        let reason = self.next(endpoint, events, clock, gate, until);
        if reason == Waited::Something {
            for arrival in events.arrivals() {
                take(endpoint.message(arrival));
            }
        }
        reason
    }

    /// The same where at most one message is to come, to which the events are limited: what was
    /// found, or why the wait has ended. When the time is up is asked only after polls that found
    /// nothing.
    #[inline(always)]
    fn next_one<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: impl Fn() -> Option<Ticks> + Copy,
    ) -> Result<Polled, Waited> {
        match self.next(endpoint, events, clock, gate, until()) {
            Waited::Something => Ok(Polled::first_of(events)),
            reason => Err(reason),
        }
    }
}

/// What is looked at when nothing has happened for a while.
#[cold]
#[inline(never)]
pub fn look<C: Clock>(clock: C, gate: &Gate, until: Option<Ticks>) -> Option<Waited> {
    if gate.is_stopped() || gate.expected().is_some() {
        return Some(Waited::Look);
    }
    until.is_some_and(|until| clock.now() >= until).then_some(Waited::TimeUp)
}

/// The same where the time is worked out only now: before a loop it would cost each message.
#[cold]
#[inline(never)]
fn look_late<C: Clock>(clock: C, gate: &Gate, until: impl Fn() -> Option<Ticks>) -> Option<Waited> {
    look(clock, gate, until())
}

/// Waits as a receiver does, by `next`, until something has happened: `None`. Else the round has
/// ended: it is to stop, all that was sent has arrived, or nothing has come for a while after that.
#[inline(always)]
pub fn await_arrivals<C: Clock>(
    Scope { clock, gate, plan }: Scope<'_, C>,
    drained: &mut Option<Ticks>,
    arrived: u64,
    mut next: impl FnMut(Option<Ticks>) -> Waited,
) -> Option<Ended> {
    loop {
        match next(*drained) {
            Waited::Something => return None,
            Waited::TimeUp => return Some(Ended::Count),
            Waited::Look if gate.is_stopped() => return Some(Ended::Stopped),
            Waited::Look => {
                // What is still on the way gets this long; the wait looks at the gate meanwhile.
                let until = *drained.get_or_insert_with(|| clock.now() + plan.drain);
                let has_all = gate.expected().is_some_and(|expected| arrived >= expected);
                if has_all || clock.now() >= until {
                    return Some(Ended::Count);
                }
            }
        }
    }
}

/// Polls without a pause.
pub struct Busy;

impl Waiter for Busy {
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

    #[inline(always)]
    fn next_each<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        Scope { clock, gate, .. }: Scope<'_, C>,
        until: Option<Ticks>,
        mut take: impl FnMut(&[u8]),
    ) -> Waited {
        loop {
            for _ in 0..POLLS {
                if endpoint.poll_each(events, &mut take) {
                    return Waited::Something;
                }
            }
            if let Some(reason) = look(clock, gate, until) {
                return reason;
            }
        }
    }

    // The loop of `next` once more: one loop for both, given a closure that polls, took 50
    // instructions more for each message over shm (`bench/instructions`).
    #[inline(always)]
    fn next_one<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: impl Fn() -> Option<Ticks> + Copy,
    ) -> Result<Polled, Waited> {
        loop {
            for _ in 0..POLLS {
                let polled = endpoint.poll_one(events);
                if polled.any() {
                    return Ok(polled);
                }
            }
            if let Some(reason) = look_late(clock, gate, until) {
                return Err(reason);
            }
        }
    }
}

/// Any of the modes, told apart at each wait: for loops that are not compiled once for each mode.
#[derive(Clone, Copy)]
pub struct AnyWaiter {
    wait: Wait,
    spin: TickSpan,
}

impl AnyWaiter {
    /// That of a wait mode; an adaptive one polls for `spin` before it sleeps.
    pub fn new(wait: Wait, spin: TickSpan) -> AnyWaiter {
        AnyWaiter { wait, spin: if wait == Wait::Adaptive { spin } else { TickSpan(0) } }
    }
}

impl Waiter for AnyWaiter {
    #[inline(always)]
    fn sleeps(&self) -> bool {
        self.wait != Wait::Busy
    }

    #[inline(always)]
    fn spin(&self) -> TickSpan {
        self.spin
    }

    #[inline(always)]
    fn once<E: Endpoint>(&mut self, endpoint: &mut E, events: &mut Events) {
        match self.wait {
            Wait::Busy => Busy.once(endpoint, events),
            Wait::Adaptive if endpoint.poll(events) => {}
            Wait::Adaptive | Wait::Block => endpoint.wait(events),
        }
    }

    #[inline(always)]
    fn next_one<E: Endpoint, C: Clock>(
        &mut self,
        endpoint: &mut E,
        events: &mut Events,
        clock: C,
        gate: &Gate,
        until: impl Fn() -> Option<Ticks> + Copy,
    ) -> Result<Polled, Waited> {
        if self.wait == Wait::Busy {
            return Busy.next_one(endpoint, events, clock, gate, until);
        }
        match self.next(endpoint, events, clock, gate, until()) {
            Waited::Something => Ok(Polled::first_of(events)),
            reason => Err(reason),
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
        if self.wait == Wait::Busy {
            return Busy.next(endpoint, events, clock, gate, until);
        }
        if self.wait == Wait::Adaptive {
            let sleepy = clock.now() + self.spin;
            while clock.now() < sleepy {
                if endpoint.poll(events) {
                    return Waited::Something;
                }
            }
        }
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
