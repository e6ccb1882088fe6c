//! The run: rounds of every case in random order, stored as they arrive, until there are enough;
//! then figures, warnings and the record.
//!
//! Takes a [`Plan`]; gives a [`Record`] and its run directory. The one place where the stages meet.

#[macro_use(ensure)]
extern crate wiregauge_base;

mod client_clocks;
mod clocks;
pub mod compared;
mod concurrent;
pub mod conditions;
mod cpus;
mod host_limits;
mod keeper;
pub mod observer;
mod period;
pub mod preflight;
mod progress;
mod rank_trace;
mod resources;
pub mod round;
mod running_rank;
mod sides;
pub mod start_barrier;
mod summary;
mod suspension;
mod time_limit;
pub mod together;

pub use keeper::Keeper;
pub use observer::{Observed, RoundObserver};
pub use period::{Period, Watched};
pub use progress::{Silent, SoFar, Watcher};
pub use sides::{RunSide, Sides};
pub use wiregauge_analysis::result::HostTrace;

use crate::conditions::{Conditions, OVERHEAD_MESSAGES};
use clocks::Comparisons;
pub use preflight::{Preflight, preflight};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use time_limit::TimeLimit;
use wiregauge_analysis::figures::Seen;
use wiregauge_analysis::pattern::{FindAnalysis, NextCase, PatternAnalysis, RunSoFar};
pub use wiregauge_analysis::recovered;
use wiregauge_analysis::result::{RoundResult, ThreadResult};
use wiregauge_analysis::{counts, impact, marks, overhead, pairs, search, so_far, start, warnings};
use wiregauge_base::units::Span;
use wiregauge_base::wall_clock::Started;
use wiregauge_clock::{ChosenClock, Source};
use wiregauge_figures::record::RecordError;
use wiregauge_figures::record::schema::{
    DataPath, OtherHost, PlanRecord, Record, RecordedWarning, Round, Unavailable,
};
use wiregauge_host::{Choice, Claims, CpuPair, Environment};
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::secret;
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::host::RemoteHost;
use wiregauge_remote::program::{AgentProgram, Programs};
use wiregauge_sample::RoundSamples;
use wiregauge_sample::join::{End, Times};
use wiregauge_transport::Role;

/// How long the noise of each measuring CPU is watched before each round.
const NOISE: Span = Span(10_000_000);

/// Why there is no record at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A request that cannot be met, or the machine cannot.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The run directory.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What a run is given beside the plan.
pub struct RunContext<'a> {
    /// The program that is started as an agent.
    pub program: AgentProgram,
    /// The command as typed, for the record.
    pub command: Vec<String>,
    /// The clock; `None`: the best that the host has.
    pub clock: Option<Source>,
    /// Set when the user wants the program to end.
    pub interrupted: &'a AtomicBool,
    /// The plan's other hosts.
    pub hosts: &'a [RemoteHost],
    /// Transports that were asked for and do not work here.
    pub unavailable: Vec<Unavailable>,
    /// How often what has come since is given to the watcher; `None`: never.
    pub report_every: Option<std::time::Duration>,
    /// The patterns.
    pub patterns: FindAnalysis,
    /// What the series of a plan have beside their cases.
    pub sides: Sides,
    /// Who watches the rounds from outside.
    pub observer: Option<&'a dyn RoundObserver>,
}

impl RunContext<'_> {
    /// What the pattern of a case makes of its samples.
    pub fn analysis(&self, case: &Case) -> &'static dyn PatternAnalysis {
        let found = (self.patterns)(case.pattern.name());
        #[expect(clippy::expect_used, reason = "cases are made by patterns of the same list")]
        let analysis = found.expect("the pattern of a case is in the list");
        analysis
    }
}

