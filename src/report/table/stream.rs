//! Streams: what became of their steps.

use super::number::{self, MEGABYTES};
use super::{Cell, Grid, own_cells, own_heads};
use crate::record::schema::{RateMetric, Record};

/// A share as a percentage.
const PERCENT: f64 = 100.0;

/// The same as text; `None` where there are none.
pub fn table(record: &Record) -> Option<String> {
    grid(record).map(|grid| grid.to_string())
}

/// The runs of a stream; `None` where there are none.
pub fn grid(record: &Record) -> Option<Grid> {
    let mut grid = Grid::new(own_heads(record).chain([
        "transport",
        "wait",
        "values",
        "steps/s",
        "missed",
        "missed %",
        "±",
        "lost",
        "before the first",
        "gaps",
        "reordered",
        "ceiling MB/s",
        "±",
    ]));
    for run in &record.runs {
        let Some(stream) = &run.case.stream else { continue };
        let counts = &run.counts;
        let [missed, missed_error] = number::rate(Some(run), RateMetric::Missed, PERCENT);
        let own: [Cell; 2] = [run.case.transport.name().into(), run.case.wait.name().into()];
        let rate = run.case.schedule.rate().map_or(0.0, |rate| rate.0);
        let told = [
            Cell::count(u64::from(stream.values)),
            Cell::count(rate.round() as u64),
            Cell::count(counts.missed_steps),
            missed,
            missed_error,
            Cell::count(counts.lost),
            Cell::count(counts.lost_before_first),
            Cell::count(counts.gaps),
            Cell::count(counts.reordered),
        ];
        let ceiling = number::rate(Some(run), RateMetric::Ceiling, MEGABYTES);
        grid.row(own_cells(record, run).chain(own).chain(told).chain(ceiling));
    }
    (!grid.is_empty()).then_some(grid)
}
