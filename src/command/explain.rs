//! `explain`: a command's rounds with and without stamps of the kernel, in turns.

use super::measure::{execute_observed, nothing_works, prepared};
use super::{CommandError, Exit};
use crate::cli::{self, Command, RunOptions, Typed};
use crate::clock::{Anchor, Source, Timebase};
use crate::control::fault::Fault;
use crate::explain::path::{self, Way};
use crate::explain::program;
use crate::explain::{Explainer, Explanation, KernelClock, RoundTrace, Tracing};
use crate::host::trace::{Kind, Tracer};
use crate::loops::stamped::MOST_STAMPS;
use crate::options::{UsageError, refuse};
use crate::plan::study::{self, Study};
use crate::plan::{Case, Followed, Plan, Request};
use crate::run::RoundObserver;
use crate::sample::RoundSamples;
use crate::sample::arena::Arena;
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
        Command::Measure { mut request, options } => {
            if request.count.is_none() && request.time.is_none() {
                request.count = Some(MESSAGES);
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
        is_alone || path != KernelPath::Datagrams || case.size >= SHORTEST_NUMBERED,
        "explain {pattern} over {transport} reads the number in a datagram: use messages of at \
         least {SHORTEST_NUMBERED}"
    );
    let is_one = case.threads() == 1 && case.topology.endpoints_of_role(Role::Client) == 1;
    ensure!(
        is_one,
        "explain follows one connection: use one thread or port of each end, and --connections 1"
    );
    let most = MOST_ROUNDS;
    ensure!(
        request.rounds().most <= most,
        "explain keeps the stamps of at most {most} rounds: use --rounds {most} or fewer"
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
    /// Of each rank.
    roles: Vec<Role>,
}

struct State {
    tracer: Tracer,
    /// The stamps of each rank's threads, where the program stamps: of a round.
    program: Vec<((usize, usize), Arena)>,
    begin: Option<Anchor>,
    explainer: Explainer,
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
        let kinds = path::kinds(&way, case.wait.sleeps(), is_apart);
        let tracer = Tracer::load(&kinds, path::copied_at(way.path));
        let tracer = tracer.map_err(|error| CommandError::Unable(error.to_string()))?;
        let stamped = tracer.programs();
        let sees = |kind: &Kind| stamped.iter().any(|(known, _)| known == kind);
        let sees_all = FILLS_GAPS.iter().all(sees);
        let explainer = Explainer::default();
        let state = State { tracer, program: Vec::new(), begin: None, explainer };
        let roles = case.topology.ranks.iter().map(|rank| rank.role).collect();
        Ok(Observer { state: Mutex::new(state), runs, way, is_apart, sees_all, roles })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explanation(&self) -> Option<Explanation> {
        let State { tracer, explainer, .. } = &mut *self.state();
        let mut trace_points = tracer.programs();
        if self.way.is_stamped_by_program() {
            let own = Kind::ALL.iter().filter(|kind| kind.is_of_program());
            trace_points.extend(own.map(|kind| (*kind, kind.name())));
        }
        explainer.explain(&Tracing {
            way: self.way,
            trace_points: &trace_points,
            missing: tracer.missing(),
            sees_all: self.sees_all,
        })
    }
}

impl RoundObserver for Observer {
    fn before(&self, run: usize, clock: Source) -> Result<(), Fault> {
        let state = &mut *self.state();
        // A round that failed has left its stamps.
        state.tracer.detach().map_err(|error| Fault::new(error.to_string()))?;
        state.begin = None;
        state.program.clear();
        if run == self.runs.traced {
            state.tracer.attach(self.is_apart).map_err(|error| Fault::new(error.to_string()))?;
            state.begin = Some(KernelClock::anchor(clock));
        }
        Ok(())
    }

    fn after(&self, samples: &RoundSamples, clock: Source, time: &Timebase) -> Result<(), Fault> {
        let state = &mut *self.state();
        let Some(begin) = state.begin.take() else {
            if samples.run as usize == self.runs.untraced {
                state.explainer.add_untraced(samples, &self.way);
            }
            return Ok(());
        };
        let end = KernelClock::anchor(clock);
        let mut trace = state.tracer.detach().map_err(|error| Fault::new(error.to_string()))?;
        let clock = KernelClock::new(begin, end, time);
        for ((rank, thread), memory) in state.program.drain(..) {
            let Some(role) = self.roles.get(rank) else { continue };
            let rows = (memory.rows(), memory.capacity());
            program::add(&mut trace, (*role, thread as u32), rows, time, &clock);
        }
        state.explainer.add(RoundTrace { samples: samples.clone(), trace, clock });
        Ok(())
    }

    fn stamp_memory(&self, rank: usize, thread: usize) -> Option<PathBuf> {
        let state = &mut *self.state();
        // Only while a round is traced.
        let _ = state.begin.filter(|_| self.way.is_stamped_by_program())?;
        let memory = Arena::create(MOST_STAMPS).ok()?;
        let path = memory.path();
        state.program.push(((rank, thread), memory));
        Some(path)
    }
}
