//! One session of a paired controller: a fresh agent process. Each frame to it is inspected.

use super::Daemon;
use super::caps::{Inspector, SessionState};
use super::memory::Reserved;
use super::tls::{Channel, Reader, Writer};
use crate::locked;
use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_host::child::{self, Exit, OwnedChild, ends_with_us};
use wiregauge_host::{CONNECTION, SSH_CONNECTION, connection};
use wiregauge_measure::agent::own_trace::{KERNEL_STAMPS_DENIED, KERNEL_STAMPS_VARIABLE};
use wiregauge_measure::agent::serve::RUN_ROLE;
use wiregauge_measure::control::frame::{self, FrameError};
use wiregauge_measure::control::protocol::*;
use wiregauge_transport::{BIND_VARIABLE, PEERS_VARIABLE, PORTS_VARIABLE};

/// How long the agent may take to exit once its input is closed: less than its controller waits for
/// that, and more than a library may take to be left.
const LAST_WORDS: Duration = Duration::from_secs(14);

/// How long the refusal of a round that took too long may take: a controller that does not read
/// holds up nothing.
const REFUSING: Duration = Duration::from_secs(1);
/// How long the last frames of an agent that has exited may take, of which its pipe holds some.
const LAST_FRAMES: Duration = Duration::from_secs(30);
/// Interval between two checks of a thread's end.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits for the end of a thread, but not for ever; whether it has ended.
fn has_ended(thread: &JoinHandle<()>, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while !thread.is_finished() && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
    thread.is_finished()
}

/// State that both directions share.
struct Shared {
    daemon: Arc<Daemon>,
    /// How many peers the daemon had rejected before.
    rejected_before: u64,
    inspector: Mutex<Inspector>,
    /// Locked for a whole frame.
    writer: Mutex<Writer>,
    last: Mutex<Option<String>>,
}

impl Shared {
    fn refuse(&self, wrong_use: bool, sentence: &str) {
        let refused = FromAgent::Refused { wrong_use, sentence: sentence.to_string() };
        // Fails only where the controller is gone.
        let _ = frame::write(&mut *locked(&self.writer), &refused);
    }

    /// Forwards frames to the controller until the agent exits.
    fn to_controller(&self, output: ChildStdout) {
        let rows = FromAgent::Rows { thread: 0, rows: Vec::new() };
        let rows = postcard::to_stdvec(&rows).unwrap_or_default();
        let mut output = BufReader::new(output);
        while let Ok(body) = frame::read_body(&mut output) {
            // Samples are many and pass unchanged.
            let body = match body.first() == rows.first() {
                true => body,
                false => self.amended(&body).unwrap_or(body),
            };
            if frame::write_body(&mut *locked(&self.writer), &body).is_err() {
                return;
            }
        }
    }

    /// A message of the agent with what only the daemon knows; `None`: unchanged.
    fn amended(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut said: FromAgent = postcard::from_bytes(body).ok()?;
        let ended = match &mut said {
            FromAgent::Probed(probe) => {
                self.daemon.caps.narrow(probe, &locked(&self.inspector).probed);
                "ended".into()
            }
            FromAgent::Ended { thread, outcome } => {
                // Peers rejected while the round ran may have disturbed it; counted with one
                // thread.
                if *thread == 0 {
                    let rejected = self.daemon.rejected.load(Ordering::Relaxed);
                    let come = rejected - self.rejected_before;
                    outcome.rejected_peers = outcome.rejected_peers.saturating_add(come);
                }
                "ended".into()
            }
            FromAgent::Refused { sentence, .. } => format!("refused: {sentence}"),
            _ => return None,
        };
        *locked(&self.last) = Some(ended);
        postcard::to_stdvec(&said).ok()
    }
}

/// Serves a controller until it disconnects or its agent exits: the purpose of the session, and how
/// it ended.
pub fn serve(
    daemon: &Arc<Daemon>,
    (reader, writer): Channel,
    ends: [SocketAddr; 2],
) -> io::Result<(String, String)> {
    let shared = Arc::new(Shared {
        daemon: Arc::clone(daemon),
        rejected_before: daemon.rejected.load(Ordering::Relaxed),
        inspector: Mutex::new(Inspector::new(daemon.caps.clone(), daemon.patterns)),
        writer: Mutex::new(writer.clone()),
        last: Mutex::new(None),
    });
    // Killed and waited for, however the session ends.
    let mut child = OwnedChild(start(daemon, ends)?);
    let (Some(input), Some(output)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(io::Error::other("the agent process has no pipes"));
    };
    let theirs = Arc::clone(&shared);
    let ends = writer.clone();
    let down = threads::spawn("carry an agent's messages", move || {
        theirs.to_controller(output);
        // Wakes the other direction.
        ends.shutdown_reader();
    })?;
    let mut reserved = daemon.memory.session();
    let stopped = to_agent(reader, input, &shared, &mut reserved);
    let (Exit::Done(status) | Exit::Killed(status)) =
        child::wait(&mut child.0, LAST_WORDS, || false)?;
    drop(reserved);
    // Its pipe is closed by now.
    if !has_ended(&down, LAST_FRAMES) {
        writer.shutdown();
    }
    let _ = down.join();
    let last = locked(&shared.last).take();
    let killed = died(status);
    if let (Some(sentence), None) = (&killed, &last) {
        shared.refuse(false, sentence);
    }
    writer.close();
    let result = stopped.or(killed).or(last).unwrap_or_else(|| "the controller left".into());
    Ok((locked(&shared.inspector).what.clone(), result))
}

