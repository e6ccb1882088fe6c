//! From every sample to what fits in a page: exact order statistics and a density over time.
//!
//! Takes the samples of a record round by round; gives for each run and metric a [`Curve`] and for
//! each round a [`Density`]. Nothing here estimates: a point of a curve is a sample, a cell of a
//! density is a count. [`TAIL_STEP`] and [`BINS_PER_DECADE`] say what is lost.

use crate::record::schema::{Metric, Record, Run};
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_sample::{Flags, RoundSamples, Sample};

/// So many of the largest and of the smallest samples are all kept: every outlier is a point.
pub const EXACT_TAIL: u64 = 200;
/// So many of the smallest are all kept.
pub const EXACT_HEAD: u64 = 40;
/// Beyond these, the ranks kept are spaced by this factor of the distance to the nearer end: a
/// share read between two points (of the samples above, or below the median) is within 1 % of
/// itself. 10^6 samples leave about 2000 points, 10^9 about 3400.
pub const TAIL_STEP: f64 = 1.01;
/// Above this many curves the spacing is [`COARSE_STEP`], so that a page stays within a few MB.
pub const MANY_CURVES: usize = 24;
/// The spacing for records of many runs: a share between two points is within 4 %.
pub const COARSE_STEP: f64 = 1.04;
/// Rows of a density: one covers a factor of 10^(1/64), 3.7 %.
pub const BINS_PER_DECADE: u32 = 64;
/// Rows end at 10^12 ns. Longer samples are counted in the last row, shorter ones than 1 ns in
/// the first.
pub const DECADES: u32 = 12;
/// Columns of a density over all rounds of a run, and for records of many runs.
const COLUMNS: u32 = 600;
const COLUMNS_COARSE: u32 = 120;
/// A run whose record speaks of more rounds than this gets no finer share of the columns.
const COLUMNS_LEAST: u32 = 4;

/// Exact order statistics of one metric of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Number of the run.
    pub run: u32,
    /// What the values are.
    pub metric: Metric,
    /// Samples behind it, lost ones included.
    pub count: u64,
    /// Samples at infinity.
    pub lost: u64,
    /// Ranks that are kept, from 1, rising; the last is `count`.
    pub ranks: Vec<u64>,
    /// The samples of those ranks in ns; infinite where lost.
    pub values: Vec<f64>,
}

/// Counts of one round over time and latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// Number of the run.
    pub run: u32,
    /// Number of the round.
    pub round: u32,
    /// Submit of the first sample, ns since the record's epoch.
    pub start_ns: f64,
    /// Submit of the last one.
    pub end_ns: f64,
    /// Its columns, equal shares of the time between the two.
    pub columns: Vec<Column>,
}

/// What was submitted in one slice of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Samples by their row.
    pub cells: BTreeMap<u32, u64>,
    /// The largest finite sample in ns; 0 without one.
    pub max_ns: f64,
    /// Lost ones.
    pub lost: u64,
}

/// All that the page shows of the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reduced {
    /// One for each run and metric that has samples.
    pub curves: Vec<Curve>,
    /// One for each round, of the run's first metric.
    pub densities: Vec<Density>,
    /// The factor between two ranks that was used.
    pub tail_step: f64,
    /// Samples of warm-up, left out as in the figures.
    pub warmup: u64,
    /// Samples without the stamps that their metric needs, left out.
    pub unstamped: u64,
    /// What was wrong with the samples, a sentence each.
    pub faults: Vec<String>,
}

impl Reduced {
    /// Points of all curves.
    pub fn points(&self) -> u64 {
        self.curves.iter().map(|curve| curve.ranks.len() as u64).sum()
    }

    /// Samples behind them.
    pub fn samples(&self) -> u64 {
        self.curves.iter().map(|curve| curve.count).sum()
    }

    /// What a row of a density covers, in per cent of its latency.
    pub fn row_percent(&self) -> f64 {
        100.0 * (10_f64.powf(1.0 / f64::from(BINS_PER_DECADE)) - 1.0)
    }
}

