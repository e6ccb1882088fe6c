//! The confidence interval of a quantile that accounts for differences between rounds.

use super::pooled::Pooled;
use super::quantile::Ranked;
use super::student::t_975;
use super::{Interval, Value};

/// Steps of the grid on which the ends of an interval are first searched, evenly spread over the
/// ranks of each round. All samples between two steps are searched next, so a finer grid saves
/// little and costs more itself.
const GRID: u64 = 256;
/// Values of all rounds together at most, so that many rounds cost no more each than few ...
const GRID_OF_ALL: u64 = 64 * GRID;
/// ... but of each round at least.
const LEAST_GRID: u64 = 16;

/// The share of all samples at or below a value, and how far off it may be.
#[derive(Clone, Copy)]
struct Share {
    share: f64,
    error: f64,
}

/// Inverts the test of whether a value is the quantile.
///
/// A value q is the quantile p over all possible rounds if p is the mean of their shares F_r(q) of
/// samples at or below q. Each round is one observation of that share, however its samples are
/// correlated. So the 95 % interval is {q: |F(q) - p| <= t(R-1) s(q)} (Woodruff,
/// JASA 47 (1952) 635; Francisco and Fuller, Annals of Statistics 19 (1991) 454), with F the share
/// in all rounds and s its standard error as a ratio of R clusters of n_r samples,
/// s^2 = R/(R-1) sum (n_r (F_r - F))^2 / N^2 (Cochran, Sampling Techniques, 11.8). Its ends are
/// samples. If the set has gaps, the interval includes them.
pub struct Inversion<'a, T> {
    pooled: &'a Pooled<T>,
    /// In ascending order, from the smallest sample to the largest.
    grid: Vec<f64>,
    /// Of each value of the grid.
    shares: Vec<Share>,
    t: f64,
}