/// Returns the conditions of all rounds of a plan.
fn conditions<'a>(
    plan: &Plan,
    context: &'a RunContext<'a>,
    cpus: Vec<CpuPair>,
    time: &ChosenClock,
) -> Result<Conditions<'a>, Fault> {
    Ok(Conditions {
        context,
        run: u64::from_le_bytes(secret::fresh()?),
        cpus,
        clock: time.local(),
        injected_clock_error: plan.injected_clock_error,
        program: context.program.clone(),
        programs: Programs::default(),
        clocks: Vec::new(),
        residents: Default::default(),
        epoch_of_day_ns: wiregauge_clock::epoch_of_day(time.source, &time.base),
        rails: plan.rails.clone(),
        noise: NOISE,
        overhead_messages: OVERHEAD_MESSAGES,
    })
}

/// Runs a plan, and hands every round to `keep` as it comes. Where that fails the run ends early,
/// and its record is incomplete.
pub fn run(
    plan: &Plan,
    context: &RunContext<'_>,
    keep: &mut dyn Keeper,
    watcher: &mut dyn Watcher,
) -> Result<Record, RunError> {
    run_after(preflight(plan, context)?, plan, context, keep, watcher)
}

/// Runs a plan whose pre-flight is over.
pub fn run_after(
    preflight: Preflight,
    plan: &Plan,
    context: &RunContext<'_>,
    keep: &mut dyn Keeper,
    watcher: &mut dyn Watcher,
) -> Result<Record, RunError> {
    let started = Started::now();
    let time = clocks::calibrated(plan, context)?;
    let Choice { pairs: cpus, one_cpu, .. } = cpus::choose(plan, watcher);
    let own_cpus = cpus::of_this_host(plan, &cpus);
    let environment = Environment::read(&own_cpus);
    let conditions = conditions(plan, context, cpus, &time)?;
    let Preflight { paths, blocked, warnings } = preflight;
    let mut runner = Runner {
        claims: Claims::of(conditions.run, own_cpus.iter().copied()),
        plan: plan.clone(),
        keep,
        watcher,
        conditions,
        comparisons: Comparisons::start(plan, context, &time, &own_cpus, &environment)?,
        runs: Vec::new(),
        faults: Vec::new(),
        blocked,
        time_limit: TimeLimit::begin(plan.time_limit),
        head: summary::head(context, summary::record(plan, context, &time, &environment, started)),
        is_spoiled: false,
        time: &time,
    };
    runner.all_points().and_then(|()| runner.check_clock())?;
    let time = &time;
    let circumstances =
        Circumstances { time, environment, own_cpus, one_cpu, started, paths, warnings };
    Ok(assemble_record(runner, context, circumstances))
}

/// The machine and the network of a run.
struct Circumstances<'a> {
    time: &'a ChosenClock,
    environment: Environment,
    /// CPUs of this host that measure.
    own_cpus: Vec<u32>,
    /// Both ends share one.
    one_cpu: bool,
    started: Started,
    /// Data paths that were tried.
    paths: Vec<DataPath>,
    /// Warnings about them.
    warnings: Vec<RecordedWarning>,
}

