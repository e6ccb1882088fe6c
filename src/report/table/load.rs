//! Runs of `load`: how the answers slow down as the load rises, and what the server's pools cost.

use super::number::{self, THOUSANDS};
use super::{Cell, Grid, own_cells, own_heads};
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::report::load::{curves, runs};
use crate::run::search::Point;

/// What stands above the probes.
pub const PROBES: &str = "probe: response of small requests beside the load";

/// The table and what was found; `None` where there are no such runs.
pub fn table(record: &Record) -> Option<String> {
    let grid = points(record)?;
    let found: String = found(record).iter().map(|line| format!("{line}\n")).collect();
    let probes = probes(record).map(|grid| format!("\n{PROBES}\n{grid}")).unwrap_or_default();
    Some(format!("{grid}{found}{probes}"))
}

/// The points; `None` where there are no such runs. A closed loop is named by its clients, an open
/// one by what was offered.
pub fn points(record: &Record) -> Option<Grid> {
    let mut grid = Grid::new(own_heads(record).chain([
        "transport",
        "wait",
        "object B",
        "clients",
        "offered k/s",
        "sent k/s",
        "answered k/s",
        "±",
        "p50 us",
        "±",
        "p99 us",
        "±",
        "p99.9 us",
        "±",
        "service p99 us",
        "late p99 us",
        "client ns/msg",
        "server ns/msg",
        "n",
        "lost",
    ]));
    for run in runs(record) {
        let is_open = run.case.schedule.is_open();
        let main = run.summary(if is_open { Metric::Response } else { Metric::Rtt });
        let rate = |metric, scale| number::rate(Some(run), metric, scale);
        let [offered, _] = rate(RateMetric::OfferedRate, THOUSANDS);
        let [sent, _] = rate(RateMetric::AchievedRate, THOUSANDS);
        let [client, _] = rate(RateMetric::CpuClient, 1.0);
        let [server, _] = rate(RateMetric::CpuServer, 1.0);
        let clients = match is_open {
            true => Cell::none(),
            false => Cell::count(u64::from(run.case.load.clients)),
        };
        let [service, _] = number::quantile(run.summary(Metric::Service), 0.99);
        let [late, _] = number::quantile(run.summary(Metric::Lateness), 0.99);
        let head = [
            run.case.transport.name().into(),
            run.case.wait.name().into(),
            Cell::count(run.case.load.object_size.0),
            clients,
            offered,
            sent,
        ];
        let figures = [
            rate(RateMetric::MessageRate, THOUSANDS),
            number::quantile(main, 0.5),
            number::quantile(main, 0.99),
            number::quantile(main, 0.999),
        ];
        let rest = [
            service,
            late,
            client,
            server,
            Cell::count(main.map_or(0, |summary| summary.count)),
            Cell::count(run.counts.lost),
        ];
        let cells = own_cells(record, run).chain(head);
        grid.row(cells.chain(figures.into_iter().flatten()).chain(rest));
    }
    (!grid.is_empty()).then_some(grid)
}

/// What a small message suffers beside each point, and where it is alone; `None`: no probe ran.
pub fn probes(record: &Record) -> Option<Grid> {
    let heads = [
        "beside",
        "clients",
        "offered k/s",
        "probe /s",
        "object B",
        "p50 us",
        "±",
        "p99 us",
        "±",
        "p99.9 us",
        "±",
        "n",
        "lost",
    ];
    let mut grid = Grid::new(own_heads(record).chain(heads));
    let of = |probe: &Run| record.plan.probed(probe.index as usize);
    let points: Vec<Option<usize>> = std::iter::once(None)
        .chain(runs(record).iter().map(|run| Some(run.index as usize)))
        .collect();
    let probes = || record.runs.iter().filter(|run| run.case.load.probe);
    for (point, run) in points.iter().flat_map(|point| {
        probes().filter(move |run| of(run) == *point).map(move |run| (point, run))
    }) {
        let beside = point.and_then(|point| record.runs.get(point));
        let clients = beside.map_or(0, |run| run.case.load.clients);
        let [offered, _] = number::rate(beside, RateMetric::OfferedRate, THOUSANDS);
        let [rate, _] = number::rate(Some(run), RateMetric::OfferedRate, 1.0);
        let name = format!("{} {}", run.case.transport, run.case.wait.name());
        let main = run.summary(Metric::Response);
        let head = [
            if beside.is_some() {
                Cell::from(name.as_str())
            } else {
                format!("{name}, alone").into()
            },
            if clients > 0 { Cell::count(u64::from(clients)) } else { Cell::none() },
            offered,
            rate,
            Cell::count(run.case.load.object_size.0),
        ];
        let figures = [0.5, 0.99, 0.999].map(|p| number::quantile(main, p));
        let rest =
            [Cell::count(main.map_or(0, |summary| summary.count)), Cell::count(run.counts.lost)];
        let cells = own_cells(record, run).chain(head);
        grid.row(cells.chain(figures.into_iter().flatten()).chain(rest));
    }
    (!grid.is_empty()).then_some(grid)
}

