//! Gaps of all CPUs on one time line, each with its cause where the kernel's trace tells it.
//!
//! Takes CPUs and a time; gives what took them from a loop that does nothing but read the clock:
//! interrupts and tasks by their names, and what was outside of the kernel, at the same instant on
//! all CPUs or on one. The loops run in windows of a second; between two the trace is read, which
//! is no part of what was watched, so that an hour needs no more memory than a second.

mod activity;
mod classify;
mod evidence;
mod gaps;
mod period;
mod tracer;

pub use activity::Kind;
pub use classify::{CauseFigures, MOST_SHOWN, ShownGap};
pub use evidence::InterruptCount;

use super::Tree;
use super::noise::Noise;
use classify::{Collector, CpuWindow};
use evidence::Evidence;
use gaps::{Gap, Watched};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use tracer::Tracer;
use wiregauge_clock::{ChosenClock, Clock, Source, Ticks};

/// Length of a window.
const WINDOW_NS: f64 = 1e9;

/// Returns how often interrupts came between two readings, for the fuzz targets alone.
pub(super) fn interrupts_between(before: &Tree, after: &Tree, cpus: &[u32]) -> Vec<InterruptCount> {
    let [before, after] = [before, after].map(|tree| Evidence::read(tree, cpus));
    after.idle_since(&before);
    after.steal_since(&before);
    after.interrupts_since(&before)
}

/// Returns how many activities the lines of a trace show, for the fuzz targets alone.
pub(super) fn trace_of(lines: &str, own: &[u32]) -> usize {
    activity::read(lines, own).len()
}

/// What took the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Together {
    /// The CPUs that were watched.
    pub cpus: Vec<u32>,
    /// For how long each was, in all windows.
    pub observed_ns: f64,
    /// From the begin of the first window to the end of the last.
    pub length_ns: f64,
    /// Windows.
    pub windows: u64,
    /// Why causes have no names; `None`: they have.
    pub not_traced: Option<String>,
    /// The causes, that of the most lost time first.
    pub causes: Vec<CauseFigures>,
    /// The longest gaps, in the order of time; at most 4000.
    pub longest: Vec<ShownGap>,
    /// Gaps for which there was no room: they are counted in the noise alone.
    pub unlisted: u64,
    /// Interrupts by CPU and name, the most frequent first; at most 256.
    pub interrupts: Vec<InterruptCount>,
    /// Time that the hypervisor gave to others: CPU, nanoseconds in steps of 10 ms.
    pub steal_ns: Vec<(u32, f64)>,
    /// System management interrupts meanwhile; `None`: their counter cannot be read.
    pub smis: Option<u64>,
}

/// Watches CPUs together, for a time or until it is interrupted. Also gives the noise of each.
///
/// # Errors
/// No CPU can be watched: why the first cannot.
pub fn observe(
    cpus: &[u32],
    clock: &ChosenClock,
    time_ns: f64,
    interrupted: &AtomicBool,
    mut progress: impl FnMut(f64),
) -> Result<(Together, Vec<Noise>), String> {
    let tree = Tree::default();
    let (tracer, not_traced) = match tracer(clock, cpus.len()) {
        Ok(tracer) => (Some(tracer), None),
        Err(why) => (None, Some(why)),
    };
    let before = Evidence::read(&tree, cpus);
    let mut collector = Collector::default();
    let mut noises: BTreeMap<u32, Noise> = BTreeMap::new();
    let mut found = Together { not_traced, ..Together::default() };
    let begin = clock.source.clock().now();
    while found.observed_ns < time_ns && !interrupted.load(Ordering::Relaxed) {
        let length_ns = (time_ns - found.observed_ns).min(WINDOW_NS);
        if let Some(tracer) = &tracer {
            tracer.begin();
        }
        let watched = gaps::watch(cpus, clock, length_ns);
        if let Some(tracer) = &tracer {
            tracer.end();
        }
        let mut seen = Vec::new();
        for one in watched {
            match one {
                Ok(one) => seen.push(one),
                Err(why) if cpus.len() == 1 => return Err(why),
                Err(_) => {}
            }
        }
        if seen.is_empty() {
            return Err("no thread could be bound to any of the CPUs".into());
        }
        // Threads of the loops are no cause of gaps of others' loops.
        let own: Vec<u32> = seen.iter().map(|one| one.thread).collect();
        let since = |at: Ticks| clock.base.local(at).0 - clock.base.local(begin).0;
        let windows: Vec<CpuWindow> =
            seen.iter().map(|one| window(one, tracer.as_ref(), &own, clock, since)).collect();
        collector.add(&windows);
        found.windows += 1;
        found.observed_ns += length_ns;
        found.unlisted += seen.iter().map(|one| one.unlisted).sum::<u64>();
        found.length_ns = since(clock.source.clock().now());
        for one in seen {
            let own = noises.entry(one.noise.cpu);
            own.and_modify(|all| all.merge(&one.noise)).or_insert(one.noise);
        }
        progress(found.observed_ns / time_ns);
    }
    let after = Evidence::read(&tree, cpus);
    (found.causes, found.longest) = collector.finish();
    let idle = found.causes.iter_mut().filter(|cause| cause.name == activity::IDLE);
    for cause in idle {
        let why = after.idle_since(&before).unwrap_or("unknown");
        cause.name = format!("{}: {why}", activity::IDLE);
    }
    found.cpus = noises.keys().copied().collect();
    found.interrupts = after.interrupts_since(&before);
    found.steal_ns = after.steal_since(&before);
    found.smis = after.smis_since(&before);
    Ok((found, noises.into_values().collect()))
}

/// A trace by the clock of the loops.
fn tracer(clock: &ChosenClock, cpus: usize) -> Result<Tracer, String> {
    let is_counter = cfg!(target_arch = "x86_64") && clock.source == Source::Tsc;
    ensure!(
        is_counter,
        "causes have no names: the kernel's trace is compared with the clock tsc of x86-64 alone"
    );
    Tracer::open(cpus)
}

/// What a window saw on a CPU, on the time line of all.
fn window(
    watched: &Watched,
    tracer: Option<&Tracer>,
    own: &[u32],
    clock: &ChosenClock,
    since: impl Fn(Ticks) -> f64,
) -> CpuWindow {
    let cpu = watched.noise.cpu;
    let gap =
        |&(from, length)| Gap { cpu, start_ns: since(from), length_ns: clock.base.span(length) };
    let gaps = watched.gaps.iter().map(gap).collect();
    let traced = tracer.map(|tracer| {
        let (lines, lost) = tracer.lines(cpu);
        (activity::read(&lines, own), lost)
    });
    let Some((activities, lost)) = traced else {
        return CpuWindow { gaps, activities: None, traced_from_ns: 0.0 };
    };
    let on_line = activities.into_iter().map(|one| {
        let (from, until) = (since(Ticks(one.from)), since(Ticks(one.until)));
        (one, from, until)
    });
    let activities: Vec<_> = on_line.collect();
    let first = activities.first().map_or(f64::INFINITY, |(_, from, _)| *from);
    let traced_from_ns = if lost { first } else { f64::NEG_INFINITY };
    CpuWindow { gaps, activities: Some(activities), traced_from_ns }
}
