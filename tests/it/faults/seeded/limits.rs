//! Limits of resources, at any value.

use super::{Fault, Makes, short_run};
use crate::support::controller::PublicCopy;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use wiregauge_test_support::bounded;

/// Options of prlimit(1) with the range of their values, which any user may set.
/// With fewer descriptors the dynamic loader finds no library.
const LIMITS: [(&str, f64, f64); 4] =
    [("nofile", 5.0, 400.0), ("stack", 64e3, 16e6), ("memlock", 1.0, 8e6), ("as", 100e6, 8e9)];
/// The limit of processes, which holds for nobody and not for root.
const MAX_PROCESSES: u64 = 40;
/// A user of no name, who has no other process.
const NOBODY: u32 = 64_999;

/// Draws a limit that holds for everybody.
fn drawn(fault: &mut Fault) -> String {
    let (name, from, to) = *fault.pick(&LIMITS);
    format!("--{name}={}", fault.log_uniform(from, to))
}

/// Returns the program as a user of another number, whose processes are limited.
fn as_nobody(fault: &mut Fault, program: &PublicCopy, words: &[&str]) -> Command {
    let processes = fault.log_uniform(1.0, MAX_PROCESSES as f64);
    let user = NOBODY.to_string();
    let limit = format!("--nproc={processes}");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "prlimit", &limit]);
    command.arg(&program.0).args(words).current_dir(&fault.scratch.0);
    fault.own(&mut command);
    fault.did(format!("{command:?}"));
    command
}

pub fn resources() -> Makes {
    let program = PublicCopy::new();
    Box::new(move |fault| {
        let line = short_run(fault);
        let words: Vec<&str> = line.split(' ').collect();
        let is_root = rustix::process::geteuid().is_root();
        let mut command = if is_root && fault.below(3) == 0 {
            for folder in ["", "tmp"] {
                let folder = fault.scratch.join(folder);
                fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
            }
            as_nobody(fault, &program, &words)
        } else {
            let limit = drawn(fault);
            fault.behind(&["prlimit", &limit], &words)
        };
        let output = bounded::output(&mut command);
        fault.ended(&output, &[0, 2, 3, 4], &[]);
        fault.left(&[]);
    })
}
