//! What a command prints: results to stdout, all else to stderr.

use super::{CommandError, Exit};
use std::io::Write;

/// Says on stderr what went wrong. Where even that cannot be written, the exit code has to do.
pub fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "wiregauge: {what}");
}

/// Says what went wrong and, where that stands in a file, shows the place below it.
pub fn complain_of(error: &CommandError) {
    complain(error);
    if let CommandError::Misplaced(misplaced) = error {
        let _ = write!(std::io::stderr(), "{}", misplaced.marked());
    }
}

/// Prints to stdout. A reader that has had enough (`| head`) is no error.
pub(super) fn print(text: &[u8]) -> Result<Exit, CommandError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Right),
    }
}

/// Prints a value as JSON.
pub(super) fn print_json<T: serde::Serialize>(value: &T) -> Result<Exit, CommandError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(std::io::Error::from)?;
    text.push(b'\n');
    print(&text)
}
