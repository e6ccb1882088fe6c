//! What weakens the figures of a run.

use super::pattern::{Arrivals, RunSoFar};
use super::start;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{
    Begin, ClockOffset, Counts, Figure, OffsetCheck, RateFigure, Record, RecordedWarning, Round,
    RoundEnd, Usage,
};
use wiregauge_host::Throttled;
use wiregauge_plan::Ended;
use wiregauge_plan::request::ROUNDS;
use wiregauge_plan::{Case, Plan, Schedule};
use wiregauge_stats::knee::falls_short;
use wiregauge_stats::warnings::{of_rate, of_series, of_summary};
use wiregauge_stats::{Metric, RateMetric};
use wiregauge_transport::Role;
use wiregauge_transport::counter::PREFIX;

/// The interface that has no wire.
const LOOPBACK: &str = "lo";
/// A post that is later than its intended time by more than this is a late one.
const LATENESS_ALLOWED_NS: f64 = 1000.0;
/// What happens to no more than this share of the messages, or of the time, lies beyond p99: it is
/// counted, and warned of where it is more. The noise of a CPU is judged by the same share.
pub(super) const TAIL_SHARE: f64 = 0.01;
/// A larger share of messages without a time at which they were sent is severe.
const UNSTAMPED_SEVERE: f64 = 0.1;
/// From a larger share on there is no figure of the others.
const UNSTAMPED_DROPPED: f64 = 0.5;
/// The share of rounds that have a state, which rounds are to show: one in three nearly.
const RARE_STATE: f64 = 0.3;

/// What became of messages that did not arrive; of `infinite` of them the figures have a sample.
pub fn missing(counts: &Counts, infinite: u64) -> impl Iterator<Item = Warning> {
    let Counts { lost, unfinished, unsent, sent, .. } = *counts;
    // Those that were never sent are counted in the response alone.
    let in_figures = infinite > 0;
    // A rate is that of what arrived; where a message is timed, each that is lost has no time.
    let is_loss = lost > 0 && (in_figures || share(lost, sent) > TAIL_SHARE);
    let lost = is_loss.then_some(Warning::Loss { lost, sent, in_figures });
    let unfinished =
        (unfinished > 0).then_some(Warning::Unfinished { unfinished, sent, in_figures });
    let unsent = (unsent > 0).then_some(Warning::Unsent { unsent, sent });
    [lost, unfinished, unsent].into_iter().flatten()
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

/// The kind of [`Warning::Throttled`].
const THROTTLED: &str = "throttled";

/// Returns the record with the advice that fits where a CPU quota stopped ends of a run: what other
/// warnings of it advise against other processes would not help. Those of the whole record are of
/// the same ends only where all of these are on one host.
#[must_use]
pub fn under_quota(mut record: Record) -> Record {
    let mut is_any_throttled = false;
    for run in &mut record.runs {
        if run.warnings.iter().any(|one| one.kind == THROTTLED) {
            is_any_throttled = true;
            advise_on_quota(&mut run.warnings);
        }
    }
    if is_any_throttled && record.hosts.is_empty() {
        advise_on_quota(&mut record.warnings);
    }
    record
}

/// Options that advice names and the command of every transport has.
const OF_ALL_TRANSPORTS: [&str; 2] = ["--cpus", "--clock"];

/// Returns the record with advice that can be followed: that of a plan of every transport, which
/// alone has a limit of time, names the command that has the option.
#[must_use]
pub fn with_commands(mut record: Record) -> Record {
    if record.plan.time_limit.is_some() {
        for run in &mut record.runs {
            let command =
                format!("wiregauge {} --transport {}", run.case.pattern, run.case.transport);
            for warning in run.warnings.iter_mut().filter(|one| names_other_option(&one.advice)) {
                warning.advice.push_str(&format!(" ({command})"));
            }
        }
    }
    record
}

/// Returns whether advice names an option of one transport's command.
fn names_other_option(advice: &str) -> bool {
    let mut words = advice.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '-');
    words.any(|word| word.starts_with("--") && !OF_ALL_TRANSPORTS.contains(&word))
}

fn advise_on_quota(warnings: &mut Vec<RecordedWarning>) {
    *warnings = std::mem::take(warnings).into_iter().map(RecordedWarning::under_quota).collect();
}

/// Reads what a CPU quota did to an end in a round.
fn throttled_end(usage: &Usage) -> Throttled {
    let [times, ns] = [Throttled::TIMES, Throttled::NS].map(|name| {
        let count = usage.final_counters.get(&format!("{PREFIX}{name}"));
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    });
    Throttled { times, ns }
}

