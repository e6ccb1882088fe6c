//! A survey in one table: the runs of a transport and wait side by side.

use super::NAME;
use crate::prelude::*;
use wiregauge_figures::view::byte_rate::ByteRateUnit::{Gigabits, Megabytes};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::{Named, fastest, median};
use wiregauge_figures::view::curves::headline;
use wiregauge_figures::view::model::Rank;
use wiregauge_figures::view::number::{THOUSANDS, US};

/// The runs of one transport and wait: of latency, of the rates of the smallest messages, for their
/// number, and of the largest, for the bytes.
type Row<'a> = [Option<&'a Run>; 3];

/// Latency and bandwidth of each transport side by side.
pub struct Survey;

impl PatternView for Survey {
    /// Among the ends that poll, which is the fastest, and the slowest beside it.
    fn answer(&self, record: &Record) -> Vec<String> {
        let rows = if record.plan.name == NAME { fold(record) } else { None };
        let runs: Vec<&Run> = rows.iter().flatten().filter_map(|row: &Row<'_>| row[0]).collect();
        let wait = match runs.iter().any(|run| run.case.wait == Wait::Busy) {
            true => Wait::Busy,
            false => Wait::Block,
        };
        let of_wait: Vec<&Run> = runs.into_iter().filter(|run| run.case.wait == wait).collect();
        let name = |run: &Run| run.case.transport.name().to_owned();
        let medians: Vec<Named> = of_wait.iter().filter_map(|run| median(run, name(run))).collect();
        let metric = of_wait.first().and_then(|run| headline(run)).map_or("", Metric::name);
        let what = format!("{metric} p50 with {} waits", wait.name());
        let fastest = fastest(&what).best(&medians);
        let slowest = medians.iter().max_by(|a, b| a.value.total_cmp(&b.value));
        let slowest = slowest.map(|one| (one, one.text(US, "us")));
        let beside = |said: String| match &slowest {
            Some((one, text)) if !said.contains(text) => {
                format!("{said} {} takes {text}.", one.name)
            }
            _ => said,
        };
        fastest.map(beside).into_iter().collect()
    }

    fn whole(&self, record: &Record) -> Option<Section> {
        // `None` where there is no survey, or a row would hide a run.
        let rows = if record.plan.name == NAME { fold(record)? } else { return None };
        let sizes = [0, 1, 2].map(|at| common(rows.iter().filter_map(|row: &Row<'_>| row[at])));
        let notes: Vec<String> = rows.iter().flat_map(|row| other_sizes(row, sizes)).collect();
        let table = table(rows, sizes)?;
        let results = vec![Table { id: "main-table".into(), ..table.notes(notes) }];
        Some(Section { results, ..Section::new("results", "Results") })
    }
}

fn table(rows: Vec<Row<'_>>, sizes: [Option<Bytes>; 3]) -> Option<Table> {
    let [latency, messages, bytes] =
        sizes.map(|size| size.map_or(String::new(), |size| format!(" {size}")));
    let metric = rows.iter().find_map(|row| headline(row[0]?)).unwrap_or(Metric::HalfRtt);
    let of = move |row: &Row<'_>| row[0].and_then(|run| run.summary(metric)).cloned();
    let quantile = move |p| move |row: &Row<'_>| Cell::of_run(row[0], metric, p);
    let rate = |at: usize, metric, scale| move |row: &Row<'_>| Cell::rate(row[at], metric, scale);
    let before = [
        figure(&format!("{} p50", metric.name()), "us", quantile(0.5)).key("p50"),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)).rank(Rank::More),
        number("max", "us", move |row: &Row<'_>| Cell::maximum_of_run(row[0], metric)),
        text("of rounds", move |row| Cell::maxima(of(row).as_ref())).rank(Rank::More),
        figure(&format!("k msg/s{messages}"), "", rate(1, RateMetric::MessageRate, THOUSANDS))
            .key("rate"),
    ];
    let speeds = byte_rate::or_all(&[Megabytes, Gigabits]);
    let speed = |(at, unit): (usize, &ByteRateUnit)| {
        let head = format!("{}{bytes}", unit.name());
        let figure = figure(&head, "", rate(2, RateMetric::Bandwidth, unit.factor()));
        // The last is the one to look at.
        let rank = if at + 1 == speeds.len() { Rank::Main } else { Rank::More };
        figure.key(unit.name()).rank(rank)
    };
    let after = [
        number("n", "", move |row| of(row).map(|one| Cell::Count(one.count))).rank(Rank::More),
        number("lost", "", move |row: &Row<'_>| {
            row[0].map(|run| Cell::lost(run.lost_of(headline(run).unwrap_or(Metric::HalfRtt))))
        })
        .rank(Rank::More),
    ];
    let fields = before.into_iter().chain(speeds.iter().enumerate().map(speed)).chain(after);
    let table = Table::of(rows, ends().into_iter().chain(fields))?;
    let caption = format!("Latency of messages of{latency}");
    Some(table.caption(Note::new(caption, Show::Page)))
}

/// The size that most runs of a column have; of several such the largest.
fn common<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<Bytes> {
    let sizes: Vec<Bytes> = runs.map(|run| run.case.size).collect();
    let times = |size: &Bytes| sizes.iter().filter(|other| *other == size).count();
    sizes.iter().copied().max_by_key(|size| (times(size), *size))
}

/// A line for the runs of a row that have another size than the head of their column says.
fn other_sizes(row: &Row<'_>, sizes: [Option<Bytes>; 3]) -> Vec<String> {
    let columns = ["half_rtt", "message rate", "bandwidth"];
    let other = |((name, run), size): ((&&str, Option<&Run>), Option<Bytes>)| {
        let case = &run.filter(|run| Some(run.case.size) != size)?.case;
        let (transport, wait) = (case.transport, case.wait.name());
        Some(format!("size: {name} of {transport} {wait} is at {}", case.size))
    };
    columns.iter().zip(*row).zip(sizes).filter_map(other).collect()
}

fn fold(record: &Record) -> Option<Vec<Row<'_>>> {
    let places = each_once(record.runs.iter().map(|run| (run.case.transport, run.case.wait)));
    places.into_iter().map(|place| row(record, place)).collect()
}

fn row(record: &Record, place: (TransportKind, Wait)) -> Option<Row<'_>> {
    let of = |run: &&Run| (run.case.transport, run.case.wait) == place;
    let (rates, latencies): (Vec<&Run>, Vec<&Run>) =
        record.runs.iter().filter(of).partition(|run| is_of_rates(record, &run.case.pattern));
    if latencies.len() > 1 || rates.len() > 2 {
        return None;
    }
    let size = |run: &&Run| run.case.size;
    let ends = [rates.iter().copied().min_by_key(size), rates.iter().copied().max_by_key(size)];
    Some([latencies.first().copied(), ends[0], ends[1]])
}

/// Whether the runs of a pattern answer with a bandwidth: a failed one has no figure of its own.
fn is_of_rates(record: &Record, pattern: &str) -> bool {
    let mut runs = record.runs.iter().filter(|run| run.case.pattern == pattern);
    runs.any(|run| run.rates.iter().any(|rate| rate.metric == RateMetric::Bandwidth))
}
