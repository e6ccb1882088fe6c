//! From the messages of all rounds to the figures of an explanation.

use super::apart::Kernels;
use super::causes::{Evidence, cause};
use super::disturbance::Disturbances;
use super::on_cpu::OffCpu;
use super::path::{Half, Way, begin};
use super::split::{RoundSplit, Split, StageDef, split_rounds};
use super::stamps::{Owners, Stamps};
use super::{
    Apart, BEST, Explanation, KernelClock, NO_CPU, Named, QUANTILES, SLOW, Slow, SlowMessage,
    StageFigures,
};
use std::collections::BTreeMap;
use wiregauge_host::trace::{Kind, Trace};
use wiregauge_plan::Followed;
use wiregauge_sample::RoundSamples;
use wiregauge_stats::compare::{Difference, Estimate, difference};
use wiregauge_stats::quantile::rank;
use wiregauge_stats::typical::{arithmetic, typical};
use wiregauge_stats::{Interval, Value};

/// Messages that are kept in detail.
const MOST_SLOWEST: usize = 50;
/// What a stamp may add where several messages are on the way. A stamp takes 50 to 90 ns; what is
/// above are the queues that form where each message takes longer, and these are not the stages'.
const MOST_PROBE_NS: f64 = 200.0;

/// What was stamped in a round, and its samples.
pub struct RoundTrace {
    pub samples: RoundSamples,
    pub trace: Trace,
    pub clock: KernelClock,
    /// Of several threads.
    pub owners: Owners,
    /// What stamps of another host may be wrong by against the client's.
    pub bound_ns: f64,
}

/// What was stamped, and how.
pub struct Tracing<'a> {
    /// The way of a message.
    pub way: Way,
    /// The trace point of each kind.
    pub trace_points: &'a [(Kind, &'static str)],
    /// Trace points that the kernel lacks.
    pub missing: &'a [String],
    /// Whether interrupts and switches were stamped, so that a gap is one.
    pub sees_all: bool,
    /// Why the server's host stamped nothing, where it is another and did not.
    pub refused: Option<&'a str>,
}

impl Tracing<'_> {
    fn ends_at(&self, def: Option<&StageDef>) -> String {
        let Some((def, kind)) = def.and_then(|def| Some((def, def.kind?))) else {
            return String::new();
        };
        let found = self.trace_points.iter().find(|(known, _)| *known == kind);
        let name = found.map_or(kind.name(), |(_, name)| name);
        match (def.of_others, def.half) {
            (false, _) => name.to_owned(),
            (true, Half::Receive) => format!("{name} of another message"),
            // Whichever it is.
            (true, Half::Send) => "last stamp of another message".to_owned(),
        }
    }
}

/// Collects rounds with and without tracing.
#[derive(Default)]
pub struct Explainer {
    traced: Vec<RoundTrace>,
    untraced_ns: Vec<f64>,
    /// The median of each round.
    untraced_medians_ns: Vec<f64>,
    untraced: u32,
}

/// A round whose messages were split.
struct Done<'a> {
    round: &'a RoundTrace,
    stamps: &'a Stamps<'a>,
    split: RoundSplit,
}

impl Explainer {
    /// Adds a traced round.
    pub fn add(&mut self, round: RoundTrace) {
        self.traced.push(round);
    }

    /// Adds a round that was not.
    pub fn add_untraced(&mut self, samples: &RoundSamples, way: &Way) {
        self.untraced = samples.run;
        let own = samples.samples.iter().filter(|sample| way.is_measured(sample));
        let own = sorted(own.map(|sample| way.total_ns(sample)));
        self.untraced_medians_ns.extend(at(&own, 0.5));
        self.untraced_ns.extend(own);
    }

