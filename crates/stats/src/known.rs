//! Compares effective sample sizes and intervals with values that `tests/recompute.py`, an
//! independent implementation, computed from the same series.

use super::effective::effective_n;
use super::{Basis, Interval, Summary, summarize};

/// An AR(1) series: a share of the sample before, plus a number of a linear congruential generator.
/// Every language computes the same.
fn ar1(seed: u64, samples: usize, share: f64) -> Vec<f64> {
    let (mut state, mut last) = (seed, 0.0);
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        last = last * share + (state >> 40) as f64;
        last
    };
    (0..samples).map(|_| next()).collect()
}

/// Independent samples, higher in the first half of each period.
fn alternating(seed: u64, samples: usize, period: usize) -> Vec<f64> {
    let mut all = ar1(seed, samples, 0.0);
    let high = all.iter_mut().enumerate().filter(|(i, _)| i % period < period / 2);
    high.for_each(|(_, sample)| *sample += 2.0_f64.powi(22));
    all
}

/// An AR(1) series of which every 37th sample is lost.
fn lossy(seed: u64, samples: usize) -> Vec<f64> {
    let mut all = ar1(seed, samples, 0.5);
    all.iter_mut().skip(36).step_by(37).for_each(|sample| *sample = f64::INFINITY);
    all
}

fn rounds() -> Vec<Vec<f64>> {
    (1..=3).map(|seed| ar1(seed, 400, 0.5)).collect()
}

fn assert_sizes(rounds: &[Vec<f64>], known: &[(f64, f64)]) {
    for (q, known) in known {
        let found = effective_n(rounds, *q);
        assert!((found / known - 1.0).abs() < 1e-9, "{found} at {q}, not {known}");
    }
}

#[test]
fn the_effective_sample_size_is_that_of_another_program() {
    let known = [
        (17_079_164.693_293_706, 517.047_150_495_06),
        (24_449_149.172_562_443, 667.842_914_596_796_3),
    ];
    assert_sizes(&rounds(), &known);
}

#[test]
fn the_effective_size_of_independent_samples_is_that_of_another_program() {
    let known = [(1_694_012.0, 19_973.407_381_929_148), (8_403_205.0, 19_505.051_015_341_17)];
    assert_sizes(&[ar1(1, 20_000, 0.0)], &known);
}

#[test]
fn the_effective_size_from_blocks_is_that_of_another_program() {
    let known = [
        (1_593_942_639.663_941_1, 41.971_728_925_327_92),
        (1_670_698_565.625_633_7, 105.491_580_647_716_2),
        (1_733_026_112.468_937_2, 138.424_029_295_645_34),
    ];
    assert_sizes(&[ar1(1, 12_000, 0.995), ar1(2, 9_000, 0.995)], &known);
    let known = [(3_369_164.0, 741.711_307_286_369), (10_544_429.0, 1_238.075_190_961_187_2)];
    assert_sizes(&[alternating(1, 20_000, 4_000), alternating(2, 20_000, 4_000)], &known);
    let known = [(3_474_974.0, 230.973_839_036_714_37), (10_715_322.0, 1_496.703_607_274_743)];
    assert_sizes(&[alternating(1, 3_000, 400)], &known);
}

#[test]
fn the_effective_size_where_lags_are_limited_is_that_of_another_program() {
    // By the work: 447 lags of the samples are too few.
    assert_sizes(&[ar1(1, 600_000, 0.99)], &[(838_344_454.694_117_9, 4_385.097_180_113_182)]);
    // By the length of the rounds: 19 lags of the blocks.
    let rounds: Vec<Vec<f64>> = (1..=5).map(|seed| ar1(seed, 5_000, 0.999)).collect();
    assert_sizes(&rounds, &[(7_741_928_281.895_678, 8.703_221_249_032_094)]);
}

#[test]
fn blocks_count_from_64_in_all_and_16_in_each_round() {
    let rounds = |count: u64, samples: usize| -> Vec<Vec<f64>> {
        (1..=count).map(|seed| alternating(seed, samples, 400)).collect()
    };
    assert_sizes(&rounds(4, 1_024), &[(10_933_768.0, 793.723_853_751_847_3)]);
    assert_sizes(&rounds(8, 640), &[(10_805_475.0, 2_356.163_490_596_933_6)]);
}

