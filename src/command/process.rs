//! This process: its program's file, and the user's wish to end it.

use super::CommandError;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// This program's file.
pub fn program() -> Result<PathBuf, CommandError> {
    std::env::current_exe()
        .map_err(|error| CommandError::Unable(format!("finding this program's file: {error}")))
}

/// What is set when the user wants the program to end: the same for all who ask.
pub fn interrupts() -> Result<Arc<AtomicBool>, CommandError> {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(known) = INTERRUPTED.get() {
        return Ok(Arc::clone(known));
    }
    let interrupted = Arc::clone(INTERRUPTED.get_or_init(Arc::default));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}