impl<'a, T: Ranked> Inversion<'a, T> {
    /// `None` for fewer than two rounds with samples.
    pub fn new(pooled: &'a Pooled<T>) -> Option<Self> {
        let rounds = || pooled.0.iter().filter(|round| round.count() > 0);
        let several = rounds().count() as u64;
        let t = t_975(several as f64 - 1.0)?;
        let steps = (GRID_OF_ALL / several).clamp(LEAST_GRID, GRID);
        let of_round = |round: &'a T| {
            (0..=steps).map(move |step| round.at_rank((round.count() * step).div_ceil(steps)))
        };
        let mut grid: Vec<f64> = rounds().flat_map(of_round).collect();
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let mut inversion = Inversion { pooled, grid, shares: Vec::new(), t };
        inversion.shares = inversion.grid.iter().map(|value| inversion.share(*value)).collect();
        Some(inversion)
    }

    fn share(&self, value: f64) -> Share {
        let rounds = self.pooled.0.iter().filter(|round| round.count() > 0);
        let counts: Vec<(f64, f64)> =
            rounds.map(|round| (round.count_at_most(value) as f64, round.count() as f64)).collect();
        let (below, all) =
            counts.iter().fold((0.0, 0.0), |(below, all), (c, n)| (below + c, all + n));
        let share = below / all;
        let squares: f64 = counts.iter().map(|(c, n)| (c - share * n).powi(2)).sum();
        let rounds = counts.len() as f64;
        let error = self.t * (rounds / (rounds - 1.0) * squares).sqrt() / all;
        Share { share, error }
    }

    /// The interval of quantile `p`.
    pub fn interval(&self, p: f64) -> Interval {
        let may_be_above = |at: &Share| at.share + at.error >= p;
        let is_above = |at: &Share| at.share - at.error > p;
        let (grid, shares) = (&self.grid, &self.shares);
        let before = |at: usize| at.checked_sub(1).map_or(f64::NEG_INFINITY, |at| grid[at]);
        // At the largest sample the share is 1 in all rounds, so this holds there.
        let first = shares.iter().position(may_be_above).unwrap_or(0);
        let mut below = self.samples(before(first), grid[first]);
        let low = below.find(|value| may_be_above(&self.share(*value)));
        let beyond = shares.iter().rposition(|at| !is_above(at)).map_or(0, |last| last + 1);
        let high = grid.get(beyond).map_or(before(beyond), |end| {
            let after_last = |high: Option<f64>, value| {
                high.or(Some(value)).filter(|_| is_above(&self.share(value)))
            };
            self.samples(before(beyond), *end).fold(None, after_last).unwrap_or(*end)
        });
        Interval { low: Value(low.unwrap_or(grid[first])), high: Value(high) }
    }

    /// The distinct samples above one value and up to another, in ascending order.
    fn samples(&self, above: f64, up_to: f64) -> impl Iterator<Item = f64> {
        let next = move |value: f64| {
            let beyond = self.pooled.0.iter().filter_map(|round| {
                let below = round.count_at_most(value);
                (below < round.count()).then(|| round.at_rank(below + 1))
            });
            beyond.reduce(f64::min).filter(|next| *next <= up_to)
        };
        std::iter::successors(next(above), move |value| next(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{iid, random};
    use crate::pooled::Run;
    use std::cell::Cell;

    /// A round that counts how often it is asked how many samples are below a value.
    struct Counting<'a>(Run, &'a Cell<u64>);

    impl Ranked for Counting<'_> {
        fn count(&self) -> u64 {
            self.0.count()
        }

        fn at_rank(&self, rank: u64) -> f64 {
            self.0.at_rank(rank)
        }

        fn count_at_most(&self, ns: f64) -> u64 {
            self.1.set(self.1.get() + 1);
            self.0.count_at_most(ns)
        }
    }

    #[test]
    fn many_rounds_cost_no_more_each_than_few() {
        let searches = Cell::new(0);
        let mut chance = random(3);
        let round = |_| Counting(Run::sorted(&iid(&mut chance, 1000)), &searches);
        let pooled = Pooled((0..200).map(round).collect());
        let inversion = Inversion::new(&pooled).unwrap();
        inversion.interval(0.5);
        // 16,400 values of the grid, each looked for in every round.
        assert!(searches.get() < 4_000_000, "{}", searches.get());
    }

    #[test]
    fn a_coarse_grid_finds_the_ends_that_a_look_at_every_sample_finds() {
        let mut chance = random(4);
        let rounds: Vec<Vec<f64>> = (0..128).map(|_| iid(&mut chance, 200)).collect();
        let pooled = Pooled(rounds.iter().map(|round| Run::sorted(round)).collect::<Vec<_>>());
        let inversion = Inversion::new(&pooled).unwrap();
        let mut all = rounds.concat();
        all.sort_by(f64::total_cmp);
        for p in [0.1, 0.5, 0.99] {
            let low = all.iter().position(|x| {
                let at = inversion.share(*x);
                at.share + at.error >= p
            });
            let high = all.iter().rposition(|x| {
                let at = inversion.share(*x);
                at.share - at.error <= p
            });
            let found = inversion.interval(p);
            assert_eq!((found.low.0, found.high.0), (all[low.unwrap()], all[high.unwrap() + 1]));
        }
    }

    fn interval(rounds: &[Vec<f64>], p: f64) -> [f64; 2] {
        let pooled = Pooled(rounds.iter().map(|round| Run::sorted(round)).collect());
        let found = Inversion::new(&pooled).unwrap().interval(p);
        [found.low.0, found.high.0]
    }

    #[test]
    fn rounds_that_are_equal_leave_the_step_at_the_quantile() {
        let round: Vec<f64> = (1..=100).map(f64::from).collect();
        // From 50 on, and below 51, the share is 0.5 in every round.
        assert_eq!(interval(&vec![round; 3], 0.5), [50.0, 51.0]);
    }

    #[test]
    fn a_round_without_samples_is_no_round() {
        let round = |from: i32| (from..from + 100).map(f64::from).collect::<Vec<f64>>();
        let mut rounds = vec![round(0), round(3), round(7)];
        let found = interval(&rounds, 0.5);
        rounds.push(Vec::new());
        assert_eq!(interval(&rounds, 0.5), found);
    }
}
