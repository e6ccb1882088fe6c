//! The run itself: rounds of every case in shuffled order, each kept as it comes, until there are
//! enough; then figures and warnings, and the record.
//!
//! Takes a [`Plan`]; gives a [`Record`] and its run directory. The one place where the stages meet.

pub mod analysis;
mod apart;
mod beyond;
mod clocks;
pub mod compared;
mod concurrent;
pub mod conditions;
mod cpus;
mod error;
pub mod figures;
mod included;
mod pairs;
mod progress;
pub mod rates;
pub mod round;
pub mod search;
pub mod start;
pub mod start_barrier;
mod stop;
pub mod tally;
mod threads;
mod time;
mod warnings;
mod whole;

pub use error::ConductError;
pub use progress::{Silent, Watcher};

use crate::clock::Source;
use crate::control::fault::Fault;
use crate::host::{Choice, CpuPair, Environment, Noise};
use crate::plan::{Case, PatternRef, Plan};
use crate::record::RecordError;
use crate::record::schema::{
    ClockCost, Counts, OtherHost, PlanRecord, Record, SCHEMA, Unavailable, VERSION,
};
use crate::remote::host::RemoteHost;
use crate::run::conditions::Conditions;
use crate::run::round::RoundResult;
use crate::sample::RoundSamples;
use crate::sample::join::{End, Times, pool};
use crate::transport::Role;
use crate::units::Span;
use crate::warning::Warning;
use analysis::{NextCase, PatternAnalysis, RunPatterns};
use clocks::Comparisons;
use figures::{At, RunSoFar, Seen};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use time::Time;

/// How long the noise of each measuring CPU is watched before each round.
const NOISE: Span = Span(10_000_000);
/// Messages of the null transport before each round.
const FLOOR: u32 = 2000;

/// What the conductor is given beside the plan.
pub struct Stage<'a> {
    /// The program that is started as an agent.
    pub program: PathBuf,
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
    /// The patterns.
    pub patterns: RunPatterns,
}

impl Stage<'_> {
    /// What the pattern of a case makes of its samples.
    pub fn analysis(&self, case: &Case) -> &'static dyn PatternAnalysis {
        let found = (self.patterns.analysis)(case.pattern.name());
        #[expect(clippy::expect_used, reason = "cases are made by patterns of the same list")]
        let analysis = found.expect("the pattern of a case is in the list");
        analysis
    }

    /// Whether a case takes times from a stamp of one end to one of the other.
    pub fn is_one_way(&self, case: &Case) -> bool {
        self.analysis(case).is_one_way()
    }
}

/// Where every round's samples go as they come.
pub type Keep<'a> = dyn FnMut(&RoundSamples) -> Result<(), RecordError> + 'a;

