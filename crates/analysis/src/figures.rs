//! From the rounds of a case to its run in the record.

use super::counts::add;
use super::pattern::{Completion, PatternAnalysis, RoundSeen, RunSoFar};
use super::rates::Rates;
use super::threads::{self, ended};
use super::{client_hosts, overhead, stalls};
use crate::result::RoundResult;
use crate::result::ThreadResult;
use std::collections::BTreeMap;
use wiregauge_base::units::quantile_name;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{
    Counts, Figure, Instrument, RecordedWarning, Round, RoundEnd, Run, Thread,
};
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::protocol::Outcome;
use wiregauge_measure::loops::waiter::ADAPTIVE_SPIN;
use wiregauge_plan::{Case, Plan, Rounds};
use wiregauge_sample::RoundSamples;
use wiregauge_sample::histogram::LiveHistogram;
use wiregauge_sample::join::{End, Times};
use wiregauge_sample::recorder::Beyond;
use wiregauge_stats::knee::Point;
use wiregauge_stats::metric::durations;
use wiregauge_stats::rate::{rate, rounds_needed};
use wiregauge_stats::{Interval, KnownError, Metric, Summary, summarize, summarize_live};
use wiregauge_transport::{Role, Wait};

/// What was seen of a round.
pub struct Seen<'a> {
    /// Of each thread.
    pub counts: Vec<Counts>,
    /// The samples of all threads.
    pub samples: RoundSamples,
    /// The times that they were taken by.
    pub times: Times<'a>,
}

impl RunSoFar {
    /// Takes one round, of which `round` has its place among the others, its clock and its counts.
    pub fn take(&mut self, case: &Case, mut round: Round, finished: RoundResult, seen: Seen<'_>) {
        let client = finished.threads_of(Role::Client);
        let server = finished.threads_of(Role::Server);
        let Seen { counts, samples, times } = seen;
        // The epoch of one client's clock is that of the round.
        let unshifted = End { offset: None, ..times.client };
        let client_end = |number: usize| times.nodes.get(number).copied().unwrap_or(unshifted);
        round.samples = samples.samples.len() as u64;
        let each: Vec<Thread> = (0..client.len().max(server.len()))
            .map(|number| {
                let ends = [client.get(number), server.get(number)];
                let thread = self.thread(number, ends, client_end(number));
                Thread { counts: counts.get(number).copied().unwrap_or_default(), ..thread }
            })
            .collect();
        round.client = threads::usage(client);
        round.server = threads::usage(server);
        take_threads(each, &mut round);
        round.ended = match &finished.fault {
            Some(fault) => RoundEnd::Fault(fault.to_string()),
            None => ended(client.first()),
        };
        self.take_outcomes(client, &mut round, |number| client_end(number).time.ns_per_tick);
        for (role, parts) in Role::SIDES.iter().zip([client, server]) {
            let cpus = self.cpus.iter().map(|pair| role.pick(pair.client, pair.server));
            for (part, cpu) in parts.iter().zip(cpus) {
                let Some(outcome) = &part.outcome else { continue };
                self.noise.extend(outcome.noise.clone().map(|noise| (part.host, noise)));
                self.shared_cpus.extend(outcome.shares_cpu.then_some((part.host, cpu)));
            }
        }
        for metric in self.analysis.metrics(case) {
            let series = durations(&samples, metric);
            if !series.is_empty() {
                self.series.entry(metric).or_default().push(series);
                self.sampled.entry(metric).or_default().push(self.rounds.len());
            }
        }
        if let Some(first) = self.analysis.metrics(case).first() {
            self.by_host.take(case, *first, &samples);
        }
        let is_rate = self.analysis.is_rate();
        self.stalls.extend(stalls::of_round(case, &samples.samples, &round, is_rate));
        let seen = RoundSeen {
            case,
            samples: &samples,
            round: &round,
            client,
            server,
            server_time: times.server.time,
        };
        if !self.analysis.rates(case).is_empty() {
            self.work.add(self.analysis.work(&seen));
        }
        self.collector.add_round(&seen);
        add(&mut self.counts, &round.counts);
        self.stop = finished.fault.map(Err);
        self.rounds.push(round);
    }

