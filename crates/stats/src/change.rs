//! Change points: where the level of a series of figures changed for more than one of them.

use super::student::{mean_sd, t_975};
use super::{CONFIDENCE, Interval, Value};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Orders that are tried. The share of them that look as uneven as the true order is known within
/// 1.4 percentage points (two standard errors) at the level that decides, 5 %.
const ORDERS: u32 = 999;
/// The same series always has the same changes.
const SEED: u64 = 0;
/// More correlated than this a series is a drift, of which nothing can be said.
const MAX_CORRELATION: f64 = 0.95;
/// Values that are drawn before those of a correlated series, so that it has forgotten its begin.
const SETTLING: usize = 30;

/// Positions of the first value after each change, rising.
///
/// Binary segmentation (Scott & Knott, Biometrics 30 (1974) 507) by a permutation test (as in
/// Matteson & James, JASA 109 (2014) 334): the series is cut where the sum of squares between both
/// parts is largest, if at most 5 % of all orders of the same values have a cut as good, and then
/// each part again. The sum is that which remains without the one value that contributes most, so
/// that no outlier makes a change. It assumes no distribution, only that without a change any order
/// is as likely: that holds for whatever is computed of an order. So few values show nothing: it
/// takes 8, and 10 where only the last two differ.
///
/// Values that follow each other are often alike without a change, as the weather of a machine is.
/// So at most 5 % of as many series without a change that are correlated as this one is about its
/// levels may have a cut as good, too: first-order autoregressions, whose steps are drawn from
/// those of the series. How often a change is still found where there is none stands in METHOD.md.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let possible = segmented(values, None);
    if possible.is_empty() {
        return possible;
    }
    let starts = [0].into_iter().chain(possible.iter().copied());
    let ends = possible.iter().copied().chain([values.len()]);
    let levels: Vec<&[f64]> = starts.zip(ends).map(|(start, end)| &values[start..end]).collect();
    segmented(values, Some(&Correlated::new(&levels)))
}

/// Finds the first value of each level but the first. A cut must stand out among orders of the same
/// values, and among series as correlated as these.
fn segmented(values: &[f64], correlated: Option<&Correlated>) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut found, mut left) = (Vec::new(), vec![(0, values.len())]);
    while let Some((start, end)) = left.pop() {
        if let Some(cut) = cut(&values[start..end], correlated, &mut random) {
            found.push(start + cut);
            left.extend([(start, start + cut), (start + cut, end)]);
        }
    }
    found.sort_unstable();
    found
}

