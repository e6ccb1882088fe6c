//! An agent's process: a child of this one, directly or by ssh, whose standard input and output are
//! the control channel; or a rank of a launch, which has called back.

use crate::launch::Launch;
use crate::locked;
use crate::ssh::Session;
use crate::stderr::Tail;
use rustix::process::Signal;
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_host::OomWatch;
use wiregauge_host::child::{self, Exit, OwnedChild};
use wiregauge_measure::control::fault::{Death, Fault};
use wiregauge_measure::control::frame::{self, FrameError};
use wiregauge_measure::control::protocol::*;
use wiregauge_measure::control::secret;
use wiregauge_transport::Role;

/// How long an agent may take to exit once its channel is closed. On a busy machine an adapter's
/// resources and ssh need seconds, on one that also compiles more than five.
pub const EXIT: Duration = Duration::from_secs(15);

/// Purposes of the threads of an agent's channel.
const WRITE_FRAMES: &str = "write to an agent";
const READ_FRAMES: &str = "read an agent's messages";

/// A message of an agent.
pub struct AgentMessage {
    /// Its rank in the round.
    pub rank: usize,
    /// The message, or the end of its channel.
    pub message: Result<FromAgent, FrameError>,
}

/// Writes frames until there are no more, then closes the channel.
fn write_frames(mut input: impl Write, frames: &Receiver<Vec<u8>>) {
    while let Ok(body) = frames.recv() {
        if frame::write_body(&mut input, &body).is_err() {
            return;
        }
    }
}

/// Where the messages of an agent go, and under which rank: another round of the same process has
/// others.
type Target = Arc<Mutex<(usize, SyncSender<AgentMessage>)>>;

/// Hands on the messages of an agent until its channel ends.
fn read_frames(output: impl Read, target: &Target) {
    let mut output = BufReader::new(output);
    loop {
        let message = frame::read_plain(&mut output);
        let over = message.is_err();
        let (rank, tx) = locked(target).clone();
        if tx.send(AgentMessage { rank, message }).is_err() {
            // It can exit only if what it still says goes somewhere.
            let _ = io::copy(&mut output, &mut io::sink());
            return;
        }
        if over {
            return;
        }
    }
}

/// What an agent runs in.
enum Process {
    /// A child of this process: the agent, or what carries its channel.
    Child(OwnedChild),
    /// A rank of a launch.
    Rank(Arc<Launch>),
}

/// A socket that is closed for writing when it goes: the other direction stays.
struct Writing(UnixStream);

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

/// Builds the first message of the controller.
fn greeting(secret: [u8; 32], asks_program: bool) -> ToAgent {
    ToAgent::Hello { magic: MAGIC, version: VERSION, secret, asks_program }
}

/// One agent process.
pub struct Agent {
    /// Its role.
    pub role: Role,
    process: Process,
    target: Target,
    /// What writes frames to its standard input: the controller must not wait for an agent that
    /// takes none. They are few, since each but `Stop` follows an answer.
    input: Option<Sender<Vec<u8>>>,
    session: Session,
    /// What ssh, or what it ran, wrote to standard error; `None`: the agent is on this host.
    errors: Option<Tail>,
    /// Notices that the OOM killer kills something while it runs.
    memory: OomWatch,
}

impl Agent {
    /// Starts an agent and greets it. Its messages go to `tx`, and wait in its pipe while that is
    /// full.
    pub fn start(
        session: &Session,
        rank: usize,
        role: Role,
        tx: SyncSender<AgentMessage>,
    ) -> Result<Agent, Fault> {
        let known = secret::fresh()?;
        let memory = OomWatch::begin();
        let mut command = session.agent(&known);
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its own process group: a Ctrl-C is for the controller, which stops its agents.
            .process_group(0)
            .spawn();
        let mut child = OwnedChild(spawned.map_err(|error| {
            let program = command.get_program().display();
            format!("starting an agent ({program}): {}", threads::explain_limit(&error))
        })?);
        let (input, frames) = mpsc::channel();
        let target = Arc::new(Mutex::new((rank, tx)));
        if let Some(stdin) = child.0.stdin.take() {
            threads::spawn(WRITE_FRAMES, move || write_frames(stdin, &frames))?;
        }
        if let Some(output) = child.0.stdout.take() {
            let target = Arc::clone(&target);
            threads::spawn(READ_FRAMES, move || read_frames(output, &target))?;
        }
        let errors = child.0.stderr.take().map(Tail::of).transpose()?;
        let (process, session) = (Process::Child(child), session.clone());
        let input = Some(input);
        let mut agent = Agent { role, process, target, input, session, errors, memory };
        // An agent on another host learns the secret here: ssh has authenticated both ends.
        agent.send(&greeting(known, agent.session.starts_by_path()));
        Ok(agent)
    }

    /// A rank of a launch that has called back over this socket, and knows this secret. It is
    /// greeted, as by [`Agent::start`].
    pub fn of_launch(
        launch: &Arc<Launch>,
        (socket, known): (UnixStream, [u8; 32]),
        rank: usize,
        role: Role,
        tx: SyncSender<AgentMessage>,
    ) -> Result<Agent, Fault> {
        let (input, frames) = mpsc::channel();
        let target = Arc::new(Mutex::new((rank, tx)));
        let (output, writing) = (socket.try_clone()?, Writing(socket));
        threads::spawn(WRITE_FRAMES, move || write_frames(writing, &frames))?;
        let theirs = Arc::clone(&target);
        threads::spawn(READ_FRAMES, move || read_frames(output, &theirs))?;
        let (process, session) =
            (Process::Rank(Arc::clone(launch)), Session::new(None, launch.program()));
        let input = Some(input);
        let memory = OomWatch::begin();
        let mut agent = Agent { role, process, target, input, session, errors: None, memory };
        agent.send(&greeting(known, true));
        Ok(agent)
    }

