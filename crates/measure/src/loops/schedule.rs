//! The open-loop generator: when each message is intended, and the wait until then.
//!
//! A pattern that sends by a schedule, whichever it is, uses it like this:
//!
//! ```text
//! generator.begin(clock.now() + plan.lead);             the schedule's time 0
//! loop {
//!     let intended = generator.upcoming()?              None: the schedule has ended
//!     let submit = generator.wait(clock, gate, slice)?  None: told to stop     ... a sender; or
//!     if clock.now() < intended { poll for answers }                           ... a client
//!     post; flush;
//!     recorder.sent(sequence, intended, submit, ...);   both times of every message are kept
//!     generator.step(submit);                           on to the next
//! }
//! ```
//!
//! The schedule is absolute and depends on nothing but the case and its seed. Nothing is dropped: a
//! message that is late is sent at once, and its lateness is in its response. It takes the same
//! memory however long it is: times are drawn one by one, in ticks, and no table is made.
//!
//! What a message costs the generator is told by `cargo bench --bench generator`, with and without
//! the reading of the clock; its rate is right within the calibration of the clock.
//!
//! An exponential interval is one 64-bit draw of ChaCha8 (a block of 64 words at a time) and one
//! step of the ziggurat, which is exact. Times add up in an `f64`: after 10^8 messages and
//! 24 h each sum is wrong by at most 10^8 roundings of 2^-53 of 2.6e14 ticks, 10 us in the worst
//! case and 1 ns as a random walk, none of which an interval sees: that is rounded to a tick.

use super::gate::Gate;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use std::io;
use wiregauge_clock::{Clock, TickSpan, Ticks, Timebase, Timer};
use wiregauge_plan::{Case, Schedule, TimerKind};

/// Parts the draws of schedules from others of the same seed.
const SALT: u64 = 0x706f_6973_736f_6e00;

/// The intended times of a case: since the start, in ticks, not falling.
#[derive(Clone, Debug)]
pub struct Arrivals {
    law: Law,
    random: ChaCha8Rng,
}

#[derive(Clone, Debug)]
enum Law {
    Periodic {
        interval: f64,
        number: u64,
    },
    Poisson {
        mean: f64,
        at: f64,
    },
    /// A Poisson process on a clock that stops while the source is off.
    OnOff {
        mean: f64,
        /// On that clock.
        at: f64,
        on: f64,
        off: f64,
    },
    Trace {
        times: Vec<f64>,
        number: usize,
    },
}

impl Arrivals {
    /// The intended times of a case in units of `unit_ns`; `None`: it has no schedule.
    pub fn of(case: &Case, unit_ns: f64) -> Option<Arrivals> {
        let mean = |rate: f64| 1e9 / rate / unit_ns;
        let law = match case.schedule {
            Schedule::ClosedLoop => return None,
            Schedule::Periodic { rate } => Law::Periodic { interval: mean(rate.0), number: 0 },
            Schedule::Poisson { rate } => Law::Poisson { mean: mean(rate.0), at: 0.0 },
            Schedule::OnOff { rate, on, off } => {
                let (on, off) = (on.0 as f64 / unit_ns, off.0 as f64 / unit_ns);
                Law::OnOff { mean: mean(rate.0) * on / (on + off), at: 0.0, on, off }
            }
            Schedule::Trace { .. } => {
                let times = case.trace.iter().flat_map(|trace| &trace.times_ns);
                Law::Trace { times: times.map(|ns| *ns as f64 / unit_ns).collect(), number: 0 }
            }
        };
        Some(Arrivals { law, random: ChaCha8Rng::seed_from_u64(case.seed ^ SALT) })
    }

    /// The next time, not rounded. Called where time is measured: no allocation, no system call.
    ///
    /// Not inlined: each of the loops, of which there is one a transport, would have its own copy
    /// of the cipher.
    #[inline(never)]
    pub fn draw(&mut self) -> Option<f64> {
        Some(match &mut self.law {
            Law::Periodic { interval, number } => {
                let at = *number as f64 * *interval;
                *number += 1;
                at
            }
            Law::Poisson { mean, at } => {
                let drawn: f64 = Exp1.sample(&mut self.random);
                *at += *mean * drawn;
                *at
            }
            Law::OnOff { mean, at, on, off } => {
                let drawn: f64 = Exp1.sample(&mut self.random);
                *at += *mean * drawn;
                *at + (*at / *on) as u64 as f64 * *off
            }
            Law::Trace { times, number } => {
                let at = *times.get(*number)?;
                *number += 1;
                at
            }
        })
    }
}

impl Iterator for Arrivals {
    type Item = TickSpan;

    /// The next time, to the nearest tick.
    #[inline(always)]
    fn next(&mut self) -> Option<TickSpan> {
        // Not `round`, which is a call on x86-64; no time is negative.
        self.draw().map(|at| TickSpan((at + 0.5) as i64))
    }
}

/// Opens a timer for a clock of this scale.
fn timer(kind: TimerKind, ns_per_tick: f64) -> io::Result<Timer> {
    match kind {
        TimerKind::Busy => Ok(Timer::busy()),
        TimerKind::Timerfd => Timer::timerfd(ns_per_tick),
        TimerKind::Nanosleep => Timer::nanosleep(ns_per_tick),
        TimerKind::IoUring => Timer::io_uring(ns_per_tick),
    }
}

