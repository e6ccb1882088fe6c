//! The agent: the process that plays one role of one round, told everything by the driver over its
//! standard input and output.
//!
//! The main thread keeps the channel and sleeps while a round runs; others play, as many as the
//! case has (`thread.rs`). The control thread sleeps in `read`, and when the driver says stop or
//! expect while a round runs, it sets the gate of a loop and interrupts its sleep.

use crate::agent::clock_answers;
use crate::agent::error::{AgentError, unable};
use crate::agent::host_probe;
use crate::agent::thread::{Reach, RoleRunner, StartLine, ThreadCommand, ThreadReport};
use crate::clock::exchange::Local;
use crate::control::frame::{self, FrameError};
use crate::control::protocol::*;
use crate::host::{self, interrupt};
use crate::sample::arena::Arena;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The hidden command that makes a process an agent.
pub const PLAY: &str = "play-role";
/// How long a greeting may take. A driver greets at once.
const GREETING: Duration = Duration::from_secs(10);
/// How long threads may take to leave when one of them cannot go on.
const LEAVING: Duration = Duration::from_millis(500);
/// Between two looks at whether they have left.
const PAUSE: Duration = Duration::from_millis(2);

/// Serves one round over standard input and output; the process's exit code.
pub fn main() -> u8 {
    // Not locked: the thread that tells of progress speaks too, and a frame is written whole.
    let mut output = io::stdout();
    let watch = await_greeting();
    let greeted = greet(&mut output);
    drop(watch);
    let served = greeted.and_then(|()| serve(&mut output));
    let (wrong_use, sentence) = match served {
        Ok(()) => return 0,
        Err(error @ AgentError::NotGreeted) => return not_greeted(&error),
        // The driver is gone: nobody is there to be told.
        Err(AgentError::Frame(FrameError::Closed)) => return 3,
        Err(AgentError::Refused(sentence)) => (true, sentence),
        Err(AgentError::Unable(sentence)) => (false, sentence),
        Err(AgentError::Frame(error)) => (true, error.to_string()),
    };
    let _ = frame::write(&mut output, &FromAgent::Refused { wrong_use, sentence });
    if wrong_use { 2 } else { 3 }
}

/// Who starts an agent by hand speaks no frames: the sentence goes to stderr.
fn not_greeted(error: &AgentError) -> u8 {
    let _ = writeln!(io::stderr(), "wiregauge: {error}");
    2
}

/// Ends the process when no whole greeting has come in time; drop what it gives once one has.
fn await_greeting() -> Sender<()> {
    let (greeted, watch) = mpsc::channel();
    std::thread::spawn(move || {
        if watch.recv_timeout(GREETING) == Err(RecvTimeoutError::Timeout) {
            std::process::exit(not_greeted(&AgentError::NotGreeted).into());
        }
    });
    greeted
}

/// The first exchange: both must speak this version and know the secret.
fn greet(output: &mut impl io::Write) -> Result<(), AgentError> {
    let hello: ToAgent = match frame::read(&mut io::stdin().lock()) {
        Err(FrameError::Closed) => return Err(AgentError::NotGreeted),
        read => read?,
    };
    let ToAgent::Hello { magic, version, secret } = hello else {
        return Err(AgentError::Refused("the driver did not begin with a greeting".into()));
    };
    if magic != MAGIC {
        return Err(AgentError::Refused("the driver is not one of wiregauge".into()));
    }
    if version != VERSION {
        return Err(AgentError::Refused(format!(
            "the driver speaks version {version} of the control protocol and this agent version \
             {VERSION}; run the same wiregauge on both"
        )));
    }
    // One that sshd started is not told in its environment: whoever holds its channel has logged in
    // as this user, and the first frame says the secret.
    let told = std::env::var(SECRET_VARIABLE).ok();
    // The same holds for one that a standing agent started.
    let connected = [host::SSH_CONNECTION, host::CONNECTION];
    let is_let_in = told.is_none() && connected.iter().any(|n| std::env::var_os(n).is_some());
    let known = told.and_then(|hex| crate::control::secret::from_hex(&hex));
    if known != Some(secret) && !is_let_in {
        return Err(AgentError::Refused(
            "the driver's secret is not the one that this agent was started with".into(),
        ));
    }
    let tool = env!("CARGO_PKG_VERSION").to_string();
    frame::write(output, &FromAgent::Welcome { pid: std::process::id(), tool })?;
    Ok(())
}

