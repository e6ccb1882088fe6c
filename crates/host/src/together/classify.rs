//! What each gap was, and what all of them have in common.

use super::activity::{Activity, Kind};
use super::gaps::{Gap, at_once};
use super::period::period;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of a gap of which the kernel recorded less than half, this much or more cannot be the entry and
/// exit of a handler, which take below 2 us also in a virtual machine: it was outside the kernel.
const OUTSIDE_NS: f64 = 10_000.0;
/// The part of a gap that must have been recorded for what was recorded to be its cause, where the
/// rest is long.
const EXPLAINED: f64 = 0.5;
/// Instants of a cause on a CPU that are kept to find their period.
const MOST_INSTANTS: usize = 10_000;
/// The longest gaps that a record keeps one by one.
pub const MOST_SHOWN: usize = 4000;
/// The most causes; those beyond it are "others".
const MOST_CAUSES: usize = 256;

/// What a gap was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    pub kind: Kind,
    pub name: String,
    /// Whether all CPUs stood still at the same instant.
    pub all_at_once: bool,
}

/// Gaps of one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseFigures {
    /// What it is.
    pub kind: Kind,
    /// Its name: that of an interrupt or a task; of gaps that were not traced their length.
    pub name: String,
    /// Whether all CPUs stood still at the same instant, of what has no name of its own.
    pub all_at_once: bool,
    /// Where it was seen.
    pub cpus: Vec<u32>,
    /// Its gaps, on all CPUs.
    pub gaps: u64,
    /// The time lost in them.
    pub lost_ns: f64,
    /// The longest.
    pub longest_ns: f64,
    /// The part of the lost time for which the kernel recorded what ran; 0 to 1.
    pub recorded: f64,
    /// How far apart they are on a CPU, where they come regularly.
    pub period_ns: Option<f64>,
    /// Gaps by length: (lower bound in ns, a power of two, number).
    pub histogram: Vec<(f64, u64)>,
}

/// One of the longest gaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownGap {
    pub cpu: u32,
    /// Since the first window began.
    pub start_ns: f64,
    pub length_ns: f64,
    /// Which of the causes.
    pub cause: u32,
}