/// Starts the agent process for an authenticated controller.
fn start(daemon: &Daemon, [peer, own]: [SocketAddr; 2]) -> io::Result<Child> {
    let mut command = daemon.program.command();
    command
        .arg(RUN_ROLE)
        .env_remove(SECRET_VARIABLE)
        .env_remove(SSH_CONNECTION)
        .env_remove(PORTS_VARIABLE)
        .env_remove(PEERS_VARIABLE)
        .env_remove(BIND_VARIABLE)
        .env_remove(KERNEL_STAMPS_VARIABLE)
        .env(CONNECTION, connection(peer, own))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some((first, last)) = daemon.caps.ports {
        command.env(PORTS_VARIABLE, format!("{first}-{last}"));
    }
    // The agent itself refuses other addresses, before it sends anything.
    let peers = daemon.caps.peers.of_peers([peer.ip(), own.ip()]);
    command.envs(peers.map(|all| (PEERS_VARIABLE, all)));
    command.envs(daemon.caps.bind.of_own(own.ip()).map(|all| (BIND_VARIABLE, all)));
    if !daemon.caps.kernel_stamps {
        command.env(KERNEL_STAMPS_VARIABLE, KERNEL_STAMPS_DENIED);
    }
    ends_with_us(&mut command).spawn().map_err(|error| {
        let limit = child::with_limit(error);
        io::Error::new(limit.kind(), format!("cannot start the process of a session: {limit}"))
    })
}

/// Forwards frames to the agent until either end closes; why this side ended the session.
fn to_agent(
    mut reader: Reader,
    mut input: ChildStdin,
    shared: &Arc<Shared>,
    reserved: &mut Reserved,
) -> Option<String> {
    loop {
        let body = match frame::read_body(&mut reader) {
            Ok(body) => body,
            Err(FrameError::Closed) => return None,
            Err(FrameError::Channel(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let sentence = locked(&shared.inspector).overdue();
                let (theirs, said) = (Arc::clone(shared), sentence.clone());
                // The agent's frames may wait for a controller that does not read them.
                let refusing =
                    threads::spawn("refuse a round", move || theirs.refuse(false, &said));
                if let Ok(thread) = refusing {
                    has_ended(&thread, REFUSING);
                }
                return Some(format!("ended: {sentence}"));
            }
            Err(FrameError::Channel(error)) => return Some(format!("lost: {error}")),
            Err(error) => {
                shared.refuse(true, &error.to_string());
                return Some(format!("refused: {error}"));
            }
        };
        let mut inspector = locked(&shared.inspector);
        let runs_on = inspector.state == SessionState::Running;
        let admitted = inspector.admit(&body).map_err(|sentence| (true, sentence));
        let admitted = admitted.and_then(|()| {
            // Another round's end may make room: it is not wrong to ask.
            let most = shared.daemon.caps.total_memory;
            reserved.raise(inspector.memory, most).map_err(|sentence| (false, sentence))?;
            Ok(inspector.patience())
        });
        drop(inspector);
        match admitted {
            Ok(_) if runs_on => {}
            Ok(patience) => reader.deadline = patience.map(|patience| Instant::now() + patience),
            Err((wrong_use, sentence)) => {
                shared.refuse(wrong_use, &sentence);
                return Some(format!("refused: {sentence}"));
            }
        }
        if frame::write_body(&mut input, &body).is_err() {
            // It has exited; the other direction learns why.
            return None;
        }
    }
}

/// How an agent crashed.
fn died(status: ExitStatus) -> Option<String> {
    match (child::signal(status), status.code()) {
        (Some(signal), _) => Some(format!("the agent's process was killed by {signal}")),
        (_, Some(101)) => Some("the agent's process panicked".into()),
        _ => None,
    }
}