    /// The launch that it is a rank of.
    pub fn launch(&self) -> Option<Arc<Launch>> {
        match &self.process {
            Process::Rank(launch) => Some(Arc::clone(launch)),
            Process::Child(_) => None,
        }
    }

    /// Gives it another rank and role; its messages go to `tx` from now on.
    pub fn reassign(&mut self, rank: usize, role: Role, tx: SyncSender<AgentMessage>) {
        self.role = role;
        *locked(&self.target) = (rank, tx);
    }

    /// Closes its channel, so that it ends.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Whether it is on another host, where the controller cannot read its progress.
    pub fn is_remote(&self) -> bool {
        self.errors.is_some()
    }

    /// Sends a message. A broken channel shows when no answer comes.
    pub fn send(&mut self, message: &ToAgent) {
        let body = postcard::to_stdvec(message).ok();
        let sent = body.and_then(|body| self.input.as_ref()?.send(body).ok());
        if sent.is_none() {
            self.input = None;
        }
    }

    /// Closes its channel, waits for its exit until then, then kills it. Describes an exit that was
    /// not orderly.
    pub fn end(mut self, until: Instant) -> Option<Death> {
        let patience = until.saturating_duration_since(Instant::now());
        if let Process::Rank(launch) = &self.process {
            self.input = None;
            return launch.end(patience, &self.memory);
        }
        match self.close_within(patience) {
            Some(status) => self.describe(status).map(Death::of),
            None => Some(Death::by_us(&self.name())),
        }
    }

    /// Closes its channel and waits for its exit; `None`: it had to be killed.
    pub fn close(&mut self) -> Option<ExitStatus> {
        self.close_within(EXIT)
    }

    fn close_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.input = None;
        let Process::Child(child) = &mut self.process else { return None };
        match child::wait(&mut child.0, patience, || false) {
            Ok(Exit::Done(status)) => Some(status),
            _ => None,
        }
    }

    /// Returns true if it has exited.
    pub fn has_exited(&mut self) -> bool {
        match &mut self.process {
            Process::Child(child) => !matches!(child.0.try_wait(), Ok(None)),
            // Ranks of a launch end together.
            Process::Rank(_) => true,
        }
    }

    /// The last line that ssh, or what it ran, wrote to standard error.
    pub fn last_line(&self) -> Option<String> {
        self.errors.as_ref()?.last_line()
    }

    fn name(&self) -> String {
        let rank = locked(&self.target).0;
        match self.is_remote() {
            false if self.role == Role::Node => {
                format!("the process of node {rank}{}", self.number())
            }
            true if self.role == Role::Node => {
                format!("the process of node {rank} on {}", self.session.host())
            }
            false => format!("the {}'s process{}", self.role.name(), self.number()),
            true => format!("the {}'s process on {}", self.role.name(), self.session.host()),
        }
    }

    fn number(&self) -> String {
        match &self.process {
            Process::Child(child) => format!(" ({})", child.0.id()),
            Process::Rank(_) => String::new(),
        }
    }

    fn describe(&self, status: ExitStatus) -> Option<String> {
        let (who, carrier) = (self.name(), self.session.carrier());
        let message = || self.last_line().map(|line| format!(" ({line})")).unwrap_or_default();
        match (child::signal(status), status.code()) {
            (Some(signal), _) if self.is_remote() => {
                Some(format!("lost {who}: {carrier} was killed by {signal}"))
            }
            (Some(signal), _) => {
                let is_kill = status.signal() == Some(Signal::KILL.as_raw());
                let memory = self.memory.explain().filter(|_| is_kill);
                let why = memory.map(|told| format!(": {told}")).unwrap_or_default();
                Some(format!("{who} was killed by {signal}{why}"))
            }
            (_, Some(101)) => Some(format!("{who} panicked{}", message())),
            // An agent's own exit codes: it has reported the reason.
            (_, None | Some(0 | 2 | 3)) => None,
            (_, Some(code)) => self
                .is_remote()
                .then(|| format!("lost {who}: {carrier} exited with code {code}{}", message())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::AgentProgram;
    use wiregauge_test_support::bounded::Bound;
    use wiregauge_transport::Blob;

    #[test]
    fn an_agent_that_takes_no_frames_holds_up_nobody() {
        let _bound = Bound::new();
        let (tx, rx) = mpsc::sync_channel(1);
        // It reads nothing.
        let session = Session::new(None, &AgentProgram::Other("/usr/bin/yes".into()));
        let mut agent = Agent::start(&session, 0, Role::Server, tx).unwrap();
        // Far more than a pipe holds.
        let large = ToAgent::Connect(vec![vec![Blob(vec![7; 1 << 19])]]);
        (0..4).for_each(|_| agent.send(&large));
        assert!(rx.recv().unwrap().message.is_err(), "what it says is no frame");
    }
}
