//! Credentials of MUNGE, which only processes of the same user on the same Slurm cluster can open,
//! by its commands `munge` and `unmunge`.

use crate::host::child::{self, Exit};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// Metadata, an empty line, then the text.
fn read(opened: &str, own: u32) -> Result<String, String> {
    let (about, text) = opened.split_once("\n\n").ok_or("unmunge printed no payload")?;
    let of = |name: &str| {
        let line = about.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).unwrap_or_default().to_string()
    };
    let (status, user) = (of("STATUS"), of("UID"));
    if !status.starts_with("Success") {
        return Err(format!("unmunge: {}", status.escape_default()));
    }
    match user.ends_with(&format!("({own})")) {
        true => Ok(text.trim().to_string()),
        false => Err(format!("the credential belongs to another user ({})", user.escape_default())),
    }
}

/// Runs a command with an input; returns its output.
fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("running {program}: {error}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(wrong)?;
    if let Some(mut to) = child.stdin.take() {
        // A command that does not read its input fails by itself.
        let _ = to.write_all(input.as_bytes());
    }
    match child::wait(&mut child, LIMIT, || false).map_err(wrong)? {
        Exit::Done(status) if status.success() => child::output(&mut child).map_err(wrong),
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