/// What was recorded of a gap's time: what took most of it, and the time in which anything ran.
fn recorded(gap: &Gap, activities: &[(Activity, f64, f64)]) -> Option<(Kind, String, f64)> {
    let mut by_name: BTreeMap<(Kind, &str), f64> = BTreeMap::new();
    let (mut covered, mut until) = (0.0, gap.start_ns);
    let overlapping =
        activities.iter().filter(|(_, from, to)| *from < gap.end_ns() && *to > gap.start_ns);
    for (activity, from, to) in overlapping {
        let (from, to) = (from.max(gap.start_ns), to.min(gap.end_ns()));
        *by_name.entry((activity.kind, &activity.name)).or_default() += to - from;
        covered += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    let ((kind, name), _) = by_name.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((kind, name.to_owned(), covered))
}

/// Its kind and name, and the time for which the kernel recorded what ran.
fn cause(gap: &Gap, traced: Option<&[(Activity, f64, f64)]>) -> (Kind, String, f64) {
    let Some(activities) = traced else {
        let exponent = gap.length_ns.max(1.0).log2().floor();
        let [from, to] = [0.0, 1.0]
            .map(|more| wiregauge_base::warning::number::time(2f64.powf(exponent + more)));
        return (Kind::Unknown, format!("{from} to {to}"), 0.0);
    };
    match recorded(gap, activities) {
        None => (Kind::Outside, String::new(), 0.0),
        Some((_, _, ran))
            if ran < EXPLAINED * gap.length_ns && gap.length_ns - ran >= OUTSIDE_NS =>
        {
            (Kind::Outside, String::new(), ran)
        }
        Some(found) => found,
    }
}

/// What a window saw on one CPU: its gaps, and what the kernel did there, if that is known.
pub struct CpuWindow {
    pub gaps: Vec<Gap>,
    /// In the order of their begins; each with begin and end on the time line.
    pub activities: Option<Vec<(Activity, f64, f64)>>,
    /// Before this the trace has nothing: it was full.
    pub traced_from_ns: f64,
}

/// Gaps of one cause while they are collected.
#[derive(Default)]
struct Row {
    gaps: u64,
    lost_ns: f64,
    recorded_ns: f64,
    longest_ns: f64,
    histogram: BTreeMap<u32, u64>,
    /// Of each CPU.
    instants: BTreeMap<u32, Vec<f64>>,
}

/// Collects window by window, in memory that does not grow with their number.
#[derive(Default)]
pub struct Collector {
    rows: Vec<(Cause, Row)>,
    numbers: BTreeMap<Cause, usize>,
    shown: Vec<ShownGap>,
}

impl Collector {
    /// Adds a window in which so many CPUs were watched.
    pub fn add(&mut self, windows: &[CpuWindow]) {
        let cpus = windows.len() as u32;
        let mut all: Vec<(Gap, (Kind, String, f64))> = Vec::new();
        for window in windows {
            let activities = window.activities.as_deref();
            let mut first = 0;
            for gap in &window.gaps {
                let is_traced = gap.start_ns >= window.traced_from_ns;
                let near = activities.filter(|_| is_traced);
                let near = near.map(|all| from_the_first(all, &mut first, gap));
                all.push((*gap, cause(gap, near)));
            }
        }
        all.sort_by(|a, b| a.0.start_ns.total_cmp(&b.0.start_ns));
        let gaps: Vec<Gap> = all.iter().map(|(gap, _)| *gap).collect();
        for (count, (gap, (kind, name, ran))) in at_once(&gaps).into_iter().zip(all) {
            // What has a name is known without it, and of one CPU nobody knows whether the others
            // stood still.
            let is_unnamed = [Kind::Outside, Kind::Unknown].contains(&kind);
            let all_at_once = is_unnamed && cpus > 1 && count >= cpus;
            self.add_gap(&gap, Cause { kind, name, all_at_once }, ran);
        }
        if self.shown.len() > 2 * MOST_SHOWN {
            self.keep_longest();
        }
    }

    fn add_gap(&mut self, gap: &Gap, cause: Cause, ran_ns: f64) {
        let number = self.number(cause);
        let Some((_, row)) = self.rows.get_mut(number) else { return };
        row.gaps += 1;
        row.lost_ns += gap.length_ns;
        row.recorded_ns += ran_ns.min(gap.length_ns);
        row.longest_ns = row.longest_ns.max(gap.length_ns);
        *row.histogram.entry(gap.length_ns.max(1.0).log2() as u32).or_default() += 1;
        let instants = row.instants.entry(gap.cpu).or_default();
        if instants.len() < MOST_INSTANTS {
            instants.push(gap.start_ns);
        }
        let Gap { cpu, start_ns, length_ns } = *gap;
        self.shown.push(ShownGap { cpu, start_ns, length_ns, cause: number as u32 });
    }

    fn number(&mut self, cause: Cause) -> usize {
        let cause = match self.numbers.get(&cause) {
            Some(number) => return *number,
            None if self.rows.len() < MOST_CAUSES => cause,
            None => Cause { name: "others".into(), ..cause },
        };
        *self.numbers.entry(cause.clone()).or_insert_with(|| {
            self.rows.push((cause, Row::default()));
            self.rows.len() - 1
        })
    }

    fn keep_longest(&mut self) {
        self.shown.sort_by(|a, b| b.length_ns.total_cmp(&a.length_ns));
        self.shown.truncate(MOST_SHOWN);
    }

    /// The causes, that of the most lost time first, and the longest gaps in the order of time.
    pub fn finish(mut self) -> (Vec<CauseFigures>, Vec<ShownGap>) {
        self.keep_longest();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| self.rows[*b].1.lost_ns.total_cmp(&self.rows[*a].1.lost_ns));
        for gap in &mut self.shown {
            let place = order.iter().position(|number| *number as u32 == gap.cause);
            gap.cause = place.unwrap_or_default() as u32;
        }
        self.shown.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        let figures = order.iter().map(|number| figures(&self.rows[*number])).collect();
        (figures, self.shown)
    }
}

