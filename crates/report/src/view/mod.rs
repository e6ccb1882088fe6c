//! Views: what a record shows, as plain data of [`super::model`].
//!
//! A pattern has a [view](PatternView) of its own, which knows what its runs are made of. The
//! others go by what a record says of any run.

pub mod answer;
mod citation;
mod clocks;
pub mod distribution;
pub mod explain;
mod figures;
mod impact;
mod lead;
mod losses;
pub mod names;
mod noise;
pub mod packets;
mod pairs;
mod parts;
mod results;
mod rounds;
mod runs;
mod study;
mod sweep;
mod tail;
mod together;

pub use citation::citation;
pub use clocks::{notes as clock_notes, section as clocks};
pub use explain::section as explanation;
pub use impact::section as impact;
pub use lead::lead;
pub use losses::section as losses;
pub use noise::{
    no_instrument, section as noise, sentence as noise_sentence, tables as noise_tables,
};
pub use pairs::{notes as pair_notes, section as pairs};
pub use parts::section as parts;
pub use rounds::section as rounds;
pub use runs::section as runs;
pub use study::section as study;
pub use sweep::sections as sweeps;
pub use tail::section as tail_causes;
pub use together::{
    answer as together_answer, is_of_messages, notes as together_notes, section as together,
};

use super::model::Section;
use super::warnings::mark;
pub use answer::answer;
use wiregauge_figures::record::schema::Record;
pub use wiregauge_figures::view::PatternView;

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