/// Starts the control thread, which reaches these threads by themselves and passes on the rest.
fn listen(threads: Vec<Arc<Reach>>) -> Receiver<ToAgent> {
    let (sender, control) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            match frame::read(&mut io::stdin().lock()) {
                Ok(ToAgent::Expect { thread, messages }) => {
                    if let Some(thread) = threads.get(thread as usize) {
                        thread.gate.expect(messages);
                        thread.wake();
                    }
                }
                Ok(ToAgent::Stop) | Err(_) => {
                    for thread in &threads {
                        thread.gate.stop();
                        thread.wake();
                    }
                    return;
                }
                Ok(other) => {
                    if sender.send(other).is_err() {
                        return;
                    }
                }
            }
        }
    });
    control
}

fn serve(output: &mut impl io::Write) -> Result<(), AgentError> {
    // A name of its own: in the `match` the lock would be held to its end, and the control thread
    // would wait for it.
    let first: ToAgent = frame::read(&mut io::stdin().lock())?;
    match first {
        ToAgent::Open(assignment) => AgentThreads::of(*assignment)?.play(output),
        ToAgent::Probe(request) => {
            let said = match host_probe::probe(&request) {
                Ok(probe) => FromAgent::Probed(Box::new(probe)),
                Err(sentence) => FromAgent::Refused { wrong_use: true, sentence },
            };
            Ok(frame::write(output, &said)?)
        }
        ToAgent::KeepTime(asked) => clock_answers::answer(&asked, &listen(Vec::new()), output),
        _ => Err(FrameError::Closed.into()),
    }
}

/// The threads of this end, and the channel to the driver.
struct AgentThreads {
    control: Receiver<ToAgent>,
    threads: Vec<AgentThread>,
    hear: Receiver<(usize, Result<ThreadReport, AgentError>)>,
    /// The clock of an agent on another host, which sends its samples.
    remote: Option<Local>,
}

/// One of them.
struct AgentThread {
    ask: Sender<ThreadCommand>,
    thread: JoinHandle<()>,
    reach: Arc<Reach>,
}

impl AgentThreads {
    /// Starts the threads: each begins to open its endpoint.
    fn of(assignment: Assignment) -> Result<AgentThreads, AgentError> {
        interrupt::install().map_err(unable("installing a signal handler"))?;
        let (source, time) = (assignment.clock, assignment.time);
        let remote = assignment.remote.as_ref().map(|remote| Local {
            source,
            time,
            untrue: remote.injected_clock_error,
        });
        if assignment.case.rpc.is_some() {
            host::allow_descriptors();
        }
        let memory = host_probe::memory(&assignment).map_err(unable("the sample memory"))?;
        let elsewhere = assignment.cpu_beside();
        let assignment = Arc::new(assignment);
        let line = Arc::new(StartLine::of(memory.len()));
        let (says, hear) = mpsc::channel();
        let mut threads = Vec::new();
        for (number, arena) in memory.into_iter().enumerate() {
            let (ask, commands) = mpsc::channel();
            let reach = Arc::new(Reach::default());
            let runner = RoleRunner {
                assignment: Arc::clone(&assignment),
                number,
                arena,
                elsewhere,
                reach: Arc::clone(&reach),
                line: Arc::clone(&line),
                commands,
                reports: says.clone(),
            };
            let named = std::thread::Builder::new().name(format!("{number}"));
            let thread = named.spawn(move || runner.run()).map_err(unable("starting a thread"))?;
            threads.push(AgentThread { ask, thread, reach });
        }
        let control = listen(threads.iter().map(|one| Arc::clone(&one.reach)).collect());
        Ok(AgentThreads { control, threads, hear, remote })
    }

