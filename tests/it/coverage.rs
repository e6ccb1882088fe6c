//! How often the printed 95 % intervals enclose the truth, for rounds whose truth is known. The
//! tables stand in METHOD.md: `UPDATE_DOCS=1 cargo test --test it coverage::` writes them again.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Bernoulli, Distribution, Exp1, Normal, StandardNormal};
use statrs::distribution::{ContinuousCDF, Normal as NormalLaw};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use wiregauge::stats::rate::{Delivered, rate, rounds_needed};
use wiregauge::stats::{Interval, Summary, summarize};

const SAMPLES: usize = 2000;
const TRIALS: u64 = 250;
const ROUNDS: [usize; 3] = [5, 6, 10];
const QUANTILES: [f64; 2] = [0.5, 0.99];

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
        // No round of 5 is slow with probability 0.7^5 = 17 %, of 6 with 12 %.
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

/// The width that `--until` is given, and the fewest and the most rounds that it measures.
const WIDTH: f64 = 0.05;
const UNTIL_ROUNDS: [usize; 2] = [6, 30];
/// Of [`INPUTS`]: independent, levels of the rounds, slow rounds; and the least coverage of p50 and
/// of p99. A run whose first 6 rounds have no slow one (12 %) measures no more of them.
const UNTIL: [(usize, [u32; 2]); 3] = [(0, [93, 93]), (4, [93, 93]), (5, [85, 85])];
const UNTIL_TRIALS: u64 = 150;

/// What `--until` gives.
#[derive(Default)]
struct Until {
    /// Runs whose interval encloses p50, and p99.
    hits: [u64; 2],
    /// Runs whose intervals both reach no further than was asked.
    narrow: u64,
    rounds: u64,
}

/// How far the wider of the two intervals reaches.
fn reach(summary: &Summary) -> f64 {
    let reaches = QUANTILES.map(|p| {
        let quantile = summary.quantile(p).unwrap();
        let reach = quantile.interval.zip(quantile.value).and_then(|(i, value)| i.reach(value.0));
        reach.unwrap_or(f64::INFINITY)
    });
    reaches[0].max(reaches[1])
}

/// Runs of as many rounds as the first 6 say are needed.
fn until(input: &Input) -> Until {
    let [least, most] = UNTIL_ROUNDS;
    let truths = QUANTILES.map(|p| truth(input.exceeds, p));
    let mut found = Until::default();
    for seed in 0..UNTIL_TRIALS {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut all: Vec<Vec<f64>> = (0..least).map(|_| (input.round)(&mut chance)).collect();
        let first = reach(&summarize(&all, 1.0));
        let needed = rounds_needed(least as u32, first, WIDTH).min(most as u32) as usize;
        all.extend((least..needed).map(|_| (input.round)(&mut chance)));
        let summary = summarize(&all, 1.0);
        for ((hit, p), truth) in found.hits.iter_mut().zip(QUANTILES).zip(truths) {
            *hit += u64::from(encloses(summary.quantile(p).unwrap().interval, truth));
        }
        found.narrow += u64::from(reach(&summary) <= WIDTH);
        found.rounds += needed as u64;
    }
    found
}

/// A table of what `--until` gives, and the inputs of which its intervals cover too seldom.
fn until_table() -> (String, Vec<String>) {
    let mut table = String::from(
        "| `--until 5%`, 6 to 30 rounds | covered: p50, p99 | both within 5 % | mean rounds |\n\
         |---|---|---|---|\n",
    );
    let mut short = Vec::new();
    let found: Vec<Until> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            UNTIL.iter().map(|(input, _)| scope.spawn(|| until(&INPUTS[*input]))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let percent = |runs: u64| (100 * runs / UNTIL_TRIALS) as u32;
    for ((input, least), Until { hits, narrow, rounds }) in UNTIL.iter().zip(found) {
        let (name, [p50, p99], narrow) = (INPUTS[*input].name, hits.map(percent), percent(narrow));
        let rounds = rounds as f64 / UNTIL_TRIALS as f64;
        writeln!(table, "| {name} | {p50}, {p99} | {narrow} | {rounds:.1} |").unwrap();
        let is_short = p50 < least[0] || p99 < least[1];
        short.extend(is_short.then(|| format!("--until, {name}: {p50}, {p99}")));
    }
    (table, short)
}

/// Checks, or with `UPDATE_DOCS` writes, what stands between the marks of a table in METHOD.md.
fn stands(mark: &str, table: &str) {
    // Both tests write the same file.
    static FILE: Mutex<()> = Mutex::new(());
    let _own = FILE.lock().unwrap();
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let document = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("METHOD.md");
    let text = std::fs::read_to_string(&document).unwrap();
    let (before, rest) = text.split_once(&begin).unwrap();
    let (stands, after) = rest.split_once(&end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&document, [before, &begin, table, &end, after].concat()).unwrap();
    } else {
        assert_eq!(stands, table, "UPDATE_DOCS=1 cargo test --test it coverage:: writes it again");
    }
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
    stands("coverage", &table);
}

#[test]
fn rounds_that_the_first_ones_ask_for_cover_too() {
    let (table, short) = until_table();
    assert!(short.is_empty(), "{short:#?}\n{table}");
    stands("until", &table);
}
