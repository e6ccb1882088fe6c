//! What a case suffers from others that run beside it: the factor of each figure, and whether the
//! others ran all the time.

use std::collections::BTreeSet;
use wiregauge_base::units::quantile_name;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::schema::{
    Factor, ImpactFigures, Record, RecordedWarning, Round, Run,
};
use wiregauge_plan::Impact;
use wiregauge_stats::compare::{self, Estimate};
use wiregauge_stats::{Summary, Value};
use wiregauge_transport::Role;

/// The quantiles whose factors are computed.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// A round of which the congestors ran during a smaller share is marked.
const WHOLE: f64 = 0.999;

/// A record with what its cases suffer from others beside them.
pub fn completed(mut record: Record) -> Record {
    record.impacts = figures(&record.plan.impacts, &mut record.runs);
    record
}

/// The factors of each case that was measured alone and beside congestors. Its rounds are told
/// the share of their time in which these ran, and its run is warned where that is not all.
pub fn figures(impacts: &[Impact], runs: &mut [Run]) -> Vec<ImpactFigures> {
    impacts.iter().filter_map(|impact| one(impact, runs)).collect()
}

fn one(impact: &Impact, runs: &mut [Run]) -> Option<ImpactFigures> {
    let place = |number: &u32| runs.iter().position(|run| run.index == *number);
    let (alone, under) = (place(&impact.alone)?, place(&impact.under)?);
    let beside: Vec<usize> = impact.beside.iter().filter_map(place).collect();
    let shares: Vec<Option<f64>> =
        runs[under].rounds.iter().map(|round| share(runs, under, &beside, round)).collect();
    let cpus = shared_cpus(&runs[under], beside.iter().map(|run| &runs[*run]));
    let victim = &mut runs[under];
    victim.rounds.iter_mut().zip(&shares).for_each(|(round, share)| round.congested = *share);
    let known: Vec<f64> = shares.iter().flatten().copied().collect();
    let covered = known.iter().copied().reduce(f64::min);
    let rounds = known.iter().filter(|share| **share < WHOLE).count() as u32;
    let congestor = format!("congestor {}", impact.congestor);
    let uncovered = covered.filter(|_| rounds > 0).map(|share| Warning::Uncongested {
        congestor: congestor.clone(),
        rounds,
        share,
    });
    let shares_cpus = (cpus > 0).then_some(Warning::CongestorOnCpus { congestor, cpus });
    let found = uncovered.into_iter().chain(shares_cpus);
    victim.warnings.extend(found.map(|warning| RecordedWarning::from(&warning)));
    Some(ImpactFigures {
        congestor: impact.congestor.clone(),
        alone: impact.alone,
        under: impact.under,
        beside: impact.beside.clone(),
        factors: factors(&runs[alone], &runs[under]),
        covered,
    })
}

/// The share of a victim's round in which all congestors ran; `None`: it is not known when.
///
/// All begin by one agreed instant of common time, each later than it by what is in its `start`.
fn share(runs: &[Run], under: usize, beside: &[usize], round: &Round) -> Option<f64> {
    let begin = |run: &Run, round: &Round| {
        let late = round.start?.client?.late_ns;
        Some(run.case.part.after.0 as f64 + late)
    };
    let from = begin(&runs[under], round)?;
    let to = from + round.length_ns;
    let mut window = (from, to);
    for run in beside.iter().map(|run| &runs[*run]) {
        let own = run.rounds.iter().find(|own| own.index == round.index)?;
        let began = begin(run, own)?;
        let lengths = own.threads.iter().map(|thread| thread.length_ns).filter(|ns| *ns > 0.0);
        let ran = lengths.reduce(f64::min).unwrap_or(own.length_ns);
        // A node ends when it has heard the last of the others, and sends until its time is up.
        let asked = run.case.bound.time.map(|time| {
            time.0 as f64 + run.case.warmup_time().map_or(0.0, |warmup| warmup.0 as f64)
        });
        let ran = asked.map_or(ran, |asked| ran.min(asked));
        window = (window.0.max(began), window.1.min(began + ran));
    }
    (to > from).then(|| ((window.1 - window.0) / (to - from)).clamp(0.0, 1.0))
}

/// How many CPUs of a victim its congestors had too.
fn shared_cpus<'a>(victim: &Run, congestors: impl Iterator<Item = &'a Run>) -> u32 {
    let own = cpus(victim);
    let others: BTreeSet<(Option<u32>, u32)> = congestors.flat_map(cpus).collect();
    own.intersection(&others).count() as u32
}

/// The CPUs that the ends of a run were bound to, each with its host.
fn cpus(run: &Run) -> BTreeSet<(Option<u32>, u32)> {
    let of_thread = |(number, cpus): (usize, Option<wiregauge_plan::CpuPair>)| {
        let host = |role| run.case.topology.host_of_thread(role, number as u32);
        let ends = cpus.map(|cpus| {
            let server = if run.case.topology.has_nodes() { Role::Client } else { Role::Server };
            [(host(Role::Client), cpus.client), (host(server), cpus.server)]
        });
        ends.into_iter().flatten()
    };
    let of_round = |round: &Round| {
        let threads: Vec<_> = match round.threads.is_empty() {
            true => vec![round.cpus],
            false => round.threads.iter().map(|thread| thread.cpus).collect(),
        };
        threads.into_iter().enumerate().flat_map(of_thread).collect::<Vec<_>>()
    };
    run.rounds.iter().flat_map(of_round).collect()
}

/// The factors of all figures that both runs have.
fn factors(alone: &Run, under: &Run) -> Vec<Factor> {
    let mut found = Vec::new();
    for figure in &alone.figures {
        let Some(other) = under.summary(figure.metric) else { continue };
        let name = figure.metric.name();
        let both = [&figure.summary, other];
        for p in QUANTILES {
            found.push(factor(name, &quantile_name(p), both.map(|one| one.estimate(p))));
        }
        found.push(factor(name, "mean", both.map(mean)));
        found.push(factor(name, "round_max", both.map(round_max)));
    }
    for own in &alone.rates {
        let Some(other) = under.rate(own.metric) else { continue };
        found.push(factor(own.metric.name(), "rate", [own.rate.estimate(), other.estimate()]));
    }
    found
}

/// Returns the mean of a typical round's finite samples.
pub fn mean(summary: &Summary) -> Option<Estimate> {
    let rounds = summary.rounds.iter().map(|round| round.mean);
    Estimate::of_rounds(&rounds.filter(|mean| mean.is_finite()).collect::<Vec<f64>>())
}

/// Returns the maximum of a typical round.
fn round_max(summary: &Summary) -> Option<Estimate> {
    let maxima = summary.rounds.iter().map(|round| round.max.0);
    Estimate::of_rounds(&maxima.filter(|max| !max.is_nan()).collect::<Vec<f64>>())
}

/// The second figure over the first. Its interval is that of their logarithms' difference
/// ([`compare::difference`]), exponentiated.
fn factor(metric: &str, of: &str, [alone, under]: [Option<Estimate>; 2]) -> Factor {
    let found = compare::figures(alone, under);
    let compared = found.as_ref().ok();
    let above = |value: Value| Value(value.0 + 1.0);
    let interval = compared.and_then(|found| found.relative_interval);
    Factor {
        metric: metric.to_owned(),
        of: of.to_owned(),
        alone: alone.map(|found| Value(found.value)),
        under: under.map(|found| Value(found.value)),
        factor: compared.and_then(|found| found.relative).map(above),
        interval: interval
            .map(|both| wiregauge_stats::Interval { low: above(both.low), high: above(both.high) }),
        missing: found.err(),
    }
}
