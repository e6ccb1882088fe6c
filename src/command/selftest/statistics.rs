//! The rows that judge figures: samples of known delays, through the loops, the recorder and the
//! statistics.

use super::simulate::{ping_pong, play, quantile, scheduled, with_pause};
use super::{Fallible, Outcome};
use crate::loops::Ended;
use crate::plan::{Bound, Case, Schedule};
use crate::sample::Flags;
use crate::sample::histogram::LiveHistogram;
use crate::stats::metric::durations;
use crate::stats::pooled::Run;
use crate::stats::quantile::{Ranked, rank};
use crate::stats::{Metric, Summary};
use crate::units::{MessageRate, Span};

/// Round trips of a case, summarised.
fn round_trips(case: &Case) -> Fallible<Summary> {
    Ok(play(case)?.summary(Metric::Rtt))
}

/// T1: the standard deviation of normal delays.
pub fn t1_standard_deviation() -> Outcome {
    let summary = round_trips(&ping_pong("normal(1us,300ns)", 100_000)?)?;
    let passes = (summary.sd / 300.0 - 1.0).abs() < 0.05;
    Ok(("sd 300 ns".into(), format!("sd {:.1} ns", summary.sd), passes))
}

/// T3: p99.9 of 1000 samples.
pub fn t3_too_few() -> Outcome {
    let summary = round_trips(&ping_pong("normal(1us,300ns)", 1000)?)?;
    let p999 = summary.quantile(0.999).ok_or("no p99.9")?;
    let (measured, passes) = match (p999.value, p999.interval) {
        (None, _) => ("n too small".to_string(), true),
        (Some(value), Some(_)) => (format!("{} ns with an interval", value.0), true),
        (Some(value), None) => (format!("{} ns alone", value.0), false),
    };
    Ok(("needs 10000 samples".into(), measured, passes))
}

/// T4: ten million samples, slow ones in the first half only.
pub fn t4_whole_run() -> Outcome {
    let spec = "normal(1us,100ns) slow(1%,50us,5000000)";
    let summary = round_trips(&ping_pong(spec, 10_000_000)?)?;
    // 0.5 % of all are slow: p99 is an ordinary one, p99.9 a slow one.
    let (p99, p999) = (quantile(&summary, 0.99), quantile(&summary, 0.999));
    // P(ordinary <= x) = (0.99 - 0) / 0.995 at p99: z = 2.575 of the normal distribution.
    let passes = (p99 - 1257.5).abs() < 10.0 && p999 == 50_000.0;
    let truth = "p99 1.2575 us, p99.9 50 us".to_string();
    Ok((truth, format!("p99 {:.4} us, p99.9 {} us", p99 / 1e3, p999 / 1e3), passes))
}

/// T5: the same stream ended by time and by count.
pub fn t5_count_and_time() -> Outcome {
    let by_count = ping_pong("exponential(1us,500ns)", 20_000)?;
    let time = Bound { count: None, time: Some(Span(15_000_000)) };
    let played = play(&Case { bound: time, ..by_count.clone() })?;
    let count = played.samples.samples.len() as u64;
    let timed = played.summary(Metric::Rtt);
    let bound = Bound { count: Some(count), time: None };
    let counted = round_trips(&Case { bound, ..by_count })?;
    let same = timed == counted && played.ended == Ended::Time && count > 1000;
    let truth = format!("p99 {} ns of {count}", quantile(&counted, 0.99));
    Ok((truth, format!("p99 {} ns by time", quantile(&timed, 0.99)), same))
}

/// T6: pauses between messages.
pub fn t6_pauses() -> Outcome {
    let without = ping_pong("normal(1us,300ns)", 20_000)?;
    let with = with_pause(&without, Span(50_000));
    let (without, with) = (round_trips(&without)?, round_trips(&with)?);
    let same = [0.1, 0.5, 0.9, 0.99].iter().all(|p| quantile(&without, *p) == quantile(&with, *p));
    let truth = format!("p50 {} ns", quantile(&without, 0.5));
    let measured = format!("p50 {} ns", quantile(&with, 0.5));
    Ok((truth, measured, same && without.mean == with.mean))
}

