//! Plausibility of a record that is read: figures that no samples can give, counts and times that
//! contradict each other, and numbers beyond all that can be measured are refused.
//!
//! The bounds are wide, since a figure that is only odd is one to look at. What the samples say of
//! a figure is compared in [`super::against_samples`].

use super::schema::{Counts, Figure, RateFigure, Record, Round, Run};
use serde::Serialize;
use serde_json::Value as Json;
use wiregauge_base::units::quantile_name;
use wiregauge_host::Noise;
use wiregauge_plan::MAX_LABEL;
use wiregauge_plan::request::MOST_COUNT;
use wiregauge_stats::{Basis, Interval, Metric, Quantile, Summary, Value};

/// No time in ns and no rate is larger: 2^62 ns are 146 years.
const LARGEST: f64 = (1_u64 << 62) as f64;
/// No message is larger, in bytes: transports end at 1 GiB.
const LARGEST_SIZE: u64 = 1 << 40;
/// No count is larger: beyond it neighbours have one number, and no program counts so far.
const LARGEST_COUNT: u64 = 1 << 53;
/// What a time by one clock may lie below 0, in ns: the rounding of its two stamps.
const ROUNDED_NS: f64 = 1.0;
/// How far a quantile may lie outside of the samples' range, as a share of it: histograms give the
/// edges of classes that are 1/32 wide.
const CLASS: f64 = 1.0 / 16.0;
/// Rounding of sums of floating-point numbers, as a share.
const ROUNDING: f64 = 1e-6;

/// Checks a record against itself. The error says where, and what cannot be.
pub(super) fn check(record: &Record) -> Result<(), String> {
    check_numbers(record)?;
    check_head(record)?;
    // Rounds that were lost have had positions, too.
    let rounds = record.runs.len().saturating_mul(record.plan.rounds.most as usize);
    let rising = record.runs.is_sorted_by(|a, b| a.index < b.index);
    ensure!(rising, "the runs are not in the order of their numbers");
    for run in &record.runs {
        check_texts(run)?;
        check_run(run, rounds)?;
    }
    check_together(record)
}

/// Checks a run of a record that had at most this many rounds in all.
fn check_run(run: &Run, rounds: usize) -> Result<(), String> {
    check_counts(run)?;
    for round in &run.rounds {
        check_round(run, round, rounds)?;
    }
    let rising = run.rounds.is_sorted_by(|a, b| a.index < b.index);
    ensure!(rising, "{}: its rounds are not in the order of their numbers", run.label);
    run.figures.iter().try_for_each(|figure| check_figure(run, figure))?;
    run.rates.iter().try_for_each(|figure| check_rate(run, figure))?;
    for host in &run.client_hosts {
        let metric = host.metric;
        let summary = &host.summary;
        check_summary(run, metric, summary, u64::MAX)
            .map_err(|why| format!("{} of {}", why, host.name))?;
    }
    run.stalls.iter().try_for_each(|stall| {
        let has = run.rounds.iter().any(|round| round.index == stall.round);
        let number = stall.round;
        ensure!(has, "{}: it has a stall of round {number}, which it lacks", run.label);
        let threads = run.case.threads();
        let thread = stall.thread;
        ensure!(
            thread < threads,
            "{}: it has a stall of thread {thread}, but {threads} threads",
            run.label
        );
        Ok(())
    })
}

/// Longest name of a pattern, in bytes; those of this build have 10.
const MAX_PATTERN: usize = 64;

/// Checks the texts that exports repeat in each row.
fn check_texts(run: &Run) -> Result<(), String> {
    let point = run.case.point.as_deref().unwrap_or_default();
    let texts = [
        ("label", run.label.as_str(), MAX_LABEL),
        ("label", &run.case.label, MAX_LABEL),
        ("point", point, MAX_LABEL),
        ("pattern", &run.case.pattern, MAX_PATTERN),
    ];
    for (name, text, most) in texts {
        let bytes = text.len();
        let index = run.index;
        ensure!(
            bytes <= most,
            "run {index}: its {name} has {bytes} bytes, expected at most {most}"
        );
    }
    Ok(())
}

