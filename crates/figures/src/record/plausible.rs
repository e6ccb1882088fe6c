//! Plausibility of a record that is read: figures that no samples can give and counts that
//! contradict each other are refused.
//!
//! The bounds are wide, since a figure that is only odd is one to look at. Intervals are not
//! judged: those of older records may reach below 0.

use super::schema::{Counts, Figure, RateFigure, Record, Run};
use wiregauge_base::units::quantile_name;
use wiregauge_stats::{Metric, Quantile, Summary};

/// No time in ns and no rate is larger: 2^64 ns are 584 years.
const LARGEST: f64 = u64::MAX as f64;
/// What a time by one clock may lie below 0, in ns: the rounding of its two stamps.
const ROUNDED_NS: f64 = 1.0;
/// How far a quantile may lie outside of the samples' range, as a share of it: histograms give the
/// edges of classes that are 1/32 wide.
const CLASS: f64 = 1.0 / 16.0;

/// Checks a record against itself. The error says where, and what cannot be.
pub(super) fn check(record: &Record) -> Result<(), String> {
    record.runs.iter().try_for_each(|run| {
        check_counts(run)?;
        run.figures.iter().try_for_each(|figure| check_figure(run, figure))?;
        run.rates.iter().try_for_each(|figure| check_rate(run, figure))
    })
}

fn check_counts(run: &Run) -> Result<(), String> {
    let names = ["sent", "received", "lost", "duplicates"];
    let of = |counts: &Counts| [counts.sent, counts.received, counts.lost, counts.duplicates];
    for (at, name) in names.iter().enumerate() {
        let rounds = run.rounds.iter().map(|round| of(&round.counts)[at]);
        let (said, all) = (of(&run.counts)[at], rounds.fold(0, u64::saturating_add));
        ensure!(said == all, "{}: {name} is {said}, but the rounds add up to {all}", run.label);
    }
    Ok(())
}

fn check_figure(run: &Run, figure: &Figure) -> Result<(), String> {
    let (summary, name) = (&figure.summary, figure.metric.name());
    let wrong = |what: String| format!("{}: {name}: {what}", run.label);
    let Summary { count, lost, .. } = *summary;
    let rows = |round: &super::schema::Round| {
        round.samples.saturating_add(round.samples_in_histogram_only)
    };
    let rows = run.rounds.iter().map(rows).fold(0, u64::saturating_add);
    ensure!(count <= rows, wrong(format!("it has {count} samples, but the rounds have {rows}")));
    ensure!(lost <= count, wrong(format!("{lost} samples are lost, but there are only {count}")));
    let one_clock = matches!(
        figure.metric,
        Metric::Rtt
            | Metric::HalfRtt
            | Metric::Post
            | Metric::Complete
            | Metric::Jitter
            | Metric::AfterBarrier
    );
    let least = if one_clock { -ROUNDED_NS } else { -LARGEST };
    let extremes = [("min", summary.min.0), ("max", summary.max.0), ("mean", summary.mean)];
    for (what, ns) in extremes {
        check_size(ns, least).map_err(|why| wrong(format!("{what} {why}")))?;
    }
    let mut below: Option<(Quantile, f64)> = None;
    for quantile in &summary.quantiles {
        let p = quantile.p;
        ensure!(
            p > 0.0 && p < 1.0,
            wrong(format!("there is no quantile {p}: expected a number between 0 and 1"))
        );
        let Some(value) = quantile.value.map(|value| value.0) else { continue };
        let what = quantile_name(p);
        check_size(value, least).map_err(|why| wrong(format!("{what} {why}")))?;
        let range = format!("{} ns to {} ns", summary.min.0, summary.max.0);
        let room = CLASS * value.abs() + ROUNDED_NS;
        // A missing value is NaN, and comparisons with it are false.
        let is_outside = value < summary.min.0 - room || value > summary.max.0 + room;
        ensure!(
            !is_outside,
            wrong(format!("{what} is {value} ns, outside of all samples ({range})"))
        );
        // The centre of what rises in each round rises, if it is the same kind of centre.
        let lower = below.filter(|(lower, _)| p > lower.p && quantile.basis == lower.basis);
        if let Some((_, lower)) = lower.filter(|(_, lower)| value < *lower - room) {
            return Err(wrong(format!("{what} is {value} ns, but a lower quantile is {lower} ns")));
        }
        below = Some((*quantile, value));
    }
    Ok(())
}

fn check_rate(run: &Run, figure: &RateFigure) -> Result<(), String> {
    let mut all = std::iter::once(&figure.rate.value).chain(&figure.rate.rounds);
    let wrong = |why| format!("{}: {}: the rate {why}", run.label, figure.metric.name());
    all.try_for_each(|rate| check_size(*rate, 0.0)).map_err(wrong)
}

/// Checks a time or a rate: infinity stands for a lost message, NaN for a missing value.
fn check_size(value: f64, least: f64) -> Result<(), String> {
    let is_outside = value < least || (value.is_finite() && value > LARGEST);
    ensure!(!is_outside, "is {value:e}, expected a number from {least} to {LARGEST:e}");
    Ok(())
}
