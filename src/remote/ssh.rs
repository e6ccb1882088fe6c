//! The other host: its agent is started by the system's ssh, whose standard input and output are
//! the control channel. Nothing listens there for control, and the far side takes no options.
//! Where an agent stands, a process of this program takes ssh's place
//! ([`crate::remote::daemon::dial`]).
//!
//! The user's configuration, jump hosts and keys are ssh's own business. It is only told not to ask
//! (`BatchMode`) and to make no terminal, so that what fails, fails in a sentence.

use crate::agent::serve::PLAY;
use crate::control::fault::Fault;
use crate::control::secret;
use crate::plan::HostSpec;
use crate::plan::host_spec::{JobKey, quoted};
use crate::remote::daemon::dial::{DIAL, KEY_VARIABLE};
use crate::remote::stderr::Tail;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long ssh may take until the agent greets: a name is looked up, keys are tried, jump hosts
/// are passed.
pub const GREETING: Duration = Duration::from_secs(30);
/// Between two looks at whether the user wants to end.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// Most that is read of what a command there prints: the path of a folder.
const LONGEST_PATH: u64 = 4096;
/// Exit codes of ssh itself, and of a shell that finds no command or cannot execute it.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;
const NOT_EXECUTED: i32 = 126;
/// The exit code of the way to an agent that does not let this host in.
const DIAL_REFUSED: i32 = 2;

/// How agents are started on another host.
#[derive(Clone, Debug)]
pub struct Session {
    host: String,
    way: Way,
}

/// How its control channel gets there.
#[derive(Clone, Debug)]
enum Way {
    /// By ssh with its own arguments; the agent's command is for the shell there.
    Ssh { ssh: Vec<String>, agent: String },
    /// By this program, to the agent that stands at this host and port.
    Standing { program: PathBuf, at: String, key: Option<JobKey> },
}

impl Session {
    pub(super) fn new(spec: &HostSpec, program: &Path) -> Session {
        let way = match spec.agent.clone() {
            Some(at) => Way::Standing { program: program.into(), at, key: spec.key },
            None => {
                let binary = spec.binary.as_deref().map_or("wiregauge".into(), quoted);
                Way::Ssh { ssh: spec.ssh.clone(), agent: format!("{binary} {PLAY}") }
            }
        };
        Session { host: spec.host.clone(), way }
    }

    /// Has agents started from this file, where ssh starts them.
    pub(super) fn start_from(&mut self, file: &str) {
        if let Way::Ssh { agent, .. } = &mut self.way {
            *agent = format!("{} {PLAY}", quoted(file));
        }
    }

    /// The host as it was named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// An agent there.
    pub(crate) fn agent(&self) -> Command {
        match &self.way {
            Way::Ssh { ssh, agent } => self.run(ssh, agent),
            Way::Standing { program, at, key } => {
                let mut dial = Command::new(program);
                dial.args([DIAL, at]).env_remove(KEY_VARIABLE);
                if let Some(JobKey(key)) = key {
                    dial.env(KEY_VARIABLE, secret::to_hex(key));
                }
                dial
            }
        }
    }

    /// A command there. A host's name never begins with a dash: it was refused when it was typed.
    fn run(&self, ssh: &[String], command: &str) -> Command {
        let (program, arguments) = ssh.split_first().map_or(("ssh", &[][..]), |(p, a)| (p, a));
        let mut ssh = Command::new(program);
        ssh.args(arguments).args(["-T", "-o", "BatchMode=yes", &self.host, command]);
        ssh
    }

    /// What carries the control channel, for sentences.
    pub(crate) fn carrier(&self) -> &'static str {
        match self.way {
            Way::Ssh { .. } => "ssh",
            Way::Standing { .. } => "the connection",
        }
    }

    /// Runs a command there to its end; what it printed, or why it failed.
    pub(super) fn output(
        &self,
        command: &str,
        input: Stdio,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<String, Fault> {
        let what = |error: std::io::Error| Fault::new(format!("ssh to {}: {error}", self.host));
        let Way::Ssh { ssh, .. } = &self.way else {
            return Err(Fault::new("an agent that stands runs no other commands"));
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
        let deadline = Instant::now() + limit;
        let status = loop {
            match child.try_wait().map_err(what)? {
                Some(status) => break status,
                None if interrupted.load(Ordering::Relaxed) || Instant::now() > deadline => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(match interrupted.load(Ordering::Relaxed) {
                        true => Fault::Interrupted,
                        false => self.late(limit),
                    });
                }
                None => std::thread::sleep(LOOK),
            }
        };
        let line = errors.and_then(|errors| errors.last_line());
        if !status.success() {
            return Err(self.failed(Some(status), line));
        }
        let mut said = String::new();
        if let Some(output) = child.stdout.take() {
            output.take(LONGEST_PATH).read_to_string(&mut said).map_err(what)?;
        }
        Ok(said)
    }

    pub(super) fn late(&self, limit: Duration) -> Fault {
        let seconds = limit.as_secs();
        let carrier = self.carrier();
        Fault::new(format!("{} did not answer over {carrier} within {seconds} s", self.host))
    }

    /// Why a command there did not do its work.
    pub(super) fn failed(&self, status: Option<ExitStatus>, line: Option<String>) -> Fault {
        let host = &self.host;
        if let Way::Standing { .. } = self.way {
            // Its own process has the sentence.
            let nothing = || format!("the agent that stands on {host} closed the connection");
            let wrong_use = status.and_then(|status| status.code()) == Some(DIAL_REFUSED);
            return Fault::of_agent(wrong_use, line.unwrap_or_else(nothing));
        }
        let said = line.map(|line| format!(" ({line})")).unwrap_or_default();
        Fault::new(match status.and_then(|status| status.code()) {
            Some(SSH_FAILED) => format!("ssh to {host} failed{said}"),
            Some(NOT_FOUND) => format!(
                "there is no wiregauge on {host} where its shell looks{said}; name its file with \
                 --remote-binary, or have it copied with --push"
            ),
            Some(NOT_EXECUTED) => format!(
                "wiregauge on {host} cannot be executed{said}; name another file with \
                 --remote-binary"
            ),
            Some(code) => format!("the command on {host} ended with code {code}{said}"),
            None => format!("ssh to {host} was ended{said}"),
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
        let command = Session::new(&spec(Some("/opt/it's")), Path::new("")).agent();
        let arguments: Vec<&str> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(command.get_program(), "ssh");
        let asked =
            ["-F", "a b", "-T", "-o", "BatchMode=yes", "node07", r"'/opt/it'\''s' play-role"];
        assert_eq!(arguments, asked);
        let plain = Session::new(&spec(None), Path::new("")).agent();
        assert_eq!(plain.get_args().last().unwrap(), "wiregauge play-role");
    }
}
