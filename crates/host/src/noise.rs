//! The noise floor of a CPU: what is taken from a program that does nothing but read the clock.

use super::pin_to;
use serde::{Deserialize, Serialize};
use std::io;
use std::thread::ScopedJoinHandle;
use wiregauge_base::threads;
use wiregauge_clock::{Clock, Source, TickSpan, Ticks, Timebase};

/// No turn shorter than this is a gap. An interrupt costs at least its entry and exit, some
/// 200 ns; what stays below can move a sample by no more than this.
const GAP_LEAST_NS: f64 = 200.0;
/// And none shorter than so many ordinary turns, so that a clock which is itself slow (a system
/// call, an emulated machine) is not taken for noise.
const GAP_LEAST_TURNS: f64 = 10.0;
/// Turns from which the ordinary one is taken, as their median; some 20 us.
const TURNS: usize = 1001;
/// Bins of the histogram: 2^0 to 2^39 ns (9 minutes); a longer gap counts in the last.
const BINS: usize = 40;

/// What a spin loop saw on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The CPU.
    pub cpu: u32,
    /// How long the loop spun altogether.
    pub observed_ns: f64,
    /// A pause between two turns above this is a gap.
    pub gap_threshold_ns: f64,
    /// Number of gaps.
    pub gaps: u64,
    /// Time lost in gaps.
    pub lost_ns: f64,
    /// The longest gap.
    pub longest_ns: f64,
    /// Gaps by length: (lower bound in ns, number), bounds are powers of two.
    pub histogram: Vec<(f64, u64)>,
}

