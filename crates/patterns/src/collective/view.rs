//! Runs of collective operations in a report.

use super::spec::{Collective, Spec, Sync};
use super::summary::Details;
use crate::prelude::*;
use wiregauge_figures::view::compared::{Named, ends_of};
use wiregauge_figures::view::model::Rank;
use wiregauge_figures::view::number::{PERCENT, THOUSANDS, US};

/// As records name the pattern.
const NAME: &str = "collective";

/// A run with what its pattern keeps.
struct Seen<'a> {
    run: &'a Run,
    spec: Spec,
    details: Details,
}

impl OfRun for &Seen<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

impl PatternView for Collective {
    /// Says the median of each operation, of several sizes those of the least and the greatest.
    fn answer(&self, record: &Record) -> Vec<String> {
        let own = record.runs.iter().filter(|run| run.case.pattern == NAME);
        let runs: Vec<Seen<'_>> = own.filter_map(seen).collect();
        // A study answers with more than that.
        if runs.len() != record.runs.len() {
            return Vec::new();
        }
        let named = runs.iter().map(|one| (operation(one), one));
        let groups = grouped(named, |a, b| a.0 == b.0);
        groups.iter().filter_map(|group| of_operation(group)).collect()
    }

    fn section(&self, record: &Record) -> Option<Section> {
        let own = || record.runs.iter().filter(|run| run.case.pattern == NAME);
        let runs: Vec<Seen<'_>> = own().filter_map(seen).collect();
        let mut section = Section::new(NAME, "Collective operations").of_runs(own());
        section.results.extend(operations(record, &runs));
        section.filled()
    }
}

/// Returns the name of an operation with its ends and its ranks.
fn operation(one: &Seen<'_>) -> String {
    let ranks = one.run.case.topology.ranks.len();
    format!("{}: {} of {ranks} ranks", ends_of(one.run), one.spec.name())
}

/// Returns the median of an operation with its interval.
fn median(one: &Seen<'_>) -> Option<String> {
    let found = one.run.summary(metric(&one.spec))?.quantile(0.5)?;
    let value = found.value?.0;
    Some(Named { name: String::new(), value, interval: found.shown_interval() }.text(US, "us"))
}

fn of_operation(group: &[(String, &Seen<'_>)]) -> Option<String> {
    let least = group.iter().min_by_key(|(_, one)| one.run.case.size)?;
    let most = group.iter().max_by_key(|(_, one)| one.run.case.size)?;
    let name = &least.0;
    let first = median(least.1)?;
    let [from, to] = [least, most].map(|(_, one)| one.run.case.size);
    if from == to {
        return Some(format!("{name}: p50 {first}."));
    }
    Some(format!("{name}: p50 {first} at {from}, {} at {to}.", median(most.1)?))
}

fn seen(run: &Run) -> Option<Seen<'_>> {
    let spec = run.case.spec::<Spec>(NAME)?;
    let details = Details::deserialize(run.details.as_ref()?).ok()?;
    Some(Seen { run, spec, details })
}

fn metric(spec: &Spec) -> Metric {
    match spec.sync {
        Sync::Window => Metric::Collective,
        Sync::Barrier => Metric::AfterBarrier,
    }
}

/// Returns the share of operations that a rank entered late. Behind a barrier there is no instant
/// at which all are to enter.
fn late(one: &&Seen<'_>) -> Cell {
    let all = one.details.operations.max(1) as f64;
    match one.spec.sync {
        Sync::Window => Cell::fixed(one.details.late as f64 / all * PERCENT, 1),
        Sync::Barrier => Cell::None,
    }
}

/// Returns the time from the first entry to the last, where all enter at one instant.
fn skew(one: &&Seen<'_>) -> Cell {
    let skew = &one.details.skew_ns;
    match one.spec.sync {
        Sync::Window => Cell::figure(skew.value, skew.bounds(), US),
        Sync::Barrier => Cell::None,
    }
}

/// The times of each run's operation.
fn operations(record: &Record, runs: &[Seen<'_>]) -> Option<Table> {
    let quantile = |p| move |one: &&Seen<'_>| Cell::of_run(Some(one.run), metric(&one.spec), p);
    let fields =
        [
            text("operation", |one: &&Seen<'_>| one.spec.name()),
            number("ranks", "", |one: &&Seen<'_>| {
                Cell::Count(one.run.case.topology.ranks.len() as u64)
            })
            .rank(Rank::Label),
            number("size", "B", |one: &&Seen<'_>| match one.spec.operation.has_payload() {
                true => Cell::Size(one.run.case.size.0),
                false => Cell::Size(0),
            })
            .rank(Rank::Label),
            figure("p50", "us", quantile(0.5)),
            figure("p99", "us", quantile(0.99)),
            figure("max", "us", |one: &&Seen<'_>| {
                Cell::maximum_of_run(Some(one.run), metric(&one.spec))
            })
            .rank(Rank::More),
            number("late", "%", late),
            figure("skew", "us", skew).rank(Rank::More),
        ];
    let has_overlap = runs.iter().any(|one| one.details.overlap.is_some());
    let overlap = has_overlap.then(|| {
        number("overlap", "%", |one: &&Seen<'_>| match one.details.overlap {
            Some(overlap) => Cell::fixed(overlap.value * PERCENT, 0),
            None => Cell::None,
        })
    });
    let counts = [
        number("k operations", "", |one: &&Seen<'_>| {
            Cell::fixed(one.details.operations as f64 * THOUSANDS, 1)
        })
        .rank(Rank::More),
        number("wrong", "", |one: &&Seen<'_>| Cell::lost(one.run.counts.corrupt)),
    ];
    let fields = own(record).into_iter().chain(ends()).chain(fields).chain(overlap).chain(counts);
    let caption = "From the first entry to the last exit on common time (after_barrier: of each \
                   rank by its own clock); late: a rank entered too late, so in no figure";
    let table = Table::of(runs, fields)?.caption(Note::new(caption, Show::Page));
    Some(Table { id: "collective-table".into(), ..table })
}
