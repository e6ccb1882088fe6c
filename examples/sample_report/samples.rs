//! Seeded draws of latencies and rates, and their figures.

use crate::{ROUNDS, WARMUP};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use wiregauge::plan::Wait;
use wiregauge::record::schema::{CaseRecord, Figure, RateFigure, Run};
use wiregauge::sample::{Flags, RoundSamples, Sample};
use wiregauge::stats::rate::{Delivered, rate};
use wiregauge::stats::{Metric, RateMetric, Summary};
use wiregauge::transport::TransportKind;

/// Median, spread (of the logarithm) and share of slow ones of a made-up transport.
fn behaviour(case: &CaseRecord) -> (f64, f64, f64) {
    let (base, per_byte) = match case.transport {
        TransportKind::Shm => (96.0, 0.04),
        TransportKind::Unix => (1_310.0, 0.06),
        TransportKind::Udp => (2_480.0, 0.11),
        _ => (3_150.0, 0.09),
    };
    let wake = if case.wait == Wait::Block { 4_200.0 } else { 0.0 };
    (base + wake + per_byte * case.size.0 as f64, 0.045, 0.006)
}

pub fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v) = (1.0 - uniform(rng), uniform(rng));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Draws the rounds of a run and fills in its figures. `slower` multiplies its median.
pub fn measure(run: &mut Run, per_round: u64, lossy: bool, slower: f64) -> Vec<RoundSamples> {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(run.index) + 7);
    if run.case.pattern == "bandwidth" {
        run.rates = rates(&run.case, &mut rng);
        return Vec::new();
    }
    let lossy = lossy && run.index == 3;
    let rounds: Vec<_> =
        (0..ROUNDS).map(|r| draw(run, r, per_round, lossy, slower, &mut rng)).collect();
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

fn draw(
    run: &Run,
    round: u32,
    n: u64,
    lossy: bool,
    slower: f64,
    rng: &mut ChaCha8Rng,
) -> RoundSamples {
    let (median, sd, slow) = behaviour(&run.case);
    let shift = slower + 0.012 * normal(rng);
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

pub fn summarise(rounds: &[Vec<f64>]) -> Summary {
    wiregauge::stats::summarize(rounds, 100_000.0)
}

fn rates(case: &CaseRecord, rng: &mut ChaCha8Rng) -> Vec<RateFigure> {
    let (median, ..) = behaviour(case);
    let rounds: Vec<f64> =
        (0..ROUNDS).map(|_| 3.1e9 / median * (1.0 + 0.02 * normal(rng))).collect();
    let figure = |metric, unit: &str, scale: f64| {
        let delivered = rounds.iter().map(|r| Delivered { work: r * scale, seconds: 1.0 });
        let rate = rate(&delivered.collect::<Vec<_>>());
        RateFigure { metric, unit: unit.to_owned(), rate }
    };
    vec![
        figure(RateMetric::Bandwidth, "B/s", case.size.0 as f64),
        figure(RateMetric::MessageRate, "msg/s", 1.0),
    ]
}
