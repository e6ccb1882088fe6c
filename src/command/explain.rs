//! `explain`: a command's rounds with and without stamps of the kernel, in turns.

use super::measure::{execute_observed, nothing_works};
use super::{CommandError, Exit, hosts};
use crate::cli::{self, Command, RunOptions, Typed};
use crate::clock::{Anchor, Source, Timebase};
use crate::control::fault::Fault;
use crate::explain::{Explainer, Explanation, KernelClock, RoundTrace, Tracing, path};
use crate::host::trace::{Kind, TraceError, Tracer};
use crate::options::{UsageError, refuse};
use crate::plan::study::{self, Study};
use crate::plan::{Case, Plan, Request};
use crate::run::RoundObserver;
use crate::sample::RoundSamples;
use crate::transport::{KernelPath, Traffic};
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The series without stamps and the one with them.
const SERIES: [&str; 2] = ["untraced", "traced"];
/// The run of the second, since each has one case.
const TRACED: usize = 1;
/// Messages of a round unless said: their stamps fit the memory on any machine.
const MESSAGES: u64 = 20_000;
/// Traced rounds whose stamps are kept: 32 MiB each.
const MOST_ROUNDS: u32 = 10;

/// Measures, splits, explains.
pub fn explain(typed: &Typed) -> Result<Exit, CommandError> {
    let (request, options) = read(typed.operands("COMMAND"))?;
    let plan = plan(&request)?;
    let (works, unavailable) =
        hosts::sort_out(&request.transports, &request.settings, &request.place, &[]);
    if works.is_empty() {
        return Ok(nothing_works(&unavailable));
    }
    let case = &plan.cases[TRACED];
    let observer = Observer::new(case).map_err(|error| CommandError::Unable(error.to_string()))?;
    execute_observed(&plan, &options, &observer, |_| observer.explanation())
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

/// Both series, whose rounds take turns.
fn plan(request: &Request) -> Result<Plan, UsageError> {
    let own = request.clone().plan()?;
    let [case] = own.cases.as_slice() else {
        let cases = own.cases.len();
        return refuse(format!(
            "explain takes one case, and these are {cases}: use one transport, wait mode and size"
        ));
    };
    check(case, request)?;
    let study = Study {
        name: "explain".into(),
        title: format!("Where the time of {} goes", own.label(0)),
        source: None,
        quick: false,
        series: Vec::new(),
        graphs: Vec::new(),
    };
    let requests = SERIES.map(|name| (name.to_owned(), request.clone()));
    Ok(Plan { name: "explain".into(), ..study::plan(study, &requests)? })
}

/// Refuses what cannot be split.
fn check(case: &Case, request: &Request) -> Result<(), UsageError> {
    let (pattern, transport) = (case.pattern.name(), case.transport.name());
    let profile = case.profile();
    let is_echo = profile.traffic == Traffic::Echo { every: 1 } && !profile.is_one_sided;
    ensure!(
        is_echo && profile.queue_depth == 1,
        "explain {pattern} is not supported: use latency with one message at a time"
    );
    ensure!(
        case.transport.descriptor().kernel_path != KernelPath::None,
        "explain {transport} is not supported: its messages pass no trace point of the kernel; \
         use tcp, udp, unix or unixgram"
    );
    ensure!(case.threads() == 1, "explain follows one connection: leave out --threads");
    ensure!(
        !request.place.is_remote(),
        "explain follows messages within this host: leave out --to and --hosts"
    );
    let most = MOST_ROUNDS;
    ensure!(
        request.rounds().most <= most,
        "explain keeps the stamps of at most {most} rounds: use --rounds {most} or fewer"
    );
    Ok(())
}

/// Stamps each second round.
struct Observer {
    state: Mutex<State>,
    path: KernelPath,
    /// Whether all is stamped that could fill a gap.
    sees_all: bool,
}

struct State {
    tracer: Tracer,
    begin: Option<Anchor>,
    explainer: Explainer,
}

/// What must be stamped before a gap may be called one.
const FILLS_GAPS: [Kind; 4] = [Kind::Switch, Kind::IrqEntry, Kind::TimerEntry, Kind::SoftirqEntry];

impl Observer {
    fn new(case: &Case) -> Result<Observer, TraceError> {
        let path = case.transport.descriptor().kernel_path;
        let kinds = path::kinds(path, case.wait.sleeps());
        let tracer = Tracer::load(&kinds, path::copied_at(path))?;
        let stamped = tracer.programs();
        let sees = |kind: &Kind| stamped.iter().any(|(known, _)| known == kind);
        let sees_all = FILLS_GAPS.iter().all(sees);
        let state = State { tracer, begin: None, explainer: Explainer::default() };
        Ok(Observer { state: Mutex::new(state), path, sees_all })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explanation(&self) -> Option<Explanation> {
        let State { tracer, explainer, .. } = &mut *self.state();
        explainer.explain(&Tracing {
            steps: path::steps(self.path),
            trace_points: &tracer.programs(),
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
        if run == TRACED {
            state.tracer.attach().map_err(|error| Fault::new(error.to_string()))?;
            state.begin = Some(KernelClock::anchor(clock));
        }
        Ok(())
    }

    fn after(&self, samples: &RoundSamples, clock: Source, time: &Timebase) -> Result<(), Fault> {
        let state = &mut *self.state();
        let Some(begin) = state.begin.take() else {
            state.explainer.add_untraced(samples);
            return Ok(());
        };
        let end = KernelClock::anchor(clock);
        let trace = state.tracer.detach().map_err(|error| Fault::new(error.to_string()))?;
        let clock = KernelClock::new(begin, end, time);
        state.explainer.add(RoundTrace { samples: samples.clone(), trace, clock });
        Ok(())
    }
}
