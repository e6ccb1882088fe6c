//! From the rounds of a case to its run in the record.

use super::analysis::{Collector, Completion, PatternAnalysis, RoundSeen};
use super::beyond;
use super::cpus;
use super::included;
use super::stop::Stop;
use super::tally::add;
use super::threads::{self, ended};
use super::whole;
use crate::clock::Timebase;
use crate::control::fault::Fault;
use crate::host::CpuPair;
use crate::host::Noise;
use crate::plan::{Case, Plan, Rounds};
use crate::record::schema::{
    CaseRecord, ClockOffset, Counts, Figure, Round, RoundEnd, Run, Start, Thread, Usage,
};
use crate::run::round::{RoundResult, ThreadResult};
use crate::sample::RoundSamples;
use crate::sample::histogram::LiveHistogram;
use crate::sample::join::Times;
use crate::stats::knee::Point;
use crate::stats::metric::durations;
use crate::stats::rate::{Delivered, rate};
use crate::stats::{Interval, Metric, Summary, summarize, summarize_live};
use crate::transport::Role;
use crate::warning::Warning;
use std::any::Any;
use std::collections::BTreeMap;

/// Where a round stands among the others.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Its number.
    pub round: u32,
    /// Its position in the order in which all were executed.
    pub position: u32,
    /// Of rounds at the same time: the share of the time in which all ran.
    pub overlap: Option<f64>,
    /// How they began, where all were told one instant.
    pub start: Option<Start>,
}

/// A run while its rounds come in.
pub struct RunSoFar {
    index: usize,
    pub(super) case: Case,
    pub(super) analysis: &'static dyn PatternAnalysis,
    /// A pair for each of its threads.
    cpus: Vec<CpuPair>,
    pub(super) rounds: Vec<Round>,
    /// Durations of each metric, a vector a round.
    pub(super) series: BTreeMap<Metric, Vec<Vec<f64>>>,
    /// Of rounds whose samples were too many: all of them, by size.
    beyond: Vec<BTreeMap<Metric, LiveHistogram>>,
    /// What the pattern gathers beside.
    collector: Box<dyn Collector>,
    pub(super) counts: Counts,
    pub(super) floor: Vec<Vec<f64>>,
    pub(super) recording_ns: Vec<f64>,
    /// Of the client's CPU, and of the server's.
    noise: [Vec<Noise>; 2],
    pub(super) warnings: Vec<Warning>,
    /// Why no further round is wanted.
    stop: Option<Stop>,
}

