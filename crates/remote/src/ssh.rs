//! How agents are started on another host: by the system's ssh, whose standard input and output are
//! the control channel. The remote agent takes no options, and nothing listens there. For a host
//! with a daemon, a process of this program takes ssh's place ([`crate::daemon::dial`]).
//!
//! Configuration, jump hosts and keys are left to ssh. It must not ask (`BatchMode`) or allocate a
//! terminal, so that every failure is an error message.

use crate::daemon::dial::{DIAL, KEY_VARIABLE};
use crate::program::AgentProgram;
use crate::stderr::Tail;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wiregauge_host::child::{self, Exit};
use wiregauge_measure::agent::serve::RUN_ROLE;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::protocol::SECRET_VARIABLE;
use wiregauge_measure::control::secret;
use wiregauge_plan::HostSpec;
use wiregauge_plan::host_spec::{JobKey, quoted};

/// Time limit from ssh's start to the agent's greeting, with name resolution, keys and jump hosts.
pub const GREETING: Duration = Duration::from_secs(30);
/// Interval between two checks for an interrupt by the user.
pub const CHECK: Duration = Duration::from_millis(50);
/// Exit codes of ssh itself, and of a shell for a command that is missing or not executable.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;
const NOT_EXECUTED: i32 = 126;
/// Exit code of `dial` where the daemon rejects this host.
const DIAL_REFUSED: i32 = 2;

/// How agents are started on a host.
#[derive(Clone, Debug)]
pub struct Session {
    /// The host; `None`: this one.
    spec: Option<HostSpec>,
    /// This program: an agent on this host, or what connects to a daemon.
    program: AgentProgram,
}

impl Session {
    /// On that host, or on this one.
    pub fn new(spec: Option<HostSpec>, program: &AgentProgram) -> Session {
        Session { spec, program: program.clone() }
    }

    /// Returns true if an agent is started by a path, which may name another program than this one.
    pub(super) fn starts_by_path(&self) -> bool {
        self.spec.is_some() || !self.program.is_own()
    }

    /// Uses this file as the remote program, if ssh starts agents.
    pub(super) fn start_from(&mut self, file: String) {
        if let Some(spec) = &mut self.spec {
            spec.binary = Some(file);
        }
    }

    /// The host as it was named.
    pub fn host(&self) -> &str {
        self.spec.as_ref().map_or("this host", |spec| &spec.host)
    }

    /// The command that starts an agent. One on this host learns the secret by its environment.
    pub fn agent(&self, known: &[u8; 32]) -> Command {
        let mut command = self.program.command();
        match &self.spec {
            None => {
                command.arg(RUN_ROLE).env(SECRET_VARIABLE, secret::to_hex(known));
                return command;
            }
            Some(HostSpec { agent: Some(at), key, .. }) => {
                command.args([DIAL, at]).env_remove(KEY_VARIABLE);
                command.envs(key.map(|JobKey(key)| (KEY_VARIABLE, secret::to_hex(key))));
            }
            Some(spec) => {
                let binary = spec.binary.as_deref().map_or("wiregauge".into(), quoted);
                command = run(spec, &format!("{binary} {RUN_ROLE}"));
            }
        }
        command.stderr(Stdio::piped());
        command
    }

    /// The host, if ssh starts its agents.
    fn by_ssh(&self) -> Option<&HostSpec> {
        self.spec.as_ref().filter(|spec| spec.agent.is_none())
    }

    /// Whether it is a rank of the job that this process is one of, too.
    pub fn is_rank_of_job(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.key.is_some())
    }

    /// What carries the control channel, for messages.
    pub fn carrier(&self) -> &'static str {
        if self.by_ssh().is_some() { "ssh" } else { "the connection" }
    }

    /// Runs a remote command to its end and returns its output.
    pub(super) fn output(
        &self,
        command: &str,
        input: Stdio,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<String, Fault> {
        let what = |error: io::Error| Fault::new(format!("ssh to {}: {error}", self.host()));
        let spec = self.by_ssh().ok_or("an agent daemon runs no other commands")?;
        let (mut from, is_interrupted) =
            (run(spec, command), || interrupted.load(Ordering::Relaxed));
        let (errors, to) = io::pipe().map_err(what)?;
        from.stdin(input).stderr(to).process_group(0);
        let errors = Tail::of(errors).map_err(what)?;
        let (exit, output) = child::run(&mut from, limit, is_interrupted).map_err(what)?;
        drop(from);
        match exit {
            Exit::Done(status) if status.success() => Ok(output),
            Exit::Done(status) => Err(self.failed(Some(status), errors.last_line())),
            Exit::Killed(_) if is_interrupted() => Err(Fault::Interrupted),
            Exit::Killed(_) => Err(self.late(limit)),
        }
    }

    pub(super) fn late(&self, limit: Duration) -> Fault {
        let (carrier, seconds) = (self.carrier(), limit.as_secs());
        Fault::new(format!("{} did not answer over {carrier} within {seconds} s", self.host()))
    }

    /// Why a remote command failed.
    pub(super) fn failed(&self, status: Option<ExitStatus>, line: Option<String>) -> Fault {
        let host = self.host();
        if self.by_ssh().is_none() {
            // The dialling process has explained it.
            let who = if self.is_rank_of_job() { "" } else { "the agent daemon on " };
            let nothing = || format!("{who}{host} closed the connection");
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

/// A remote command by ssh. A host name that begins with a dash was refused before.
fn run(spec: &HostSpec, command: &str) -> Command {
    let (program, arguments) = spec.ssh.split_first().map_or(("ssh", &[][..]), |(p, a)| (p, a));
    let mut ssh = Command::new(program);
    ssh.args(arguments).args(["-T", "-o", "BatchMode=yes", &spec.host, command]);
    ssh
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(binary: Option<&str>) -> Option<HostSpec> {
        let ssh = ["ssh", "-F", "a b"].map(String::from).to_vec();
        let binary = binary.map(String::from);
        Some(HostSpec { host: "node07".into(), ssh, binary, ..HostSpec::default() })
    }

    #[test]
    fn ssh_is_told_its_own_arguments_not_to_ask_and_the_agent() {
        let command =
            Session::new(spec(Some("/opt/it's")), &AgentProgram::Other("".into())).agent(&[0; 32]);
        let arguments: Vec<&str> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(command.get_program(), "ssh");
        let asked =
            ["-F", "a b", "-T", "-o", "BatchMode=yes", "node07", r"'/opt/it'\''s' run-role"];
        assert_eq!(arguments, asked);
        let plain = Session::new(spec(None), &AgentProgram::Other("".into())).agent(&[0; 32]);
        assert_eq!(plain.get_args().last().unwrap(), "wiregauge run-role");
    }
}
