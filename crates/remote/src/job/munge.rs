//! Credentials of MUNGE, which only processes of the same user on the same Slurm cluster can open,
//! by its commands `munge` and `unmunge`.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use wiregauge_host::{
    child::{self, Exit},
    value_of,
};

/// Time limit of a command.
const LIMIT: Duration = Duration::from_secs(5);
/// Longest credential that is read: one of 64 B has some 400.
pub const LONGEST: u64 = 8192;

/// Makes a credential that only this user can open, once per host.
pub fn seal(text: &str) -> Result<String, String> {
    let own = rustix::process::geteuid().as_raw().to_string();
    let sealed = run("munge", &["--restrict-uid", &own], text)?;
    Ok(sealed.trim().to_string())
}

/// Opens a credential of this user.
pub fn open(credential: &str) -> Result<String, String> {
    read(&run("unmunge", &[], credential)?, rustix::process::geteuid().as_raw())
}

/// The text that `unmunge` printed: metadata, an empty line, then the text of this user.
pub fn read(opened: &str, own: u32) -> Result<String, String> {
    let (about, text) = opened.split_once("\n\n").ok_or("unmunge printed no payload")?;
    let of = |name: &str| value_of(about, name, ':').unwrap_or_default();
    let (status, user) = (of("STATUS"), of("UID"));
    ensure!(status.starts_with("Success"), "unmunge: {}", status.escape_default());
    let (is_own, user) = (user.ends_with(&format!("({own})")), user.escape_default());
    ensure!(is_own, "the credential belongs to another user ({user})");
    Ok(text.trim().to_string())
}

/// Runs a command that reads a text; returns its output.
fn run(program: &str, arguments: &[&str], text: &str) -> Result<String, String> {
    let run = || {
        let mut input = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
        input.write_all(text.as_bytes())?;
        input.rewind()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(input).stderr(Stdio::null());
        child::run(&mut command, LIMIT, || false)
    };
    let (exit, output) = run().map_err(|error| format!("running {program}: {error}"))?;
    match exit {
        Exit::Done(status) if status.success() => Ok(output),
        Exit::Done(status) => {
            Err(format!("{program} failed ({status}): munged must run on every node"))
        }
        Exit::Killed(_) => Err(format!("{program} took longer than {} s", LIMIT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: &str = "STATUS:           Success (0)\nENCODE_HOST:      vm (127.0.1.1)\n\
                          UID:              me (1000)\nGID:              me (1000)\n\
                          LENGTH:           4\n\nab12";

    #[test]
    fn only_this_user_s_own_credential_is_read() {
        assert_eq!(read(OPENED, 1000), Ok("ab12".into()));
        assert!(read(OPENED, 1001).unwrap_err().contains("another user (me (1000))"));
        assert!(read(OPENED, 0).is_err() && read(OPENED, 100).is_err());
        let replayed = OPENED.replace("Success (0)", "Replayed credential (17)");
        assert!(read(&replayed, 1000).unwrap_err().contains("Replayed"));
        assert!(read("", 1000).is_err());
    }
}