/// Returns the change of the level at a cut, of logarithms as a share, with its 95 % interval by
/// Welch's t. Correlated values count as fewer: n (1 - r)/(1 + r) of them, with r their
/// autocorrelation about both levels.
pub fn level_change(before: &[f64], after: &[f64]) -> Option<(f64, Option<Interval>)> {
    let correlation = correlation(&[before, after], 0.0);
    let share = (1.0 - correlation) / (1.0 + correlation);
    let of = |values: &[f64]| {
        let (mean, sd) = mean_sd(values.iter().copied());
        let count = values.len() as f64;
        (mean, sd * sd / (count * share), (count - 1.0) * share)
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

fn cut(values: &[f64], correlated: Option<&Correlated>, random: &mut ChaCha8Rng) -> Option<usize> {
    let mut order = values.to_vec();
    order.sort_by(f64::total_cmp);
    // Around a value of the series: the sums of values that are alike have no rounding errors.
    let middle = *order.get(order.len() / 2)?;
    let values: Vec<f64> = values.iter().map(|value| value - middle).collect();
    let (cut, between) = best_cut(&values)?;
    order.clone_from(&values);
    let mut as_good = 0.0;
    for _ in 0..ORDERS {
        order.shuffle(random);
        as_good += f64::from(u8::from(is_as_good(&order, between)));
    }
    if !is_rare(as_good) {
        return None;
    }
    let Some(correlated) = correlated else { return Some(cut) };
    let mut as_good = 0.0;
    for _ in 0..ORDERS {
        correlated.series(values.len(), random, &mut order);
        as_good += f64::from(u8::from(is_as_good(&order, between)));
    }
    is_rare(as_good).then_some(cut)
}

/// Returns true if the best cut of values is as good. Sums of the same values in another order
/// differ in their last digits.
fn is_as_good(values: &[f64], between: f64) -> bool {
    best_cut(values).is_some_and(|(_, other)| other >= between * (1.0 - 1e-9))
}

/// Returns true if so few of all [`ORDERS`] are as good that chance does not make it.
fn is_rare(as_good: f64) -> bool {
    (1.0 + as_good) / (1.0 + f64::from(ORDERS)) <= 1.0 - CONFIDENCE
}

/// Returns the autocorrelation of neighbours about the level of each part, at least 0 and at most
/// [`MAX_CORRELATION`]. What is estimated about the levels of k parts of n values in all is too low
/// by 1.5 k (1 + 3 r)/n on average (M. Kendall, Biometrika 41 (1954) 403, for each level, and half
/// as much again for a cut that was searched); `errors` of its standard errors, 1/sqrt(n), are
/// added.
fn correlation(parts: &[&[f64]], errors: f64) -> f64 {
    let count = parts.iter().map(|part| part.len()).sum::<usize>() as f64;
    let levels = parts.len() as f64;
    let mut products = 0.0;
    let mut squares = 0.0;
    for part in parts {
        let (mean, _) = mean_sd(part.iter().copied());
        products += part.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>();
        squares += part.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    }
    let seen = products / squares * count / (count - levels);
    let corrected = seen + 1.5 * levels * (1.0 + 3.0 * seen) / count + errors / count.sqrt();
    // Levels without any spread have no correlation.
    if corrected.is_finite() { corrected.clamp(0.0, MAX_CORRELATION) } else { 0.0 }
}

/// Draws series without a change that are as correlated as one that may have one.
struct Correlated {
    correlation: f64,
    /// Added to that share of the value before.
    steps: Vec<f64>,
}

impl Correlated {
    /// Takes the levels of a series.
    fn new(parts: &[&[f64]]) -> Correlated {
        let correlation = correlation(parts, 1.0);
        let mut values: Vec<f64> = Vec::new();
        for part in parts {
            let (mean, _) = mean_sd(part.iter().copied());
            values.extend(part.iter().map(|value| value - mean));
        }
        let steps = values.windows(2).map(|two| two[1] - correlation * two[0]);
        let steps: Vec<f64> = steps.collect();
        let (mean, _) = mean_sd(steps.iter().copied());
        // Each level took a degree of freedom.
        let count = values.len() as f64;
        let scale = (count / (count - parts.len() as f64).max(1.0)).sqrt();
        Correlated { correlation, steps: steps.iter().map(|step| scale * (step - mean)).collect() }
    }

    /// Draws a series of this length into a buffer.
    fn series(&self, length: usize, random: &mut ChaCha8Rng, into: &mut Vec<f64>) {
        into.clear();
        let mut state = 0.0;
        for number in 0..length + SETTLING {
            state = self.correlation * state + self.steps[random.random_range(0..self.steps.len())];
            if number >= SETTLING {
                into.push(state);
            }
        }
    }
}

/// Some of the values.
#[derive(Clone, Copy)]
struct Part {
    n: f64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Part {
    const EMPTY: Part = Part { n: 0.0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY };

    fn with(self, value: f64) -> Part {
        let (least, most) = (self.least.min(value), self.most.max(value));
        Part { n: self.n + 1.0, sum: self.sum + value, least, most }
    }

    fn without(self, value: f64) -> Part {
        Part { n: self.n - 1.0, sum: self.sum - value, ..self }
    }

    fn mean(self) -> f64 {
        self.sum / self.n
    }
}

/// The sum of squares between two parts without the value that contributes most to it: the largest
/// of the higher part, or the smallest of the lower one. 0 where that one makes the difference, as
/// in a part of one value: a level is one without any one of its values too, so it lasts for two or
/// more.
fn between(a: Part, b: Part) -> f64 {
    let squares = |low: Part, high: Part| {
        (high.mean() - low.mean()).max(0.0).powi(2) * low.n * high.n / (low.n + high.n)
    };
    let (low, high) = if a.mean() < b.mean() { (a, b) } else { (b, a) };
    squares(low.without(low.least), high).min(squares(low, high.without(high.most)))
}

/// The cut with the largest sum of squares between its parts, the first of equal ones; `None` where
/// there is no room for two levels, or nothing differs.
fn best_cut(values: &[f64]) -> Option<(usize, f64)> {
    // What follows each place, the last place first.
    let follows = values.iter().rev().scan(Part::EMPTY, |part, value| {
        *part = part.with(*value);
        Some(*part)
    });
    let mut follows: Vec<Part> = follows.collect();
    let (mut before, mut best) = (Part::EMPTY, None);
    for (at, value) in values.iter().enumerate() {
        let after = follows.pop()?;
        let between = between(before, after);
        if between > best.map_or(0.0, |(_, most)| most) {
            best = Some((at, between));
        }
        before = before.with(*value);
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
    fn a_change_is_found_however_small_it_is_against_the_level() {
        // The sums of such values as they are have rounding errors as large as the change.
        let high = [vec![4e15; 10], vec![4e15 + 1.0; 10]].concat();
        assert_eq!(change_points(&high), [10]);
    }

    #[test]
    fn the_first_of_two_equal_cuts_is_taken() {
        // The middle value belongs to either level: the series is its own mirror image.
        let mirrored = [vec![0.0; 5], vec![0.5], vec![1.0; 5]].concat();
        assert_eq!(change_points(&mirrored), [5]);
    }

    #[test]
    fn the_sum_of_squares_is_that_without_the_value_that_contributes_most() {
        // Cut at 3, the means are 2/3 and 4.5. Without the 5 they are 2/3 and 4, and the sum is
        // (10/3)^2 * 3 * 1/4 = 8.3. Without the 0 they are 1 and 4.5: 3.5^2 * 2 * 2/4 = 12.25. The
        // smaller one counts.
        let (at, between) = best_cut(&[0.0, 1.0, 1.0, 4.0, 5.0]).unwrap();
        assert_eq!(at, 3);
        assert!((between - 25.0 / 3.0).abs() < 1e-12, "{between}");
        let (at, falling) = best_cut(&[-0.0, -1.0, -1.0, -4.0, -5.0]).unwrap();
        assert_eq!((at, falling), (3, between));
        assert_eq!(best_cut(&[0.0, 0.0, 9.0]), None, "of the last value alone nothing is left");
        assert_eq!(best_cut(&[9.0, 0.0, 0.0]), None);
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
    fn an_outlier_at_any_place_is_no_change() {
        for (n, sd, outlier) in [(20, 0.02, 1.0), (100, 0.02, 1.0), (100, 0.02, -0.5)] {
            let places = (0..n).filter(|place| {
                let mut values = levels(*place as u64, &[(1.0, n)], sd);
                values[*place] += outlier;
                !change_points(&values).is_empty()
            });
            let places: Vec<usize> = places.collect();
            assert!(places.len() * 9 <= n, "of {n} one in 20 by chance: {places:?}");
        }
        for place in 0..20 {
            let mut values = vec![0.1; 20];
            values[place] = 0.7;
            assert!(change_points(&values).is_empty(), "at {place}, among equal ones");
        }
    }

    #[test]
    fn the_last_value_alone_is_no_change_and_the_last_two_are_one() {
        let changes = |seed, last: &[f64]| {
            let mut values = levels(seed, &[(1.0, 90)], 0.02);
            values.extend(last);
            change_points(&values)
        };
        let found = (0..20).filter(|seed| !changes(*seed, &[2.0]).is_empty());
        assert!(found.count() <= 4, "one in 20 by chance");
        assert!((0..20).all(|seed| changes(seed, &[2.0, 2.0]).contains(&90)));
    }

    #[test]
    fn chance_rarely_makes_a_change() {
        let found =
            (0..100).filter(|seed| !change_points(&levels(*seed, &[(1.0, 15)], 0.1)).is_empty());
        assert!(found.count() <= 11, "one in 20");
    }

    /// A first-order autoregression of these steps, without its first 50 values.
    fn correlated(steps: &[f64], factor: f64) -> Vec<f64> {
        let mut state = 0.0;
        let mut series = Vec::new();
        for step in steps {
            state = factor * state + step;
            series.push(state);
        }
        series.split_off(50)
    }

    /// The share of series of first-order autoregressions without a change that have one.
    fn found_in_correlated(values: usize, factor: f64) -> f64 {
        let found = (0..200).filter(|seed| {
            let mut chance = random(1000 + *seed);
            let series = correlated(&normal(&mut chance, values + 50, 0.0, 0.1), factor);
            !change_points(&series).is_empty()
        });
        found.count() as f64 / 200.0
    }

    #[test]
    fn correlation_makes_few_changes() {
        for (values, factor, most) in [(20, 0.3, 0.12), (40, 0.3, 0.1), (40, 0.6, 0.12)] {
            let share = found_in_correlated(values, factor);
            assert!(share <= most, "{values} values, {factor}: {share}");
        }
    }

    #[test]
    fn correlation_is_that_about_the_levels() {
        // Around 0 and around 10: neighbours are alike, and the step between the levels is none.
        let alternating = [1.0, -1.0].repeat(50);
        let higher: Vec<f64> = alternating.iter().map(|value| value + 10.0).collect();
        assert_eq!(correlation(&[&alternating, &higher], 0.0), 0.0);
        let alike = [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0].repeat(10);
        // Of the 79 products of neighbours 60 are 1 and 19 are -1.
        let seen = (60.0 - 19.0) / 80.0 * 160.0 / 158.0;
        let known = seen + (3.0 + 9.0 * seen) / 160.0;
        let found = correlation(&[&alike, &alike], 0.0);
        assert!((found - known).abs() < 1e-12, "{found} {known}");
        assert!(
            (correlation(&[&alike, &alike], 1.0) - known - 1.0 / 160.0_f64.sqrt()).abs() < 1e-12
        );
        assert_eq!(correlation(&[&[1.0; 5], &[2.0; 5]], 0.0), 0.0);
    }

    #[test]
    fn intervals_of_changes_cover_where_values_are_correlated() {
        for factor in [0.0, 0.3, 0.6] {
            let hits = (0..300).filter(|seed| {
                let mut chance = random(*seed);
                let series = correlated(&normal(&mut chance, 90, 0.0, 0.05), factor);
                let (_, interval) = level_change(&series[..20], &series[20..]).unwrap();
                interval.is_some_and(|i| i.low.0 <= 0.0 && 0.0 <= i.high.0)
            });
            let covered = hits.count() as f64 / 300.0;
            assert!(covered >= 0.92, "{factor}: {covered}");
        }
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
        let (_, interval) = level_change(&[0.0], &[0.1, 0.2]).unwrap();
        assert_eq!(interval, None, "one value has no spread");
    }
}
