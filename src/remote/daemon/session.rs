//! One session of a paired driver: a fresh process plays the role, and each frame on its way to it
//! is inspected.

use super::Keeper;
use super::caps::{Inspector, Stage};
use super::tls::{Channel, Reader, Writer};
use crate::agent::serve::PLAY;
use crate::control::frame::{self, FrameError};
use crate::control::protocol::*;
use crate::host::{self, child::ends_with_us};
use crate::transport::PORTS_VARIABLE;
use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a process may take to end once nobody speaks to it any more.
const LAST_WORDS: Duration = Duration::from_secs(4);
/// Between two looks at whether it has.
const PAUSE: Duration = Duration::from_millis(5);

/// What became of a session.
pub struct Told {
    /// What it was for.
    pub what: String,
    /// How it ended.
    pub result: String,
}

/// What both directions know.
struct Shared {
    inspector: Mutex<Inspector>,
    /// Frames leave whole.
    writer: Mutex<Writer>,
    last: Mutex<Option<String>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn refuse(&self, wrong_use: bool, sentence: &str) {
        let refused = FromAgent::Refused { wrong_use, sentence: sentence.to_string() };
        // A driver that is gone is told nothing.
        let _ = frame::write(&mut *held(&self.writer), &refused);
    }
}

/// Serves a driver until it leaves, or until its process has ended.
pub fn serve(keeper: &Arc<Keeper>, channel: Channel, ends: [SocketAddr; 2]) -> io::Result<Told> {
    let (reader, writer) = channel.split()?;
    let shared = Arc::new(Shared {
        inspector: Mutex::new(Inspector::new(keeper.caps.clone())),
        writer: Mutex::new(writer.clone()),
        last: Mutex::new(None),
    });
    let mut child = start(keeper, ends)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (Some(input), Some(output)) = (input, output) else {
        return Err(io::Error::other("the process has no channel"));
    };
    let (theirs, keeper) = (Arc::clone(&shared), Arc::clone(keeper));
    let down = std::thread::spawn(move || {
        let strangers = keeper.strangers.load(Ordering::Relaxed);
        let come = || keeper.strangers.load(Ordering::Relaxed) - strangers;
        tell(output, &theirs, &keeper, come);
        // Wakes the other direction.
        held(&theirs.writer).hear_no_more();
    });
    let stopped = hear(reader, input, &shared);
    let status = end(&mut child)?;
    // Its pipe is closed by now.
    let _ = down.join();
    let last = held(&shared.last).take();
    let killed = died(status);
    if let (Some(sentence), None) = (&killed, &last) {
        shared.refuse(false, sentence);
    }
    writer.close();
    let result = stopped.or(killed).or(last).unwrap_or_else(|| "the driver left".into());
    Ok(Told { what: held(&shared.inspector).what.clone(), result })
}

/// The process that plays a role, told that its driver has proved who it is.
fn start(keeper: &Keeper, [peer, own]: [SocketAddr; 2]) -> io::Result<Child> {
    let connection = host::connection(peer, own);
    let mut command = Command::new(&keeper.program);
    command
        .arg(PLAY)
        .env_remove(SECRET_VARIABLE)
        .env_remove(host::SSH_CONNECTION)
        .env_remove(PORTS_VARIABLE)
        .env(host::CONNECTION, connection)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some((first, last)) = keeper.caps.ports {
        command.env(PORTS_VARIABLE, format!("{first}-{last}"));
    }
    ends_with_us(&mut command).spawn()
}

/// From the driver to the process, until one of them ends; why this side ended it.
fn hear(mut reader: Reader, input: ChildStdin, shared: &Shared) -> Option<String> {
    let mut input = input;
    loop {
        let body = match frame::read_body(&mut reader) {
            Ok(body) => body,
            Err(FrameError::Closed) => return None,
            Err(FrameError::Channel(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let sentence = held(&shared.inspector).overdue();
                shared.refuse(false, &sentence);
                return Some(format!("ended: {sentence}"));
            }
            Err(FrameError::Channel(error)) => return Some(format!("lost: {error}")),
            Err(error) => {
                shared.refuse(true, &error.to_string());
                return Some(format!("refused: {error}"));
            }
        };
        let mut inspector = held(&shared.inspector);
        let before = inspector.stage().clone();
        if let Err(sentence) = inspector.admit(&body) {
            drop(inspector);
            shared.refuse(true, &sentence);
            return Some(format!("refused: {sentence}"));
        }
        let runs_on = before == Stage::Running;
        let patience = inspector.patience();
        drop(inspector);
        if !runs_on {
            reader.deadline = patience.map(|patience| Instant::now() + patience);
        }
        if frame::write_body(&mut input, &body).is_err() {
            // It has ended; the other direction hears why.
            return None;
        }
    }
}

/// From the process to the driver, until the process ends.
fn tell(output: ChildStdout, shared: &Shared, keeper: &Keeper, strangers: impl Fn() -> u64) {
    let rows =
        postcard::to_stdvec(&FromAgent::Rows { thread: 0, rows: Vec::new() }).unwrap_or_default();
    let mut output = BufReader::new(output);
    while let Ok(body) = frame::read_body(&mut output) {
        // Samples are many, and pass as they are.
        let body = match body.first() == rows.first() {
            true => body,
            false => retold(&body, shared, keeper, &strangers).unwrap_or(body),
        };
        if frame::write_body(&mut *held(&shared.writer), &body).is_err() {
            return;
        }
    }
}

/// What an agent says with what only its keeper knows; `None`: as it is.
fn retold(
    body: &[u8],
    shared: &Shared,
    keeper: &Keeper,
    strangers: impl Fn() -> u64,
) -> Option<Vec<u8>> {
    let mut said: FromAgent = postcard::from_bytes(body).ok()?;
    match &mut said {
        FromAgent::Probed(probe) => {
            keeper.caps.narrow(probe, &held(&shared.inspector).looked);
            *held(&shared.last) = Some("ended".into());
        }
        FromAgent::Ended { thread, outcome } => {
            // Whoever knocked while the round ran may have disturbed it; counted with one thread.
            if *thread == 0 {
                outcome.strangers = outcome.strangers.saturating_add(strangers());
            }
            *held(&shared.last) = Some("ended".into());
        }
        FromAgent::Refused { sentence, .. } => {
            *held(&shared.last) = Some(format!("refused: {sentence}"));
            return None;
        }
        _ => return None,
    }
    postcard::to_stdvec(&said).ok()
}

/// Waits for the process, whose input is closed; then ends it.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(status),
            None if Instant::now() < deadline => std::thread::sleep(PAUSE),
            None => {
                // It is ours and was not waited for: its number cannot be another's.
                child.kill()?;
                return child.wait();
            }
        }
    }
}

/// How a process ended that did not end in order.
fn died(status: ExitStatus) -> Option<String> {
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("unnamed");
            Some(format!("the agent's process was killed by signal {signal} ({name})"))
        }
        (_, Some(101)) => Some("the agent's process panicked".into()),
        _ => None,
    }
}
