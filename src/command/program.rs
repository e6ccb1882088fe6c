//! The whole program: parse, run, say how it went.

use super::CommandError;
use crate::agent;
use crate::cli;
use crate::pattern::registry;
use crate::remote;
use std::ffi::OsString;
use std::process::ExitCode;

/// What `main` does, here and in a program that has added patterns of its own
/// ([`registry::add`]).
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let typed = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let asked = cli::parse(&words).map_err(CommandError::from);
    if let (Err(error), true) = (&asked, remote::job::is_silent()) {
        // All processes of a job refuse the same; its first says so.
        return ExitCode::from(error.exit().code());
    }
    let done = asked.and_then(|asked| {
        match asked {
            // Before all else: an agent's standard output is the control channel.
            cli::Command::Play => {
                std::process::exit(agent::serve::main(registry::FOR_AGENTS).into())
            }
            // The same of the way to a standing one.
            cli::Command::Dial { host, port } => {
                std::process::exit(remote::daemon::dial::main(&host, port).into())
            }
            asked => super::run(asked, typed),
        }
    });
    match done {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            super::complain_of(&error);
            ExitCode::from(error.exit().code())
        }
    }
}
