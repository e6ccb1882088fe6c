//! The agent process: runs one role of one round, commanded over its standard input and output.
//!
//! The main thread sleeps while a round runs in the case's threads (`thread.rs`). The control
//! thread sleeps in `read`; on `Stop` or `Expect` it sets the gate of a loop and interrupts its
//! sleep.

use crate::agent::channel;
use crate::agent::clock_answers;
use crate::agent::error::{AgentError, unable};
use crate::agent::execution::FindExecution;
use crate::agent::host_probe;
use crate::agent::own_trace::OwnTrace;
use crate::agent::preflight;
use crate::agent::remote_memory;
use crate::agent::thread::{
    LoopControl, RoleRunner, ThreadBarrier, ThreadCommand, ThreadReport, start_waker,
};
use crate::control::frame::{self, FrameError};
use crate::control::program::ProgramIdentity;
use crate::control::protocol::*;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TrySendError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_clock::exchange::Local;
use wiregauge_host::{Suspension, interrupt};
use wiregauge_plan::{Case, PatternRef};
use wiregauge_sample::arena::Arena;
use wiregauge_transport::TransportKind;

/// The hidden command that makes a process an agent.
pub const RUN_ROLE: &str = "run-role";
/// The name that the kernel shows of a process that this program has started: else it is that of
/// the link by which it was started.
pub const NAME: &CStr = c"wiregauge";
/// Time limit of the greeting. A controller greets at once.
const GREETING: Duration = Duration::from_secs(10);
/// How long threads may take to exit when one of them failed.
const LEAVING: Duration = Duration::from_millis(500);
/// How long loops may take to end once they are told to: MPI waits for ever where a rank is gone.
/// The controller waits twice as long for the samples.
const STUCK: Duration = Duration::from_secs(5);
/// How long a library may take to be left, for the same reason: longer than other ranks of its
/// launch may still report, and shorter than the controller waits for the exit.
const FAREWELL: Duration = Duration::from_secs(12);
/// Messages of the controller that were read and not yet taken: it sends the next when the last was
/// answered.
const MOST_WAITING: usize = 2;
/// Interval between two looks whether the device is still there. A kernel that waits with its
/// removal until this process lets go of it says nothing else (Soft-RoCE).
const LOOK: Duration = Duration::from_secs(2);
/// How long this process may take to exit when its controller has closed the channel, beside what
/// its queue pairs take to be released: a controller that is still there has ended it before.
const ABANDONED: Duration = Duration::from_secs(20);
/// Interval between two checks of their exit.
const PAUSE: Duration = Duration::from_millis(2);

/// Serves one session over standard input and output; returns the exit code.
pub fn main(patterns: FindExecution) -> u8 {
    // Else the name of the link that it was started by.
    let _ = rustix::thread::set_name(NAME);
    let opened = channel::open().map_err(FrameError::from).and_then(|()| channel::output());
    let mut output = match opened {
        Ok(output) => output,
        Err(error) => return not_greeted(&AgentError::Unable(error.to_string())),
    };
    let watchdog = start_watchdog();
    let served = watchdog.as_ref().map_err(unable("an agent")).and_then(|watchdog| {
        greet(&mut output)?;
        let _ = watchdog.send(Step::Greeted);
        serve(patterns, &mut output)
    });
    let (wrong_use, sentence) = match served {
        Ok(()) => {
            let _ = watchdog.map(|watchdog| watchdog.send(Step::Leaves));
            TransportKind::ALL.iter().for_each(|one| (one.descriptor().leave)());
            return 0;
        }
        Err(error @ AgentError::NotGreeted) => return not_greeted(&error),
        // The controller is gone.
        Err(AgentError::Frame(FrameError::Closed)) => return 3,
        Err(AgentError::Refused(sentence)) => (true, sentence),
        Err(AgentError::Unable(sentence)) => (false, sentence),
        Err(AgentError::Frame(error)) => (true, error.to_string()),
    };
    let _ = frame::write(&mut output, &FromAgent::Refused { wrong_use, sentence });
    if wrong_use { 2 } else { 3 }
}