/// What is wrong with the begin and the clocks of a round.
pub fn of_round(plan: &Plan, case: &Case, round: &Round) -> Vec<Warning> {
    let name = |role, begin: &Begin| start::name(plan, case, role, begin);
    let late = round.start.iter().flat_map(|start| start::warnings(round.index, start, name));
    let within = case.profile().clock_within.map(|within| within.0 as f64);
    let known = round.clock.as_ref().zip(within);
    // Refused before it began, where they were known too little then.
    let coarse = known.filter(|(clock, within_ns)| clock.bound_ns > *within_ns);
    let coarse = coarse.map(|(clock, within_ns)| Warning::CoarseClock {
        round: round.index,
        bound_ns: clock.bound_ns,
        within_ns,
    });
    let suspended = Some(round.suspended_ns).filter(|length_ns| *length_ns > 0.0);
    let suspended = suspended.map(|length_ns| Warning::Suspended { round: round.index, length_ns });
    late.chain(coarse).chain(suspended).collect()
}

impl RunSoFar {
    /// Adds the warnings of the figures, the processes and the generator.
    pub fn warn(&mut self, figures: &[Figure], rates: &[RateFigure], plan: &Plan) {
        let mut found = Vec::new();
        if let Some(first) = figures.first() {
            found.extend(of_summary(first.metric, &first.summary));
            let series = self.series.get(&first.metric).map_or(&[][..], Vec::as_slice);
            let tests = plan.cases.len() * self.rounds.len();
            found.extend(of_series(first.metric, series, tests));
        }
        found.extend(self.few_rounds());
        found.extend(
            rates.first().into_iter().flat_map(|figure| of_rate(figure.metric, &figure.rate)),
        );
        found.extend(self.threads_not_concurrent().or_else(|| self.no_rate(rates)));
        found.extend(missing(&self.counts, figures.first().map_or(0, |f| f.summary.lost)));
        let count = self.counts.corrupt;
        found.extend((count > 0).then_some(Warning::CorruptPayload { count }));
        found.extend(self.process_warnings());
        if !self.case.topology.is_between_hosts() {
            found.extend(self.not_on_the_wire());
            found.extend(self.adapter_loopback());
        }
        found.extend(self.evidence_warnings());
        found.extend(self.never_stamped());
        let kept: u64 = self.rounds.iter().map(|round| round.samples).sum();
        let count: u64 = self.rounds.iter().map(|round| round.samples_in_histogram_only).sum();
        found.extend((count > 0).then_some(Warning::HistogramOnly { count, of: kept + count }));
        found.extend(self.cut_short());
        found.extend(self.generator_warnings(rates));
        let went_well = |round: &&Round| !matches!(round.ended, RoundEnd::Fault(_));
        let done = self.rounds.iter().filter(went_well).count() as u32;
        // Of an interval's width the first rounds say how many are needed.
        let planned = self.enough.unwrap_or(plan.rounds.least).max(1);
        if let Some(Err(fault)) = &self.stop {
            found.push(Warning::Incomplete { done, planned, why: fault.to_string() });
        }
        self.warnings.extend(found);
    }

    /// Whether rounds are fewer than those whose range is a 95 % interval of their median.
    fn few_rounds(&self) -> Option<Warning> {
        let rounds = self.rounds.len() as u32;
        let missed = (1.0 - RARE_STATE).powi(rounds as i32);
        (1..ROUNDS).contains(&rounds).then_some(Warning::FewRounds { rounds, missed })
    }

    /// Whether a round that its time was to end was over when its rows were used.
    fn cut_short(&self) -> Option<Warning> {
        let Case { schedule, bound, .. } = &self.case;
        let is_timed = bound.count.is_none() && !matches!(schedule, Schedule::Trace { .. });
        let all = |round: &&Round| round.ended == RoundEnd::Loop(Ended::Count);
        let cut = self.rounds.iter().find(all);
        let cut = cut.filter(|_| is_timed && self.case.profile().is_one_way);
        cut.map(|round| Warning::CutShort {
            messages: round.counts.sent + round.counts.missed_steps,
        })
    }

