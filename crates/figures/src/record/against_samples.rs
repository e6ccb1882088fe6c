//! Compares the figures of a record with its samples: how many arrived, the least and the largest,
//! the mean of each round, and how many are above the threshold follow from the samples alone.
//!
//! What a message that never arrived adds is left out: some of these have no row.

use super::error::RecordError;
use super::sample_reader::SampleReader;
use super::schema::{Figure, Record, Run};
use std::collections::BTreeMap;
use std::path::Path;
use wiregauge_sample::RoundSamples;
use wiregauge_stats::Metric;
use wiregauge_stats::metric::durations;

/// Most rows of a file whose figures are compared: decoding them takes less than a second. Of
/// larger files the hash and the number of rows are.
const MAX_ROWS: u64 = 1 << 20;
/// Rounding of sums of floating-point numbers, as a share.
const ROUNDING: f64 = 1e-6;

/// The samples of one metric that arrived.
#[derive(Clone, Copy)]
struct Arrived {
    count: u64,
    above: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Default for Arrived {
    fn default() -> Arrived {
        Arrived { count: 0, above: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Arrived {
    fn add(&mut self, ns: f64, threshold: f64) {
        self.count += 1;
        self.above += u64::from(ns > threshold);
        self.sum += ns;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    fn merge(&mut self, other: &Arrived) {
        self.count += other.count;
        self.above += other.above;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// The number of a run, the place of a figure in it, and the number of a round.
type SampleKey = (u32, usize, u32);

/// Checks the figures of a record against its samples.
pub(super) fn check(path: &Path, record: &Record) -> Result<(), RecordError> {
    let rows = record.runs.iter().flat_map(|run| &run.rounds).map(|round| round.samples);
    if rows.fold(0, u64::saturating_add) > MAX_ROWS {
        return Ok(());
    }
    let mut seen = BTreeMap::<SampleKey, Arrived>::new();
    let mut reader = SampleReader::open(path)?;
    while let Some(part) = reader.next_part() {
        add(&mut seen, record, &part?);
    }
    for run in &record.runs {
        for (place, figure) in figures(run) {
            let of_round =
                |index| seen.get(&(run.index, place, index)).copied().unwrap_or_default();
            let rounds: Vec<Arrived> =
                run.rounds.iter().map(|round| of_round(round.index)).collect();
            check_figure(figure, &rounds).map_err(|why| {
                let (label, name) = (&run.label, figure.metric.name());
                RecordError::samples(path, format!("{label}: {name}: {why}"))
            })?;
        }
    }
    Ok(())
}

/// The figures that follow from single rows, all of which were stored.
fn figures(run: &Run) -> impl Iterator<Item = (usize, &Figure)> {
    let are_stored = run.rounds.iter().all(|round| round.samples_in_histogram_only == 0);
    let all = run.figures.iter().enumerate();
    all.filter(move |(_, figure)| {
        are_stored && !matches!(figure.metric, Metric::Jitter | Metric::Short)
    })
}

fn add(seen: &mut BTreeMap<SampleKey, Arrived>, record: &Record, part: &RoundSamples) {
    let Some(run) = record.runs.iter().find(|run| run.index == part.run) else { return };
    for (place, figure) in figures(run) {
        let own = seen.entry((part.run, place, part.round)).or_default();
        let arrived = durations(part, figure.metric).into_iter().filter(|ns| ns.is_finite());
        arrived.for_each(|ns| own.add(ns, figure.summary.threshold));
    }
}

fn check_figure(figure: &Figure, rounds: &[Arrived]) -> Result<(), String> {
    let summary = &figure.summary;
    let mut all = Arrived::default();
    rounds.iter().for_each(|round| all.merge(round));
    let said = summary.count.saturating_sub(summary.lost);
    ensure!(said == all.count, "{said} arrived by record.json, but {} by the samples", all.count);
    let above = summary.above_threshold.saturating_sub(summary.lost);
    ensure!(
        above == all.above,
        "{above} are above the threshold by record.json, but {} by the samples",
        all.above
    );
    if all.count == 0 {
        return Ok(());
    }
    is_same("min", summary.min.0, all.min)?;
    is_same("max_finite", summary.max_finite.0, all.max)?;
    if summary.rounds.len() != rounds.len() {
        return Ok(());
    }
    for (number, (own, found)) in summary.rounds.iter().zip(rounds).enumerate() {
        if found.count > 0 {
            let place = |what: &str| format!("{what} of its round {number}");
            is_same(&place("min"), own.min.0, found.min)?;
            // Older records have no means of rounds, and that of a lost message is infinite.
            let max = if own.max.0.is_infinite() { found.max } else { own.max.0 };
            is_same(&place("max"), max, found.max)?;
            let mean = found.sum / found.count as f64;
            is_same(&place("mean"), if own.mean.is_nan() { mean } else { own.mean }, mean)?;
        }
    }
    Ok(())
}

/// Checks that two numbers are the same but for rounding.
fn is_same(what: &str, said: f64, found: f64) -> Result<(), String> {
    let room = ROUNDING * found.abs().max(1.0);
    ensure!(
        (said - found).abs() <= room,
        "{what} is {said} ns by record.json, but {found} ns by the samples"
    );
    Ok(())
}
