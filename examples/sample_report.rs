//! Writes the HTML report of a made-up record, to look at and for `tests/web`.
//!
//! `cargo run --release --example sample_report -- OUT.html [survey|sweep|study|hostile] [SAMPLES]`
//!
//! The samples are seeded draws, not measurements. `hostile` has text in every field that would run
//! as a script if it were not escaped, an incomplete run and lost messages.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::convert::Infallible;
use wiregauge::host::Environment;
use wiregauge::plan::study::{Graph, GraphKind, Point, Reference, Series, Spread};
use wiregauge::plan::*;
use wiregauge::record::schema::*;
use wiregauge::report::html;
use wiregauge::sample::{Flags, RoundSamples, Sample};
use wiregauge::stats::{
    Interval, Metric, Quantile, Rate, RateMetric, RoundSummary, Summary, Value,
};
use wiregauge::transport::TransportKind;
use wiregauge::units::{Bytes, Span};

const ROUNDS: u32 = 5;
const WARMUP: u64 = 100;
const QUANTILES: [f64; 6] = [0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let out = args.next().expect("usage: sample_report OUT.html KIND [SAMPLES]");
    let kind = args.next().unwrap_or_else(|| "survey".to_owned());
    let total: u64 = args.next().map_or(1_000_000, |n| n.parse().expect("a number of samples"));
    if kind == "clocks" {
        return write(&out, &clocks(), Vec::new());
    }
    let (name, cases) = match kind.as_str() {
        "sweep" => ("latency", sweep_cases()),
        "study" => ("run", sweep_cases()),
        "hostile" => ("survey", survey_cases().into_iter().take(4).collect()),
        _ => ("survey", survey_cases()),
    };
    let mut record = record(name, cases);
    record.plan.study = (kind == "study").then(|| study(&record.plan.cases));
    let latencies = record.runs.iter().filter(|r| r.case.pattern == Pattern::Latency).count();
    let per_round = total / latencies as u64 / u64::from(ROUNDS);
    let mut samples = Vec::new();
    for run in &mut record.runs {
        let n = if kind == "hostile" && run.index == 0 { 60 } else { per_round };
        samples.extend(measure(run, n, kind == "hostile"));
    }
    if kind == "hostile" {
        make_hostile(&mut record);
    }
    write(&out, &record, samples)
}

fn write(out: &str, record: &Record, samples: Vec<RoundSamples>) -> std::io::Result<()> {
    let started = std::time::Instant::now();
    let page = html::render(record, samples.into_iter().map(Ok::<_, Infallible>));
    println!("rendered {} B in {:.0?}", page.len(), started.elapsed());
    std::fs::write(out, page)?;
    std::fs::write(format!("{out}.json"), serde_json::to_string(record)?)
}

/// The clocks of two other hosts over 100 s.
fn clocks() -> Record {
    let history = |(host, ppm): (u32, f64)| {
        let point = |number: u32| {
            let after_s = f64::from(number) / 2.0;
            let offset_ns = 3e9 + 1e3 * ppm * after_s + 200.0 * (after_s / 9.0).sin();
            let (bound_ns, drift_bound_ppm) = (600.0 + 300.0 * (after_s / 5.0).cos(), 0.01);
            let drift_ppm = ppm;
            let true_offset_ns = None;
            ClockPoint { after_s, offset_ns, bound_ns, drift_ppm, drift_bound_ppm, true_offset_ns }
        };
        let known = (1..=10).map(|tenth| {
            let drift_bound_ppm = 1.0 / f64::from(tenth);
            let clock = ClockOffset { drift_ppm: ppm, drift_bound_ppm, ..Default::default() };
            ClockKnown { after_s: 10.0 * f64::from(tenth), clock, ..Default::default() }
        });
        let (known, points) = (known.collect(), (0..=200).map(point).collect());
        ClockHistory { host, known, points, ..Default::default() }
    };
    let clocks = [(0, 12.5), (1, -3.0)].map(history).to_vec();
    let host = |name: &str| OtherHost { name: name.into(), ..Default::default() };
    let hosts = ["node07", "node<08>"].map(host).to_vec();
    Record { clocks, hosts, ..record("clocks", Vec::new()) }
}

