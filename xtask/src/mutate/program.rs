//! The program with the library's tests, in which one mutant is switched on.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::copy::{ASKED, SWITCH};

const LOOK: Duration = Duration::from_millis(5);
/// Address space of the program, in KiB: a loop that does not end may allocate.
const MEMORY_KIB: u32 = 8 << 20;

/// What came of some tests.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Passed,
    /// The first test that failed, or how the program ended.
    Failed(String),
    /// Ended by force.
    Late,
}

pub struct Program {
    pub path: PathBuf,
    /// Where the tests find their files.
    pub copy: PathBuf,
}

impl Program {
    /// The names of all tests that are not ignored.
    pub fn tests(&self) -> Result<Vec<String>, String> {
        let output = Command::new(&self.path).arg("--list").current_dir(&self.copy).output();
        let output = output.map_err(|error| format!("{}: {error}", self.path.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(said.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Runs tests without a mutant, and returns the mutants whose places they reached.
    pub fn reached(&self, test: &str, limit: Duration) -> Result<(Outcome, Vec<usize>), String> {
        let notes = self.beside("asked");
        let _ = fs::remove_file(&notes);
        let outcome = self.run(&["--exact", test], (ASKED, notes.as_os_str()), limit)?;
        let asked = fs::read_to_string(&notes).unwrap_or_default();
        Ok((outcome, asked.lines().filter_map(|line| line.parse().ok()).collect()))
    }

    /// Runs tests, named as the program's arguments name them, with a mutant.
    pub fn try_mutant(
        &self,
        number: usize,
        tests: &[&str],
        limit: Duration,
    ) -> Result<Outcome, String> {
        self.run(tests, (SWITCH, number.to_string().as_ref()), limit)
    }

    fn beside(&self, what: &str) -> PathBuf {
        self.copy.with_extension(what)
    }

    fn run(
        &self,
        tests: &[&str],
        set: (&str, &std::ffi::OsStr),
        limit: Duration,
    ) -> Result<Outcome, String> {
        let said = self.beside("said");
        let file = File::create(&said).map_err(|error| format!("{}: {error}", said.display()))?;
        let mut command = Command::new("sh");
        let bounded = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
        command.arg("-c").arg(bounded).arg(&self.path).args(["--test-threads", "1"]).args(tests);
        command.current_dir(&self.copy).env(set.0, set.1).process_group(0);
        command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("sh: {error}"))?;
        let deadline = Instant::now() + limit;
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(Outcome::Passed),
                Some(status) => {
                    let said = fs::read_to_string(&said).unwrap_or_default();
                    let failed = first_failure(&said).map_or(status.to_string(), str::to_owned);
                    return Ok(Outcome::Failed(failed));
                }
                None if Instant::now() > deadline => {
                    // With what the tests have started.
                    let group = format!("-{}", child.id());
                    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                    let _ = child.wait();
                    return Ok(Outcome::Late);
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

fn first_failure(said: &str) -> Option<&str> {
    let failed = said.lines().find_map(|line| line.strip_suffix(" ... FAILED"))?;
    failed.strip_prefix("test ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_that_failed_is_named() {
        let said = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d ... FAILED\n";
        assert_eq!(first_failure(said), Some("a::c"));
        assert_eq!(first_failure("running 1 test\ntest a ... ok\n"), None);
    }
}
