//! A survey in one table: the runs of a transport and wait side by side.

use crate::pattern::prelude::*;
use crate::report::curves::headline;
use crate::report::number::{GIGABITS, MEGABYTES, THOUSANDS};

/// The runs of one transport and wait.
struct Row<'a> {
    latency: Option<&'a Run>,
    /// The run of rates with the smallest messages, for their number.
    rate: Option<&'a Run>,
    /// The one with the largest, for the bytes.
    bandwidth: Option<&'a Run>,
}

impl Row<'_> {
    fn any(&self) -> Option<&Run> {
        self.latency.or(self.rate).or(self.bandwidth)
    }
}

impl OfRun for Row<'_> {
    fn run(&self) -> Option<&Run> {
        self.any()
    }

    fn is_complete(&self) -> bool {
        let runs = [self.latency, self.rate, self.bandwidth];
        runs.into_iter().flatten().all(|run| run.complete)
    }
}

/// Latency and bandwidth of each transport side by side.
pub struct Survey;

impl PatternView for Survey {
    fn section(&self, record: &Record) -> Option<Section> {
        section(record)
    }

    fn is_whole(&self) -> bool {
        true
    }
}

/// The table; `None` where there is no survey, or a row would hide a run.
fn section(record: &Record) -> Option<Section> {
    let rows = match record.plan.name.as_str() {
        "survey" => fold(record)?,
        _ => return None,
    };
    let latency = common(rows.iter().map(|row| row.latency));
    let rate = common(rows.iter().map(|row| row.rate));
    let bandwidth = common(rows.iter().map(|row| row.bandwidth));
    let notes: Vec<String> =
        rows.iter().flat_map(|row| other_sizes(row, [latency, rate, bandwidth])).collect();
    let table = table(rows, [latency, rate, bandwidth])?;
    let results = vec![Table { id: "main-table".into(), ..table.notes(notes) }];
    Some(Section { results, ..Section::new("results", "Results") })
}

fn table(rows: Vec<Row<'_>>, sizes: [Option<Bytes>; 3]) -> Option<Table> {
    let [latency, rate, bandwidth] = sizes;
    let metric = rows.iter().find_map(|row| headline(row.latency?)).unwrap_or(Metric::HalfRtt);
    let of = move |row: &Row<'_>| row.latency.and_then(|run| run.summary(metric)).cloned();
    let quantile = move |p| move |row: &Row<'_>| Cell::quantile(of(row).as_ref(), p);
    let at = |size: Option<Bytes>| size.map_or(String::new(), |size| format!(" {size}"));
    let rates = |run: for<'a> fn(&Row<'a>) -> Option<&'a Run>, metric, scale| {
        move |row: &Row<'_>| Cell::rate(run(row), metric, scale)
    };
    let bytes = RateMetric::Bandwidth;
    let fields = [
        figure(&format!("{} p50", metric.name()), "us", quantile(0.5)).key("p50"),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)),
        number("max", "us", move |row| Cell::maximum(of(row).as_ref())),
        text("of rounds", move |row| Cell::maxima(of(row).as_ref())),
        number("n", "", move |row| of(row).map_or(Cell::None, |one| Cell::Count(one.count)))
            .show(Show::Page),
        number("lost", "", move |row| of(row).map_or(Cell::None, |one| Cell::lost(one.lost)))
            .show(Show::Page),
        figure(
            &format!("k msg/s{}", at(rate)),
            "",
            rates(|row| row.rate, RateMetric::MessageRate, THOUSANDS),
        )
        .key("rate"),
        figure(&format!("MB/s{}", at(bandwidth)), "", rates(|row| row.bandwidth, bytes, MEGABYTES))
            .key("MB/s"),
        figure("Gb/s", "", rates(|row| row.bandwidth, bytes, GIGABITS)).show(Show::Page),
    ];
    let table = Table::of(rows, ends().into_iter().chain(fields))?;
    let caption = format!("Latency of messages of{}", at(latency));
    Some(table.caption(Note::new(caption, Show::Page)))
}

/// The size that most runs of a column have; of several such the largest.
fn common<'a>(runs: impl Iterator<Item = Option<&'a Run>>) -> Option<Bytes> {
    let sizes: Vec<Bytes> = runs.flatten().map(|run| run.case.size).collect();
    let times = |size: &Bytes| sizes.iter().filter(|other| *other == size).count();
    sizes.iter().copied().max_by_key(|size| (times(size), *size))
}

/// A line for the runs of a row that have another size than the head of their column says.
fn other_sizes(row: &Row<'_>, sizes: [Option<Bytes>; 3]) -> Vec<String> {
    let columns = ["half_rtt", "message rate", "bandwidth"];
    let runs = [row.latency, row.rate, row.bandwidth];
    let other = |((name, run), size): ((&&str, Option<&Run>), Option<Bytes>)| {
        let case = &run.filter(|run| Some(run.case.size) != size)?.case;
        let (transport, wait) = (case.transport, case.wait.name());
        Some(format!("size: {name} of {transport} {wait} is at {}", case.size))
    };
    columns.iter().zip(runs).zip(sizes).filter_map(other).collect()
}

fn fold(record: &Record) -> Option<Vec<Row<'_>>> {
    let mut places: Vec<(TransportKind, Wait)> = Vec::new();
    for run in &record.runs {
        let place = (run.case.transport, run.case.wait);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.into_iter().map(|place| row(record, place)).collect()
}

fn row(record: &Record, place: (TransportKind, Wait)) -> Option<Row<'_>> {
    let of = |run: &&Run| (run.case.transport, run.case.wait) == place;
    let (rates, latencies): (Vec<&Run>, Vec<&Run>) =
        record.runs.iter().filter(of).partition(|run| is_of_rates(record, &run.case.pattern));
    if latencies.len() > 1 || rates.len() > 2 {
        return None;
    }
    Some(Row {
        latency: latencies.first().copied(),
        rate: rates.iter().copied().min_by_key(|run| run.case.size),
        bandwidth: rates.iter().copied().max_by_key(|run| run.case.size),
    })
}

/// Whether the runs of a pattern answer with a bandwidth: a failed one has no figure of its own.
fn is_of_rates(record: &Record, pattern: &str) -> bool {
    let mut runs = record.runs.iter().filter(|run| run.case.pattern == pattern);
    runs.any(|run| run.rates.iter().any(|rate| rate.metric == RateMetric::Bandwidth))
}
