//! An agent's process: a child of this one, or ssh with one behind it. Its standard input and
//! output are the control channel.

use crate::control::frame::{self, FrameError};
use crate::control::protocol::*;
use crate::control::secret;
use crate::remote::ssh::Session;
use crate::remote::stderr::Tail;
use crate::transport::Role;
use std::io::BufReader;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long an agent may take to go once its channel is closed ...
const LAST_WORDS: Duration = Duration::from_secs(1);
/// ... and on another host, with ssh's own good-bye.
const LAST_WORDS_REMOTE: Duration = Duration::from_secs(5);
/// Between two looks at whether a process has ended.
const PAUSE: Duration = Duration::from_millis(2);
/// What a driver hears of its agents.
pub struct AgentMessage {
    /// From which.
    pub role: Role,
    /// What it said, or that it is gone.
    pub said: Result<FromAgent, FrameError>,
}

/// Where an agent runs.
#[derive(Clone, Copy)]
pub enum AgentPlace<'a> {
    /// On this host: this program.
    Local(&'a Path),
    /// On another, reached by ssh.
    Remote(&'a Session),
}

/// One agent process.
pub struct Agent {
    role: Role,
    child: Child,
    input: Option<ChildStdin>,
    remote: Option<RemoteEnd>,
}

/// What only one on another host has.
struct RemoteEnd {
    host: String,
    carrier: &'static str,
    errors: Option<Tail>,
}

impl Agent {
    /// Starts one and greets it. What it says goes to `ears`.
    pub fn start(
        place: AgentPlace<'_>,
        role: Role,
        version: u32,
        tx: Sender<AgentMessage>,
    ) -> Result<Agent, String> {
        let known = secret::fresh()?;
        let mut command = match place {
            AgentPlace::Local(program) => {
                let mut command = Command::new(program);
                command.arg(crate::agent::serve::PLAY).env(SECRET_VARIABLE, secret::to_hex(&known));
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
            // A Ctrl-C is for the driver, which tells its agents; a group of its own keeps it off.
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
                    let said = frame::read(&mut output);
                    let over = said.is_err();
                    if tx.send(AgentMessage { role, said }).is_err() || over {
                        return;
                    }
                }
            });
        }
        let remote = match place {
            AgentPlace::Local(_) => None,
            AgentPlace::Remote(session) => {
                let errors = child.stderr.take().map(Tail::of);
                let (host, carrier) = (session.host().to_string(), session.carrier());
                Some(RemoteEnd { host, carrier, errors })
            }
        };
        let mut agent = Agent { role, child, input, remote };
        // To another host the secret goes in this frame: ssh has made sure who is there, and who
        // holds the channel is the one who logged in.
        agent.say(&ToAgent::Hello { magic: MAGIC, version, secret: known });
        Ok(agent)
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its process; of one on another host, ssh's.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is on another host, where the driver does not see its progress.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Says something. An agent that is gone is noticed by what it does not say.
    pub fn say(&mut self, message: &ToAgent) {
        if let Some(input) = &mut self.input
            && frame::write(input, message).is_err()
        {
            self.input = None;
        }
    }

    /// Ends it: closes its channel, gives it time for its last words, then kills it. Says how it
    /// went, where it did not go by itself in order.
    pub fn end(mut self) -> Option<String> {
        match self.close() {
            Some(status) => self.describe(status),
            None => Some(format!("{} did not answer and was ended", self.name())),
        }
    }

    /// Closes its channel and waits for its end; `None`: it had to be killed.
    pub fn close(&mut self) -> Option<ExitStatus> {
        self.input = None;
        let limit = if self.is_remote() { LAST_WORDS_REMOTE } else { LAST_WORDS };
        let deadline = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                _ => {
                    // The child is ours and was not waited for: its number cannot be another's.
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return None;
                }
            }
        }
    }

    /// The last line that ssh, or what it ran, has written to its standard error.
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
        match (status.signal(), status.code(), &self.remote) {
            (Some(signal), _, None) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("unnamed");
                Some(format!("{who} was killed by signal {signal} ({name})"))
            }
            (Some(signal), _, Some(remote)) => {
                let carrier = remote.carrier;
                Some(format!("{who} is gone: {carrier} was killed by signal {signal}"))
            }
            (_, Some(101), _) => Some(format!("{who} panicked{}", self.said())),
            // An agent's own codes: it has told what there was to tell.
            (_, None | Some(0 | 2 | 3), _) | (_, _, None) => None,
            (_, Some(code), Some(remote)) => {
                let carrier = remote.carrier;
                Some(format!("{who} is gone: {carrier} ended with code {code}{}", self.said()))
            }
        }
    }

    fn said(&self) -> String {
        self.last_line().map(|line| format!(" ({line})")).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Nothing of a round that ended early stays behind. Already waited for: nothing happens.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
