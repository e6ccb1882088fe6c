//! The survey in one table: the runs of a transport and wait side by side.

use super::Grid;
use super::number::{self, MEGABYTES, THOUSANDS};
use crate::plan::{Pattern, Wait};
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::transport::TransportKind;
use crate::units::Bytes;

/// The runs of one transport and wait.
struct Row<'a> {
    transport: TransportKind,
    wait: Wait,
    latency: Option<&'a Run>,
    /// The bandwidth run with the smallest messages, for their rate.
    rate: Option<&'a Run>,
    /// The one with the largest, for the bytes.
    bandwidth: Option<&'a Run>,
}

/// The table; `None` where a row would hide a run.
pub fn table(record: &Record) -> Option<String> {
    let rows = fold(record)?;
    let latency = common(rows.iter().map(|row| row.latency));
    let rate = common(rows.iter().map(|row| row.rate));
    let bandwidth = common(rows.iter().map(|row| row.bandwidth));
    let at = |size: Option<Bytes>| size.map_or(String::new(), |size| format!(" {size}"));
    let mut grid = Grid::new([
        "transport".to_owned(),
        "wait".into(),
        "half_rtt p50 us".into(),
        "±".into(),
        "p99 us".into(),
        "±".into(),
        "p99.9 us".into(),
        "±".into(),
        "max us".into(),
        "of rounds".into(),
        format!("k msg/s{}", at(rate)),
        "±".into(),
        format!("MB/s{}", at(bandwidth)),
        "±".into(),
    ]);
    for row in &rows {
        let summary = row.latency.and_then(|run| run.summary(Metric::HalfRtt));
        let figures = [
            [row.transport.name().into(), row.wait.name().into()],
            number::quantile(summary, 0.5),
            number::quantile(summary, 0.99),
            number::quantile(summary, 0.999),
            number::maximum(summary),
            number::rate(row.rate, RateMetric::MessageRate, THOUSANDS),
            number::rate(row.bandwidth, RateMetric::Bandwidth, MEGABYTES),
        ];
        grid.row(figures.into_iter().flatten());
    }
    let mut text = grid.to_string();
    for row in &rows {
        text.push_str(&other_sizes(row, [latency, rate, bandwidth]));
    }
    Some(text)
}

/// The size that most runs of a column have; of several such the largest.
fn common<'a>(runs: impl Iterator<Item = Option<&'a Run>>) -> Option<Bytes> {
    let sizes: Vec<Bytes> = runs.flatten().map(|run| run.case.size).collect();
    let times = |size: &Bytes| sizes.iter().filter(|other| *other == size).count();
    sizes.iter().copied().max_by_key(|size| (times(size), *size))
}

/// A line for the runs of a row that have another size than the head of their column says.
fn other_sizes(row: &Row<'_>, sizes: [Option<Bytes>; 3]) -> String {
    let columns = ["half_rtt", "message rate", "bandwidth"];
    let runs = [row.latency, row.rate, row.bandwidth];
    let mut text = String::new();
    for ((name, run), size) in columns.iter().zip(runs).zip(sizes) {
        if let Some(run) = run.filter(|run| Some(run.case.size) != size) {
            let (transport, wait) = (row.transport, row.wait.name());
            text.push_str(&format!("size: {name} of {transport} {wait} is at {}\n", run.case.size));
        }
    }
    text
}

fn fold(record: &Record) -> Option<Vec<Row<'_>>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for run in &record.runs {
        let (transport, wait) = (run.case.transport, run.case.wait);
        if !rows.iter().any(|row| (row.transport, row.wait) == (transport, wait)) {
            rows.push(row(record, transport, wait)?);
        }
    }
    Some(rows)
}

fn row(record: &Record, transport: TransportKind, wait: Wait) -> Option<Row<'_>> {
    let of = |run: &&Run| (run.case.transport, run.case.wait) == (transport, wait);
    let (rates, latencies): (Vec<&Run>, Vec<&Run>) =
        record.runs.iter().filter(of).partition(|run| run.case.pattern == Pattern::Bandwidth);
    if latencies.len() > 1 || rates.len() > 2 {
        return None;
    }
    Some(Row {
        transport,
        wait,
        latency: latencies.first().copied(),
        rate: rates.iter().copied().min_by_key(|run| run.case.size),
        bandwidth: rates.iter().copied().max_by_key(|run| run.case.size),
    })
}