fn survey_cases() -> Vec<Case> {
    use TransportKind::{Shm, Tcp, Udp, Unix};
    let mut cases = Vec::new();
    for (transport, wait) in
        [(Shm, Wait::Busy), (Unix, Wait::Busy), (Udp, Wait::Busy), (Tcp, Wait::Busy)]
            .into_iter()
            .chain([(Unix, Wait::Block), (Tcp, Wait::Block)])
    {
        cases.push(case(Pattern::Latency, transport, wait, 64));
        cases.push(case(Pattern::Bandwidth, transport, wait, 64));
        cases.push(case(Pattern::Bandwidth, transport, wait, 65536));
    }
    cases
}

fn sweep_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in [TransportKind::Shm, TransportKind::Tcp] {
        for size in [8, 64, 1024, 16384, 131_072] {
            cases.push(case(Pattern::Latency, transport, Wait::Busy, size));
        }
        for size in [64, 1024, 16384, 131_072, 1 << 20] {
            cases.push(case(Pattern::Bandwidth, transport, Wait::Busy, size));
        }
    }
    cases
}

/// A study of the sweep with figures that nobody has published.
fn study(cases: &[Case]) -> Study {
    let of = |pattern: Pattern, transport: TransportKind| {
        let fits = |case: &Case| case.pattern == pattern && case.transport == transport;
        let numbers = (0_u32..).zip(cases).filter(|(_, case)| fits(case));
        numbers.map(|(number, _)| number).collect::<Vec<u32>>()
    };
    let series = |name: &str, pattern, transport| Series {
        name: name.to_owned(),
        cases: of(pattern, transport),
    };
    let reference = |beside: Option<&str>, points: &[(Option<u64>, f64)]| Reference {
        name: format!("Nobody 1900, {}", beside.unwrap_or("limit")),
        source: "N. Nobody, A made-up book, 1900".to_owned(),
        system: "two made-up hosts".to_owned(),
        beside: beside.map(String::from),
        points: points
            .iter()
            .map(|(s, value)| Point { size: s.map(Bytes), value: *value })
            .collect(),
        notes: vec!["Not one of these figures was measured.".to_owned()],
    };
    let graph = |title: &str, kind, metric: &str, series: [&str; 2], references| Graph {
        title: title.to_owned(),
        kind,
        metric: metric.to_owned(),
        quantile: 0.5,
        spread: Spread::Deciles,
        size: (kind != GraphKind::AgainstSize).then_some(Bytes(64)),
        series: series.map(String::from).to_vec(),
        references,
        notes: Vec::new(),
    };
    let tcp = |size: Option<u64>| reference(Some("tcp"), &[(size, 2_600.0), (Some(1024), 3_000.0)]);
    let shm = || reference(Some("shm"), &[(Some(64), 140.0), (Some(16384), 900.0)]);
    let (both, stream) = (["shm", "tcp"], ["shm stream", "tcp stream"]);
    let limit = vec![reference(None, &[(None, 6.8e9)])];
    let mut against =
        graph("Against size", GraphKind::AgainstSize, "half_rtt", both, vec![tcp(Some(8)), shm()]);
    against.notes.push("Nobody 1900, table 2 is not drawn: nothing is known of it".to_owned());
    Study {
        name: "nobody/made-up".to_owned(),
        title: "What was never measured?".to_owned(),
        source: Some("N. Nobody, A made-up book, 1900".to_owned()),
        quick: false,
        series: vec![
            series("shm", Pattern::Latency, TransportKind::Shm),
            series("tcp", Pattern::Latency, TransportKind::Tcp),
            series("shm stream", Pattern::Bandwidth, TransportKind::Shm),
            series("tcp stream", Pattern::Bandwidth, TransportKind::Tcp),
        ],
        graphs: vec![
            against,
            graph("Bars", GraphKind::Bars, "half_rtt", both, vec![tcp(Some(64)), shm()]),
            graph("Cumulative", GraphKind::Cdf, "half_rtt", both, vec![tcp(Some(64))]),
            graph("Histogram", GraphKind::Histogram, "half_rtt", both, vec![tcp(Some(64))]),
            graph("Bandwidth", GraphKind::AgainstSize, "bandwidth", stream, limit),
        ],
    }
}

