//! The command line. Nothing outside this folder knows the argument parser.
//!
//! Takes the arguments; gives a [`Command`] with validated parts, or a [`UsageError`].
//! Options are declared as tables: those of all patterns in `common_options`, those of a pattern
//! with the pattern, those of a transport with the transport, all others in `commands`.
//!
//! Must never: measure, write a file, or print.

mod ab;
mod command_def;
mod commands;
mod common_options;
mod complete;
mod definition;
mod display;
mod doctor;
pub mod entry;
mod explain;
mod impact;
mod manual;
mod peers;
mod place;
mod refuse;
mod screen;
mod study;
mod suggest;
mod tables;
mod testbed;
pub mod values;

pub use ab::words as ab_words;
pub use command_def::Typed;
pub use common_options::ALL as COMMON_OPTIONS;
pub use display::{Color, Display};
pub use doctor::words as doctor_words;
pub use impact::Congestor;
pub use suggest::near;

use crate::clock::Source;
use crate::host::Family;
use crate::options::UsageError;
use crate::plan::{CpuPair, HostSpec, Place, Request, Wait};
use crate::record::Baseline;
use crate::remote::job::rank::Rank;
use crate::stats::Limit;
use crate::transport::{Interfaces, TransportKind};
use crate::units::{InjectedClockError, Span};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How a run is made, whatever it measures, and where its output goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOptions {
    /// The timestamp clock; `None`: the best that the hosts have.
    pub clock: Option<Source>,
    /// The run directory; `None`: one under `wiregauge-runs/`.
    pub directory: Option<PathBuf>,
    /// Whether the record goes to stdout.
    pub json: bool,
    /// Whether a full-screen view shows the run in progress.
    pub live: bool,
    /// How often a line of a running round is printed.
    pub report_every: Option<Duration>,
    /// Whether the causes of slow messages are looked for.
    pub causes: bool,
    /// True if it may take longer than somebody is likely to wait.
    pub yes: bool,
    /// How it is judged.
    pub judge: JudgeOptions,
    /// How its tables look.
    pub display: Display,
    /// Which process of a job this is.
    pub rank: Option<Box<Rank>>,
}

/// How a run is judged, and where the verdicts go beside the terminal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgeOptions {
    /// The baseline that it is compared with.
    pub baseline: Option<Baseline>,
    /// The baseline that it becomes.
    pub save_as: Option<Baseline>,
    /// Limits, each with its text.
    pub limits: Vec<(String, Limit)>,
    /// Whether a limit that is inconclusive fails.
    pub strict: bool,
    /// A file for JUnit's XML.
    pub junit: Option<PathBuf>,
    /// A file to which Markdown is appended.
    pub markdown: Option<PathBuf>,
}

/// How a study is run.
#[derive(Debug)]
pub struct StudyOptions {
    /// A file, or the name of one that is shipped; `None`: list those.
    pub study: Option<String>,
    /// Only these series; empty: all.
    pub only: Vec<String>,
    /// Whether a look is enough.
    pub quick: bool,
    /// The transport in place of the study's.
    pub transport: Option<TransportKind>,
    /// The wait mode in place of the study's.
    pub wait: Option<Wait>,
    /// When a round has stalled, in place of the study's.
    pub timeout: Option<Span>,
    /// The rate in place of the study's, where a series has one.
    pub rate: Option<String>,
    /// The launcher of its MPI ranks.
    pub mpirun: Option<String>,
    /// Whether the study's commands may run.
    pub prepare: bool,
    /// The hosts of both ends.
    pub place: Place,
    /// Whose addresses tcp, udp and homa use.
    pub interface: Option<Interfaces>,
    /// The version of IP of those addresses.
    pub family: Option<Family>,
    /// CPUs of the roles.
    pub cpus: Vec<CpuPair>,
    /// The random seed.
    pub seed: u64,
    /// The rest.
    pub options: RunOptions,
}

/// How clocks are compared.
#[derive(Debug)]
pub struct ClockOptions {
    /// The other hosts.
    pub hosts: Vec<HostSpec>,
    /// How long.
    pub time: Span,
    /// Whose addresses are used.
    pub interface: Option<Interfaces>,
    /// The error that is injected into the remote clocks.
    pub injected_error: Option<InjectedClockError>,
    /// The rest.
    pub options: RunOptions,
}