/// The metrics of a run that the page draws: `rtt` is left out beside `half_rtt`, of which it is
/// the double, and `post` has no stamp in the samples.
pub fn drawn_metrics(run: &Run) -> Vec<Metric> {
    let half = run.summary(Metric::HalfRtt).is_some();
    let order = [
        Metric::Response,
        Metric::OneWay,
        Metric::HalfRtt,
        Metric::Rtt,
        Metric::Service,
        Metric::Lateness,
        Metric::Transfer,
        Metric::Complete,
    ];
    let has = |m: &Metric| run.summary(*m).is_some() && !(half && *m == Metric::Rtt);
    order.into_iter().filter(has).collect()
}

/// The metric that represents a run.
pub fn headline(run: &Run) -> Option<Metric> {
    let post = || run.summary(Metric::Post).map(|_| Metric::Post);
    drawn_metrics(run).into_iter().next().or_else(post)
}

/// Reduces all samples of a record. A run is reduced and its samples dropped as soon as its last
/// round has come, so that the memory is that of the runs which are open at the same time.
pub fn reduce<E: std::fmt::Display>(
    record: &Record,
    rounds: impl IntoIterator<Item = Result<RoundSamples, E>>,
) -> Reduced {
    let mut rounds = rounds.into_iter().map(|round| round.map_err(|error| error.to_string()));
    reduce_all(record, &mut rounds)
}

/// The same for all kinds of errors and sources.
fn reduce_all(
    record: &Record,
    rounds: &mut dyn Iterator<Item = Result<RoundSamples, String>>,
) -> Reduced {
    let mut runs = BTreeMap::from_iter(record.runs.iter().map(|run| (run.index, Open::new(run))));
    let many = runs.values().map(|open| open.metrics.len()).sum::<usize>() > MANY_CURVES;
    let mut out =
        Reduced { tail_step: if many { COARSE_STEP } else { TAIL_STEP }, ..Reduced::default() };
    let columns = if many { COLUMNS_COARSE } else { COLUMNS };
    for round in rounds {
        let round = match round {
            Ok(round) => round,
            Err(e) => {
                out.faults.push(format!("The samples could be read only in part: {e}."));
                break;
            }
        };
        let Some(open) = runs.get_mut(&round.run) else {
            out.faults.push(format!("Samples of run {}, which the record lacks.", round.run));
            continue;
        };
        if open.metrics.is_empty() {
            continue;
        }
        if open.values.is_empty() || !open.rounds.insert(round.round) {
            out.faults.push(format!(
                "Samples of run {}, round {}, which the record lacks or which came before.",
                round.run, round.round
            ));
            continue;
        }
        open.add(&round, &mut out);
        let share = columns / (open.run.rounds.len().max(1) as u32);
        out.densities.push(density(open.metrics[0], &round, share.max(COLUMNS_LEAST)));
        if open.rounds.len() == open.run.rounds.len() {
            open.close(&mut out);
        }
    }
    runs.values_mut().for_each(|open| open.close(&mut out));
    out.curves.sort_by_key(|c| c.run);
    out.densities.sort_by_key(|d| (d.run, d.round));
    out
}

/// A run, and its samples until all its rounds have come.
struct Open<'a> {
    run: &'a Run,
    metrics: Vec<Metric>,
    /// Those that have come.
    rounds: BTreeSet<u32>,
    /// Of each metric; empty once its curves are made.
    values: Vec<Vec<f64>>,
}

impl<'a> Open<'a> {
    fn new(run: &'a Run) -> Self {
        let metrics = drawn_metrics(run);
        let values = vec![Vec::new(); metrics.len()];
        Open { run, metrics, rounds: BTreeSet::new(), values }
    }

    fn add(&mut self, round: &RoundSamples, out: &mut Reduced) {
        for s in &round.samples {
            if s.flags.has(Flags::WARMUP) {
                out.warmup += 1;
                continue;
            }
            for (metric, values) in self.metrics.iter().zip(&mut self.values) {
                match metric.of_sample(s) {
                    Some(ns) => values.push(ns),
                    None => out.unstamped += 1,
                }
            }
        }
    }

    fn close(&mut self, out: &mut Reduced) {
        for (metric, values) in self.metrics.iter().zip(std::mem::take(&mut self.values)) {
            out.curves.extend(curve(self.run.index, *metric, values, out.tail_step));
        }
    }
}

