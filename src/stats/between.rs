//! What differs between rounds: an interval of a quantile from the share of each round below a
//! value.

use super::pooled::{Pooled, first};
use super::quantile::Ranked;
use super::student::t_975;
use super::{Interval, Value};

/// Values of each round from which the ends of an interval are sought; so many that two of them
/// seldom have two ends between them.
const GRID: u64 = 64;

/// Inverts the test of whether a value is the quantile.
///
/// A value q is the quantile p of all that rounds can give if p is the mean of their shares
/// F_r(q) of samples at or below it. Each round is one observation of that share, whatever its
/// samples have in common. So the 95 % interval is {q: |F(q) - p| <= t(R-1) s(q)} (Woodruff,
/// JASA 47 (1952) 635; Francisco and Fuller, Annals of Statistics 19 (1991) 454), with F the share
/// in all rounds and s its standard error as a ratio of R clusters of n_r samples,
/// s^2 = R/(R-1) sum (n_r (F_r - F))^2 / N^2 (Cochran, Sampling Techniques, 11.8). Its ends are
/// samples: where the set has gaps they belong to it.
pub struct Inversion<'a, T> {
    pooled: &'a Pooled<T>,
    /// Rising, from the smallest sample to the largest.
    grid: Vec<f64>,
    t: f64,
}

impl<'a, T: Ranked> Inversion<'a, T> {
    /// `None` for fewer than two rounds with samples.
    pub fn new(pooled: &'a Pooled<T>) -> Option<Self> {
        let rounds = || pooled.0.iter().filter(|round| round.count() > 0);
        let t = t_975(rounds().count() as f64 - 1.0)?;
        let of_round = |round: &'a T| {
            (0..=GRID).map(|step| round.at_rank((round.count() * step).div_ceil(GRID)))
        };
        let mut grid: Vec<f64> = rounds().flat_map(of_round).collect();
        grid.sort_by(f64::total_cmp);
        Some(Inversion { pooled, grid, t })
    }

    /// The share of samples at or below a value, and how far off it may be.
    fn share(&self, value: f64) -> (f64, f64) {
        let rounds = self.pooled.0.iter().filter(|round| round.count() > 0);
        let counts = rounds.map(|round| (round.count_at_most(value) as f64, round.count() as f64));
        let (rounds, below, all) = counts
            .clone()
            .fold((0.0, 0.0, 0.0), |(r, below, all), (c, n)| (r + 1.0, below + c, all + n));
        let share = below / all;
        let squares: f64 = counts.map(|(c, n)| (c - share * n).powi(2)).sum();
        (share, self.t * (rounds / (rounds - 1.0) * squares).sqrt() / all)
    }

    /// The interval of quantile `p`.
    pub fn interval(&self, p: f64) -> Interval {
        let may_be_above = |value: f64| {
            let (share, error) = self.share(value);
            share + error >= p
        };
        let is_above = |value: f64| {
            let (share, error) = self.share(value);
            share - error > p
        };
        // At the largest sample the share is 1 in all rounds, so both hold there.
        let low = self.grid.iter().position(|value| may_be_above(*value)).unwrap_or(0);
        let high = self.grid.iter().rposition(|value| !is_above(*value)).map_or(0, |last| last + 1);
        let low = self.first(low, may_be_above);
        Interval { low: Value(low), high: Value(self.first(high, is_above)) }
    }

    /// The first value at which something holds, of those up to a value of the grid and above the
    /// one before it.
    fn first(&self, number: usize, holds: impl Fn(f64) -> bool) -> f64 {
        let last = self.grid.len() - 1;
        let below = number.checked_sub(1).map_or(f64::NEG_INFINITY, |before| self.grid[before]);
        first(below, self.grid[number.min(last)], holds)
    }
}
