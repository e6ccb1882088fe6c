//! Coming back at a given time: what a generator waits with between two messages.
//!
//! EXECUTIVE SUMMARY: `busy` is late by the cost of a reading (some 20 ns) and takes the whole CPU;
//! the three that sleep are late by the kernel's wake-up, some microseconds, and by whatever the
//! scheduler adds. None of them lets lateness add up: each wait is to an absolute time.
//!
//! DETAILS: a counter's reading has no meaning to the kernel, so the time that is left is turned
//! into nanoseconds when a sleep begins, and the kernel is asked for that long. What the conversion
//! is wrong by belongs to this one wait: the next begins from a fresh reading. After a sleep the
//! counter is read again, and a wake-up that came too early (the counter and the kernel's clock
//! differ by the calibration's residual) polls for the rest. `nanosleep` is held up by the thread's
//! timer slack (50 us unless set); the thread that waits sets it to the least, 1 ns. `timerfd` and
//! io_uring's time-outs know no slack.

use super::{Clock, Ticks};
use io_uring::{IoUring, opcode, types};
use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

/// An opened timer.
pub struct Timer {
    mechanism: Mechanism,
    ns_per_tick: f64,
}

enum Mechanism {
    Busy,
    Timerfd(OwnedFd),
    Nanosleep,
    IoUring(Box<IoUring>),
}

/// Lets this thread's sleeps end when they are asked to, and not up to 50 us later.
///
/// # Errors
/// What the kernel says.
pub fn least_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Nothing sleeps for less: a wake-up takes longer, and the clock is read for the rest.
const SHORTEST_SLEEP_NS: f64 = 1000.0;

impl Timer {
    /// The timer that reads the clock.
    pub const fn busy() -> Timer {
        Timer { mechanism: Mechanism::Busy, ns_per_tick: 1.0 }
    }

    /// The one that sleeps in a read of a timerfd, for a clock of this scale.
    ///
    /// # Errors
    /// What the kernel says; so with the two that follow.
    pub fn timerfd(ns_per_tick: f64) -> io::Result<Timer> {
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Timer { mechanism: Mechanism::Timerfd(file), ns_per_tick })
    }

    /// The one that sleeps in clock_nanosleep; made on the thread that will sleep.
    pub fn nanosleep(ns_per_tick: f64) -> io::Result<Timer> {
        least_slack()?;
        Ok(Timer { mechanism: Mechanism::Nanosleep, ns_per_tick })
    }

    /// The one that sleeps in io_uring_enter until a time-out completes.
    pub fn io_uring(ns_per_tick: f64) -> io::Result<Timer> {
        let ring = Box::new(IoUring::new(2)?);
        Ok(Timer { mechanism: Mechanism::IoUring(ring), ns_per_tick })
    }

    /// Comes back at this time or later, with the first reading that is not before it; early with
    /// `None` where a signal has interrupted the sleep.
    #[inline(always)]
    pub fn wait<C: Clock>(&mut self, clock: C, at: Ticks) -> Option<Ticks> {
        if !matches!(self.mechanism, Mechanism::Busy) {
            let left = (at - clock.now()).0 as f64 * self.ns_per_tick;
            if left >= SHORTEST_SLEEP_NS && !self.sleep(left) {
                return None;
            }
        }
        Some(clock.idle_until(at))
    }

    /// Sleeps `ns` nanoseconds. Whether it slept to the end.
    #[cold]
    fn sleep(&mut self, ns: f64) -> bool {
        let ns = ns as i64;
        let span = Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: (ns % 1_000_000_000) as _ };
        match &mut self.mechanism {
            Mechanism::Busy => true,
            Mechanism::Timerfd(timer) => {
                let none = Timespec { tv_sec: 0, tv_nsec: 0 };
                let once = Itimerspec { it_interval: none, it_value: span };
                let set = timerfd_settime(&*timer, TimerfdTimerFlags::empty(), &once);
                set.is_ok() && rustix::io::read(&*timer, &mut [0; 8]).is_ok()
            }
            Mechanism::Nanosleep => {
                let clock = rustix::thread::ClockId::Monotonic;
                let slept = rustix::thread::clock_nanosleep_relative(clock, &span);
                matches!(slept, rustix::thread::NanosleepRelativeResult::Ok)
            }
            Mechanism::IoUring(ring) => sleep_in(ring, ns),
        }
    }
}

fn sleep_in(ring: &mut IoUring, ns: i64) -> bool {
    let span =
        types::Timespec::new().sec((ns / 1_000_000_000) as u64).nsec((ns % 1_000_000_000) as u32);
    let entry = opcode::Timeout::new(&span).build();
    // SAFETY: io_uring_enter(2) copies the time when it takes the entry, which is within the call
    // below, and `span` lives until then.
    if unsafe { ring.submission().push(&entry) }.is_err() {
        return false;
    }
    if ring.submit_and_wait(1).is_ok() {
        // The time-out completes with ETIME; it is taken out of the queue.
        return ring.completion().next().is_some();
    }
    // A signal: the time-out goes on, and its completion would be taken for that of the next one.
    let _ = ring.submitter().submit_and_wait(1);
    ring.completion().for_each(drop);
    false
}

#[cfg(test)]
mod tests {
    use super::super::KernelClock;
    use super::*;
    use crate::TickSpan;
    use std::time::Duration;

    fn timers() -> impl Iterator<Item = (&'static str, Timer)> {
        let all = [
            ("busy", Ok(Timer::busy())),
            ("timerfd", Timer::timerfd(1.0)),
            ("nanosleep", Timer::nanosleep(1.0)),
            ("io_uring", Timer::io_uring(1.0)),
        ];
        // A kernel may refuse one.
        all.into_iter().filter_map(|(name, timer)| Some((name, timer.ok()?)))
    }

    #[test]
    fn no_timer_comes_back_before_its_time() {
        for (name, mut timer) in timers() {
            for ns in [0, 500, 20_000, 3_000_000] {
                let at = KernelClock::MONOTONIC_RAW.now() + TickSpan(ns);
                let back = timer.wait(KernelClock::MONOTONIC_RAW, at);
                assert!(back.is_some_and(|back| back >= at), "{name} {ns} ns");
            }
        }
    }

    /// A clock whose ticks are microseconds.
    #[derive(Clone, Copy)]
    struct Microseconds;

    impl Clock for Microseconds {
        fn now(self) -> Ticks {
            Ticks(KernelClock::MONOTONIC_RAW.now().0 / 1000)
        }
    }

    #[test]
    fn a_timer_that_sleeps_leaves_the_cpu() {
        let used = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let of_microseconds = [
            ("timerfd", Timer::timerfd(1e3)),
            ("nanosleep", Timer::nanosleep(1e3)),
            ("io_uring", Timer::io_uring(1e3)),
        ];
        for (name, timer) in of_microseconds {
            let Ok(mut timer) = timer else { continue };
            let (begin, at) = (used(), Microseconds.now() + TickSpan(50_000));
            assert!(timer.wait(Microseconds, at).is_some_and(|back| back >= at), "{name}");
            let used = used() - begin;
            assert!(used < Duration::from_millis(20), "{name} used the CPU for {used:?} of 50 ms");
        }
    }

    #[test]
    fn a_time_that_has_passed_is_now() {
        for (name, mut timer) in timers() {
            let before = KernelClock::MONOTONIC_RAW.now();
            let back = timer.wait(KernelClock::MONOTONIC_RAW, Ticks(1));
            assert!(back.is_some_and(|back| back >= before), "{name}");
        }
    }
}
