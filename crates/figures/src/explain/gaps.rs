//! Gaps of all CPUs at once: what stops a whole machine (firmware, a hypervisor) and not one CPU.
//!
//! That no CPU stamped anything is no evidence by itself, since a CPU that polls or sleeps stamps
//! nothing either. What another CPU would have stamped is known of its timer: one that ticks at
//! equal intervals and has a tick due within the gap, which comes as soon as the gap has ended.

use super::stamps::Stamps;
use std::collections::BTreeMap;
use wiregauge_host::trace::{Kind, Stamp};

/// Ticks are at equal intervals if half of them are within this share of the median interval.
const REGULAR: f64 = 0.05;
/// The fewest ticks of which an interval is known.
const LEAST_TICKS: usize = 4;
/// A tick that was due this long before the end of a gap was late: others come within it.
const LATE_NS: f64 = 20_000.0;
/// How soon after the end of a gap a tick that was held up comes.
const SOON_NS: f64 = 50_000.0;

/// The timer ticks of all CPUs that tick regularly.
#[derive(Clone, Debug, Default)]
pub struct Ticks(BTreeMap<u16, Regular>);

#[derive(Clone, Debug)]
struct Regular {
    times_ns: Vec<f64>,
    interval_ns: f64,
}

impl Ticks {
    /// Finds them in the stamps of a round.
    pub fn new(stamps: &Stamps<'_>) -> Ticks {
        let mut each: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
        for (stamp, time) in stamps.all.iter().zip(&stamps.times_ns) {
            if stamp.kind == Kind::TimerEntry {
                each.entry(stamp.cpu).or_default().push(*time);
            }
        }
        let regular = each.into_iter().filter_map(|(cpu, times)| Some((cpu, Regular::new(times)?)));
        Ticks(regular.collect())
    }

    /// The other CPUs that were stopped too by a gap of one; none where another one stamped
    /// something meanwhile, or had no tick due.
    pub fn stopped_with(
        &self,
        cpu: u16,
        (from_ns, to_ns): (f64, f64),
        stamps: &Stamps<'_>,
    ) -> Vec<u16> {
        let within = stamps.between(from_ns + 1.0, to_ns - 1.0);
        if stamps.all[within].iter().any(|stamp| stamp.kind.is_of_kernel() && stamp.cpu != cpu) {
            return Vec::new();
        }
        let others = self.0.iter().filter(|(other, _)| **other != cpu);
        let late = others.filter(|(_, ticks)| ticks.is_held_up(from_ns, to_ns));
        late.map(|(other, _)| *other).collect()
    }
}

impl Regular {
    fn new(times_ns: Vec<f64>) -> Option<Regular> {
        let mut intervals: Vec<f64> = times_ns.windows(2).map(|two| two[1] - two[0]).collect();
        intervals.sort_by(f64::total_cmp);
        let interval_ns = *intervals.get(intervals.len() / 2)?;
        let near = |one: &&f64| (**one / interval_ns - 1.0).abs() <= REGULAR;
        let is_regular = intervals.iter().filter(near).count() * 2 >= intervals.len();
        (times_ns.len() >= LEAST_TICKS && interval_ns > 0.0 && is_regular)
            .then_some(Regular { times_ns, interval_ns })
    }

    /// Whether a tick was due within a gap and came as soon as that had ended.
    fn is_held_up(&self, from_ns: f64, to_ns: f64) -> bool {
        let next = self.times_ns.partition_point(|time| *time <= from_ns);
        let (Some(before), Some(after)) =
            (next.checked_sub(1).map(|at| self.times_ns[at]), self.times_ns.get(next))
        else {
            return false;
        };
        let due = before + self.interval_ns;
        let is_due = due > from_ns && due < to_ns - LATE_NS;
        is_due && *after >= to_ns && *after <= to_ns + SOON_NS
    }
}

/// The longest time within an interval in which a CPU stamped nothing.
pub fn longest_silence(
    stamps: &Stamps<'_>,
    cpu: u16,
    from_ns: f64,
    to_ns: f64,
) -> Option<(f64, f64)> {
    let range = stamps.between(from_ns, to_ns);
    let own = |at: &usize| {
        let stamp: &Stamp = &stamps.all[*at];
        stamp.cpu == cpu
    };
    let times = range.filter(own).map(|at| stamps.times_ns[at]);
    let times: Vec<f64> = [from_ns].into_iter().chain(times).chain([to_ns]).collect();
    let gaps = times.windows(2).map(|two| (two[0], two[1]));
    gaps.max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::clock;
    use wiregauge_host::trace::Trace;

    fn tick(time_ns: u64, cpu: u16) -> Stamp {
        let kind = Kind::TimerEntry;
        let (tid, flow, number, length) = (0, 0, 0, 0);
        Stamp { time_ns, tid, flow, number, length, cpu, kind, in_kernel_thread: false }
    }

    /// Ticks every 4 ms of CPU 0, and 1 ms after these of CPU 1, but for some.
    fn stopped(moved: &[(u64, u64)], more: &[Stamp], gap: (f64, f64)) -> Vec<u16> {
        let ms = 1_000_000;
        let times = (1..20).flat_map(|number| [(number * 4 * ms, 0), (number * 4 * ms + ms, 1)]);
        let all = times.map(|(time, cpu)| {
            let to = moved.iter().find(|(from, _)| *from == time).map_or(time, |(_, to)| *to);
            tick(to, cpu)
        });
        let mut stamps: Vec<Stamp> = all.chain(more.iter().copied()).collect();
        stamps.sort_by_key(|stamp| stamp.time_ns);
        let trace = Trace { stamps, ..Trace::default() };
        let clock = clock();
        let stamps = Stamps::new(&trace, &clock);
        Ticks::new(&stamps).stopped_with(1, gap, &stamps)
    }

    #[test]
    fn a_tick_that_comes_as_soon_as_a_gap_has_ended_was_held_up_by_it() {
        // CPU 1 from 19.8 to 20.1 ms; the tick of CPU 0 was due at 20 ms.
        let gap = (19_800_000.0, 20_100_000.0);
        assert_eq!(stopped(&[(20_000_000, 20_101_000)], &[], gap), [0]);
        // It came in time.
        assert!(stopped(&[], &[], gap).is_empty());
        // Late, and long after the gap: for another reason.
        assert!(stopped(&[(20_000_000, 20_400_000)], &[], gap).is_empty());
        // None was due.
        let gap = (21_500_000.0, 21_800_000.0);
        assert!(stopped(&[], &[], gap).is_empty());
        // CPU 0 did something else meanwhile.
        let gap = (19_800_000.0, 20_100_000.0);
        let other = Stamp { kind: Kind::Waking, ..tick(19_900_000, 0) };
        assert!(stopped(&[(20_000_000, 20_101_000)], &[other], gap).is_empty());
    }

    #[test]
    fn a_cpu_without_equal_intervals_is_no_evidence() {
        let times = [4_000_000, 8_000_000, 9_000_000, 15_000_000, 16_500_000, 25_000_000];
        let stamps: Vec<Stamp> = times.map(|time| tick(time, 0)).into();
        let trace = Trace { stamps, ..Trace::default() };
        let clock = clock();
        assert!(Ticks::new(&Stamps::new(&trace, &clock)).0.is_empty());
    }
}
