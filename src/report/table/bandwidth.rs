//! Rates: of bandwidth runs, and what a schedule offered and got.

use super::number::{self, GIGABITS, MEGABYTES, THOUSANDS};
use super::{Cell, Grid, series_cell, series_head};
use crate::plan::{Direction, Pattern};
use crate::record::schema::{RateMetric, Record, Run};

/// The bandwidth runs; `None` where there are none.
pub fn table(record: &Record) -> Option<String> {
    let mut grid = Grid::new(series_head(record).into_iter().chain([
        "transport",
        "wait",
        "ways",
        "size B",
        "window",
        "MB/s",
        "±",
        "Gb/s",
        "±",
        "k msg/s",
        "±",
        "n",
        "lost",
    ]));
    for run in record.runs.iter().filter(|run| run.case.pattern == Pattern::Bandwidth) {
        let ways = match run.case.direction {
            Direction::Uni => "one",
            Direction::Bi => "both",
        };
        let head = names(record, run).chain([
            ways.into(),
            Cell::count(run.case.size.0),
            Cell::count(u64::from(run.case.window)),
        ]);
        let figures = [
            number::rate(Some(run), RateMetric::Bandwidth, MEGABYTES),
            number::rate(Some(run), RateMetric::Bandwidth, GIGABITS),
            number::rate(Some(run), RateMetric::MessageRate, THOUSANDS),
            [Cell::count(run.counts.received), Cell::count(run.counts.lost)],
        ];
        grid.row(head.chain(figures.into_iter().flatten()));
    }
    (!grid.is_empty()).then(|| grid.to_string())
}

/// The runs that a schedule drove; `None` where there are none.
pub fn schedules(record: &Record) -> Option<String> {
    let mut grid = Grid::new(series_head(record).into_iter().chain([
        "transport",
        "wait",
        "size B",
        "offered k msg/s",
        "achieved k msg/s",
        "±",
        "delivered k msg/s",
        "±",
    ]));
    let rates = |run: &&Run| run.case.pattern == Pattern::Oneway && !run.rates.is_empty();
    for run in record.runs.iter().filter(rates) {
        // What was asked for has no error.
        let [offered, _] = number::rate(Some(run), RateMetric::OfferedRate, THOUSANDS);
        let head = names(record, run).chain([Cell::count(run.case.size.0), offered]);
        let figures = [
            number::rate(Some(run), RateMetric::AchievedRate, THOUSANDS),
            number::rate(Some(run), RateMetric::MessageRate, THOUSANDS),
        ];
        grid.row(head.chain(figures.into_iter().flatten()));
    }
    (!grid.is_empty()).then(|| grid.to_string())
}

fn names(record: &Record, run: &Run) -> impl Iterator<Item = Cell> {
    let own = [run.case.transport.name().into(), run.case.wait.name().into()];
    series_cell(record, run).into_iter().chain(own)
}
