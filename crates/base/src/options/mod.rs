//! Options as data: each is declared once, in a table, from which the command line, studies, help,
//! checks, the record and the documents are made.
//!
//! An [`OptionDef`] says how an option is written, limited and explained. A [`Given`] holds the
//! values that were given by name, each checked against its definition, so that reading one cannot
//! fail. This stage knows no option by name.
#![warn(missing_docs)]

mod definition;
mod given;

pub use definition::{
    Kind, Named, OptionDef, OptionTable, Unit, names, parse_count, split_outside_brackets, under,
};
pub use definition::{named, named_enum};
pub use given::{Given, each_once, grouped};

/// A request that cannot be met: one sentence that says what was wrong and what to use instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// For `return`: a refusal.
pub fn refuse<T, E: From<UsageError>>(sentence: impl Into<String>) -> Result<T, E> {
    Err(UsageError(sentence.into()).into())
}

/// Refuses what was found, if anything, in a sentence that names it.
pub fn refuse_found<T>(
    found: Option<T>,
    sentence: impl FnOnce(T) -> String,
) -> Result<(), UsageError> {
    found.map_or(Ok(()), |found| refuse(sentence(found)))
}

impl From<String> for UsageError {
    fn from(sentence: String) -> UsageError {
        UsageError(sentence)
    }
}

impl UsageError {
    /// For `map_err`: puts the option before what its value's parser says.
    pub fn of_option<E: std::fmt::Display>(name: &str) -> impl FnOnce(E) -> UsageError {
        move |why| UsageError(format!("--{name}: {why}"))
    }
}
