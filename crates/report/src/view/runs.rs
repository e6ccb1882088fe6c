//! Counts of the messages of each run, and what its figures include. What all runs share is a note.

use crate::model::{Cell, Section, Show, Table, number, prose, text};
use wiregauge_figures::record::schema::{Counts, Record, Run};

/// A table of the runs, for the page; `None` without runs.
pub fn section(record: &Record) -> Option<Section> {
    let (runs, first) = (&record.runs, record.runs.first()?);
    let stopped = runs.iter().all(|run| run.stopped == first.stopped);
    let is_shared = |name: &String, value: &String| {
        runs.iter().all(|run| run.included.get(name) == Some(value))
    };
    let included = |run: &Run, of_all: bool| {
        let own = run.included.iter().filter(|(name, value)| is_shared(name, value) == of_all);
        let words = own.map(|(name, value)| format!("{}: {value}", name.replace('_', " ")));
        words.collect::<Vec<_>>().join("; ")
    };
    let mut section = Section::new("runs", "Runs");
    let shared = included(first, true);
    if !shared.is_empty() {
        section.notes.push(format!("All figures include: {shared}.").into());
    }
    if stopped {
        let why = first.stopped.trim_end_matches('.');
        section.notes.push(format!("All runs stopped because: {why}.").into());
    }
    let mut fields = vec![
        text("run", |run: &&Run| run.label.as_str().to_owned()),
        number("rounds", "", |run: &&Run| Cell::Count(run.rounds.len() as u64)),
    ];
    type CountOf = fn(&Counts) -> u64;
    let counts: [(&str, CountOf); 10] = [
        ("sent", |counts| counts.sent),
        ("warm-up", |counts| counts.warmup),
        ("received", |counts| counts.received),
        ("lost", |counts| counts.lost),
        ("unfinished", |counts| counts.unfinished),
        ("unsent", |counts| counts.unsent),
        ("held up", |counts| counts.held_up),
        ("duplicates", |counts| counts.duplicates),
        ("reordered", |counts| counts.reordered),
        ("corrupt", |counts| counts.corrupt),
    ];
    fields.extend(
        counts.map(|(head, of)| number(head, "", move |run: &&Run| Cell::Count(of(&run.counts)))),
    );
    if !stopped {
        fields.push(prose("stopped because", |run: &&Run| run.stopped.clone()));
    }
    if runs.iter().any(|run| !included(run, false).is_empty()) {
        fields.push(prose("includes", |run: &&Run| included(run, false)));
    }
    let table = Table::of(runs, fields)?.caption("Message counts");
    section.tables.push(table.show(Show::Page));
    Some(section)
}
