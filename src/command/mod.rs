//! The commands, one file each. The last stage: it may use all others.

mod ab;
mod agent;
mod causes;
mod clocks;
mod compare;
mod console;
mod doctor;
mod explain;
mod files;
mod history;
mod hosts;
mod impact;
mod jobs;
mod judge;
pub mod library;
mod list;
mod live;
mod measure;
mod noise;
mod periods;
mod process;
pub mod program;
mod progress;
mod recover;
mod report;
mod run;
pub mod selftest;
mod testbed;

use crate::agent::serve;
use crate::cli::Command;
use crate::control::fault::Fault;
use crate::pattern::registry;
use crate::plan::UsageError;
use crate::plan::written::Misplaced;
use crate::record::RecordError;
use crate::remote::daemon::dial;
use crate::report::export::ExportError;
use crate::run::RunError;
pub use console::{complain, complain_of};
use jobs::Joined;

/// How the program ends: the code for whoever started it. Another code is that of a program that
/// was run for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    /// All was right.
    pub const RIGHT: Exit = Exit(0);
    /// A limit was exceeded, or the self-test failed.
    pub const EXCEEDED: Exit = Exit(1);
    /// Wrong use, or refused.
    pub const REFUSED: Exit = Exit(2);
    /// The run is incomplete.
    pub const INCOMPLETE: Exit = Exit(3);
    /// Nothing could run.
    pub const NOTHING: Exit = Exit(4);
    /// A limit is inconclusive: neither held nor exceeded.
    pub const INCONCLUSIVE: Exit = Exit(5);
}

/// Why a command ends before it has done its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Wrong use.
    #[error(transparent)]
    Refused(#[from] UsageError),
    /// A study or a reference, with the place in its file.
    #[error(transparent)]
    Misplaced(#[from] Box<Misplaced>),
    /// A run directory.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An export.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The machine cannot.
    #[error("{0}")]
    Unable(String),
    /// Writing to the terminal or a pipe.
    #[error("writing the output: {0}")]
    Output(#[from] std::io::Error),
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Fault(fault) => fault.into(),
            RunError::Record(error) => CommandError::Record(error),
        }
    }
}

impl From<Fault> for CommandError {
    fn from(fault: Fault) -> Self {
        match fault.is_refused() {
            true => CommandError::Refused(UsageError(fault.to_string())),
            false => CommandError::Unable(fault.to_string()),
        }
    }
}

impl CommandError {
    /// The exit code that fits.
    pub fn exit(&self) -> Exit {
        match self {
            CommandError::Record(RecordError::Disk { .. })
            | CommandError::Export(
                ExportError::Record(RecordError::Disk { .. }) | ExportError::Write { .. },
            )
            | CommandError::Output(_) => Exit::INCOMPLETE,
            CommandError::Unable(_) => Exit::NOTHING,
            _ => Exit::REFUSED,
        }
    }
}

/// Does what was asked.
pub fn run(mut command: Command) -> Result<Exit, CommandError> {
    // The other processes of a job exit when this is dropped.
    let Joined::Continue(_others) = jobs::join(&mut command)? else { return Ok(Exit::RIGHT) };
    match command {
        Command::Survey { cpus, seed, options } => measure::survey(cpus, seed, &options),
        Command::Measure { request, options } => measure::measure(*request, &options),
        Command::Run(asked) => run::run(&asked),
        Command::Clocks(asked) => clocks::clocks(&asked),
        Command::Hosts(asked) => hosts::hosts(*asked),
        Command::Noise { options, typed } => noise::noise(&typed.given, &options),
        Command::Doctor { hosts, typed, .. } => doctor::doctor(hosts, &typed.given),
        Command::List(typed) => list::list(&typed.given),
        Command::Report(typed) => report::report(&typed),
        Command::Recover(typed) => recover::recover(&typed),
        Command::Export(typed) => report::export(&typed),
        Command::Ab(asked) => ab::ab(&asked),
        Command::Explain(typed) => explain::explain(&typed),
        Command::Impact(typed) => impact::impact(&typed),
        Command::Compare { options, typed } => compare::compare(&options, &typed),
        Command::History(typed) => history::history(&typed),
        Command::Testbed(request) => testbed::machines(&request),
        Command::TestbedNet(request) => testbed::network(&request),
        Command::Selftest(typed) => selftest::selftest(&typed.given),
        Command::Text(text) => console::print(text),
        Command::Files { directory, files } => files::write(&directory, &files),
        Command::Agent(typed) => agent::agent(&typed.given),
        Command::Pair(host, port) => agent::pair(&host, port),
        // Standard output is the control channel: nothing else may write to it.
        Command::RunRole => std::process::exit(serve::main(registry::execution).into()),
        Command::Dial(host, port) => std::process::exit(dial::main(&host, port).into()),
    }
}