fn case(pattern: Pattern, transport: TransportKind, wait: Wait, size: u64) -> Case {
    Case {
        pattern,
        transport,
        wait,
        threads: 1,
        size: Bytes(size),
        bound: Bound { count: None, time: Some(Span(200_000_000)) },
        warmup: WARMUP,
        pause: Span(0),
        burst: 1,
        window: 64,
        direction: Direction::Uni,
        schedule: Schedule::ClosedLoop,
        trace: None,
        timer: TimerKind::Busy,
        load: Load::default(),
        stream: None,
        rpc: None,
        check: false,
        loss_after: Span(1_000_000_000),
        timeout: Span(5_000_000_000),
        options: Options::default(),
        seed: size,
        ends: Default::default(),
    }
}

/// Median, spread (of the logarithm) and share of slow ones of a made-up transport.
fn behaviour(case: &Case) -> (f64, f64, f64) {
    let (base, per_byte) = match case.transport {
        TransportKind::Shm => (96.0, 0.04),
        TransportKind::Unix => (1_310.0, 0.06),
        TransportKind::Udp => (2_480.0, 0.11),
        _ => (3_150.0, 0.09),
    };
    let wake = if case.wait == Wait::Block { 4_200.0 } else { 0.0 };
    (base + wake + per_byte * case.size.0 as f64, 0.045, 0.006)
}

fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v) = (1.0 - uniform(rng), uniform(rng));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Draws the rounds of a run and fills in its figures.
fn measure(run: &mut Run, per_round: u64, lossy: bool) -> Vec<RoundSamples> {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(run.index) + 7);
    if run.case.pattern == Pattern::Bandwidth {
        run.rates = rates(&run.case, &mut rng);
        return Vec::new();
    }
    let lossy = lossy && run.index == 3;
    let rounds: Vec<_> = (0..ROUNDS).map(|r| draw(run, r, per_round, lossy, &mut rng)).collect();
    let half: Vec<Vec<f64>> = rounds.iter().map(|r| latencies(r, 0.5)).collect();
    let full: Vec<Vec<f64>> = rounds.iter().map(|r| latencies(r, 1.0)).collect();
    for (metric, values) in [(Metric::HalfRtt, half), (Metric::Rtt, full)] {
        let summary = summarise(&values);
        run.counts.lost = summary.lost;
        run.counts.received = summary.count - summary.lost;
        run.figures.push(Figure { metric, unit: "ns".to_owned(), summary, clock_bound_ns: None });
    }
    run.counts.warmup = WARMUP * u64::from(ROUNDS);
    run.counts.sent = run.counts.received + run.counts.lost + run.counts.warmup;
    rounds
}

fn draw(run: &Run, round: u32, n: u64, lossy: bool, rng: &mut ChaCha8Rng) -> RoundSamples {
    let (median, sd, slow) = behaviour(&run.case);
    let shift = 1.0 + 0.012 * normal(rng);
    let mut now = f64::from(run.index) * 1e9 + f64::from(round) * 40e9;
    let stall = if run.case.transport == TransportKind::Tcp { n / 3 } else { u64::MAX };
    let mut samples = Vec::new();
    for i in 0..n + WARMUP {
        let drift = 1.0 + 0.04 * (i as f64 / n as f64) * f64::from(u32::from(round == 3));
        let mut half = median * shift * drift * (sd * normal(rng)).exp();
        if uniform(rng) < slow {
            half *= 1.0 + 0.4 * (1.0 - uniform(rng)).powf(-0.55);
        }
        if i < WARMUP {
            half *= 6.0;
        }
        if round == 1 && stall.checked_add(WARMUP) == Some(i) {
            half = 5e6;
        }
        let lost = lossy && i > WARMUP && uniform(rng) < 0.002;
        let submit = now;
        now += if lost { 1e6 } else { 2.0 * half + 35.0 };
        let mut flags = Flags(if i < WARMUP { Flags::WARMUP.0 } else { 0 });
        if lost {
            flags = flags.with(Flags::LOST);
        }
        samples.push(Sample {
            thread: 0,
            sequence: i,
            size: run.case.size.0 as u32,
            intended_ns: f64::NAN,
            submit_ns: submit,
            send_ns: f64::NAN,
            receive_ns: if lost { f64::NAN } else { submit + 2.0 * half },
            complete_ns: f64::NAN,
            flags,
        });
    }
    RoundSamples { run: run.index, round, samples }
}

