//! The source of a stream of samples: the open loop of a real-time simulator, which makes one
//! sample a step and leaves out the steps that it comes too late for. The receiver is
//! [`server`](wiregauge_measure::loops::closed::server), which may pass each message on to a file
//! ([`Taker`]).

use crate::prelude::*;
use wiregauge_clock::Timebase;
use wiregauge_measure::loops::closed::Taker;
use wiregauge_measure::loops::schedule::{Generator, Pace};
use wiregauge_measure::loops::waiter::Busy;
use wiregauge_signal::file::Sink;
use wiregauge_signal::source::Source;
use wiregauge_signal::{METADATA, TimeOfDay, put_metadata};

/// Passes each message on to a file.
pub struct ToFile<'a>(pub &'a mut Sink);

impl Taker for ToFile<'_> {
    #[inline(always)]
    fn take(&mut self, message: &[u8], received: Ticks) {
        self.0.take(message, received);
    }
}

/// The samples of a source, step after step.
pub struct Steps {
    source: Source,
    interval_ns: f64,
    time: Timebase,
    epoch_of_day_ns: u64,
    /// Time of day of the first step.
    first_ns: u64,
}

impl Steps {
    /// Samples at `rate` per second. `epoch_of_day_ns` is the time of day, in nanoseconds since
    /// 1970, at the epoch of `time`.
    pub fn new(source: Source, rate: f64, time: Timebase, epoch_of_day_ns: u64) -> Steps {
        Steps { source, interval_ns: 1e9 / rate, time, epoch_of_day_ns, first_ns: 0 }
    }

    /// Sets the time of the first step.
    fn begin(&mut self, start: Ticks) {
        let since = self.time.local(start).0.max(0.0) as u64;
        self.first_ns = self.epoch_of_day_ns.wrapping_add(since);
    }

    /// Writes the sample of a step. Its origin is the time at which the step is intended, so that
    /// it can be written before, and what the generator adds is in the delay.
    #[inline(always)]
    fn write(&mut self, message: &mut [u8], step: u64) {
        let since = step as f64 * self.interval_ns;
        let origin = TimeOfDay::from_ns(self.first_ns.wrapping_add((since + 0.5) as u64));
        put_metadata(message, step, origin);
        self.source.fill(&mut message[METADATA..], step, since / 1e9);
    }
}

/// The sender.
///
/// The sample of a step is made before its time and sent at its time. Where the step after it is
/// due too when the source comes to it, it is missed: not sent, as VILLASnode's signal node does
/// it, while its number is used up. So the step that is sent is always the last that is due, and a
/// source that cannot hold its rate is late by less than a step. Between the two stamps lie the
/// post and the flush.
pub fn source<E: Endpoint, W: Waiter, C: Clock>(
    context: LoopContext<'_, '_, E, W, C>,
    steps: &mut Steps,
) -> Ended {
    let LoopContext { endpoint, clock, gate, plan, generator, recorder, .. } = context;
    // It is prepared with a schedule.
    let Some(mut generator) = generator else { return Ended::Stopped };
    // It polls while it has no room.
    let mut waiter = Busy;
    let mut events = Events::default();
    let mut flow = Flow::through(endpoint, plan);
    let start = clock.now() + plan.lead;
    let end = plan.time.map(|time| start + time);
    let mut ended = Ended::Count;
    let mut step = 0;
    steps.begin(start);
    generator.begin(start);
    while step < plan.messages {
        let Some(intended) = generator.upcoming() else { break };
        if end.is_some_and(|end| intended >= end) {
            ended = Ended::Time;
            break;
        }
        while !flow.has_room() {
            if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                return ended;
            }
        }
        let slot = flow.slot();
        steps.write(endpoint.payload(slot), step);
        let Some(mut submit) = generator.wait(clock, gate, plan.lead) else {
            return Ended::Stopped;
        };
        if generator.following().is_some_and(|following| following <= submit) {
            step = miss(&mut generator, submit, step, plan, recorder);
            if step >= plan.messages {
                break;
            }
            // Once, whatever passes meanwhile: else a source of long samples would send none.
            submit = remake(endpoint, slot, steps, step, clock);
        }
        let Some(intended) = generator.upcoming() else { break };
        while !flow.post(endpoint, slot, plan.size) {
            if let Some(ended) = flow.make_room(endpoint, &mut waiter, &mut events, gate) {
                return ended;
            }
        }
        endpoint.flush();
        let complete = clock.now();
        recorder.sent(step, intended, submit, complete);
        recorder.seen.sent = flow.sent;
        recorder.handled(flow.sent);
        step += 1;
        generator.step(complete);
        if gate.is_stopped() {
            return Ended::Stopped;
        }
    }
    let scope = Scope { clock, gate, plan };
    flow.drain(endpoint, &mut waiter, &mut events, scope).unwrap_or(ended)
}

/// Passes over the steps that are followed by one that is due; the one that is to be sent.
#[cold]
#[inline(never)]
fn miss(
    generator: &mut Generator,
    now: Ticks,
    mut step: u64,
    plan: &Loop,
    recorder: &mut Recorder<'_>,
) -> u64 {
    while step < plan.messages && generator.following().is_some_and(|following| following <= now) {
        recorder.missed(step, generator.upcoming().unwrap_or(now));
        generator.step(now);
        step += 1;
    }
    step
}

/// Makes the sample of another step in place of the one that is missed; when that was done.
#[cold]
#[inline(never)]
fn remake<E: Endpoint, C: Clock>(
    endpoint: &mut E,
    slot: Slot,
    steps: &mut Steps,
    step: u64,
    clock: C,
) -> Ticks {
    steps.write(endpoint.payload(slot), step);
    clock.now()
}