    /// What the rounds show; `None`: no message could be split, or no round ran without tracing.
    pub fn explain(&mut self, tracing: &Tracing<'_>) -> Option<Explanation> {
        let Tracing { way, missing, sees_all, .. } = *tracing;
        let is_stamped = |kind| tracing.trace_points.iter().any(|(own, _)| *own == kind);
        let begin = begin(way.steps, is_stamped)?;
        let stamps = self.traced.iter().map(|round| Stamps {
            owners: round.owners.clone(),
            bound_ns: round.bound_ns,
            ..Stamps::new(&round.trace, &round.clock)
        });
        let stamps: Vec<Stamps<'_>> = stamps.collect();
        let rounds = self.traced.iter().zip(&stamps);
        let input = rounds.clone().map(|(round, stamps)| (&round.samples.samples[..], stamps));
        let splits = split_rounds(&input.collect::<Vec<_>>(), &way, begin);
        let done = rounds.zip(splits);
        let done = done.map(|((round, stamps), split)| Done { round, stamps, split });
        let done: Vec<Done<'_>> = done.collect();
        let stages = done.iter().find(|one| !one.split.messages.is_empty())?.split.stages.clone();
        let all: Vec<Message<'_>> = done.iter().flat_map(messages).collect();
        let mut totals: Vec<f64> = all.iter().map(|message| message.total_ns).collect();
        totals.sort_by(f64::total_cmp);
        self.untraced_ns.sort_by(f64::total_cmp);
        // Without rounds to compare with nothing is known of what the stamps cost.
        let untraced_p50_ns = typical(&self.untraced_medians_ns)?.value;
        let most_ns = if way.followed == Followed::Alone { f64::INFINITY } else { MOST_PROBE_NS };
        let added_ns = added_ns(&totals, &self.untraced_ns)?;
        let mut probes = Probes::new(&stages, &all, added_ns, most_ns);
        let traced_medians_ns = medians(&rounds_of(&all, |number| all[number].total_ns));
        let cost = cost(&self.untraced_medians_ns, &traced_medians_ns);
        let relative = cost.and_then(|cost| cost.relative);
        let difference = cost.and_then(|cost| cost.interval);
        probes.interval = difference.map(|difference| probes.each(difference));
        let figures = Figures::new(&stages, &all, &totals, &probes, tracing)?;
        let slow: Vec<&Message<'_>> =
            all.iter().filter(|message| message.total_ns > figures.slow_ns).collect();
        let (slow_of_all, slowest) = slow_messages(&slow, &figures, sees_all);
        let sum = |count: fn(&RoundSplit) -> u64| done.iter().map(|one| count(&one.split)).sum();
        Some(Explanation {
            run: done.first()?.round.samples.run,
            untraced: self.untraced,
            messages: all.len() as u64,
            incomplete: sum(|split| split.incomplete),
            disordered: sum(|split| split.disordered),
            beyond: sum(|split| split.beyond),
            sum_error: all.iter().map(Message::sum_error).fold(0.0, f64::max),
            anchor_ns: done.iter().map(|one| one.round.clock.error_ns).fold(0.0, f64::max),
            factor: relative.map_or(at(&totals, 0.5)? / untraced_p50_ns, |more| more.0 + 1.0),
            factor_interval: cost.and_then(|cost| cost.relative_interval).map(one_more),
            untraced_p50_ns,
            stamps: probes.stamps,
            probe_ns: probes.each_ns,
            probe_interval: probes.interval,
            stages: figures.stages,
            total: figures.total,
            queues: queues(&all, &way),
            batches: batches(&all, &way, |message| &message.batches),
            merged: batches(&all, &way, |message| &message.merged),
            slow: slow_of_all,
            slowest,
            missing: missing.to_vec(),
            apart: (way.kernels != Kernels::One).then(|| Apart {
                bound_ns: self.traced.iter().map(|round| round.bound_ns).fold(0.0, f64::max),
                refused: tracing.refused.map(str::to_owned),
            }),
            not_traced: String::new(),
        })
    }
}

/// The value of a quantile by nearest rank, of values in rising order.
fn at(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = rank(p, sorted.len() as u64).max(1);
    sorted.get(rank as usize - 1).copied()
}

/// Returns the values of messages, those of each round together; `value` has that of a number.
fn rounds_of(all: &[Message<'_>], value: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (number, message) in all.iter().enumerate() {
        rounds.entry(message.done.round.samples.round).or_default().push(value(number));
    }
    rounds.into_values().collect()
}

/// Returns the median of each round, by nearest rank.
fn medians(rounds: &[Vec<f64>]) -> Vec<f64> {
    rounds.iter().filter_map(|round| at(&sorted(round.iter().copied()), 0.5)).collect()
}

/// Returns the interval of a ratio from that of what it is above 1 by.
fn one_more(more: Interval) -> Interval {
    Interval { low: Value(more.low.0 + 1.0), high: Value(more.high.0 + 1.0) }
}