fn latencies(round: &RoundSamples, scale: f64) -> Vec<f64> {
    let kept = round.samples.iter().filter(|s| !s.flags.has(Flags::WARMUP));
    kept.map(|s| match s.flags.has(Flags::LOST) {
        true => f64::INFINITY,
        false => (s.receive_ns - s.submit_ns) * scale,
    })
    .collect()
}

fn quantile(sorted: &[f64], p: f64) -> Quantile {
    let n = sorted.len() as f64;
    let rank = |x: f64| Value(sorted[(x.ceil().max(1.0).min(n) - 1.0) as usize]);
    let effective = n / 3.0;
    let enough = n >= 10.0 / (1.0 - p).min(p);
    let half = 1.96 * n * (p * (1.0 - p) / effective).sqrt();
    let low = rank(p * n - half);
    let beyond = p * n + half > n;
    let high = if beyond { Value(f64::INFINITY) } else { rank(p * n + half) };
    let interval = enough.then_some(Interval { low, high });
    Quantile {
        p,
        value: enough.then(|| rank(p * n)),
        interval,
        within: interval,
        between: None,
        effective_n: effective,
    }
}

fn summarise(rounds: &[Vec<f64>]) -> Summary {
    let mut all: Vec<f64> = rounds.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let finite: Vec<f64> = all.iter().copied().filter(|v| v.is_finite()).collect();
    let mean = finite.iter().sum::<f64>() / finite.len() as f64;
    let square: f64 = finite.iter().map(|v| (v - mean).powi(2)).sum();
    let of_round = |r: &Vec<f64>| {
        let mut sorted = r.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        RoundSummary {
            count: sorted.len() as u64,
            quantiles: QUANTILES.iter().map(|p| quantile(&sorted, *p).value).collect(),
            min: Value(sorted[0]),
            max: Value(sorted[sorted.len() - 1]),
        }
    };
    Summary {
        count: all.len() as u64,
        lost: (all.len() - finite.len()) as u64,
        min: Value(all[0]),
        max: Value(all[all.len() - 1]),
        max_finite: Value(finite[finite.len() - 1]),
        mean,
        sd: (square / (finite.len() as f64 - 1.0)).sqrt(),
        quantiles: QUANTILES.iter().map(|p| quantile(&all, *p)).collect(),
        threshold: 100_000.0,
        above_threshold: all.iter().filter(|v| **v > 100_000.0).count() as u64,
        rounds: rounds.iter().map(of_round).collect(),
        sd_between: None,
        iqr_within: 0.0,
    }
}

fn rates(case: &Case, rng: &mut ChaCha8Rng) -> Vec<RateFigure> {
    let (median, ..) = behaviour(case);
    let rounds: Vec<f64> =
        (0..ROUNDS).map(|_| 3.1e9 / median * (1.0 + 0.02 * normal(rng))).collect();
    let figure = |metric, unit: &str, scale: f64| {
        let rounds: Vec<f64> = rounds.iter().map(|r| r * scale).collect();
        let value = ROUNDS as f64 / rounds.iter().map(|r| 1.0 / r).sum::<f64>();
        let sd = rounds.iter().map(|r| (r - value).powi(2)).sum::<f64>() / 4.0;
        let half = 2.776 * (sd / 5.0).sqrt();
        let interval = Interval { low: Value(value - half), high: Value(value + half) };
        let rate = Rate { value, interval: Some(interval), rounds };
        RateFigure { metric, unit: unit.to_owned(), rate }
    };
    vec![
        figure(RateMetric::Bandwidth, "B/s", case.size.0 as f64),
        figure(RateMetric::MessageRate, "msg/s", 1.0),
    ]
}

fn run(index: usize, case: Case) -> Run {
    let word = |v: serde_json::Value| v.as_str().unwrap_or_default().to_owned();
    let transport = word(serde_json::to_value(case.transport).unwrap());
    let wait = word(serde_json::to_value(case.wait).unwrap());
    let pattern = word(serde_json::to_value(case.pattern).unwrap());
    let mut doubts = Vec::new();
    if case.wait == Wait::Block {
        let text = "The governor of CPU 2 is powersave: wake-ups include the rise of its clock.";
        doubts.push(Doubt { kind: "governor".to_owned(), text: text.to_owned() });
    }
    Run {
        index: index as u32,
        label: format!("{transport} {wait} {} B {pattern}", case.size.0),
        complete: true,
        stopped: "the intervals of p50 and p99 are within 2 %".to_owned(),
        rounds: (0..ROUNDS)
            .map(|i| Round { index: i, ended: "time".to_owned(), stride: 1, ..Round::default() })
            .collect(),
        figures: Vec::new(),
        rates: Vec::new(),
        lengths: None,
        counts: Counts::default(),
        included: BTreeMap::from([("payload checked".to_owned(), "no".to_owned())]),
        doubts,
        case,
    }
}