/// Options of a check of other hosts.
#[derive(Debug)]
pub struct HostsOptions {
    /// The other hosts, some with an interface of their own.
    pub hosts: Vec<HostSpec>,
    /// The interfaces of this host and of the others.
    pub interfaces: Option<Interfaces>,
    /// The interface that this host has of its own.
    pub own_interface: Option<String>,
    /// Print JSON.
    pub json: bool,
    /// Which process of a job this is.
    pub rank: Option<Box<Rank>>,
}

/// What was asked for. The options of a command in [`Typed`] are checked, and read where they are
/// used.
#[derive(Debug)]
pub enum Command {
    /// Measure every transport.
    Survey {
        /// CPUs of the roles.
        cpus: Vec<CpuPair>,
        /// The random seed.
        seed: u64,
        /// The rest.
        options: RunOptions,
    },
    /// Measure what a request says.
    Measure {
        /// The request, not yet validated as a whole.
        request: Box<Request>,
        /// The rest.
        options: RunOptions,
    },
    /// Run a study, or list those that are shipped.
    Run(Box<StudyOptions>),
    /// Compare this host's clock with others.
    Clocks(Box<ClockOptions>),
    /// Check other hosts.
    Hosts(Box<HostsOptions>),
    /// Measure the noise of CPUs.
    Noise {
        /// Where its record goes.
        options: Box<RunOptions>,
        /// The rest.
        typed: Typed,
    },
    /// Examine this host, or others too.
    Doctor {
        /// The hosts, `None` being this one; empty: this one.
        hosts: Vec<Option<HostSpec>>,
        /// Which process of a job this is.
        rank: Option<Box<Rank>>,
        /// The rest.
        typed: Typed,
    },
    /// List the transports.
    List(Typed),
    /// Render records again.
    Report(Typed),
    /// Complete the record of a run that was killed or ran out of disk space.
    Recover(Typed),
    /// Write a run in another format.
    Export(Typed),
    /// Compare two settings in turns.
    Ab(Typed),
    /// Find out why messages take what they take.
    Explain(Typed),
    /// Measure alone and under congestion.
    Impact(Typed),
    /// Compare two runs.
    Compare {
        /// How the second is judged, and where that goes.
        options: RunOptions,
        /// The rest.
        typed: Typed,
    },
    /// Show records over time.
    History(Typed),
    /// Check the instrument.
    Selftest(Typed),
    /// Run a command in a machine of the testbed.
    Testbed(Box<crate::testbed::MachineRequest>),
    /// Run a command in a network of hosts.
    TestbedNet(Box<crate::testbed::net::NetworkRequest>),
    /// Texts that the definition gives, as files below a directory.
    Files { directory: PathBuf, files: Vec<(String, Vec<u8>)> },
    /// Text that the definition itself gives (help, version, completions, manual).
    Text(Vec<u8>),
    /// Run an agent daemon, or offer a pairing with one.
    Agent(Typed),
    /// Pair with one at this host and port.
    Pair(String, u16),
    /// Be the agent of one round.
    RunRole,
    /// Carry a control channel to an agent daemon at this host and port.
    Dial(String, u16),
}

/// Answers a shell that asks what can follow on a command line, and ends the program then.
pub fn complete() {
    complete::answer(|| definition::definition(true));
}

/// Reads the arguments, the program's name first.
pub fn parse(typed: &[OsString]) -> Result<Command, UsageError> {
    let mut definition = definition::definition(false);
    match definition.try_get_matches_from_mut(typed) {
        Ok(matches) => definition::read(&matches),
        Err(error) if refuse::is_short_help(&error, typed) => {
            let (command, names) = refuse::spoken(&definition, typed);
            Ok(Command::Text(definition::screen(&names, command).into_bytes()))
        }
        Err(error) if refuse::is_text(&error) => Ok(Command::Text(error.to_string().into_bytes())),
        Err(error) => {
            let mut whole = definition::definition(true);
            whole.build();
            Err(refuse::refusal(&whole, typed, &error))
        }
    }
}

#[cfg(test)]
mod tests;
