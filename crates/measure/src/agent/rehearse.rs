//! The instrument measures itself, on the CPU and with the clock of the round that follows: the
//! loop of `latency` on the null transport, and the cost of recording a sample.

use crate::loops::closed::RoundTrips;
use crate::loops::gate::Gate;
use crate::loops::schedule::{Generator, Pace};
use crate::loops::waiter::AnyWaiter;
use crate::loops::{Loop, LoopContext, compiled};
use wiregauge_clock::{AnyClock, Clock, TickSpan, Ticks, Timebase};
use wiregauge_plan::Case;
use wiregauge_sample::Flags;
use wiregauge_sample::arena::Arena;
use wiregauge_sample::recorder::Recorder;
use wiregauge_transport::{Blob, Role, Setup, Traffic, TransportKind, Wait};

/// What the instrument takes by itself.
#[derive(Default)]
pub struct Rehearsal {
    /// Round trips of the null transport, in ticks.
    pub overhead: Vec<u32>,
    /// Ticks of recording one sample, beyond the clock's readings.
    pub recording_ticks: f64,
}

/// Ticks that the generator takes for a message, the reading of the clock included: the mean over
/// many that are all late, so that it never waits. `None` for a closed loop.
pub fn generator<C: Clock>(clock: C, case: &Case, time: &Timebase, messages: u32) -> Option<f64> {
    let mut generator = Generator::of(case, time).ok()??;
    let gate = Gate::default();
    generator.begin(Ticks(0));
    let begin = clock.now();
    let mut made = 0u32;
    while made < messages && generator.upcoming().is_some() {
        let now = generator.wait(clock, &gate, TickSpan(0))?;
        generator.step(now);
        made += 1;
    }
    (made > 0).then(|| (clock.now() - begin).0 as f64 / f64::from(made))
}

/// Samples at the front that are left out: the first touch of code and memory.
const WARMUP: u64 = 64;

/// Measures both; nothing where no memory can be had.
pub fn instrument(clock: AnyClock, plan: &Loop, messages: u32) -> Rehearsal {
    let rows = messages as usize + WARMUP as usize;
    let Some(mut arena) = Arena::create(rows).ok().filter(|_| messages > 0) else {
        return Rehearsal::default();
    };
    let overhead = overhead(clock, plan, messages, &mut arena).unwrap_or_default();
    let recording_ticks = recording(clock, u64::from(messages), &mut arena);
    Rehearsal { overhead, recording_ticks }
}

fn overhead(clock: AnyClock, plan: &Loop, messages: u32, arena: &mut Arena) -> Option<Vec<u32>> {
    // Nothing but the first bytes of a message is touched: a longer one takes as long.
    let size = plan.size.min(TransportKind::INSTRUMENT.descriptor().largest as usize);
    let setup = Setup::new(Role::Client, Traffic::Echo { every: 1 }, Wait::Busy, size);
    let opening = TransportKind::INSTRUMENT.open(&setup).ok()?;
    let mut endpoint = opening.connect(&Blob::default()).ok()?.endpoint;
    let plan = Loop {
        messages: u64::from(messages) + WARMUP,
        warmup: WARMUP,
        time: None,
        pause: TickSpan(0),
        burst: 1,
        every: 1,
        check: false,
        loss_after: None,
        size,
        ..plan.clone()
    };
    let context = LoopContext {
        endpoint: &mut endpoint,
        waiter: AnyWaiter::new(Wait::Busy, TickSpan(0)),
        clock,
        gate: &Gate::default(),
        plan: &plan,
        generator: None,
        recorder: &mut Recorder::new(arena, WARMUP),
    };
    // The loop of `latency`.
    compiled::run(context, &mut RoundTrips(Role::Client));
    let rows = arena.rows().iter().skip(WARMUP as usize);
    Some(rows.map(|row| row.receive.0.saturating_sub(row.submit.0) as u32).collect())
}

/// The mean over many, into touched memory: a single one is shorter than the clock's resolution.
fn recording(clock: AnyClock, messages: u64, arena: &mut Arena) -> f64 {
    let mut recorder = Recorder::new(arena, 0);
    let begin = clock.now();
    for sequence in 0..messages {
        let stamp = std::hint::black_box(Ticks(sequence + 1));
        recorder.round_trip(sequence, stamp, stamp, Flags::default());
        recorder.handled(sequence);
    }
    let end = clock.now();
    (end - begin).0 as f64 / messages as f64
}
