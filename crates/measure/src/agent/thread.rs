//! One thread of an agent: it has a CPU and sample memory, opens and connects endpoints of its own,
//! and runs a role of the case by itself, beside the other threads of its end.
//!
//! The agent's main thread keeps the channel and passes on what is said (`ThreadCommand`,
//! `ThreadReport`).

use crate::agent::connections::{self, Connections};
use crate::agent::device_stamps::{by_device, read_device};
use crate::agent::error::{AgentError, unable};
use crate::agent::execution::{PatternExecution, RoleLoop, ThreadContext};
use crate::agent::rehearse;
use crate::agent::setup::{device, setup};
use crate::control::protocol::*;
use crate::loops::gate::Gate;
use crate::loops::schedule::Generator;
use crate::loops::stamper::{self, Stamper};
use crate::loops::waiter::{ADAPTIVE_SPIN, AnyWaiter};
use crate::loops::{Loop, LoopContext};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;
use wiregauge_base::threads;
use wiregauge_base::units::Span;
use wiregauge_clock::exchange::Local;
use wiregauge_clock::{AnyClock, Clock, TickSpan, Ticks, Timebase, epoch_of_day};
use wiregauge_host::interrupt::Interrupter;
use wiregauge_host::{
    Claims, ControlGroups, NetCounters, Noise, ResourceUse, Suspension, Throttled, Tree,
};
use wiregauge_plan::Case;
use wiregauge_sample::arena::Arena;
use wiregauge_sample::recorder::{MessageCounts, Recorder};
use wiregauge_signal::TimeOfDay;
use wiregauge_transport::counter::{FinalCounters, moved};
use wiregauge_transport::{Blob, Rank, Role, Setup};

/// Between two interrupts of a loop that is to look at its gate: a signal that comes just before a
/// system call is missed, so it is repeated.
const REPEAT: Duration = Duration::from_millis(5);

/// How often a thread that waits for an agreed instant looks whether the round is to end.
const LOOK: Span = Span(1_000_000);

/// Sleep of a node that waits for a later instant than the next [`LOOK`].
const NAP: Duration = Duration::from_micros(500);

/// Exit code of a process that has panicked.
const PANICKED: i32 = 101;

/// Whether another run measured on these CPUs.
fn has_others(mut claims: Claims) -> bool {
    claims.look();
    !claims.shared().is_empty()
}

/// What the main thread sends to one that runs a role.
pub(crate) enum ThreadCommand {
    Connect(Vec<Blob>),
    Start(Option<Ticks>),
}

/// What that one answers.
pub(crate) enum ThreadReport {
    Opened(Vec<Blob>),
    Connected(Vec<(String, String)>),
    Ended(Box<Outcome>, Arena),
    /// Of the control thread: all are told to stop.
    ToldToStop,
}

/// How the control thread reaches a thread that runs a role.
#[derive(Default)]
pub(crate) struct LoopControl {
    pub gate: Gate,
    thread: OnceLock<Interrupter>,
    /// The loop has ended: nobody needs to be woken any more.
    has_left: AtomicBool,
    /// There is something new behind the gate.
    is_called: AtomicBool,
    /// The thread that interrupts this one's sleep.
    waker: OnceLock<Thread>,
}

impl LoopControl {
    /// Ends the loop.
    pub fn stop(&self) {
        self.gate.stop();
        self.wake();
    }

    /// Has the loop's sleep interrupted until it has left.
    pub fn wake(&self) {
        self.is_called.store(true, Ordering::Release);
        self.waker.get().inspect(|waker| waker.unpark());
    }

    /// The loop has ended.
    fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
        self.waker.get().inspect(|waker| waker.unpark());
    }

    fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }
}

/// Starts the thread that interrupts the sleep of loops, before there is need of it: then it may be
/// too late to start one. It sleeps until it is called, and ends with the last loop.
pub(crate) fn start_waker(loops: Vec<Arc<LoopControl>>) -> io::Result<()> {
    let (hands_over, controls) = mpsc::channel::<Vec<Arc<LoopControl>>>();
    let thread = threads::spawn("wake the loops", move || {
        interrupt_called(&controls.recv().unwrap_or_default());
    })?;
    for one in &loops {
        let _ = one.waker.set(thread.thread().clone());
    }
    let _ = hands_over.send(loops);
    Ok(())
}

