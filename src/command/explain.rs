//! `explain`: a command's rounds with and without stamps of the kernel, in turns.

use super::measure::{execute_observed, nothing_works, prepared};
use super::{CommandError, Exit};
use crate::cli::{self, Command, RunOptions, Typed};
use crate::clock::{Anchor, Source, Timebase};
use crate::control::fault::Fault;
use crate::explain::path::{self, Way};
use crate::explain::program;
use crate::explain::stamps::Owners;
use crate::explain::{Explainer, Explanation, KernelClock, RoundTrace, Tracing};
use crate::host::trace::{Kind, Trace, TraceError, Tracer};
use crate::loops::socket_stamped::{LONGEST, READ_EVERY};
use crate::loops::stamped::MOST_STAMPS;
use crate::options::{UsageError, refuse};
use crate::plan::study::{self, Study};
use crate::plan::topology::Topology;
use crate::plan::{Case, Followed, Plan, Request};
use crate::run::RoundObserver;
use crate::sample::arena::Arena;
use crate::sample::{RoundSamples, Sample};
use crate::transport::{KernelPath, Role};
use crate::units::Bytes;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The series without stamps and the one with them.
const SERIES: [&str; 2] = ["untraced", "traced"];
/// Messages of a round unless said: their stamps fit the memory on any machine.
const MESSAGES: u64 = 20_000;
/// The longest message that a Unix socket keeps in one buffer.
const LONGEST_LOCAL: Bytes = Bytes(32 << 10);
/// The shortest datagram that has room for the number by which it is found.
const SHORTEST_NUMBERED: Bytes = Bytes(4);
/// The longest that the kernel keeps in one piece: its SKB_MAX_ALLOC (16 KiB) less what it adds.
const LONGEST_NUMBERED: Bytes = Bytes(15 << 10);
/// Connections that are told apart: the stamps of each are looked for by themselves.
const MOST_FOLLOWED: u32 = 64;
/// Traced rounds whose stamps are kept: 32 MiB each.
const MOST_ROUNDS: u32 = 10;

/// Measures, splits, explains.
pub fn explain(typed: &Typed) -> Result<Exit, CommandError> {
    let (request, options) = read(typed.operands("COMMAND"))?;
    let (plan, runs) = plan(&request)?;
    let done = prepared(request, &options, |_, _, hosts| {
        let observer = Observer::new(&plan, runs)?;
        execute_observed(&plan, hosts, &options, &observer, |_| observer.explanation())
    })?;
    Ok(done.unwrap_or_else(|unavailable| nothing_works(&unavailable)))
}

/// What is explained, as it was typed.
fn read(words: &[OsString]) -> Result<(Request, RunOptions), UsageError> {
    let all = [OsString::from("wiregauge")].into_iter().chain(words.iter().cloned());
    match cli::parse(&all.collect::<Vec<_>>())? {
        Command::Measure { options, .. } if options.causes => {
            refuse("explain names the causes of slow messages by itself: leave out --causes")
        }
        Command::Measure { mut request, options } => {
            if request.count.is_none() && request.time.is_none() {
                let threads = request.threads.iter().max().copied().unwrap_or(1);
                request.count = Some(MESSAGES / u64::from(threads.max(1)));
            }
            Ok((*request, options))
        }
        _ => refuse("explain takes a command that measures: use latency --transport tcp"),
    }
}

/// The runs of a plan that are compared.
#[derive(Clone, Copy)]
struct Runs {
    untraced: usize,
    traced: usize,
}

/// Both series, whose rounds take turns.
fn plan(request: &Request) -> Result<(Plan, Runs), UsageError> {
    let own = request.clone().plan()?;
    let cases = measured(&own);
    let [case] = cases[..] else {
        let several = cases.len();
        return refuse(format!(
            "explain takes one case, and these are {several}: use one transport, wait mode, size \
             and rate"
        ));
    };
    check(&own.cases[case], request)?;
    let study = Study {
        name: "explain".into(),
        title: format!("Where the time of {} goes", own.label(case)),
        source: None,
        quick: false,
        series: Vec::new(),
        graphs: Vec::new(),
    };
    let requests = SERIES.map(|name| (name.to_owned(), request.clone()));
    let plan = Plan { name: "explain".into(), ..study::plan(study, &requests)? };
    match measured(&plan)[..] {
        [untraced, traced] => Ok((plan, Runs { untraced, traced })),
        _ => refuse("explain takes a command whose cases are known before it runs"),
    }
}

