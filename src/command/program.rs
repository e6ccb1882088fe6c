//! The whole program: parse, run, say how it went.

use super::CommandError;
use crate::cli;
use crate::host;
use crate::remote;
use std::ffi::OsString;
use std::process::ExitCode;

/// What `main` does, here and in a program that has added patterns of its own
/// ([`crate::pattern::registry::add`]).
pub fn main() -> ExitCode {
    cli::complete();
    host::interrupt::ignore_file_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    let command = cli::parse(&words).map_err(CommandError::from);
    if command.is_err() && remote::job::is_silent() {
        // All processes of a job refuse the same. Its first says so, and has the exit code: a
        // launcher would kill it before it has spoken if another failed first.
        return ExitCode::SUCCESS;
    }
    let exit = command.and_then(super::run).unwrap_or_else(|error| {
        super::complain_of(&error);
        error.exit()
    });
    ExitCode::from(exit.0)
}