/// Runs a plan, and hands every round's samples to `keep` as they come.
pub fn conduct(
    plan: &Plan,
    stage: &Stage<'_>,
    keep: &mut Keep<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Record, ConductError> {
    let started = jiff::Timestamp::now();
    let time = Time::calibrate(stage.clock)?;
    let Choice { pairs: cpus, one_cpu, .. } = cpus::choose_and_tell(plan, watcher);
    let own_cpus = cpus::of_this_host(plan, &cpus);
    let environment = Environment::read(&own_cpus);
    let mut conductor = Conductor {
        plan: plan.clone(),
        stage,
        keep,
        watcher,
        conditions: conditions(plan, stage, &time, cpus.clone()),
        comparisons: Comparisons::start(plan, stage, &time, &own_cpus, &environment)?,
        runs: Vec::new(),
        position: 0,
        faults: Vec::new(),
        time: &time,
    };
    conductor.runs =
        plan.cases.iter().enumerate().map(|(index, case)| conductor.run(index, case)).collect();
    conductor.all_points()?;
    let Conductor { runs, faults, comparisons, plan, .. } = conductor;
    let plan = &plan;
    let costs = comparisons.end();
    let whole = whole::Whole {
        cpus: own_cpus,
        one_cpu,
        environment: &environment,
        resolution_ns: time.reading.resolution_ns,
    };
    let mut record = Record {
        schema: SCHEMA.into(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").into(),
        command: stage.command.clone(),
        started: started.to_string(),
        finished: String::new(),
        complete: faults.is_empty() && runs.iter().all(RunSoFar::is_complete),
        faults,
        plan: PlanRecord::from(plan),
        clock: time.report(),
        instrument: whole.instrument(&runs),
        noise: whole.noise(runs.iter().flat_map(RunSoFar::noise_here)),
        runs: Vec::new(),
        unavailable: stage.unavailable.clone(),
        warnings: Vec::new(),
        environment: environment.clone(),
        hosts: other_hosts(stage, &whole, &runs, costs),
        pairs: None,
        clocks: Vec::new(),
    };
    record.warnings = whole.warnings(&record.noise);
    record.warnings.extend(plan.untrue_clock.map(|_| (&Warning::InjectedClockError).into()));
    record.warnings.extend(record.hosts.iter().flat_map(whole::warnings_there));
    let completions: Vec<_> = (0..runs.len())
        .map(|number| stage.analysis(&runs[number].case).complete(plan, &runs, number))
        .collect();
    let completed = runs.into_iter().zip(completions);
    record.runs = completed.map(|(run, completion)| run.into_run(plan, completion)).collect();
    record.pairs = pairs::figures(plan, &record.runs);
    record.finished = jiff::Timestamp::now().to_string();
    Ok(record)
}

/// What is the same for all rounds.
fn conditions<'a>(
    plan: &Plan,
    stage: &Stage<'a>,
    time: &Time,
    cpus: Vec<CpuPair>,
) -> Conditions<'a> {
    Conditions {
        program: stage.program.clone(),
        execution: stage.patterns.execution,
        hosts: stage.hosts,
        cpus,
        clock: time.source,
        time: time.base,
        untrue: plan.untrue_clock,
        clocks: Vec::new(),
        epoch_of_day_ns: crate::clock::epoch_of_day(time.source, &time.base),
        noise: NOISE,
        floor: FLOOR,
        interrupted: stage.interrupted,
    }
}

/// What the record says of the other hosts.
fn other_hosts(
    stage: &Stage<'_>,
    whole: &whole::Whole<'_>,
    runs: &[RunSoFar],
    costs: Vec<Option<ClockCost>>,
) -> Vec<OtherHost> {
    let noise = |number: usize| {
        let of = |role| runs.iter().flat_map(move |run| run.noise_there(role, number as u32));
        whole.noise(of(Role::Client).chain(of(Role::Server)))
    };
    let told = stage.hosts.iter().zip(costs).enumerate();
    told.map(|(number, (host, cost))| other_host(host, noise(number), cost)).collect()
}

fn other_host(host: &RemoteHost, noise: Vec<Noise>, clock_cost: Option<ClockCost>) -> OtherHost {
    OtherHost {
        name: host.session.host().to_string(),
        address: host.probe.address.map(|address| address.to_string()),
        environment: host.probe.environment.clone(),
        clock: host.probe.clock.clone(),
        noise,
        clock_cost,
    }
}

struct Conductor<'a, 'w> {
    plan: Plan,
    stage: &'a Stage<'a>,
    keep: &'w mut Keep<'w>,
    watcher: &'w mut dyn Watcher,
    conditions: Conditions<'a>,
    comparisons: Comparisons,
    runs: Vec<RunSoFar>,
    position: u32,
    faults: Vec<String>,
    time: &'a Time,
}

impl Conductor<'_, '_> {
    /// All rounds of the plan's cases, and of those that a search adds to it.
    fn all_points(&mut self) -> Result<(), ConductError> {
        self.all_rounds()?;
        for _ in 0..=search::MOST_PASSES {
            let is_whole = self.faults.is_empty() && self.runs.iter().all(RunSoFar::is_complete);
            if !is_whole {
                break;
            }
            let more = self.next_cases();
            if more.is_empty() {
                break;
            }
            self.add_all(more);
            self.all_rounds()?;
        }
        Ok(())
    }

