//! The figures of a run that plots of all runs draw.

use crate::curves::headline;
use crate::number::quantile_name;
use wiregauge_figures::record::schema::{RateMetric, Run};
use wiregauge_stats::{Interval, Value};

/// One figure of a run, and the same of each round.
pub struct Figure<'a> {
    pub run: &'a Run,
    /// Which quantile or rate it is.
    pub name: String,
    pub value: f64,
    pub interval: Option<Interval>,
    /// Samples of a quantile, rounds of a rate.
    pub count: u64,
    /// NaN where a round has too few samples.
    pub rounds: Vec<f64>,
}

/// p50 and p99 of the metric that represents a run.
pub fn quantiles(run: &Run) -> Vec<Figure<'_>> {
    let Some(summary) = headline(run).and_then(|metric| run.summary(metric)) else {
        return Vec::new();
    };
    let number = |value: Option<Value>| value.map_or(f64::NAN, |value| value.0);
    let figure = |p| {
        let at = summary.quantiles.iter().position(|quantile| quantile.p == p)?;
        let found = &summary.quantiles[at];
        let rounds = summary.rounds.iter().map(|round| round.quantiles.get(at).copied().flatten());
        Some(Figure {
            run,
            name: quantile_name(p),
            value: number(found.value),
            interval: found.shown_interval(),
            count: summary.count,
            rounds: rounds.map(number).collect(),
        })
    };
    [0.5, 0.99].into_iter().filter_map(figure).collect()
}

/// A rate; `None` where the run has none.
pub fn rate(run: &Run, metric: RateMetric) -> Option<Figure<'_>> {
    let rate = run.rate(metric)?;
    Some(Figure {
        run,
        name: metric.name().into(),
        value: rate.value,
        interval: rate.interval,
        count: rate.rounds.len() as u64,
        rounds: rate.rounds.clone(),
    })
}