/// The curve of these values; `None` without values.
pub fn curve(run: u32, metric: Metric, mut values: Vec<f64>, step: f64) -> Option<Curve> {
    values.retain(|v| !v.is_nan());
    if values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let ranks = ranks(values.len() as u64, step);
    Some(Curve {
        run,
        metric,
        count: values.len() as u64,
        lost: values.iter().rev().take_while(|v| **v == f64::INFINITY).count() as u64,
        values: ranks.iter().map(|r| values[(*r - 1) as usize]).collect(),
        ranks,
    })
}

/// The ranks of `n` samples that a curve keeps: all of both ends, and between them, from the end
/// that is nearer, spaced by the factor `step`.
pub fn ranks(n: u64, step: f64) -> Vec<u64> {
    let mut kept = Vec::new();
    let mut from_below = 1;
    while from_below <= n / 2 {
        kept.push(from_below);
        from_below = next(from_below, EXACT_HEAD, step);
    }
    let head = kept.len();
    let mut from_above = 1;
    while from_above <= n - n / 2 {
        kept.push(n + 1 - from_above);
        from_above = next(from_above, EXACT_TAIL, step);
    }
    kept[head..].reverse();
    kept
}

fn next(rank: u64, exact: u64, step: f64) -> u64 {
    if rank < exact { rank + 1 } else { ((rank as f64 * step) as u64).max(rank + 1) }
}

/// Samples no larger than a value, as the kept order statistics tell: right within [`TAIL_STEP`].
/// Between two that are kept they are spread evenly over the logarithm, so that no bin narrower
/// than their distance looks empty beside one that looks full.
pub fn samples_up_to(curve: &Curve, value: f64) -> u64 {
    let at = curve.values.partition_point(|kept| *kept <= value);
    let Some(below) = at.checked_sub(1) else { return 0 };
    let (rank, before) = (curve.ranks[below], curve.values[below]);
    match curve.values.get(at).filter(|after| before > 0.0 && after.is_finite()) {
        Some(after) => {
            let share = (value / before).ln() / (after / before).ln();
            rank + (share * (curve.ranks[at] - 1 - rank) as f64) as u64
        }
        None => rank,
    }
}

/// The row of a latency.
pub fn row(latency_ns: f64) -> u32 {
    let last = BINS_PER_DECADE * DECADES - 1;
    // A negative or NaN logarithm saturates to row 0.
    ((latency_ns.log10() * f64::from(BINS_PER_DECADE)) as u32).min(last)
}

