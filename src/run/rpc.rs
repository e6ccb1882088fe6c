//! Requests of `rpc` by their lengths, and how much the load slows each length down.

use super::figures::RunSoFar;
use crate::plan::rpc::{Draws, Slowdown};
use crate::plan::{Case, Plan};
use crate::record::lengths::{Lengths, MeanSlowdown, OfSize, Short, Unloaded};
use crate::record::schema::{Figure, RateFigure, Run};
use crate::sample::{Flags, RoundSamples};
use crate::stats::rate::{Delivered, rate};
use crate::stats::{Metric, Quantile, RateMetric, Summary, summarize};
use std::collections::BTreeMap;

/// Of all requests, the share that counts as the shortest ones (as cperf has it).
const SHORT_SHARE: f64 = 0.1;
/// The tail is drawn of those of them that are shorter than a frame of Ethernet carries (the same).
const SHORT_BELOW: u32 = 1500;
/// Points of a complementary distribution for each factor of 10.
const POINTS: f64 = 16.0;

/// Says how long each request of a thread was.
pub(super) fn set_lengths(case: &Case, thread: usize, round: &mut RoundSamples) {
    let Some(draws) = Draws::of(case, thread as u32) else { return };
    round.samples.iter_mut().for_each(|sample| sample.size = draws.length(sample.sequence));
}

/// The times of each length, a vector a round.
#[derive(Default)]
pub(super) struct BySize(BTreeMap<u32, Vec<Vec<f64>>>);

impl BySize {
    /// Takes one round.
    pub(super) fn take(&mut self, case: &Case, round: usize, samples: &RoundSamples) {
        if case.rpc.is_none() {
            return;
        }
        let metric = metric_of(case);
        for sample in samples.samples.iter().filter(|s| !s.flags.has(Flags::WARMUP)) {
            let Some(ns) = metric.of_sample(sample) else { continue };
            let rounds = self.0.entry(sample.size).or_default();
            if rounds.len() <= round {
                rounds.resize_with(round + 1, Vec::new);
            }
            rounds[round].push(ns);
        }
    }
}

impl BySize {
    /// Bytes of requests that were answered in the time in which so many were.
    pub(super) fn bandwidth(&self, delivered: &[Delivered]) -> Option<RateFigure> {
        let (mut bytes, mut answered) = (0.0, 0.0);
        for (size, rounds) in &self.0 {
            let came = rounds.iter().flatten().filter(|ns| ns.is_finite()).count() as f64;
            bytes += f64::from(*size) * came;
            answered += came;
        }
        let mean = bytes / answered;
        let scaled = |one: &Delivered| Delivered { work: one.work * mean, ..*one };
        let work: Vec<Delivered> = delivered.iter().map(scaled).collect();
        let metric = RateMetric::Bandwidth;
        (answered > 0.0).then(|| RateFigure { metric, unit: "B/s".into(), rate: rate(&work) })
    }
}

/// Its mean slowdown, by the definition that was asked for, as a rate of its run.
fn slowdown(case: &Case, lengths: &Lengths) -> Option<RateFigure> {
    let by = case.rpc.as_ref().filter(|rpc| !rpc.unloaded)?.slowdown;
    let mean = lengths.slowdowns.iter().find(|one| one.by == by)?;
    let (metric, rate) = (RateMetric::Slowdown, mean.mean.clone());
    Some(RateFigure { metric, unit: "1".into(), rate })
}

/// What a request of a case takes.
fn metric_of(case: &Case) -> Metric {
    if case.schedule.is_open() { Metric::Response } else { Metric::Rtt }
}

/// The unloaded times of each length, and the run that measured them.
struct Baseline {
    run: u32,
    sizes: BTreeMap<u32, Summary>,
}

/// Requests of a run by their lengths.
pub(super) struct ByLength {
    lengths: Lengths,
    /// The times of the shortest.
    short: Option<Summary>,
}

