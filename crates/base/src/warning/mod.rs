//! Everything that weakens a figure, as values that are printed beside it.
//!
//! The stage that finds a weakness creates the variant; tables, page and record show it by its
//! kind, severity, subject, sentence and advice. `kinds.rs` declares all of them.
//!
//! Must never: decide anything from the words of a sentence, or leave a variant without a sentence.
#![warn(missing_docs)]

mod kinds;
pub mod number;
#[cfg(test)]
mod tests;

pub use kinds::{KINDS, Warning};

use crate::options::grouped;
use serde::{Deserialize, Serialize};

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

/// A warning as it stands in the record. Docs: `docs/warnings.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedWarning {
    /// A stable name, e.g. `unpinned`.
    pub kind: String,
    /// How much it weakens the figure.
    pub severity: Severity,
    /// The figure, role, CPU or host that it weakens, where one is known.
    pub subject: Option<Subject>,
    /// What weakens which figure, with the numbers.
    pub sentence: String,
    /// How strong it is among warnings of its kind: the larger, the worse. `None`: the kind has no
    /// such number, or an older build wrote the record.
    pub magnitude: Option<f64>,
    /// What to do.
    pub advice: String,
}

impl RecordedWarning {
    /// A warning about another host.
    pub fn on_host(warning: &Warning, host: &str) -> Self {
        RecordedWarning { subject: Some(Subject::Host(host.into())), ..warning.into() }
    }

    /// Of warnings that say the same, the strongest.
    pub fn each_once(warnings: &[Warning]) -> Vec<Self> {
        let alike = |a: &Self, b: &Self| {
            (&a.kind, &a.subject, &a.sentence, &a.advice)
                == (&b.kind, &b.subject, &b.sentence, &b.advice)
        };
        let strongest = |alike: Vec<Self>| {
            alike.into_iter().reduce(|a, b| if b.magnitude > a.magnitude { b } else { a })
        };
        grouped(warnings.iter().map(Self::from), alike).into_iter().filter_map(strongest).collect()
    }
}