impl Noise {
    /// The share of its time that the CPU lost, 0 to 1 whatever a record says.
    pub fn share(&self) -> f64 {
        let share = self.lost_ns / self.observed_ns;
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Adds what was seen on the same CPU at another time. The threshold is the larger of the
    /// two: above it both have counted everything.
    pub fn merge(&mut self, other: &Noise) {
        self.observed_ns += other.observed_ns;
        self.gap_threshold_ns = self.gap_threshold_ns.max(other.gap_threshold_ns);
        self.gaps += other.gaps;
        self.lost_ns += other.lost_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        for &(bound_ns, count) in &other.histogram {
            match self.histogram.iter_mut().find(|(b, _)| *b == bound_ns) {
                Some((_, mine)) => *mine += count,
                None => self.histogram.push((bound_ns, count)),
            }
        }
        self.histogram.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}

/// What the loop counts into: fixed memory, in ticks.
struct Bins {
    /// Lower bound of each bin in ticks.
    bounds: [TickSpan; BINS],
    counts: [u64; BINS],
    lost: TickSpan,
    longest: TickSpan,
}

impl Bins {
    fn new(base: &Timebase) -> Bins {
        Bins {
            bounds: std::array::from_fn(|i| base.ticks_for((1u64 << i) as f64)),
            counts: [0; BINS],
            lost: TickSpan(0),
            longest: TickSpan(0),
        }
    }

    #[cold]
    fn count(&mut self, gap: TickSpan) {
        let bin = self.bounds.partition_point(|bound| *bound <= gap).saturating_sub(1);
        self.counts[bin] += 1;
        self.lost = self.lost + gap;
        self.longest = self.longest.max(gap);
    }
}

/// The median of some turns of the loop.
fn ordinary_turn<C: Clock>(clock: C) -> TickSpan {
    let mut turns = [TickSpan(0); TURNS];
    let mut last = clock.now();
    for turn in &mut turns {
        let now = clock.now();
        *turn = now - last;
        last = now;
    }
    turns.sort_unstable();
    turns[TURNS / 2]
}

/// Reads the clock for `length_ns`, and counts the pauses between two readings that are longer
/// than max(200 ns, 10 ordinary turns). The calling thread has to be bound to `cpu` already.
///
/// Error: a gap's length is right within one ordinary turn. Gaps below the threshold are not
/// seen; each could have moved a sample by less than the threshold.
pub fn spin<C: Clock>(cpu: u32, clock: C, base: &Timebase, length_ns: f64) -> Noise {
    listing(cpu, clock, base, length_ns, |_, _| {})
}

/// The same, and hands each gap on: its first tick and its length. What is done with it is in the
/// next turn, and no part of a gap.
pub(super) fn listing<C: Clock>(
    cpu: u32,
    clock: C,
    base: &Timebase,
    length_ns: f64,
    mut each: impl FnMut(Ticks, TickSpan),
) -> Noise {
    let turn_ns = base.span(ordinary_turn(clock));
    let gap_threshold_ns = GAP_LEAST_NS.max(GAP_LEAST_TURNS * turn_ns);
    let threshold = base.ticks_for(gap_threshold_ns);
    let length = base.ticks_for(length_ns.max(0.0));
    // A turn of less than 1 ns does not exist, so this bounds only a clock that stands still.
    let turns_most = length_ns.max(0.0) as u64 + 1;
    let mut bins = Bins::new(base);
    let observed = turn_until(clock, length, threshold, turns_most, |from, gap| {
        bins.count(gap);
        each(from, gap);
    });
    let filled = bins.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    Noise {
        cpu,
        observed_ns: base.span(observed),
        gap_threshold_ns,
        gaps: bins.counts.iter().sum(),
        lost_ns: base.span(bins.lost),
        longest_ns: base.span(bins.longest),
        histogram: filled.map(|(i, count)| ((1u64 << i) as f64, *count)).collect(),
    }
}

/// The loop. Between two readings: one subtraction, two comparisons and the choice of the clock.
#[inline(never)]
fn turn_until<C: Clock>(
    clock: C,
    length: TickSpan,
    threshold: TickSpan,
    turns_most: u64,
    mut gap: impl FnMut(Ticks, TickSpan),
) -> TickSpan {
    let start: Ticks = clock.now();
    let mut last = start;
    for _ in 0..turns_most {
        let now = clock.now();
        if now - last > threshold {
            gap(last, now - last);
        }
        last = now;
        if now - start >= length {
            break;
        }
    }
    last - start
}

/// Purpose of the threads of this file and of `together`.
pub(crate) const WATCH_A_CPU: &str = "observe a CPU";

/// Returns what the thread that observed a CPU found, or why there is nothing.
pub(crate) fn joined<T>(
    cpu: u32,
    thread: io::Result<ScopedJoinHandle<'_, Result<T, String>>>,
) -> Result<T, String> {
    let found = thread.map_err(|error| error.to_string())?.join();
    found.unwrap_or_else(|_| Err(format!("the thread that observed CPU {cpu} died")))
}

/// Observes several CPUs at the same time, each by a thread of its own bound to it.
///
/// A CPU to which no thread could be bound gives the reason in its place.
pub fn observe(
    cpus: &[u32],
    source: Source,
    base: &Timebase,
    length_ns: f64,
) -> Vec<Result<Noise, String>> {
    let one = |cpu: u32| {
        pin_to(cpu)?;
        Ok(spin(cpu, source.clock(), base, length_ns))
    };
    std::thread::scope(|scope| {
        let spawned =
            |&cpu: &u32| (cpu, threads::spawn_scoped(WATCH_A_CPU, scope, move || one(cpu)));
        let started: Vec<_> = cpus.iter().map(spawned).collect();
        started.into_iter().map(|(cpu, thread)| joined(cpu, thread)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Moves on by 20 ns at each reading, and by more at some of them.
    #[derive(Clone, Copy)]
    struct Scripted<'a> {
        now: &'a Cell<u64>,
        reading: &'a Cell<u64>,
        /// (number of the reading, length in ns)
        stalls: &'a [(u64, u64)],
    }

    impl Clock for Scripted<'_> {
        fn now(self) -> Ticks {
            let reading = self.reading.replace(self.reading.get() + 1);
            let stall = self.stalls.iter().find(|s| s.0 == reading).map_or(20, |s| s.1);
            self.now.set(self.now.get() + stall);
            Ticks(self.now.get())
        }
    }

    fn seen(stalls: &[(u64, u64)], length_ns: f64) -> Noise {
        let (now, reading) = (Cell::new(0), Cell::new(0));
        let clock = Scripted { now: &now, reading: &reading, stalls };
        spin(3, clock, &Timebase::nanoseconds(Ticks(0)), length_ns)
    }

    #[test]
    fn a_quiet_cpu_shows_no_gap() {
        let noise = seen(&[], 1e6);
        assert_eq!((noise.cpu, noise.gaps, noise.lost_ns, noise.longest_ns), (3, 0, 0.0, 0.0));
        assert_eq!((noise.gap_threshold_ns, noise.observed_ns), (200.0, 1e6));
        assert!(noise.histogram.is_empty());
    }

    #[test]
    fn every_gap_is_counted_with_its_length() {
        let noise = seen(&[(2000, 1_500), (2100, 1_024), (2200, 4_000_000), (2300, 199)], 1e7);
        assert_eq!((noise.gaps, noise.longest_ns), (3, 4e6));
        assert_eq!(noise.lost_ns, 4_002_524.0);
        assert_eq!(noise.histogram, [(1024.0, 2), (2_097_152.0, 1)]);
    }

    #[test]
    fn a_gap_at_the_end_is_seen() {
        let noise = seen(&[(1500, 5_000_000_000)], 1e6);
        assert_eq!((noise.gaps, noise.longest_ns), (1, 5e9));
        assert!(noise.observed_ns > 5e9);
    }

    #[test]
    fn a_slow_clock_is_not_noise() {
        let slow: Vec<(u64, u64)> = (0..2000).map(|reading| (reading, 300)).collect();
        let noise = seen(&slow, 1e5);
        assert_eq!((noise.gaps, noise.gap_threshold_ns), (0, 3_000.0));
    }

    #[test]
    fn a_clock_that_stands_still_ends_the_loop() {
        let word = std::sync::atomic::AtomicU64::new(0);
        let clock = wiregauge_clock::Virtual(&word);
        let noise = spin(0, clock, &Timebase::nanoseconds(Ticks(0)), 1e4);
        assert_eq!((noise.gaps, noise.observed_ns), (0, 0.0));
    }

    #[test]
    fn merged_observations_add_up_and_keep_the_longest() {
        let mut all = seen(&[(2000, 1_500)], 1e6);
        all.merge(&seen(&[(2000, 1_100), (2100, 300)], 1e6));
        assert_eq!((all.gaps, all.lost_ns, all.longest_ns), (3, 2_900.0, 1_500.0));
        assert_eq!(all.histogram, [(256.0, 1), (1024.0, 2)]);
        assert_eq!(all.observed_ns, 2e6);
    }

    #[test]
    fn a_cpu_that_does_not_exist_gives_an_error_in_its_place() {
        let base = Timebase::nanoseconds(Ticks(0));
        let found = observe(&[1_000_000], Source::MonotonicRaw, &base, 0.0);
        let [Err(why)] = found.as_slice() else { panic!("{found:?}") };
        assert!(why.starts_with("cannot bind a thread to CPU 1000000: "), "{why}");
    }
}
