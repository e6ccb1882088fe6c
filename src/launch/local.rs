//! Agents on this host: child processes whose standard input and output are the control channel.

use super::frame::{self, FrameError};
use super::protocol::*;
use super::secret;
use crate::transport::Role;
use std::io::BufReader;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long an agent may take to go once its channel is closed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a driver hears of its agents.
pub struct Heard {
    /// From which.
    pub role: Role,
    /// What it said, or that it is gone.
    pub said: Result<FromAgent, FrameError>,
}

/// One agent process.
pub struct Agent {
    role: Role,
    child: Child,
    input: Option<ChildStdin>,
}

impl Agent {
    /// Starts one and greets it. What it says goes to `ears`.
    pub fn start(
        program: &Path,
        role: Role,
        version: u32,
        ears: Sender<Heard>,
    ) -> Result<Agent, String> {
        let known = secret::fresh()?;
        let mut child = Command::new(program)
            .arg("agent")
            .env(SECRET_VARIABLE, secret::to_hex(&known))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A Ctrl-C is for the driver, which tells its agents; a group of its own keeps it off.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("starting an agent ({}): {error}", program.display()))?;
        let input = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut output = BufReader::new(output);
                loop {
                    let said = frame::read(&mut output);
                    let over = said.is_err();
                    if ears.send(Heard { role, said }).is_err() || over {
                        return;
                    }
                }
            });
        }
        let mut agent = Agent { role, child, input };
        agent.say(&ToAgent::Hello { magic: MAGIC, version, secret: known });
        Ok(agent)
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
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
        self.input = None;
        let deadline = Instant::now() + LAST_WORDS;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return self.describe(status),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => {
                    // The child is ours and was not waited for: its number cannot be another's.
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return Some(format!(
                        "the {}'s process ({}) did not answer and was ended",
                        self.role.name(),
                        self.pid()
                    ));
                }
            }
        }
    }

    fn describe(&self, status: std::process::ExitStatus) -> Option<String> {
        let who = format!("the {}'s process ({})", self.role.name(), self.pid());
        match (status.signal(), status.code()) {
            (Some(signal), _) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("unnamed");
                Some(format!("{who} was killed by signal {signal} ({name})"))
            }
            (_, Some(101)) => Some(format!("{who} panicked")),
            _ => None,
        }
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
