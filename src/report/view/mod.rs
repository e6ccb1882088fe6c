//! Views: what a record shows, as plain data of [`super::model`].
//!
//! A pattern has a view of its own, which knows what its runs are made of. The others go by what a
//! record says of any run.

mod bandwidth;
mod clocks;
mod load;
mod noise;
mod pairs;
mod results;
mod rounds;
mod rpc;
mod stream;
mod study;
mod survey;
mod sweep;

pub use clocks::{notes as clock_notes, section as clocks};
pub use load::breaks_bound;
pub use noise::{section as noise, sentence as noise_sentence, tables as noise_tables};
pub use pairs::{notes as pair_notes, section as pairs};
pub use rounds::section as rounds;
pub use study::section as study;
pub use sweep::section as sweep;

use super::model::Section;
use crate::record::schema::Record;

/// What one kind of run shows; `None` where a record has none.
pub type View = fn(&Record) -> Option<Section>;

/// The views of patterns.
pub const PATTERNS: &[View] = &[load::section, rpc::section, stream::section, bandwidth::section];

/// The results of all runs: what no pattern shows by itself first.
pub fn results(record: &Record, patterns: &[View]) -> Vec<Section> {
    if let Some(survey) = survey::section(record) {
        return vec![survey];
    }
    let own: Vec<Section> = patterns.iter().filter_map(|view| view(record)).collect();
    results::section(record, &own).into_iter().chain(own).collect()
}
