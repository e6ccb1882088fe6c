//! Distributions of latency and one-way runs: a line for each run and metric.

use super::number;
use super::{Cell, Grid, series_cell, series_head};
use crate::plan::Pattern;
use crate::record::schema::{Figure, Metric, Record, Run};
use crate::stats::Summary;

/// The table; `None` where no run has a distribution that answers its question.
pub fn table(record: &Record) -> Option<String> {
    let above = format!("% above {}", record.plan.threshold);
    let mut grid = Grid::new(series_head(record).into_iter().chain([
        "transport",
        "wait",
        "metric",
        "size B",
        "p50 us",
        "±",
        "p99 us",
        "±",
        "p99.9 us",
        "±",
        "max us",
        "of rounds",
        "n",
        "lost",
        above.as_str(),
    ]));
    for run in record.runs.iter().filter(|run| answers_here(run)) {
        for figure in shown(run) {
            let summary = &figure.summary;
            let head = [
                run.case.transport.name().into(),
                run.case.wait.name().into(),
                figure.metric.name().into(),
                Cell::count(run.case.size.0),
            ];
            let figures = [
                number::quantile(Some(summary), 0.5),
                number::quantile(Some(summary), 0.99),
                number::quantile(Some(summary), 0.999),
                number::maximum(Some(summary)),
                [Cell::count(summary.count), Cell::count(summary.lost)],
            ];
            let cells = series_cell(record, run)
                .into_iter()
                .chain(head)
                .chain(figures.into_iter().flatten());
            grid.row(cells.chain([slow(summary)]));
        }
    }
    (!grid.is_empty()).then(|| grid.to_string())
}

/// Bandwidth and load have tables of their own.
fn answers_here(run: &Run) -> bool {
    !matches!(run.case.pattern, Pattern::Bandwidth | Pattern::Load)
}

/// A round trip is twice its half: one line tells both.
fn shown(run: &Run) -> impl Iterator<Item = &Figure> {
    let halved = run.summary(Metric::HalfRtt).is_some();
    run.figures.iter().filter(move |figure| !(halved && figure.metric == Metric::Rtt))
}

/// The share of slow samples, lost ones included.
fn slow(summary: &Summary) -> Cell {
    if summary.count == 0 {
        return Cell::none();
    }
    let percent = 100.0 * summary.above_threshold as f64 / summary.count as f64;
    // A share that is not zero is never shown as zero.
    match summary.above_threshold {
        0 => Cell::Number("0".into()),
        _ if percent < 1e-4 => Cell::Number("0.0001".into()),
        _ => Cell::Number(number::short(percent)),
    }
}