/// Returns by how much the medians of traced rounds are above those of the others.
fn cost(untraced_ns: &[f64], traced_ns: &[f64]) -> Option<Difference> {
    difference(Estimate::of_rounds(untraced_ns)?, Estimate::of_rounds(traced_ns)?)
}

/// What tracing adds to a message: the least of the differences of p10 and p50. Where other work
/// disturbs some rounds and not others, a difference has that in it too, and mostly that of p50.
fn added_ns(traced: &[f64], untraced: &[f64]) -> Option<f64> {
    let differences = [BEST, 0.5].map(|p| Some(at(traced, p)? - at(untraced, p)?));
    differences.into_iter().try_fold(f64::INFINITY, |least, one| Some(least.min(one?)))
}

/// A message of any round.
struct Message<'a> {
    done: &'a Done<'a>,
    number: usize,
    total_ns: f64,
    stages_ns: &'a [f64],
}

impl Message<'_> {
    /// Returns the difference between the sum of the stages and the measured time, as a share.
    fn sum_error(&self) -> f64 {
        (self.stages_ns.iter().sum::<f64>() / self.total_ns - 1.0).abs()
    }
}

fn messages<'a>(done: &'a Done<'a>) -> impl Iterator<Item = Message<'a>> {
    done.split.messages.iter().enumerate().map(move |(number, own)| Message {
        done,
        number,
        total_ns: own.total_ns,
        stages_ns: &own.stages_ns,
    })
}

/// What the probes add: the same for each stamp of the way.
struct Probes {
    each_ns: f64,
    /// Interval of what one adds to the median, over rounds.
    interval: Option<Interval>,
    stamps: f64,
    /// The stages that have it.
    costly: Vec<bool>,
}

