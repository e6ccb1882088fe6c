//! What a command prints: results to stdout, all else to stderr.

use super::{CommandError, Exit};
use crate::cli::{Color, Display};
use crate::plan::written::{escaped, escaped_json, shortened};
use crate::report::table::{Columns, Layout, Text};
use anstream::{AutoStream, ColorChoice};
use std::io::Write;

/// Longest complaint in characters: what it quotes may be long, and the rest is not needed.
const LONGEST: usize = 4000;

/// Reports on stderr what went wrong. If even that cannot be written, the exit code must do.
pub fn complain(what: &dyn std::fmt::Display) {
    let what = shortened(&escaped(&what.to_string()), LONGEST);
    let _ = writeln!(std::io::stderr(), "wiregauge: {what}");
}

/// Reports what went wrong and, where it is an error in a file, shows the place below.
pub fn complain_of(error: &CommandError) {
    complain(error);
    if let CommandError::Misplaced(misplaced) = error {
        let _ = write!(std::io::stderr(), "{}", misplaced.marked());
    }
}

/// Prints to stdout. A reader that has had enough (`| head`) is no error.
pub(super) fn print(text: impl AsRef<[u8]>) -> Result<Exit, CommandError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::RIGHT),
    }
}

/// Prints text that may quote a record or an agent.
pub(super) fn print_text(text: &str) -> Result<Exit, CommandError> {
    print(escaped(text))
}

/// Characters of a line of stdout, by the variable COLUMNS or the terminal that it is; `None`: it
/// is neither said nor a terminal.
fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || Some(terminal_size::terminal_size_of(std::io::stdout())?.0.0.into());
    said.filter(|width| *width > 0).or_else(terminal)
}

/// The layout of what a command prints to stdout.
pub(super) fn layout(display: &Display) -> Layout {
    display.layout(width())
}

/// The same for commands without a choice of columns: all of them, and all warnings.
pub(super) fn whole_layout() -> Layout {
    layout(&Display { columns: Columns::All, verbose: true, ..Display::default() })
}

/// Prints a text to stdout, in colours where these are wanted.
pub(super) fn print_report(text: &Text, color: Color) -> Result<Exit, CommandError> {
    let has_colors = match color {
        Color::Auto => AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
        Color::Always => true,
        Color::Never => false,
    };
    print(if has_colors { text.painted() } else { text.to_string() })
}

/// Prints a value as JSON, or the text that shows it.
pub(super) fn show<T: serde::Serialize + ?Sized>(
    json: bool,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<Exit, CommandError> {
    if json { print_json(value) } else { print_text(&text(value)) }
}

/// Prints a value as JSON on one line.
pub(super) fn print_json_line<T: serde::Serialize>(value: &T) -> Result<Exit, CommandError> {
    let text = serde_json::to_string(value).map_err(std::io::Error::from)?;
    print(escaped_json(text) + "\n")
}

/// Prints a value as JSON.
pub(super) fn print_json<T: serde::Serialize + ?Sized>(value: &T) -> Result<Exit, CommandError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    print(escaped_json(text) + "\n")
}