    /// One thread of both ends.
    fn thread(
        &mut self,
        number: usize,
        [client, server]: [Option<&ThreadResult>; 2],
        end: End<'_>,
    ) -> Thread {
        for (role, part) in Role::SIDES.iter().zip([client, server]) {
            if let Some(outcome) = part.and_then(|part| part.outcome.as_ref()) {
                self.warn_of(self.case.topology.name_of(*role), outcome);
            }
        }
        let span = client.and_then(|client| Some(client.outcome.as_ref()?.span));
        let usage = |part: Option<&ThreadResult>| {
            part.map(|part| threads::usage(std::slice::from_ref(part))).unwrap_or_default()
        };
        let (used_client, used_server) = (usage(client), usage(server));
        // A node has no other side.
        let ends = [(client, &used_client), (server, &used_server)];
        let is_pinned = ends.iter().all(|(part, used)| part.is_none() || used.pinned);
        Thread {
            started_ns: span.map_or(0.0, |(begin, _)| end.instant(begin).0),
            length_ns: span.map_or(0.0, |(begin, over)| end.time.span(over - begin)),
            ended: ended(client),
            client: used_client,
            server: used_server,
            cpus: self.cpus.get(number).copied().filter(|_| is_pinned),
            ..Thread::default()
        }
    }

    pub fn warn_of(&mut self, role: &'static str, outcome: &Outcome) {
        self.warnings.extend(self.analysis.counter_warnings(&outcome.counters));
        let of_transport = self.case.transport.descriptor().counter_warnings;
        self.warnings.extend(of_transport(&outcome.counters));
        let messages = outcome.counts.foreign;
        self.warnings.extend((messages > 0).then_some(Warning::UnknownSequence { messages }));
        // A simulation is as right on any CPU and in any memory.
        if self.case.transport.simulates_time() {
            return;
        }
        self.warnings.extend(outcome.pinned.is_err().then_some(Warning::Unpinned { role }));
        let reason = outcome.locked.as_ref().err().cloned();
        self.warnings.extend(reason.map(|reason| Warning::MemoryNotLocked { role, reason }));
    }

    pub fn take_outcomes(
        &mut self,
        client: &[ThreadResult],
        round: &mut Round,
        ns_per_tick: impl Fn(usize) -> f64,
    ) {
        let mut all: BTreeMap<Metric, LiveHistogram> = BTreeMap::new();
        for (number, part) in client.iter().enumerate() {
            let (Some(outcome), ns_per_tick) = (&part.outcome, ns_per_tick(number)) else {
                continue;
            };
            let overhead = outcome.overhead.iter().map(|&t| f64::from(t) * ns_per_tick);
            self.overhead.push(overhead.collect());
            self.recording_ns.push(outcome.recording_ticks * ns_per_tick);
            let Beyond { service, response, lateness } = &outcome.beyond;
            let (service, response) = ((Metric::Service, service), (Metric::Response, response));
            for (metric, sparse) in [service, response, (Metric::Lateness, lateness)] {
                let Some(mut sparse) = sparse.clone() else { continue };
                // The agent counted in ticks; what a tick is is known here.
                sparse.totals.unit_ns = ns_per_tick;
                let Ok(beyond) = LiveHistogram::from_sparse(&sparse) else { continue };
                // Two that cannot be put together would hold more samples than can be counted.
                let merged = |all: &mut LiveHistogram| all.merge(&beyond).unwrap_or_default();
                all.entry(metric).and_modify(merged).or_insert(beyond);
            }
        }
        let counts = all.values().map(LiveHistogram::count);
        round.samples_in_histogram_only = counts.max().unwrap_or(0);
        self.beyond.push(all);
    }

    /// Whether enough rounds have come. Where intervals are to be narrow, the first rounds say once
    /// how many are enough: stopping at the first look that is narrow would choose the rounds by
    /// their luck. Returns the fault of a run of which not one message has arrived.
    pub fn decide(&mut self, rounds: Rounds) -> Option<Fault> {
        let done = self.rounds.len() as u32;
        if self.is_over() || done < self.enough.unwrap_or(rounds.least) {
            return None;
        }
        if let Some(fault) = nothing_arrived(&self.counts) {
            self.stop = Some(Err(fault.clone()));
            return Some(fault);
        }
        let Some(width) = rounds.until else {
            self.stop = Some(Ok(format!("all {done} rounds were measured")));
            return None;
        };
        self.stop = self.verdict(rounds, width).map(Ok);
        None
    }

