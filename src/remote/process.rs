//! An agent's process: a child of this one, directly or by ssh. Its standard input and output are
//! the control channel.

use crate::control::fault::Fault;
use crate::control::frame::{self, FrameError};
use crate::control::protocol::*;
use crate::control::secret;
use crate::host::child::{self, Exit};
use crate::remote::ssh::Session;
use crate::remote::stderr::Tail;
use crate::transport::Role;
use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How long an agent may take to exit once its channel is closed. On a busy machine an adapter's
/// resources and ssh need seconds.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A message of an agent.
pub struct AgentMessage {
    /// Its rank in the round.
    pub rank: usize,
    /// The message, or the end of its channel.
    pub message: Result<FromAgent, FrameError>,
}

/// Where an agent runs.
#[derive(Clone, Copy)]
pub enum AgentPlace<'a> {
    /// On this host, by this program.
    Local(&'a Path),
    /// On another host.
    Remote(&'a Session),
}

/// One agent process.
pub struct Agent {
    role: Role,
    child: Child,
    input: Option<ChildStdin>,
    remote: Option<RemoteEnd>,
}

/// What only an agent on another host has.
struct RemoteEnd {
    host: String,
    carrier: &'static str,
    errors: Option<Tail>,
}

impl Agent {
    /// Starts an agent and greets it. Its messages go to `tx`.
    pub fn start(
        place: AgentPlace<'_>,
        rank: usize,
        role: Role,
        tx: Sender<AgentMessage>,
    ) -> Result<Agent, Fault> {
        let known = secret::fresh()?;
        let mut command = match place {
            AgentPlace::Local(program) => {
                let mut command = Command::new(program);
                command
                    .arg(crate::agent::serve::RUN_ROLE)
                    .env(SECRET_VARIABLE, secret::to_hex(known));
                command
            }
            AgentPlace::Remote(session) => {
                let mut command = session.agent();
                command.stderr(Stdio::piped());
                command
            }
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its own process group: a Ctrl-C is for the controller, which stops its agents.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = Path::new(command.get_program()).display();
                format!("starting an agent ({program}): {error}")
            })?;
        let input = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut output = BufReader::new(output);
                loop {
                    let message = frame::read(&mut output);
                    let over = message.is_err();
                    if tx.send(AgentMessage { rank, message }).is_err() || over {
                        return;
                    }
                }
            });
        }
        let remote = match place {
            AgentPlace::Local(_) => None,
            AgentPlace::Remote(session) => Some(RemoteEnd {
                host: session.host().into(),
                carrier: session.carrier(),
                errors: child.stderr.take().map(Tail::of),
            }),
        };
        let mut agent = Agent { role, child, input, remote };
        // An agent on another host learns the secret here: ssh has authenticated both ends.
        agent.send(&ToAgent::Hello { magic: MAGIC, version: VERSION, secret: known });
        Ok(agent)
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its pid, or that of its ssh.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is on another host, where the controller cannot read its progress.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Sends a message. A broken channel shows when no answer comes.
    pub fn send(&mut self, message: &ToAgent) {
        if let Some(input) = &mut self.input
            && frame::write(input, message).is_err()
        {
            self.input = None;
        }
    }

    /// Closes its channel, waits for its exit, then kills it. Describes an exit that was not
    /// orderly.
    pub fn end(mut self) -> Option<String> {
        match self.close() {
            Some(status) => self.describe(status),
            None => Some(format!("{} did not exit and was killed", self.name())),
        }
    }

    /// Closes its channel and waits for its exit; `None`: it had to be killed.
    pub fn close(&mut self) -> Option<ExitStatus> {
        self.input = None;
        match child::wait(&mut self.child, LAST_WORDS, || false) {
            Ok(Exit::Done(status)) => Some(status),
            _ => None,
        }
    }

    /// The last line that ssh, or what it ran, wrote to standard error.
    pub fn last_line(&self) -> Option<String> {
        self.remote.as_ref()?.errors.as_ref()?.last_line()
    }

    fn name(&self) -> String {
        match &self.remote {
            None => format!("the {}'s process ({})", self.role.name(), self.pid()),
            Some(remote) => format!("the {}'s process on {}", self.role.name(), remote.host),
        }
    }

    fn describe(&self, status: ExitStatus) -> Option<String> {
        let who = self.name();
        let signal = child::signal(status);
        match (signal, status.code(), &self.remote) {
            (Some(signal), _, None) => Some(format!("{who} was killed by {signal}")),
            (Some(signal), _, Some(remote)) => {
                Some(format!("lost {who}: {} was killed by {signal}", remote.carrier))
            }
            (_, Some(101), _) => Some(format!("{who} panicked{}", self.message())),
            // An agent's own exit codes: it has reported the reason.
            (_, None | Some(0 | 2 | 3), _) | (_, _, None) => None,
            (_, Some(code), Some(remote)) => {
                let carrier = remote.carrier;
                Some(format!("lost {who}: {carrier} exited with code {code}{}", self.message()))
            }
        }
    }

    fn message(&self) -> String {
        self.last_line().map(|line| format!(" ({line})")).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Leaves no process behind. Does nothing after an orderly end.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
