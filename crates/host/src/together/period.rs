//! Whether instants come in a period.

/// Fewest instants of which a period is told.
const FEWEST: usize = 16;
/// Of the distances between neighbours so many must be a multiple of the period, within so much of
/// it: by chance one in five is, so that 13 of 15 are with a probability below 1e-7.
const SHARE: f64 = 0.85;
const WITHIN: f64 = 0.1;
/// Neighbours that lie more periods apart say little of it.
const MOST_PERIODS: f64 = 8.0;
/// The period is among the distances of neighbours: of so many quantiles one is tried each.
const CANDIDATES: usize = 8;

/// The period of instants in rising order, in their unit; `None`: they have none.
///
/// Some may be missing, and each may be off by a twentieth of the period. Error: that of the mean
/// distance, so the more instants the smaller.
pub fn period(instants: &[f64]) -> Option<f64> {
    if instants.len() < FEWEST {
        return None;
    }
    let distances: Vec<f64> = instants.windows(2).map(|two| two[1] - two[0]).collect();
    let mut sorted = distances.clone();
    sorted.sort_by(f64::total_cmp);
    let candidates = (0..CANDIDATES).map(|part| sorted[part * (sorted.len() - 1) / CANDIDATES]);
    let fit = |candidate: f64| {
        let first = fitted(&distances, candidate)?;
        fitted(&distances, first).filter(|period| share(&distances, *period) >= SHARE)
    };
    // The longest that fits: with half of it, all would fit too.
    candidates.filter_map(fit).max_by(f64::total_cmp)
}

/// The period nearest to a guess, by the distances that are few of it.
fn fitted(distances: &[f64], guess: f64) -> Option<f64> {
    let fits = distances.iter().filter(|distance| is_multiple(**distance, guess));
    let (sum, periods) = fits.fold((0.0, 0.0), |(sum, periods), distance| {
        (sum + distance, periods + (distance / guess).round())
    });
    (periods > 0.0).then(|| sum / periods)
}

fn is_multiple(distance: f64, period: f64) -> bool {
    let times = distance / period;
    let whole = times.round();
    (1.0..=MOST_PERIODS).contains(&whole) && (times - whole).abs() <= WITHIN
}

fn share(distances: &[f64], period: f64) -> f64 {
    let fits = distances.iter().filter(|distance| is_multiple(**distance, period)).count();
    fits as f64 / distances.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn few_instants_have_no_period() {
        let few: Vec<f64> = (0..15).map(f64::from).collect();
        assert_eq!(period(&few), None);
        assert_eq!(period(&[]), None);
        assert_eq!(period(&[1.0; 40]), None);
    }

    proptest! {
        #[test]
        fn a_period_is_found_with_some_jitter_and_some_missing(
            seed: u64,
            length_ns in 1e5f64..1e9,
            jitter in 0.0f64..0.04,
            missing in 0.0f64..0.3,
        ) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let all: Vec<f64> = (0..100)
                .filter(|_| random.random::<f64>() >= missing)
                .collect::<Vec<i32>>()
                .into_iter()
                .map(|at| (f64::from(at) + jitter * (random.random::<f64>() - 0.5)) * length_ns)
                .collect();
            let found = period(&all);
            let is_near = found.is_some_and(|found| (found / length_ns - 1.0).abs() < 0.02);
            prop_assert!(is_near, "{:?}", found);
        }

        #[test]
        fn instants_by_chance_have_none(seed: u64, count in 16usize..300) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut at = 0.0;
            let all: Vec<f64> = (0..count)
                .map(|_| {
                    at -= (1.0 - random.random::<f64>()).ln() * 1e6;
                    at
                })
                .collect();
            prop_assert_eq!(period(&all), None);
        }
    }
}