fn interrupt_called(loops: &[Arc<LoopControl>]) {
    while loops.iter().any(|one| !one.has_left()) {
        let mut is_one_called = false;
        for one in loops.iter().filter(|one| one.is_called.load(Ordering::Acquire)) {
            if !one.has_left() {
                is_one_called = true;
                one.thread.get().inspect(|thread| thread.interrupt());
            }
        }
        if is_one_called {
            std::thread::sleep(REPEAT);
        } else {
            std::thread::park();
        }
    }
}

/// Where the threads of an end wait for each other, so that all loops begin together.
/// It holds how many have not come yet.
pub(crate) struct ThreadBarrier(AtomicUsize);

impl ThreadBarrier {
    pub fn new(threads: usize) -> ThreadBarrier {
        ThreadBarrier(AtomicUsize::new(threads))
    }

    /// Comes back when all have come, or when the round is to end. A thread that waits gives its
    /// CPU to one that shares it and has not come yet.
    fn wait(&self, gate: &Gate) {
        self.0.fetch_sub(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) > 0 && !gate.is_stopped() {
            std::thread::yield_now();
        }
    }
}

/// All that a thread needs to run a role.
pub(crate) struct RoleRunner {
    pub case: Arc<Case>,
    pub assignment: Arc<Assignment>,
    /// What is run.
    pub pattern: &'static dyn PatternExecution,
    /// Its number.
    pub number: usize,
    /// Where its sample memory is.
    pub arena: PathBuf,
    /// A CPU on which no thread of this end measures.
    pub elsewhere: Option<u32>,
    pub control: Arc<LoopControl>,
    pub barrier: Arc<ThreadBarrier>,
    pub commands: Receiver<ThreadCommand>,
    pub reports: Sender<(usize, Result<ThreadReport, AgentError>)>,
}

impl RoleRunner {
    /// Runs the role, and stays until the main thread lets go of it: its end of the connection must
    /// not close before the other end has read what is on the way.
    pub fn run(self) {
        let _ = self.control.thread.set(Interrupter::this_thread());
        let (reports, number, control) =
            (self.reports.clone(), self.number, Arc::clone(&self.control));
        // The message is on stderr by then; the controller knows a panic by the code.
        let ended = catch_unwind(AssertUnwindSafe(|| self.round()));
        if let Err(error) = ended.unwrap_or_else(|_| std::process::exit(PANICKED)) {
            let _ = reports.send((number, Err(error)));
        }
        control.leave();
    }

    fn report(&self, report: ThreadReport) {
        // A main thread that is gone takes the process with it.
        let _ = self.reports.send((self.number, Ok(report)));
    }

    fn cpu(&self) -> Option<u32> {
        self.assignment.slots.get(self.number).and_then(|slot| slot.cpu)
    }

    /// That it measures on its CPU. On its own host the controller says so for all agents.
    fn claims(&self) -> Option<Claims> {
        let is_alone = self.assignment.remote_rows.is_some();
        let is_real = !self.case.transport.simulates_time();
        (is_alone && is_real).then(|| Claims::of(self.assignment.run, self.cpu()))
    }

    /// The clock that stamps, and its ticks in time. A simulated transport brings its own.
    fn clock(&self) -> (AnyClock, Timebase) {
        match self.case.transport.descriptor().virtual_clock {
            Some(clock) => (AnyClock::Virtual(clock()), Timebase::nanoseconds(Ticks(0))),
            None => (self.assignment.clock.source.clock(), self.assignment.clock.time),
        }
    }

    /// Reads the counters of this host's network before a round: one thread of each host does, of a
    /// transport over IP.
    fn network_counters(&self) -> Option<NetCounters> {
        let is_first = self.number == 0 && self.case.transport.has_setting("interface");
        let is_client = self.assignment.role.side() == Role::Client;
        let is_of_host = is_client || self.case.topology.is_between_hosts();
        (is_first && is_of_host).then(NetCounters::read)
    }

    /// Notes what the CPU quota has done to this process before a round: one thread of each does.
    fn quota_watch(&self) -> Option<QuotaWatch> {
        let is_real = !self.case.transport.simulates_time();
        (self.number == 0 && is_real).then(QuotaWatch::begin)
    }

    /// Binds it to its CPU.
    fn pin(&self) -> Result<(), String> {
        wiregauge_host::pin_to(self.cpu().ok_or("no CPU was free for it")?)
    }

