//! What weakens the figures of a run.

use super::analysis::{Arrivals, RunSoFar};
use crate::loops::Ended;
use crate::plan::request::ROUNDS;
use crate::plan::{Case, Plan, Schedule};
use crate::record::schema::{
    ClockOffset, Counts, Figure, OffsetCheck, RateFigure, Round, RoundEnd,
};
use crate::stats::knee::falls_short;
use crate::stats::warnings::{of_rate, of_series, of_summary};
use crate::stats::{Metric, RateMetric};
use crate::transport::Role;
use crate::warning::Warning;

/// The interface that has no wire.
const LOOPBACK: &str = "lo";
/// A post that is later than its intended time by more than this is a late one.
const LATENESS_ALLOWED_NS: f64 = 1000.0;
/// The share of rounds that have a state, which rounds are to show: one in three nearly.
const RARE_STATE: f64 = 0.3;

impl RunSoFar {
    /// Adds the warnings of the figures, the processes and the generator.
    pub(super) fn warn(&mut self, figures: &[Figure], rates: &[RateFigure], plan: &Plan) {
        let mut found = Vec::new();
        if let Some(first) = figures.first() {
            found.extend(of_summary(first.metric, &first.summary));
            let series = self.series.get(&first.metric).map_or(&[][..], Vec::as_slice);
            found.extend(of_series(first.metric, series));
        }
        found.extend(self.few_rounds());
        found.extend(rates.first().and_then(|figure| of_rate(figure.metric, &figure.rate)));
        found.extend(self.threads_not_concurrent());
        let Counts { lost, sent, corrupt: count, .. } = self.counts;
        found.extend((figures.is_empty() && lost > 0).then_some(Warning::Loss { lost, sent }));
        found.extend((count > 0).then_some(Warning::CorruptPayload { count }));
        found.extend(self.process_warnings());
        found.extend(self.not_on_the_wire().filter(|_| !self.case.topology.is_between_hosts()));
        let kept: u64 = self.rounds.iter().map(|round| round.samples).sum();
        let count: u64 = self.rounds.iter().map(|round| round.samples_in_histogram_only).sum();
        found.extend((count > 0).then_some(Warning::HistogramOnly { count, of: kept + count }));
        found.extend(self.cut_short());
        found.extend(self.generator_warnings(rates));
        let went_well = |round: &&Round| !matches!(round.ended, RoundEnd::Fault(_));
        let done = self.rounds.iter().filter(went_well).count() as u32;
        let incomplete = Warning::Incomplete { done, planned: plan.rounds.least.max(1) };
        found.extend((!self.is_complete()).then_some(incomplete));
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

    /// Whether an interface was named and its wire is not in the figures.
    fn not_on_the_wire(&self) -> Option<Warning> {
        let interface = self.case.settings.interfaces()?.client;
        (interface != LOOPBACK).then_some(Warning::NotOnTheWire { interface })
    }

    /// What the processes suffered.
    fn process_warnings(&self) -> Vec<Warning> {
        let rounds = self.rounds.len() as u64;
        let mut found = Vec::new();
        for &role in Role::ALL {
            let used = || self.rounds.iter().map(|round| role.pick(&round.client, &round.server));
            let role = role.name();
            // The tick itself may switch a few times a second; a share of the samples matters.
            let count = used().map(|usage| usage.involuntary_switches).sum();
            let switches = Warning::InvoluntarySwitches { role, count };
            found.extend((count > 10 * rounds).then_some(switches));
            let count = used().map(|usage| usage.page_faults).sum();
            found.extend((count > 20 * rounds).then_some(Warning::PageFaults { role, count }));
        }
        found
    }

    fn generator_warnings(&self, rates: &[RateFigure]) -> Vec<Warning> {
        let mut found = Vec::new();
        let lateness = self.series.get(&Metric::Lateness).map_or(&[][..], Vec::as_slice);
        let all = || lateness.iter().flatten().copied();
        let late = all().filter(|late| *late > LATENESS_ALLOWED_NS).count();
        if late > 0 {
            found.push(Warning::GeneratorLate {
                share: late as f64 / all().count() as f64,
                allowed_ns: LATENESS_ALLOWED_NS,
                worst_ns: all().fold(0.0, f64::max),
            });
        }
        let value = |metric| {
            rates.iter().find(|figure| figure.metric == metric).map(|figure| figure.rate.value)
        };
        if let (Some(offered), Some(achieved)) =
            (value(RateMetric::OfferedRate), value(RateMetric::AchievedRate))
            && falls_short(self.case.schedule, achieved, self.counts.sent)
            && self.counts.held_up == 0
        {
            found.push(Warning::GeneratorBound { offered, achieved });
        }
        let Counts { held_up: times, sent, .. } = self.counts;
        let is_blocked = times > 0 && self.case.schedule.is_open();
        found.extend(is_blocked.then_some(Warning::GeneratorBlocked { times, sent }));
        found
    }

    /// The widest bound of the rounds between two hosts.
    pub(super) fn clock_bound(&self) -> Option<f64> {
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
    pub(super) fn drop_figures_below_clock_bound(&mut self, figures: &mut Vec<Figure>) {
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
