//! Pairs of hosts as matrices: the client in the row, the server in the column. What tables and
//! pages show of them, from a record alone.

use crate::plan::{Ends, Pairs, Pattern};
use crate::record::schema::{Record, Run};
use crate::stats::{Metric, RateMetric};
use std::collections::BTreeMap;

/// The figures of all pairs that were measured alike.
#[derive(Clone, Debug)]
pub struct Matrix<'a> {
    /// What stands in it, e.g. `half_rtt p50, latency tcp busy 64 B`.
    pub title: String,
    /// The unit of the shown values, and what a value of the record is multiplied with.
    pub unit: &'static str,
    /// See `unit`.
    pub factor: f64,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The hosts.
    pub names: Vec<&'a str>,
    /// A figure and its run, by the positions of client and server.
    pub cells: BTreeMap<(usize, usize), (f64, u32)>,
}

/// The matrices of a record: p50 and p99 of each distribution, and each rate; none where not all
/// pairs of several hosts were measured.
pub fn matrices(record: &Record) -> Vec<Matrix<'_>> {
    if !matches!(record.plan.pairs, Some(Pairs::All { .. })) {
        return Vec::new();
    }
    let mut hosts: Vec<Option<u32>> =
        record.plan.cases.iter().flat_map(|case| [case.ends.client, case.ends.server]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut matrices: Vec<Matrix<'_>> = Vec::new();
    for run in &record.runs {
        for figure in figures(run) {
            let title = format!("{}, {}", figure.name, run.case.label());
            let at = match matrices.iter().position(|matrix| matrix.title == title) {
                Some(at) => at,
                None => {
                    let names = hosts.iter().map(|host| record.plan.host(*host)).collect();
                    let Figure { unit, factor, more_is_better, .. } = figure;
                    let cells = BTreeMap::new();
                    matrices.push(Matrix { title, unit, factor, more_is_better, names, cells });
                    matrices.len() - 1
                }
            };
            let Ends { client, server } = run.case.ends;
            let place = |host| hosts.iter().position(|one| *one == host).unwrap_or(0);
            let cells = &mut matrices[at].cells;
            let (row, column) = (place(client), place(server));
            cells.insert((row, column), (figure.value, run.index));
            // A round trip is of both.
            if run.case.pattern == Pattern::Latency {
                cells.insert((column, row), (figure.value, run.index));
            }
        }
    }
    matrices
}

struct Figure {
    name: String,
    unit: &'static str,
    factor: f64,
    more_is_better: bool,
    value: f64,
}

fn figures(run: &Run) -> Vec<Figure> {
    if run.case.pattern == Pattern::Bandwidth {
        let metric = RateMetric::Bandwidth;
        let rates = run.rates.iter().filter(|figure| figure.metric == metric);
        return rates
            .map(|figure| Figure {
                name: metric.name().into(),
                unit: "MB/s",
                factor: 1e-6,
                more_is_better: true,
                value: figure.rate.value,
            })
            .collect();
    }
    // The figures of a run stand in the order of what they answer; a round trip is twice its half.
    let Some(first) = run.figures.iter().find(|figure| figure.metric != Metric::Rtt) else {
        return Vec::new();
    };
    let quantile = |(p, name): (f64, &str)| {
        let found = first.summary.quantiles.iter().find(|quantile| quantile.p == p)?;
        Some(Figure {
            name: format!("{} {name}", first.metric.name()),
            unit: "us",
            factor: 1e-3,
            more_is_better: false,
            value: found.value?.0,
        })
    };
    [(0.5, "p50"), (0.99, "p99")].into_iter().filter_map(quantile).collect()
}

impl Matrix<'_> {
    /// The least and the most of its finite values.
    pub fn range(&self) -> Option<(f64, f64)> {
        let values = self.cells.values().map(|cell| cell.0).filter(|value| value.is_finite());
        values.fold(None, |range, value| match range {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        })
    }

    /// How bad a value is among the others: 0 the best, 1 the worst.
    pub fn heat(&self, value: f64) -> f64 {
        let Some((low, high)) = self.range() else { return 0.0 };
        let place = if high > low { (value - low) / (high - low) } else { 0.0 };
        let heat = if self.more_is_better { 1.0 - place } else { place };
        if heat.is_nan() { 1.0 } else { heat.clamp(0.0, 1.0) }
    }
}
