//! What rpc shows: requests by their lengths, and how much the load slows each length down.

use super::draws::Draws;
use super::lengths::{Lengths, MeanSlowdown, OfSize, Short, Unloaded};
use super::spec::CPERF_LINK;
use super::{Rpc, Slowdown, Spec, cases};
use crate::load;
use crate::prelude::*;
use std::collections::BTreeMap;
use wiregauge_analysis::client_hosts;
use wiregauge_analysis::pattern::Completion;
use wiregauge_analysis::rates::figure;
use wiregauge_analysis::result::RoundResult;
use wiregauge_figures::record::schema::Figure;
use wiregauge_sample::join::round_trips;
use wiregauge_stats::rate::rate;
use wiregauge_stats::{Interval, Value, summarize};

/// Of all requests, the share that counts as the shortest ones (as cperf has it).
const SHORT_SHARE: f64 = 0.1;
/// The tail is drawn of those of them that are shorter than a frame of Ethernet carries (the same).
const SHORT_BELOW: u32 = 1500;
/// Points of a complementary distribution for each factor of 10.
const POINTS: f64 = 16.0;

impl PatternAnalysis for Rpc {
    fn samples(&self, case: &Case, at: usize, rows: [&[Row]; 2], times: Times<'_>) -> Vec<Sample> {
        // How long a request is follows from its number: nothing carries it.
        let draws = Draws::of(case, at as u32);
        let mut samples = round_trips(case.size, rows[0], times);
        samples.iter_mut().for_each(|sample| sample.size = draws.length(sample.sequence));
        samples
    }

    fn metrics(&self, case: &Case) -> Vec<Metric> {
        load::Load.metrics(case)
    }

    fn more_metrics(&self, _: &Case) -> Vec<Metric> {
        vec![Metric::Short]
    }

    fn rates(&self, case: &Case) -> Vec<RateMetric> {
        let own = [RateMetric::Slowdown, RateMetric::Bandwidth];
        load::rates(case).into_iter().chain(own).collect()
    }

    /// Of requests the server counts what came broken; the client has what came back so.
    fn complete_counts(&self, _: &Case, finished: &RoundResult, all: &mut Counts) {
        let outcomes =
            finished.threads_of(Role::Server).iter().filter_map(|part| part.outcome.as_ref());
        all.corrupt += outcomes.map(|outcome| outcome.counts.corrupt).sum::<u64>();
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::<Requests>::default()
    }

    fn rate_figures(&self, run: &RunSoFar) -> Vec<RateFigure> {
        let mut rates = run.work.figures(run.case.schedule);
        if let Some(Requests { costs, bytes, .. }) = run.collected() {
            rates.extend(bandwidth(bytes, &run.work.delivered));
            rates.extend(costs.figures());
        }
        rates
    }

    /// The shares of what a closed loop has found that the path carries.
    fn next_cases(&self, _: &Plan, runs: &[RunSoFar]) -> Vec<NextCase> {
        let own = runs.iter().enumerate();
        let own = own.filter(|(_, run)| run.case.pattern.name() == self.name());
        let shares = own.flat_map(|(origin, run)| {
            let carried = Some(run.capacity()).filter(|rate| rate.is_finite() && *rate > 0.0);
            let shares = |rate| cases::carried_shares(&run.case, MessageRate(rate));
            let cases = carried.map(shares).unwrap_or_default().into_iter();
            cases.map(move |case| NextCase { origin, case, beside: Vec::new() })
        });
        shares.filter(|next| runs.iter().all(|run| run.case != next.case)).collect()
    }