/// The counts by name.
fn by_name(counts: &Counts) -> [(&'static str, u64); 14] {
    [
        ("sent", counts.sent),
        ("received", counts.received),
        ("warmup", counts.warmup),
        ("lost", counts.lost),
        ("duplicates", counts.duplicates),
        ("reordered", counts.reordered),
        ("corrupt", counts.corrupt),
        ("rejected_peers", counts.rejected_peers),
        ("missed_steps", counts.missed_steps),
        ("gaps", counts.gaps),
        ("held_up", counts.held_up),
        ("unsent", counts.unsent),
        ("unfinished", counts.unfinished),
        ("lost_before_first", counts.lost_before_first),
    ]
}

/// Checks that the rounds add up to the run, and the threads of a round to it.
fn check_counts(run: &Run) -> Result<(), String> {
    for (at, (name, said)) in by_name(&run.counts).into_iter().enumerate() {
        let rounds = run.rounds.iter().map(|round| by_name(&round.counts)[at].1);
        let all = rounds.fold(0, u64::saturating_add);
        ensure!(said == all, "{}: {name} is {said}, but the rounds add up to {all}", run.label);
    }
    Ok(())
}

fn check_round(run: &Run, round: &Round, rounds: usize) -> Result<(), String> {
    let wrong = |what: String| format!("{}: round {}: {what}", run.label, round.index);
    let Counts { sent, received, warmup, lost, unfinished, .. } = round.counts;
    for (name, part) in [("received", received), ("warmup", warmup), ("lost", lost)] {
        ensure!(part <= sent, wrong(format!("{name} is {part}, but only {sent} were sent")));
    }
    let apart = received.saturating_add(lost);
    ensure!(
        apart <= sent,
        wrong(format!("{received} received and {lost} lost are more than the {sent} sent"))
    );
    ensure!(
        unfinished <= sent,
        wrong(format!("{unfinished} are unfinished, but only {sent} were sent"))
    );
    let before = round.counts.lost_before_first;
    ensure!(before <= lost, wrong(format!("{before} of {lost} lost were before the first")));
    ensure!(round.stride >= 1, wrong("a row stands for no message".into()));
    let position = round.position as usize;
    ensure!(position < rounds.max(1), wrong(format!("its position is {position} of {rounds}")));
    let shares = [("overlap", round.overlap), ("congested", round.congested)];
    for (name, share) in shares.into_iter().filter_map(|(name, share)| Some((name, share?))) {
        check_share(share).map_err(|why| wrong(format!("{name} {why}")))?;
    }
    Ok(())
}

fn check_share(share: f64) -> Result<(), String> {
    let is_share = (-ROUNDING..=1.0 + ROUNDING).contains(&share);
    ensure!(is_share, "is {share}, expected a share from 0 to 1");
    Ok(())
}

fn check_figure(run: &Run, figure: &Figure) -> Result<(), String> {
    let rows = run.rounds.iter().fold(0, |all: u64, round| {
        all.saturating_add(round.samples).saturating_add(round.samples_in_histogram_only)
    });
    check_summary(run, figure.metric, &figure.summary, rows)
}

/// Checks a distribution of at most this many samples.
fn check_summary(run: &Run, metric: Metric, summary: &Summary, rows: u64) -> Result<(), String> {
    let wrong = |what: String| format!("{}: {}: {what}", run.label, metric.name());
    let Summary { count, lost, above_threshold, .. } = *summary;
    ensure!(count <= rows, wrong(format!("it has {count} samples, but the rounds have {rows}")));
    ensure!(lost <= count, wrong(format!("{lost} samples are lost, but there are only {count}")));
    let is_part = (lost..=count).contains(&above_threshold);
    ensure!(
        is_part,
        wrong(format!(
            "{above_threshold} samples are above the threshold, expected {lost} to {count}"
        ))
    );
    let least = least_of(metric);
    let extremes = [("min", summary.min.0), ("max", summary.max.0), ("mean", summary.mean)];
    for (what, ns) in extremes.into_iter().chain([("max_finite", summary.max_finite.0)]) {
        check_size(ns, least).map_err(|why| wrong(format!("{what} {why}")))?;
    }
    let spreads = [("sd", summary.sd), ("iqr_within", summary.iqr_within)];
    let between = summary.sd_between.map(|sd| ("sd_between", sd));
    for (what, ns) in spreads.into_iter().chain(between) {
        check_size(ns, 0.0).map_err(|why| wrong(format!("{what} {why}")))?;
    }
    check_order(summary).map_err(wrong)?;
    check_size(summary.threshold, 0.0).map_err(|why| wrong(format!("threshold {why}")))?;
    if let Some(interval) = summary.mean_interval {
        let bound = interval.low.0;
        let is_right = bound >= least || bound == f64::NEG_INFINITY;
        ensure!(is_right, wrong(format!("mean: its interval begins at {bound} ns")));
        check_interval(interval, summary.mean).map_err(|why| wrong(format!("mean: {why}")))?;
    }
    let mut below: Option<(Quantile, f64)> = None;
    for quantile in &summary.quantiles {
        check_quantile(summary, quantile, least, &mut below).map_err(wrong)?;
    }
    check_rounds(run, summary).map_err(wrong)
}

/// Least time of a metric: one by one clock is not below 0.
fn least_of(metric: Metric) -> f64 {
    let is_of_one_clock = matches!(
        metric,
        Metric::Rtt
            | Metric::HalfRtt
            | Metric::Post
            | Metric::Complete
            | Metric::Jitter
            | Metric::AfterBarrier
    );
    if is_of_one_clock { -ROUNDED_NS } else { -LARGEST }
}

/// The error that a value of the samples' size may have.
fn room(value: f64) -> f64 {
    CLASS * value.abs() + ROUNDED_NS
}

/// Checks that a value is not outside of others, beyond what reading a histogram may add. A missing
/// value is NaN, and comparisons with it are false.
fn is_outside(value: f64, low: f64, high: f64) -> bool {
    let room = if value.is_finite() { room(value) } else { 0.0 };
    value < low - room || value > high + room
}

/// Checks that the extremes, the mean and the deviation are in order.
fn check_order(summary: &Summary) -> Result<(), String> {
    let Summary { min: Value(min), max: Value(max), max_finite: Value(finite), mean, sd, .. } =
        *summary;
    ensure!(!is_outside(finite, min, max), "max_finite is {finite} ns, outside of {min} to {max}");
    // A lost message is infinitely late.
    let latest = if summary.lost > 0 { f64::INFINITY } else { finite };
    let is_latest = max == latest || max.is_nan() || latest.is_nan();
    ensure!(
        is_latest,
        "max is {max} ns, but {} are lost and max_finite is {finite} ns",
        summary.lost
    );
    ensure!(min.is_nan() || max.is_nan() || min <= max, "min is {min} ns, but max is {max} ns");
    ensure!(!is_outside(mean, min, finite), "mean is {mean} ns, outside of {min} to {finite} ns");
    // Of two samples it is the range over the root of 2, and of more it is less.
    let range = finite - min;
    let is_wide = sd > range + room(finite.abs().max(min.abs()));
    ensure!(!is_wide, "sd is {sd} ns, but all samples lie within {range} ns");
    let known = summary.known_error;
    for (name, ns) in [("clock_ns", known.clock_ns), ("instrument_ns", known.instrument_ns)] {
        check_size(ns, 0.0).map_err(|why| format!("{name} {why}"))?;
    }
    Ok(())
}

fn check_quantile(
    summary: &Summary,
    quantile: &Quantile,
    least: f64,
    below: &mut Option<(Quantile, f64)>,
) -> Result<(), String> {
    let p = quantile.p;
    ensure!(p > 0.0 && p < 1.0, "there is no quantile {p}: expected a number between 0 and 1");
    let what = quantile_name(p);
    let n = quantile.effective_n;
    let most = summary.count.max(summary.rounds.len() as u64);
    let is_number = n >= 0.0 && n <= most as f64 * (1.0 + ROUNDING);
    ensure!(is_number, "{what}: effective_n is {n}, expected 0 to {most}");
    if let Some(within) = quantile.within {
        // It is made of samples, and has the known errors in it.
        let known = summary.known_error.clock_ns + summary.known_error.instrument_ns;
        let low = within.low.0;
        let least = summary.min.0 - known;
        let high = within.high.0;
        let most = summary.max.0 + known;
        let is_outside = |bound: f64| {
            bound.is_finite() && (bound < least - room(least) || bound > most + room(most))
        };
        let is_beyond = is_outside(low) || is_outside(high);
        ensure!(!is_beyond, "{what}: {low} to {high} ns within a process is beyond all samples");
    }
    let value = quantile.value.map_or(f64::NAN, |value| value.0);
    check_size(value, least).map_err(|why| format!("{what} {why}"))?;
    let range = format!("{} ns to {} ns", summary.min.0, summary.max.0);
    let is_wrong = is_outside(value, summary.min.0, summary.max.0);
    ensure!(!is_wrong, "{what} is {value} ns, outside of all samples ({range})");
    for interval in [quantile.interval, quantile.within].into_iter().flatten() {
        // Those of older records may reach below 0.
        let bound = interval.low.0;
        let is_unknown = bound == f64::NEG_INFINITY || quantile.basis == Basis::Pooled;
        let is_right = bound >= least || is_unknown;
        ensure!(is_right, "{what}: its interval begins at {bound} ns, expected {least} or more");
        // That of all samples is within one process, and the value that of a typical round.
        let centre = if quantile.interval == Some(interval) { value } else { f64::NAN };
        check_interval(interval, centre).map_err(|why| format!("{what}: {why}"))?;
    }
    if value.is_nan() {
        return Ok(());
    }
    // The centre of what rises in each round rises, if it is the same kind of centre.
    let lower = below.filter(|(lower, _)| p > lower.p && quantile.basis == lower.basis);
    if let Some((_, lower)) = lower.filter(|(_, lower)| value < *lower - room(value)) {
        return Err(format!("{what} is {value} ns, but a lower quantile is {lower} ns"));
    }
    *below = Some((*quantile, value));
    Ok(())
}

/// Checks that an interval's bounds are in order, and that it holds its value.
fn check_interval(interval: Interval, value: f64) -> Result<(), String> {
    let Interval { low: Value(low), high: Value(high) } = interval;
    ensure!(low <= high, "its interval begins at {low} and ends at {high}");
    let is_wrong = is_outside(value, low, high);
    ensure!(!is_wrong, "it is {value}, outside of its interval from {low} to {high}");
    // That of two rounds that differ much reaches beyond any time.
    Ok(())
}

/// Checks the rounds of a distribution against it and against the run's.
fn check_rounds(run: &Run, summary: &Summary) -> Result<(), String> {
    let own = summary.rounds.len();
    let all = run.rounds.len();
    ensure!(own <= all, "it has {own} rounds, but the run has {all}");
    let count = summary.rounds.iter().map(|round| round.count).fold(0, u64::saturating_add);
    let said = summary.count;
    ensure!(own == 0 || count == said, "it has {said} samples, but its rounds have {count}");
    for (number, round) in summary.rounds.iter().enumerate() {
        let wrong = |what: String| format!("round {number}: {what}");
        let min = round.min.0;
        let max = round.max.0;
        for (name, ns) in [("min", min), ("max", max)] {
            let is_wrong = is_outside(ns, summary.min.0, summary.max.0);
            ensure!(!is_wrong, wrong(format!("{name} is {ns} ns, outside of all samples")));
        }
        ensure!(min.is_nan() || max.is_nan() || min <= max, wrong(format!("{min} > {max} ns")));
        let mean = round.mean;
        let is_wrong = is_outside(mean, min, max);
        ensure!(!is_wrong, wrong(format!("mean is {mean} ns, outside of {min} to {max} ns")));
        let mut lower = f64::NEG_INFINITY;
        for value in round.quantiles.iter().flatten() {
            let Value(value) = *value;
            let is_wrong = is_outside(value, min, max) || value < lower;
            ensure!(!is_wrong, wrong(format!("a quantile is {value} ns, out of order")));
            lower = value;
        }
    }
    Ok(())
}

fn check_rate(run: &Run, figure: &RateFigure) -> Result<(), String> {
    let rate = &figure.rate;
    let wrong = |why| format!("{}: {}: the rate {why}", run.label, figure.metric.name());
    let mut all = std::iter::once(&rate.value).chain(&rate.rounds);
    all.try_for_each(|rate| check_size(*rate, 0.0)).map_err(wrong)?;
    let own = rate.rounds.len();
    let rounds = run.rounds.len();
    ensure!(own <= rounds, wrong(format!("has {own} rounds, but the run has {rounds}")));
    let finite = || rate.rounds.iter().copied().filter(|rate| rate.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(0.0, f64::max);
    // Of older records it is one of all rounds together.
    let is_centre = rate.basis != Basis::Pooled && own > 0 && finite().count() == own;
    let is_wrong = is_centre && is_outside(rate.value, low, high);
    ensure!(!is_wrong, wrong(format!("is {}, outside of its rounds' {low} to {high}", rate.value)));
    if let Some(interval) = rate.interval {
        let value = if is_centre { rate.value } else { f64::NAN };
        check_interval(interval, value).map_err(|why| wrong(format!("is wrong: {why}")))?;
        let bound = interval.low.0;
        // Those of older records may reach below 0.
        let is_unknown = bound == f64::NEG_INFINITY || rate.basis == Basis::Pooled;
        let is_right = bound >= -ROUNDING || is_unknown;
        ensure!(is_right, wrong(format!("has an interval from {bound}, below 0")));
    }
    Ok(())
}

/// Checks a time or a rate: infinity stands for a lost message, NaN for a missing value.
fn check_size(value: f64, least: f64) -> Result<(), String> {
    let is_outside = value < least || (value.is_finite() && value > LARGEST);
    ensure!(!is_outside, "is {value:e}, expected a number from {least} to {LARGEST:e}");
    Ok(())
}

/// Checks the rest of a record: the plan, the clock, the noise.
fn check_head(record: &Record) -> Result<(), String> {
    let rounds = record.plan.rounds;
    let least = rounds.least;
    let most = rounds.most;
    ensure!(least <= most, "plan: at least {least} rounds are planned, but at most {most}");
    let cases = record.plan.cases.iter().chain(record.runs.iter().map(|run| &run.case));
    for case in cases {
        let warmup = case.warmup;
        let label = &case.label;
        let fits = warmup <= MOST_COUNT;
        ensure!(fits, "{label}: its warm-up has {warmup} messages of at most {MOST_COUNT}");
        let size = case.size.0;
        ensure!(size <= LARGEST_SIZE, "{label}: its messages have {size} B");
        for (axis, value) in &case.axes {
            check_size(*value, 0.0).map_err(|why| format!("{label}: {} {why}", axis.name()))?;
        }
        let count = case.bound.count.unwrap_or_default();
        ensure!(
            count <= MOST_COUNT,
            "{label}: it asks for {count} messages, at most {MOST_COUNT} are possible"
        );
    }
    let instrument = &record.instrument;
    let p50 = instrument.overhead_p50_ns;
    let p99 = instrument.overhead_p99_ns;
    let is_wrong = p50 > p99 + room(p99);
    ensure!(!is_wrong, "instrument: its p50 is {p50} ns, but its p99 {p99} ns");
    let hosts = record.hosts.iter();
    let clocks = std::iter::once(&record.clock).chain(hosts.clone().map(|host| &host.clock));
    for clock in clocks {
        let hz = clock.frequency_hz;
        ensure!(hz > 0.0, "clock: its frequency is {hz} Hz, expected one above 0");
        let ppb = clock.residual_ppb;
        ensure!(ppb >= 0.0, "clock: its residual is {ppb} ppb, expected 0 or more");
    }
    let noise = record.noise.iter().chain(hosts.flat_map(|host| &host.noise));
    noise.clone().try_for_each(check_noise)
}

fn check_noise(noise: &Noise) -> Result<(), String> {
    let Noise { cpu, observed_ns, gaps, lost_ns, longest_ns, .. } = *noise;
    let room = ROUNDED_NS + ROUNDING * observed_ns;
    ensure!(
        lost_ns <= observed_ns + room,
        "noise of CPU {cpu}: {lost_ns} ns of {observed_ns} ns were lost"
    );
    ensure!(
        longest_ns <= lost_ns + room,
        "noise of CPU {cpu}: the longest gap is {longest_ns} ns, of {lost_ns} ns in all"
    );
    let rises = noise.histogram.is_sorted_by(|a, b| a.0 < b.0);
    let is_right = rises && noise.histogram.iter().all(|(bound, _)| *bound >= 0.0);
    ensure!(is_right, "noise of CPU {cpu}: the bounds of its histogram do not rise from 0");
    let counted = noise.histogram.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    ensure!(counted == gaps, "noise of CPU {cpu}: {gaps} gaps, but its histogram has {counted}");
    Ok(())
}

/// Checks what names runs, and shares of the time in which several ran.
fn check_together(record: &Record) -> Result<(), String> {
    let check_run = |number: u32| {
        let has = record.runs.iter().any(|run| run.index == number);
        ensure!(has, "run {number} is named, which the record lacks");
        Ok(())
    };
    for impact in &record.impacts {
        let named = [impact.alone, impact.under].into_iter().chain(impact.beside.iter().copied());
        named.clone().try_for_each(check_run).map_err(|why: String| format!("impacts: {why}"))?;
        impact.covered.map_or(Ok(()), check_share).map_err(|why| format!("impacts: {why}"))?;
        for factor in &impact.factors {
            let value = factor.factor.map_or(f64::NAN, |value| value.0);
            let checked = factor.interval.map_or(Ok(()), |one| check_interval(one, value));
            checked.map_err(|why| format!("impacts: {}: {why}", factor.metric))?;
        }
    }
    if let Some(pairs) = &record.pairs {
        let slow = pairs.slow.iter().map(|pair| pair.run);
        let both = slow.chain(pairs.bisections.iter().flat_map(|one| one.runs.iter().copied()));
        both.clone().try_for_each(check_run).map_err(|why: String| format!("pairs: {why}"))?;
        for bisection in &pairs.bisections {
            bisection.overlap.map_or(Ok(()), check_share).map_err(|why| format!("pairs: {why}"))?;
        }
    }
    Ok(())
}

/// Checks each number of a record by the unit at the end of its name, part by part: a run's part is
/// small, and the whole would be many times as large as its text.
fn check_numbers(record: &Record) -> Result<(), String> {
    check_part("environment", &record.environment)?;
    check_part("clock", &record.clock)?;
    check_part("instrument", &record.instrument)?;
    check_part("noise", &record.noise)?;
    check_part("hosts", &record.hosts)?;
    check_part("clocks", &record.clocks)?;
    check_part("together", &record.together)?;
    check_part("explanation", &record.explanation)?;
    check_part("tails", &record.tails)?;
    check_part("pairs", &record.pairs)?;
    check_part("impacts", &record.impacts)?;
    check_part("warnings", &record.warnings)?;
    for run in &record.runs {
        run.rounds.iter().try_for_each(|round| check_part("rounds", round))?;
        check_part("stalls", &run.stalls)?;
        check_part("counts", &run.counts)?;
        check_part("warnings", &run.warnings)?;
    }
    Ok(())
}

fn check_part(name: &str, part: &impl Serialize) -> Result<(), String> {
    let value = serde_json::to_value(part).map_err(|e| format!("{name}: {e}"))?;
    check_tree(name, &value)
}

/// Times that may lie below 0: differences of clocks, what begins or is measured across them, and
/// places on an axis whose origin is a message or the begin of a round.
const SIGNED: [&str; 24] = [
    "above_ns",
    "anchor_ns",
    "from_ns",
    "full_ns",
    "ptp_offset_ns",
    "stages_ns",
    "times_ns",
    "to_ns",
    "traced_from_ns",
    "started_ns",
    "offset_ns",
    "true_offset_ns",
    "pending_ns",
    "least_ns",
    "most_ns",
    "late_ns",
    "quantiles_ns",
    "best_ns",
    "slow_ns",
    "start_ns",
    "total_ns",
    "probe_ns",
    "untraced_p50_ns",
    "on_cpu_ns",
];

/// Units in which nothing is below 0, at the ends of names.
const UNSIGNED: [&str; 6] = ["_ns", "_bytes", "_hz", "_us", "_s", "load_average"];

/// Numbers without a largest one: the end of an interval over two rounds that differ by much is a
/// power of their ratio, and a warning's magnitude may be such a ratio.
const UNBOUNDED: [&str; 3] = ["low", "high", "magnitude"];

fn check_tree(name: &str, value: &Json) -> Result<(), String> {
    match value {
        Json::Array(all) => all.iter().try_for_each(|one| check_tree(name, one)),
        Json::Object(all) => all.iter().try_for_each(|(name, one)| check_tree(name, one)),
        Json::Number(number) => {
            let has_unit = UNSIGNED
                .iter()
                .any(|unit| name.ends_with(unit) || name == unit.trim_start_matches('_'));
            // Sums over all CPUs in ns, and limits in bytes, grow beyond any count.
            if let Some(count) = number.as_u64().filter(|_| !has_unit) {
                let fits = count <= LARGEST_COUNT;
                ensure!(fits, "{name} is {count}, expected at most {LARGEST_COUNT}");
            }
            let number = number.as_f64().unwrap_or(f64::NAN);
            let fits = number.abs() <= LARGEST || UNBOUNDED.contains(&name);
            ensure!(fits, "{name} is {number:e}, expected at most {LARGEST:e}");
            let may_be_below = !has_unit || SIGNED.contains(&name);
            ensure!(may_be_below || number >= 0.0, "{name} is {number}, expected 0 or more");
            Ok(())
        }
        _ => Ok(()),
    }
}
