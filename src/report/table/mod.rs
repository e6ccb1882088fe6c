//! Tables for the terminal, from a record alone.
//!
//! Takes records and plain rows; gives text. A table is an interface: the fields of a line are
//! parted by two spaces or more and hold single ones at most (`awk -F'  +'`), each line of a table
//! has all its fields, units stand in the head, and decimal points stand under each other. There
//! is no colour and no frame.
//!
//! Must never: know where the text goes, or anything that is not in the run directory.

mod bandwidth;
mod clocks;
pub mod comparison;
pub mod grid;
mod latency;
pub mod load;
mod noise;
mod notes;
pub mod number;
mod pairs;
pub mod rpc;
pub mod stream;
mod study;
mod survey;

pub use grid::{Cell, Grid};
pub use noise::noise;
pub use notes::notes;
pub use pairs::{bisections, notes as pairs_notes};

use crate::plan::Study;
use crate::record::schema::{Record, Run};

/// The runs of a record: the survey's fold, or a table for each kind of figure and each graph.
pub fn runs(record: &Record) -> String {
    if record.plan.name == "survey"
        && let Some(folded) = survey::table(record)
    {
        return folded;
    }
    // A line for each of many pairs would hide what they show together; the page has them.
    let each = |table: fn(&Record) -> Option<String>| match record.plan.pairs {
        Some(_) => None,
        None => table(record),
    };
    let tables = [
        pairs::tables(record),
        pairs::bisections(record),
        each(latency::table),
        each(load::table),
        each(load::pools_table),
        each(rpc::table),
        each(rpc::lengths),
        each(stream::table),
        each(bandwidth::schedules),
        each(bandwidth::table),
        study::tables(record),
        clocks::tables(record),
    ];
    tables.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// The heads of columns that only some tables have: the series of a study, and the number of
/// threads where a run has several.
fn own_heads<'a>(record: &Record) -> impl Iterator<Item = &'a str> + use<'a> {
    let series = record.plan.study.as_ref().map(|_| "series");
    let threads = has_threads(record).then_some("threads");
    series.into_iter().chain(threads)
}

/// What a run has in those columns.
fn own_cells(record: &Record, run: &Run) -> impl Iterator<Item = Cell> {
    let of = |study: &Study| study.series_of(run.index).map(|series| series.name.as_str().into());
    let series = record.plan.study.as_ref().map(|study| of(study).unwrap_or_else(Cell::none));
    let threads = has_threads(record).then(|| Cell::count(u64::from(run.case.threads)));
    series.into_iter().chain(threads)
}

fn has_threads(record: &Record) -> bool {
    record.runs.iter().any(|run| run.case.threads > 1)
}
