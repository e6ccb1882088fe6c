//! Why a testbed cannot be made, or its command cannot run.

use std::path::{Path, PathBuf};

/// Why there is no exit code of the command.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// Programs that this host lacks.
    #[error(
        "the testbed needs {}; install it with: apt-get install {}",
        .programs.join(", "), .packages.join(" ")
    )]
    Missing {
        /// What was looked for.
        programs: Vec<&'static str>,
        /// Debian's packages that have it.
        packages: Vec<&'static str>,
    },
    /// A file or a system call.
    #[error("{doing} {}: {error}", .path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A program that did not do its work.
    #[error("{program} failed: {said}")]
    Tool {
        /// Which, with its arguments.
        program: String,
        /// What it said.
        said: String,
    },
    /// The machine ended, or could not be made ready.
    #[error("the testbed's machine {number} {what}")]
    Machine {
        /// Which.
        number: usize,
        /// What happened, with the last words of its console.
        what: String,
    },
    /// This host is of another kind.
    #[error("{0}")]
    Unable(String),
}

/// What has to do with a file.
pub(super) fn file(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> TestbedError {
    let path = path.to_path_buf();
    move |error| TestbedError::File { doing, path, error }
}
