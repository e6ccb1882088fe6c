//! This process: its program's file, its words, and the user's wish to end it.

use super::CommandError;
use crate::cli::RunOptions;
use crate::host;
use crate::pattern::registry;
use crate::record::schema::Unavailable;
use crate::remote::host::RemoteHost;
use crate::remote::program::AgentProgram;
use crate::run::RunContext;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// This program.
pub fn program() -> Result<AgentProgram, CommandError> {
    AgentProgram::own()
        .map_err(|error| CommandError::Unable(format!("finding this program's file: {error}")))
}

/// What a run is given beside its plan.
pub fn context<'a>(
    options: &RunOptions,
    interrupted: &'a AtomicBool,
    hosts: &'a [RemoteHost],
    unavailable: Vec<Unavailable>,
) -> Result<RunContext<'a>, CommandError> {
    let words = std::env::args_os();
    Ok(RunContext {
        program: program()?,
        command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
        clock: options.clock,
        interrupted,
        hosts,
        unavailable,
        report_every: options.report_every,
        patterns: registry::analysis,
        sides: Default::default(),
        observer: None,
    })
}

/// What is set when the user wants the program to end: the same for all who ask.
pub fn interrupts() -> Result<Arc<AtomicBool>, CommandError> {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let interrupted = INTERRUPTED.get_or_init(Arc::default);
    // nohup(1) has a hang-up ignored, and means it.
    let hang_up = (!host::interrupt::is_ignored(SIGHUP)?).then_some(SIGHUP);
    for signal in [SIGINT, SIGQUIT, SIGTERM].into_iter().chain(hang_up) {
        // Once more does no harm: each only sets the flag.
        signal_hook::flag::register(signal, Arc::clone(interrupted))?;
    }
    Ok(Arc::clone(interrupted))
}