    /// One round, from the addresses to the outcomes.
    fn play(mut self, output: &mut impl io::Write) -> Result<(), AgentError> {
        let played = self.play_to_the_end(output);
        if played.is_err() {
            self.leave();
            return played;
        }
        // All let go of their endpoints at once: an adapter takes its time for each.
        let take = |AgentThread { thread, .. }: AgentThread| thread;
        let threads: Vec<JoinHandle<()>> = self.threads.drain(..).map(take).collect();
        for thread in threads {
            // One that has panicked has ended the process.
            let _ = thread.join();
        }
        Ok(())
    }

    fn play_to_the_end(&mut self, output: &mut impl io::Write) -> Result<(), AgentError> {
        let addresses = self.each(|said| match said {
            ThreadReport::Opened(addresses) => Some(addresses),
            _ => None,
        })?;
        frame::write(output, &FromAgent::Opened(addresses))?;
        let Ok(ToAgent::Connect(others)) = self.control.recv() else {
            return Err(FrameError::Closed.into());
        };
        if others.len() != self.threads.len() {
            let sentence = "the driver has another number of threads than this agent";
            return Err(AgentError::Refused(sentence.into()));
        }
        for (member, others) in self.threads.iter().zip(others) {
            let _ = member.ask.send(ThreadCommand::Connect(others));
        }
        let granted = self.each(|said| match said {
            ThreadReport::Connected(granted) => Some(granted),
            _ => None,
        })?;
        frame::write(output, &FromAgent::Connected(granted))?;
        let Ok(ToAgent::Start(at)) = self.control.recv() else {
            return Err(FrameError::Closed.into());
        };
        for member in &self.threads {
            let _ = member.ask.send(ThreadCommand::Start(at));
        }
        self.tell_ends(output)?;
        // Endpoints live until the driver has heard of the end, so that the other end does not see
        // a closed connection before it has read what is on the way.
        while self.control.recv().is_ok() {}
        Ok(())
    }

    /// Waits until each thread has said what is awaited.
    fn each<T>(&self, take: impl Fn(ThreadReport) -> Option<T>) -> Result<Vec<T>, AgentError> {
        let mut all: Vec<Option<T>> = self.threads.iter().map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            let (number, said) = self.hear.recv().map_err(|_| FrameError::Closed)?;
            if let (Some(place), Some(taken)) = (all.get_mut(number), take(said?)) {
                *place = Some(taken);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// Tells how each thread ended, when all have: nothing is said while a round runs. An end that
    /// was not planned is told at once.
    fn tell_ends(&self, output: &mut impl io::Write) -> Result<(), AgentError> {
        let mut held: Vec<(usize, Box<Outcome>, Arena)> = Vec::new();
        let (mut missing, mut at_once) = (self.threads.len(), false);
        while missing > 0 {
            let (number, said) = self.hear.recv().map_err(|_| FrameError::Closed)?;
            let ThreadReport::Ended(outcome, arena) = said? else { continue };
            missing -= 1;
            at_once |= !outcome.ended.as_planned();
            held.push((number, outcome, arena));
            if missing > 0 && !at_once {
                continue;
            }
            for (number, outcome, arena) in held.drain(..) {
                let thread = number as u32;
                if let Some(clock) = &self.remote {
                    host_probe::hand_over(thread, &arena, clock, output)?;
                }
                frame::write(output, &FromAgent::Ended { thread, outcome })?;
            }
        }
        Ok(())
    }

    /// Ends the round where one thread cannot go on, and gives the others a moment to leave in
    /// order: they may have names to take back.
    fn leave(&mut self) {
        let deadline = Instant::now() + LEAVING;
        for AgentThread { ask, thread, reach } in self.threads.drain(..) {
            reach.gate.stop();
            reach.wake();
            drop(ask);
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(PAUSE);
            }
        }
    }
}
