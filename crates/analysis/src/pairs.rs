//! What pairs of several hosts show together: which are slow, and what a whole matching carries.

use statrs::statistics::{Data, Median};
use wiregauge_base::options::grouped;
use wiregauge_figures::record::schema::{Bisection, PairFigures, Run, SlowPair};
use wiregauge_plan::{HostPair, Pairs, Plan, Rails};
use wiregauge_stats::rate::{Delivered, mean_rate, rate};
use wiregauge_stats::{Interval, RateMetric, Value};

/// Fewer pairs show no rule from which one could differ.
const FEWEST: usize = 4;
/// A pair is slow where its interval lies so many spreads beyond the median of all, by logarithms.
/// The spread is the median of the distances from it, times 1.4826, and 3.5 the usual limit
/// (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993).
const SPREADS: f64 = 3.5;
const TO_SIGMA: f64 = 1.4826;
/// ... and by at least this share of the median: a difference that matters to a user.
const LEAST_SHARE: f64 = 0.1;

/// The figures; `None` where no more than one pair was measured.
pub fn figures(plan: &Plan, runs: &[Run]) -> Option<PairFigures> {
    let is_by_rail = plan.rails.is_some();
    let pairs = plan.pairs.or(is_by_rail.then_some(Pairs::First))?;
    let groups = alike(runs, is_by_rail);
    Some(match pairs {
        Pairs::Ranks => return None,
        Pairs::First if !is_by_rail => return None,
        Pairs::First | Pairs::All { .. } => {
            let slow = groups.iter().flat_map(|group| slow(group)).collect();
            PairFigures { slow, bisections: Vec::new() }
        }
        Pairs::Bisection { .. } => {
            let bisections = groups.iter().map(|group| bisection(plan, group)).collect();
            PairFigures { slow: Vec::new(), bisections }
        }
    })
}

/// Runs that differ in their hosts alone, and in their rails.
pub fn alike(runs: &[Run], is_by_rail: bool) -> Vec<Vec<&Run>> {
    let anywhere = |run: &'_ Run| {
        let mut case = run.case.clone();
        case.case.topology = case.case.topology.on(HostPair::default());
        if is_by_rail {
            Rails::without(&mut case.case.settings);
        }
        case
    };
    let groups = grouped(runs.iter().map(|run| (anywhere(run), run)), |a, b| a.0 == b.0);
    groups.into_iter().map(|group| group.into_iter().map(|(_, run)| run).collect()).collect()
}

/// The figure by which a pair is compared: its name, value and interval.
pub fn headline(run: &Run) -> Option<(&'static str, f64, Option<Interval>)> {
    if let Some(metric) = RateMetric::from_name(&run.headline)
        && let Some(rate) = run.rate(metric)
    {
        return rate.value.is_finite().then_some((metric.name(), rate.value, rate.interval));
    }
    // The metrics of a run stand in the order of what they answer.
    let figure = run.figures.first()?;
    let half = figure.summary.quantile(0.5)?;
    Some((figure.metric.name(), half.value?.0, half.interval))
}

fn slow(group: &[&Run]) -> Vec<SlowPair> {
    let known: Vec<_> = group.iter().filter_map(|run| Some((run.index, headline(run)?))).collect();
    let median = median(known.iter().map(|(_, (_, value, _))| *value));
    let positive = |median: &f64| *median > 0.0 && known.len() >= FEWEST;
    let Some(median) = median.filter(positive) else { return Vec::new() };
    // By the logarithm, since a pair is slow by a factor: a rate cannot lie far below the median.
    let apart = |value: f64| (value / median).ln();
    let distances = known.iter().map(|(_, (_, value, _))| apart(*value).abs());
    let spread = TO_SIGMA * self::median(distances).unwrap_or(0.0);
    let limit = (SPREADS * spread).max((1.0 + LEAST_SHARE).ln());
    let is_rate = group.iter().any(|run| RateMetric::from_name(&run.headline).is_some());
    let beyond = |value: f64, interval: Option<Interval>| match is_rate {
        true => apart(interval.map_or(value, |i| i.high.0)) < -limit,
        false => apart(interval.map_or(value, |i| i.low.0)) > limit,
    };
    let found = known.into_iter().filter(|(_, (_, value, interval))| beyond(*value, *interval));
    let mut found: Vec<SlowPair> = found
        .map(|(run, (metric, value, _))| SlowPair { run, metric: metric.into(), value, median })
        .collect();
    let worse = |a: &SlowPair, b: &SlowPair| match is_rate {
        true => a.value.total_cmp(&b.value),
        false => b.value.total_cmp(&a.value),
    };
    found.sort_by(worse);
    found
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    (!values.is_empty()).then(|| Data::new(values).median())
}

/// The effective bisection bandwidth (Hoefler, Schneider, Lumsdaine, Multistage switches are not
/// crossbars, 2008): what random perfect matchings carry on average. A round in which a pair has no
/// rate is left out, since its sum would be of fewer pairs.
fn bisection(plan: &Plan, group: &[&Run]) -> Bisection {
    let of = |number: &u32| group.iter().find(|run| run.index == *number);
    let matchings: Vec<Vec<&Run>> = plan
        .concurrent
        .iter()
        .map(|numbers| numbers.iter().filter_map(of).copied().collect::<Vec<_>>())
        .filter(|runs| !runs.is_empty())
        .collect();
    let sums: Vec<Vec<Delivered>> = matchings.iter().map(|pairs| sums(pairs)).collect();
    let rates: Vec<f64> = sums.iter().map(|sums| rate(sums).value).collect();
    let overlaps = group.iter().flat_map(|run| &run.rounds).filter_map(|round| round.overlap);
    Bisection {
        runs: group.iter().map(|run| run.index).collect(),
        pairs: matchings.iter().map(Vec::len).max().unwrap_or(0) as u32,
        // Matchings are drawn: two kinds of them are no disturbance, and each is in the mean.
        bandwidth: if rates.len() > 1 { mean_rate(&rates) } else { rate(&sums.concat()) },
        matchings: rates.into_iter().map(Value).collect(),
        overlap: overlaps.reduce(f64::min),
    }
}

/// B/s of all pairs together, a round each.
fn sums(pairs: &[&Run]) -> Vec<Delivered> {
    let rounds_of = |run: &&Run| Some(run.rate(RateMetric::Bandwidth)?.rounds.clone());
    let Some(rates) = pairs.iter().map(rounds_of).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    let rounds = rates.iter().map(Vec::len).min().unwrap_or(0);
    let sum = |round: usize| rates.iter().map(|rounds| rounds[round]).sum();
    (0..rounds).map(|round| Delivered { work: sum(round), seconds: 1.0 }).collect()
}

#[cfg(test)]
mod tests;
