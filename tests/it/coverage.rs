//! Shows how often the printed 95 % intervals enclose the truth, how wide they are, and which share
//! of differences they find, over a grid of kinds of rounds. `./test` has a part of it; all of it,
//! with the tables of METHOD.md, is `COVERAGE=whole cargo test --test it coverage::` (to write the
//! tables again: `UPDATE_DOCS=1`, too).
//!
//! The rounds of a kind are drawn once, many of them, and are its population: what a figure of a
//! few of them says is held against the same of all.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Bernoulli, Distribution, Exp1, StandardNormal};
use statrs::distribution::{ContinuousCDF, Normal as NormalLaw, StudentsT};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use wiregauge::stats::change::{change_points, level_change};
use wiregauge::stats::compare::{Estimate, difference};
use wiregauge::stats::rate::rounds_needed;
use wiregauge::stats::typical::{MIN_ROUNDS_OF_MEDIAN, Typical, typical};
use wiregauge::stats::{Basis, Difference, Interval, summarize};

/// Messages of a round: as many as p99 needs.
const MESSAGES: usize = 1000;
const ROUNDS: [usize; 3] = [6, 10, 30];
/// The figures of a round, in the order of [`Round`].
const FIGURES: [&str; 5] = ["p10", "p50", "p90", "p99", "mean"];
const P50: usize = 1;
const P90: usize = 2;
const P99: usize = 3;
const MEAN: usize = 4;
/// The share that an interval is to cover, and of Welch's power that a difference is to have.
const COVERED: f64 = 0.93;
const POWER: f64 = 0.9;
/// The share that intervals of a mean cover whose rounds are skewed on logarithms.
const SKEWED: f64 = 0.86;

/// p10, p50, p90, p99 and the mean of a round.
type Round = [f64; 5];

/// The numbers of what is drawn.
#[derive(Clone, Copy)]
struct Effort {
    /// Rounds of a population.
    population: usize,
    /// Runs of each kind and number of rounds.
    runs: usize,
    /// Runs of which all samples are pooled.
    pooled: usize,
}

const QUICK: Effort = Effort { population: 1000, runs: 1000, pooled: 60 };
const WHOLE: Effort = Effort { population: 20_000, runs: 4000, pooled: 400 };

fn effort() -> Effort {
    if is_whole() { WHOLE } else { QUICK }
}

fn is_whole() -> bool {
    std::env::var("COVERAGE").is_ok_and(|effort| effort == "whole")
}

/// A kind of rounds.
#[derive(Clone, Copy)]
struct RoundKind {
    name: &'static str,
    /// Standard deviation of the rounds' levels, as a share.
    level: f64,
    /// Standard deviation of their logarithms, where levels are log-normal.
    level_of_logs: f64,
    /// Spread of messages within a round, as a share of the level.
    within: f64,
    /// Autocorrelation of messages within a round.
    correlation: f64,
    /// The share of rounds that are 1.3 times as slow.
    slow: f64,
    /// True if rounds have from 0.2 to 1.8 times as many messages.
    is_unequal: bool,
    /// Standard deviation of the logarithm of each round's share of slow messages, around 1 %.
    tail: f64,
}

const EQUAL: RoundKind = RoundKind {
    name: "equal",
    level: 0.0,
    level_of_logs: 0.0,
    within: 1.0,
    correlation: 0.0,
    slow: 0.0,
    is_unequal: false,
    tail: 0.0,
};

const fn of_ratio(name: &'static str, ratio: f64) -> RoundKind {
    let within = if ratio < 0.05 { 1.0 } else { 0.05 / ratio };
    RoundKind { name, level: 0.05, within, ..EQUAL }
}