impl ByLength {
    /// Adds them to their run.
    pub(super) fn add_to(self, run: &mut Run) {
        run.rates.extend(slowdown(&run.case, &self.lengths));
        let (metric, unit, clock_bound_ns) = (Metric::Short, "ns".to_string(), None);
        let figure = |summary| Figure { metric, unit, summary, clock_bound_ns };
        run.figures.extend(self.short.map(figure));
        run.lengths = Some(self.lengths);
    }
}

/// The runs as they stand in the record, with their requests by length.
pub(super) fn into_runs(runs: Vec<RunSoFar>, plan: &Plan) -> Vec<Run> {
    let lengths = figures(&runs, plan.threshold.0 as f64);
    let told = runs.into_iter().zip(lengths);
    told.map(|(run, lengths)| {
        let mut run = run.into_run(plan);
        lengths.into_iter().for_each(|lengths| lengths.add_to(&mut run));
        run
    })
    .collect()
}

/// Of each run its requests by length; `None`: it is none of `rpc`.
fn figures(runs: &[RunSoFar], threshold_ns: f64) -> Vec<Option<ByLength>> {
    let is_unloaded = |run: &RunSoFar| run.case.rpc.as_ref().is_some_and(|rpc| rpc.unloaded);
    let baselines: Vec<(usize, Baseline)> = runs
        .iter()
        .enumerate()
        .filter(|(_, run)| is_unloaded(run))
        .map(|(number, run)| {
            let summed =
                |(size, rounds): (&u32, &Vec<Vec<f64>>)| (*size, summarize(rounds, threshold_ns));
            let sizes = run.sizes.0.iter().map(summed).collect();
            (number, Baseline { run: number as u32, sizes })
        })
        .collect();
    let of = |run: &RunSoFar| {
        let own = |(number, _): &&(usize, Baseline)| runs[*number].case.is_baseline_of(&run.case);
        let baseline = baselines.iter().find(own).map(|(_, baseline)| baseline);
        lengths(&run.case, &run.sizes, baseline, threshold_ns)
    };
    runs.iter().map(of).collect()
}

fn lengths(
    case: &Case,
    by_size: &BySize,
    baseline: Option<&Baseline>,
    threshold_ns: f64,
) -> Option<ByLength> {
    let rpc = case.rpc.as_ref()?;
    let all: usize = by_size.0.values().flatten().map(Vec::len).sum();
    let reply = |size| rpc.reply.to(size);
    let link = rpc.link.map(|link| link.0).or_else(|| baseline.and_then(|b| found(b, reply)));
    let mut before = 0;
    let sizes: Vec<OfSize> = by_size
        .0
        .iter()
        .map(|(size, rounds)| {
            before += rounds.iter().map(Vec::len).sum::<usize>();
            OfSize {
                size: *size,
                reply: reply(*size),
                share: before as f64 / all.max(1) as f64,
                summary: summarize(rounds, threshold_ns),
                unloaded: unloaded(baseline, *size, reply(*size), link),
            }
        })
        .collect();
    let mean = |by: &Slowdown| mean_slowdown(by_size, &sizes, *by);
    let slowdowns = match baseline {
        Some(_) => Slowdown::ALL.iter().filter_map(mean).collect(),
        None => Vec::new(),
    };
    // Of unloaded requests each length is as frequent: their shortest tenth is another one.
    let shortest = sizes.iter().position(|of| of.share >= SHORT_SHARE).filter(|_| !rpc.unloaded);
    let of_short =
        shortest.map(|last| summarize(&together(by_size, &sizes[..=last]), threshold_ns));
    let below =
        shortest.and_then(|last| sizes[..=last].iter().rposition(|of| of.size < SHORT_BELOW));
    let short = below.map(|last| short(by_size, &sizes[..=last]));
    let lengths = Lengths {
        metric: metric_of(case),
        short,
        sizes,
        slowdowns,
        baseline: baseline.map(|baseline| baseline.run),
        link,
    };
    Some(ByLength { lengths, short: of_short })
}

fn half(summary: &Summary) -> Option<&Quantile> {
    summary.quantiles.iter().find(|quantile| quantile.p == 0.5)
}