    /// Leaves the descriptors of the other threads, which wait for it: what it measures then costs
    /// what it costs a program of one thread. Whether it could. Threads of one end have libraries
    /// in common that keep descriptors, and so have the rounds of a process that a launcher has
    /// started.
    fn takes_own_descriptors(&self) -> bool {
        let is_alone = self.assignment.slots.len() == 1;
        let is_launched = self.case.transport.descriptor().launcher.is_some();
        is_alone && !is_launched && wiregauge_host::own_descriptors().is_ok()
    }

    fn round(self) -> Result<(), AgentError> {
        let ((clock, time), case, assignment) = (self.clock(), &*self.case, &*self.assignment);
        let pinned = self.pin();
        let mut arena = Arena::open(&self.arena).map_err(unable("the sample memory"))?;
        // The main thread gets this memory when the round is over, and closes it.
        let own_descriptors = self.takes_own_descriptors();
        let locked = hold(&mut arena);
        let claims = self.claims();
        let context = self.context(&time, arena.capacity() as u64);
        let (plan, mut role_loop) = context.prepare(self.pattern)?;
        let (look, spin) = (context.ticks(LOOK), context.ticks(ADAPTIVE_SPIN));
        let Some(mut connections) = self.connect()? else { return Ok(()) };
        role_loop.connected(&connections.set)?;
        self.stamp_ends(&mut connections)?;
        let rehearse::Rehearsal { overhead, recording_ticks } =
            rehearse::instrument(clock, &plan, assignment.overhead_messages);
        let host = HostWatch { network: self.network_counters(), quota: self.quota_watch() };
        let noise = self.noise(clock, &time, pinned.is_ok());
        self.report(ThreadReport::Connected(connections.effective_settings.clone()));

        let Ok(ThreadCommand::Start(at)) = self.commands.recv() else { return Ok(()) };
        let mut recorder = Recorder::new(&mut arena, case.warmup);
        let stamping = self.stamp_while(&plan, &mut connections)?;
        let generator = self.generator(&time)?;
        let (used, suspension) = (ResourceUse::of_thread(), Suspension::now());
        let device = read_device(clock, &connections);
        let begin = self.begin(clock, at, look, &mut *role_loop);
        let ended = role_loop.run(LoopContext {
            endpoint: &mut connections.set,
            waiter: AnyWaiter::new(case.wait, spin),
            clock,
            gate: &self.control.gate,
            plan: &plan,
            generator,
            recorder: &mut recorder,
        });
        drop(stamping);
        let end = clock.now();
        let usage = ResourceUse::of_thread().since(&used).and(&role_loop.used_beside());
        let server_counts = self.run_server(clock, &time)?;
        self.control.leave();
        let (pool, counts, beyond) = (recorder.pool, recorder.seen, recorder.into_beyond());
        let by_device = device.and_then(|first| {
            let readings = (first, read_device(clock, &connections)?);
            Some(by_device(arena.writer().0, connections.device_clock()?.stamps(), readings, &time))
        });
        let counters = connections.final_counters().into_iter().chain(host.counters());
        let outcome = Outcome {
            counters: BTreeMap::from_iter(counters.chain(by_device).chain(role_loop.finish())),
            rejected_peers: connections.rejected_peers(),
            ended,
            counts,
            server_counts,
            usage,
            suspension: Suspension::now().since(suspension),
            pinned,
            shares_cpu: claims.is_some_and(has_others),
            locked,
            own_descriptors,
            span: (begin, end),
            noise,
            overhead,
            recording_ticks,
            pool,
            beyond,
        };
        self.report(ThreadReport::Ended(Box::new(outcome), arena));
        while self.commands.recv().is_ok() {}
        Ok(())
    }

    /// What the pattern is told of this thread.
    fn context<'a>(&'a self, time: &'a Timebase, rows: u64) -> ThreadContext<'a> {
        let assignment = &*self.assignment;
        ThreadContext {
            case: &self.case,
            role: assignment.role,
            thread: self.number_of_role(),
            time,
            epoch_of_day_ns: self.epoch_of_day(time),
            rows,
            free_cpu: assignment.cpu_free(),
            cpu_beside: self.elsewhere,
            shares_cpu: assignment.shares_cpu(self.number),
            is_remote: assignment.remote_rows.is_some(),
        }
    }