const KINDS: [RoundKind; 17] = [
    RoundKind { name: "rounds alike, messages independent", ..EQUAL },
    of_ratio("levels differ: ratio 0.05", 0.05),
    of_ratio("ratio 0.25", 0.25),
    of_ratio("ratio 0.5", 0.5),
    of_ratio("ratio 1", 1.0),
    of_ratio("ratio 5", 5.0),
    RoundKind { name: "rounds alike, AR(1) 0.9", correlation: 0.9, ..EQUAL },
    RoundKind { correlation: 0.9, ..of_ratio("ratio 0.5, AR(1) 0.9", 0.5) },
    RoundKind { is_unequal: true, ..of_ratio("ratio 0.5, lengths x 0.2 to 1.8", 0.5) },
    RoundKind { name: "levels log-normal, sd 0.3", level_of_logs: 0.3, within: 0.2, ..EQUAL },
    RoundKind { name: "levels log-normal, sd 1", level_of_logs: 1.0, within: 0.05, ..EQUAL },
    RoundKind { name: "share of the tail log-normal, sd 1", tail: 1.0, within: 0.2, ..EQUAL },
    RoundKind { name: "10 % of rounds x 1.3", slow: 0.1, within: 0.05, ..EQUAL },
    RoundKind { name: "30 % of rounds x 1.3", slow: 0.3, within: 0.05, ..EQUAL },
    RoundKind { slow: 0.1, ..of_ratio("10 % of rounds x 1.3, ratio 0.5", 0.5) },
    RoundKind { slow: 0.3, ..of_ratio("30 % of rounds x 1.3, ratio 0.5", 0.5) },
    RoundKind { name: "30 % of rounds x 1.3, messages exponential", slow: 0.3, ..EQUAL },
];

fn normal(chance: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(chance)
}

impl RoundKind {
    /// Draws the messages of a round.
    fn messages(&self, chance: &mut ChaCha8Rng) -> Vec<f64> {
        let mut level = 1.0 + self.level * normal(chance);
        level *= (self.level_of_logs * normal(chance)).exp();
        if Bernoulli::new(self.slow).unwrap().sample(chance) {
            level *= 1.3;
        }
        let share = (0.01 * (self.tail * normal(chance)).exp()).min(0.5);
        let scale = if self.is_unequal { chance.random_range(0.2..1.8) } else { 1.0 };
        // p99 needs its thousand messages in the shortest round, too.
        let longest = if self.is_unequal { 5 * MESSAGES } else { MESSAGES };
        let number = (longest as f64 * scale) as usize;
        let mut state = normal(chance);
        let rest = (1.0 - self.correlation * self.correlation).sqrt();
        let law = NormalLaw::standard();
        let mut messages = Vec::new();
        for _ in 0..number.max(MESSAGES) {
            let exponential: f64 = if self.correlation > 0.0 {
                state = self.correlation * state + rest * normal(chance);
                -law.sf(state).ln()
            } else {
                Exp1.sample(chance)
            };
            let message = level * (1.0 + self.within * (exponential - 1.0));
            let is_slow = self.tail > 0.0 && chance.random::<f64>() < share;
            let slow: f64 = if is_slow { Exp1.sample(chance) } else { -2.0 };
            messages.push(message + 5.0 * (slow + 2.0));
        }
        messages
    }

    /// Draws the figures of many rounds.
    fn population(&self, rounds: usize, seed: u64) -> Vec<Round> {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        (0..rounds).map(|_| figures(self.messages(&mut chance))).collect()
    }

    /// Returns the most of all runs in which a figure can be covered: in the others no
    /// round is one of the slow ones.
    fn bound(&self, figure: usize, rounds: usize) -> f64 {
        // More than a tenth of the messages is slow in this share of the rounds, whose p90 is some
        // ten times as high.
        let many_slow = NormalLaw::standard().sf(10.0_f64.ln() / self.tail.max(f64::MIN_POSITIVE));
        let slow = if figure == P90 && self.tail > 0.0 { many_slow } else { self.slow };
        if slow > 0.0 { 1.0 - (1.0 - slow).powi(rounds as i32) } else { 1.0 }
    }

    /// Returns the share that intervals of a figure are to cover.
    fn goal(&self, figure: usize, rounds: usize) -> f64 {
        // Their means are skewed on logarithms, too.
        let is_skewed = figure == MEAN && self.tail > 0.0;
        if is_skewed { SKEWED } else { COVERED * self.bound(figure, rounds) }
    }
}

/// Quantiles by nearest rank, and the mean.
fn figures(mut messages: Vec<f64>) -> Round {
    let mean = messages.iter().sum::<f64>() / messages.len() as f64;
    messages.sort_unstable_by(f64::total_cmp);
    let [p10, p50, p90, p99] =
        [10, 50, 90, 99].map(|percent| messages[(percent * messages.len()).div_ceil(100) - 1]);
    [p10, p50, p90, p99, mean]
}