/// For a user who started an agent by hand: the message goes to stderr.
fn not_greeted(error: &AgentError) -> u8 {
    let _ = writeln!(io::stderr(), "wiregauge: {error}");
    2
}

/// Steps of a session that the watchdog is told.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// The controller has greeted.
    Greeted,
    /// Libraries are left.
    Leaves,
}

/// Starts the thread that ends the process if no greeting arrives in time, or if a library that is
/// left does not return. It ends where the returned sender is dropped.
fn start_watchdog() -> io::Result<Sender<Step>> {
    let (tells, steps) = mpsc::channel();
    threads::spawn("watch over the session", move || {
        if steps.recv_timeout(GREETING) == Err(RecvTimeoutError::Timeout) {
            std::process::exit(not_greeted(&AgentError::NotGreeted).into());
        }
        if steps.recv() == Ok(Step::Leaves) {
            exit_after(FAREWELL);
        }
    })?;
    Ok(tells)
}

/// The greeting: both sides must have the same version and secret.
fn greet(output: &mut impl io::Write) -> Result<(), AgentError> {
    let hello: ToAgent = match frame::read(&mut channel::input()?) {
        Err(FrameError::Closed) => return Err(AgentError::NotGreeted),
        read => read?,
    };
    let ToAgent::Hello { magic, version, secret, asks_program } = hello else {
        return Err(AgentError::Refused("the controller did not send a greeting".into()));
    };
    if magic != MAGIC {
        return Err(AgentError::Refused("the controller is not wiregauge".into()));
    }
    if version != VERSION {
        return Err(AgentError::Refused(format!(
            "the controller speaks version {version} of the control protocol and this agent \
             version {VERSION}: run the same wiregauge on both"
        )));
    }
    // sshd passes no secret in the environment: whoever has the channel has logged in as this user.
    let told = std::env::var(SECRET_VARIABLE).ok();
    // The daemon has authenticated its controllers, too.
    let connected = [wiregauge_host::SSH_CONNECTION, wiregauge_host::CONNECTION];
    let is_let_in = told.is_none() && connected.iter().any(|n| std::env::var_os(n).is_some());
    let known = told.and_then(|hex| crate::control::secret::from_hex(&hex));
    if known != Some(secret) && !is_let_in {
        return Err(AgentError::Refused(
            "the controller's secret does not match this agent's".into(),
        ));
    }
    let tool = env!("CARGO_PKG_VERSION").to_string();
    let own = asks_program.then(ProgramIdentity::own).transpose();
    let program = own.map_err(unable("the file of this program"))?;
    frame::write(output, &FromAgent::Welcome { pid: std::process::id(), tool, program })?;
    Ok(())
}

/// Starts the control thread, which stops or wakes these threads itself, tells the main thread of a
/// stop, and passes on the rest. More messages than are due end the session, like a channel that is
/// closed. `release`: what the endpoints may take to be released.
fn listen(
    loops: Vec<Arc<LoopControl>>,
    release: Duration,
    says: Sender<Report>,
) -> Result<Receiver<ToAgent>, AgentError> {
    let (sender, control) = mpsc::sync_channel(MOST_WAITING);
    let read = || channel::input().and_then(|mut input| frame::read(&mut input));
    let started = threads::spawn("obey the controller", move || {
        let stop = || {
            loops.iter().for_each(|one| one.stop());
            let _ = says.send((loops.len(), Ok(ThreadReport::ToldToStop)));
        };
        loop {
            match read() {
                Ok(ToAgent::Expect { thread, messages }) => {
                    if let Some(one) = loops.get(thread as usize) {
                        one.gate.expect(messages);
                        one.wake();
                    }
                }
                Ok(ToAgent::Stop) => {
                    stop();
                    drop(sender);
                    // Samples may take long to be sent: as long as somebody is there.
                    while read().is_ok() {}
                    return exit_after(ABANDONED.saturating_add(release));
                }
                Err(_) => {
                    stop();
                    // Else the main thread would wait for more.
                    drop(sender);
                    return exit_after(ABANDONED.saturating_add(release));
                }
                Ok(ToAgent::Again) => {
                    // Whoever takes it reads the channel from then on.
                    let _ = sender.try_send(ToAgent::Again);
                    return;
                }
                Ok(other) => match sender.try_send(other) {
                    Ok(()) => {}
                    Err(TrySendError::Disconnected(_)) => return,
                    Err(TrySendError::Full(_)) => {
                        stop();
                        return;
                    }
                },
            }
        }
    });
    started.map_err(unable("an agent"))?;
    Ok(control)
}