    /// The cases that follow from what has been measured.
    fn next_cases(&self) -> Vec<NextCase> {
        let mut patterns: Vec<PatternRef> = Vec::new();
        for case in &self.plan.cases {
            if !patterns.contains(&case.pattern) {
                patterns.push(case.pattern);
            }
        }
        let analyses =
            patterns.iter().filter_map(|pattern| (self.stage.patterns.analysis)(pattern.name()));
        analyses.flat_map(|analysis| analysis.next_cases(&self.plan, &self.runs)).collect()
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
                self.add(next.origin, case);
            }
        }
        let groups = search::together(&self.plan.concurrent, &added);
        self.plan.concurrent.extend(groups);
        self.plan.concurrent.extend(beside);
    }

    /// Adds a case to the plan that follows from a run.
    fn add(&mut self, origin: usize, case: Case) {
        let index = self.runs.len();
        self.runs.push(self.run(index, &case));
        if let Some(study) = &mut self.plan.study {
            study.adopt(origin as u32, index as u32);
        }
        self.plan.cases.push(case);
    }

    /// A run before its first round.
    fn run(&self, index: usize, case: &Case) -> RunSoFar {
        let is_beside = self.plan.concurrent.iter().any(|group| group.contains(&(index as u32)));
        let flows = if is_beside { self.plan.cpus_at_once() } else { case.most_threads() };
        let analysis = self.stage.analysis(case);
        RunSoFar::new(index, case, analysis, &self.conditions.cpus_of(case), flows)
    }

    /// Rounds until every case has enough, the order shuffled anew in each.
    fn all_rounds(&mut self) -> Result<(), ConductError> {
        let rounds = self.plan.rounds;
        let mut random = ChaCha8Rng::seed_from_u64(self.plan.seed);
        let mut order = self.plan.groups();
        for round in 0..rounds.most {
            order.shuffle(&mut random);
            self.watcher.round(round, rounds, order.len());
            for group in &order {
                let group: Vec<usize> =
                    group.iter().copied().filter(|index| !self.runs[*index].is_over()).collect();
                if group.is_empty() {
                    continue;
                }
                if self.stage.interrupted.load(Ordering::Relaxed) {
                    self.faults.push(Fault::Interrupted.to_string());
                    return Ok(());
                }
                if self.one_round_of(&group, round)? {
                    return Ok(());
                }
            }
            if self.runs.iter().all(RunSoFar::is_over) {
                break;
            }
        }
        Ok(())
    }

    /// A round of cases that run at the same time; whether the user has interrupted it.
    fn one_round_of(&mut self, group: &[usize], round: u32) -> Result<bool, ConductError> {
        let label = self.plan.label(group[0]);
        self.watcher.case(&match group.len() {
            1 => label,
            several => format!("{label} and {} at the same time", several - 1),
        });
        let seeded = |index: &usize| {
            let case = &self.plan.cases[*index];
            let case = Case { seed: round_seed(case.seed, round), ..case.clone() };
            case.pattern.for_round(&case, round, self.plan.rounds.most)
        };
        let cases: Vec<Case> = group.iter().map(seeded).collect();
        let are_several = group.len() > 1;
        if are_several {
            self.conditions.clocks = self.comparisons.now();
        }
        let watcher = &mut *self.watcher;
        let watch = &mut |messages| watcher.messages(messages);
        let finished = concurrent::run(&cases, &self.conditions, watch);
        let overlap = concurrent::overlap(&finished);
        if are_several {
            self.conditions.clocks = self.comparisons.now();
        }
        let starts = start::of_rounds(&cases, &finished, &self.conditions);
        let mut interrupted = false;
        for (((index, case), finished), start) in group.iter().zip(&cases).zip(finished).zip(starts)
        {
            let at = At { round, position: self.position, overlap, start };
            let fault = match finished {
                Ok(finished) => self.take(*index, at, case, finished)?,
                Err(fault) => {
                    self.runs[*index].fail(fault.clone());
                    Some(fault)
                }
            };
            if let Some(fault) = fault {
                if fault.is_refused() {
                    return Err(fault.into());
                }
                self.faults.push(format!("{}: {fault}", self.plan.label(*index)));
                interrupted |= fault.is_interrupted();
            }
            if !interrupted {
                self.runs[*index].decide(self.plan.rounds);
            }
        }
        Ok(interrupted)
    }

    /// Takes what a round of a case has left; its fault.
    fn take(
        &mut self,
        index: usize,
        at: At,
        case: &Case,
        finished: RoundResult,
    ) -> Result<Option<Fault>, ConductError> {
        let base = self.time.of_round(case, &finished);
        // Without a comparison a round has its samples and no one-way times.
        let mut unknown = None;
        let mut known = |role| match Some(())
            .filter(|()| self.stage.is_one_way(case))
            .and_then(|()| self.comparisons.of(case, role))?
        {
            Ok(known) => Some(known),
            Err(fault) => {
                unknown = Some(fault);
                None
            }
        };
        let known = [known(Role::Client), known(Role::Server)];
        let [of_client, of_server] = known.each_ref().map(Option::as_ref);
        let time = |role| {
            let host = self.conditions.remote_host(case.host_of(role)).map(|host| &host.probe.time);
            host.unwrap_or(&base)
        };
        let times = Times {
            client: End { time: time(Role::Client), offset: of_client.map(|known| &known.model) },
            server: End { time: time(Role::Server), offset: of_server.map(|known| &known.model) },
            apart: case.topology.is_between_hosts(),
        };
        let analysis = self.stage.analysis(case);
        let each: Vec<RoundSamples> = finished
            .threads_of(Role::Client)
            .iter()
            .enumerate()
            .map(|(number, client)| {
                let at_server = finished
                    .threads_of(Role::Server)
                    .get(number)
                    .map_or(&[][..], |s| s.arena.rows());
                let rows = [client.arena.rows(), at_server];
                let samples = analysis.samples(case, number, rows, times);
                RoundSamples { run: index as u32, round: at.round, samples }
            })
            .collect();
        let counts = counts(case, analysis, &finished, &each);
        let samples = pool(each);
        (self.keep)(&samples)?;
        let both = finished.threads_of(Role::Client).iter().zip(finished.threads_of(Role::Server));
        let messages = both.flat_map(|(client, server)| {
            clocks::messages(client.arena.rows(), server.arena.rows(), times)
        });
        let clock = clocks::of_round(of_client, of_server, &samples, messages);
        let finished = RoundResult { fault: finished.fault.or(unknown), ..finished };
        let fault = finished.fault.clone();
        let plan = &self.plan;
        let name = |role: Role| match case.host_of(role) {
            Some(host) => format!("the {} on {}", role.name(), plan.host(Some(host))),
            None => format!("the {} on this host", role.name()),
        };
        let late = at.start.iter().flat_map(|start| start::warnings(at.round, start, name));
        self.runs[index].warnings.extend(late);
        let seen = Seen { counts, samples, times, clock };
        self.runs[index].take(case, at, finished, seen);
        self.position += 1;
        Ok(fault)
    }
}

/// The counts of one round of all threads, and of each; `each` has the samples of each.
fn counts(
    case: &Case,
    analysis: &dyn PatternAnalysis,
    finished: &RoundResult,
    each: &[RoundSamples],
) -> (Counts, Vec<Counts>) {
    let parts = finished.threads_of(Role::Client).iter().zip(each).enumerate();
    let counted: Vec<Counts> = parts
        .map(|(number, (client, samples))| {
            analysis.counts(
                case,
                client,
                finished.threads_of(Role::Server).get(number),
                &samples.samples,
            )
        })
        .collect();
    let mut all = Counts::default();
    counted.iter().for_each(|one| tally::add(&mut all, one));
    analysis.complete_counts(finished, &mut all);
    (all, counted)
}

/// A round's own seed, so that rounds are repetitions and not copies.
fn round_seed(seed: u64, round: u32) -> u64 {
    seed.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