    fn complete(&self, plan: &Plan, runs: &[RunSoFar], number: usize) -> Completion {
        let threshold_ns = plan.threshold.0 as f64;
        let Some((run, Some(own))) = runs.get(number).map(|run| (run, run.collected())) else {
            return Completion::default();
        };
        let Requests { sizes, by_host, .. } = own;
        let is_baseline = |other: &&RunSoFar| {
            other.case.pattern == run.case.pattern && cases::is_baseline_of(&other.case, &run.case)
        };
        let baseline = runs.iter().find(is_baseline).and_then(|baseline| {
            let sizes = baseline.collected::<Requests>()?.sizes.times.iter();
            let sizes = sizes.map(|(size, rounds)| (*size, summarize(rounds, threshold_ns)));
            Some(Baseline { run: baseline.index as u32, sizes: sizes.collect() })
        });
        lengths(&run.case, sizes, by_host, baseline.as_ref(), threshold_ns)
    }
}

/// What rounds of requests gather.
#[derive(Default)]
struct Requests {
    costs: load::Costs,
    sizes: BySize,
    /// The same of each host with clients, where they are several.
    by_host: BTreeMap<Option<u32>, BySize>,
    /// Of the requests that were answered in each round: bytes, and how many.
    bytes: Vec<(f64, f64)>,
}

impl Collector for Requests {
    fn add_round(&mut self, seen: &RoundSeen<'_>) {
        self.costs.add_round(seen);
        let round = seen.round.index as usize;
        self.sizes.take(seen.case, round, seen.samples);
        for (host, samples) in client_hosts::by_host(seen.case, seen.samples) {
            self.by_host.entry(host).or_default().take(seen.case, round, &samples);
        }
        let metric = metric_of(seen.case);
        let is_answered = |sample: &&Sample| {
            let took = metric.of_sample(sample).filter(|_| !sample.flags.has(Flags::WARMUP));
            took.is_some_and(f64::is_finite)
        };
        let answered = seen.samples.samples.iter().filter(is_answered);
        let add = |(bytes, many), sample: &Sample| (bytes + f64::from(sample.size), many + 1.0);
        self.bytes.push(answered.fold((0.0, 0.0), add));
    }
}

/// The times of each length.
#[derive(Default)]
struct BySize {
    /// A vector a round.
    times: BTreeMap<u32, Vec<Vec<f64>>>,
    /// The lengths in the order of sending, a vector a round.
    order: Vec<Vec<u32>>,
}

impl BySize {
    /// Takes one round.
    fn take(&mut self, case: &Case, round: usize, samples: &RoundSamples) {
        let metric = metric_of(case);
        for sample in samples.samples.iter().filter(|s| !s.flags.has(Flags::WARMUP)) {
            let Some(ns) = metric.of_sample(sample) else { continue };
            at_round(self.times.entry(sample.size).or_default(), round).push(ns);
            at_round(&mut self.order, round).push(sample.size);
        }
    }
}

/// What belongs to a round, of a vector a round.
fn at_round<T>(rounds: &mut Vec<Vec<T>>, round: usize) -> &mut Vec<T> {
    if rounds.len() <= round {
        rounds.resize_with(round + 1, Vec::new);
    }
    &mut rounds[round]
}

