//! What the clients on each of several hosts of one server saw by themselves, and which host stands
//! out from the others. Figures of a run pool them all, in which one slow host is a part of the
//! tail.
//!
//! A host stands out by a figure (p50 or p99 of the run's first metric, or the mean slowdown) where
//! its 95 % interval has no value in common with the interval of any other host and lies on one
//! side of all of them, and its value is not within 0.8 to 1.2 times that of all hosts together
//! (the range of the Homa project's cperf.py). Of two hosts only the slower can stand out: which of
//! them is unusual cannot be told. Of hosts that are alike, an interval of 95 % lies beyond that of
//! one other by chance in 1 of 180 comparisons (two means of equal error differ by 2 x 1.96 errors
//! or more), and less often beyond those of several.

use std::collections::BTreeMap;
use wiregauge_base::units::quantile_name;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{ClientHost, Figure, RateFigure};
use wiregauge_plan::{Case, Plan};
use wiregauge_sample::RoundSamples;
use wiregauge_stats::metric::durations;
use wiregauge_stats::{Interval, Metric, Rate, RateMetric, summarize};
use wiregauge_transport::Role;

/// Within this range of the figure of all hosts none stands out.
const ALIKE: std::ops::RangeInclusive<f64> = 0.8..=1.2;
/// The quantiles by which hosts are compared.
const QUANTILES: [f64; 2] = [0.5, 0.99];
/// The name of the other figure.
const SLOWDOWN: &str = "slowdown";

/// Durations of each host, a vector a round, and of which metric.
#[derive(Default)]
pub struct ByHost {
    series: BTreeMap<Option<u32>, Vec<Vec<f64>>>,
    metric: Option<Metric>,
}

/// The samples of a round by the host of their client; empty where all are of one host.
pub fn by_host(case: &Case, samples: &RoundSamples) -> BTreeMap<Option<u32>, RoundSamples> {
    let mut all = BTreeMap::new();
    if !case.topology.has_several_clients() {
        return all;
    }
    let RoundSamples { run, round, samples } = samples;
    for sample in samples {
        let host = case.topology.host_of_thread(Role::Client, sample.thread);
        let of_host = || RoundSamples { run: *run, round: *round, samples: Vec::new() };
        all.entry(host).or_insert_with(of_host).samples.push(*sample);
    }
    all
}

impl ByHost {
    /// Takes a round.
    pub fn take(&mut self, case: &Case, metric: Metric, samples: &RoundSamples) {
        self.metric = Some(metric);
        for (host, samples) in by_host(case, samples) {
            let series = durations(&samples, metric);
            if !series.is_empty() {
                self.series.entry(host).or_default().push(series);
            }
        }
    }

    /// The figures of each host; `slowdowns`: the mean one of each, where it is known.
    pub fn figures(&self, slowdowns: &BTreeMap<Option<u32>, Rate>, plan: &Plan) -> Vec<ClientHost> {
        let Some(metric) = self.metric else { return Vec::new() };
        let of_host = |(&host, rounds): (&Option<u32>, &Vec<Vec<f64>>)| ClientHost {
            host,
            name: plan.host(host).to_string(),
            metric,
            summary: summarize(rounds, plan.threshold.0 as f64),
            slowdown: slowdowns.get(&host).cloned(),
            stands_out: Vec::new(),
        };
        self.series.iter().map(of_host).collect()
    }
}

/// A value with its interval.
type Known = (f64, Option<Interval>);

/// A figure of a host by its name.
fn figure(host: &ClientHost, name: &str) -> Option<Known> {
    if name == SLOWDOWN {
        return host.slowdown.as_ref().map(|rate| (rate.value, rate.interval));
    }
    let p = QUANTILES.into_iter().find(|p| quantile_name(*p) == name)?;
    let quantile = host.summary.quantile(p)?;
    Some((quantile.value?.0, quantile.interval))
}

/// Those whose interval lies on one side of the intervals of all others.
fn beyond_the_others(all: &[Option<Known>]) -> Vec<usize> {
    let interval = |known: &Option<Known>| known.and_then(|(_, interval)| interval);
    let Some(intervals) = all.iter().map(interval).collect::<Option<Vec<Interval>>>() else {
        return Vec::new();
    };
    let stands_out = |number: &usize| {
        let own = intervals[*number];
        let mut others =
            intervals.iter().enumerate().filter(|(other, _)| other != number).map(|(_, i)| i);
        let is_above = others.clone().all(|other| own.low.0 > other.high.0);
        let is_below = intervals.len() > 2 && others.all(|other| own.high.0 < other.low.0);
        intervals.len() > 1 && (is_above || is_below)
    };
    (0..intervals.len()).filter(stands_out).collect()
}

/// Notes by what each host stands out, of all hosts with these figures; a warning for each that
/// does, with the figure that is furthest from that of all.
pub fn compare(hosts: &mut [ClientHost], figures: &[Figure], rates: &[RateFigure]) -> Vec<Warning> {
    let mut found: BTreeMap<usize, (String, f64)> = BTreeMap::new();
    for name in QUANTILES.map(quantile_name).iter().map(String::as_str).chain([SLOWDOWN]) {
        let known: Vec<Option<Known>> = hosts.iter().map(|host| figure(host, name)).collect();
        for number in beyond_the_others(&known) {
            let host = &mut hosts[number];
            let all = of_all(name, host.metric, figures, rates).filter(|all| *all > 0.0);
            let Some(ratio) = known[number].zip(all).map(|((value, _), all)| value / all) else {
                continue;
            };
            if !ratio.is_finite() || ALIKE.contains(&ratio) {
                continue;
            }
            host.stands_out.push(name.to_string());
            let figure = match name {
                SLOWDOWN => "mean slowdown".to_string(),
                quantile => format!("{} {quantile}", host.metric.name()),
            };
            let is_further = |(_, known): &(String, f64)| ratio.ln().abs() > known.ln().abs();
            if found.get(&number).is_none_or(is_further) {
                found.insert(number, (figure, ratio));
            }
        }
    }
    let warning = |(number, (figure, ratio)): (usize, (String, f64))| Warning::HostStandsOut {
        host: hosts[number].name.clone(),
        figure,
        ratio,
    };
    found.into_iter().map(warning).collect()
}

/// A figure of all hosts together by its name.
fn of_all(name: &str, metric: Metric, figures: &[Figure], rates: &[RateFigure]) -> Option<f64> {
    if name == SLOWDOWN {
        let own = rates.iter().find(|one| one.metric == RateMetric::Slowdown);
        return own.map(|one| one.rate.value);
    }
    let p = QUANTILES.into_iter().find(|p| quantile_name(*p) == name)?;
    let own = figures.iter().find(|one| one.metric == metric)?;
    Some(own.summary.quantile(p)?.value?.0)
}

#[cfg(test)]
mod tests;
