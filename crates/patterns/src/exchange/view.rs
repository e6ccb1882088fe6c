//! Runs of an exchange in a report: what all nodes get, what each does, and who stands out.

mod plots;
mod seen;

use super::Exchange;
use crate::prelude::*;
use seen::{ConnectionRow, NAME, NodeRow, Seen};
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::{Compared, Named, told_apart};
use wiregauge_figures::view::model::{Rank, fields};
use wiregauge_figures::view::number::{PERCENT, THOUSANDS};

/// Nodes of one run that the terminal shows; the page has all.
const MOST_NODES: usize = 16;
/// Sentences of nodes that stand out and of bounds.
const MOST_SENTENCES: usize = 8;

impl PatternView for Exchange {
    /// The sum of all nodes, the node that stands out, and what bounds them.
    fn answer(&self, record: &Record) -> Vec<String> {
        let runs = runs(record);
        // A study answers with more than that.
        if runs.is_empty() || runs.len() != record.runs.len() {
            return Vec::new();
        }
        let own: Vec<&Run> = runs.iter().map(|seen| seen.run).collect();
        let names = told_apart(&own, |run| run.label.clone());
        let named = |(seen, name): (&Seen<'_>, String)| {
            let rate =
                seen.run.rate(RateMetric::Bandwidth).filter(|rate| rate.value.is_finite())?;
            Some(Named { name, value: rate.value, interval: rate.interval })
        };
        let all: Vec<Named> = runs.iter().zip(names).filter_map(named).collect();
        let unit = byte_rate::or(ByteRateUnit::Gigabits);
        let mut lines = match all.as_slice() {
            [one] => {
                let text = one.text(unit.factor(), unit.name());
                vec![format!("{}: {text} in sum.", one.name)]
            }
            all => {
                let (word, what, scale) = ("highest", "sum of all nodes", unit.factor());
                let unit = unit.name();
                let highest = Compared { word, what, scale, unit, more_is_better: true };
                highest.best(all).into_iter().collect()
            }
        };
        let more = runs.iter().flat_map(|seen| seen.bound().into_iter().chain(seen.worst()));
        lines.extend(more.take(MOST_SENTENCES));
        lines
    }

    fn section(&self, record: &Record) -> Option<Section> {
        let runs = runs(record);
        let own = record.runs.iter().filter(|run| run.case.pattern == NAME);
        let mut section = Section::new("exchange", "Exchange of many nodes").of_runs(own);
        section.results.extend(sums(record, &runs));
        // One that broke off in its warm-up has no rates, and its details have 0.
        let rated = || runs.iter().filter(|seen| seen.has_rate());
        section.tables.extend(rated().filter_map(nodes));
        section.tables.extend(rated().filter_map(connections));
        section.maps = rated().filter_map(Seen::matrix).collect();
        for seen in rated() {
            section.plots.extend(plots::over_time(seen));
        }
        section.plots.extend(plots::by_degree(&runs));
        section.data.push(data(&runs));
        section.filled()
    }
}

fn runs(record: &Record) -> Vec<Seen<'_>> {
    let own = record.runs.iter().filter(|run| run.case.pattern == NAME);
    own.filter_map(|run| Seen::of(record, run)).collect()
}

