//! Concurrent rounds start together: at one agreed instant where the clocks of all hosts are known,
//! else as soon as each is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wiregauge_clock::LocalNs;
use wiregauge_clock::exchange::Local;

/// Interval between two checks for an interrupt by the user.
pub(crate) const CHECK: Duration = Duration::from_millis(50);

/// From the moment when all rounds are ready to their start: longer than a frame takes to another
/// host and to a thread there. A thread that is told later starts late, and the round says so.
pub(crate) const LEAD: Duration = Duration::from_millis(100);

/// The same for so many ranks: each is a process that is told after those before it, and on a host
/// with more of them than CPUs it waits until these are asleep.
pub(crate) fn lead(ranks: usize) -> Duration {
    LEAD + EACH.saturating_mul(ranks.saturating_sub(2).min(MOST_COUNTED) as u32)
}

/// What a further rank adds to the lead, and for how many at most.
const EACH: Duration = Duration::from_millis(5);
const MOST_COUNTED: usize = 400;

/// What the barriers of concurrent rounds have in common.
#[derive(Default)]
pub(crate) struct BarrierShared {
    missing: Mutex<usize>,
    arrived: Condvar,
    /// Where they start at one instant: what reads this host's clock.
    clock: Option<Local>,
    /// How long after the last round has arrived.
    lead: Duration,
    /// That instant, once the last round has arrived.
    start: OnceLock<LocalNs>,
}

/// A round's side of the barrier. A round that fails before it arrives drops it, so that the others
/// do not wait for it.
pub struct StartBarrier<'a>(Option<&'a BarrierShared>);

impl BarrierShared {
    /// For `rounds` concurrent rounds of so many ranks; with `clock` they start at one instant.
    pub fn new(rounds: usize, ranks: usize, clock: Option<Local>) -> BarrierShared {
        let (missing, lead) = (Mutex::new(rounds), lead(ranks));
        BarrierShared { missing, clock, lead, ..BarrierShared::default() }
    }

    /// The side of one of its rounds.
    pub fn side(&self) -> StartBarrier<'_> {
        StartBarrier(Some(self))
    }

    fn arrive(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if let (0, Some(Local { source, time, .. })) = (*missing, &self.clock) {
            let now = time.local(source.read());
            self.start.get_or_init(|| LocalNs(now.0 + self.lead.as_nanos() as f64));
        }
        self.arrived.notify_all();
    }
}

impl StartBarrier<'_> {
    /// For a round that runs alone.
    pub fn none() -> StartBarrier<'static> {
        StartBarrier(None)
    }

    /// Waits until all rounds have arrived or failed, or the user interrupts. The instant of this
    /// host's clock at which all start; `None`: at once.
    pub fn wait(mut self, interrupted: &AtomicBool) -> Option<LocalNs> {
        let shared = self.0.take()?;
        shared.arrive();
        let mut missing = shared.missing.lock().unwrap_or_else(PoisonError::into_inner);
        while *missing > 0 && !interrupted.load(Ordering::Relaxed) {
            let woken = shared.arrived.wait_timeout(missing, CHECK);
            missing = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        shared.start.get().copied()
    }
}

impl Drop for StartBarrier<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.arrive();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use wiregauge_test_support::bounded::Bound;

    #[test]
    fn rounds_wait_for_each_other_and_not_for_one_that_failed() {
        let _bound = Bound::new();
        let shared = BarrierShared::new(3, 6, None);
        let never = AtomicBool::new(false);
        let (failed, passed) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    shared.side().wait(&never);
                    assert!(failed.load(Ordering::SeqCst), "passed before the last has left");
                    passed.fetch_add(1, Ordering::SeqCst);
                });
            }
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(passed.load(Ordering::SeqCst), 0);
            failed.store(true, Ordering::SeqCst);
            drop(shared.side());
        });
        assert_eq!(passed.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let _bound = Bound::new();
        BarrierShared::new(2, 4, None).side().wait(&AtomicBool::new(true));
    }
}