    /// Its number among the threads of all ranks of its role.
    fn number_of_role(&self) -> u32 {
        let before = self.case.topology.first_thread(self.assignment.rank as usize);
        before.saturating_add(self.number as u32)
    }

    /// Time of day at the epoch of the agent's clock: as the controller says, or as this host knows
    /// it.
    fn epoch_of_day(&self, time: &Timebase) -> u64 {
        let assignment = &*self.assignment;
        let own = || epoch_of_day(assignment.clock.source, time);
        assignment.epoch_of_day_ns.unwrap_or_else(own)
    }

    /// What the transport is told.
    fn setup(&self) -> Setup {
        let assignment = &*self.assignment;
        let setup = setup(&self.case, assignment.role, assignment.cookie);
        let site = assignment.site.clone().unwrap_or(setup.site);
        let Local { source, time, .. } = &assignment.clock;
        let since = time.local(source.read()).0.max(0.0) as u64;
        let epoch = self.epoch_of_day(time);
        let rank = Rank { number: assignment.rank, ..setup.rank };
        let device = device(&self.case, assignment.rank as usize, &site);
        let opened = TimeOfDay::from_ns(epoch.wrapping_add(since));
        Setup { site, device, rank, opened, ..setup }
    }

    /// The server's turn, where one process simulates both roles and the server stamps.
    fn run_server(
        &self,
        clock: AnyClock,
        time: &Timebase,
    ) -> Result<Option<MessageCounts>, AgentError> {
        let assignment = &*self.assignment;
        let stamps = self.case.profile().stamps_at_server;
        let Some(path) = assignment.server_arena.as_ref().filter(|_| stamps) else {
            return Ok(None);
        };
        let mut arena = Arena::open(path).map_err(unable("the server's sample memory"))?;
        let thread = self.context(time, arena.capacity() as u64);
        let thread = ThreadContext { role: Role::Server, ..thread };
        let gate = &self.control.gate;
        Ok(Some(thread.simulate(self.pattern, assignment.cookie, clock, gate, &mut arena)?.0))
    }

    /// Opens its ends, reports their addresses, and connects them; `None`: nobody wants that.
    fn connect(&self) -> Result<Option<Connections>, AgentError> {
        let case = &self.case;
        let openings = connections::open(case, &self.setup(), self.number)?;
        let addresses = openings.iter().map(|opening| opening.address.clone()).collect();
        self.report(ThreadReport::Opened(addresses));
        let Ok(ThreadCommand::Connect(others)) = self.commands.recv() else { return Ok(None) };
        let connections = Connections::connect(case, openings, &others)?;
        // All libraries of the transport are loaded by now.
        wiregauge_host::prefault();
        Ok(Some(connections))
    }

    /// What says when to send; made by the thread that waits for it. Each thread may
    /// have its share of the load, by a schedule of its own.
    fn generator(&self, time: &Timebase) -> Result<Option<Generator>, AgentError> {
        if self.assignment.role == Role::Server {
            return Ok(None);
        }
        let share = self.pattern.share(&self.case, self.number_of_role());
        Generator::of(share.as_ref().unwrap_or(&self.case), time).map_err(unable("the timer"))
    }

    /// Waits for the other threads of this end, then for the agreed instant, where there is one;
    /// when it begins. It waits busily, and looks now and then whether the round is to end.
    fn begin(
        &self,
        clock: AnyClock,
        at: Option<Ticks>,
        look: TickSpan,
        role_loop: &mut dyn RoleLoop,
    ) -> Ticks {
        let gate = &self.control.gate;
        self.barrier.wait(gate);
        if let Some(at) = at {
            // Of many nodes on a CPU those that wait busily would keep the others from coming.
            let sleeps = self.case.topology.has_nodes();
            while sleeps && clock.now() + look + look < at && !gate.is_stopped() {
                std::thread::sleep(NAP);
            }
            gate.idle_until(clock, at, look);
        }
        let now = clock.now();
        role_loop.begins(at.unwrap_or(now));
        now
    }

    /// What the CPU does by itself, where the thread has it and time is real.
    fn noise(&self, clock: AnyClock, time: &Timebase, is_pinned: bool) -> Option<Noise> {
        let is_real = !matches!(clock, AnyClock::Virtual(_));
        let cpu = self.cpu().filter(|_| is_real && is_pinned)?;
        Some(wiregauge_host::spin(cpu, clock, time, self.assignment.noise.0 as f64))
    }

