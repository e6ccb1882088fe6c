//! How agents are started on another host: by the system's ssh, whose standard input and output are
//! the control channel. The remote agent takes no options, and nothing listens there. For a host
//! with a daemon, a process of this program takes ssh's place ([`crate::remote::daemon::dial`]).
//!
//! Configuration, jump hosts and keys are left to ssh. It must not ask (`BatchMode`) or allocate a
//! terminal, so that every failure is an error message.

use crate::agent::serve::RUN_ROLE;
use crate::control::fault::Fault;
use crate::control::protocol::SECRET_VARIABLE;
use crate::control::secret;
use crate::host::child::{self, Exit};
use crate::plan::HostSpec;
use crate::plan::host_spec::{JobKey, quoted};
use crate::remote::daemon::dial::{DIAL, KEY_VARIABLE};
use crate::remote::stderr::Tail;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time limit from ssh's start to the agent's greeting, with name resolution, keys and jump hosts.
pub const GREETING: Duration = Duration::from_secs(30);
/// Interval between two checks for an interrupt by the user.
pub(crate) const CHECK: Duration = Duration::from_millis(50);
/// Exit codes of ssh itself, and of a shell for a command that is missing or not executable.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;
const NOT_EXECUTED: i32 = 126;
/// Exit code of `dial` where the daemon rejects this host.
const DIAL_REFUSED: i32 = 2;

/// How agents are started on a host.
#[derive(Clone, Debug)]
pub struct Session {
    host: String,
    route: Route,
}

/// What carries the control channel.
#[derive(Clone, Debug)]
enum Route {
    /// Pipes to this program on this host.
    Local { program: PathBuf },
    /// ssh with its arguments; the agent's command is for the remote shell.
    Ssh { ssh: Vec<String>, agent: String },
    /// This program, connected to the daemon at this host and port.
    Daemon { program: PathBuf, at: String, key: Option<JobKey> },
}

impl Session {
    /// On this host, by this program.
    pub fn local(program: &Path) -> Session {
        Session { host: String::new(), route: Route::Local { program: program.into() } }
    }

    pub(super) fn new(spec: &HostSpec, program: &Path) -> Session {
        let route = match spec.agent.clone() {
            Some(at) => Route::Daemon { program: program.into(), at, key: spec.key },
            None => {
                let binary = spec.binary.as_deref().map_or("wiregauge".into(), quoted);
                Route::Ssh { ssh: spec.ssh.clone(), agent: format!("{binary} {RUN_ROLE}") }
            }
        };
        Session { host: spec.host.clone(), route }
    }

    /// Uses this file as the remote program, if ssh starts agents.
    pub(super) fn start_from(&mut self, file: &str) {
        if let Route::Ssh { agent, .. } = &mut self.route {
            *agent = format!("{} {RUN_ROLE}", quoted(file));
        }
    }

    /// The host as it was named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The command that starts an agent. One on this host learns the secret by its environment.
    pub(crate) fn agent(&self, known: &[u8; 32]) -> Command {
        let mut command = match &self.route {
            Route::Local { program } => {
                let mut command = Command::new(program);
                command.arg(RUN_ROLE).env(SECRET_VARIABLE, secret::to_hex(known));
                return command;
            }
            Route::Ssh { ssh, agent } => self.run(ssh, agent),
            Route::Daemon { program, at, key } => {
                let mut dial = Command::new(program);
                dial.args([DIAL, at]).env_remove(KEY_VARIABLE);
                dial.envs(key.map(|JobKey(key)| (KEY_VARIABLE, secret::to_hex(key))));
                dial
            }
        };
        command.stderr(Stdio::piped());
        command
    }

    /// Runs a remote command. A host name that begins with a dash was refused before.
    fn run(&self, ssh: &[String], command: &str) -> Command {
        let (program, arguments) = ssh.split_first().map_or(("ssh", &[][..]), |(p, a)| (p, a));
        let mut ssh = Command::new(program);
        ssh.args(arguments).args(["-T", "-o", "BatchMode=yes", &self.host, command]);
        ssh
    }

    /// What carries the control channel, for messages.
    pub(crate) fn carrier(&self) -> &'static str {
        match self.route {
            Route::Ssh { .. } => "ssh",
            _ => "the connection",
        }
    }

    /// Runs a remote command to its end and returns its output.
    pub(super) fn output(
        &self,
        command: &str,
        input: Stdio,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<String, Fault> {
        let what = |error: std::io::Error| Fault::new(format!("ssh to {}: {error}", self.host));
        let Route::Ssh { ssh, .. } = &self.route else {
            return Err(Fault::new("an agent daemon runs no other commands"));
        };
        let mut child = self
            .run(ssh, command)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(what)?;
        let errors = child.stderr.take().map(Tail::of);
        let is_interrupted = || interrupted.load(Ordering::Relaxed);
        let status = match child::wait(&mut child, limit, is_interrupted).map_err(what)? {
            Exit::Done(status) => status,
            Exit::Killed(_) if is_interrupted() => return Err(Fault::Interrupted),
            Exit::Killed(_) => return Err(self.late(limit)),
        };
        if !status.success() {
            return Err(self.failed(Some(status), errors.and_then(|errors| errors.last_line())));
        }
        child::output(&mut child).map_err(what)
    }

    pub(super) fn late(&self, limit: Duration) -> Fault {
        let (carrier, seconds) = (self.carrier(), limit.as_secs());
        Fault::new(format!("{} did not answer over {carrier} within {seconds} s", self.host))
    }

    /// Why a remote command failed.
    pub(super) fn failed(&self, status: Option<ExitStatus>, line: Option<String>) -> Fault {
        let host = &self.host;
        if let Route::Daemon { .. } = self.route {
            // The dialling process has explained it.
            let nothing = || format!("the agent daemon on {host} closed the connection");
            let wrong_use = status.and_then(|status| status.code()) == Some(DIAL_REFUSED);
            return Fault::of_agent(wrong_use, line.unwrap_or_else(nothing));
        }
        let said = line.map(|line| format!(" ({line})")).unwrap_or_default();
        Fault::new(match status.and_then(|status| status.code()) {
            Some(SSH_FAILED) => format!("ssh to {host} failed{said}"),
            Some(NOT_FOUND) => format!(
                "wiregauge not found on {host}{said}: give its path with --remote-binary, or copy \
                 it with --push"
            ),
            Some(NOT_EXECUTED) => format!(
                "cannot execute wiregauge on {host}{said}: give another path with --remote-binary"
            ),
            Some(code) => format!("the command on {host} exited with code {code}{said}"),
            None => format!("ssh to {host} was killed{said}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(binary: Option<&str>) -> HostSpec {
        let ssh = ["ssh", "-F", "a b"].map(String::from).to_vec();
        let binary = binary.map(String::from);
        HostSpec { host: "node07".into(), ssh, binary, ..HostSpec::default() }
    }

    #[test]
    fn ssh_is_told_its_own_arguments_not_to_ask_and_the_agent() {
        let command = Session::new(&spec(Some("/opt/it's")), Path::new("")).agent(&[0; 32]);
        let arguments: Vec<&str> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(command.get_program(), "ssh");
        let asked =
            ["-F", "a b", "-T", "-o", "BatchMode=yes", "node07", r"'/opt/it'\''s' run-role"];
        assert_eq!(arguments, asked);
        let plain = Session::new(&spec(None), Path::new("")).agent(&[0; 32]);
        assert_eq!(plain.get_args().last().unwrap(), "wiregauge run-role");
    }
}