/// The bytes of each round's answered requests in the time in which they were answered.
fn bandwidth(bytes: &[(f64, f64)], delivered: &[Delivered]) -> Option<RateFigure> {
    let of_round = |(&(bytes, answered), messages): (&(f64, f64), &Delivered)| {
        // Of the first one only the end lies in that time.
        let mean = if answered > 0.0 { bytes / answered } else { 0.0 };
        Delivered { work: mean * messages.work, ..*messages }
    };
    let rounds: Vec<Delivered> = bytes.iter().zip(delivered).map(of_round).collect();
    let is_known = rounds.iter().any(|round| round.work > 0.0);
    is_known.then(|| figure(RateMetric::Bandwidth, "B/s", &rounds, 1.0))
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

fn lengths(
    case: &Case,
    by_size: &BySize,
    by_host: &BTreeMap<Option<u32>, BySize>,
    baseline: Option<&Baseline>,
    threshold_ns: f64,
) -> Completion {
    let rpc = case.spec::<Spec>();
    let all: usize = by_size.times.values().flatten().map(Vec::len).sum();
    let reply = |size| rpc.reply.to(size);
    let link = rpc.link.map(|link| link.0).or_else(|| baseline.and_then(|b| found(b, reply)));
    let mut before = 0;
    let of_size = |(&size, rounds): (&u32, &Vec<Vec<f64>>)| {
        before += rounds.iter().map(Vec::len).sum::<usize>();
        let share = before as f64 / all.max(1) as f64;
        let (reply, summary) = (reply(size), summarize(rounds, threshold_ns));
        OfSize {
            size,
            reply,
            share,
            summary,
            unloaded: unloaded(baseline, size, reply, link).with_cperf(rpc, size),
        }
    };
    let sizes: Vec<OfSize> = by_size.times.iter().map(of_size).collect();
    let mean = |by: &Slowdown| mean_slowdown(by_size, &sizes, *by);
    // cperf's needs no unloaded requests, and is none of them.
    let known: &[Slowdown] = match baseline {
        Some(_) => Slowdown::ALL,
        None if rpc.slowdown == Slowdown::Cperf && !rpc.unloaded => &[Slowdown::Cperf],
        None => &[],
    };
    let slowdowns: Vec<MeanSlowdown> = known.iter().filter_map(mean).collect();
    // Of unloaded requests each length is as frequent: their shortest tenth is another one.
    let shortest = sizes.iter().position(|of| of.share >= SHORT_SHARE).filter(|_| !rpc.unloaded);
    let of_short =
        shortest.map(|last| summarize(&together(by_size, &sizes[..=last]), threshold_ns));
    let below =
        shortest.and_then(|last| sizes[..=last].iter().rposition(|of| of.size < SHORT_BELOW));
    let short = below.map(|last| short(by_size, &sizes[..=last]));
    let slowdown = slowdowns.iter().find(|one| one.by == rpc.slowdown && !rpc.unloaded);
    let slowdown = slowdown.map(|one| RateFigure {
        metric: RateMetric::Slowdown,
        unit: "1".into(),
        rate: one.mean.clone(),
    });
    let of_host = |(host, by_size): (&Option<u32>, &BySize)| {
        let by = slowdown.as_ref().map(|_| rpc.slowdown)?;
        Some((*host, mean_slowdown(by_size, &sizes, by)?.mean))
    };
    let slowdown_by_host = by_host.iter().filter_map(of_host).collect();
    let (metric, unit, clock_bound_ns) = (Metric::Short, "ns".to_string(), None);
    let figure = of_short.map(|summary| Figure { metric, unit, summary, clock_bound_ns });
    let lengths = Lengths {
        metric: metric_of(case),
        short,
        sizes,
        slowdowns,
        baseline: baseline.map(|baseline| baseline.run),
        link,
    };
    Completion {
        figures: figure.into_iter().collect(),
        rates: slowdown.into_iter().collect(),
        slowdown_by_host,
        details: serde_json::to_value(lengths).ok(),
        ..Completion::default()
    }
}

fn p50(summary: &Summary) -> Option<f64> {
    summary.quantile(0.5)?.value.map(|value| value.0).filter(|ns| ns.is_finite())
}

/// Bytes per second by which longer unloaded requests take more than the shortest.
fn found(baseline: &Baseline, reply: impl Fn(u32) -> u32) -> Option<f64> {
    let moved = |size: u32| f64::from(size) + f64::from(reply(size));
    let (first, short) = baseline.sizes.first_key_value()?;
    let (last, long) = baseline.sizes.last_key_value()?;
    let bytes = moved(*last) - moved(*first);
    let seconds = (p50(long)? - p50(short)?) / 1e9;
    (seconds > 0.0).then_some(bytes / seconds)
}

/// What requests of a length are held against.
fn unloaded(baseline: Option<&Baseline>, size: u32, reply: u32, link: Option<f64>) -> Unloaded {
    let Some(baseline) = baseline else { return Unloaded::default() };
    let own = baseline.sizes.get(&size);
    let shortest = baseline.sizes.first_key_value().and_then(|(_, summary)| p50(summary));
    let bytes = f64::from(size) + f64::from(reply);
    Unloaded {
        p50_ns: own.and_then(p50),
        p50_interval: own.and_then(|summary| summary.quantile(0.5)?.interval),
        min_ns: own.map(|summary| summary.min.0).filter(|ns| ns.is_finite()),
        serialisation_ns: shortest.zip(link).map(|(base, link)| base + bytes / link * 1e9),
        cperf_ns: None,
    }
}

impl Unloaded {
    /// With what cperf holds a request of this length against.
    fn with_cperf(self, rpc: &Spec, size: u32) -> Unloaded {
        let link = rpc.link.map_or(CPERF_LINK, |link| link.0);
        let ns = rpc.baseline_rtt.0 as f64 + f64::from(size) / link * 1e9;
        Unloaded { cperf_ns: Some(ns), ..self }
    }
}

/// The mean slowdown of the requests that were answered; `None`: a length has no unloaded time.
fn mean_slowdown(by_size: &BySize, sizes: &[OfSize], by: Slowdown) -> Option<MeanSlowdown> {
    let rounds = by_size.times.values().map(Vec::len).max()?;
    let mut sums = vec![Delivered { work: 0.0, seconds: 0.0 }; rounds];
    let mut by_length = Vec::new();
    for of in sizes {
        let unloaded_ns = of.unloaded.by(by).filter(|ns| *ns > 0.0)?;
        let times = by_size.times.get(&of.size).map_or(&[][..], Vec::as_slice);
        let mut of_length = 0.0;
        for (sum, times) in sums.iter_mut().zip(times) {
            for ns in times.iter().filter(|ns| ns.is_finite()) {
                let slowdown = ns / unloaded_ns;
                sum.work += slowdown;
                sum.seconds += 1.0;
                of_length += slowdown;
            }
        }
        by_length.push((of_length, &of.unloaded));
    }
    let mut mean = rate(&sums);
    if by == Slowdown::UnloadedP50 {
        let [less, more] = base_error(&by_length).map(|share| share * mean.value);
        mean.interval = mean.interval.map(|Interval { low, high }| Interval {
            low: Value((mean.value - (mean.value - low.0).hypot(less)).max(0.0)),
            high: Value(mean.value + (high.0 - mean.value).hypot(more)),
        });
    }
    Some(MeanSlowdown { by, mean })
}

/// Returns by which share a mean slowdown may be too high, and too low, because of the unloaded
/// medians that it divides by: of each length the share by which the end of its median's interval
/// changes its slowdowns, times its share of the sum of all, as errors that are independent.
fn base_error(by_length: &[(f64, &Unloaded)]) -> [f64; 2] {
    let all: f64 = by_length.iter().map(|(sum, _)| sum).sum();
    let mut squares = [0.0, 0.0];
    for (sum, unloaded) in by_length {
        let Some((base, i)) = unloaded.p50_ns.zip(unloaded.p50_interval) else { continue };
        let ends = [1.0 - base / i.high.0, base / i.low.0.max(0.0) - 1.0];
        for (square, change) in squares.iter_mut().zip(ends) {
            *square += (sum / all * change).powi(2);
        }
    }
    squares.map(f64::sqrt)
}

/// The times of these lengths together in the order of sending, a vector a round: what is slow at
/// one time is slow for all lengths, and makes samples correlated.
fn together(by_size: &BySize, sizes: &[OfSize]) -> Vec<Vec<f64>> {
    let of_round = |(round, order): (usize, &Vec<u32>)| {
        let times = |of: &OfSize| Some((of.size, by_size.times[&of.size].get(round)?.iter()));
        let mut times = BTreeMap::from_iter(sizes.iter().filter_map(times));
        order.iter().filter_map(|size| times.get_mut(size)?.next().copied()).collect()
    };
    by_size.order.iter().enumerate().map(of_round).collect()
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
