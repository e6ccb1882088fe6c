//! Views: what a record shows, as plain data of [`super::model`].
//!
//! A pattern has a view of its own, which knows what its runs are made of. The others go by what a
//! record says of any run.

pub mod answer;
mod citation;
mod clocks;
pub mod distribution;
mod figures;
mod lead;
mod names;
mod noise;
mod pairs;
mod results;
mod rounds;
mod runs;
mod study;
mod sweep;

pub use citation::citation;
pub use clocks::{notes as clock_notes, section as clocks};
pub use lead::lead;
pub use noise::{
    no_instrument, section as noise, sentence as noise_sentence, tables as noise_tables,
};
pub use pairs::{notes as pair_notes, section as pairs};
pub use rounds::section as rounds;
pub use runs::section as runs;
pub use study::section as study;
pub use sweep::section as sweep;

use super::model::Section;
use super::warnings::mark;
use crate::record::schema::Record;
pub use answer::answer;

/// What a report needs of a pattern, or of several together.
pub trait PatternView: Sync {
    /// All that a record says of its runs in a form of its own; `None` where there is nothing.
    fn section(&self, _record: &Record) -> Option<Section> {
        None
    }

    /// What its runs answer, in a sentence or two; none where a general one says it.
    fn answer(&self, _record: &Record) -> Vec<String> {
        Vec::new()
    }

    /// What replaces all other results of a record; `None`: they are shown.
    fn whole(&self, _record: &Record) -> Option<Section> {
        None
    }

    /// Whether a limit that was asked for is exceeded in all that was measured.
    fn exceeds_limit(&self, _record: &Record) -> bool {
        false
    }
}

/// The results of all runs: what no pattern shows by itself first.
pub fn results(record: &Record, patterns: &[&dyn PatternView]) -> Vec<Section> {
    let mut sections: Vec<Section> = match patterns.iter().find_map(|pattern| pattern.whole(record))
    {
        Some(whole) => vec![whole],
        None => {
            let own: Vec<Section> = patterns.iter().filter_map(|one| one.section(record)).collect();
            results::section(record, &own).into_iter().chain(own).collect()
        }
    };
    let tables = sections.iter_mut().flat_map(|one| one.results.iter_mut().chain(&mut one.tables));
    mark(record, tables);
    sections
}