/// The density of one round of at most `columns` columns.
pub fn density(metric: Metric, round: &RoundSamples, columns: u32) -> Density {
    let kept = || round.samples.iter().filter(|s| !s.flags.has(Flags::WARMUP));
    let time = |s: &Sample| if metric == Metric::Response { s.intended_ns } else { s.submit_ns };
    let (mut start, mut end, mut n) = (f64::INFINITY, f64::NEG_INFINITY, 0_u64);
    for t in kept().map(time).filter(|t| t.is_finite()) {
        (start, end, n) = (start.min(t), end.max(t), n + 1);
    }
    if n == 0 {
        (start, end) = (0.0, 0.0);
    }
    let width = u64::from(columns).min(n) as usize;
    let scale = if end > start { width as f64 / (end - start) } else { 0.0 };
    let mut out = vec![Column::default(); width];
    for s in kept() {
        let at = ((time(s) - start) * scale) as usize;
        let at = at.min(width.saturating_sub(1));
        let Some(column) = out.get_mut(at) else { continue };
        match metric.of_sample(s) {
            None => {}
            Some(f64::INFINITY) => column.lost += 1,
            Some(ns) => {
                *column.cells.entry(row(ns)).or_default() += 1;
                column.max_ns = column.max_ns.max(ns);
            }
        }
    }
    Density { run: round.run, round: round.round, start_ns: start, end_ns: end, columns: out }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sample(submit: f64, latency: f64, flags: Flags) -> Sample {
        Sample {
            thread: 0,
            sequence: 0,
            size: 8,
            intended_ns: f64::NAN,
            submit_ns: submit,
            send_ns: f64::NAN,
            receive_ns: submit + latency,
            complete_ns: f64::NAN,
            flags,
        }
    }

    #[test]
    fn every_point_of_a_curve_is_the_sample_of_its_rank() {
        let n = 100_000_u64;
        let shuffled: Vec<f64> = (0..n).map(|i| (i * 7919 % n) as f64 + 1.0).collect();
        let c = curve(0, Metric::Rtt, shuffled, TAIL_STEP).unwrap();
        assert_eq!(c.count, n);
        assert!(c.ranks.iter().zip(&c.values).all(|(r, v)| *r as f64 == *v));
        assert!(c.ranks.is_sorted_by(|a, b| a < b), "ranks rise and none stands twice");
    }

    #[test]
    fn minimum_maximum_and_the_outliers_are_all_kept() {
        for n in [1, 2, 3, 199, 200, 401, 1000, 12_345, 10_000_000] {
            let kept = ranks(n, TAIL_STEP);
            assert_eq!((kept.first(), kept.last()), (Some(&1), Some(&n)));
            let tail = EXACT_TAIL.min(n - n / 2);
            assert!((n + 1 - tail..=n).all(|r| kept.binary_search(&r).is_ok()), "{n}");
            assert!(kept.len() < 2500, "{n}: {}", kept.len());
        }
    }

    #[test]
    fn a_share_read_between_two_points_is_within_the_stated_step() {
        let n = 10_000_000;
        for pair in ranks(n, TAIL_STEP).windows(2) {
            let (below, above) = ((n + 1 - pair[0]) as f64, (n + 1 - pair[1]) as f64);
            assert!(below - above <= 1.0 || pair[0] <= n / 2 || below / above <= TAIL_STEP);
        }
    }

    #[test]
    fn a_lost_message_is_a_sample_at_infinity_and_warmup_is_none() {
        let round = RoundSamples {
            samples: vec![
                sample(0.0, 9e9, Flags::WARMUP),
                sample(10.0, 1000.0, Flags::default()),
                sample(20.0, 5e6, Flags::default()),
                sample(30.0, f64::NAN, Flags::LOST),
            ],
            ..RoundSamples::default()
        };
        let d = density(Metric::Rtt, &round, 100);
        assert_eq!((d.start_ns, d.end_ns, d.columns.len()), (10.0, 30.0, 3));
        assert_eq!(d.columns[1].cells, BTreeMap::from([(row(5e6), 1)]));
        assert_eq!(d.columns[1].max_ns, 5e6);
        assert_eq!(d.columns[2].lost, 1);
        let values = round.samples[1..].iter().filter_map(|s| Metric::Rtt.of_sample(s)).collect();
        let c = curve(0, Metric::Rtt, values, TAIL_STEP).unwrap();
        assert_eq!((c.count, c.lost), (3, 1));
        assert_eq!(c.values, [1000.0, 5e6, f64::INFINITY]);
    }

    #[test]
    fn samples_up_to_a_value_are_counted_between_those_that_are_kept() {
        let all = |n: u64| (1..=n).map(|v| v as f64).collect::<Vec<f64>>();
        let few = curve(0, Metric::Rtt, all(100), TAIL_STEP).unwrap();
        assert_eq!([0.5, 1.0, 50.5, 1e9].map(|v| samples_up_to(&few, v)), [0, 1, 50, 100]);
        let many = curve(0, Metric::Rtt, all(1_000_000), TAIL_STEP).unwrap();
        let found = samples_up_to(&many, 300_000.0) as f64;
        assert!((found / 300_000.0 - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn no_latency_leaves_the_rows() {
        let last = BINS_PER_DECADE * DECADES - 1;
        assert_eq!(row(1.0), 0);
        assert_eq!(row(-5.0), 0);
        assert_eq!(row(0.0), 0);
        assert_eq!(row(1000.0), 3 * BINS_PER_DECADE);
        assert_eq!(row(f64::MAX), last);
    }

    #[test]
    fn a_density_counts_every_sample_once() {
        let samples: Vec<Sample> =
            (0..10_000).map(|i| sample(f64::from(i), 100.0 + f64::from(i), Flags(0))).collect();
        let round = RoundSamples { samples, ..RoundSamples::default() };
        let d = density(Metric::HalfRtt, &round, 80);
        let sum: u64 = d.columns.iter().flat_map(|c| c.cells.values()).sum();
        assert_eq!((d.columns.len(), sum), (80, 10_000));
        assert_eq!(d.columns[79].max_ns, (100.0 + 9999.0) / 2.0);
    }
}