    /// Returns the width of the intervals in a sentence, once there are enough rounds.
    fn verdict(&mut self, rounds: Rounds, width: f64) -> Option<String> {
        let done = self.rounds.len() as u32;
        let (what, reach) = self.widest();
        let enough = *self.enough.get_or_insert_with(|| {
            reach.map_or(rounds.most, |reach| rounds_needed(done, reach, width)).min(rounds.most)
        });
        if done < enough {
            return None;
        }
        let percent = |share: f64| format!("{:.3} %", 100.0 * share);
        let ends = match reach {
            Err(why) => format!("{what} {why}"),
            Ok(reach) => format!("the interval of {what} over rounds reaches ±{}", percent(reach)),
        };
        let (least, target) = (rounds.least, percent(width));
        let verdict = match reach.is_ok_and(|reach| reach <= width) {
            true => format!("target ±{target} met"),
            false if done == rounds.most => {
                format!("target ±{target} missed, and --rounds allows no more rounds")
            }
            false => {
                format!(
                    "target ±{target} missed: the first {least} rounds predicted that {enough} \
                     suffice"
                )
            }
        };
        Some(format!("after {done} rounds {ends}: {verdict}"))
    }

    /// Of the figures that `--until` is about, that with the widest interval, and how far this
    /// reaches from the value, as a share of it, or why there is no such share.
    pub fn widest(&self) -> (String, Reach) {
        if self.analysis.is_rate() {
            let rate = rate(&self.work.delivered);
            return ("the rate".into(), reach(rate.value, rate.interval));
        }
        let Some(metric) = self.analysis.metrics(&self.case).first().copied() else {
            return ("nothing".into(), Ok(0.0));
        };
        let summary = self.summary(metric, f64::INFINITY);
        let of = |p: f64| {
            let quantile = summary.quantile(p);
            let value = quantile.and_then(|quantile| Some((quantile.value?.0, quantile.interval)));
            value.map_or(Err("has too few samples"), |(value, interval)| reach(value, interval))
        };
        let [p50, p99] = [0.5, 0.99].map(|p| (quantile_name(p), of(p)));
        let is_p50 = p99.1.is_ok_and(|p99| p50.1.is_ok_and(|p50| p50 > p99));
        let (name, widest) = if is_p50 { p50 } else { p99 };
        (format!("{} {name}", metric.name()), widest)
    }

    pub fn summary(&self, metric: Metric, threshold_ns: f64) -> Summary {
        let none = Vec::new();
        let series = self.series.get(&metric).unwrap_or(&none);
        if self.beyond.iter().all(BTreeMap::is_empty) {
            return summarize(series, threshold_ns);
        }
        let half = if metric == Metric::HalfRtt { 0.5 } else { 1.0 };
        let sampled = self.sampled.get(&metric).into_iter().flatten();
        let beyond = sampled.map(|round| self.beyond.get(*round));
        let live = series.iter().zip(beyond).filter_map(|(raw, beyond)| {
            let mut all = LiveHistogram::new(wiregauge_sample::histogram::DEFAULT_UNIT_NS).ok()?;
            raw.iter().for_each(|ns| all.record_ns(*ns));
            let kind = counted_as(metric);
            if let Some(beyond) = beyond.and_then(|beyond| beyond.get(&kind)) {
                for (ns, times) in beyond.values_ns() {
                    all.record_ns_many(ns * half, times);
                }
                all.record_lost(beyond.totals.lost);
            }
            Some(all)
        });
        summarize_live(&live.collect::<Vec<_>>(), series, threshold_ns)
    }

    /// The run as it stands in the record; `cause` is why one ended early that had no fault itself.
    pub fn into_run(
        mut self,
        plan: &Plan,
        completion: Completion,
        instrument: &Instrument,
        cause: &Fault,
    ) -> Run {
        self.stop.get_or_insert_with(|| Err(cause.clone()));
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
        self.drop_figures_below_clock_bound(&mut figures);
        self.drop_figure_of_few_stamped(&mut figures);
        let has_rates = !self.analysis.rates(&self.case).is_empty();
        let mut rates = if has_rates { self.analysis.rate_figures(&self) } else { Vec::new() };
        self.warn(&figures, &rates, plan);
        // The null transport shows the overhead itself, and simulated time has none.
        let is_real = !self.case.transport.descriptor().one_process;
        let added_by = Some(instrument).filter(|_| is_real);
        figures.iter_mut().for_each(|figure| add_known_error(figure, added_by));
        let first = figures.first().filter(|_| is_real);
        self.warnings.extend(first.and_then(|figure| overhead::below(figure, instrument)));
        let (stalls, notes) = stalls::of_run(std::mem::take(&mut self.stalls));
        self.warnings.extend(notes);
        let mut client_hosts = self.by_host.figures(&completion.slowdown_by_host, plan);
        let compared = client_hosts::compare(&mut client_hosts, &figures, &completion.rates);
        self.warnings.extend(compared.into_iter().chain(completion.warnings));
        let run = self.without_rounds(plan);
        for mut figure in completion.figures {
            add_known_error(&mut figure, added_by);
            figures.push(figure);
        }
        rates.extend(completion.rates);
        let complete = self.is_complete();
        let stopped = match &self.stop {
            Some(Ok(sentence)) => sentence.clone(),
            Some(Err(fault)) => fault.to_string(),
            None => String::new(),
        };
        Run {
            complete,
            stopped,
            rounds: self.rounds,
            figures,
            rates,
            details: completion.details,
            counts: self.counts,
            stalls,
            client_hosts,
            warnings: RecordedWarning::each_once(&self.warnings),
            ..run
        }
    }

