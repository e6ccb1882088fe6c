//! How long the figures of 10^7 raw samples take on one core, and how much memory: the budget is
//! 1 s and twice the samples. `cargo bench --bench stats` prints one JSON object; it judges
//! nothing, since machines differ.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;
use wiregauge::sample::histogram::{self, LiveHistogram};
use wiregauge::stats::{Metric, stationarity, summarize, summarize_live};

const ROUNDS: u64 = 5;
const SAMPLES_OF_ROUND: usize = 2_000_000;

/// Correlated delays around 10 us in the steps of a 3 GHz counter, some stalls among them.
fn series(seed: u64) -> Vec<f64> {
    let mut noise = StandardNormal.sample_iter(ChaCha8Rng::seed_from_u64(seed));
    let mut state = 0.0_f64;
    let mut draw = || -> f64 { noise.next().unwrap_or(0.0) };
    (0..SAMPLES_OF_ROUND)
        .map(|i| {
            state = 0.9 * state + 0.43589 * draw();
            let stall = if i % 100_003 == 0 { 1e6 } else { 0.0 };
            ((10_000.0 * (0.1 * state).exp() + stall) * 3.0).round() / 3.0
        })
        .collect()
}

/// The largest memory that this process has had resident, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn main() {
    let rounds: Vec<Vec<f64>> = (0..ROUNDS).map(series).collect();
    let samples_kib = ROUNDS * SAMPLES_OF_ROUND as u64 * 8 / 1024;
    let before = peak_kib();
    let start = Instant::now();
    let summary = summarize(&rounds, 20_000.0);
    let summary_s = start.elapsed().as_secs_f64();
    let extra = (peak_kib() - before) as f64 / samples_kib as f64;

    let start = Instant::now();
    let drift = stationarity::drift(Metric::Rtt, &rounds, rounds.len());
    let drift_s = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let histograms: Result<Vec<LiveHistogram>, _> = rounds
        .iter()
        .map(|r| {
            let mut h = LiveHistogram::new(histogram::DEFAULT_UNIT_NS)?;
            r.iter().for_each(|x| h.record_ns(*x));
            Ok::<_, histogram::HistogramError>(h)
        })
        .collect();
    let record_ns = start.elapsed().as_secs_f64() * 1e9 / summary.count as f64;
    let start = Instant::now();
    let live = histograms.map(|h| summarize_live(&h, &rounds[..1], 20_000.0)).ok();
    let live_s = start.elapsed().as_secs_f64();

    let report = serde_json::json!({
        "samples": summary.count,
        "summarize_s": summary_s,
        "extra_memory_over_samples": extra,
        "drift_s": drift_s,
        "drifts": drift.is_some(),
        "histogram_record_ns": record_ns,
        "summarize_live_s": live_s,
        "quantiles": summary.quantiles,
        "quantiles_live": live.map(|l| l.quantiles),
    });
    println!("{report}");
}
