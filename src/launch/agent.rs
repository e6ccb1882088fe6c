//! The agent: the process that plays one role of one round, told everything by the driver over its
//! standard input and output.
//!
//! Two threads: the main one prepares and plays; the control thread sleeps in `read`, and when the
//! driver says stop or expect while a round runs, it sets the gate and interrupts the loop's sleep.

use super::apart;
use super::clocks;
use super::frame::{self, FrameError};
use super::protocol::*;
use super::rehearse;
use crate::clock::exchange::Local;
use crate::clock::{Clock, TickSpan, Ticks, Timebase, Tsc};
use crate::host::interrupt::{self, Interrupter};
use crate::host::{self, ResourceUse};
use crate::pattern::Loop;
use crate::pattern::gate::Gate;
use crate::pattern::role::{self, ADAPTIVE_SPIN, Part};
use crate::pattern::schedule::Generator;
use crate::pattern::stamper::{self, Stamper};
use crate::pattern::store::Store;
use crate::plan::Pattern;
use crate::sample::arena::Arena;
use crate::sample::recorder::Recorder;
use crate::transport::{
    Blob, Endpoint, Opening, Role, Setup, SetupError, Slot, Transport, TransportKind, Visitor,
    synthetic, with_transport,
};
use crate::units::Span;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The hidden command that makes a process an agent.
pub const PLAY: &str = "play-role";
/// Between two interrupts of a loop that is to look at its gate: a signal that comes just before a
/// system call is missed, so it is repeated.
const REPEAT: Duration = Duration::from_millis(5);

/// How long a greeting may take. A driver greets at once.
const GREETING: Duration = Duration::from_secs(10);

/// Why an agent ends before its round is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentError {
    #[error("{0}")]
    Refused(String),
    #[error("nobody greeted this agent; wiregauge starts its agents itself")]
    NotGreeted,
    #[error("{0}")]
    Unable(String),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl From<SetupError> for AgentError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::NotAllowed(sentence) => AgentError::Refused(sentence),
            error => AgentError::Unable(error.to_string()),
        }
    }
}

fn unable(what: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |error| AgentError::Unable(format!("{what}: {error}"))
}

/// Serves one round over standard input and output; the process's exit code.
pub fn main() -> u8 {
    let gate = Arc::new(Gate::default());
    // Not locked: the thread that tells of progress speaks too, and a frame is written whole.
    let mut output = io::stdout();
    let watch = await_greeting();
    let greeted = greet(&mut output);
    drop(watch);
    let served = greeted.and_then(|()| {
        let (sender, control) = mpsc::channel();
        interrupt::install().map_err(unable("installing a signal handler"))?;
        listen(Interrupter::this_thread(), Arc::clone(&gate), sender);
        serve(&control, &gate, &mut output)
    });
    gate.leave();
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
    let known = told.and_then(|hex| super::secret::from_hex(&hex));
    if known != Some(secret) && !is_let_in {
        return Err(AgentError::Refused(
            "the driver's secret is not the one that this agent was started with".into(),
        ));
    }
    let tool = env!("CARGO_PKG_VERSION").to_string();
    frame::write(output, &FromAgent::Welcome { pid: std::process::id(), tool })?;
    Ok(())
}

/// Starts the control thread. It must start before the main thread is pinned, since a thread
/// inherits its maker's CPUs and must not run on the measuring one.
fn listen(loop_thread: Interrupter, gate: Arc<Gate>, control: Sender<ToAgent>) {
    std::thread::spawn(move || {
        loop {
            match frame::read(&mut io::stdin().lock()) {
                Ok(ToAgent::Expect(messages)) => {
                    gate.expect(messages);
                    wake(&loop_thread, &gate);
                }
                Ok(ToAgent::Stop) | Err(_) => {
                    gate.stop();
                    wake(&loop_thread, &gate);
                    return;
                }
                Ok(other) => {
                    if control.send(other).is_err() {
                        return;
                    }
                }
            }
        }
    });
}

/// Interrupts the loop's sleep until it has left, or until nothing more can be gained.
fn wake(loop_thread: &Interrupter, gate: &Arc<Gate>) {
    let (loop_thread, gate) = (loop_thread.clone(), Arc::clone(gate));
    std::thread::spawn(move || {
        while !gate.has_left() {
            loop_thread.interrupt();
            std::thread::sleep(REPEAT);
        }
    });
}

