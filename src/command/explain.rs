//! `explain`: a command's rounds with and without stamps of the kernel, in turns.

mod packets;
mod stamper;

use self::stamper::Stamper;
use super::console::print;
use super::measure::{execute_observed, nothing_works, prepared};
use super::{CommandError, Exit};
use crate::cli::{self, Command, RunOptions, Typed};
use crate::clock::{Anchor, Source, Timebase};
use crate::control::fault::Fault;
use crate::explain::apart::{self, Kernels, OfHost};
use crate::explain::path::{self, Way};
use crate::explain::program;
use crate::explain::stamps::Owners;
use crate::explain::{Explainer, Explanation, KernelClock, RoundTrace, Tracing};
use crate::host::trace::report::TraceRequest;
use crate::host::trace::{Kind, Whose};
use crate::loops::socket_stamped::READ_EVERY;
use crate::loops::stamped::MOST_STAMPS;
use crate::options::{UsageError, refuse};
use crate::plan::study::{self, Study};
use crate::plan::topology::Topology;
use crate::plan::{Case, Followed, Plan, Request};
use crate::remote::host::RemoteHost;
use crate::run::{HostTrace, Observed, RoundObserver};
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
    let words = typed.operands("COMMAND");
    if let Some((first, files)) = words.split_first()
        && first == packets::NAME
    {
        return packets::explain(files);
    }
    let (request, options) = match read(words)? {
        WordsRead::Run(request, options) => (*request, options),
        WordsRead::Help(text) => return print(text),
    };
    let (plan, runs) = plan(&request)?;
    let done = prepared(request, &options, |_, _, hosts| {
        let observer = Observer::new(&plan, runs, hosts)?;
        execute_observed(&plan, hosts, &options, &observer, |_| observer.explanation())
    })?;
    Ok(done.unwrap_or_else(|unavailable| nothing_works(&unavailable)))
}

/// The command after `explain`, or its help.
enum WordsRead {
    Run(Box<Request>, RunOptions),
    Help(Vec<u8>),
}

/// Reads the command that is explained.
fn read(words: &[OsString]) -> Result<WordsRead, UsageError> {
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
            Ok(WordsRead::Run(request, options))
        }
        Command::Text(text) if !text.is_empty() => Ok(WordsRead::Help(text)),
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
    /// Where an end is in another network namespace of this machine.
    whose: Whose,
    /// What each end's own agent stamps, where they have two kernels.
    request: Option<TraceRequest>,
    topology: Topology,
}

struct State {
    by: Stamper,
    /// The stamps of each rank's threads, where the program stamps: of a round.
    program: Vec<((usize, usize), Arena)>,
    begin: Option<Anchor>,
    /// Whether the agents stamp in the round that runs.
    is_asked: bool,
    of_hosts: OfHosts,
    explainer: Explainer,
}

/// What is known of the stamps of both hosts.
#[derive(Default)]
struct OfHosts {
    /// What stamps at all ends; `None`: no round has said.
    kinds: Option<Vec<Kind>>,
    missing: Vec<String>,
    /// Why the server's host stamps nothing.
    refused: Option<String>,
}

/// Has the agents stamp, as between two hosts, where one kernel could stamp both ends: for tests.
const APART_VARIABLE: &str = "WIREGAUGE_EXPLAIN_APART";
/// With this value the server's host is taken to have no right to.
const REFUSED: &str = "refused";

/// What must be stamped before a gap may be called one.
const FILLS_GAPS: [Kind; 4] = [Kind::Switch, Kind::IrqEntry, Kind::TimerEntry, Kind::SoftirqEntry];

impl Observer {
    fn new(plan: &Plan, runs: Runs, hosts: &[RemoteHost]) -> Result<Observer, CommandError> {
        let case = &plan.cases[runs.traced];
        let Some(way) = Way::of(case) else {
            return Err(CommandError::Unable("its messages are not followed".into()));
        };
        let is_apart = case.topology.is_between_hosts();
        let has_two_kernels = is_apart && have_two_kernels(case, hosts)?;
        let by = Stamper::new(case, &way)?;
        let way = if by.is_sockets() { way.by_sockets() } else { way };
        let kinds = path::kinds(&way, case.wait.sleeps(), is_apart);
        let whose = if is_apart { Whose::Readers } else { Whose::Children };
        let request = TraceRequest { kinds, copied: path::copied_at(way.path) };
        let state = State {
            by,
            program: Vec::new(),
            begin: None,
            is_asked: false,
            of_hosts: OfHosts::default(),
            explainer: Explainer::default(),
        };
        Ok(Observer {
            state: Mutex::new(state),
            runs,
            way,
            whose,
            request: has_two_kernels.then_some(request),
            topology: case.topology.clone(),
        })
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
        let State { by, explainer, of_hosts, .. } = &mut *self.state();
        let mut trace_points = by.kinds();
        if let Some(kinds) = &of_hosts.kinds {
            trace_points.retain(|(kind, _)| kinds.contains(kind));
        }
        let sees = |kind: &Kind| trace_points.iter().any(|(known, _)| known == kind);
        let sees_all = FILLS_GAPS.iter().all(sees);
        let missing = [by.missing(), &of_hosts.missing].concat();
        let kernels = match (&self.request, &of_hosts.refused) {
            (None, _) => Kernels::One,
            (Some(_), None) => Kernels::Both,
            (Some(_), Some(_)) => Kernels::Ours,
        };
        if self.way.is_stamped_by_program() {
            let own = Kind::ALL.iter().filter(|kind| kind.is_of_program());
            trace_points.extend(own.map(|kind| (*kind, kind.name())));
        }
        let mut found = explainer.explain(&Tracing {
            way: Way { kernels, ..self.way },
            trace_points: &trace_points,
            missing: &missing,
            sees_all,
            refused: of_hosts.refused.as_deref(),
        })?;
        if let Stamper::Sockets(why) = by {
            found.not_traced.clone_from(why);
            // Nothing was stamped that could be one.
            found.slow.causes.clear();
        }
        Some(found)
    }
}