/// Whether this kernel gives a timer to this process; if not, why, in a sentence.
pub fn available(kind: TimerKind) -> Result<(), String> {
    let Err(error) = timer(kind, 1.0) else { return Ok(()) };
    let name = kind.name();
    let why = match kind {
        TimerKind::IoUring => format!(
            "{error}; the kernel may forbid it (/proc/sys/kernel/io_uring_disabled, or a filter of \
             system calls)"
        ),
        _ => error.to_string(),
    };
    Err(format!("--timer {name} is not available here ({why}): use --timer busy"))
}

/// What says when the next request goes. What has a default is for a schedule alone.
pub trait Pace {
    /// Whether the client may sleep while nothing is to be sent.
    const SLEEPS: bool = false;

    /// The intended time of the next request, where it is to go now.
    fn due(&self, now: Ticks, outstanding: u64) -> Option<Ticks>;

    /// When that will be, where it depends on nothing but time.
    #[inline(always)]
    fn upcoming(&self) -> Option<Ticks> {
        None
    }

    /// The request is sent.
    #[inline(always)]
    fn step(&mut self, _now: Ticks) {}

    /// Waits for the next: no answer is awaited. `None`: told to stop.
    #[inline(always)]
    fn wait<C: Clock>(&mut self, clock: C, _gate: &Gate, _slice: TickSpan) -> Option<Ticks> {
        Some(clock.now())
    }

    /// Sets the time 0.
    fn begin(&mut self, _start: Ticks) {}

    /// Steps that had passed when the generator came to them.
    fn missed(&self) -> u64 {
        0
    }
}

/// A schedule, what waits for it, and how that went.
pub struct Generator {
    arrivals: Arrivals,
    timer: Timer,
    start: Ticks,
    upcoming: Option<Ticks>,
    /// Steps that had passed when the one before was made: the message was due before the
    /// generator had come to it.
    pub missed: u64,
}

impl Generator {
    /// The generator of a case, on the thread that will send; `None`: the case has no schedule.
    ///
    /// # Errors
    /// The timer is not to be had.
    pub fn of(case: &Case, time: &Timebase) -> io::Result<Option<Generator>> {
        let Some(arrivals) = Arrivals::of(case, time.ns_per_tick) else { return Ok(None) };
        let timer = timer(case.timer, time.ns_per_tick)?;
        Ok(Some(Generator { arrivals, timer, start: Ticks(0), upcoming: None, missed: 0 }))
    }

    #[inline(always)]
    fn draw(&mut self) -> Option<Ticks> {
        let start = self.start;
        self.arrivals.next().map(|at| start + at)
    }

    /// When the message after that one is intended, where the schedule says it without a draw.
    #[inline(always)]
    pub fn following(&self) -> Option<Ticks> {
        match self.arrivals.law {
            Law::Periodic { interval, number } => {
                Some(self.start + TickSpan((number as f64 * interval + 0.5) as i64))
            }
            Law::Poisson { .. } | Law::OnOff { .. } | Law::Trace { .. } => None,
        }
    }

    /// Waits until a slice before.
    #[cold]
    fn wait_long<C: Clock>(
        &mut self,
        clock: C,
        gate: &Gate,
        at: Ticks,
        slice: TickSpan,
    ) -> Option<()> {
        let slice = TickSpan(slice.0.max(1));
        while at - clock.now() > slice {
            let _ = self.timer.wait(clock, clock.now() + slice);
            if gate.is_stopped() {
                return None;
            }
        }
        Some(())
    }
}

impl Pace for Generator {
    #[inline(always)]
    fn due(&self, now: Ticks, _: u64) -> Option<Ticks> {
        self.upcoming.filter(|intended| *intended <= now)
    }

    /// When the next message is intended; `None`: the schedule has ended.
    #[inline(always)]
    fn upcoming(&self) -> Option<Ticks> {
        self.upcoming
    }

    /// The next message is sent now: on to the one after it.
    #[inline(always)]
    fn step(&mut self, now: Ticks) {
        self.upcoming = self.draw();
        // A branch here would be taken at random near saturation.
        self.missed += u64::from(self.upcoming.is_some_and(|next| next <= now));
    }

    /// Comes back when the next message is to be sent, with the reading that says so; `None` where
    /// the gate says stop. Looks at the gate once a `slice` of a long wait.
    #[inline(always)]
    fn wait<C: Clock>(&mut self, clock: C, gate: &Gate, slice: TickSpan) -> Option<Ticks> {
        let at = self.upcoming?;
        let now = clock.now();
        if now >= at {
            return Some(now);
        }
        if at - now > slice {
            self.wait_long(clock, gate, at, slice)?;
        }
        loop {
            if let Some(now) = self.timer.wait(clock, at) {
                return Some(now);
            }
            if gate.is_stopped() {
                return None;
            }
        }
    }

    /// Sets the schedule's time 0.
    fn begin(&mut self, start: Ticks) {
        self.start = start;
        self.upcoming = self.draw();
    }

    fn missed(&self) -> u64 {
        self.missed
    }
}