/// The cases that are not there for the sake of others.
fn measured(plan: &Plan) -> Vec<usize> {
    let cases = plan.cases.iter().enumerate();
    let own = cases.filter(|(_, case)| !case.profile().is_preparation);
    own.map(|(number, _)| number).collect()
}

/// Refuses what cannot be split.
fn check(case: &Case, request: &Request) -> Result<(), UsageError> {
    let (pattern, transport) = (case.pattern.name(), case.transport.name());
    let descriptor = case.transport.descriptor();
    let way = Way::of(case);
    ensure!(
        way.is_some(),
        "explain {pattern} is not supported as it is: use latency with one message at a time, \
         oneway, load with --rate or --clients, or rpc"
    );
    let path = descriptor.kernel_path;
    ensure!(
        path != KernelPath::None,
        "explain {transport} is not supported: its messages pass no trace point of the kernel; \
         use tcp, udp, unix, unixgram, shm or verbs"
    );
    if path == KernelPath::Bypassed {
        check_bypassed(case)?;
    }
    let is_local = matches!(path, KernelPath::LocalStream | KernelPath::LocalDatagrams);
    let is_alone = way.is_some_and(|way| way.followed == Followed::Alone);
    ensure!(
        is_alone || !is_local || case.size <= LONGEST_LOCAL,
        "explain {pattern} over {transport} follows messages that the kernel keeps whole: use \
         messages of at most {LONGEST_LOCAL}"
    );
    ensure!(
        is_alone
            || path != KernelPath::Datagrams
            || (SHORTEST_NUMBERED..=LONGEST_NUMBERED).contains(&case.size),
        "explain {pattern} over {transport} reads the number in a datagram: use messages of at \
         least {SHORTEST_NUMBERED} and at most {LONGEST_NUMBERED}"
    );
    check_threads(case)?;
    let most = MOST_ROUNDS;
    ensure!(
        request.rounds().most <= most,
        "explain keeps the stamps of at most {most} rounds: use --rounds {most} or fewer"
    );
    Ok(())
}

/// Refuses connections that are not told apart by their threads.
fn check_threads(case: &Case) -> Result<(), UsageError> {
    let topology = &case.topology;
    let (clients, servers) = (topology.threads_of(Role::Client), topology.threads_of(Role::Server));
    let each = topology.endpoints_of_role(Role::Client);
    let all = clients.saturating_mul(each);
    ensure!(
        all <= MOST_FOLLOWED,
        "explain follows at most {MOST_FOLLOWED} connections, and these are {all}: use fewer \
         threads, ports or --connections"
    );
    let path = case.transport.descriptor().kernel_path;
    let is_local = matches!(path, KernelPath::LocalStream | KernelPath::LocalDatagrams);
    ensure!(
        (clients == servers && each == 1) || !is_local,
        "explain {} over {} tells connections apart by the threads of both ends: use one thread \
         and one connection",
        case.pattern.name(),
        case.transport.name()
    );
    ensure!(
        all == 1 || !topology.is_between_hosts(),
        "explain tells connections apart by the threads of this host: use one with --to"
    );
    Ok(())
}

/// Refuses what the program cannot stamp by itself, where messages pass by the kernel.
fn check_bypassed(case: &Case) -> Result<(), UsageError> {
    let (pattern, transport) = (case.pattern.name(), case.transport.name());
    let Some(followed) = case.profile().followed else { return Ok(()) };
    ensure!(
        !matches!(followed, Followed::RoundTrips { .. }),
        "explain {pattern} is not supported over {transport}: use latency or oneway"
    );
    ensure!(
        !case.topology.is_between_hosts(),
        "explain {transport} stamps both ends of this machine: leave out --to"
    );
    Ok(())
}

/// Stamps each second round.
struct Observer {
    state: Mutex<State>,
    runs: Runs,
    way: Way,
    /// Whether an end is in another network namespace of this machine.
    is_apart: bool,
    /// Whether all is stamped that could fill a gap.
    sees_all: bool,
    topology: Topology,
}

struct State {
    by: Stamper,
    /// The stamps of each rank's threads, where the program stamps: of a round.
    program: Vec<((usize, usize), Arena)>,
    begin: Option<Anchor>,
    explainer: Explainer,
}