fn serve(
    control: &Receiver<ToAgent>,
    gate: &Arc<Gate>,
    output: &mut impl io::Write,
) -> Result<(), AgentError> {
    let assignment = match control.recv() {
        Ok(ToAgent::Open(assignment)) => assignment,
        Ok(ToAgent::Look(look)) => {
            let said = match apart::look(&look) {
                Ok(seen) => FromAgent::Seen(Box::new(seen)),
                Err(sentence) => FromAgent::Refused { wrong_use: true, sentence },
            };
            return Ok(frame::write(output, &said)?);
        }
        Ok(ToAgent::KeepTime(asked)) => return clocks::keep_time(&asked, control, output),
        _ => return Err(FrameError::Closed.into()),
    };
    let round = RoundOf { assignment: &assignment, control, gate, output };
    with_transport(assignment.case.transport, round)
}

/// A visitor: one round on one transport.
struct RoundOf<'a, O> {
    assignment: &'a Assignment,
    control: &'a Receiver<ToAgent>,
    gate: &'a Arc<Gate>,
    output: &'a mut O,
}

impl<O: io::Write> Visitor for RoundOf<'_, O> {
    type Output = Result<(), AgentError>;

    fn visit<T: Transport>(self) -> Self::Output {
        let time = self.assignment.time;
        match (self.assignment.case.transport, self.assignment.clock.of_the_kernel()) {
            // A simulated transport brings its own time.
            (TransportKind::Synthetic, _) => {
                self.run::<T, _>(synthetic::clock(), Timebase::nanoseconds(Ticks(0)))
            }
            (_, None) => self.run::<T, _>(Tsc, time),
            (_, Some(clock)) => self.run::<T, _>(clock, time),
        }
    }
}

impl<O: io::Write> RoundOf<'_, O> {
    fn run<T: Transport, C: Clock>(self, clock: C, time: Timebase) -> Result<(), AgentError> {
        let RoundOf { assignment, control, gate, output } = self;
        let case = &assignment.case;
        let allowed = host::allowed_cpus();
        let pinned = match assignment.cpu {
            Some(cpu) => host::pin_to(cpu).map_err(|error| error.to_string()),
            None => Err("no CPU of its own was to be had".to_string()),
        };
        let mut arena = apart::memory(assignment, &allowed).map_err(unable("the sample memory"))?;
        let locked = host::lock(arena.writer().0).map_err(|error| error.to_string());
        let opening = T::open(&setup(assignment)).map_err(AgentError::from)?;
        frame::write(output, &FromAgent::Opened(opening.address()))?;

        let Ok(ToAgent::Connect(other)) = control.recv() else {
            return Err(FrameError::Closed.into());
        };
        let mut endpoint = opening.connect(&other).map_err(AgentError::from)?;
        let ticks = |span: Span| time.ticks_for(span.0 as f64);
        let plan = plan_of(assignment, ticks, arena.capacity() as u64);
        if case.pattern == Pattern::Load && case.size != case.load.message() {
            let sentence = "a message of load is as long as an object and its head";
            return Err(AgentError::Refused(sentence.into()));
        }
        let serves = case.pattern == Pattern::Load && assignment.role == Role::Server;
        let store = serves.then(|| Store::of(&case.load));
        let rehearsal = rehearse::instrument(clock, &plan, assignment.floor);
        let real = case.transport != TransportKind::Synthetic;
        let noise = assignment
            .cpu
            .filter(|_| real && pinned.is_ok())
            .map(|cpu| host::spin(cpu, clock, &time, assignment.noise.0 as f64));
        frame::write(output, &FromAgent::Connected(T::granted(&endpoint)))?;

        let Ok(ToAgent::Start) = control.recv() else {
            return Err(FrameError::Closed.into());
        };
        let spin = ticks(ADAPTIVE_SPIN);
        let mut recorder = Recorder::new(&mut arena, case.warmup);
        let used = ResourceUse::of_thread();
        let begin = clock.now();
        let stamping = stamp_while(assignment, &plan, &mut endpoint, &allowed)?;
        let generator = generator(assignment, &time)?;
        let part = Part { endpoint: &mut endpoint, clock, gate, plan: &plan, generator, store };
        let ended = role::play(case, assignment.role, part, &mut recorder, spin);
        drop(stamping);
        let end = clock.now();
        let used = ResourceUse::of_thread().since(&used);
        let server_seen = play_server::<T, C>(assignment, clock, gate, &plan)?;
        gate.leave();
        let outcome = Outcome {
            afterwards: T::afterwards(&endpoint),
            strangers: T::strangers(&endpoint),
            ended,
            seen: recorder.seen,
            server_seen,
            usage: used,
            pinned,
            locked,
            span: (begin, end),
            noise,
            floor: rehearsal.floor,
            recording_ticks: rehearsal.recording_ticks,
            pool: recorder.pool,
            beyond: recorder.into_beyond(),
        };
        if let Some(Apart { untrue, .. }) = assignment.apart {
            let clock = Local { source: assignment.clock, time, untrue };
            apart::hand_over(&arena, &clock, output)?;
        }
        frame::write(output, &FromAgent::Ended(Box::new(outcome)))?;
        // The endpoint lives until the driver has heard of the end, so that the other end does not
        // see a closed connection before it has read what is on the way.
        while control.recv().is_ok() {}
        Ok(())
    }
}