    /// Rounds of several threads, or of two directions, that have no rate.
    fn threads_not_concurrent(&self) -> Option<Warning> {
        let apart = self.work.delivered.iter().filter(|delivered| delivered.seconds <= 0.0).count();
        let has_flows =
            self.case.threads() > 1 || self.analysis.arrivals(&self.case) == Arrivals::AtBoth;
        (has_flows && apart > 0).then_some(Warning::ThreadsNotConcurrent { rounds: apart as u32 })
    }

    /// Whether too few messages arrived in every round for a rate.
    fn no_rate(&self, rates: &[RateFigure]) -> Option<Warning> {
        let is_none = self.analysis.is_rate() && rates.first()?.rate.value.is_nan();
        let messages = self.rounds.iter().map(|round| round.counts.received).max()?;
        let stride = self.case.profile().stride;
        is_none.then_some(Warning::NoRate { messages, stride })
    }

    /// Whether an interface was named and its wire is not in the figures.
    fn not_on_the_wire(&self) -> Option<Warning> {
        let interface = self.case.settings.interfaces()?.client;
        let interface = interface.to_string();
        (interface != LOOPBACK).then_some(Warning::NotOnTheWire { interface })
    }

    /// Whether both ends of a pair on one host used one port of one adapter.
    fn adapter_loopback(&self) -> Option<Warning> {
        let round = self.rounds.first()?;
        let port = |usage: &Usage| {
            let value = |name| usage.effective_settings.get(name).cloned();
            Some(format!("{}/{}", value("device")?, value("port")?))
        };
        let (client, server) = (port(&round.client)?, port(&round.server)?);
        (client == server).then_some(Warning::AdapterLoopback { port: client })
    }

    /// Returns a warning about messages that arrived and have no time of their own at which they
    /// were sent.
    fn never_stamped(&self) -> Option<Warning> {
        let (count, of) = self.unstamped().filter(|(count, _)| *count > 0)?;
        Some(if share(count, of) > UNSTAMPED_SEVERE {
            Warning::FewStamped { count, of }
        } else {
            Warning::NeverStamped { count, of }
        })
    }

    /// Returns how many messages that arrived have no time at which they were sent, and of how
    /// many; `None`: such times were not asked for.
    fn unstamped(&self) -> Option<(u64, u64)> {
        let count = |metric| {
            let series = self.series.get(&metric).map_or(&[][..], Vec::as_slice);
            series.iter().map(|round| round.len() as u64).sum::<u64>()
        };
        let all = count(Metric::OneWay);
        let is_asked = self.case.settings.stamps_send();
        is_asked.then(|| (all.saturating_sub(count(Metric::Transfer)), all))
    }

    /// Drops the figure of messages of which most have no time at which they were sent: those that
    /// have one are not like the others.
    pub fn drop_figure_of_few_stamped(&self, figures: &mut Vec<Figure>) {
        let is_of_few =
            self.unstamped().is_some_and(|(count, of)| share(count, of) > UNSTAMPED_DROPPED);
        figures.retain(|figure| !is_of_few || figure.metric != Metric::Transfer);
    }

    /// What the processes suffered.
    pub fn process_warnings(&self) -> Vec<Warning> {
        let rounds = self.rounds.len() as u64;
        let mut found = Vec::new();
        // Simulated time does not advance while a process waits.
        if self.case.transport.simulates_time() {
            return found;
        }
        for role in Role::SIDES {
            let used = || self.rounds.iter().map(|round| role.pick(&round.client, &round.server));
            let role = self.case.topology.name_of(role);
            // The tick itself may switch a few times a second; a share of the time matters. Where
            // the kernel does not count it, the number decides.
            let length: f64 = self.rounds.iter().map(|round| round.length_ns).sum();
            let waited: Option<f64> = used().map(|usage| usage.waited_ns).sum();
            let is_long = waited.is_none_or(|waited| waited > TAIL_SHARE * length);
            let count = used().map(|usage| usage.involuntary_switches).sum();
            let switches = Warning::InvoluntarySwitches { role, count };
            found.extend((count > 10 * rounds && is_long).then_some(switches));
            let count = used().map(|usage| usage.page_faults).sum();
            let are_many = count > 20 * rounds && share(count, self.counts.received) > TAIL_SHARE;
            found.extend(are_many.then_some(Warning::PageFaults { role, count }));
        }
        found.extend(self.throttled());
        found
    }

