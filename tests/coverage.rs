//! How often the printed 95 % intervals enclose the truth, for rounds whose truth is known. The
//! table stands in METHOD.md: `UPDATE_DOCS=1 cargo test --test coverage` writes it again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Bernoulli, Distribution, Exp1, Normal, StandardNormal};
use statrs::distribution::{ContinuousCDF, Normal as NormalLaw};
use std::fmt::Write;
use std::path::PathBuf;
use wiregauge::stats::rate::{Delivered, rate};
use wiregauge::stats::{Interval, summarize};

const SAMPLES: usize = 2000;
const TRIALS: u64 = 250;
const ROUNDS: [usize; 3] = [5, 6, 10];
const QUANTILES: [f64; 2] = [0.5, 0.99];
const BEGIN: &str = "<!-- coverage -->\n";
const END: &str = "<!-- /coverage -->";

/// Rounds of a kind.
struct Input {
    name: &'static str,
    /// The samples of one round.
    round: fn(&mut ChaCha8Rng) -> Vec<f64>,
    /// The share of all samples of all rounds that exceed a value.
    exceeds: fn(f64) -> f64,
    /// The least coverage in per cent, for 5, 6 and 10 rounds: of p50, and of p99.
    least: [[u32; 3]; 2],
}

fn exponential(chance: &mut ChaCha8Rng, scale: f64) -> Vec<f64> {
    Exp1.sample_iter(chance).take(SAMPLES).map(|x: f64| scale * x).collect()
}

fn is(chance: &mut ChaCha8Rng, probability: f64) -> bool {
    Bernoulli::new(probability).unwrap().sample(chance)
}

/// The exponential of a Gaussian autoregression.
fn correlated(chance: &mut ChaCha8Rng, phi: f64) -> Vec<f64> {
    let mut noise = StandardNormal.sample_iter(chance);
    let mut state: f64 = noise.next().unwrap();
    let rest = (1.0 - phi * phi).sqrt();
    let step = |noise: f64| {
        let now = state;
        state = phi * state + rest * noise;
        now.exp()
    };
    noise.take(SAMPLES).map(step).collect()
}

fn log_normal_exceeds(x: f64) -> f64 {
    NormalLaw::standard().sf(x.max(f64::MIN_POSITIVE).ln())
}

/// The mean over levels that are normal with 5 %.
fn over_levels(exceeds: impl Fn(f64) -> f64) -> f64 {
    let steps: Vec<f64> = (0..=400).map(|step| f64::from(step) / 50.0 - 4.0).collect();
    let weight = |z: f64| (-z * z / 2.0).exp();
    let all: f64 = steps.iter().map(|z| weight(*z)).sum();
    steps.iter().map(|z| weight(*z) / all * exceeds(1.0 + 0.05 * z)).sum()
}

const INPUTS: [Input; 7] = [
    Input {
        name: "independent, exponential",
        round: |chance| exponential(chance, 1.0),
        exceeds: |x| (-x).exp(),
        least: [[93; 3], [93; 3]],
    },
    Input {
        name: "independent, Pareto of shape 1.5",
        round: |chance| exponential(chance, 1.0 / 1.5).into_iter().map(f64::exp).collect(),
        exceeds: |x| x.max(1.0).powf(-1.5),
        least: [[93; 3], [93; 3]],
    },
    Input {
        name: "AR(1), 0.9",
        round: |chance| correlated(chance, 0.9),
        exceeds: log_normal_exceeds,
        least: [[93; 3], [93; 3]],
    },
    Input {
        name: "AR(1), 0.99",
        round: |chance| correlated(chance, 0.99),
        exceeds: log_normal_exceeds,
        least: [[93; 3], [93; 3]],
    },
    Input {
        name: "each round has its level, sd 5 %",
        round: |chance| {
            let level = Normal::new(1.0, 0.05).unwrap().sample(chance);
            exponential(chance, level)
        },
        exceeds: |x| over_levels(|level| (-x / level).exp()),
        least: [[93; 3], [93; 3]],
    },
    Input {
        name: "30 % of the rounds are 1.3 times slower",
        round: |chance| {
            let level = if is(chance, 0.3) { 1.3 } else { 1.0 };
            exponential(chance, level)
        },
        exceeds: |x| 0.7 * (-x).exp() + 0.3 * (-x / 1.3).exp(),
        // In 5 rounds there is none of the slow ones with 0.7^5 = 17 %, in 6 with 12 %.
        least: [[83, 88, 93]; 2],
    },
    Input {
        name: "half of the rounds have 2 % messages 10 times slower",
        round: |chance| {
            let share = if is(chance, 0.5) { 0.02 } else { 0.0 };
            let mut round = exponential(chance, 1.0);
            round.iter_mut().for_each(|x| *x *= if is(chance, share) { 10.0 } else { 1.0 });
            round
        },
        exceeds: |x| 0.99 * (-x).exp() + 0.01 * (-x / 10.0).exp(),
        least: [[93; 3], [93; 3]],
    },
];