/// Ends this process where nothing else does, as in a library that does not return: where a
/// launcher has started it no controller could, and else the controller may be gone.
fn exit_after(time: Duration) {
    std::thread::sleep(time);
    std::process::exit(3);
}

fn serve(patterns: FindExecution, output: &mut impl io::Write) -> Result<(), AgentError> {
    let mut has_run = false;
    loop {
        let first: ToAgent = match frame::read(&mut channel::input()?) {
            Ok(ToAgent::Open(case, assignment)) => {
                let find = |name: &str| patterns(name).map(|pattern| pattern as PatternRef);
                let case = case.read(find).map_err(AgentError::Refused)?;
                match AgentThreads::start(case, *assignment, patterns)?.play(output)? {
                    Next::Round => frame::write(output, &FromAgent::Released)?,
                    Next::Exit => return Ok(()),
                }
                has_run = true;
                continue;
            }
            Err(FrameError::Closed) if has_run => return Ok(()),
            other => other?,
        };
        return serve_other(first, output);
    }
}

/// Serves a session without a round.
fn serve_other(first: ToAgent, output: &mut impl io::Write) -> Result<(), AgentError> {
    match first {
        ToAgent::Probe(request) => {
            let said = match host_probe::probe(&request) {
                Ok(probe) => FromAgent::Probed(Box::new(probe)),
                Err(sentence) => FromAgent::Refused { wrong_use: true, sentence },
            };
            Ok(frame::write(output, &said)?)
        }
        ToAgent::AnswerClock(asked) => {
            let (says, _) = mpsc::channel();
            let control = listen(Vec::new(), Duration::ZERO, says)?;
            clock_answers::answer(&asked, &control, output)
        }
        ToAgent::OpenPath(task) => {
            let (says, _) = mpsc::channel();
            preflight::serve(*task, &listen(Vec::new(), Duration::ZERO, says)?, output)
        }
        _ => Err(FrameError::Closed.into()),
    }
}

/// What follows a round.
#[derive(Clone, Copy)]
enum Next {
    /// Another one, in this process.
    Round,
    /// Nothing.
    Exit,
}

/// What a thread reports, with its number.
type Report = (usize, Result<ThreadReport, AgentError>);

/// The threads of this end, and the control channel.
struct AgentThreads {
    control: Receiver<ToAgent>,
    threads: Vec<AgentThread>,
    /// The sample memory of each.
    memory: Vec<PathBuf>,
    reports: Receiver<Report>,
    /// The clock of an agent that sends its samples to another host.
    remote: Option<Local>,
    /// The kernel's stamps of this process, where the controller wants them.
    trace: Option<OwnTrace>,
    clock: Local,
    transport: TransportKind,
    is_over: Arc<AtomicBool>,
}

/// One of the threads.
struct AgentThread {
    ask: Sender<ThreadCommand>,
    thread: JoinHandle<()>,
    loop_control: Arc<LoopControl>,
}