    /// Returns how often and for how long a CPU quota stopped the ends: those of one host are in
    /// one container, and both see all of it.
    fn throttled(&self) -> Vec<Warning> {
        let mut client = Throttled::default();
        let mut server = Throttled::default();
        let mut both = Throttled::default();
        for round in &self.rounds {
            let ends = [&round.client, &round.server].map(throttled_end);
            client = client.and(ends[0]);
            server = server.and(ends[1]);
            both = both.and(Throttled {
                times: ends[0].times.max(ends[1].times),
                ns: ends[0].ns.max(ends[1].ns),
            });
        }
        let seen = if self.case.topology.is_between_hosts() {
            vec![("the client", client), ("the server", server)]
        } else {
            vec![("both ends", both)]
        };
        seen.into_iter()
            .filter(|(_, seen)| seen.times > 0)
            .map(|(ends, Throttled { times, ns })| Warning::Throttled {
                ends,
                times,
                ns: ns as f64,
            })
            .collect()
    }

    fn generator_warnings(&self, rates: &[RateFigure]) -> Vec<Warning> {
        let mut found = Vec::new();
        let lateness = self.series.get(&Metric::Lateness).map_or(&[][..], Vec::as_slice);
        let all = || lateness.iter().flatten().copied();
        let late = all().filter(|late| *late > LATENESS_ALLOWED_NS).count();
        let late = late as f64 / all().count().max(1) as f64;
        if late > TAIL_SHARE {
            found.push(Warning::GeneratorLate {
                share: late,
                allowed_ns: LATENESS_ALLOWED_NS,
                worst_ns: all().fold(0.0, f64::max),
            });
        }
        let value = |metric| {
            rates.iter().find(|figure| figure.metric == metric).map(|figure| figure.rate.value)
        };
        if let (Some(offered), Some(achieved)) =
            (value(RateMetric::OfferedRate), value(RateMetric::AchievedRate))
            && falls_short(offered, achieved, self.counts.sent)
            && self.counts.held_up == 0
        {
            found.push(Warning::GeneratorBound { offered, achieved });
        }
        let Counts { held_up: times, sent, .. } = self.counts;
        let is_blocked = share(times, sent) > TAIL_SHARE && self.case.schedule.is_open();
        found.extend(is_blocked.then_some(Warning::GeneratorBlocked { times, sent }));
        found
    }

    /// The widest bound of the rounds between two hosts.
    pub fn clock_bound(&self) -> Option<f64> {
        let bounds = self.rounds.iter().filter_map(|round| round.clock.as_ref());
        bounds.map(|clock| clock.bound_ns).reduce(f64::max)
    }

    /// What contradicts the clocks, each at its worst.
    fn clocks_disagree(&self) -> Vec<Warning> {
        let worst = |by, check: fn(&ClockOffset) -> Option<OffsetCheck>| {
            let checks = self.rounds.iter().filter_map(|round| check(round.clock.as_ref()?));
            let beyond_ns = checks.map(|check| check.beyond_ns).fold(0.0, f64::max);
            (beyond_ns > 0.0).then_some(Warning::ClocksDisagree { by, beyond_ns })
        };
        let traffic = worst("the measured traffic", |clock| clock.traffic);
        traffic.into_iter().chain(worst("the clock exchanges", |clock| clock.exchanged)).collect()
    }

    /// Drops figures below the clock-error bound.
    pub fn drop_figures_below_clock_bound(&mut self, figures: &mut Vec<Figure>) {
        let steps = self.rounds.iter().filter_map(|round| round.clock.as_ref()).map(|c| c.steps);
        if let Some(steps) = steps.max().filter(|steps| *steps > 0) {
            self.warnings.push(Warning::ClockStepped { times: steps });
        }
        self.warnings.extend(self.clocks_disagree());
        figures.retain(|figure| {
            let Some(bound_ns) = figure.clock_bound_ns else { return true };
            let half = figure.summary.quantile(0.5);
            let p50_ns = half.and_then(|quantile| quantile.value).map_or(0.0, |value| value.0);
            let is_above = p50_ns > bound_ns;
            if !is_above {
                let metric = figure.metric.name();
                self.warnings.push(Warning::BelowClockBound { metric, bound_ns, p50_ns });
            }
            is_above
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_options_that_the_command_of_every_transport_lacks() {
        for (advice, is_other) in [
            ("find what differs between processes (CPU, memory placement); raise --rounds", true),
            ("raise --warmup (of exchange: --time), and look for what changes", true),
            ("use two cores (--cpus)", false),
            ("stop other processes, or isolate the CPU (isolcpus=, nohz_full=)", false),
        ] {
            assert_eq!(names_other_option(advice), is_other, "{advice}");
        }
    }
}
