//! What the run needs of a pattern: how rows become samples, which figures these give, and which
//! cases follow from what has been measured.
#![warn(missing_docs)]

use super::client_hosts::ByHost;
use super::cpus;
use super::rates::{Rates, Work};
use super::result::RoundResult;
use serde_json::Value;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{Counts, Figure, RateFigure, Round, Stall};
use wiregauge_host::{CpuPair, Noise};
use wiregauge_measure::agent::execution::PatternExecution;
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::{Case, Plan};
use wiregauge_sample::arena::Row;
use wiregauge_sample::histogram::LiveHistogram;
use wiregauge_sample::join::{self, Times};
use wiregauge_sample::{RoundSamples, Sample};
use wiregauge_stats::{Metric, Rate, RateMetric};
use wiregauge_transport::counter::FinalCounters;

pub use super::counts::{Arrivals, RoundSeen};

/// Finds what the run needs of the pattern of a name.
pub type FindAnalysis = fn(&str) -> Option<&'static dyn PatternAnalysis>;

/// What the run needs of a pattern.
pub trait PatternAnalysis: PatternExecution {
    /// The samples of one thread of a round, from the rows of its client and its server, in the
    /// order of sending.
    fn samples(
        &self,
        case: &Case,
        _thread: usize,
        [client, _]: [&[Row]; 2],
        times: Times<'_>,
    ) -> Vec<Sample> {
        join::round_trips(case.size, client, times)
    }

    /// The samples of a round, from those of each of its threads: all of them, where the pattern
    /// does not say otherwise.
    fn join(&self, _case: &Case, each: Vec<RoundSamples>) -> RoundSamples {
        join::pool(each)
    }

    /// The metrics of a case, the one that answers its question first.
    fn metrics(&self, case: &Case) -> Vec<Metric>;

    /// Metrics that a graph can show, beside those.
    fn more_metrics(&self, _case: &Case) -> Vec<Metric> {
        Vec::new()
    }

    /// The rates of a case.
    fn rates(&self, _case: &Case) -> Vec<RateMetric> {
        Vec::new()
    }

    /// The names of all metrics and rates of a case, distributions first: what a graph can show.
    fn measured(&self, case: &Case) -> Vec<&'static str> {
        let own = if self.is_rate() { Vec::new() } else { self.metrics(case) };
        let more = self.more_metrics(case).into_iter().filter(|one| !own.contains(one));
        let metrics = own.iter().copied().chain(more).map(Metric::name);
        metrics.chain(self.rates(case).into_iter().map(RateMetric::name)).collect()
    }

    /// Which end sees messages arrive.
    fn arrivals(&self, _case: &Case) -> Arrivals {
        Arrivals::AtClient
    }

    /// Whether a rate answers the question, and not a latency.
    fn is_rate(&self) -> bool {
        false
    }

    /// Sets in the counts of one thread of a round what the pattern alone knows.
    fn complete_thread_counts(&self, _case: &Case, _samples: &[Sample], _counts: &mut Counts) {}

    /// Adds to the counts of a round what only all threads together tell.
    fn complete_counts(&self, _case: &Case, _finished: &RoundResult, _all: &mut Counts) {}

    /// What a round posted and delivered. Asked for where there are rates.
    fn work(&self, round: &RoundSeen<'_>) -> Work {
        Work::of_messages(round, self.arrivals(round.case))
    }

    /// The rates of a run so far, the one that answers the question first.
    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        run.work.figures(run.case.schedule)
    }

    /// What gathers the rounds of a run, beside their distributions and their work.
    fn collector(&self) -> Box<dyn Collector> {
        Box::new(())
    }

    /// What was included in the figures: name, value.
    fn method_notes(&self, _case: &Case) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// What the counters of an end warn of.
    fn counter_warnings(&self, _counters: &FinalCounters) -> Vec<Warning> {
        Vec::new()
    }

    /// The cases that follow from what has been measured, none where enough is known.
    fn next_cases(&self, _plan: &Plan, _runs: &[RunSoFar]) -> Vec<NextCase> {
        Vec::new()
    }

    /// What a run shows when all runs are over.
    fn complete(&self, _plan: &Plan, _runs: &[RunSoFar], _number: usize) -> Completion {
        Completion::default()
    }
}

/// A case that follows from a run.
pub struct NextCase {
    /// The number of that run.
    pub origin: usize,
    /// The case.
    pub case: Case,
    /// What runs beside it.
    pub beside: Vec<Case>,
}

/// What a run shows beside the figures of its own rounds.
#[derive(Default)]
pub struct Completion {
    /// Distributions.
    pub figures: Vec<Figure>,
    /// Rates.
    pub rates: Vec<RateFigure>,
    /// The mean slowdown of the clients on each host, where they are several.
    pub slowdown_by_host: BTreeMap<Option<u32>, Rate>,
    /// What the pattern keeps in the record, in a form of its own.
    pub details: Option<Value>,
    /// What weakens its figures, as the pattern alone knows.
    pub warnings: Vec<Warning>,
}