    /// Has the controller's memory for stamps used, where there is one.
    fn stamp_ends(&self, connections: &mut Connections) -> Result<(), AgentError> {
        let slot = self.assignment.slots.get(self.number);
        let Some(path) = slot.and_then(|slot| slot.stamps.as_ref()) else { return Ok(()) };
        let memory = Arena::open(path).map_err(unable("the memory for stamps"))?;
        let stamped = connections.stamp(&self.case, self.assignment.clock.source, memory);
        stamped.map_err(unable("stamps of the kernel"))
    }

    /// Starts the thread that keeps writing the time into messages, where the case asks for it: on
    /// another CPU than the loop's, which would leave it no time.
    fn stamp_while(
        &self,
        plan: &Loop,
        connections: &mut Connections,
    ) -> Result<Option<Stamping>, AgentError> {
        let Some(stamper) = &plan.stamper else { return Ok(None) };
        let Some(word) = connections.live_word(stamper::AT) else {
            return Err(AgentError::Refused(
                "--stamp-send is not supported here: the adapter copies a message when it is posted"
                    .into(),
            ));
        };
        let elsewhere = self.elsewhere;
        let (shared, clock) = (Arc::clone(stamper), self.assignment.clock.source.clock());
        let started = threads::spawn("stamp messages", move || {
            // Where that fails it runs beside the loop, and the times are older.
            let _ = elsewhere.map(wiregauge_host::pin_to);
            shared.run(&word, clock);
        });
        started.map_err(unable("--stamp-send"))?;
        Ok(Some(Stamping(Arc::clone(stamper))))
    }
}

/// Touches sample memory, and locks it where that is allowed: it is there all the same. Nobody else
/// writes rows before the round.
fn hold(arena: &mut Arena) -> Result<(), String> {
    let rows = arena.writer().0;
    wiregauge_host::touch(rows);
    wiregauge_host::lock(rows)
}

/// Returns the counters of this host's network that moved since.
fn network_moved(before: Option<NetCounters>) -> FinalCounters {
    let before = before.as_ref();
    before.map(|one| moved(one.by_name(), NetCounters::read().by_name())).unwrap_or_default()
}

/// Counters of this host before a round: of its network, and of its CPU quota.
struct HostWatch {
    network: Option<NetCounters>,
    quota: Option<QuotaWatch>,
}

impl HostWatch {
    /// Returns those that have moved.
    fn counters(self) -> FinalCounters {
        let mut counters = network_moved(self.network);
        counters.extend(self.quota.map(|watch| watch.counters()).unwrap_or_default());
        counters
    }
}

/// Counts the stops by a CPU quota from before the noise of the CPUs is measured to the end of the
/// round.
struct QuotaWatch {
    groups: ControlGroups,
    before: Throttled,
}

impl QuotaWatch {
    fn begin() -> QuotaWatch {
        let tree = Tree::default();
        let groups = ControlGroups::find(&tree);
        QuotaWatch { before: groups.throttled(&tree), groups }
    }

    /// Returns the counters of the group that have moved. All ends in it see the same.
    fn counters(&self) -> FinalCounters {
        let now = self.groups.throttled(&Tree::default());
        moved(&self.before.counters(), &now.counters())
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

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_test_support::bounded::Bound;

    #[test]
    fn nobody_passes_the_barrier_before_all_have_come() {
        let _bound = Bound::new();
        let barrier = Arc::new(ThreadBarrier::new(3));
        let passed = Arc::new(AtomicUsize::new(0));
        let cross = || {
            let (barrier, passed) = (Arc::clone(&barrier), Arc::clone(&passed));
            std::thread::spawn(move || {
                barrier.wait(&Gate::default());
                passed.fetch_add(1, Ordering::SeqCst);
            })
        };
        let (first, second) = (cross(), cross());
        while barrier.0.load(Ordering::SeqCst) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(passed.load(Ordering::SeqCst), 0);
        for thread in [first, second, cross()] {
            thread.join().unwrap();
        }
        assert_eq!(passed.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_round_that_is_to_end_waits_for_nobody() {
        let _bound = Bound::new();
        let gate = Gate::default();
        gate.stop();
        ThreadBarrier::new(2).wait(&gate);
    }
}