impl Probes {
    fn new(stages: &[StageDef], all: &[Message<'_>], difference_ns: f64, most_ns: f64) -> Probes {
        let stamps: usize = all
            .iter()
            .map(|message| message.done.split.messages[message.number].stamps.len())
            .sum();
        let is_costly = costly(stages);
        let own = is_costly.iter().filter(|is| **is).count().max(1) as f64;
        let each_ns = (difference_ns / own).clamp(0.0, most_ns);
        let stamps = stamps as f64 / all.len().max(1) as f64;
        Probes { each_ns, interval: None, stamps, costly: is_costly }
    }

    /// Returns what each of them adds where all together add as much.
    fn each(&self, all: Interval) -> Interval {
        let own = self.costly.iter().filter(|is| **is).count().max(1) as f64;
        let [low, high] = [all.low, all.high].map(|end| Value((end.0 / own).max(0.0)));
        Interval { low, high }
    }

    /// The stages of a message without what the stamp at the begin of each adds, and last of all
    /// what that is together. Their sum stays.
    fn apart(&self, stages_ns: &[f64]) -> Vec<f64> {
        let mut own = stages_ns.to_vec();
        let mut together = 0.0;
        for (stage, _) in own.iter_mut().zip(&self.costly).filter(|(_, costly)| **costly) {
            let added = self.each_ns.min(*stage);
            *stage -= added;
            together += added;
        }
        own.push(together);
        own
    }
}

/// The stages behind a stamp of a probe: all but the first. Where sockets are stamped, the look for
/// a message is what costs.
fn costly(stages: &[StageDef]) -> Vec<bool> {
    let by_sockets = stages.iter().any(|stage| stage.kind == Some(Kind::TxQueue));
    let is_costly = |(number, stage): (usize, &StageDef)| match by_sockets {
        true => stage.kind == Some(Kind::Arrived),
        false => number > 0,
    };
    stages.iter().enumerate().map(is_costly).collect()
}

/// Figures of all stages.
struct Figures {
    stages: Vec<StageFigures>,
    total: StageFigures,
    /// Of the stages as they were stamped.
    medians_ns: Vec<f64>,
    slow_ns: f64,
}

impl Figures {
    fn new(
        defs: &[StageDef],
        all: &[Message<'_>],
        totals: &[f64],
        probes: &Probes,
        tracing: &Tracing<'_>,
    ) -> Option<Figures> {
        let slow_ns = at(totals, SLOW)?;
        let apart: Vec<Vec<f64>> =
            all.iter().map(|message| probes.apart(message.stages_ns)).collect();
        let on_cpu = on_cpu(defs, all, tracing);
        let is_slow = |message: &Message<'_>| message.total_ns > slow_ns;
        let mean = |is: &dyn Fn(&Message<'_>) -> bool, value: &dyn Fn(usize) -> f64| {
            let own = all.iter().enumerate().filter(|(_, message)| is(message));
            let values: Vec<f64> = own.map(|(at, _)| value(at)).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        let figures = |number: usize, def: Option<&StageDef>| {
            let value = |at: usize| apart[at][number];
            let (quantiles_ns, median_interval) = with_median(all, value);
            let (best_ns, best_interval) = best(all, value);
            StageFigures {
                leg: def.map_or(0, |def| def.leg as u32),
                name: def.map_or_else(|| "probes".to_owned(), |def| def.name.clone()),
                sends: def.is_some_and(|def| def.half == Half::Send),
                ends_at: tracing.ends_at(def),
                quantiles_ns,
                median_interval,
                best_ns,
                best_interval,
                slow_ns: mean(&is_slow, &value),
                on_cpu_ns: def.and_then(|_| on_cpu_ns(&on_cpu, &apart, number)),
                cpus: def.map_or_else(Vec::new, |_| cpus(all, number)),
            }
        };
        let stages = defs.iter().enumerate().map(|(at, def)| figures(at, Some(def)));
        let stages = stages.chain([figures(defs.len(), None)]).collect();
        let (quantiles_ns, median_interval) = with_median(all, |at| all[at].total_ns);
        let (best_ns, best_interval) = best(all, |at| all[at].total_ns);
        let total = StageFigures {
            name: "total".to_owned(),
            quantiles_ns,
            median_interval,
            best_ns,
            best_interval,
            slow_ns: mean(&is_slow, &|at| all[at].total_ns),
            ..StageFigures::default()
        };
        let median =
            |number: usize| at(&sorted(all.iter().map(|message| message.stages_ns[number])), 0.5);
        let medians_ns = (0..defs.len()).map(median).collect::<Option<_>>()?;
        Some(Figures { stages, total, medians_ns, slow_ns })
    }
}

/// Returns the quantiles of all messages, of which the median is that of a typical round, and the
/// interval of that.
fn with_median(all: &[Message<'_>], value: impl Fn(usize) -> f64) -> (Vec<f64>, Option<Interval>) {
    let rounds = rounds_of(all, value);
    let mut quantiles_ns = quantiles(&sorted(rounds.iter().flatten().copied()));
    let typical = typical(&medians(&rounds)).filter(|found| found.interval.is_some());
    if let Some(found) = typical {
        let places = quantiles_ns.iter_mut().zip(QUANTILES);
        places.filter(|(_, p)| *p == 0.5).for_each(|(median, _)| *median = found.value);
    }
    (quantiles_ns, typical.and_then(|found| found.interval))
}

/// Returns the mean over rounds, with its interval, of the mean of each round's messages up to p10
/// of its total: of stages these add up to that of the total. NaN without messages.
fn best(all: &[Message<'_>], value: impl Fn(usize) -> f64) -> (f64, Option<Interval>) {
    let values = rounds_of(all, value);
    let totals = rounds_of(all, |number| all[number].total_ns);
    let mut means = Vec::new();
    for (values, totals) in values.iter().zip(&totals) {
        let best_ns = at(&sorted(totals.iter().copied()), BEST).unwrap_or(f64::INFINITY);
        let own = values.iter().zip(totals).filter(|(_, total)| **total <= best_ns);
        let best: Vec<f64> = own.map(|(value, _)| *value).collect();
        means.push(best.iter().sum::<f64>() / best.len() as f64);
    }
    arithmetic(&means).map_or((f64::NAN, None), |found| (found.value, found.interval))
}

/// The CPU time of each stage of each message; nothing where threads' switches were not stamped.
fn on_cpu(defs: &[StageDef], all: &[Message<'_>], tracing: &Tracing<'_>) -> Vec<Vec<Option<f64>>> {
    if !tracing.trace_points.iter().any(|(kind, _)| *kind == Kind::Switch) {
        return Vec::new();
    }
    let mut rounds: BTreeMap<u32, OffCpu> = BTreeMap::new();
    let one = |message: &Message<'_>| {
        let Done { round, stamps, split } = message.done;
        let off = rounds.entry(round.samples.round).or_insert_with(|| OffCpu::new(stamps));
        off.of_stages(defs, &split.messages[message.number])
    };
    all.iter().map(one).collect()
}

/// The mean of a stage, at most what it has without the probes.
fn on_cpu_ns(on_cpu: &[Vec<Option<f64>>], apart: &[Vec<f64>], number: usize) -> Option<f64> {
    let own = on_cpu.iter().zip(apart);
    let own = own.map(|(on, stages)| on[number].map(|ns| ns.min(stages[number])));
    let sum = own.sum::<Option<f64>>().filter(|_| !on_cpu.is_empty())?;
    Some(sum / on_cpu.len() as f64)
}

/// How many messages were in the sockets when one came; nothing where they go one at a time, or
/// pass no socket.
fn queues(all: &[Message<'_>], way: &Way) -> Vec<Vec<f64>> {
    if way.followed == Followed::Alone || way.is_stamped_by_program() {
        return Vec::new();
    }
    let of_leg = |leg: usize| {
        let ahead = all.iter().filter_map(|message| {
            message.done.split.messages[message.number].ahead.get(leg).copied()
        });
        quantiles(&sorted(ahead.map(f64::from)))
    };
    (0..way.legs()).map(of_leg).collect()
}

/// How many packets came together with a message, of each leg; nothing where that was not stamped.
fn batches(all: &[Message<'_>], way: &Way, of: impl Fn(&Split) -> &[Option<u32>]) -> Vec<Vec<f64>> {
    let of_leg = |leg: usize| {
        let own = all.iter().filter_map(|message| {
            of(&message.done.split.messages[message.number]).get(leg).copied().flatten()
        });
        quantiles(&sorted(own.map(f64::from)))
    };
    let all: Vec<Vec<f64>> = (0..way.legs()).map(of_leg).collect();
    if all.iter().any(Vec::is_empty) { Vec::new() } else { all }
}

pub(super) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

pub(super) fn quantiles(sorted: &[f64]) -> Vec<f64> {
    QUANTILES.iter().filter_map(|p| at(sorted, *p)).collect()
}

/// On which CPUs a stage ended, most often first.
fn cpus(all: &[Message<'_>], number: usize) -> Vec<(u32, u64)> {
    let mut counts = BTreeMap::new();
    for message in all {
        let cpu = message.done.split.messages[message.number].cpus[number];
        *counts.entry(u32::from(cpu)).or_insert(0) += 1;
    }
    counts.remove(&u32::from(NO_CPU));
    let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(cpu, count)| (std::cmp::Reverse(*count), *cpu));
    counts
}

/// The causes of slow messages, and the slowest in detail.
fn slow_messages(
    slow: &[&Message<'_>],
    figures: &Figures,
    sees_all: bool,
) -> (Slow, Vec<SlowMessage>) {
    let mut counts: BTreeMap<Named, u64> = BTreeMap::new();
    let mut detailed = Vec::new();
    let mut disturbances: BTreeMap<u32, Disturbances> = BTreeMap::new();
    for message in slow {
        let Done { round, stamps, split } = message.done;
        let found = disturbances
            .entry(round.samples.round)
            .or_insert_with(|| Disturbances::new(&round.trace, stamps));
        let evidence = Evidence { trace: &round.trace, stamps, disturbances: found, sees_all };
        let own = &split.messages[message.number];
        let (named, covered) = cause(own, split, &figures.medians_ns, &evidence);
        *counts.entry(named.clone()).or_insert(0) += 1;
        let cpus = own.cpus.iter().map(|cpu| u32::from(*cpu));
        detailed.push(SlowMessage {
            round: round.samples.round,
            sequence: round.samples.samples[own.sample].sequence,
            start_ns: own.start_ns,
            total_ns: own.total_ns,
            stages: own.stages_ns.iter().copied().zip(cpus).collect(),
            cause: named,
            covered,
        });
    }
    detailed.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    detailed.truncate(MOST_SLOWEST);
    let causes = counts.into_iter().collect();
    (Slow::new(slow.len() as u64, figures.slow_ns, causes), detailed)
}