/// A figure of a population, for each way in which one of a few rounds may be found.
struct Population {
    geometric: f64,
    arithmetic: f64,
    median: f64,
    /// Standard deviation of logarithms.
    scatter: f64,
}

impl Population {
    fn new(values: &[f64]) -> Population {
        let count = values.len() as f64;
        let logs = values.iter().map(|value| value.ln());
        let mean = logs.clone().sum::<f64>() / count;
        let mut rising = values.to_vec();
        rising.sort_unstable_by(f64::total_cmp);
        Population {
            geometric: mean.exp(),
            arithmetic: values.iter().sum::<f64>() / count,
            median: rising[values.len() / 2],
            scatter: (logs.map(|log| (log - mean).powi(2)).sum::<f64>() / count).sqrt(),
        }
    }

    fn of_basis(&self, basis: Basis) -> f64 {
        match basis {
            Basis::Median => self.median,
            Basis::ArithmeticMean => self.arithmetic,
            _ => self.geometric,
        }
    }
}

fn encloses(interval: Interval, x: f64) -> bool {
    interval.low.0 <= x && x <= interval.high.0
}

/// Draws some values of a population.
fn drawn(population: &[f64], number: usize, chance: &mut ChaCha8Rng) -> Vec<f64> {
    (0..number).map(|_| population[chance.random_range(0..population.len())]).collect()
}

/// A share of runs, 0 to 1, with what chance moves it by (two standard errors).
fn below(share: f64, least: f64, runs: usize) -> bool {
    share < least - 2.0 * (least * (1.0 - least) / runs as f64).sqrt()
}

/// The intervals of one figure.
#[derive(Clone, Copy)]
struct Intervals {
    covered: f64,
    open: f64,
    /// Median half-width as a share of the figure.
    half: f64,
    /// Median half-width of the interval from the order statistics of the rounds.
    half_of_median: f64,
}

