//! Ranks of histograms of samples.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use wiregauge_sample::histogram::*;
use wiregauge_stats::pooled::{Bins, Run};
use wiregauge_stats::quantile::{Ranked, rank};

fn at_rank(histogram: &LiveHistogram, rank: u64) -> f64 {
    Bins::new(histogram).at_rank(rank)
}

fn histogram() -> LiveHistogram {
    LiveHistogram::new(DEFAULT_UNIT_NS).unwrap()
}

#[test]
fn a_day_at_a_hundred_million_a_second_overflows_nothing() {
    let mut h = histogram();
    let per_second = 100_000_000_u64;
    for second in 0..86_400_i64 {
        h.record_many(64_000 + second, per_second - 1);
        h.record_many(64_000_000, 1);
    }
    h.record_lost(1_000_000);
    let n = 86_400 * per_second;
    assert_eq!(h.count(), n + 1_000_000);
    assert_eq!(h.max_ns(), Some(1_000_000.0));
    let mean = 1000.0 + 86_399.0 / 2.0 / 64.0 + 999_000.0 / per_second as f64;
    assert!((h.mean_ns().unwrap() / mean - 1.0).abs() < 1e-6);
    let values = [0.1, 0.5, 0.9, 0.99, 0.9999].map(|p| at_rank(&h, rank(p, h.count())));
    assert!(values.iter().all(|v| v.is_finite() && *v >= 1000.0));
    assert!(values.is_sorted());
    let whole = LiveHistogram::from_sparse(&h.to_sparse()).unwrap();
    let mut twice = h.clone();
    twice.merge(&whole).unwrap();
    assert_eq!(twice.count(), 2 * h.count());
    assert_eq!(twice.mean_ns(), h.mean_ns());

    let mut slowest = LiveHistogram::new(1.0).unwrap();
    slowest.record_many(HIGHEST_UNITS as i64, n);
    assert_eq!(slowest.mean_ns(), Some(HIGHEST_UNITS as f64));
    let sparse = slowest.to_sparse();
    assert!(sparse.totals.sum > i128::from(u64::MAX), "a sum that needs all its bits");
    let json = serde_json::to_string(&sparse).unwrap();
    assert_eq!(serde_json::from_str::<SparseHistogram>(&json).unwrap(), sparse);
    let bytes = postcard::to_stdvec(&sparse).unwrap();
    assert_eq!(postcard::from_bytes::<SparseHistogram>(&bytes).unwrap(), sparse);
}

#[test]
fn out_of_range_saturates_but_the_extremes_and_the_sum_are_exact() {
    let mut h = LiveHistogram::new(1.0).unwrap();
    h.record(i64::MAX);
    h.record(-5);
    h.record(7);
    assert_eq!(h.max_ns(), Some(i64::MAX as f64));
    assert_eq!(h.min_ns(), Some(-5.0));
    assert_eq!(at_rank(&h, 1), -5.0);
    assert_eq!(at_rank(&h, 2), 7.0);
    assert_eq!(at_rank(&h, 3), i64::MAX as f64);
    assert_eq!(h.to_sparse().totals.sum, i128::from(i64::MAX) + 2);
}

#[test]
fn a_lost_message_is_a_sample_at_infinity() {
    let mut h = histogram();
    (0..99).for_each(|_| h.record_ns(5.0));
    h.record_ns(f64::INFINITY);
    assert_eq!((h.count(), h.totals.lost), (100, 1));
    assert_eq!(at_rank(&h, 99), 5.0);
    assert_eq!(at_rank(&h, 100), f64::INFINITY);
}

proptest! {
    #[test]
    fn every_rank_is_within_the_stated_error(
        mut samples in prop::collection::vec(1.0..1e10_f64, 1..200),
    ) {
        let mut h = histogram();
        samples.iter().for_each(|x| h.record_ns(*x));
        samples.sort_by(f64::total_cmp);
        let bins = Bins::new(&h);
        for r in 1..=samples.len() as u64 {
            let (got, true_ns) = (bins.at_rank(r), Run::sorted(&samples).at_rank(r));
            let allowed = (true_ns * RELATIVE_ERROR).max(DEFAULT_UNIT_NS) * (1.0 + 1e-6);
            prop_assert!((got - true_ns).abs() <= allowed, "{} {}", got, true_ns);
        }
    }
}
