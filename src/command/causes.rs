//! `--causes`: what disturbs the rounds of a command is stamped beside it, and TCP's counters are
//! looked at, so that slow messages have causes.

use super::CommandError;
use crate::clock::{Anchor, Source, Timebase};
use crate::control::fault::Fault;
use crate::explain::path::{DISTURBANCES, Way, copied_at};
use crate::explain::tail::{Ends, TailCauses, TailReader, TailRound};
use crate::explain::{KernelClock, program};
use crate::host::TcpSampler;
use crate::host::trace::{Trace, Tracer, Whose};
use crate::options::UsageError;
use crate::plan::{Case, Plan};
use crate::run::{Observed, RoundObserver};
use crate::sample::arena::Arena;
use crate::transport::{KernelPath, Role};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stamps what disturbs each round.
pub struct Causes {
    state: Mutex<State>,
    /// The most of a case.
    rounds: u32,
    /// True for each case whose messages go by TCP, by one connection of each thread.
    are_tcp: Vec<bool>,
}

struct State {
    /// `None`: the kernel does not allow one, so that only TCP is looked at.
    tracer: Option<Tracer>,
    /// Why there is none.
    not_traced: Option<String>,
    /// Looks at TCP while a round runs.
    sampler: Option<TcpSampler>,
    begin: Option<Anchor>,
    /// Where the threads of each rank say who they are.
    threads: BTreeMap<(usize, usize), Arena>,
    readers: BTreeMap<u32, TailReader>,
}

impl Causes {
    /// Loads the programs.
    ///
    /// # Errors
    /// The plan's messages are none whose causes could be found, or the kernel refuses and no TCP
    /// is there to be looked at.
    pub fn new(plan: &Plan) -> Result<Causes, CommandError> {
        check(plan)?;
        let are_tcp: Vec<bool> = plan.cases.iter().map(is_tcp).collect();
        let (tracer, not_traced) = match Tracer::load(&DISTURBANCES, copied_at(KernelPath::None)) {
            Ok(tracer) => (Some(tracer.with_long_network_work_only()), None),
            Err(error) if are_tcp.contains(&true) => (None, Some(error.to_string())),
            Err(error) => return Err(CommandError::Unable(format!("--causes: {error}"))),
        };
        let state = State {
            tracer,
            not_traced,
            sampler: None,
            begin: None,
            threads: BTreeMap::new(),
            readers: BTreeMap::new(),
        };
        Ok(Causes { state: Mutex::new(state), rounds: plan.rounds.most, are_tcp })
    }

    /// What was found of each run.
    pub fn found(&self) -> Vec<TailCauses> {
        let State { tracer, not_traced, readers, .. } = &*self.state();
        let missing = match (tracer, not_traced) {
            (Some(tracer), _) => tracer.missing().to_vec(),
            (None, why) => why.iter().map(|why| format!("all trace points ({why})")).collect(),
        };
        readers.iter().filter_map(|(run, reader)| reader.causes(*run, &missing)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses what has no such messages.
fn check(plan: &Plan) -> Result<(), UsageError> {
    let is_followed = |case: &Case| Way::of(case).is_some();
    ensure!(
        plan.cases.iter().any(is_followed),
        "--causes is not supported by {} as it is: use latency with one message at a time, oneway, \
         load with --rate or --clients, or rpc",
        plan.name
    );
    let simulated = plan.cases.iter().find(|case| case.transport.simulates_time());
    if let Some(case) = simulated {
        let transport = case.transport.name();
        ensure!(false, "--causes: {transport} simulates time, and nothing disturbs it");
    }
    let is_alone = plan.concurrent.is_empty() && plan.pairs.is_none();
    ensure!(is_alone, "--causes looks at one case at a time: leave out what runs at the same time");
    Ok(())
}

/// Returns true if the messages of a case go by TCP, and those of each thread by one connection to
/// the server's thread of the same number: of several nothing says which one an event was of.
fn is_tcp(case: &Case) -> bool {
    let is_tcp = case.transport.descriptor().kernel_path == KernelPath::Segments;
    is_tcp && (0..case.topology.ranks.len()).all(|rank| case.topology.endpoints_of(rank) == 1)
}

fn fault(error: impl ToString) -> Fault {
    Fault::new(error.to_string())
}

impl RoundObserver for Causes {
    fn before(&self, run: usize, clock: Source) -> Result<(), Fault> {
        let state = &mut *self.state();
        // A round that failed has left its stamps.
        if let Some(tracer) = &mut state.tracer {
            tracer.detach().map_err(fault)?;
        }
        state.threads.clear();
        if let Some(tracer) = &mut state.tracer {
            tracer.attach(Whose::Children).map_err(fault)?;
        }
        if let Some(left) = state.sampler.take() {
            left.finish();
        }
        let is_tcp = self.are_tcp.get(run) == Some(&true);
        state.sampler = is_tcp.then(TcpSampler::start).transpose().map_err(fault)?;
        state.begin = Some(KernelClock::anchor(clock));
        Ok(())
    }

    fn after(&self, round: Observed<'_>, clock: Source, time: &Timebase) -> Result<(), Fault> {
        let Observed { case, samples, .. } = round;
        let state = &mut *self.state();
        let Some(begin) = state.begin.take() else { return Ok(()) };
        let clock = KernelClock::new(begin, KernelClock::anchor(clock), time);
        let tcp = &state.sampler.take().map(TcpSampler::finish).unwrap_or_default();
        let trace = state.tracer.as_mut().map(Tracer::detach).transpose().map_err(fault)?;
        let trace = &trace.unwrap_or_default();
        // What goes before the measured cases has no tail to explain.
        let own = Way::of(case).filter(|_| !case.profile().is_preparation);
        let Some(way) = &own else { return Ok(()) };
        let ends = &ends(case, trace, &state.threads);
        let reader = state.readers.entry(samples.run).or_default();
        reader.add(&TailRound { samples, trace, clock: &clock, ends, way, tcp }, self.rounds);
        Ok(())
    }

    fn stamp_memory(&self, rank: usize, thread: usize) -> Option<PathBuf> {
        let memory = Arena::create(1).ok()?;
        let path = memory.path();
        self.state().threads.insert((rank, thread), memory);
        Some(path)
    }
}

/// Who the threads of a case are.
fn ends(case: &Case, trace: &Trace, threads: &BTreeMap<(usize, usize), Arena>) -> Ends {
    let mut ends = Ends::default();
    for ((rank, _), memory) in threads {
        let Some(role) = case.topology.ranks.get(*rank).map(|rank| rank.role) else { continue };
        let own = program::end(trace, memory.rows());
        ends.0[usize::from(role == Role::Server)].extend(own);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parse};

    fn is_followed(line: &str) -> bool {
        let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
        let Ok(Command::Measure { request, .. }) = parse(&words) else { panic!("{line}") };
        request.plan().unwrap().cases.iter().all(is_tcp)
    }

    #[test]
    fn tcp_is_followed_where_each_thread_has_one_connection() {
        for line in [
            "wiregauge rpc --workload w3 --gbps 0.5 --transport tcp",
            "wiregauge latency --transport tcp --threads 2",
            "wiregauge load --transport tcp --rate 1k",
        ] {
            assert!(is_followed(line), "{line}");
        }
        for line in [
            "wiregauge rpc --workload w3 --gbps 0.5 --transport tcp --connections 2",
            "wiregauge load --transport tcp --rate 1k --connections 4",
            "wiregauge latency --transport udp",
        ] {
            assert!(!is_followed(line), "{line}");
        }
    }
}