/// What the server's pools cost, as text; `None` where none was measured.
pub fn pools_table(record: &Record) -> Option<String> {
    pools(record).map(|grid| grid.to_string())
}

/// What the server's pools cost; `None` where none was measured.
pub fn pools(record: &Record) -> Option<Grid> {
    let mut grid = Grid::new(own_heads(record).chain([
        "transport",
        "tx",
        "rx",
        "clients",
        "offered k/s",
        "answered k/s",
        "±",
        "completions/poll",
        "±",
        "buffer ns/read",
        "±",
        "empty polls ns/read",
        "full polls ns/read",
        "empty polls/read",
        "full polls/read",
    ]));
    for run in runs(record) {
        let Some(buffers) = run.case.load.buffers else { continue };
        let rate = |metric, scale| number::rate(Some(run), metric, scale);
        let [offered, _] = rate(RateMetric::OfferedRate, THOUSANDS);
        let head = [
            run.case.transport.name().into(),
            Cell::count(u64::from(buffers.transmit)),
            Cell::count(u64::from(buffers.receive)),
            Cell::count(u64::from(run.case.load.clients)),
            offered,
        ];
        let figures = [
            rate(RateMetric::MessageRate, THOUSANDS),
            rate(RateMetric::CompletionsPerPoll, 1.0),
            rate(RateMetric::BufferTime, 1.0),
        ];
        let alone = [
            RateMetric::EmptyPollTime,
            RateMetric::FullPollTime,
            RateMetric::EmptyPolls,
            RateMetric::FullPolls,
        ];
        let alone = alone.map(|metric| rate(metric, 1.0)[0].clone());
        let cells = own_cells(record, run).chain(head);
        grid.row(cells.chain(figures.into_iter().flatten()).chain(alone));
    }
    (!grid.is_empty()).then_some(grid)
}

/// A sentence for each curve: its knee, and the highest rate within the bound.
pub fn found(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for curve in curves(record).iter().filter(|curve| !curve.open.is_empty()) {
        let (name, points) = (&curve.name, curve.points());
        if let Some(knee) = curve.knee() {
            out.push(format!(
                "knee: {name}: {} k/s, where the rate over the median response is highest{}",
                number::short(points[knee].offered * THOUSANDS),
                beyond(&points, knee, "; the next rate measured is")
            ));
        }
        let Some(slo) = record.plan.search.slo else { continue };
        out.push(match curve.highest(record) {
            Some(at) => format!(
                "slo: {name}: {slo} is kept up to {} k/s{}",
                number::short(points[at].offered * THOUSANDS),
                beyond(&points, at, ", and no longer at")
            ),
            None => format!("slo: {name}: {slo} is kept at no rate that was measured"),
        });
    }
    out
}

/// How far a rate that was found is from the next one that was measured: its error.
fn beyond(points: &[Point], at: usize, words: &str) -> String {
    let higher = points.iter().map(|point| point.offered).filter(|o| *o > points[at].offered);
    let next = higher.min_by(f64::total_cmp);
    next.map_or_else(String::new, |next| format!("{words} {}", number::short(next * THOUSANDS)))
}
