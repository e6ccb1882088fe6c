//! Several rounds at the same time, on pairs of hosts: each is prepared by itself, and all begin
//! together: where all ends' clocks are known at one instant, else as soon as each is told.

use crate::clock::{LocalNs, Source, Timebase};
use crate::plan::Case;
use crate::run::round::{self, Conditions, Fault, Finished};
use crate::transport::Role;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Between two looks at whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// From when all are ready to when they begin: longer than a frame takes to another host and to a
/// thread there. An end that is told later still begins late, and the round says so.
pub(crate) const LEAD: Duration = Duration::from_millis(100);

/// Where rounds wait for each other.
#[derive(Default)]
struct Table {
    missing: Mutex<usize>,
    all: Condvar,
    /// Where they are to begin at one instant: what reads this host's clock.
    clock: Option<(Source, Timebase)>,
    /// That instant, once the last has come.
    agreed: OnceLock<LocalNs>,
}

/// A round's place among those that begin together. One that fails before it has come leaves its
/// seat by dropping it, so that the others do not wait for it.
pub struct Seat<'a>(Option<&'a Table>);

impl Seat<'_> {
    /// Of a round that waits for nobody.
    pub fn alone() -> Seat<'static> {
        Seat(None)
    }

    /// Waits until all have come or left, or the user wants to end. The time of this host's clock
    /// at which all begin; `None`: at once.
    pub fn wait_for_others(mut self, interrupted: &AtomicBool) -> Option<LocalNs> {
        let table = self.0.take()?;
        table.come();
        let mut missing = table.missing.lock().unwrap_or_else(PoisonError::into_inner);
        while *missing > 0 && !interrupted.load(Ordering::Relaxed) {
            let woken = table.all.wait_timeout(missing, LOOK);
            missing = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        table.agreed.get().copied()
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if let Some(table) = self.0.take() {
            table.come();
        }
    }
}

impl Table {
    fn come(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if let (0, Some((source, time))) = (*missing, &self.clock) {
            let now = time.local(source.read());
            self.agreed.get_or_init(|| LocalNs(now.0 + LEAD.as_nanos() as f64));
        }
        self.all.notify_all();
    }
}

/// Runs a round of each case at the same time.
pub fn run(
    cases: &[Case],
    conditions: &Conditions<'_>,
    watch: &mut dyn FnMut(u64),
) -> Vec<Result<Finished, Fault>> {
    if let [case] = cases {
        return vec![round::run(case, conditions, Seat::alone(), watch)];
    }
    let clock = all_known(cases, conditions).then_some((conditions.clock, conditions.time));
    let table = Table { missing: Mutex::new(cases.len()), clock, ..Table::default() };
    let messages: Vec<AtomicU64> = cases.iter().map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let one = |(number, case): (usize, &'_ Case)| {
            let (seat, messages) = (Seat(Some(&table)), &messages);
            let case = case.clone();
            scope.spawn(move || {
                let mut count = |now| messages[number].store(now, Ordering::Relaxed);
                round::run(&case, conditions, seat, &mut count)
            })
        };
        let threads: Vec<_> = cases.iter().enumerate().map(one).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            watch(messages.iter().map(|one| one.load(Ordering::Relaxed)).sum());
            std::thread::sleep(LOOK);
        }
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|done| {
                done.unwrap_or_else(|_| Err(Fault::new("the driver's own thread panicked")))
            })
            .collect()
    })
}

/// Whether each end of these cases can be told an instant of its own clock. A simulated transport
/// has none, and one that was made wrong for a test shows another time than it waits by.
fn all_known(cases: &[Case], conditions: &Conditions<'_>) -> bool {
    let is_known = |case: &Case| {
        let known = |role| conditions.clock_of(case, role).is_some();
        !case.transport.descriptor().one_process && known(Role::Client) && known(Role::Server)
    };
    conditions.untrue.is_none() && cases.iter().all(is_known)
}

/// The share of the time from the first begin to the last end in which all ran.
pub fn overlap(finished: &[Result<Finished, Fault>]) -> Option<f64> {
    let ran: Option<Vec<_>> =
        finished.iter().map(|one| one.as_ref().ok().and_then(|one| one.ran)).collect();
    let ran = ran.filter(|ran| ran.len() > 1)?;
    let (first, last) = (ran.iter().map(|r| r.0).min()?, ran.iter().map(|r| r.1).max()?);
    let (begun, over) = (ran.iter().map(|r| r.0).max()?, ran.iter().map(|r| r.1).min()?);
    let whole = (last - first).as_secs_f64();
    (whole > 0.0).then(|| over.saturating_duration_since(begun).as_secs_f64() / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn those_that_come_wait_for_each_other_and_not_for_one_that_has_left() {
        let table = Table { missing: Mutex::new(3), ..Table::default() };
        let never = AtomicBool::new(false);
        let (last, come) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    Seat(Some(&table)).wait_for_others(&never);
                    assert!(last.load(Ordering::SeqCst), "nobody goes before the last has left");
                    come.fetch_add(1, Ordering::SeqCst);
                });
            }
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(come.load(Ordering::SeqCst), 0);
            last.store(true, Ordering::SeqCst);
            drop(Seat(Some(&table)));
        });
        assert_eq!(come.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn who_waits_is_let_go_when_the_user_wants_to_end() {
        let table = Table { missing: Mutex::new(2), ..Table::default() };
        Seat(Some(&table)).wait_for_others(&AtomicBool::new(true));
    }

    #[test]
    fn the_overlap_is_what_all_have_in_common() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ran = |from, to| {
            let part = || round::Part {
                arena: crate::sample::arena::Arena::create(1).unwrap(),
                outcome: None,
                granted: Vec::new(),
            };
            let ran = Some((at(from), at(to)));
            Ok(Finished {
                client: vec![part()],
                server: vec![part()],
                fault: None,
                agreed: None,
                ran,
            })
        };
        let share = overlap(&[ran(0, 90), ran(10, 100)]).unwrap();
        assert!((share - 0.8).abs() < 1e-9, "{share}");
        assert_eq!(overlap(&[ran(0, 10), ran(20, 40)]), Some(0.0));
        assert_eq!(overlap(&[ran(0, 10)]), None);
    }
}
