//! Compares effective sample sizes and intervals with values that `tests/recompute.py`, an
//! independent implementation, computed from the same series.

use super::effective::effective_n;
use super::{Interval, Summary, summarize};

/// An AR(1) series: half of the sample before, plus a number of a linear congruential generator.
/// The arithmetic is exact in every language.
fn series(seed: u64) -> Vec<f64> {
    let (mut state, mut last) = (seed, 0.0);
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        last = last * 0.5 + (state >> 40) as f64;
        last
    };
    (0..400).map(|_| next()).collect()
}

fn rounds() -> Vec<Vec<f64>> {
    (1..=3).map(series).collect()
}

#[test]
fn the_effective_sample_size_is_that_of_another_program() {
    let of = |q: f64| effective_n(&rounds(), q);
    for (q, known) in [
        (17_079_164.693_293_706, 517.047_150_495_06),
        (24_449_149.172_562_443, 667.842_914_596_796_3),
    ] {
        assert!((of(q) / known - 1.0).abs() < 1e-9, "{} at {q}", of(q));
    }
}

#[test]
fn the_bounds_of_a_quantile_are_those_of_another_program() {
    let found: Summary = summarize(&rounds(), f64::INFINITY);
    let bounds = |interval: Option<Interval>| interval.map(|i| (i.low.0, i.high.0)).unwrap();
    let p90 = found.quantile(0.9).unwrap();
    assert_eq!(p90.value.unwrap().0, 24_449_149.172_562_443);
    assert_eq!(bounds(p90.within), (23_818_801.347_708_11, 25_092_590.009_674_344));
    assert_eq!(bounds(p90.between), (23_113_185.715_864_077, 25_834_352.418_463_513));
}