/// Gathers what a pattern wants to know of the rounds of a run, beside their distributions and
/// their work.
pub trait Collector: Any {
    /// Takes a round.
    fn add_round(&mut self, _round: &RoundSeen<'_>) {}
}

/// Gathers nothing.
impl Collector for () {}

/// How much of what grows with each round of a run is in the journal. Each line has what is new:
/// with all of it the journal would grow with the square of the rounds.
#[derive(Default)]
pub struct InJournal {
    /// Rounds of each rate.
    pub rates: BTreeMap<RateMetric, usize>,
    /// Warnings.
    pub warnings: usize,
}

/// A run while its rounds come in.
pub struct RunSoFar {
    /// Its number.
    pub index: usize,
    /// What is measured.
    pub case: Case,
    /// How it is analysed.
    pub analysis: &'static dyn PatternAnalysis,
    /// A pair for each of its threads.
    pub cpus: Vec<CpuPair>,
    /// Its rounds so far.
    pub rounds: Vec<Round>,
    /// Durations of each metric, a vector a round.
    pub series: BTreeMap<Metric, Vec<Vec<f64>>>,
    /// The first of these metrics of the clients on each host, where they are several.
    pub by_host: ByHost,
    /// The rounds of those vectors, as positions: not every round has samples of every metric.
    pub sampled: BTreeMap<Metric, Vec<usize>>,
    /// Of each round: the samples for which it had no rows, by size.
    pub beyond: Vec<BTreeMap<Metric, LiveHistogram>>,
    /// What its rounds posted and delivered; empty where the case has no rates.
    pub work: Rates,
    /// What the pattern gathers beside.
    pub collector: Box<dyn Collector>,
    /// What became of its messages.
    pub counts: Counts,
    /// Durations over the null transport, a vector a round and thread.
    pub overhead: Vec<Vec<f64>>,
    /// Time to record a sample.
    pub recording_ns: Vec<f64>,
    /// Of the measuring CPUs, with their hosts.
    pub noise: Vec<(Option<u32>, Noise)>,
    /// CPUs on which other runs measured, with their hosts.
    pub shared_cpus: BTreeSet<(Option<u32>, u32)>,
    /// What weakens its figures.
    pub warnings: Vec<Warning>,
    /// Gaps that stand out of its rounds.
    pub stalls: Vec<Stall>,
    /// What the journal has of its rates and warnings.
    pub in_journal: InJournal,
    /// How many rounds are enough, once the first ones have said it.
    pub enough: Option<u32>,
    /// Why no further round is wanted: a sentence where the rounds ended as planned.
    pub stop: Option<Result<String, Fault>>,
}

impl RunSoFar {
    /// Before the first round; an end has so many flows at the same time, its threads among them.
    pub fn new(
        index: usize,
        case: &Case,
        analysis: &'static dyn PatternAnalysis,
        cpus: &[CpuPair],
        flows: u32,
    ) -> RunSoFar {
        let (all, different) = cpus::of_case(cpus, flows);
        let is_short = different < all.len();
        let warning = Warning::FewerCpus { threads: flows, cpus: different as u32 };
        let cpus = all.into_iter().take(case.topology.most_threads() as usize).collect();
        RunSoFar {
            index,
            case: case.clone(),
            analysis,
            work: Rates::default(),
            collector: analysis.collector(),
            cpus,
            rounds: Vec::new(),
            series: BTreeMap::new(),
            sampled: BTreeMap::new(),
            beyond: Vec::new(),
            counts: Counts::default(),
            overhead: Vec::new(),
            recording_ns: Vec::new(),
            noise: Default::default(),
            shared_cpus: Default::default(),
            warnings: is_short.then_some(warning).into_iter().collect(),
            by_host: ByHost::default(),
            stalls: Vec::new(),
            in_journal: Default::default(),
            enough: None,
            stop: None,
        }
    }

    /// What the pattern has gathered, as its own type.
    pub fn collected<T: Any>(&self) -> Option<&T> {
        (&*self.collector as &dyn Any).downcast_ref()
    }

    /// The noise of its CPUs on a host; `None`: this one.
    pub fn noise_at(&self, host: Option<u32>) -> impl Iterator<Item = &Noise> {
        self.noise.iter().filter(move |(at, _)| *at == host).map(|(_, noise)| noise)
    }

    /// Its CPUs on another host on which other runs measured.
    pub fn shared_at(&self, host: u32) -> impl Iterator<Item = u32> {
        self.shared_cpus.iter().filter(move |(at, _)| *at == Some(host)).map(|(_, cpu)| *cpu)
    }

    /// What became of its messages so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether no further round is wanted.
    pub fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether all its rounds ended as planned.
    pub fn is_complete(&self) -> bool {
        matches!(self.stop, Some(Ok(_)))
    }

    /// Whether it has also left the file that it was asked for.
    pub fn is_whole(&self) -> bool {
        let lacks_file = |warning: &Warning| matches!(warning, Warning::FileFailed { .. });
        self.is_complete() && !self.warnings.iter().any(lacks_file)
    }
}