/// What was seen of a round.
pub struct Seen<'a> {
    /// Of all threads, and of each.
    pub counts: (Counts, Vec<Counts>),
    /// The samples of all threads.
    pub samples: RoundSamples,
    /// The times that they were taken by.
    pub times: Times<'a>,
    /// How far two hosts' clocks were apart.
    pub clock: Option<ClockOffset>,
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
        let cpus = all.into_iter().take(case.most_threads() as usize).collect();
        RunSoFar {
            index,
            case: case.clone(),
            analysis,
            collector: analysis.collector(case),
            cpus,
            rounds: Vec::new(),
            series: BTreeMap::new(),
            beyond: Vec::new(),
            counts: Counts::default(),
            floor: Vec::new(),
            recording_ns: Vec::new(),
            noise: Default::default(),
            warnings: is_short.then_some(warning).into_iter().collect(),
            stop: None,
        }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.index as u32
    }

    /// What is measured.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// Its rounds so far.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// What the pattern has gathered, as its own type.
    pub fn collected<T: Any>(&self) -> Option<&T> {
        self.collector.as_any().downcast_ref()
    }

    /// What each round delivered, in messages, where that is gathered.
    pub(super) fn delivered(&self) -> &[Delivered] {
        self.collector.work().map_or(&[], |work| &work.delivered)
    }

    fn posted(&self) -> &[Delivered] {
        self.collector.work().map_or(&[], |work| &work.posted)
    }

    /// The noise of the CPUs of this host.
    pub fn noise_here(&self) -> impl Iterator<Item = &Noise> {
        let here = |role| self.case.host_of(role).is_none();
        let roles = [Role::Client, Role::Server].into_iter().filter(move |role| here(*role));
        roles.flat_map(|role| role.pick(&self.noise[0], &self.noise[1]))
    }

    /// The noise of a role's CPU, where that is of this host.
    pub fn noise_there(&self, role: Role, host: u32) -> impl Iterator<Item = &Noise> {
        let there = Some(role.pick(&self.noise[0], &self.noise[1]));
        there.filter(|_| self.case.host_of(role) == Some(host)).into_iter().flatten()
    }

    /// Whether no further round is wanted.
    pub fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether all its rounds ended as planned.
    pub fn is_complete(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_planned)
    }

    /// Whether something went wrong in its last round.
    pub(super) fn has_failed(&self) -> bool {
        self.is_over() && !self.is_complete()
    }

    /// Ends it: a round could not even begin.
    pub fn fail(&mut self, fault: Fault) {
        self.stop = Some(Stop::Fault(fault));
    }

    /// Takes one round.
    pub fn take(&mut self, case: &Case, at: At, finished: RoundResult, seen: Seen<'_>) {
        let fault = finished.fault.clone();
        let client = finished.threads_of(Role::Client);
        let server = finished.threads_of(Role::Server);
        let Seen { counts: (counts, counts_of_each), samples, times, clock } = seen;
        let mut round = Round {
            index: at.round,
            position: at.position,
            overlap: at.overlap,
            start: at.start,
            samples: samples.samples.len() as u64,
            stride: case.stride(),
            clock,
            counts,
            ..Round::default()
        };
        let threads = 0..client.len().max(server.len());
        let each: Vec<Thread> = threads
            .map(|number| {
                let ends = (client.get(number), server.get(number));
                let thread = self.thread(number, ends, times.client.time);
                let counts = counts_of_each.get(number).copied().unwrap_or_default();
                Thread { counts, ..thread }
            })
            .collect();
        self.take_threads(each, [client, server], &mut round);
        self.take_outcomes(client, &mut round, times.client.time);
        for (seen, parts) in self.noise.iter_mut().zip([client, server]) {
            seen.extend(parts.iter().filter_map(|part| part.outcome.as_ref()?.noise.clone()));
        }
        for metric in self.analysis.metrics(case) {
            let series = durations(&samples, metric);
            if !series.is_empty() {
                self.series.entry(metric).or_default().push(series);
            }
        }
        self.collector.take(&RoundSeen {
            case,
            number: self.rounds.len(),
            samples: &samples,
            round: &round,
            client,
            server,
            server_time: times.server.time,
        });
        add(&mut self.counts, &round.counts);
        round.ended = match &fault {
            Some(fault) => RoundEnd::Fault(fault.to_string()),
            None => ended(client.first()),
        };
        self.stop = fault.map(Stop::Fault);
        self.rounds.push(round);
    }

    /// One thread of both ends.
    fn thread(
        &mut self,
        number: usize,
        (client, server): (Option<&ThreadResult>, Option<&ThreadResult>),
        base: &Timebase,
    ) -> Thread {
        let outcome = client.and_then(|client| client.outcome.as_ref());
        let span = outcome.map(|outcome| outcome.span);
        let mut usage = |role, part: Option<&ThreadResult>| {
            part.map(|part| self.usage(role, part)).unwrap_or_default()
        };
        let mut thread = Thread {
            started_ns: span.map_or(0.0, |(begin, _)| base.local(begin).0),
            length_ns: span.map_or(0.0, |(begin, end)| base.span(end - begin)),
            ended: ended(client),
            client: usage(Role::Client, client),
            server: usage(Role::Server, server),
            ..Thread::default()
        };
        let is_pinned = thread.client.pinned && thread.server.pinned;
        thread.cpus = self.cpus.get(number).copied().filter(|_| is_pinned);
        thread
    }

    /// What holds for the round of what its threads did. It lasted from the first beginning to the
    /// last end.
    fn take_threads(
        &mut self,
        each: Vec<Thread>,
        [clients, servers]: [&[ThreadResult]; 2],
        round: &mut Round,
    ) {
        let of = |parts: &[ThreadResult], side: fn(&Thread) -> &Usage| -> Usage {
            let each: Vec<&Usage> = each.iter().take(parts.len()).map(side).collect();
            threads::whole(&each, &threads::counters(parts))
        };
        round.client = of(clients, |thread| &thread.client);
        round.server = of(servers, |thread| &thread.server);
        round.cpus = each.first().and_then(|thread| thread.cpus);
        let ran = || each.iter().filter(|thread| thread.length_ns > 0.0);
        let begin = ran().map(|thread| thread.started_ns).fold(f64::INFINITY, f64::min);
        let ends = ran().map(|thread| thread.started_ns + thread.length_ns);
        if begin.is_finite() {
            round.started_ns = begin;
            round.length_ns = ends.fold(0.0, f64::max) - begin;
        }
        if each.len() > 1 {
            round.threads = each;
        }
    }

    fn take_outcomes(&mut self, client: &[ThreadResult], round: &mut Round, base: &Timebase) {
        let mut all: BTreeMap<Metric, LiveHistogram> = BTreeMap::new();
        for outcome in client.iter().filter_map(|part| part.outcome.as_ref()) {
            let floor = outcome.floor.iter().map(|&t| f64::from(t) * base.ns_per_tick);
            self.floor.push(floor.collect());
            self.recording_ns.push(outcome.recording_ticks * base.ns_per_tick);
            for (metric, beyond) in beyond::histograms(&outcome.beyond, base) {
                match all.get_mut(&metric) {
                    // Two that cannot be put together would hold more samples than can be counted.
                    Some(all) => all.merge(&beyond).unwrap_or_default(),
                    None => {
                        all.insert(metric, beyond);
                    }
                }
            }
        }
        if client.iter().any(|part| part.outcome.is_some()) {
            let counts = all.values().map(LiveHistogram::count);
            round.samples_in_histogram_only = counts.max().unwrap_or(0);
            self.beyond.push(all);
        }
    }

    fn usage(&mut self, role: Role, part: &ThreadResult) -> Usage {
        let mut usage = Usage {
            granted: part.effective_settings.iter().cloned().collect(),
            ..Usage::default()
        };
        let Some(outcome) = &part.outcome else { return usage };
        usage.seen = threads::shown(&outcome.counters);
        usage.user_ns = outcome.usage.user_ns;
        usage.system_ns = outcome.usage.system_ns;
        usage.voluntary_switches = outcome.usage.voluntary_switches;
        usage.involuntary_switches = outcome.usage.involuntary_switches;
        usage.page_faults = outcome.usage.page_faults;
        usage.pinned = outcome.pinned.is_ok();
        usage.locked = outcome.locked.is_ok();
        self.warnings.extend(self.analysis.counter_warnings(&outcome.counters));
        let messages = outcome.seen.foreign;
        self.warnings.extend((messages > 0).then_some(Warning::UnknownSequence { messages }));
        let role = role.name();
        if !usage.pinned {
            self.warnings.push(Warning::Unpinned { role });
        }
        if let Err(reason) = &outcome.locked {
            self.warnings.push(Warning::MemoryNotLocked { role, reason: reason.clone() });
        }
        usage
    }

    /// Whether enough rounds have come.
    pub fn decide(&mut self, rounds: Rounds) {
        let done = self.rounds.len() as u32;
        if self.is_over() || done < rounds.least {
            return;
        }
        match rounds.until {
            None if done >= rounds.most => {
                self.stop = Some(Stop::All { rounds: done });
            }
            Some(width) if self.is_narrow(width) => {
                self.stop = Some(Stop::Narrow { rounds: done, width });
            }
            Some(width) if done >= rounds.most => {
                self.stop = Some(Stop::Wide { rounds: done, width });
            }
            _ => {}
        }
    }

    fn is_narrow(&self, width: f64) -> bool {
        let within = |value: f64, interval: Option<Interval>| {
            interval.is_some_and(|i| (i.high.0 - value).max(value - i.low.0) <= width * value.abs())
        };
        if self.analysis.is_rate() {
            let rate = rate(self.delivered());
            return within(rate.value, rate.interval);
        }
        let Some(metric) = self.analysis.metrics(&self.case).first().copied() else {
            return true;
        };
        let summary = self.summary(metric, f64::INFINITY);
        [0.5, 0.99].iter().all(|p| {
            let quantile = summary.quantile(*p);
            // A quantile that cannot be shown does not hold the rounds up.
            quantile.is_none_or(|q| q.value.is_none_or(|value| within(value.0, q.interval)))
        })
    }

    fn summary(&self, metric: Metric, threshold_ns: f64) -> Summary {
        let none = Vec::new();
        let series = self.series.get(&metric).unwrap_or(&none);
        if self.beyond.iter().all(BTreeMap::is_empty) {
            return summarize(series, threshold_ns);
        }
        let half = if metric == Metric::HalfRtt { 0.5 } else { 1.0 };
        let live = series.iter().zip(&self.beyond).filter_map(|(raw, beyond)| {
            let mut all = LiveHistogram::new(crate::sample::histogram::DEFAULT_UNIT_NS).ok()?;
            raw.iter().for_each(|ns| all.record_ns(*ns));
            let kind = beyond::counted_as(metric);
            if let Some(beyond) = beyond.get(&kind) {
                for (ns, times) in beyond.values_ns() {
                    all.record_ns_many(ns * half, times);
                }
                all.record_lost(beyond.lost());
            }
            Some(all)
        });
        summarize_live(&live.collect::<Vec<_>>(), series, threshold_ns)
    }

    /// The run as it stands in the record.
    pub fn into_run(mut self, plan: &Plan, completion: Completion) -> Run {
        let threshold_ns = plan.threshold.0 as f64;
        let metrics: Vec<Metric> = self.series.keys().copied().collect();
        let mut figures = Vec::new();
        for metric in self.analysis.metrics(&self.case) {
            if metrics.contains(&metric) {
                let summary = self.summary(metric, threshold_ns);
                let clock_bound_ns = self.clock_bound().filter(|_| metric.is_between_ends());
                figures.push(Figure { metric, unit: "ns".into(), summary, clock_bound_ns });
            }
        }
        self.leave_out_what_the_clocks_do_not_tell(&mut figures);
        let mut rates = self.collector.rates(&self);
        self.warn(&figures, &rates, plan);
        let included = included::of(&self.case, self.analysis);
        let headline = match self.analysis.is_rate() {
            true => rates.first().map(|figure| figure.metric.name()),
            false => self.analysis.metrics(&self.case).first().map(|metric| metric.name()),
        };
        let headline = headline.unwrap_or_default().to_string();
        figures.extend(completion.figures);
        rates.extend(completion.rates);
        let complete = self.is_complete();
        let unfinished = || format!("{} of the rounds were made", self.rounds.len());
        let stopped = self.stop.as_ref().map_or_else(unfinished, Stop::to_string);
        Run {
            index: self.index as u32,
            label: plan.label(self.index),
            case: CaseRecord::from(&self.case),
            headline,
            complete,
            stopped,
            rounds: self.rounds,
            figures,
            rates,
            details: completion.details,
            counts: self.counts,
            included,
            warnings: whole::recorded(&self.warnings),
        }
    }

    /// What a point of a curve over load says; `None`: it has no schedule.
    pub fn point(&self, bounded: f64) -> Option<Point> {
        let summary = self.summary(Metric::Response, f64::INFINITY);
        let quantile = |p: f64| {
            let found = summary.quantile(p);
            found.and_then(|quantile| quantile.value).map_or(f64::NAN, |value| value.0)
        };
        let counts = (self.counts.sent, self.counts.held_up);
        Point::new(self.case.schedule, rate(self.posted()).value, counts, quantile, bounded)
    }

    /// Messages per second that were answered.
    pub fn capacity(&self) -> f64 {
        rate(self.delivered()).value
    }
}
