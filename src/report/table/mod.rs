//! Tables for the terminal, from plain data.
//!
//! Takes records and the sections of [`super::model`]; gives text. A table is an interface: the
//! fields of a line are parted by two spaces or more and hold single ones at most (`awk -F'  +'`),
//! each line of a table has all its fields, units stand in the head, and decimal points stand under
//! each other. There is no colour and no frame.
//!
//! Must never: know where the text goes, or anything that is not in the run directory.

pub mod comparison;
pub mod grid;
pub mod history;
mod notes;
mod section;

pub use super::model::Cell;
pub use grid::Grid;
pub use notes::notes;

use super::view::{self, PatternView};
use crate::record::schema::{Noise, Record};

/// The results of a record: those of its runs by the views of patterns, and each graph.
pub fn runs(record: &Record, patterns: &[&dyn PatternView]) -> String {
    let mut sections: Vec<_> = view::pairs(record).into_iter().collect();
    // A line for each of many pairs would hide what they show together; the page has them.
    if record.plan.pairs.is_none() {
        sections.extend(view::results(record, patterns));
    }
    sections.extend(view::study(record));
    sections.extend(view::clocks(record));
    section::blocks(&sections).join("\n")
}

/// Gaps that spinning cores saw.
pub fn noise(all: &[Noise]) -> String {
    let tables = view::noise_tables(all);
    tables.iter().filter_map(section::table).collect::<Vec<_>>().join("\n")
}
