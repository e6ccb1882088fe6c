//! What was typed: from arguments to a [`Command`] that can be carried out, or to what is said
//! instead.
//!
//! Takes the arguments of the process; gives validated values of the other stages. Nothing
//! outside this module knows the argument parser.
//!
//! Must never: measure, or write a file.

mod args;
mod checked;
mod refuse;
mod values;

use crate::clock::Source;
use crate::host::CpuPair;
use crate::plan::Plan;
use crate::stats::limit::Limit;
use crate::units::Span;
use clap::FromArgMatches;
use std::ffi::OsString;
use std::path::PathBuf;

/// What is to be done.
#[derive(Debug)]
pub enum Command {
    /// No command: what every transport that works here gives.
    Survey(Survey),
    /// `latency`, `oneway`, `bandwidth`: a plan that can be run as it stands.
    Measure(Measure),
    /// `list`: transports, patterns, capabilities.
    List {
        /// As JSON instead of a table.
        json: bool,
    },
    /// `report`: tables and HTML again from records alone.
    Report {
        /// Run directories, one or more; each is a directory.
        directories: Vec<PathBuf>,
    },
    /// `export`: the samples in another format.
    Export(Export),
    /// `compare`: the difference of two runs.
    Compare(Compare),
    /// `selftest`: known answers.
    Selftest {
        /// As JSON instead of a table.
        json: bool,
    },
    /// `noise`: gaps seen by a spinning core.
    Noise(Noise),
    /// The process is an agent of a driver on this host.
    Agent,
}

/// Where the results go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The run directory; `None`: a new one in `wiregauge-runs`.
    pub directory: Option<PathBuf>,
    /// The record goes to stdout, and nothing else does.
    pub json: bool,
}

/// A survey: its plan is made by [`crate::plan::survey::plan`] once it is known what works here.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Where the results go.
    pub output: Output,
    /// The CPUs of the two roles, checked; `None`: chosen at launch.
    pub cpus: Option<CpuPair>,
    /// The clock; `None`: the best that the host has.
    pub clock: Option<Source>,
    /// Seed of all that is drawn.
    pub seed: u64,
}

/// A measurement that was asked for in full.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What to measure.
    pub plan: Plan,
    /// The clock; `None`: the best that the host has.
    pub clock: Option<Source>,
    /// Where the results go.
    pub output: Output,
}

/// What an export is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A row a message, the header names the units.
    Csv,
    /// One object: the record and its samples.
    Json,
    /// The columns of `samples.parquet`.
    Parquet,
}

impl Format {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Format; 3] = [Format::Csv, Format::Json, Format::Parquet];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Parquet => "parquet",
        }
    }
}

/// An export of one run directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The run directory.
    pub directory: PathBuf,
    /// What it is written as.
    pub format: Format,
    /// The new file; `None`: stdout.
    pub file: Option<PathBuf>,
    /// Numbers of the runs; all where empty.
    pub runs: Vec<u32>,
    /// Whether the warm-up is left out.
    pub without_warmup: bool,
}

/// A comparison of two run directories.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The run directory that is compared with.
    pub a: PathBuf,
    /// The run directory that is judged.
    pub b: PathBuf,
    /// Exit code 1 where one of these is exceeded.
    pub limits: Vec<Limit>,
    /// As JSON instead of a table.
    pub json: bool,
}

/// An observation of CPUs without any transport.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// The CPUs, at the same time; `None`: all that the process may use.
    pub cpus: Option<Vec<u32>>,
    /// How long.
    pub time: Span,
    /// The clock; `None`: the best that the host has.
    pub clock: Option<Source>,
    /// As JSON instead of a table.
    pub json: bool,
}

/// What is said instead of doing something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// What was asked for is a text: help, version, completions, man page. To stdout, exit code 0.
    Text(String),
    /// One sentence that names what was wrong and what is allowed. To stderr, exit code 2.
    Refusal(String),
}

/// Exit code: nothing was wrong.
pub const RIGHT: u8 = 0;
/// Exit code: a limit was exceeded.
pub const EXCEEDED: u8 = 1;
/// Exit code: wrong use, or refused.
pub const REFUSED: u8 = 2;
/// Exit code: the run is not complete.
pub const INCOMPLETE: u8 = 3;
/// Exit code: nothing could run.
pub const NOTHING_RAN: u8 = 4;

impl Exit {
    /// Prints it where it belongs and gives the exit code.
    pub fn say(&self) -> u8 {
        use std::io::Write;
        // A reader that has gone away (`| head`) wants no more and no complaint.
        match self {
            Exit::Text(text) => {
                let _ = std::io::stdout().lock().write_all(text.as_bytes());
                RIGHT
            }
            Exit::Refusal(sentence) => {
                let _ = writeln!(std::io::stderr().lock(), "wiregauge: {sentence}");
                REFUSED
            }
        }
    }
}

/// Understands the arguments of the process, the program's name first.
pub fn parse<I>(arguments: I) -> Result<Command, Exit>
where
    I: IntoIterator<Item = OsString>,
{
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut definition = args::definition();
    let parsed = definition
        .try_get_matches_from_mut(&arguments)
        .and_then(|mut matches| args::Arguments::from_arg_matches_mut(&mut matches));
    match parsed {
        Ok(arguments) => checked::command(arguments),
        Err(error) => Err(refuse::exit(&definition, &arguments, &error)),
    }
}

#[cfg(test)]
mod tests;