impl AgentThreads {
    /// Starts the threads; each begins to open its endpoints.
    fn start(
        case: Case,
        assignment: Assignment,
        patterns: FindExecution,
    ) -> Result<AgentThreads, AgentError> {
        let name = case.pattern.name();
        let unknown = || AgentError::Refused(format!("unknown pattern '{name}'"));
        let own = case.topology.ranks.get(assignment.rank as usize);
        let is_own = own.is_some_and(|rank| rank.role == assignment.role);
        ensure!(is_own, AgentError::Refused("the case has no such rank".into()));
        let pattern = patterns(name).ok_or_else(unknown)?;
        interrupt::install()
            .and_then(|()| Suspension::count_continues())
            .map_err(unable("installing a signal handler"))?;
        let remote = assignment.remote_rows.map(|_| assignment.clock);
        // A thread may have many connections.
        wiregauge_host::allow_descriptors();
        let is_over = Arc::default();
        let memory = remote_memory::memory(&case, &assignment, &is_over)
            .map_err(unable("the sample memory"))?;
        let elsewhere = assignment.cpu_beside();
        // Only what goes to another host is made wrong for a test.
        let injected_error = remote.and_then(|remote| remote.injected_error);
        let clock = Local { injected_error, ..assignment.clock };
        let trace = assignment.trace.as_ref().map(|asked| OwnTrace::begin(asked, &clock));
        let role = assignment.role;
        let (case, assignment) = (Arc::new(case), Arc::new(assignment));
        let barrier = Arc::new(ThreadBarrier::new(memory.len()));
        let (says, reports) = mpsc::channel();
        let mut all = Vec::new();
        for (number, arena) in memory.iter().cloned().enumerate() {
            let (ask, commands) = mpsc::channel();
            let loop_control = Arc::new(LoopControl::default());
            let runner = RoleRunner {
                case: Arc::clone(&case),
                assignment: Arc::clone(&assignment),
                pattern,
                number,
                arena,
                elsewhere,
                control: Arc::clone(&loop_control),
                barrier: Arc::clone(&barrier),
                commands,
                reports: says.clone(),
            };
            // What the kernel shows of it to `explain`, also to that of another run.
            let thread = threads::spawn_named(
                "measure",
                &format!("wg-{}-{number}", role.name()),
                move || runner.run(),
            );
            let thread = thread.map_err(unable("an agent"))?;
            all.push(AgentThread { ask, thread, loop_control });
        }
        let controls: Vec<_> = all.iter().map(|one| Arc::clone(&one.loop_control)).collect();
        start_waker(controls.clone()).map_err(unable("an agent"))?;
        let control = listen(controls, case.queue_time(), says)?;
        let transport = case.transport;
        Ok(AgentThreads {
            control,
            threads: all,
            memory,
            reports,
            remote,
            trace,
            clock,
            transport,
            is_over,
        })
    }

    /// Runs the round, from the addresses to the outcomes.
    fn play(mut self, output: &mut impl io::Write) -> Result<Next, AgentError> {
        let played = self.run_to_end(output);
        self.is_over.store(true, Ordering::Relaxed);
        if played.is_err() {
            self.threads.iter().for_each(|one| one.loop_control.stop());
        }
        // All drop their endpoints at once: an adapter takes some time for each.
        let threads: Vec<_> = self.threads.drain(..).map(|one| one.thread).collect();
        // Where one failed the others have time for an orderly exit: they may have names to remove.
        let deadline = played.is_err().then(|| Instant::now() + LEAVING);
        let is_early = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        while threads.iter().any(|thread| !thread.is_finished()) && is_early() {
            std::thread::sleep(PAUSE);
        }
        played
    }

    fn run_to_end(&mut self, output: &mut impl io::Write) -> Result<Next, AgentError> {
        let addresses = self.each(|said| match said {
            ThreadReport::Opened(addresses) => Some(addresses),
            _ => None,
        })?;
        frame::write(output, &FromAgent::Opened(addresses))?;
        let Ok(ToAgent::Connect(others)) = self.control.recv() else {
            return Err(FrameError::Closed.into());
        };
        if others.len() != self.threads.len() {
            let sentence = "the controller sent addresses for another number of threads";
            return Err(AgentError::Refused(sentence.into()));
        }
        for (member, others) in self.threads.iter().zip(others) {
            let _ = member.ask.send(ThreadCommand::Connect(others));
        }
        let settings = self.each(|said| match said {
            ThreadReport::Connected(settings) => Some(settings),
            _ => None,
        })?;
        let device = settings.first().and_then(self.transport.descriptor().device_path);
        frame::write(output, &FromAgent::Connected(settings))?;
        let Ok(ToAgent::Start(at)) = self.control.recv() else {
            return Err(FrameError::Closed.into());
        };
        for member in &self.threads {
            let _ = member.ask.send(ThreadCommand::Start(at));
        }
        self.report_ends(device.as_ref(), output)?;
        // Endpoints live until the controller knows of the end, so that the peer can read all that
        // is in flight before it sees a closed connection.
        loop {
            match self.control.recv() {
                Ok(ToAgent::Again) => return Ok(Next::Round),
                Ok(_) => {}
                Err(_) => return Ok(Next::Exit),
            }
        }
    }

