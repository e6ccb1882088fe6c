//! What a pattern shows of its runs: tables, plots and sentences, as plain data.
//!
//! Takes a record; gives what a report renders. Must never: read or write a file, or know where its
//! data is shown.

pub mod byte_rate;
pub mod client_hosts;
pub mod compared;
pub mod curves;
pub mod model;
pub mod number;

use crate::record::schema::Record;
use model::Section;

/// The state of a limit that a run was asked to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownLimit {
    /// No limit was asked for, or it is kept somewhere.
    Kept,
    /// Neither that it is kept nor that it is exceeded was shown.
    Inconclusive,
    /// It is exceeded in all that was measured.
    Exceeded,
}

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

    /// Returns what was shown of a limit that was asked for.
    fn limit(&self, _record: &Record) -> ShownLimit {
        ShownLimit::Kept
    }
}
