//! The program that is started as an agent, and a check that those that answer are that one.

use crate::locked;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::program::{ProgramIdentity, RUNNING};

/// A program that can be an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentProgram {
    /// The one that runs in this process; its path, which launchers need.
    Own(PathBuf),
    /// Another file.
    Other(PathBuf),
}

impl AgentProgram {
    /// Finds the program of this process.
    ///
    /// # Errors
    /// The kernel does not say which file it is.
    pub fn own() -> io::Result<AgentProgram> {
        std::env::current_exe().map(AgentProgram::Own)
    }

    /// Returns its path. What stands there may be another file by now.
    pub fn path(&self) -> &Path {
        let (AgentProgram::Own(path) | AgentProgram::Other(path)) = self;
        path
    }

    /// Returns the file to read it from.
    pub fn file(&self) -> &Path {
        match self {
            AgentProgram::Own(_) => Path::new(RUNNING),
            AgentProgram::Other(path) => path,
        }
    }

    /// Builds the command that starts it. This process's program is started by the file that runs,
    /// whatever its path names by now.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.file());
        command.arg0(self.path());
        command
    }

    /// Returns true if an agent that [`AgentProgram::command`] starts is this very program.
    pub fn is_own(&self) -> bool {
        matches!(self, AgentProgram::Own(_))
    }
}

/// Returns the identity of this process's program, read once.
///
/// # Errors
/// The file cannot be read.
pub fn identity() -> Result<&'static ProgramIdentity, Fault> {
    static OWN: OnceLock<Result<ProgramIdentity, String>> = OnceLock::new();
    OWN.get_or_init(|| {
        ProgramIdentity::own().map_err(|error| format!("reading the file of this program: {error}"))
    })
    .as_ref()
    .map_err(|why| Fault::new(why.clone()))
}

/// The programs that agents have said to be, by the file that was started: another one in mid run
/// is refused.
#[derive(Debug, Default)]
pub struct Programs(Mutex<BTreeMap<PathBuf, ProgramIdentity>>);

impl Programs {
    /// Checks what an agent on this host has said, which was started by a path.
    ///
    /// # Errors
    /// It is another program than this one, or than the file was before.
    pub fn check(&self, program: &AgentProgram, told: &ProgramIdentity) -> Result<(), Fault> {
        let mut known = locked(&self.0);
        let first = match program {
            AgentProgram::Own(_) => identity()?.clone(),
            AgentProgram::Other(path) => known.entry(path.clone()).or_insert(told.clone()).clone(),
        };
        ensure!(
            first.fits(told),
            Fault::new(format!(
                "{} is another program than when the run began (SHA-256 {} instead of {}): do not \
                 replace it while it measures",
                program.path().display(),
                told.short(),
                first.short()
            ))
        );
        Ok(())
    }

    /// Returns the program that a file was.
    pub fn identity_of(&self, path: &Path) -> Option<ProgramIdentity> {
        locked(&self.0).get(path).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity_by(digit: &str) -> ProgramIdentity {
        let architecture = std::env::consts::ARCH.into();
        ProgramIdentity { sha256: digit.repeat(64), architecture }
    }

    #[test]
    fn a_file_that_becomes_another_program_is_refused() {
        let programs = Programs::default();
        let b = AgentProgram::Other("/opt/b".into());
        assert!(
            programs.check(&b, &identity_by("1")).is_ok()
                && programs.check(&b, &identity_by("1")).is_ok()
        );
        let refused = programs.check(&b, &identity_by("2")).unwrap_err().to_string();
        assert!(refused.contains("/opt/b") && refused.contains("222222222222"), "{refused}");
        assert_eq!(programs.identity_of(Path::new("/opt/b")), Some(identity_by("1")));
        let own = AgentProgram::own().unwrap();
        assert!(programs.check(&own, identity().unwrap()).is_ok());
        assert!(programs.check(&own, &identity_by("1")).is_err());
    }
}