/// What the transport is told.
fn setup(assignment: &Assignment) -> Setup {
    let setup = role::setup(&assignment.case, assignment.role, assignment.cookie);
    let site = assignment.site.clone().unwrap_or(setup.site);
    Setup { site, ..setup }
}

/// The case as this end's loop needs it.
fn plan_of(assignment: &Assignment, ticks: impl Fn(Span) -> TickSpan, rows: u64) -> Loop {
    let case = &assignment.case;
    let mut plan = Loop::of(case, ticks);
    if case.pattern == Pattern::Oneway {
        // Both ends' stamps are joined by number: a message without a row has no latency.
        plan.messages = plan.messages.min(rows);
    }
    if case.options.stamps_send() && assignment.role == Role::Client {
        plan.stamper = Some(Arc::new(Stamper::default()));
    }
    plan
}

/// What says when to send; made by the thread that waits for it.
fn generator(assignment: &Assignment, time: &Timebase) -> Result<Option<Generator>, AgentError> {
    match assignment.role {
        Role::Client => Generator::of(&assignment.case, time).map_err(unable("the timer")),
        Role::Server => Ok(None),
    }
}

/// Ends the thread that stamps when it goes.
struct Stamping(Arc<Stamper>);

impl Drop for Stamping {
    fn drop(&mut self) {
        self.0.disarm();
        self.0.end();
    }
}

/// Starts the thread that keeps writing the time into messages, where the case asks for it: on
/// another CPU than the loop's, which would leave it no time.
fn stamp_while<E: Endpoint>(
    assignment: &Assignment,
    plan: &Loop,
    endpoint: &mut E,
    allowed: &[u32],
) -> Result<Option<Stamping>, AgentError> {
    let Some(stamper) = &plan.stamper else { return Ok(None) };
    let Some(word) = endpoint.live(Slot::sending(0), stamper::AT) else {
        return Err(AgentError::Refused(
            "--stamp-send is not possible here: the adapter copies a message when it is posted"
                .into(),
        ));
    };
    let own = assignment.cpu;
    let elsewhere = allowed.iter().copied().rfind(|cpu| Some(*cpu) != own);
    let (shared, source) = (Arc::clone(stamper), assignment.clock);
    std::thread::spawn(move || {
        if let Some(cpu) = elsewhere {
            // Where that fails it runs beside the loop, and the times are older.
            let _ = host::pin_to(cpu);
        }
        match source.of_the_kernel() {
            None => shared.run(&word, Tsc),
            Some(clock) => shared.run(&word, clock),
        }
    });
    Ok(Some(Stamping(Arc::clone(stamper))))
}

/// The server's turn, where one process plays both roles and the pattern stamps at the server.
fn play_server<T: Transport, C: Clock>(
    assignment: &Assignment,
    clock: C,
    gate: &Arc<Gate>,
    plan: &Loop,
) -> Result<Option<crate::sample::recorder::Seen>, AgentError> {
    let case = &assignment.case;
    let Some(path) = &assignment.server_arena else { return Ok(None) };
    if matches!(case.pattern, Pattern::Latency | Pattern::Load) {
        return Ok(None);
    }
    let mut arena = Arena::open(path).map_err(unable("the server's sample memory"))?;
    let mut endpoint = T::open(&role::setup(case, Role::Server, assignment.cookie))
        .and_then(|opening| opening.connect(&Blob::default()))
        .map_err(|error| AgentError::Unable(error.to_string()))?;
    let mut recorder = Recorder::new(&mut arena, case.warmup);
    let part = Part {
        endpoint: &mut endpoint,
        clock,
        gate: gate.as_ref(),
        plan,
        generator: None,
        store: None,
    };
    role::play(case, Role::Server, part, &mut recorder, TickSpan(0));
    Ok(Some(recorder.seen))
}