fn half(interval: Interval, value: f64) -> f64 {
    (interval.high.0 - interval.low.0) / 2.0 / value
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Makes runs of a few rounds of a population.
fn cell(population: &[f64], rounds: usize, runs: usize) -> Intervals {
    let truth = Population::new(population);
    let mut chance = ChaCha8Rng::seed_from_u64(rounds as u64);
    let mut covered = 0;
    let mut open = 0;
    let mut halves = Vec::new();
    let mut of_medians = Vec::new();
    for _ in 0..runs {
        let values = drawn(population, rounds, &mut chance);
        let Typical { value, interval, basis } = typical(&values).unwrap();
        let interval = interval.unwrap();
        covered += usize::from(encloses(interval, truth.of_basis(basis)));
        open += usize::from(!interval.resolves(value));
        halves.push(half(interval, value));
        let order = wiregauge::stats::quantile::median_interval(&values).unwrap();
        of_medians.push(half(order, value));
    }
    Intervals {
        covered: share(covered, runs),
        open: share(open, runs),
        half: middle(halves),
        half_of_median: middle(of_medians),
    }
}

/// Differences of two runs of a few rounds.
#[derive(Clone, Copy)]
struct Differences {
    /// The share of two runs of one population that is said to differ.
    false_alarms: f64,
    /// For two whose logarithms are so far apart that Welch's t is likely to tell, the share found,
    /// and that of Welch's t.
    power: [f64; 2],
    /// The share of the intervals of those that enclose the true ratio.
    covered: f64,
}

fn between(a: &[f64], b: &[f64]) -> Difference {
    difference(Estimate::of_rounds(a).unwrap(), Estimate::of_rounds(b).unwrap()).unwrap()
}

fn differences(population: &[f64], rounds: usize, runs: usize) -> Differences {
    let truth = Population::new(population);
    let mut chance = ChaCha8Rng::seed_from_u64(rounds as u64 + 100);
    let shift = (2.8 * truth.scatter * (2.0 / rounds as f64).sqrt()).exp();
    let mut alarms = 0;
    let mut found = 0;
    let mut of_welch = 0;
    let mut covered = 0;
    for _ in 0..runs {
        let a = drawn(population, rounds, &mut chance);
        let b = drawn(population, rounds, &mut chance);
        let moved: Vec<f64> = b.iter().map(|value| value * shift).collect();
        alarms += usize::from(between(&a, &b).excludes_zero());
        let moved_by = between(&a, &moved);
        found += usize::from(moved_by.excludes_zero());
        covered += usize::from(encloses(moved_by.relative_interval.unwrap(), shift - 1.0));
        of_welch += usize::from(welch_differs(&a, &moved));
    }
    Differences {
        false_alarms: share(alarms, runs),
        power: [share(found, runs), share(of_welch, runs)],
        covered: share(covered, runs),
    }
}

/// Welch's t on logarithms, written apart from the program's.
fn welch_differs(a: &[f64], b: &[f64]) -> bool {
    let [(mean_a, a, of_a), (mean_b, b, of_b)] = [a, b].map(|values| {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        (mean, squares / (count - 1.0) / count, count - 1.0)
    });
    let freedom = (a + b).powi(2) / (a * a / of_a + b * b / of_b);
    let t = StudentsT::new(0.0, 1.0, freedom).unwrap().inverse_cdf(0.975);
    (mean_a - mean_b).abs() > t * (a + b).sqrt()
}

/// What `--until` gives.
#[derive(Clone, Copy)]
struct Until {
    /// Runs that met their target.
    met: f64,
    /// The share of those whose interval of p99 encloses the truth, and the most that can.
    covered: f64,
    bound: f64,
    rounds: f64,
}

const WIDTH: f64 = 0.05;
const MAX_OF_UNTIL: usize = 30;

/// Returns the reach of an interval from its value.
fn reach(values: &[f64]) -> f64 {
    let found = typical(values).unwrap();
    found.interval.and_then(|interval| interval.reach(found.value)).unwrap_or(f64::INFINITY)
}

fn until(kind: &RoundKind, population: &[Round], runs: usize) -> Until {
    let figures = [P50, P99].map(|figure| population.iter().map(|of| of[figure]).collect());
    let [p50, p99]: [Vec<f64>; 2] = figures;
    let truth = Population::new(&p99);
    let fast = Population::new(&p50).median;
    let mut chance = ChaCha8Rng::seed_from_u64(7);
    let mut met = 0;
    let mut covered = 0;
    let mut rounds = 0;
    let mut can = 0;
    for _ in 0..runs {
        let of: Vec<usize> =
            (0..MAX_OF_UNTIL).map(|_| chance.random_range(0..population.len())).collect();
        let [of_p50, of_p99] =
            [&p50, &p99].map(|of_all| of.iter().map(|round| of_all[*round]).collect::<Vec<f64>>());
        let first = MIN_ROUNDS_OF_MEDIAN;
        let widest = reach(&of_p50[..first]).max(reach(&of_p99[..first]));
        let number = (rounds_needed(first as u32, widest, WIDTH) as usize).min(MAX_OF_UNTIL);
        rounds += number;
        if reach(&of_p50[..number]).max(reach(&of_p99[..number])) > WIDTH {
            continue;
        }
        met += 1;
        let values = of_p99[..number].to_vec();
        let found = typical(&values).unwrap();
        covered += usize::from(encloses(found.interval.unwrap(), truth.of_basis(found.basis)));
        // A slow round's median is above 1.15 times the fast ones'.
        let is_seen = of_p50[..number].iter().any(|value| *value > 1.15 * fast);
        can += usize::from(kind.slow == 0.0 || is_seen);
    }
    Until {
        met: share(met, runs),
        covered: share(covered, met),
        bound: share(can, met),
        rounds: share(rounds, runs),
    }
}

/// All that is known of a kind.
struct KindFound {
    kind: RoundKind,
    /// By the number of rounds, by the figure.
    cells: Vec<Vec<Intervals>>,
    /// By the number of rounds: of p50.
    differences: Vec<Differences>,
    until: Until,
}

fn found(kind: RoundKind, seed: u64) -> KindFound {
    let Effort { population, runs, .. } = effort();
    let rounds = kind.population(population, seed);
    let each =
        [0, 1, 2, 3, 4].map(|figure| rounds.iter().map(|of| of[figure]).collect::<Vec<f64>>());
    let cells = ROUNDS.map(|number| each.iter().map(|one| cell(one, number, runs)).collect());
    let differences = ROUNDS.map(|number| differences(&each[P50], number, runs));
    let until = until(&kind, &rounds, runs);
    KindFound { kind, cells: cells.into(), differences: differences.into(), until }
}

/// Finds all, on all CPUs.
fn all_found() -> Vec<KindFound> {
    let numbered: Vec<(usize, RoundKind)> = KINDS.into_iter().enumerate().collect();
    std::thread::scope(|scope| {
        let halves = numbered.chunks(numbered.len().div_ceil(2)).map(|half| {
            scope.spawn(move || {
                half.iter().map(|(seed, kind)| found(*kind, *seed as u64)).collect::<Vec<_>>()
            })
        });
        let threads: Vec<_> = halves.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn share(number: usize, of: usize) -> f64 {
    number as f64 / of.max(1) as f64
}

fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

/// The table of coverage, and what falls short of its goal.
fn of_coverage(all: &[KindFound]) -> (String, Vec<String>) {
    let mut table = String::from(
        "| rounds | 6 rounds | 10 rounds | 30 rounds |\n\
         |---|---|---|---|\n",
    );
    let mut short = Vec::new();
    for KindFound { kind, cells, .. } in all {
        write!(table, "| {} |", kind.name).unwrap();
        for (number, cells) in ROUNDS.iter().zip(cells) {
            let covered: Vec<String> = cells.iter().map(|cell| percent(cell.covered)).collect();
            let bound = kind.bound(P50, *number);
            let of_bound =
                if bound < 0.995 { format!(" of {}", percent(bound)) } else { "".into() };
            let half = 100.0 * cells[P99].half;
            write!(table, " {}{of_bound}; ±{half:.1} |", covered.join(" ")).unwrap();
            for (figure, (name, cell)) in FIGURES.iter().zip(cells).enumerate() {
                let at = format!("{}, {name}, {number} rounds", kind.name);
                if below(cell.covered, kind.goal(figure, *number), effort().runs) {
                    short.push(format!("{at}: covers {}", cell.covered));
                }
                if cell.open > 0.0 {
                    short.push(format!("{at}: {} of the ends are open", cell.open));
                }
                if cell.half > 1.2 * cell.half_of_median && kind.slow == 0.0 {
                    short.push(format!("{at}: {} wide, {}", cell.half, cell.half_of_median));
                }
            }
        }
        table.push('\n');
    }
    for (name, population) in rates() {
        write!(table, "| {name} |").unwrap();
        for number in ROUNDS {
            let cell = cell(&population, number, effort().runs);
            write!(table, " {}; ±{:.1} |", percent(cell.covered), 100.0 * cell.half).unwrap();
            if below(cell.covered, COVERED, effort().runs) {
                short.push(format!("{name}, {number} rounds: covers {}", cell.covered));
            }
        }
        table.push('\n');
    }
    (table, short)
}

/// Draws a number.
type Law = fn(&mut ChaCha8Rng) -> f64;

/// Rates of rounds, one number each.
fn rates() -> [(&'static str, Vec<f64>); 3] {
    let mut chance = ChaCha8Rng::seed_from_u64(99);
    let laws: [(&str, Law); 3] = [
        ("rates: normal, sd 5 %", |chance| 1.0 + 0.05 * normal(chance)),
        ("rates: log-normal, sd 1", |chance| normal(chance).exp()),
        ("rates: uniform from 0.5 to 1.5", |chance| chance.random_range(0.5..1.5)),
    ];
    laws.map(|(name, draw)| (name, (0..effort().population).map(|_| draw(&mut chance)).collect()))
}

/// Messages of a round of which p99.9 is that of all rounds together.
const POOLED: usize = 2000;
/// Places in [`KINDS`]: alike, ratios of 0.05, 0.5 and 5, correlated, 30 % slow.
const POOLED_KINDS: [usize; 6] = [0, 1, 3, 5, 6, 13];

/// Coverage, open ends and half-width of p99.9, of which each round has too few messages.
fn pooled_cell(kind: &RoundKind, rounds: usize, seed: u64) -> [f64; 3] {
    let Effort { population, pooled, .. } = effort();
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut of_all: Vec<Vec<f64>> = Vec::new();
    for _ in 0..population / 10 {
        let first = kind.messages(&mut chance);
        of_all.push([first, kind.messages(&mut chance)].concat()[..POOLED].to_vec());
    }
    let mut all = of_all.concat();
    all.sort_unstable_by(f64::total_cmp);
    let truth = all[all.len() * 999 / 1000];
    let mut covered = 0;
    let mut open = 0;
    let mut halves = Vec::new();
    for _ in 0..pooled {
        let own: Vec<&Vec<f64>> =
            (0..rounds).map(|_| &of_all[chance.random_range(0..of_all.len())]).collect();
        let summary = summarize(&own, 1.0);
        let quantile = summary.quantile(0.999).unwrap();
        assert_eq!(quantile.basis, Basis::Pooled);
        let value = quantile.value.unwrap().0;
        let interval = quantile.interval.unwrap();
        covered += usize::from(encloses(interval, truth));
        open += usize::from(!interval.resolves(value));
        halves.push(half(interval, value));
    }
    [share(covered, pooled), share(open, pooled), middle(halves)]
}

/// The table of p99.9, and what falls short of its goal.
fn of_pooled() -> (String, Vec<String>) {
    let mut table = String::from(
        "| p99.9 of all rounds | 6 rounds: covered, open, half-width | 10 rounds | 30 rounds |\n\
         |---|---|---|---|\n",
    );
    let mut short = Vec::new();
    for kind in POOLED_KINDS.map(|number| KINDS[number]) {
        write!(table, "| {} |", kind.name).unwrap();
        for (seed, number) in ROUNDS.iter().enumerate().take(if is_whole() { 3 } else { 1 }) {
            let [covered, open, half] = pooled_cell(&kind, *number, seed as u64);
            let [covered_percent, open] = [covered, open].map(percent);
            write!(table, " {covered_percent} {open} ±{:.1} |", 100.0 * half).unwrap();
            if below(covered, COVERED * kind.bound(P99, *number), effort().pooled) {
                short.push(format!("p99.9, {}, {number} rounds: covers {covered}", kind.name));
            }
        }
        table.push('\n');
    }
    (table, short)
}

/// The table of differences, and what falls short of its goal.
fn of_differences(all: &[KindFound]) -> (String, Vec<String>) {
    let mut table = String::from(
        "| rounds | 6 rounds: false, found, of Welch's t, covered | 10 rounds | 30 rounds |\n\
         |---|---|---|---|\n",
    );
    let mut short = Vec::new();
    for KindFound { kind, differences, .. } in all {
        write!(table, "| {} |", kind.name).unwrap();
        for (number, found) in ROUNDS.iter().zip(differences) {
            let Differences { false_alarms, power: [power, welch], covered } = *found;
            let cells = [false_alarms, power, welch, covered].map(percent).join(" ");
            write!(table, " {cells} |").unwrap();
            let at = format!("{}, {number} rounds", kind.name);
            if below(1.0 - false_alarms, 0.95, effort().runs) {
                short.push(format!("{at}: {false_alarms} false alarms"));
            }
            if power < POWER * welch {
                short.push(format!("{at}: finds {power}, Welch's t {welch}"));
            }
            if below(covered, COVERED, effort().runs) {
                short.push(format!("{at}: covers {covered}"));
            }
        }
        table.push('\n');
    }
    (table, short)
}

/// The table of runs of `--until`, and what falls short of its goal.
fn of_until(all: &[KindFound]) -> (String, Vec<String>) {
    let mut table = String::from(
        "| `--until 5%`, 6 to 30 rounds | target met | p99 covered, of those | mean rounds |\n\
         |---|---|---|---|\n",
    );
    let mut short = Vec::new();
    for KindFound { kind, until, .. } in all {
        let Until { met, covered, bound, rounds } = *until;
        let name = kind.name;
        let runs = (met * effort().runs as f64) as usize;
        // Where few runs are narrow, those that are happen to be.
        let is_rare = met < 0.5;
        let of_bound = if bound < 0.995 { format!(" of {}", percent(bound)) } else { "".into() };
        let share = if runs == 0 { "-".into() } else { percent(covered) + &of_bound };
        writeln!(table, "| {name} | {} | {share} | {rounds:.1} |", percent(met)).unwrap();
        if !is_rare && below(covered, COVERED * bound, runs) {
            short.push(format!("--until, {name}: covers {covered} of {bound}"));
        }
    }
    (table, short)
}

/// Checks, or with `UPDATE_DOCS` writes, what stands between the marks of a table in METHOD.md.
fn stands(mark: &str, table: &str) {
    // Several tests write the same file.
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
        assert_eq!(stands, table, "COVERAGE=whole UPDATE_DOCS=1 writes it again");
    }
}

#[test]
fn intervals_and_differences_are_as_good_as_the_method_says() {
    let all = all_found();
    let tables = [of_coverage(&all), of_differences(&all), of_until(&all), of_pooled()];
    let short: Vec<&String> = tables.iter().flat_map(|(_, short)| short).collect();
    let text: Vec<&str> = tables.iter().map(|(table, _)| table.as_str()).collect();
    assert!(short.is_empty(), "{short:#?}\n{}", text.join("\n"));
    if is_whole() {
        for (mark, table) in ["coverage", "differences", "until", "pooled"].iter().zip(text) {
            stands(mark, table);
        }
    }
}

/// A kind of history: the correlation of its values, what its last ones are higher by in standard
/// deviations, and how many these are.
struct History {
    name: &'static str,
    correlation: f64,
    higher: f64,
    last: fn(usize) -> usize,
}

const HISTORIES: [History; 8] = [
    History { name: "no change", correlation: 0.0, higher: 0.0, last: |_| 0 },
    History { name: "no change, AR(1) 0.3", correlation: 0.3, higher: 0.0, last: |_| 0 },
    History { name: "no change, AR(1) 0.6", correlation: 0.6, higher: 0.0, last: |_| 0 },
    History { name: "the last half 2 sd higher", correlation: 0.0, higher: 2.0, last: |n| n / 2 },
    History { name: "the last half 3 sd higher", correlation: 0.0, higher: 3.0, last: |n| n / 2 },
    History { name: "the same, AR(1) 0.3", correlation: 0.3, higher: 3.0, last: |n| n / 2 },
    History { name: "the last three 5 sd higher", correlation: 0.0, higher: 5.0, last: |_| 3 },
    History { name: "the last one 50 sd higher", correlation: 0.0, higher: 50.0, last: |_| 1 },
];
const VALUES: [usize; 4] = [12, 20, 40, 100];

/// The share of histories in which a change is found, and of those cut where the change is (of
/// those without one: in the middle) the share whose interval encloses it.
fn histories(kind: &History, values: usize, runs: usize) -> [f64; 2] {
    let mut chance = ChaCha8Rng::seed_from_u64(values as u64);
    let mut found = 0;
    let mut covered = 0;
    for _ in 0..runs {
        let mut state = normal(&mut chance);
        let rest = (1.0 - kind.correlation * kind.correlation).sqrt();
        let last = (kind.last)(values);
        let mut series = Vec::new();
        for number in 0..values {
            state = kind.correlation * state + rest * normal(&mut chance);
            let higher = if number + last >= values { kind.higher } else { 0.0 };
            series.push(0.01 * (state + higher));
        }
        found += usize::from(!change_points(&series).is_empty());
        let (before, after) = series.split_at(values - if last > 1 { last } else { values / 2 });
        let (_, interval) = level_change(before, after).unwrap();
        let truth = if last > 1 { (0.01 * kind.higher).exp_m1() } else { 0.0 };
        covered += usize::from(interval.is_some_and(|i| encloses(i, truth)));
    }
    [found, covered].map(|number| number as f64 / runs as f64)
}

#[test]
fn changes_of_histories_are_found_as_often_as_the_method_says() {
    if !is_whole() {
        // The quick part of it: crates/stats/src/change.rs.
        return;
    }
    let mut table = String::from(
        "| series with a change: found, its interval covers | 12 values | 20 | 40 | 100 |\n\
         |---|---|---|---|---|\n",
    );
    for kind in &HISTORIES {
        write!(table, "| {} |", kind.name).unwrap();
        for values in VALUES {
            let cells = histories(kind, values, 1000).map(percent).join(" ");
            write!(table, " {cells} |").unwrap();
        }
        table.push('\n');
    }
    stands("history", &table);
}
