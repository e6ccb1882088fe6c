//! Whether intervals are those of a Poisson process: the test of Anderson and Darling.

/// The value of [`anderson_darling`] that one sample in 20 of the true distribution exceeds
/// (Stephens 1974, case 0: a distribution that is fully specified).
pub const AT_5_PERCENT: f64 = 2.492;

/// The value that one sample in 1000 exceeds (Marsaglia and Marsaglia 2004).
pub const AT_0_1_PERCENT: f64 = 6.0;

/// The statistic of Anderson and Darling of intervals against the exponential distribution of this
/// mean, 0 for none. The intervals are sorted by it.
///
/// `A2 = -n - 1/n sum (2i + 1) (ln F(x_i) + ln(1 - F(x_(n-1-i))))`, i from 0, x rising. An interval
/// of 0 counts as the smallest that an `f64` has, so that the sum stays finite.
pub fn anderson_darling(intervals: &mut [f64], mean: f64) -> f64 {
    intervals.sort_by(f64::total_cmp);
    let n = intervals.len();
    if n == 0 {
        return 0.0;
    }
    let sum: f64 = (0..n)
        .map(|i| {
            // F(x) = 1 - exp(-x / mean).
            let below = (-(-intervals[i] / mean).exp_m1()).max(f64::MIN_POSITIVE).ln();
            let above = -intervals[n - 1 - i] / mean;
            (2 * i + 1) as f64 * (below + above)
        })
        .sum();
    -(n as f64) - sum / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_two_intervals_have_the_value_that_is_computed_by_hand() {
        // n = 1 at the median: F = 1/2, A2 = -1 - (ln 1/2 + ln 1/2) = 2 ln 2 - 1.
        let ln2 = std::f64::consts::LN_2;
        assert!((anderson_darling(&mut [ln2], 1.0) - (2.0 * ln2 - 1.0)).abs() < 1e-12);
        // n = 2 at F = 1/4 and 3/4: A2 = -2 - 1/2 (1 (ln 1/4 + ln 1/4) + 3 (ln 3/4 + ln 3/4)).
        let at = |f: f64| -(1.0f64 - f).ln() * 5.0;
        let by_hand = -2.0 - 0.5 * (2.0 * 0.25f64.ln() + 6.0 * 0.75f64.ln());
        let found = anderson_darling(&mut [at(0.75), at(0.25)], 5.0);
        assert!((found - by_hand).abs() < 1e-12, "{found} {by_hand}");
    }

    #[test]
    fn the_quantiles_of_the_distribution_fit_it_and_nothing_else_does() {
        let quantiles = |n: usize| -> Vec<f64> {
            (0..n).map(|i| -(1.0 - (i as f64 + 0.5) / n as f64).ln()).collect()
        };
        assert!(anderson_darling(&mut quantiles(1000), 1.0) < 0.01);
        assert!(anderson_darling(&mut quantiles(10_000), 1.05) > AT_0_1_PERCENT, "5 % off");
        assert!(anderson_darling(&mut [1.0; 1000], 1.0) > 100.0, "periodic");
        let uniform: Vec<f64> = (0..1000).map(|i| f64::from(i) / 500.0).collect();
        assert!(anderson_darling(&mut uniform.clone(), 1.0) > AT_0_1_PERCENT);
        assert_eq!(anderson_darling(&mut [], 1.0), 0.0);
        assert!(anderson_darling(&mut [0.0, 1.0], 1.0).is_finite());
    }
}