    /// What a point of a curve over load says; `None`: it has no schedule.
    pub fn point(&self, bounded: f64) -> Option<Point> {
        let summary = self.summary(Metric::Response, f64::INFINITY);
        let Rates { offered, posted, delivered } = &self.work;
        let rates = [offered, posted, delivered].map(|work| rate(work));
        let requests = self.counts.requests();
        let schedule = self.case.schedule;
        Point::new(schedule, rates.each_ref().map(Some), requests, Some(&summary), bounded)
    }

    /// Messages per second that were answered.
    pub fn capacity(&self) -> f64 {
        rate(&self.work.delivered).value
    }
}

/// Returns the fault of a run that has sent messages of which none arrived: it lacks a path, and a
/// share of lost messages would say something else.
fn nothing_arrived(counts: &Counts) -> Option<Fault> {
    let Counts { sent, received, .. } = *counts;
    (sent > 0 && received == 0).then(|| {
        Fault::new(format!(
            "none of {sent} messages arrived, so there is no figure: a firewall, an MTU or a \
             receive buffer drops them all (`wiregauge hosts` tries the path)"
        ))
    })
}

/// Adds to the intervals of a figure what is known to be wrong with its samples: by their clocks,
/// and by an instrument that adds something.
fn add_known_error(figure: &mut Figure, instrument: Option<&Instrument>) {
    let instrument_ns =
        instrument.map_or(0.0, |instrument| overhead::added_ns(figure.metric, instrument));
    let known = KnownError { clock_ns: figure.clock_bound_ns.unwrap_or(0.0), instrument_ns };
    figure.summary = figure.summary.clone().with_known_error(known);
}

/// How far an interval reaches from its value, as a share of it, or why there is no such share.
type Reach = Result<f64, &'static str>;

fn reach(value: f64, interval: Option<Interval>) -> Reach {
    let interval = interval.ok_or("has no interval")?;
    interval.reach(value).ok_or(match value {
        0.0 => "is 0",
        _ if value.is_infinite() => "is infinite",
        _ => "has an interval with an open end",
    })
}

/// What holds for a round of what its threads did. It lasted from the first beginning to the last
/// end.
pub fn take_threads(each: Vec<Thread>, round: &mut Round) {
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

/// The metric under which a metric's messages without a row were counted.
pub fn counted_as(metric: Metric) -> Metric {
    match metric {
        Metric::Response | Metric::Lateness => metric,
        _ => Metric::Service,
    }
}

/// What was included in the figures: name, value.
pub fn method_notes(case: &Case, analysis: &dyn PatternAnalysis) -> BTreeMap<String, String> {
    let wait = match case.wait {
        Wait::Busy => "busy: both ends poll without a pause".to_string(),
        Wait::Block => "block: both ends sleep in the kernel".to_string(),
        Wait::Adaptive => {
            format!("adaptive: both ends poll for {} us, then sleep", ADAPTIVE_SPIN.0 / 1000)
        }
    };
    let batching = match case.profile().burst {
        1 => "one message per flush".to_string(),
        burst => format!("{burst} messages per flush"),
    };
    let payload = if case.check { "filled and verified" } else { "numbered, not verified" };
    let mut notes = BTreeMap::from([
        ("batching".to_string(), batching),
        ("wait".to_string(), wait),
        ("payload".to_string(), payload.to_string()),
        ("path".to_string(), case.transport.descriptor().path.to_string()),
    ]);
    notes.extend(analysis.method_notes(case));
    notes
}
