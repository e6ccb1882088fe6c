//! The rows that judge printed figures against what was injected: simulated runs from the plan to
//! the record, by agents, as a command makes them.

use super::simulate::{Simulated, closed_load, flows, round_trips, run, scheduled_messages};
use super::{Fallible, Outcome};
use crate::plan::Request;
use crate::record::schema::{Metric, RateMetric, Record, Run};
use crate::sample::RoundSamples;
use crate::stats::{QUANTILES, Summary};
use crate::units::quantile_name;

/// Relative error of a rate whose stamps have whole nanoseconds, over 5 ms and more.
const RATE_ERROR: f64 = 1e-3;
/// Standard deviations within which a quantile of random delays must be: 1 of 2 million is not.
const SIGMAS: f64 = 5.0;

/// The first run of a record of a request.
fn measured(request: Request, simulated: Simulated<'_>) -> Fallible<Run> {
    let Record { runs, .. } = run(&simulated.plan(request)?, &mut |_: &RoundSamples| Ok(()))?;
    Ok(runs.into_iter().next().ok_or("no run")?)
}

fn summary(run: &Run, metric: Metric) -> Fallible<&Summary> {
    Ok(run.summary(metric).ok_or_else(|| format!("no {}", metric.name()))?)
}

/// Rates of a run, each with what it is in truth.
fn rates_are(run: &Run, truth: &[(RateMetric, f64)], off: &mut f64) -> Fallible<()> {
    for (metric, truth) in truth {
        let rate = run.rate(*metric).ok_or_else(|| format!("no {}", metric.name()))?;
        let all = rate.rounds.iter().chain([&rate.value]);
        *off = all.map(|rate| (rate / truth - 1.0).abs()).fold(*off, f64::max);
    }
    Ok(())
}

/// T18: rates of known counts in known times. A simulated post takes 10 ns where nothing answers.
pub fn t18_rates() -> Outcome {
    let constant =
        |count| Simulated { spec: "constant(2us)", count, warmup: count / 10, rounds: 3 };
    let mut off = 0.0;
    let scheduled = measured(scheduled_messages(1e5), constant(1000))?;
    let truth = [RateMetric::OfferedRate, RateMetric::AchievedRate, RateMetric::MessageRate];
    rates_are(&scheduled, &truth.map(|metric| (metric, 1e5)), &mut off)?;
    let closed = measured(closed_load(), constant(5000))?;
    rates_are(&closed, &[(RateMetric::MessageRate, 5e5)], &mut off)?;
    let flows = measured(flows(), constant(500_000))?;
    let truth = [(RateMetric::Bandwidth, 64e8), (RateMetric::MessageRate, 1e8)];
    rates_are(&flows, &truth, &mut off)?;
    let counts = [&scheduled, &closed, &flows].map(|run| (run.counts.sent, run.counts.received));
    let mut counted = counts == [(3300, 3300), (16_500, 16_500), (1_650_000, 1_650_000)];
    let lossy = Simulated { spec: "constant(2us) loss(10%)", count: 5000, warmup: 0, rounds: 2 };
    let run = measured(scheduled_messages(1e5), lossy)?;
    let lost = summary(&run, Metric::OneWay)?.lost;
    let missing = run.counts.sent - run.counts.received;
    counted &= run.counts.lost == missing && lost == missing && lost.abs_diff(1000) < 150;
    let truth = "100 k/s by schedule, 500 k/s answered, 6.4 GB/s";
    let measured = format!("off by at most {:.4} %", 100.0 * off);
    Ok((truth.into(), measured, off < RATE_ERROR && counted))
}

/// T20: a warm-up that is 50 times slower, in no figure and no rate.
pub fn t20_warmup() -> Outcome {
    let slow = Simulated {
        spec: "constant(1us) slow(100%,50us,200)",
        count: 2000,
        warmup: 200,
        rounds: 2,
    };
    let trips = measured(round_trips(), slow)?;
    let one_way = measured(scheduled_messages(1e4), slow)?;
    let closed = measured(closed_load(), slow)?;
    let mut worst: f64 = 0.0;
    let mut counted = true;
    for run in [&trips, &one_way, &closed] {
        counted &= run.counts.warmup == 400 && !run.figures.is_empty();
        for figure in &run.figures {
            counted &= figure.summary.count == 4000;
            worst = worst.max(figure.summary.max.0);
        }
    }
    let mut off = 0.0;
    rates_are(&closed, &[(RateMetric::MessageRate, 1e6)], &mut off)?;
    let measured = format!("max {worst} ns; rate off by {:.4} %", 100.0 * off);
    let truth = "max 1000 ns; 1 M/s answered".to_owned();
    Ok((truth, measured, counted && worst == 1000.0 && off < RATE_ERROR))
}

/// T21: every quantile of uniform delays, whose quantile p is 1000 + 1000 p ns.
pub fn t21_quantiles() -> Outcome {
    let uniform = Simulated { spec: "uniform(1us,2us)", count: 50_000, warmup: 0, rounds: 2 };
    let run = measured(round_trips(), uniform)?;
    let (whole, half) = (summary(&run, Metric::Rtt)?, summary(&run, Metric::HalfRtt)?);
    let (mut right, mut seen) = (true, Vec::new());
    for p in QUANTILES {
        let truth = 1000.0 + 1000.0 * p;
        // The sample quantile's standard deviation; half a nanosecond is the simulation's grid.
        let allowed = SIGMAS * 1000.0 * (p * (1.0 - p) / whole.count as f64).sqrt() + 0.5;
        let value = |of: &Summary| Some(of.quantile(p)?.value?.0);
        let found = value(whole).ok_or("a quantile is missing")?;
        right &= (found - truth).abs() < allowed && value(half) == Some(found / 2.0);
        let interval = whole.quantile(p).and_then(|quantile| quantile.interval);
        // Not the truth, which one of 20 intervals does not enclose.
        right &= interval.is_some_and(|i| i.low.0 <= found && found <= i.high.0);
        seen.push(format!("{} {found}", quantile_name(p)));
    }
    right &= (whole.mean - 1500.0).abs() < 5.0 && (whole.sd / 288.675 - 1.0).abs() < 0.01;
    right &= whole.min.0 >= 1000.0 && whole.max.0 <= 2000.0 && whole.count == 100_000;
    Ok(("1000 + 1000 p ns".into(), seen.join(", "), right))
}

/// T23: a message that arrives twice is a duplicate, and does not count as lost.
pub fn t23_duplicates() -> Outcome {
    let twice =
        Simulated { spec: "normal(1us,100ns) duplicate(5%)", count: 10_000, warmup: 0, rounds: 2 };
    let mut passes = true;
    let mut seen = Vec::new();
    for request in [round_trips(), scheduled_messages(1e5), closed_load()] {
        let run = measured(request, twice)?;
        let counts = &run.counts;
        let finite = run.figures.iter().all(|figure| figure.summary.lost == 0);
        let share = counts.duplicates as f64 / counts.sent as f64;
        passes &= counts.lost == 0 && counts.received == counts.sent && finite;
        passes &= (share - 0.05).abs() < 0.01;
        seen.push(format!("{} twice, {} lost", counts.duplicates, counts.lost));
    }
    Ok(("5 % twice, 0 lost".into(), seen.join("; "), passes))
}