/// Assembles the record of a run whose rounds are over.
fn assemble_record(
    runner: Runner<'_, '_>,
    context: &RunContext<'_>,
    circumstances: Circumstances<'_>,
) -> Record {
    let Circumstances { time, environment, own_cpus, one_cpu, started, paths, warnings } =
        circumstances;
    let Runner { runs, faults, comparisons, ref plan, ref conditions, claims, .. } = runner;
    let fewer = runner.time_limit.warning(plan, &runs);
    let noise_at = |host| summary::noise(runs.iter().flat_map(|run| run.noise_at(host)));
    let of_host = |(number, (host, cost)): (u32, (&RemoteHost, _))| {
        summary::other_host(host, noise_at(Some(number)), cost)
    };
    let hosts: Vec<OtherHost> =
        (0..).zip(context.hosts.iter().zip(comparisons.end())).map(of_host).collect();
    let base = summary::record(plan, context, time, &environment, started);
    let noise = noise_at(None);
    let mut found = summary::warnings(&own_cpus, one_cpu, &environment, &noise);
    let shared = summary::shared_cpus(claims.shared());
    found.extend(shared.iter().map(RecordedWarning::from).chain(base.warnings));
    found.extend(summary::wall_clock_set(&started).into_iter().chain(fewer));
    found.extend(summary::warnings_of_hosts(plan, &hosts, &runs));
    found.extend(warnings);
    let complete = faults.is_empty() && runs.iter().all(RunSoFar::is_whole);
    let instrument = overhead::instrument(&runs, time.report.resolution_ns);
    let complete_run = |number: usize| runs[number].analysis.complete(plan, &runs, number);
    let completions: Vec<_> = (0..runs.len()).map(complete_run).collect();
    let ended = cause_of_end(context, &faults);
    let into_run = |(run, done): (RunSoFar, _)| run.into_run(plan, done, &instrument, &ended);
    let runs = sides::noted(conditions, plan, runs.into_iter().zip(completions).map(into_run));
    warnings::with_commands(warnings::under_quota(impact::completed(Record {
        pairs: pairs::figures(plan, &runs),
        finished: started.time_now().to_string(),
        complete,
        faults,
        instrument,
        noise,
        runs,
        warnings: found,
        hosts,
        paths,
        ..base
    })))
}

/// Why runs ended early that had no fault themselves.
fn cause_of_end(context: &RunContext<'_>, faults: &[String]) -> Fault {
    match (context.interrupted.load(Ordering::Relaxed), faults.last()) {
        (false, Some(fault)) => Fault::new(fault.as_str()),
        (false, None) => Fault::new("the run ended early"),
        (true, _) => Fault::Interrupted,
    }
}

struct Runner<'a, 'w> {
    plan: Plan,
    keep: &'w mut dyn Keeper,
    /// The record without rounds.
    head: Record,
    claims: Claims,
    time: &'a ChosenClock,
    /// Whether nothing more can be kept.
    is_spoiled: bool,
    watcher: &'w mut dyn Watcher,
    conditions: Conditions<'a>,
    comparisons: Comparisons,
    runs: Vec<RunSoFar>,
    faults: Vec<String>,
    /// Why cases cannot be measured, by their numbers.
    blocked: BTreeMap<usize, Fault>,
    time_limit: TimeLimit,
}

impl Runner<'_, '_> {
    /// Saves the record without rounds.
    fn begin(&mut self) -> Result<(), RecordError> {
        *self.head.plan = PlanRecord::from(&self.plan);
        let runs = self.runs.iter().map(|run| run.without_rounds(&self.plan));
        self.head.runs = sides::noted(&self.conditions, &self.plan, runs);
        self.keep.begin(&self.head)
    }

    /// All rounds of the plan's cases, and of those that a search adds to it.
    fn all_points(&mut self) -> Result<(), RunError> {
        self.plan.cases.clone().iter().for_each(|case| self.add_run(case));
        for (index, fault) in &self.blocked {
            self.runs[*index].stop = Some(Err(fault.clone()));
            self.faults.push(format!("{}: {fault}", self.plan.label(*index)));
        }
        self.begin()?;
        for _ in 0..=search::MOST_PASSES {
            self.all_rounds()?;
            let is_whole = self.faults.is_empty() && self.runs.iter().all(RunSoFar::is_complete);
            let more = if is_whole { self.next_cases() } else { Vec::new() };
            if more.is_empty() {
                return Ok(());
            }
            self.add_all(more);
            if let Err(error) = self.begin() {
                self.spoil(&error);
                return Ok(());
            }
        }
        self.all_rounds()
    }

    /// The cases that follow from what has been measured.
    fn next_cases(&self) -> Vec<NextCase> {
        let own = self.runs.iter().map(|run| (run.case.pattern.name(), run.analysis));
        let analyses = BTreeMap::from_iter(own);
        let next = |analysis: &&dyn PatternAnalysis| analysis.next_cases(&self.plan, &self.runs);
        analyses.values().flat_map(next).collect()
    }

