//! What can go wrong with a run directory: one sentence each.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use wiregauge_host::named_limit;
use wiregauge_plan::written::one_line;

/// Why a run directory could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The target is already there.
    #[error(
        "{} exists already and is never overwritten: name another directory or move it",
        shown(.0)
    )]
    Exists(PathBuf),
    /// Nothing can be created beside the target.
    #[error(
        "cannot create a run directory in {}: {source}; name one that can be written",
        shown(.parent)
    )]
    Parent {
        /// Where it should have appeared.
        parent: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A disk failed under a record that was being written: nothing was asked wrongly.
    #[error("{sentence}")]
    Disk {
        /// What failed, and what became of the record.
        sentence: String,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// Anything else: a sentence that says what is wrong and what is allowed.
    #[error("{0}")]
    Refused(String),
}

impl From<String> for RecordError {
    fn from(sentence: String) -> RecordError {
        RecordError::Refused(sentence)
    }
}

impl RecordError {
    /// What the system said while `path` was written; a full disk has a sentence of its own.
    pub fn writing(path: &Path, source: io::Error) -> RecordError {
        let source = named_limit(source);
        let (path, kind) = (shown(path), source.kind());
        let sentence = match kind {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
                "the disk of {path} is full: free some space or name a directory on another disk"
            ),
            _ => format!("writing {path}: {source}"),
        };
        RecordError::Disk { sentence, kind }
    }

    /// The same, with what became of what had been written before.
    pub fn with(self, more: &str) -> RecordError {
        match self {
            RecordError::Disk { sentence, kind } => {
                RecordError::Disk { sentence: format!("{sentence}; {more}"), kind }
            }
            other => other,
        }
    }

    /// What the system said while `path` was read.
    pub fn reading(path: &Path, source: io::Error) -> RecordError {
        RecordError::Refused(format!("reading {}: {}", shown(path), named_limit(source)))
    }

    /// A `samples.parquet` without a byte: nothing of it is damaged, and the figures are elsewhere.
    pub fn empty_samples(path: &Path) -> RecordError {
        RecordError::Refused(format!(
            "{path} is empty: restore it from a copy, or remove it, since the figures stand in \
             record.json",
            path = shown(path)
        ))
    }

    /// A damaged or foreign `samples.parquet`.
    pub fn samples(path: &Path, why: impl AsRef<str>) -> RecordError {
        let (path, why) = (shown(path), quoted(why.as_ref()));
        RecordError::Refused(format!("{path} is damaged or does not belong to this run: {why}"))
    }

    /// A `record.json` that contradicts itself.
    pub fn implausible(path: &Path, why: &str) -> RecordError {
        let (path, why) = (shown(path), quoted(why));
        RecordError::Refused(format!("{path} is damaged or was edited: {why}"))
    }

    /// A parser's complaint, with its place apart from its words.
    pub fn json(path: &Path, error: &serde_json::Error) -> RecordError {
        let (path, line, column) = (shown(path), error.line(), error.column());
        RecordError::Refused(format!("{path}, line {line}, column {column}: {}", reason(error)))
    }

    /// The same of a record that was upgraded from an older version first.
    pub fn upgraded(path: &Path, version: u64, error: &serde_json::Error) -> RecordError {
        let (path, why) = (shown(path), reason(error));
        RecordError::Refused(format!("{path}, upgraded from version {version}: {why}"))
    }
}

/// A parser's complaint without its place.
fn reason(error: &serde_json::Error) -> String {
    let said = error.to_string();
    quoted(said.rfind(" at line ").map_or(said.as_str(), |at| &said[..at]))
}

/// Longest text from a file or a library that is repeated in a sentence: a terminal's few lines.
const QUOTE_LIMIT: usize = 300;

/// The text on one line, cut at `QUOTE_LIMIT`.
pub fn quoted(text: &str) -> String {
    one_line(text).chars().take(QUOTE_LIMIT).collect::<String>().trim_end().to_string()
}

/// A path as it is shown in a sentence.
pub fn shown(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