/// T9: loss and reordering.
pub fn t9_loss_and_reordering() -> Outcome {
    let schedule = Schedule::Periodic { rate: MessageRate(1e5) };
    let spec = "normal(1us,50ns) loss(1%) reorder(1%,50us)";
    let played = play(&scheduled(spec, 100_000, schedule)?)?;
    let mut all = durations(&played.samples, Metric::OneWay);
    all.sort_by(f64::total_cmp);
    let at = |p: f64| Run::sorted(&all).at_rank(rank(p, all.len() as u64));
    let flagged = |flag| played.samples.samples.iter().filter(move |s| s.flags.has(flag));
    let lost = flagged(Flags::LOST).count() as u64;
    let reordered = flagged(Flags::REORDERED).count() as u64;
    // Held up by 50 us at one message each 10 us: exactly those are overtaken.
    let held_up = all.iter().filter(|ns| **ns > 40_000.0 && ns.is_finite()).count() as u64;
    let true_latency =
        flagged(Flags::REORDERED).all(|s| (s.receive_ns - s.submit_ns - 51_000.0).abs() < 400.0);
    let counted = played.client.sent == 100_000
        && lost == played.client.sent - played.server.received
        && reordered == played.server.reordered
        && reordered.abs_diff(held_up) <= 5; // the last few have nobody to overtake them
    let share = lost.abs_diff(1000) < 130; // 4 sigma of a binomial
    let infinite = at(0.995) == f64::INFINITY && at(0.98).is_finite();
    let measured = format!("p99.5 {}, {lost} lost, {reordered} reordered", at(0.995));
    let truth = format!("inf, {} lost, {held_up} held up", 100_000 - played.server.received);
    Ok((truth, measured, counted && true_latency && share && infinite))
}

/// T11: a day at 100 M/s.
pub fn t11_a_day() -> Outcome {
    const PER_SECOND: u64 = 100_000_000;
    const SECONDS: u64 = 86_400;
    let mut all = LiveHistogram::new(1.0)?;
    for second in 0..SECONDS {
        all.record_many(1000 + (second % 100) as i64, PER_SECOND - 1);
        all.record_many(5_000_000, 1);
    }
    let mut twice = LiveHistogram::from_sparse(&all.to_sparse())?;
    twice.merge(&all)?;
    let mean = all.mean_ns().ok_or("no mean")?;
    let truth = 1049.5 + (5_000_000.0 - 1049.5) / PER_SECOND as f64;
    let summary = crate::stats::summarize_live::<Vec<f64>>(&[all.clone(), twice], &[], 1e4);
    let sound = summary.quantiles.iter().filter_map(|q| q.value).all(|v| v.0 >= 1000.0);
    let count = all.count();
    let passes = count == PER_SECOND * SECONDS
        && (mean / truth - 1.0).abs() < 1e-6
        && all.max_ns() == Some(5_000_000.0)
        && summary.count == 3 * count
        && summary.above_threshold == 3 * SECONDS
        && sound
        && summary.sd.is_finite();
    let truth = format!("{} samples, mean {truth:.3} ns", PER_SECOND * SECONDS);
    Ok((truth, format!("{count} samples, mean {mean:.3} ns"), passes))
}

/// T13: one outlier.
pub fn t13_outlier() -> Outcome {
    let plain = round_trips(&ping_pong("normal(1us,100ns)", 100_000)?)?;
    let spec = "normal(1us,100ns) stall(100ms@50000)";
    let stalled = round_trips(&ping_pong(spec, 100_000)?)?;
    // One sample changed places: a quantile moves by one rank at most.
    let near = |at| (quantile(&stalled, at) - quantile(&plain, at)).abs() <= 1.0;
    let passes = near(0.5) && near(0.99) && stalled.max.0 == 1e8;
    let truth = format!("p50 {} ns, p99 {} ns", quantile(&plain, 0.5), quantile(&plain, 0.99));
    let measured = format!(
        "p50 {} ns, p99 {} ns, max {} ms",
        quantile(&stalled, 0.5),
        quantile(&stalled, 0.99),
        stalled.max.0 / 1e6
    );
    Ok((truth, measured, passes))
}