    /// Adds cases, and what runs beside them. Those that follow from runs at the same time are
    /// measured at the same time.
    fn add_all(&mut self, more: Vec<NextCase>) {
        let mut added = BTreeMap::<u32, Vec<u32>>::new();
        let mut beside = Vec::new();
        for next in more {
            let number = self.plan.cases.len() as u32;
            added.entry(next.origin as u32).or_default().push(number);
            let others = number + 1..number + 1 + next.beside.len() as u32;
            beside.extend(others.map(|other| vec![number, other]));
            for case in std::iter::once(next.case).chain(next.beside) {
                self.add_run(&case);
                if let Some(study) = &mut self.plan.study {
                    study.adopt(next.origin as u32, self.plan.cases.len() as u32);
                }
                self.plan.cases.push(case);
            }
        }
        let groups = search::together(&self.plan.concurrent, &added);
        self.plan.concurrent.extend(groups);
        self.plan.concurrent.extend(beside);
    }

    /// Adds the run of the next case, before its first round.
    fn add_run(&mut self, case: &Case) {
        let index = self.runs.len();
        let is_beside = self.plan.concurrent.iter().any(|group| group.contains(&(index as u32)));
        let flows = if is_beside { self.plan.cpus_at_once() } else { case.topology.cpu_pairs() };
        let analysis = self.conditions.context.analysis(case);
        let cpus = self.conditions.cpus_of(case);
        let mut run = RunSoFar::new(index, case, analysis, &cpus, flows);
        if case.topology.has_several_clients() {
            run.cpus = self.conditions.cpus_of_threads(case);
        }
        self.runs.push(run);
    }

    /// Rounds until every case has enough, the order shuffled anew in each.
    fn all_rounds(&mut self) -> Result<(), RunError> {
        let rounds = self.plan.rounds;
        let mut random = ChaCha8Rng::seed_from_u64(self.plan.seed);
        let mut order = self.plan.groups();
        for round in 0..rounds.most {
            if !self.time_limit.has_room_for_pass() {
                self.time_limit.end(&mut self.runs);
                break;
            }
            // Of sides that take turns every second round has the order of the one before in
            // reverse (A B B A): a drift that is linear in time then weighs on both alike.
            match self.conditions.context.sides.in_turns && round % 2 == 1 {
                true => order.reverse(),
                false => order.shuffle(&mut random),
            }
            self.watcher.round(round, rounds, order.len());
            for group in &order {
                let group = group.iter().copied().filter(|index| !self.is_over(&self.runs[*index]));
                let group: Vec<usize> = group.collect();
                if group.is_empty() {
                    continue;
                }
                if self.conditions.context.interrupted.load(Ordering::Relaxed) {
                    self.faults.push(Fault::Interrupted.to_string());
                    return Ok(());
                }
                // The first pass gives each case a round.
                if round > 0 && self.time_limit.is_over() {
                    self.time_limit.end(&mut self.runs);
                    return Ok(());
                }
                if let Err(fault) = self.take_side(group[0]) {
                    self.faults.push(format!("{}: {fault}", self.plan.label(group[0])));
                    return Ok(());
                }
                if self.one_round_of(&group, round)? {
                    return Ok(());
                }
            }
            if self.runs.iter().all(|run| self.is_over(run)) {
                break;
            }
        }
        let waiting = self.runs.iter().filter(|run| !run.is_over()).map(|run| &run.case);
        self.faults.extend(self.conditions.lost_with_launch(waiting));
        Ok(())
    }

    /// Whether no further round of a run is wanted, or can begin.
    fn is_over(&self, run: &RunSoFar) -> bool {
        run.is_over() || self.conditions.has_lost_launch(&run.case)
    }

    /// Refuses a run whose clock is not to be believed. The fault says what becomes of its rounds.
    fn check_clock(&mut self) -> Result<(), RunError> {
        let Err(error) = self.time.check() else { return Ok(()) };
        Err(RunError::Fault(match self.keep.refuse_clock(&error.to_string()) {
            None => error.into(),
            Some(left) => Fault::new(format!(
                "{error}; the rounds are saved in {}, but no record is made of them: delete it",
                left.display()
            )),
        }))
    }

