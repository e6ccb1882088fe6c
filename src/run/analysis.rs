//! What the run needs of a pattern: how rows become samples, which figures these give, and which
//! cases follow from what has been measured.
#![warn(missing_docs)]

use super::figures::RunSoFar;
use super::rates::Rates;
use super::round::{RoundResult, ThreadResult};
use super::tally;
use crate::agent::execution::FindExecution;
use crate::clock::Timebase;
use crate::plan::{Case, Plan};
use crate::record::schema::{Counts, Figure, RateFigure, Round};
use crate::sample::arena::Row;
use crate::sample::join::{self, Times};
use crate::sample::{RoundSamples, Sample};
use crate::stats::Metric;
use crate::transport::counter::FinalCounters;
use crate::warning::Warning;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;

/// Finds what the run needs of the pattern of a name.
pub type FindAnalysis = fn(&str) -> Option<&'static dyn PatternAnalysis>;

/// The patterns that a run knows.
#[derive(Clone, Copy)]
pub struct RunPatterns {
    /// What they make of samples.
    pub analysis: FindAnalysis,
    /// How an agent runs them.
    pub execution: FindExecution,
}

/// Which end sees messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// The client: what it sends comes back.
    AtClient,
    /// The server.
    AtServer,
    /// Both: messages go both ways.
    AtBoth,
}

/// What the run needs of a pattern.
pub trait PatternAnalysis: Sync {
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

    /// The metrics of a case, the one that answers its question first.
    fn metrics(&self, case: &Case) -> Vec<Metric>;

    /// The names of all metrics and rates of a case, distributions first: what a graph can show.
    fn measured(&self, case: &Case) -> Vec<&'static str>;

    /// Which end sees messages arrive.
    fn arrivals(&self, _case: &Case) -> Arrivals {
        Arrivals::AtClient
    }

    /// Whether times are taken from a stamp of one end to one of the other, so that both clocks
    /// must be known.
    fn is_one_way(&self) -> bool {
        false
    }

    /// Whether a rate answers the question, and not a latency.
    fn is_rate(&self) -> bool {
        false
    }

    /// Whether a round whose time was to end it ends where its rows are used.
    fn needs_a_row_for_each_message(&self) -> bool {
        false
    }

    /// Messages of one thread of a round, by what became of them.
    fn counts(
        &self,
        case: &Case,
        client: &ThreadResult,
        server: Option<&ThreadResult>,
        samples: &[Sample],
    ) -> Counts {
        tally::counts(case, self.arrivals(case), client, server, samples)
    }

    /// Adds to the counts of a round what only all threads together tell.
    fn complete_counts(&self, _finished: &RoundResult, _all: &mut Counts) {}

    /// What gathers the rounds of a run.
    fn collector(&self, case: &Case) -> Box<dyn Collector>;

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
    /// What the pattern keeps in the record, in a form of its own.
    pub details: Option<Value>,
}

/// One round as a collector sees it.
pub struct RoundSeen<'a> {
    /// The case as this round ran it.
    pub case: &'a Case,
    /// Its number.
    pub number: usize,
    /// The samples of all threads.
    pub samples: &'a RoundSamples,
    /// What the record says of it.
    pub round: &'a Round,
    /// What the client's threads left.
    pub client: &'a [ThreadResult],
    /// What the server's threads left.
    pub server: &'a [ThreadResult],
    /// The scale of the server's clock.
    pub server_time: &'a Timebase,
}

/// Gathers what a pattern wants to know of the rounds of a run, beside their distributions.
pub trait Collector: Any {
    /// Takes a round.
    fn take(&mut self, round: &RoundSeen<'_>);

    /// The rates of the run so far, the one that answers the question first.
    fn rates(&self, run: &RunSoFar) -> Vec<RateFigure>;

    /// What its rounds posted and delivered, where that is gathered.
    fn work(&self) -> Option<&Rates> {
        None
    }

    /// For patterns that know their own type.
    fn as_any(&self) -> &dyn Any;
}
