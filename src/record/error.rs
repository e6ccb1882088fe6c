//! What can go wrong with a run directory: one sentence each.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a run directory could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The target is already there.
    #[error("{path} exists already and is never overwritten: name another directory or move it")]
    Exists {
        /// The target.
        path: Shown,
    },
    /// A path that cannot name a directory.
    #[error("'{path}' is not the path of a directory: use one that ends in a plain name")]
    NoName {
        /// What was given.
        path: Shown,
    },
    /// Nothing can be created beside the target.
    #[error("cannot create a run directory in {parent}: {source}; name one that can be written")]
    Parent {
        /// Where it should have appeared.
        parent: Shown,
        /// What the system said.
        source: io::Error,
    },
    /// Less space than the caller's estimate.
    #[error(
        "{parent} has {free} bytes free and the run may write {need}; free some, name a directory \
         on another disk, or measure fewer messages"
    )]
    Space {
        /// Where it should have appeared.
        parent: Shown,
        /// What the run may write, in bytes.
        need: u64,
        /// What there is, in bytes.
        free: u64,
    },
    /// The disk filled up during the run.
    #[error(
        "the disk of {path} is full, so the record was given up and its part removed; free some \
         space or name a directory on another disk"
    )]
    Full {
        /// The file that was being written.
        path: Shown,
    },
    /// Any other refusal of the system while writing.
    #[error("writing {path}: {source}; the record was given up and its part removed")]
    Write {
        /// The file that was being written.
        path: Shown,
        /// What the system said.
        source: io::Error,
    },
    /// The writer has failed before.
    #[error("the record {path} was given up after an earlier error; nothing more is written to it")]
    GivenUp {
        /// The target.
        path: Shown,
    },
    /// Something that the file's format or a limit of ours does not hold.
    #[error("{what} is {value}, more than samples.parquet holds; allowed are at most {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// The record would not be read again by this build.
    #[error(
        "the record would not be readable ({why}); its samples are kept \
         in {path}"
    )]
    Unreadable {
        /// The partial directory, kept with its samples.
        path: Shown,
        /// What the parser said.
        why: String,
    },
    /// No such directory.
    #[error("{path} does not exist; name a run directory")]
    Missing {
        /// What was named.
        path: Shown,
    },
    /// Something else than a run directory.
    #[error("{path} is not a run directory: {why}; a run directory holds record.json")]
    NotADirectory {
        /// What was named.
        path: Shown,
        /// What it is instead.
        why: &'static str,
    },
    /// A directory that a run left when it was killed.
    #[error(
        "{path} is what an interrupted run left and holds no record.json; it can be deleted, or \
         its samples.parquet be kept if it has one"
    )]
    Unfinished {
        /// What was named.
        path: Shown,
    },
    /// Any other refusal of the system while reading.
    #[error("reading {path}: {source}")]
    Read {
        /// The file.
        path: Shown,
        /// What the system said.
        source: io::Error,
    },
    /// A file above its limit.
    #[error("{path} has {size} bytes; allowed are at most {limit}")]
    TooLarge {
        /// The file.
        path: Shown,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Not JSON, or not with the fields that a record has.
    #[error("{path}, line {line}, column {column}: {why}")]
    Json {
        /// The file.
        path: Shown,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser said.
        why: String,
    },
    /// JSON of somebody else.
    #[error("{path} has the schema {found}: expected \"wiregauge.record\"")]
    Foreign {
        /// The file.
        path: Shown,
        /// What it says it is.
        found: String,
    },
    /// A record of a later build.
    #[error(
        "{path} has version {found} of its schema and this build reads up to {known}; read it \
         with the wiregauge that wrote it or a newer one"
    )]
    Newer {
        /// The file.
        path: Shown,
        /// Its version.
        found: u64,
        /// What this build reads.
        known: u32,
    },
    /// A `samples.parquet` that is not as a run writes it.
    #[error("{path} is not a whole samples.parquet of wiregauge: {why}")]
    Samples {
        /// The file.
        path: Shown,
        /// What is wrong with it.
        why: String,
    },
}

impl RecordError {
    /// Whether a disk failed under a record that was being written: nothing was asked wrongly.
    pub fn is_of_the_disk(&self) -> bool {
        use RecordError::{Full, GivenUp, Unreadable, Write};
        matches!(self, Full { .. } | Write { .. } | GivenUp { .. } | Unreadable { .. })
    }

    /// What the system said while `path` was written, told as a full disk where it is one.
    pub(crate) fn writing(path: &Path, source: io::Error) -> RecordError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                RecordError::Full { path: path.into() }
            }
            _ => RecordError::Write { path: path.into(), source },
        }
    }

    /// A damaged or foreign `samples.parquet`.
    pub(crate) fn samples(path: &Path, why: impl Into<String>) -> RecordError {
        RecordError::Samples { path: path.into(), why: one_line(&why.into()) }
    }

    /// A parser's complaint, with its place apart from its words.
    pub(crate) fn json(path: &Path, error: &serde_json::Error) -> RecordError {
        let said = error.to_string();
        let why = said.rfind(" at line ").map_or(said.as_str(), |at| &said[..at]);
        RecordError::Json {
            path: path.into(),
            line: error.line(),
            column: error.column(),
            why: one_line(why),
        }
    }
}

/// Longest text from a file or a library that is repeated in a sentence: a terminal's few lines.
const QUOTE_LIMIT: usize = 300;

/// The text without line breaks or control characters, and no longer than [`QUOTE_LIMIT`].
pub(crate) fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(QUOTE_LIMIT).collect::<String>().trim_end().to_string()
}

/// A path as it is shown in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(pub PathBuf);

impl From<&Path> for Shown {
    fn from(path: &Path) -> Shown {
        Shown(path.to_path_buf())
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&one_line(&self.0.to_string_lossy()))
    }
}