/// Who stamps.
enum Stamper {
    /// Programs at trace points of the kernel.
    Tracer(Box<Tracer>),
    /// The kernel, of the run's own sockets alone; why.
    Sockets(String),
}

impl Stamper {
    /// The kernel's trace points, or where it refuses and the case has sockets, these.
    fn new(case: &Case, way: &Way) -> Result<Stamper, CommandError> {
        let is_apart = case.topology.is_between_hosts();
        let kinds = path::kinds(way, case.wait.sleeps(), is_apart);
        match Tracer::load(&kinds, path::copied_at(way.path)) {
            Ok(tracer) => Ok(Stamper::Tracer(Box::new(tracer))),
            Err(error) if is_for_sockets(case, way) => Ok(Stamper::Sockets(error.to_string())),
            Err(error) => Err(CommandError::Unable(format!("{error}; {WITHOUT_RIGHTS}"))),
        }
    }

    fn kinds(&self) -> Vec<(Kind, &'static str)> {
        match self {
            Stamper::Tracer(tracer) => tracer.programs(),
            Stamper::Sockets(_) => SOCKET_KINDS.iter().map(|kind| (*kind, kind.name())).collect(),
        }
    }

    fn missing(&self) -> &[String] {
        match self {
            Stamper::Tracer(tracer) => tracer.missing(),
            Stamper::Sockets(_) => &[],
        }
    }

    fn begin(&mut self, is_apart: bool, clock: Source) -> Result<Anchor, TraceError> {
        match self {
            Stamper::Tracer(tracer) => {
                tracer.attach(is_apart)?;
                Ok(KernelClock::anchor(clock))
            }
            Stamper::Sockets(_) => Ok(KernelClock::realtime_anchor(clock)),
        }
    }

    /// When the round has ended, and what was stamped at trace points.
    fn end(&mut self, clock: Source) -> Result<(Anchor, Trace), TraceError> {
        match self {
            Stamper::Tracer(tracer) => Ok((KernelClock::anchor(clock), tracer.detach()?)),
            Stamper::Sockets(_) => Ok((KernelClock::realtime_anchor(clock), Trace::default())),
        }
    }
}

/// What the kernel stamps of a socket, and the program of what it found there.
const SOCKET_KINDS: [Kind; 4] = [Kind::TxQueue, Kind::TxDriver, Kind::RxHost, Kind::Arrived];
/// What can be explained without rights.
const WITHOUT_RIGHTS: &str = "without it, explain splits latency over tcp or udp alone, with one \
                              thread, both ends on this machine and messages of at most 8 KiB";

/// Whether the stamps of its own sockets split the messages of a case.
fn is_for_sockets(case: &Case, way: &Way) -> bool {
    let topology = &case.topology;
    way.followed == Followed::Alone
        && matches!(way.path, KernelPath::Segments | KernelPath::Datagrams)
        && topology.threads_of(Role::Client) == 1
        && topology.endpoints_of_role(Role::Client) == 1
        && !topology.is_between_hosts()
        && case.size <= Bytes(LONGEST as u64)
}

/// What must be stamped before a gap may be called one.
const FILLS_GAPS: [Kind; 4] = [Kind::Switch, Kind::IrqEntry, Kind::TimerEntry, Kind::SoftirqEntry];

