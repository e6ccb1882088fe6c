//! Change points: where the level of a series of figures changed for more than one of them.

use super::student::{mean_sd, t_975};
use super::{CONFIDENCE, Interval, Value};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// A level lasts at least so long: one value that stands out is an outlier and no change.
const LEAST_LEVEL: usize = 2;
/// Orders that are tried. The share of them that look as uneven as the true order is known within
/// 1.4 percentage points (two standard errors) at the level that decides, 5 %.
const ORDERS: u32 = 999;
/// The same series always has the same changes.
const SEED: u64 = 0;

/// Positions of the first value after each change, rising.
///
/// Binary segmentation (Scott & Knott, Biometrics 30 (1974) 507) by a permutation test (as in
/// Matteson & James, JASA 109 (2014) 334): the series is cut where the sum of squares between both
/// parts is largest, if at most 5 % of all orders of the same values have a cut as good, and then
/// each part again. It assumes no distribution, only that without a change any order is as likely.
/// So few values show nothing: it takes 8, and 10 where only the last two differ.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut found, mut left) = (Vec::new(), vec![(0, values.len())]);
    while let Some((start, end)) = left.pop() {
        if let Some(cut) = cut(&values[start..end], &mut random) {
            found.push(start + cut);
            left.extend([(start, start + cut), (start + cut, end)]);
        }
    }
    found.sort_unstable();
    found
}

/// The change of the level at a cut, of logarithms as a share, with its 95 % interval by Welch's t.
pub fn level_change(before: &[f64], after: &[f64]) -> Option<(f64, Option<Interval>)> {
    let of = |values: &[f64]| {
        let (mean, sd) = mean_sd(values.iter().copied());
        (mean, sd * sd / values.len() as f64, values.len() as f64 - 1.0)
    };
    let ((a, var_a, df_a), (b, var_b, df_b)) = (of(before), of(after));
    let change = Some(b - a).filter(|change| change.is_finite())?;
    let freedom = (var_a + var_b).powi(2) / (var_a.powi(2) / df_a + var_b.powi(2) / df_b);
    // Levels without any spread have a freedom that is no number.
    let freedom = if freedom.is_nan() { df_a.min(df_b) } else { freedom };
    let interval = t_975(freedom).map(|t| t * (var_a + var_b).sqrt()).map(|half| Interval {
        low: Value((change - half).exp_m1()),
        high: Value((change + half).exp_m1()),
    });
    Some((change.exp_m1(), interval))
}

fn cut(values: &[f64], random: &mut ChaCha8Rng) -> Option<usize> {
    let (cut, between) = best_cut(values)?;
    let mut order = values.to_vec();
    let is_as_good = |_: &u32| {
        order.shuffle(random);
        // Sums of the same values in another order differ in their last digits.
        best_cut(&order).is_some_and(|(_, other)| other >= between * (1.0 - 1e-9))
    };
    let as_good = (0..ORDERS).filter(is_as_good).count() as f64;
    let share = (1.0 + as_good) / (1.0 + f64::from(ORDERS));
    (share <= 1.0 - CONFIDENCE).then_some(cut)
}

/// The cut with the largest sum of squares between its parts; `None` where there is no room for
/// two levels, or nothing differs.
fn best_cut(values: &[f64]) -> Option<(usize, f64)> {
    let (n, total) = (values.len() as f64, values.iter().sum::<f64>());
    let mut sum = 0.0;
    let mut best = None;
    for (at, value) in values.iter().enumerate() {
        let t = at as f64;
        let is_inside = at >= LEAST_LEVEL && at + LEAST_LEVEL <= values.len();
        let between = (sum - t * total / n).powi(2) * n / (t * (n - t));
        if is_inside && between > best.map_or(0.0, |(_, most)| most) {
            best = Some((at, between));
        }
        sum += value;
    }
    best.filter(|(_, between)| between.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{normal, random};
    use super::*;

    /// Levels of so many values each, with noise.
    fn levels(seed: u64, levels: &[(f64, usize)], sd: f64) -> Vec<f64> {
        let mut chance = random(seed);
        levels.iter().flat_map(|(mean, n)| normal(&mut chance, *n, *mean, sd)).collect()
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let rise = levels(1, &[(1.0, 10), (1.2, 10)], 0.02);
        assert_eq!(change_points(&rise), [10]);
        let two = levels(2, &[(1.0, 12), (1.2, 9), (0.9, 15)], 0.02);
        assert_eq!(change_points(&two), [12, 21]);
        let late = levels(3, &[(1.0, 18), (1.2, 2)], 0.02);
        assert_eq!(change_points(&late), [18]);
        let exact = [vec![1.0; 5], vec![2.0; 5]].concat();
        assert_eq!(change_points(&exact), [5]);
    }

    #[test]
    fn an_outlier_is_no_change_and_few_values_show_none() {
        let mut values = levels(4, &[(1.0, 20)], 0.02);
        values[7] = 3.0;
        assert!(change_points(&values).is_empty());
        assert!(change_points(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]).is_empty(), "of 6 values");
        for few in [&[][..], &[1.0], &[1.0, 2.0], &[3.0; 30]] {
            assert!(change_points(few).is_empty());
        }
    }

    #[test]
    fn chance_rarely_makes_a_change() {
        let found =
            (0..100).filter(|seed| !change_points(&levels(*seed, &[(1.0, 15)], 0.1)).is_empty());
        assert!(found.count() <= 11, "one in 20");
    }

    #[test]
    fn the_change_of_a_level_has_welchs_interval() {
        let log = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
        let (before, after) = (log(&[1.0, 1.1, 0.9, 1.0]), log(&[1.2, 1.3, 1.1, 1.2]));
        let (change, interval) = level_change(&before, &after).unwrap();
        let interval = interval.unwrap();
        assert!((change - 0.2007).abs() < 5e-4, "{change}");
        // 0.1831 of logarithms, a standard error of 0.0533, 5.8 degrees of freedom: t = 2.466.
        assert!((interval.low.0 - 0.0529).abs() < 5e-4, "{interval:?}");
        assert!((interval.high.0 - 0.3697).abs() < 5e-4, "{interval:?}");
        assert_eq!(level_change(&[0.0, 0.0], &[0.0, 0.0]).unwrap().0, 0.0);
        assert_eq!(level_change(&[f64::NEG_INFINITY], &[0.0]), None);
    }
}