/// Whether the ends of a case have two kernels: hosts of one kernel name the same boot.
fn have_two_kernels(case: &Case, hosts: &[RemoteHost]) -> Result<bool, CommandError> {
    let is_one = case
        .topology
        .ranks
        .iter()
        .filter_map(|rank| rank.host)
        .all(|number| hosts.get(number as usize).is_some_and(RemoteHost::shares_kernel));
    if is_one && std::env::var_os(APART_VARIABLE).is_none() {
        return Ok(false);
    }
    let is_there = |role| case.topology.host_of(role).is_some();
    if is_there(Role::Client) || !is_there(Role::Server) {
        return Err(CommandError::Unable(
            "explain between two kernels needs the client on this host and the server on the \
             other: use --to"
                .into(),
        ));
    }
    Ok(true)
}

impl State {
    /// Takes what the kernels of both hosts have stamped in a round.
    fn take_of_hosts(&mut self, round: Observed<'_>) -> Result<(), Fault> {
        let of = |role| round.traces.iter().find(|(own, _)| *own == role).map(|(_, trace)| trace);
        let (own, other) = match (of(Role::Client), of(Role::Server)) {
            (Some(Ok(own)), Some(other)) => (own, other),
            (Some(Err(why)), _) => return Err(Fault::new(why.clone())),
            // The round failed, which is told elsewhere.
            _ => return Ok(()),
        };
        let forced = std::env::var(APART_VARIABLE).is_ok_and(|value| value == REFUSED);
        let refused: HostTrace = Err("as the test wants it".into());
        let other = if forced { &refused } else { other };
        let client = round.times.client.time;
        let own = OfHost { report: &own.0, stamps: &own.1, time: client };
        self.of_hosts.note(own.report.kinds.clone(), &[]);
        let offset = round.times.server.offset;
        let other = match (other, offset) {
            (Ok((report, stamps)), Some(model)) => {
                self.of_hosts.note(report.kinds.clone(), &report.missing);
                let time = round.times.server.time;
                Some((OfHost { report, stamps, time }, model))
            }
            (Ok(_), None) => {
                self.of_hosts.refused = Some("the clocks of the hosts were not compared".into());
                None
            }
            (Err(why), _) => {
                self.of_hosts.refused = Some(why.clone());
                None
            }
        };
        let apart::Merged { trace, clock, bound_ns } = apart::merged(own, other);
        let (samples, owners) = (round.samples.clone(), Owners::default());
        self.explainer.add(RoundTrace { samples, trace, clock, owners, bound_ns });
        Ok(())
    }
}

impl OfHosts {
    /// Adds what an end stamps and lacks.
    fn note(&mut self, kinds: Vec<Kind>, missing: &[String]) {
        match &mut self.kinds {
            Some(known) => known.retain(|kind| kinds.contains(kind)),
            None => self.kinds = Some(kinds),
        }
        let there = missing.iter().map(|name| format!("{name} (other host)"));
        let new: Vec<String> = there.filter(|name| !self.missing.contains(name)).collect();
        self.missing.extend(new);
    }
}

impl RoundObserver for Observer {
    fn before(&self, run: usize, clock: Source) -> Result<(), Fault> {
        let state = &mut *self.state();
        // A round that failed has left its stamps.
        state.by.end(clock).map_err(|error| Fault::new(error.to_string()))?;
        state.begin = None;
        state.program.clear();
        state.is_asked = run == self.runs.traced && self.request.is_some();
        if run == self.runs.traced && !state.is_asked {
            let begin = state.by.begin(self.whose, clock);
            state.begin = Some(begin.map_err(|error| Fault::new(error.to_string()))?);
        }
        Ok(())
    }

    fn after(&self, round: Observed<'_>, clock: Source, time: &Timebase) -> Result<(), Fault> {
        let Observed { case, samples, .. } = round;
        let state = &mut *self.state();
        if std::mem::take(&mut state.is_asked) {
            return state.take_of_hosts(round);
        }
        let Some(begin) = state.begin.take() else {
            if samples.run as usize == self.runs.untraced {
                state.explainer.add_untraced(samples, &self.way);
            }
            return Ok(());
        };
        let end = state.by.end(clock).map_err(|error| Fault::new(error.to_string()))?;
        let (end, mut trace) = end;
        let by_sockets = state.by.is_sockets();
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
        state.explainer.add(RoundTrace { samples, trace, clock, owners, bound_ns: 0.0 });
        Ok(())
    }

    fn trace_request(&self) -> Option<TraceRequest> {
        self.request.clone().filter(|_| self.state().is_asked)
    }

    fn compares_clocks(&self) -> bool {
        self.request.is_some()
    }

    fn stamp_memory(&self, rank: usize, thread: usize) -> Option<PathBuf> {
        let state = &mut *self.state();
        // Only while a round is traced.
        state.begin.as_ref()?;
        let threads = self.topology.threads_of(Role::Client).max(1);
        let by_sockets = state.by.is_sockets();
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