impl Observer {
    fn new(plan: &Plan, runs: Runs) -> Result<Observer, CommandError> {
        let case = &plan.cases[runs.traced];
        let Some(way) = Way::of(case) else {
            return Err(CommandError::Unable("its messages are not followed".into()));
        };
        let is_apart = case.topology.is_between_hosts();
        let by = Stamper::new(case, &way)?;
        let way = if matches!(by, Stamper::Sockets(_)) { way.by_sockets() } else { way };
        let stamped = by.kinds();
        let sees = |kind: &Kind| stamped.iter().any(|(known, _)| known == kind);
        let sees_all = FILLS_GAPS.iter().all(sees);
        let explainer = Explainer::default();
        let state = State { by, program: Vec::new(), begin: None, explainer };
        let topology = case.topology.clone();
        Ok(Observer { state: Mutex::new(state), runs, way, is_apart, sees_all, topology })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose the stamps of a round are.
    fn owners(&self, case: &Case, samples: &RoundSamples, threads: [Vec<u32>; 2]) -> Owners {
        let each = self.topology.endpoints_of_role(Role::Client);
        if each <= 1 {
            return Owners { threads, ..Owners::default() };
        }
        let clients = self.topology.threads_of(Role::Client);
        let of_thread: Vec<_> =
            (0..clients).map(|thread| case.pattern.connection_of(case, thread)).collect();
        let of_sample = |sample: &Sample| {
            let of_thread = of_thread.get(sample.thread as usize);
            of_thread.map_or(0, |connection| connection(sample.sequence))
        };
        let of_samples = samples.samples.iter().map(of_sample).collect();
        Owners { threads, each, of_samples }
    }

    fn explanation(&self) -> Option<Explanation> {
        let State { by, explainer, .. } = &mut *self.state();
        let mut trace_points = by.kinds();
        if self.way.is_stamped_by_program() {
            let own = Kind::ALL.iter().filter(|kind| kind.is_of_program());
            trace_points.extend(own.map(|kind| (*kind, kind.name())));
        }
        let mut found = explainer.explain(&Tracing {
            way: self.way,
            trace_points: &trace_points,
            missing: by.missing(),
            sees_all: self.sees_all,
        })?;
        if let Stamper::Sockets(why) = by {
            found.not_traced.clone_from(why);
            // Nothing was stamped that could be one.
            found.slow.causes.clear();
        }
        Some(found)
    }
}

impl RoundObserver for Observer {
    fn before(&self, run: usize, clock: Source) -> Result<(), Fault> {
        let state = &mut *self.state();
        // A round that failed has left its stamps.
        state.by.end(clock).map_err(|error| Fault::new(error.to_string()))?;
        state.begin = None;
        state.program.clear();
        if run == self.runs.traced {
            let begin = state.by.begin(self.is_apart, clock);
            state.begin = Some(begin.map_err(|error| Fault::new(error.to_string()))?);
        }
        Ok(())
    }

    fn after(
        &self,
        case: &Case,
        samples: &RoundSamples,
        clock: Source,
        time: &Timebase,
    ) -> Result<(), Fault> {
        let state = &mut *self.state();
        let Some(begin) = state.begin.take() else {
            if samples.run as usize == self.runs.untraced {
                state.explainer.add_untraced(samples, &self.way);
            }
            return Ok(());
        };
        let end = state.by.end(clock).map_err(|error| Fault::new(error.to_string()))?;
        let (end, mut trace) = end;
        let by_sockets = matches!(state.by, Stamper::Sockets(_));
        let clock = KernelClock::new(begin, end, time);
        let mut threads = [Vec::new(), Vec::new()];
        state.program.sort_by_key(|(place, _)| *place);
        for ((rank, thread), memory) in state.program.drain(..) {
            let Some(role) = self.topology.ranks.get(rank).map(|rank| rank.role) else { continue };
            let thread = self.topology.first_thread(rank).saturating_add(thread as u32);
            let rows = (memory.rows(), memory.capacity());
            if by_sockets {
                program::add_socket(&mut trace, role, rows, time, &clock);
                continue;
            }
            let tid = program::add(&mut trace, (role, thread), rows, time, &clock);
            threads[usize::from(role == Role::Server)].extend(tid);
        }
        if self.way.is_stamped_by_program() {
            program::add_taken(&mut trace, &samples.samples, &clock);
        }
        let owners = self.owners(case, samples, threads);
        let mut samples = samples.clone();
        if by_sockets {
            // Before it the stamps of those before were read.
            samples.samples.retain(|one| !one.sequence.is_multiple_of(READ_EVERY));
        }
        state.explainer.add(RoundTrace { samples, trace, clock, owners });
        Ok(())
    }

    fn stamp_memory(&self, rank: usize, thread: usize) -> Option<PathBuf> {
        let state = &mut *self.state();
        // Only while a round is traced.
        state.begin.as_ref()?;
        let threads = self.topology.threads_of(Role::Client).max(1);
        let by_sockets = matches!(state.by, Stamper::Sockets(_));
        let rows = match self.way.is_stamped_by_program() || by_sockets {
            true => MOST_STAMPS / threads as usize,
            // Who it is.
            false if self.topology.endpoints_of_role(Role::Client) > 1 || threads > 1 => 1,
            false => return None,
        };
        let memory = Arena::create(rows).ok()?;
        let path = memory.path();
        state.program.push(((rank, thread), memory));
        Some(path)
    }
}