    /// Waits for one report of each thread.
    fn each<T>(&self, take: impl Fn(ThreadReport) -> Option<T>) -> Result<Vec<T>, AgentError> {
        let mut all: Vec<Option<T>> = self.threads.iter().map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            let (number, said) = self.reports.recv().map_err(|_| FrameError::Closed)?;
            if let (Some(place), Some(taken)) = (all.get_mut(number), take(said?)) {
                *place = Some(taken);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// The next report, while this device is there and it is not yet this time.
    fn next_report(
        &self,
        device: Option<&(String, PathBuf)>,
        until: Option<Instant>,
    ) -> Result<Report, AgentError> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let got = match device.map(|_| LOOK).into_iter().chain(left).min() {
                Some(time) => self.reports.recv_timeout(time),
                None => self.reports.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match got {
                Ok(report) => return Ok(report),
                Err(RecvTimeoutError::Disconnected) => return Err(FrameError::Closed.into()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some((name, _)) = device.filter(|(_, file)| !file.exists()) {
                let sentence = format!("the device {name} was removed while the round ran");
                return Err(AgentError::Unable(sentence));
            }
            if left.is_some_and(|left| left.is_zero()) {
                let sentence = "a loop did not end when it was told to".to_string();
                return Err(AgentError::Unable(sentence));
            }
        }
    }

    /// Reports how the threads ended, once all have: nothing is sent while a round runs. A failure
    /// is reported at once.
    fn report_ends(
        &mut self,
        device: Option<&(String, PathBuf)>,
        output: &mut impl io::Write,
    ) -> Result<(), AgentError> {
        let mut held: Vec<(usize, Box<Outcome>, Arena)> = Vec::new();
        let mut running: BTreeSet<usize> = (0..self.threads.len()).collect();
        let (mut at_once, mut until) = (false, None);
        while !running.is_empty() {
            let (number, said) = match self.next_report(device, until) {
                Ok(report) => report,
                Err(error) => {
                    self.send_ended(&mut held, output)?;
                    self.send_unfinished(&running, output)?;
                    return Err(error);
                }
            };
            if matches!(said, Ok(ThreadReport::ToldToStop)) {
                until = until.or_else(|| Some(Instant::now() + STUCK));
            }
            let ThreadReport::Ended(outcome, arena) = said? else { continue };
            running.remove(&number);
            at_once |= !outcome.ended.as_planned();
            held.push((number, outcome, arena));
            if running.is_empty() || at_once {
                self.send_ended(&mut held, output)?;
            }
        }
        Ok(())
    }

    /// Sends what threads that have ended left, which is not held any more.
    fn send_ended(
        &mut self,
        held: &mut Vec<(usize, Box<Outcome>, Arena)>,
        output: &mut impl io::Write,
    ) -> Result<(), AgentError> {
        if let Some(trace) = self.trace.take() {
            trace.send(&self.clock, output)?;
        }
        for (number, outcome, arena) in held.drain(..) {
            let thread = number as u32;
            if let Some(clock) = &self.remote {
                remote_memory::send_rows(thread, arena.rows(), clock, output)?;
            }
            frame::write(output, &FromAgent::Ended { thread, outcome })?;
        }
        Ok(())
    }

    /// Sends what threads that do not end have measured: their controller cannot read it.
    fn send_unfinished(
        &self,
        running: &BTreeSet<usize>,
        output: &mut impl io::Write,
    ) -> Result<(), AgentError> {
        let Some(clock) = &self.remote else { return Ok(()) };
        for &number in running {
            let arena = Arena::open(&self.memory[number]).map_err(unable("the sample memory"))?;
            let (rows, _) = arena.look(0, usize::MAX);
            remote_memory::send_rows(number as u32, &rows, clock, output)?;
        }
        Ok(())
    }
}
