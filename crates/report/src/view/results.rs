//! Distributions and rates of all runs that no other table shows.

use crate::model::{
    Cell, Note, OfRun, Rank, Section, Show, Table, ends, figure, number, own, text,
};
use crate::number::{THOUSANDS, US};
use std::collections::BTreeSet;
use wiregauge_figures::record::schema::{Figure, Metric, RateMetric, Record, Run};
use wiregauge_stats::Summary;

/// The results; `others` show some of them already.
pub fn section(record: &Record, others: &[Section]) -> Option<Section> {
    let elsewhere = |list: fn(&Section) -> &Vec<u32>, run: &Run| {
        others.iter().any(|section| list(section).contains(&run.index))
    };
    let runs = |list: fn(&Section) -> &Vec<u32>| {
        record.runs.iter().filter(move |run| !elsewhere(list, run)).collect()
    };
    let mut section = Section::new("results", "Results");
    section.results.extend(distributions(record, runs(|section| &section.distributions)));
    section.results.extend(rates(record, runs(|section| &section.rates)));
    section.filled()
}

/// One metric of a run.
struct Line<'a> {
    run: &'a Run,
    figure: &'a Figure,
}

impl OfRun for Line<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

/// A round trip is twice its half: one line shows both.
fn lines(run: &Run) -> impl Iterator<Item = Line<'_>> {
    let halved = run.summary(Metric::HalfRtt).is_some();
    let shown = run.figures.iter().filter(move |one| !(halved && one.metric == Metric::Rtt));
    shown.map(move |figure| Line { run, figure })
}

fn distributions(record: &Record, runs: Vec<&Run>) -> Option<Table> {
    let quantile = |p| move |line: &Line<'_>| Cell::of_run(Some(line.run), line.figure.metric, p);
    let has_pace = runs.iter().any(|run| run.case.point.is_some());
    // Rows that differ in nothing else are told apart by it in the terminal too.
    let paces: BTreeSet<&Option<String>> = runs.iter().map(|run| &run.case.point).collect();
    let show = if paces.len() > 1 { Show::Everywhere } else { Show::Page };
    let pace = has_pace.then(|| text("pace", |line: &Line<'_>| line.run.case.point.clone()));
    let pace = pace.map(|field| field.show(show));
    let pair = record
        .plan
        .pairs
        .map(|_| text("pair", |line: &Line<'_>| record.plan.hosts_of(&line.run.case)));
    let pair = pair.map(|field| field.show(Show::Page));
    let named = [pair, pace].into_iter().flatten();
    let above = format!("above {}", record.plan.threshold);
    let fields = [
        text("metric", |line: &Line<'_>| line.figure.metric.name()),
        number("size", "B", |line: &Line<'_>| Cell::Size(line.run.case.size.0)).rank(Rank::Label),
        figure("p50", "us", quantile(0.5)),
        figure("p99", "us", quantile(0.99)),
        figure("p99.9", "us", quantile(0.999)),
        number("max", "us", |line: &Line<'_>| {
            Cell::maximum_of_run(Some(line.run), line.figure.metric)
        }),
        text("of rounds", |line: &Line<'_>| Cell::maxima(Some(&line.figure.summary)))
            .rank(Rank::More),
        number("sd between", "us", |line: &Line<'_>| {
            line.figure.summary.sd_between.map_or(Cell::None, spread)
        })
        .rank(Rank::More),
        number("IQR within", "us", |line: &Line<'_>| spread(line.figure.summary.iqr_within))
            .rank(Rank::More),
        number("n", "", |line: &Line<'_>| Cell::Count(line.figure.summary.count)).rank(Rank::More),
        number("lost", "", |line: &Line<'_>| Cell::lost(line.run.lost_of(line.figure.metric)))
            .rank(Rank::More),
        number(&format!("% {above}"), "", |line: &Line<'_>| slow(&line.figure.summary))
            .rank(Rank::More),
    ];
    let unfinished = |line: &Line<'_>| line.run.unfinished_of(line.figure.metric);
    let has_unfinished = runs.iter().flat_map(|run| lines(run)).any(|line| unfinished(&line) > 0);
    let more = number("unfinished", "", move |line: &Line<'_>| Cell::lost(unfinished(line)));
    let fields = fields.into_iter().chain(has_unfinished.then_some(more));
    let rows = runs.iter().flat_map(|run| lines(run));
    let table = Table::of(rows, own(record).into_iter().chain(named).chain(ends()).chain(fields))?;
    Some(Table { id: "main-table".into(), ..table })
}

/// Returns the cell of a spread in ns; none of no samples.
fn spread(ns: f64) -> Cell {
    if ns.is_nan() { Cell::None } else { Cell::number(ns * US) }
}

/// The share of slow samples in per cent, lost ones included.
fn slow(summary: &Summary) -> Cell {
    if summary.count == 0 {
        return Cell::None;
    }
    let percent = 100.0 * summary.above_threshold as f64 / summary.count as f64;
    // A share that is not zero is never shown as zero.
    match summary.above_threshold {
        0 => Cell::number(0.0),
        _ => Cell::number(percent.max(1e-4)),
    }
}

/// What a schedule offered, and what came of it.
fn rates(record: &Record, runs: Vec<&Run>) -> Option<Table> {
    let rate = |metric| move |run: &&Run| Cell::rate(Some(run), metric, THOUSANDS);
    let fields = [
        number("size", "B", |run: &&Run| Cell::Size(run.case.size.0)).rank(Rank::Label),
        number("offered", "k msg/s", rate(RateMetric::OfferedRate)),
        figure("achieved", "k msg/s", rate(RateMetric::AchievedRate)),
        figure("delivered", "k msg/s", rate(RateMetric::MessageRate)),
    ];
    let offers = |run: &&Run| run.rates.iter().any(|one| one.metric == RateMetric::OfferedRate);
    let rows = runs.into_iter().filter(offers);
    let table = Table::of(rows, own(record).into_iter().chain(ends()).chain(fields))?;
    let caption = "What the schedule offered, what was sent, and what was delivered";
    Some(table.caption(Note::new(caption, Show::Page)))
}
