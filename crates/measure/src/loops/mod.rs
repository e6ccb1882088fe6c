//! The measured loops.
//!
//! Takes a connected [`Endpoint`](wiregauge_transport::Endpoint), a clock and a [`Loop`]; gives
//! samples to the [`Recorder`]. This is what the loops of several patterns share: the closed loop
//! ([`closed`], and [`plain`] for one message at a time), a flow ([`flow`]), waiting, schedules,
//! payloads. [`compiled`] chooses the copy that is compiled for an endpoint.
//!
//! Must never: know a transport by name, allocate, log, lock or convert ticks inside a loop.

mod around;
pub mod closed;
pub mod compiled;
pub mod deadline;
pub mod flow;
pub mod gate;
pub mod one_sided;
pub mod payload;
pub mod plain;
pub mod schedule;
pub mod socket_stamped;
pub mod stamped;
pub mod stamper;
pub mod waiter;

pub use wiregauge_plan::Ended;

use gate::Gate;
use schedule::Generator;
use std::sync::Arc;
use wiregauge_base::units::Span;
use wiregauge_clock::TickSpan;
use wiregauge_plan::Case;
use wiregauge_sample::recorder::Recorder;
use wiregauge_transport::Traffic;

/// How long a receiver goes on after the sender has ended: many times any queue's delay on a path
/// that is worth measuring.
const DRAIN: Span = Span(200_000_000);
/// Between the start of an open loop and its first intended time.
const LEAD: Span = Span(1_000_000);

/// A case as the loops need it: ticks and counts, nothing to be computed any more.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Payload bytes.
    pub size: usize,
    /// Messages of the round, warm-up included (`u64::MAX`: the time ends it).
    pub messages: u64,
    /// Of those, the warm-up.
    pub warmup: u64,
    /// How long the warm-up lasts at most, whatever its messages.
    pub warmup_time: Option<TickSpan>,
    /// How long after the warm-up.
    pub time: Option<TickSpan>,
    /// Between two bursts.
    pub pause: TickSpan,
    /// Messages posted together.
    pub burst: u64,
    /// Most messages posted and not completed.
    pub window: u64,
    /// Messages for one answer (0: none).
    pub every: u32,
    /// Whether payloads are filled and verified.
    pub check: bool,
    /// When an answer that has not come is given up (`None`: the transport loses nothing).
    pub loss_after: Option<TickSpan>,
    /// How long a receiver goes on after the sender has ended, for what is on the way.
    pub drain: TickSpan,
    /// Between the arming of an open loop and its first intended time; also how long a loop idles
    /// before it looks at its gate.
    pub lead: TickSpan,
    /// Messages for one sample of a bandwidth round.
    pub stride: u64,
    /// Whether each post makes a completion of its own, which is stamped.
    pub completions: bool,
    /// Whether messages carry the last time at which they were still at the sender.
    pub reads_send: bool,
    /// What writes that time.
    pub stamper: Option<Arc<stamper::Stamper>>,
}

impl Loop {
    /// What all patterns have of a case. `ticks` turns a span into ticks of the clock that the loop
    /// reads. The pattern sets the rest.
    pub fn new(case: &Case, ticks: impl Fn(Span) -> TickSpan) -> Loop {
        let profile = case.profile();
        let every = match profile.traffic {
            Traffic::Echo { every } if !profile.is_one_sided => every,
            _ => 0,
        };
        Loop {
            size: case.size.0 as usize,
            messages: case.bound.count.map_or(u64::MAX, |n| n.saturating_add(case.warmup)),
            warmup: case.warmup,
            warmup_time: case.warmup_time().map(&ticks),
            time: case.bound.time.map(&ticks),
            pause: ticks(profile.pause),
            burst: u64::from(profile.burst.max(1)),
            window: u64::from(profile.queue_depth),
            every,
            check: case.check,
            loss_after: case.transport.loses(&case.settings).then(|| ticks(case.loss_after)),
            drain: ticks(DRAIN),
            lead: ticks(LEAD),
            stride: profile.stride,
            completions: false,
            reads_send: false,
            stamper: None,
        }
    }
}

/// What a measured loop runs on: an endpoint `E` (or what stands for several), how it waits, the
/// clock that stamps, and what it reads and writes.
pub struct LoopContext<'a, 'm, E, W, C> {
    /// The endpoint.
    pub endpoint: &'a mut E,
    /// How it waits.
    pub waiter: W,
    /// The clock that stamps.
    pub clock: C,
    /// How the control thread reaches the loop.
    pub gate: &'a Gate,
    /// The case in ticks.
    pub plan: &'a Loop,
    /// When to send, where the case has a schedule and this role sends by it.
    pub generator: Option<Generator>,
    /// Where samples go.
    pub recorder: &'a mut Recorder<'m>,
}

/// What a loop reads and does not change, for its functions: passed by value.
#[derive(Clone, Copy)]
pub struct Scope<'a, C> {
    /// The clock that stamps.
    pub clock: C,
    /// How the control thread reaches the loop.
    pub gate: &'a Gate,
    /// The case in ticks.
    pub plan: &'a Loop,
}