    /// Makes ready for the side of a case: its prepared state, and its program.
    fn take_side(&mut self, case: usize) -> Result<(), Fault> {
        let context = self.conditions.context;
        let Some(side) = context.side_of(&self.plan, case) else { return Ok(()) };
        self.conditions.program = match &side.program {
            Some(file) => AgentProgram::Other(file.clone()),
            None => context.program.clone(),
        };
        side.prepare(context.interrupted)
    }

    /// A round of cases that run at the same time; whether the user has interrupted it.
    fn one_round_of(&mut self, group: &[usize], round: u32) -> Result<bool, RunError> {
        // What was measured before stays: a refusal is wrong use only where there is nothing else.
        let has_measured = self.runs.iter().any(|run| !run.rounds.is_empty());
        let mut label = self.plan.label(group[0]);
        if group.len() > 1 {
            label += &format!(" and {} at the same time", group.len() - 1);
        }
        self.watcher.case(group[0], &label, so_far::so_far(&self.runs[group[0]]));
        let seeded = |index: &usize| {
            let case = &self.plan.cases[*index];
            let case = Case { seed: round::seed_of(case.seed, round), ..case.clone() };
            case.pattern.for_round(&case, round, self.plan.rounds.most)
        };
        let cases: Vec<Case> = group.iter().map(seeded).collect();
        let are_several = group.len() > 1 || cases.iter().any(concurrent::has_several_clients);
        if are_several {
            self.conditions.clocks = self.comparisons.now();
        }
        let watcher = &mut *self.watcher;
        let (case, index) = (&cases[0], group[0]);
        let watch = &mut |watched: Watched| {
            watcher.messages(watched.messages);
            if let Some(period) = watched.period {
                watcher.period(index, case, &period);
            }
        };
        self.conditions.context.begin_observing(index, self.time.source)?;
        let finished = concurrent::run(&cases, &self.conditions, watch);
        let overlap = concurrent::overlap(&finished);
        if are_several {
            self.conditions.clocks = self.comparisons.now();
        }
        let starts = start::of_rounds(&finished, |host| self.conditions.clock_of(host));
        let mut interrupted = false;
        for (((index, case), finished), start) in group.iter().zip(&cases).zip(finished).zip(starts)
        {
            let record = Round {
                index: round,
                position: self.runs.iter().map(|run| run.rounds.len() as u32).sum(),
                overlap,
                start,
                stride: case.profile().stride,
                ..Round::default()
            };
            let fault = match finished {
                Ok(finished) => self.take(*index, record, case, finished)?,
                Err(fault) => {
                    self.runs[*index].stop = Some(Err(fault.clone()));
                    Some(fault)
                }
            };
            if let Some(fault) = fault {
                ensure!(has_measured || !fault.is_refused(), fault);
                self.faults.push(format!("{}: {fault}", self.plan.label(*index)));
                interrupted |= fault.is_interrupted();
            }
            if !interrupted && let Some(fault) = self.runs[*index].decide(self.plan.rounds) {
                self.faults.push(format!("{}: {fault}", self.plan.label(*index)));
            }
            self.save(*index, round);
            self.watcher.measured(*index, so_far::so_far(&self.runs[*index]));
        }
        self.claims.look();
        Ok(interrupted || self.is_spoiled)
    }

    /// Saves a round of a run, where it has left anything.
    fn save(&mut self, index: usize, round: u32) {
        let clock_fault = self.time.check().err().map(|error| error.to_string());
        let is_last = |run: &RunSoFar| run.rounds.last().is_some_and(|last| last.index == round);
        let run = Some(&mut self.runs[index]).filter(|run| is_last(run));
        let saved = run.and_then(|run| run.saved(clock_fault));
        let failed = |saved| self.keep.round(&saved).err();
        if let Some(error) = saved.filter(|_| !self.is_spoiled).and_then(failed) {
            self.spoil(&error);
        }
    }