/// The value that a share of 1-p exceeds.
fn truth(exceeds: fn(f64) -> f64, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if exceeds(middle) > 1.0 - p { low = middle } else { high = middle }
    }
    low
}

fn encloses(interval: Option<Interval>, x: f64) -> bool {
    interval.is_some_and(|i| i.low.0 <= x && x <= i.high.0)
}

/// Coverage in per cent of p50 and of p99.
fn coverage(input: &Input, rounds: usize) -> [u32; 2] {
    let truths = QUANTILES.map(|p| truth(input.exceeds, p));
    let mut hits = [0; 2];
    for seed in 0..TRIALS {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let all: Vec<Vec<f64>> = (0..rounds).map(|_| (input.round)(&mut chance)).collect();
        let summary = summarize(&all, 1.0);
        for ((hit, p), truth) in hits.iter_mut().zip(QUANTILES).zip(truths) {
            let interval = summary.quantile(p).unwrap().interval;
            *hit += u64::from(encloses(interval, truth));
            let largest = summary.max.0;
            assert!(interval.is_some_and(|i| i.low.0 >= 0.0 || !i.low.0.is_finite()), "{p}");
            assert!(interval.is_some_and(|i| i.high.0 <= largest || !i.high.0.is_finite()), "{p}");
        }
    }
    hits.map(|hits| (100 * hits / TRIALS) as u32)
}

/// Coverage in per cent of rates of rounds of about a second.
fn rate_coverage(of_round: fn(&mut ChaCha8Rng) -> f64, mean: f64, rounds: usize) -> u32 {
    let hits = (0..4 * TRIALS).filter(|seed| {
        let mut chance = ChaCha8Rng::seed_from_u64(*seed);
        let lengths = Normal::new(1.0, 0.05).unwrap();
        let one = |_| {
            let seconds: f64 = lengths.sample(&mut chance);
            Delivered { work: of_round(&mut chance) * seconds, seconds }
        };
        let all: Vec<Delivered> = (0..rounds).map(one).collect();
        let found = rate(&all);
        assert!(found.interval.is_some_and(|i| i.low.0 >= 0.0));
        encloses(found.interval, mean)
    });
    (100 * hits.count() as u64 / (4 * TRIALS)) as u32
}

type RateInput = (&'static str, fn(&mut ChaCha8Rng) -> f64, f64, [u32; 3]);

const RATES: [RateInput; 3] = [
    ("rates: normal, sd 5 %", |c| Normal::new(1.0, 0.05).unwrap().sample(c), 1.0, [93; 3]),
    ("rates: exponential", |c| Exp1.sample(c), 1.0, [88, 90, 93]),
    (
        "rates: 30 % of the rounds at 0.77",
        |c| if is(c, 0.3) { 0.77 } else { 1.0 },
        0.7 + 0.3 * 0.77,
        [80, 86, 93],
    ),
];

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("METHOD.md")
}

#[test]
fn intervals_cover_what_the_method_says() {
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = INPUTS
            .iter()
            .map(|input| scope.spawn(|| ROUNDS.map(|rounds| coverage(input, rounds))))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut table = String::from(
        "| rounds of 2000 samples | 5 rounds: p50, p99 | 6 rounds | 10 rounds |\n\
         |---|---|---|---|\n",
    );
    let mut short = Vec::new();
    for (input, shares) in INPUTS.iter().zip(found) {
        let cells = shares.map(|[p50, p99]| format!(" {p50}, {p99} |")).concat();
        writeln!(table, "| {} |{cells}", input.name).unwrap();
        for (number, share) in shares.iter().enumerate() {
            let is_short = (0..2).any(|which| share[which] < input.least[which][number]);
            short
                .extend(is_short.then(|| format!("{}, {}: {share:?}", input.name, ROUNDS[number])));
        }
    }
    for (name, of_round, mean, least) in RATES {
        let shares = ROUNDS.map(|rounds| rate_coverage(of_round, mean, rounds));
        let cells = shares.map(|share| format!(" {share} |")).concat();
        writeln!(table, "| {name} |{cells}").unwrap();
        let is_short = shares.iter().zip(least).any(|(share, least)| *share < least);
        short.extend(is_short.then(|| format!("{name}: {shares:?}")));
    }
    assert!(short.is_empty(), "{short:#?}\n{table}");
    let text = std::fs::read_to_string(document()).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (stands, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(document(), [before, BEGIN, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(stands, table, "UPDATE_DOCS=1 cargo test --test coverage writes it again");
    }
}
