//! The program, run to its end in a folder.

use std::path::Path;
use std::process::Command;
use wiregauge_test_support::bounded::output;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_wiregauge");

/// What a command printed, and its exit code.
#[derive(Debug)]
pub struct Printed {
    /// `None`: ended by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program in `folder`. Its output must be UTF-8.
pub fn wiregauge(folder: &Path, arguments: &[&str]) -> Printed {
    let ended = output(Command::new(PROGRAM).args(arguments).current_dir(folder));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(ended.stdout), text(ended.stderr));
    Printed { code: ended.status.code(), stdout, stderr }
}