    /// Ends the run, since its rounds cannot be kept.
    fn spoil(&mut self, error: &RecordError) {
        self.is_spoiled = true;
        self.faults.push(error.to_string());
    }

    /// Takes what a round of a case has left; its fault.
    fn take(
        &mut self,
        index: usize,
        mut round: Round,
        case: &Case,
        mut finished: RoundResult,
    ) -> Result<Option<Fault>, RunError> {
        marks::forgive(case, &mut finished);
        let base = finished.time(case, self.conditions.clock.time);
        // Without a comparison a round has the stamps of one end and no one-way times.
        let analysis = self.runs[index].analysis;
        let is_one_way = case.profile().is_one_way;
        let compares = is_one_way || self.conditions.context.compares_clocks();
        let known = self.comparisons.of_ends(case, compares);
        let [of_client, of_server] = known.ends.each_ref().map(Option::as_ref);
        let end = |role: Role| {
            let host = self.conditions.remote_host(case.topology.host_of(role));
            let known = role.pick(of_client, of_server);
            End {
                time: host.map_or(&base, |host| &host.probe.local.time),
                offset: known.map(|known| &known.model),
            }
        };
        let (client, server) = (end(Role::Client), end(Role::Server));
        let clocks = client_clocks::of_round(case, &finished, &self.conditions);
        let ends: Vec<End<'_>> = clocks.iter().map(client_clocks::ClientClock::end).collect();
        let apart = case.topology.is_between_hosts();
        let times = Times { client, server, nodes: &ends, apart, compared: known.are_compared };
        let [clients, servers] = [Role::Client, Role::Server].map(|role| finished.threads_of(role));
        let ran = finished.ran.map(|(start, end)| end.saturating_duration_since(start));
        let thread = |(number, client): (usize, &ThreadResult)| {
            let server = servers.get(number);
            let rows = [client.arena.rows(), server.map_or(&[][..], |s| s.arena.rows())];
            let times = Times { client: times.node(number), ..times };
            let mut samples = analysis.samples(case, number, rows, times);
            marks::mark(case, analysis.is_rate(), times.are_common(), &mut samples);
            let mut counts =
                counts::counts(case, analysis.arrivals(case), client, server, &samples);
            if marks::is_ended_by_user(case, &finished) {
                let left_out = marks::leave_out_under_way(case, ran, &mut samples);
                counts::leave_out_under_way(case, left_out, &samples, &mut counts);
            }
            analysis.complete_thread_counts(case, &samples, &mut counts);
            (RoundSamples { run: index as u32, round: round.index, samples }, counts)
        };
        let (each, counts): (Vec<_>, Vec<_>) = clients.iter().enumerate().map(thread).unzip();
        counts.iter().for_each(|one| counts::add(&mut round.counts, one));
        analysis.complete_counts(case, &finished, &mut round.counts);
        counts::move_excess_to_duplicates(&mut round.counts);
        let samples = analysis.join(case, each);
        let seen = Observed { case, samples: &samples, times, traces: &finished.traces };
        self.conditions.context.end_observing(seen, self.time.source, &base)?;
        if let Err(error) = self.keep.samples(&samples) {
            self.spoil(&error);
        }
        let messages = clients.iter().zip(servers).flat_map(|(client, server)| {
            clocks::messages(client.arena.rows(), server.arena.rows(), times)
        });
        let offset = clocks::offset_for_round(of_client, of_server, &samples, messages);
        round.clock = offset.filter(|_| is_one_way && times.are_common());
        round.suspended_ns = finished.suspended.as_nanos() as f64;
        let finished = RoundResult { fault: finished.fault.or(known.fault), ..finished };
        let fault = finished.fault.clone();
        let found = warnings::of_round(&self.plan, case, &round);
        self.runs[index].warnings.extend(found);
        self.runs[index].take(case, round, finished, Seen { counts, samples, times });
        Ok(fault)
    }
}
