//! The causes of slow messages of runs whose messages were not split.

use super::explain::{causes, named};
use crate::model::{Note, Section, Table};
use crate::number::{count, time};
use wiregauge_figures::explain::tail::TailCauses;
use wiregauge_figures::record::schema::{Metric, Record, Run};
use wiregauge_figures::view::compared::{ends_of, told_apart};

/// What these causes are worth.
const WORTH: &str = "by the scheduler's and the interrupts' trace points on the CPUs and threads \
                     of the measurement, and by TCP's counters once in a millisecond; other queues \
                     and gaps are seen by `wiregauge explain` alone";

/// A sentence for each run, until the answer is long enough.
pub fn answer(record: &Record) -> impl Iterator<Item = String> {
    labels(record).into_iter().filter_map(|(tail, label, way)| {
        let named = Some(named(&tail.slow)).filter(|named| !named.is_empty())?;
        let of = if label.is_empty() { label } else { format!(" of {label}") };
        let above = time(tail.slow.above_ns);
        Some(format!("Causes of slow messages{of} (above p99, {above}{way}): {named}."))
    })
}

/// A table of each run; `None`: causes were not looked for.
pub fn section(record: &Record) -> Option<Section> {
    let mut notes = vec![Note::from(WORTH.to_owned())];
    let mut tables = Vec::new();
    for (number, (tail, label, way)) in labels(record).into_iter().enumerate() {
        let of = if label.is_empty() { label } else { format!("{label}: ") };
        let looked = format!(
            "{of}{} looked at, {} after the memory for stamps was full",
            count(tail.messages),
            count(tail.beyond)
        );
        notes.push(looked.into());
        if !tail.missing.is_empty() {
            notes.push(format!("not stamped by this kernel: {}", tail.missing.join(", ")).into());
        }
        let Some(mut table) = causes(&tail.slow) else { continue };
        table.caption.text = format!("{of}{}{way}", table.caption.text);
        tables.push(Table { id: format!("causes-{number}"), ..table });
    }
    let section = Section::new("causes", "Causes of slow messages");
    (!record.tails.is_empty()).then_some(Section { notes, tables, ..section })
}

/// The runs with what tells them apart, and where their figures are half of it that a message's
/// time is there and back.
fn labels(record: &Record) -> Vec<(&TailCauses, String, &'static str)> {
    let run_of = |tail: &TailCauses| record.runs.iter().find(|run| run.index == tail.run);
    let own: Vec<_> = record.tails.iter().filter_map(|tail| Some((tail, run_of(tail)?))).collect();
    let runs: Vec<_> = own.iter().map(|(_, run)| *run).collect();
    let names = told_apart(&runs, ends_of);
    let is_one = own.len() == 1;
    let label = |name: String| if is_one { String::new() } else { name };
    let way = |run: &Run| match run.headline == Metric::HalfRtt.name() {
        true => " there and back",
        false => "",
    };
    let all = own.into_iter().zip(names);
    all.map(|((tail, run), name)| (tail, label(name), way(run))).collect()
}