#[test]
fn the_effective_size_of_short_rounds_is_that_of_another_program() {
    let unequal = [(1, 100), (2, 777), (3, 65)].map(|(seed, n)| ar1(seed, n, 0.9));
    let known = [
        (67_718_512.396_454_22, 79.729_277_423_844_88),
        (84_489_106.878_242_55, 72.602_250_970_402_66),
        (101_043_276.210_838_4, 95.533_944_403_432_66),
    ];
    assert_sizes(&unequal, &known);
    let tiny = [(1, 3), (2, 5), (3, 4)].map(|(seed, n)| ar1(seed, n, 0.0));
    assert_sizes(
        &tiny,
        &[(3_477_408.0, 2.490_031_479_342_037), (7_100_271.0, 7.699_114_515_899_11)],
    );
    let few = [(1, 7), (2, 6)].map(|(seed, n)| ar1(seed, n, 0.5));
    assert_sizes(&few, &[(16_925_951.75, 1.757_173_251_869_225_8)]);
}

#[test]
fn rounds_of_unequal_length_with_losses_have_the_figures_of_another_program() {
    let rounds = [(1, 400), (2, 777), (3, 1_203)].map(|(seed, n)| lossy(seed, n));
    let found = summarize(&rounds, 2.2e7);
    assert_eq!((found.count, found.lost, found.above_threshold), (2_380, 63, 533));
    assert_eq!((found.min.0, found.max_finite.0), (1_899_352.0, 30_546_325.631_538_49));
    let near = |found: f64, known: f64| (found / known - 1.0).abs() < 1e-12;
    assert!(near(found.mean, 16_936_573.145_609_774) && near(found.sd, 5_569_043.090_257_412));
    assert!(near(found.sd_between.unwrap(), 257_882.642_589_941_65));
    assert!(near(found.iqr_within, 8_632_685.879_620_459));
    let of_mean = found.mean_interval.unwrap();
    assert!(near(of_mean.low.0, 16_283_326.379_343_586), "{of_mean:?}");
    assert!(near(of_mean.high.0, 17_616_026.555_880_748), "{of_mean:?}");
    let inf = f64::INFINITY;
    let known = [
        (
            9_555_947.588_358_743,
            [8_758_121.441_837_188, 10_158_605.524_207_52],
            [8_695_689.609_254_142, 10_501_310.237_002_801],
        ),
        (
            17_276_139.958_511_47,
            [16_796_219.069_395_02, 17_864_420.974_427_246],
            [16_647_492.869_701_74, 17_928_526.187_224_254],
        ),
        (
            24_922_946.569_426_59,
            [24_623_108.959_006_406, 25_789_582.597_159_04],
            [23_181_776.400_988_426, 26_794_895.048_509_214],
        ),
        (inf, [inf, inf], [inf, inf]),
    ];
    for (quantile, (value, within, over_rounds)) in found.quantiles.iter().zip(known) {
        let bounds = |interval: Option<Interval>| interval.map(|i| [i.low.0, i.high.0]).unwrap();
        let found = quantile.value.unwrap().0;
        assert!(found == value || near(found, value), "{quantile:?}");
        assert_eq!(bounds(quantile.within), within);
        let ends = bounds(quantile.interval).into_iter().zip(over_rounds);
        let mut ends = ends.into_iter();
        assert!(ends.all(|(found, known)| found == known || near(found, known)), "{quantile:?}");
    }
    let bases: Vec<Basis> = found.quantiles.iter().map(|quantile| quantile.basis).collect();
    let [mean, pooled] = [Basis::GeometricMean, Basis::Pooled];
    assert_eq!(bases, [mean, mean, mean, pooled, pooled, pooled]);
    let shown: Vec<bool> =
        found.quantiles.iter().map(|quantile| quantile.value.is_some()).collect();
    assert_eq!(shown, [true, true, true, true, false, false]);
    assert!((found.quantiles[5].effective_n / 2_289.465_693_098_801 - 1.0).abs() < 1e-9);
}

#[test]
fn the_bounds_of_a_quantile_are_those_of_another_program() {
    let found: Summary = summarize(&rounds(), f64::INFINITY);
    let bounds = |interval: Option<Interval>| interval.map(|i| (i.low.0, i.high.0)).unwrap();
    let p90 = found.quantile(0.9).unwrap();
    assert!((p90.value.unwrap().0 / 24_408_947.212_204_512 - 1.0).abs() < 1e-12);
    assert_eq!(bounds(p90.within), (23_818_801.347_708_11, 25_092_590.009_674_344));
    let (low, high) = bounds(p90.interval);
    assert!((low / 22_686_844.819_166_65 - 1.0).abs() < 1e-12, "{low}");
    assert!((high / 26_261_770.147_289_775 - 1.0).abs() < 1e-12, "{high}");
}