/// The sum of all nodes of each run.
fn sums(record: &Record, runs: &[Seen<'_>]) -> Option<Table> {
    let unit = byte_rate::or(ByteRateUnit::Gigabits);
    let rate = |metric, scale| move |seen: &&Seen<'_>| Cell::rate(Some(seen.run), metric, scale);
    let quantile = |metric, p| move |seen: &&Seen<'_>| Cell::of_run(Some(seen.run), metric, p);
    let has_link = runs.iter().any(|seen| seen.spec.link.is_some());
    let has_slots = runs.iter().any(|seen| !seen.spec.chaotic);
    let before = [
        text("schedule", |seen: &&Seen<'_>| seen.spec.name()),
        number("nodes", "", |seen: &&Seen<'_>| Cell::Count(seen.details.nodes.len() as u64))
            .rank(Rank::Label),
        number("size", "B", |seen: &&Seen<'_>| Cell::Size(seen.spec.mean.0)).rank(Rank::Label),
        text("queues", |seen: &&Seen<'_>| seen.queues()).rank(Rank::More),
        figure("sum", unit.name(), rate(RateMetric::Bandwidth, unit.factor())).key("bandwidth"),
    ];
    let share = has_link.then(|| {
        let share = |seen: &&Seen<'_>| {
            seen.share().map(|(value, interval)| Cell::figure(value, interval, PERCENT))
        };
        figure("of bound", "%", share)
    });
    let fairness = figure("fairness", "", |seen: &&Seen<'_>| {
        let (value, interval) = seen::figure(&seen.details.fairness);
        Cell::figure(value, interval, 1.0)
    });
    let late = has_slots.then(|| figure("late p99", "us", quantile(Metric::Lateness, 0.99)));
    let after = [
        figure("k msg/s", "", rate(RateMetric::MessageRate, THOUSANDS))
            .key("rate")
            .rank(Rank::More),
        figure("p50", "us", quantile(Metric::OneWay, 0.5)),
        figure("p99", "us", quantile(Metric::OneWay, 0.99)).rank(Rank::More),
    ];
    let after_slot = has_slots.then(|| {
        number("after slot", "", |seen: &&Seen<'_>| {
            seen.details.after_slot.map_or(Cell::None, Cell::Count)
        })
        .rank(Rank::More)
    });
    let counts = [
        number("held up", "", |seen: &&Seen<'_>| Cell::Count(seen.details.held_up))
            .rank(Rank::More),
        number("skipped", "", |seen: &&Seen<'_>| Cell::Count(seen.details.skipped))
            .rank(Rank::More),
        number("n", "", |seen: &&Seen<'_>| Cell::Count(seen.run.counts.received)),
        number("lost", "", |seen: &&Seen<'_>| Cell::lost(seen.run.counts.lost)),
    ];
    let fields = before.into_iter().chain(share).chain([fairness]).chain(late);
    let fields = own(record).into_iter().chain(ends()).chain(fields).chain(after);
    let fields = fields.chain(after_slot).chain(counts);
    let caption = "Payload of all nodes that arrived while all of them sent; p50 and p99 are from \
                   submit to receipt";
    let table = Table::of(runs, fields)?.caption(Note::new(caption, Show::Page));
    Some(Table { id: "exchange-table".into(), ..table })
}

/// The nodes of a run.
fn nodes(seen: &Seen<'_>) -> Option<Table> {
    let unit = byte_rate::or(ByteRateUnit::Gigabits);
    let rate = |of: fn(&NodeRow<'_>) -> super::summary::Between| {
        move |row: &NodeRow<'_>| {
            let (value, interval) = seen::figure(&of(row));
            Cell::figure(value, interval, unit.factor())
        }
    };
    let fields = [
        text("node", |row: &NodeRow<'_>| row.name.clone()),
        figure("sends", unit.name(), rate(|row| row.node.sends)),
        figure("receives", unit.name(), rate(|row| row.node.receives)),
        number("CPU", "%", |row: &NodeRow<'_>| Cell::fixed(row.node.cpu * PERCENT, 0)),
    ];
    let rows = seen.nodes();
    let (many, more) = (rows.len() > MOST_NODES, rows.len().saturating_sub(MOST_NODES));
    let table = Table::of(rows, fields)?.caption(format!("Nodes, {}", seen.run.label));
    let notes = many.then(|| format!("{more} more nodes are in the record"));
    let show = if many { Show::Page } else { seen.show };
    Some(Table { folded: many, ..table.notes(notes).show(show) })
}

/// The connections of a run: what the matrix shows, with intervals.
fn connections(seen: &Seen<'_>) -> Option<Table> {
    let unit = byte_rate::or(ByteRateUnit::Megabytes);
    let fields = [
        text("from", |one: &ConnectionRow<'_>| seen.name(one.0.from)),
        text("to", |one: &ConnectionRow<'_>| seen.name(one.0.to)),
        figure("rate", unit.name(), |one: &ConnectionRow<'_>| {
            let (value, interval) = seen::figure(&one.0.rate);
            Cell::figure(value, interval, unit.factor())
        }),
    ];
    let rows = seen.details.connections.iter().map(ConnectionRow);
    let table = Table::of(rows, fields)?.caption(format!("Connections, {}", seen.run.label));
    Some(Table { folded: true, ..table.show(Show::Page) })
}

/// The rate of each connection for other programs.
fn data(runs: &[Seen<'_>]) -> Data {
    let row = |seen: &Seen<'_>, one: &super::summary::Connection| {
        let [low, high] = one.rate.interval.map_or([None, None], |both| both.map(Some));
        let (from, to) = (seen.name(one.from), seen.name(one.to));
        fields![seen.run.index, from, to, one.rate.value, low, high]
    };
    let rows = runs.iter().flat_map(|seen| {
        seen.details.connections.iter().map(move |one| row(seen, one)).collect::<Vec<_>>()
    });
    Data::new("run from to bytes_per_second low high", rows)
}
