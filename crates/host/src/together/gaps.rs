//! Gaps of all CPUs on one time line, and which of them were at the same instant.

use crate::noise::{Noise, WATCH_A_CPU, joined, listing};
use crate::pin_to;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wiregauge_base::threads;
use wiregauge_clock::{ChosenClock, TickSpan, Ticks};

/// The most gaps of a CPU that a window keeps: a tick of 1000 Hz with four interrupts in each has
/// 5000 in a second. What comes beyond it is counted, and not shown.
const MOST_GAPS: usize = 50_000;

/// A pause of the loop on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    pub cpu: u32,
    /// On the time line of all CPUs.
    pub start_ns: f64,
    pub length_ns: f64,
}

impl Gap {
    pub fn end_ns(&self) -> f64 {
        self.start_ns + self.length_ns
    }
}

/// What a loop saw in a window.
pub struct Watched {
    pub noise: Noise,
    /// In the order of time.
    pub gaps: Vec<(Ticks, TickSpan)>,
    /// Gaps for which there was no room.
    pub unlisted: u64,
    /// The loop's own thread.
    pub thread: u32,
}

/// Meeting point of threads: a [`std::sync::Barrier`] at which one that cannot be started
/// counts, too.
struct Meeting {
    missing: Mutex<usize>,
    all_arrived: Condvar,
}

impl Meeting {
    fn new(threads: usize) -> Meeting {
        Meeting { missing: Mutex::new(threads), all_arrived: Condvar::new() }
    }

    /// Counts one, which does not wait.
    fn arrive(&self) -> MutexGuard<'_, usize> {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            self.all_arrived.notify_all();
        }
        missing
    }

    fn arrive_and_wait(&self) {
        let waited = self.all_arrived.wait_while(self.arrive(), |missing| *missing > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Watches CPUs from the same instant on, each by a thread bound to it.
///
/// A CPU to which no thread could be bound gives the reason in its place.
pub fn watch(cpus: &[u32], clock: &ChosenClock, length_ns: f64) -> Vec<Result<Watched, String>> {
    let ready = &Meeting::new(cpus.len());
    let one = |cpu: u32| {
        let bound = pin_to(cpu);
        let mut gaps = Vec::with_capacity(MOST_GAPS);
        // Its pages are touched now: a fault would be a gap.
        gaps.resize(MOST_GAPS, (Ticks(0), TickSpan(0)));
        gaps.clear();
        ready.arrive_and_wait();
        bound?;
        let mut unlisted = 0;
        let keep = |from, length| match gaps.len() < MOST_GAPS {
            true => gaps.push((from, length)),
            false => unlisted += 1,
        };
        let noise = listing(cpu, clock.source.clock(), &clock.base, length_ns, keep);
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        Ok(Watched { noise, gaps, unlisted, thread })
    };
    std::thread::scope(|scope| {
        let mut started = Vec::new();
        for &cpu in cpus {
            let thread = threads::spawn_scoped(WATCH_A_CPU, scope, move || one(cpu));
            // The others would wait for it.
            if thread.is_err() {
                drop(ready.arrive());
            }
            started.push((cpu, thread));
        }
        started.into_iter().map(|(cpu, thread)| joined(cpu, thread)).collect()
    })
}

/// A gap is at once with those of other CPUs where all share at least this part of the longest:
/// what stops a whole processor begins and ends within some us on all of its CPUs (its SMIs took
/// 200 to 300 us in Homa's notes).
const SHARED: f64 = 0.5;

/// For each gap how many of the CPUs stood still at the same instant, itself included. `gaps` are
/// in the order of their starts.
pub fn at_once(gaps: &[Gap]) -> Vec<u32> {
    let mut counts = vec![1; gaps.len()];
    for (at, gap) in gaps.iter().enumerate() {
        // What begins after its end shares nothing with it.
        let later = gaps.iter().enumerate().skip(at + 1);
        let overlapping = later.take_while(|(_, other)| other.start_ns < gap.end_ns());
        let members: Vec<usize> =
            overlapping.filter(|(_, other)| are_together(gap, other)).map(|(at, _)| at).collect();
        let cpus: BTreeSet<u32> = members.iter().map(|member| gaps[*member].cpu).collect();
        let count = counts[at].max(cpus.len() as u32 + 1);
        // All of a group know of all of it.
        members
            .into_iter()
            .chain([at])
            .for_each(|member| counts[member] = counts[member].max(count));
    }
    counts
}

fn are_together(a: &Gap, b: &Gap) -> bool {
    let shared = a.end_ns().min(b.end_ns()) - a.start_ns.max(b.start_ns);
    a.cpu != b.cpu && shared >= SHARED * a.length_ns.max(b.length_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gap(cpu: u32, start_ns: f64, length_ns: f64) -> Gap {
        Gap { cpu, start_ns, length_ns }
    }

    #[test]
    fn gaps_of_all_cpus_at_one_instant_are_one_group() {
        let all = [
            gap(0, 1000.0, 250_000.0),
            gap(1, 1100.0, 249_000.0),
            gap(2, 1200.0, 251_000.0),
            gap(1, 500_000.0, 3000.0),
            gap(0, 502_900.0, 3000.0),
        ];
        assert_eq!(at_once(&all), [3, 3, 3, 1, 1]);
    }

    #[test]
    fn a_short_gap_within_a_long_one_is_another() {
        let all = [gap(0, 0.0, 10_000_000.0), gap(1, 1000.0, 3000.0), gap(1, 5000.0, 3000.0)];
        assert_eq!(at_once(&all), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn simultaneous_gaps_are_found_among_others(
            cpus in 2u32..9,
            at in prop::collection::vec(1u32..1000, 1..20),
            others in prop::collection::vec((0u32..9, 0.0f64..0.9), 0..50),
        ) {
            let mut places: Vec<u32> = at;
            places.sort_unstable();
            places.dedup();
            // At each whole millisecond of `places` all stand still; the others are 100 us after
            // one, where nobody else does.
            let mut all: Vec<Gap> = places
                .iter()
                .flat_map(|ms| (0..cpus).map(move |cpu| {
                    gap(cpu, f64::from(*ms) * 1e6 + f64::from(cpu) * 100.0, 50_000.0)
                }))
                .collect();
            all.extend(others.iter().enumerate().map(|(number, (cpu, part))| {
                let start = number as f64 * 1e6 + 100_000.0 + part * 500_000.0;
                gap(cpu % cpus, start, 2000.0)
            }));
            all.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
            for (gap, count) in all.iter().zip(at_once(&all)) {
                let expected = if gap.length_ns > 10_000.0 { cpus } else { 1 };
                prop_assert_eq!(count, expected, "{:?}", gap);
            }
        }
    }
}