/// The activities from the first that does not end before the gap begins. Gaps come in the order of
/// time, so what ended before one also did before the next.
fn from_the_first<'a>(
    all: &'a [(Activity, f64, f64)],
    first: &mut usize,
    gap: &Gap,
) -> &'a [(Activity, f64, f64)] {
    while all.get(*first).is_some_and(|(_, _, until)| *until <= gap.start_ns) {
        *first += 1;
    }
    let after = all[*first..].partition_point(|(_, from, _)| *from < gap.end_ns());
    &all[*first..*first + after]
}

fn figures((cause, row): &(Cause, Row)) -> CauseFigures {
    let periods = row.instants.values().filter_map(|instants| period(instants));
    let mut periods: Vec<f64> = periods.collect();
    periods.sort_by(f64::total_cmp);
    // On most of its CPUs, if it is the cause's and not chance.
    let is_regular = 2 * periods.len() > row.instants.len();
    CauseFigures {
        kind: cause.kind,
        name: cause.name.clone(),
        all_at_once: cause.all_at_once,
        cpus: row.instants.keys().copied().collect(),
        gaps: row.gaps,
        lost_ns: row.lost_ns,
        longest_ns: row.longest_ns,
        recorded: if row.lost_ns > 0.0 { row.recorded_ns / row.lost_ns } else { 0.0 },
        period_ns: periods.get(periods.len() / 2).copied().filter(|_| is_regular),
        histogram: row
            .histogram
            .iter()
            .map(|(bin, count)| (2f64.powi(*bin as i32), *count))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(cpu: u32, start_ns: f64, length_ns: f64) -> Gap {
        Gap { cpu, start_ns, length_ns }
    }

    fn ran(kind: Kind, name: &str, from: f64, until: f64) -> (Activity, f64, f64) {
        (Activity { kind, name: name.into(), from: 0, until: 0 }, from, until)
    }

    fn collected(windows: &[CpuWindow]) -> (Vec<CauseFigures>, Vec<ShownGap>) {
        let mut collector = Collector::default();
        collector.add(windows);
        collector.finish()
    }

    fn shown(all: &[CauseFigures]) -> Vec<(Kind, &str, bool, u64)> {
        all.iter().map(|one| (one.kind, one.name.as_str(), one.all_at_once, one.gaps)).collect()
    }

    #[test]
    fn a_gap_is_what_ran_for_most_of_it() {
        let activities = vec![
            ran(Kind::Task, "stress-ng-cpu", 1000.0, 4_000_000.0),
            ran(Kind::Interrupt, "local timer", 2_000_000.0, 2_002_000.0),
            ran(Kind::Interrupt, "local timer", 9_000_500.0, 9_001_000.0),
            ran(Kind::SoftInterrupt, "TIMER", 9_001_000.0, 9_002_500.0),
        ];
        let gaps = vec![gap(0, 900.0, 4_000_000.0), gap(0, 9_000_000.0, 3000.0)];
        let (causes, longest) =
            collected(&[CpuWindow { gaps, activities: Some(activities), traced_from_ns: 0.0 }]);
        let expected =
            [(Kind::Task, "stress-ng-cpu", false, 1), (Kind::SoftInterrupt, "TIMER", false, 1)];
        assert_eq!(shown(&causes), expected);
        assert!(causes[0].recorded > 0.99 && (causes[1].recorded - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(longest.iter().map(|one| one.cause).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_the_kernel_did_not_record_is_outside_of_it_and_of_all_cpus_at_once() {
        // At the end of what the firmware took, the interrupts that waited are handled.
        let window = |cpu: u32| {
            let late = ran(Kind::Interrupt, "local timer", 1_249_000.0, 1_250_500.0);
            let own = ran(Kind::Interrupt, "local timer", 5_000_200.0, 5_001_000.0);
            let gaps = vec![
                gap(cpu, 1_000_000.0 + f64::from(cpu), 250_000.0),
                gap(cpu, 5_000_000.0, 2000.0),
                gap(cpu, 7_000_000.0 + 1e5 * f64::from(cpu), 40_000.0),
            ];
            CpuWindow { gaps, activities: Some(vec![late, own]), traced_from_ns: 0.0 }
        };
        let (causes, _) = collected(&[window(0), window(1)]);
        let expected = [
            (Kind::Outside, "", true, 2),
            (Kind::Outside, "", false, 2),
            (Kind::Interrupt, "local timer", false, 2),
        ];
        assert_eq!(shown(&causes), expected);
        assert_eq!(causes[0].cpus, [0, 1]);
    }

    #[test]
    fn the_period_of_a_cause_is_that_of_its_gaps_alone() {
        let ticks = (0..100).map(|at| (4e6 * f64::from(at) + 1e5, "local timer"));
        let others = [0.3e6, 7.7e6, 31e6, 32e6, 33.5e6, 90e6].map(|at| (at, "virtio3-rx"));
        let mut all: Vec<(f64, &str)> = ticks.chain(others).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gaps = all.iter().map(|(at, _)| gap(3, *at, 3000.0)).collect();
        let activities =
            all.iter().map(|(at, name)| ran(Kind::Interrupt, name, at + 500.0, at + 2500.0));
        let activities = Some(activities.collect());
        let (causes, _) = collected(&[CpuWindow { gaps, activities, traced_from_ns: 0.0 }]);
        let period = |name: &str| {
            let own = causes.iter().find(|one| one.name == name).unwrap();
            own.period_ns.map(|period| (period / 1e3).round())
        };
        assert_eq!((period("local timer"), period("virtio3-rx")), (Some(4000.0), None));
    }

    #[test]
    fn without_a_trace_gaps_are_told_apart_by_their_lengths() {
        let ticks = (0..50).map(|at| gap(0, 1e6 * f64::from(at), 3000.0));
        let gaps: Vec<Gap> = ticks.chain([gap(0, 60e6, 11e6)]).collect();
        let (causes, _) = collected(&[CpuWindow { gaps, activities: None, traced_from_ns: 0.0 }]);
        let names: Vec<&str> = causes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["8.39 ms to 16.8 ms", "2.05 us to 4.10 us"]);
        assert_eq!(causes[1].period_ns.map(f64::round), Some(1e6));
        assert!(causes.iter().all(|one| one.kind == Kind::Unknown && !one.all_at_once));
    }

    #[test]
    fn of_a_time_that_the_trace_has_lost_nothing_is_told() {
        let gaps = vec![gap(0, 1000.0, 3000.0), gap(0, 1e6, 3000.0)];
        let window = CpuWindow { gaps, activities: Some(Vec::new()), traced_from_ns: 5000.0 };
        let (causes, _) = collected(&[window]);
        let kinds: Vec<Kind> = causes.iter().map(|one| one.kind).collect();
        assert!(kinds.contains(&Kind::Unknown) && kinds.contains(&Kind::Outside), "{kinds:?}");
    }

    #[test]
    fn memory_does_not_grow_with_the_time() {
        let mut collector = Collector::default();
        for window in 0..200 {
            let gaps = (0..100).map(|at| {
                let start = 1e9 * f64::from(window) + 1e6 * f64::from(at);
                gap(0, start, 1000.0 + f64::from(at))
            });
            collector.add(&[CpuWindow {
                gaps: gaps.collect(),
                activities: None,
                traced_from_ns: 0.0,
            }]);
        }
        let (causes, longest) = collector.finish();
        assert_eq!(causes.iter().map(|one| one.gaps).sum::<u64>(), 20_000);
        assert_eq!(longest.len(), MOST_SHOWN);
        assert!(longest.iter().all(|one| one.length_ns >= 1080.0));
    }
}
