//! What a case has shown so far, for somebody who watches: a few figures of its rounds. Pure.

use super::pattern::RunSoFar;
use wiregauge_stats::Metric;
use wiregauge_stats::quantile::rank;

/// Samples that a running figure is made of, evenly spread: enough for a p99, and done in a
/// millisecond between two rounds.
const LOOKED_AT: usize = 1 << 14;

/// What the rounds of a case have shown so far. It is made between rounds, of samples that the
/// controller has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SoFar {
    /// Of the metric that answers its question.
    Times {
        /// The metric.
        metric: Metric,
        /// Its median in ns.
        p50_ns: f64,
        /// Its p99 in ns.
        p99_ns: f64,
    },
    /// Messages per second.
    Rate(f64),
}

/// Of the rounds of a run; `None` before the first.
pub fn so_far(run: &RunSoFar) -> Option<SoFar> {
    if run.analysis.is_rate() {
        let delivered = || run.work.delivered.iter();
        let seconds: f64 = delivered().map(|one| one.seconds).sum();
        let work: f64 = delivered().map(|one| one.work).sum();
        return (seconds > 0.0).then_some(SoFar::Rate(work / seconds));
    }
    let metric = *run.analysis.metrics(&run.case).first()?;
    let rounds = run.series.get(&metric)?;
    let every = rounds.iter().map(Vec::len).sum::<usize>().div_ceil(LOOKED_AT).max(1);
    let mut values: Vec<f64> = rounds.iter().flatten().step_by(every).copied().collect();
    values.sort_by(f64::total_cmp);
    let at = |p| values.get((rank(p, values.len() as u64) as usize).checked_sub(1)?).copied();
    Some(SoFar::Times { metric, p50_ns: at(0.5)?, p99_ns: at(0.99)? })
}
