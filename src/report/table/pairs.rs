//! Pairs of several hosts: matrices, slow pairs, effective bisection bandwidth.

use super::number::{self, GIGABITS, MEGABYTES, short};
use super::{Cell, Grid};
use crate::record::schema::{Bisection, Record, SlowPair};
use crate::report::matrix::{Matrix, matrices};
use crate::stats::Interval;

/// Most hosts of which a matrix is printed: more do not fit a terminal, and the page has them.
const MOST: usize = 16;
/// Slow pairs that are named before the others are counted.
const NAMED: usize = 20;

/// The matrices, or what is known of them where they are too large; `None` where there are none.
pub fn tables(record: &Record) -> Option<String> {
    let matrices = matrices(record);
    let tables: Vec<String> = matrices.iter().map(matrix).collect();
    (!tables.is_empty()).then(|| tables.join("\n"))
}

fn matrix(matrix: &Matrix<'_>) -> String {
    let hosts = matrix.names.len();
    let mut out =
        format!("{}, in {}: client in the row, server in the column\n", matrix.title, matrix.unit);
    if hosts > MOST {
        let range = matrix.range().map_or("none was measured".into(), |(low, high)| {
            format!("{} to {}", short(low * matrix.factor), short(high * matrix.factor))
        });
        return format!("{out}{hosts} hosts, {range}; the page shows all\n");
    }
    let head = std::iter::once("host").chain(matrix.names.iter().copied());
    let mut grid = Grid::new(head);
    for (row, name) in matrix.names.iter().enumerate() {
        let cell = |column: usize| match matrix.cells.get(&(row, column)) {
            Some((value, _)) => Cell::Number(short(value * matrix.factor)),
            None => Cell::none(),
        };
        grid.row(std::iter::once((*name).into()).chain((0..hosts).map(cell)));
    }
    out.push_str(&grid.to_string());
    out
}

/// Effective bisection bandwidth; `None` where it was not measured.
pub fn bisections(record: &Record) -> Option<String> {
    let bisections = &record.pairs.as_ref()?.bisections;
    let mut grid = Grid::new([
        "transport",
        "wait",
        "size B",
        "pairs",
        "matchings",
        "all pairs MB/s",
        "±",
        "Gb/s",
        "±",
        "a pair MB/s",
        "least matching MB/s",
        "most",
    ]);
    for found in bisections {
        let Some(case) = found.runs.first().and_then(|run| record.plan.cases.get(*run as usize))
        else {
            continue;
        };
        let head = [
            case.transport.name().into(),
            case.wait.name().into(),
            Cell::count(case.size.0),
            Cell::count(found.pairs.into()),
            Cell::count(found.matchings.len() as u64),
        ];
        grid.row(head.into_iter().chain(figures(found)));
    }
    (!grid.is_empty()).then(|| grid.to_string())
}

fn figures(found: &Bisection) -> Vec<Cell> {
    let (value, interval): (f64, Option<Interval>) =
        (found.bandwidth.value, found.bandwidth.interval);
    if value.is_nan() {
        return Vec::new();
    }
    let [all, all_error] = number::with_error(value, interval, MEGABYTES);
    let [bits, bits_error] = number::with_error(value, interval, GIGABITS);
    let megabytes = |value: f64| Cell::Number(short(value * MEGABYTES));
    let each = || found.matchings.iter().copied().filter(|value| !value.is_nan());
    let (least, most) = (each().reduce(f64::min), each().reduce(f64::max));
    let known = |value: Option<f64>| value.map_or_else(Cell::none, megabytes);
    let pair = megabytes(value / f64::from(found.pairs.max(1)));
    vec![all, all_error, bits, bits_error, pair, known(least), known(most)]
}

/// The slow pairs, a sentence each; and where not all pairs of a matching ran at the same time.
pub fn notes(record: &Record) -> Vec<String> {
    let Some(pairs) = &record.pairs else { return Vec::new() };
    let line = |slow: &SlowPair| {
        let label = record.runs.iter().find(|run| run.index == slow.run).map(|run| &run.label);
        let (scale, unit) = match slow.metric.as_str() {
            "bandwidth" => (1e-6, "MB/s"),
            _ => (1e-3, "us"),
        };
        format!(
            "slow pair: {}: {} {} {unit}, the median of all pairs is {} {unit}",
            label.map_or("unknown", String::as_str),
            slow.metric,
            short(slow.value * scale),
            short(slow.median * scale)
        )
    };
    let mut lines: Vec<String> = pairs.slow.iter().take(NAMED).map(line).collect();
    if pairs.slow.len() > NAMED {
        lines.push(format!("slow pairs: {} more", pairs.slow.len() - NAMED));
    }
    let overlap = pairs.bisections.iter().filter_map(|found| found.overlap).reduce(f64::min);
    lines.extend(overlap.map(|share| {
        format!(
            "bisection: all pairs of a matching ran during at least {} % of its time",
            short(100.0 * share)
        )
    }));
    lines
}
