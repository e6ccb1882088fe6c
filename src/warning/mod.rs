//! Everything that weakens a figure, as values that are printed beside it.
//!
//! The stage that finds a weakness creates the variant; tables, page and record show it by its
//! kind, severity, subject, sentence and advice. `kinds.rs` declares all of them.
//!
//! Must never: decide anything from the words of a sentence, or leave a variant without a sentence.
#![warn(missing_docs)]

mod kinds;
mod number;
#[cfg(test)]
mod tests;

pub use kinds::{KINDS, Warning};

use serde::{Deserialize, Serialize};
use std::fmt;

crate::options::named_enum! {
    /// How much a warning weakens what it is about.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// The figure is right; this helps to read it.
        Note = "note",
        /// The figure holds something beside what was to be measured.
        Warning = "warning",
        /// The figure is not that of what was to be measured, or part of it is missing.
        Severe = "severe",
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a warning is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A metric or a rate, by its name in the record.
    Metric(String),
    /// `client` or `server`.
    Role(String),
    /// A CPU of the host that the record is of.
    Cpu(u32),
    /// A network interface.
    Interface(String),
    /// Another host, as it was typed.
    Host(String),
}