#[allow(clippy::needless_update)] // The example need not know what else an environment holds.
fn environment() -> Environment {
    Environment { host: "example (made-up data)".to_owned(), ..Environment::default() }
}

fn record(name: &str, cases: Vec<Case>) -> Record {
    Record {
        hosts: Vec::new(),
        pairs: None,
        clocks: Vec::new(),
        schema: SCHEMA.to_owned(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        command: vec!["wiregauge".to_owned(), name.to_owned(), "--time".into(), "200ms".into()],
        started: "2026-01-02T03:04:05Z".to_owned(),
        finished: "2026-01-02T03:05:11Z".to_owned(),
        complete: true,
        faults: Vec::new(),
        plan: Plan {
            search: load::Search::default(),
            name: name.to_owned(),
            cases: cases.clone(),
            rounds: Rounds { least: 5, most: 15, until: Some(0.02) },
            hosts: Vec::new(),
            pairs: None,
            at_once: Vec::new(),
            cpus: vec![CpuPair { client: 2, server: 3 }],
            untrue_clock: None,
            seed: 11,
            threshold: Span(100_000),
            study: None,
        },
        environment: environment(),
        clock: ClockReport {
            source: "tsc".to_owned(),
            reason: "the TSC is invariant and synchronised".to_owned(),
            frequency_hz: 2.4e9,
            baseline_ns: 2e9,
            residual_ppb: 40.0,
            reading_cost_ns: 9.6,
            resolution_ns: 0.42,
            fences: "lfence before and after rdtsc".to_owned(),
        },
        instrument: Instrument {
            floor_p50_ns: 19.6,
            floor_p99_ns: 20.4,
            count: 1_000_000,
            error_ns: 21.3,
            recording_ns: 1.2,
        },
        noise: [2, 3].map(noise).to_vec(),
        runs: cases.into_iter().enumerate().map(|(i, c)| run(i, c)).collect(),
        unavailable: vec![Unavailable {
            transport: "verbs".to_owned(),
            reason: "libibverbs.so.1 is not installed (package libibverbs1)".to_owned(),
        }],
        doubts: vec![Doubt {
            kind: "not_isolated".to_owned(),
            text: "CPUs 2 and 3 are not isolated: other threads may run there and lengthen the \
                   tail."
                .to_owned(),
        }],
    }
}

fn noise(cpu: u32) -> Noise {
    let counts = [4120, 910, 233, 61, 12, 3, 0, 1];
    let counts = counts.map(|n: u64| n * u64::from(cpu));
    Noise {
        cpu,
        observed_ns: 5e9,
        gap_threshold_ns: 500.0,
        gaps: counts.iter().sum(),
        lost_ns: 7.3e6,
        longest_ns: 81_300.0,
        histogram: counts
            .iter()
            .enumerate()
            .map(|(i, n)| (512.0 * f64::from(1 << i), *n))
            .collect(),
    }
}

/// Text that must stay text, wherever a record has text.
fn make_hostile(record: &mut Record) {
    let evil = "</script><img src=x onerror=\"document.title='broken'\"><!-- ' \" & \u{202e}";
    record.complete = false;
    record.faults = vec![format!("Round 3 of run 2 stalled for 5 s. {evil}")];
    record.environment.host = evil.to_owned();
    record.command.push(evil.to_owned());
    record.started = evil.to_owned();
    record.tool = evil.to_owned();
    record.clock.source = evil.to_owned();
    record.unavailable.push(Unavailable { transport: evil.into(), reason: evil.into() });
    record.doubts.push(Doubt { kind: evil.into(), text: evil.into() });
    for run in &mut record.runs {
        run.label = format!("{} {evil}", run.label);
        run.stopped = evil.to_owned();
        run.complete = run.index != 1;
        run.included.insert(evil.to_owned(), evil.to_owned());
        run.doubts.push(Doubt { kind: evil.into(), text: evil.into() });
    }
}