fn p50(summary: &Summary) -> Option<f64> {
    half(summary)?.value.map(|value| value.0).filter(|ns| ns.is_finite())
}

/// Bytes per second by which longer unloaded requests take more than the shortest.
fn found(baseline: &Baseline, reply: impl Fn(u32) -> u32) -> Option<f64> {
    let moved = |size: u32| f64::from(size) + f64::from(reply(size));
    let (first, short) = baseline.sizes.first_key_value()?;
    let (last, long) = baseline.sizes.last_key_value()?;
    let bytes = moved(*last) - moved(*first);
    let seconds = (p50(long)? - p50(short)?) / 1e9;
    (bytes > 0.0 && seconds > 0.0).then_some(bytes / seconds)
}

/// What requests of a length are held against.
fn unloaded(baseline: Option<&Baseline>, size: u32, reply: u32, link: Option<f64>) -> Unloaded {
    let Some(baseline) = baseline else { return Unloaded::default() };
    let own = baseline.sizes.get(&size);
    let shortest = baseline.sizes.first_key_value().and_then(|(_, summary)| p50(summary));
    let bytes = f64::from(size) + f64::from(reply);
    Unloaded {
        p50_ns: own.and_then(p50),
        p50_interval: own.and_then(half).and_then(|quantile| quantile.interval),
        min_ns: own.map(|summary| summary.min.0).filter(|ns| ns.is_finite()),
        serialisation_ns: shortest.zip(link).map(|(base, link)| base + bytes / link * 1e9),
    }
}

/// The mean slowdown of the requests that were answered; `None`: a length has no unloaded time.
fn mean_slowdown(by_size: &BySize, sizes: &[OfSize], by: Slowdown) -> Option<MeanSlowdown> {
    let rounds = by_size.0.values().map(Vec::len).max()?;
    let mut sums = vec![Delivered { work: 0.0, seconds: 0.0 }; rounds];
    for of in sizes {
        let unloaded_ns = of.unloaded.by(by).filter(|ns| *ns > 0.0)?;
        for (sum, times) in sums.iter_mut().zip(&by_size.0[&of.size]) {
            for ns in times.iter().filter(|ns| ns.is_finite()) {
                sum.work += ns / unloaded_ns;
                sum.seconds += 1.0;
            }
        }
    }
    Some(MeanSlowdown { by, mean: rate(&sums) })
}

/// The times of these lengths together, a vector a round.
fn together(by_size: &BySize, sizes: &[OfSize]) -> Vec<Vec<f64>> {
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for times in sizes.iter().map(|of| &by_size.0[&of.size]) {
        rounds.resize_with(rounds.len().max(times.len()), Vec::new);
        for (all, some) in rounds.iter_mut().zip(times) {
            all.extend(some);
        }
    }
    rounds
}

/// The tail of these lengths, of which there is one at least.
fn short(by_size: &BySize, sizes: &[OfSize]) -> Short {
    let mut sorted = together(by_size, sizes).concat();
    sorted.sort_unstable_by(f64::total_cmp);
    let finite = sorted.iter().rposition(|ns| ns.is_finite()).map(|at| sorted[at]);
    Short {
        longest: sizes.last().map_or(0, |of| of.size),
        tail: tail(&sorted),
        longest_ns: finite.unwrap_or(f64::NAN),
    }
}

/// The complement of the distribution of sorted times, at fractions that fall by equal factors.
fn tail(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut step = 0;
    loop {
        let above = (n * 10f64.powf(-f64::from(step) / POINTS)).floor();
        step += 1;
        if above < 1.0 {
            return points;
        }
        let Some(ns) = sorted.get(sorted.len() - above as usize) else { return points };
        // The fraction that took longer than this one, ties left out.
        let longer = sorted.len() - sorted.partition_point(|other| other <= ns);
        let point = (*ns, longer as f64 / n);
        if ns.is_finite() && points.last() != Some(&point) {
            points.push(point);
        }
    }
}

#[cfg(test)]
mod tests;
