//! Rounds in rising order, and all of them together without a merge.

use super::quantile::Ranked;
use wiregauge_sample::histogram::LiveHistogram;

/// One round's samples in rising order, as keys that order like them.
pub struct Run(Vec<u64>);

/// A key whose order as a whole number is that of the samples: the bits of a positive number rise
/// with it, those of a negative one fall (IEEE 754, totalOrder). NaN becomes +infinity.
fn key(x: f64) -> u64 {
    let bits = if x.is_nan() { f64::INFINITY.to_bits() } else { x.to_bits() };
    bits ^ (((bits as i64 >> 63) as u64) | (1 << 63))
}

fn sample(key: u64) -> f64 {
    let flip = if key >> 63 == 1 { 1 << 63 } else { u64::MAX };
    f64::from_bits(key ^ flip)
}

impl Run {
    /// Sorts a copy of the samples; NaN becomes +infinity.
    pub fn sorted(samples: &[f64]) -> Self {
        let mut keys: Vec<u64> = samples.iter().map(|x| key(*x)).collect();
        keys.sort_unstable();
        Run(keys)
    }
}

impl Ranked for Run {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn at_rank(&self, rank: u64) -> f64 {
        sample(self.0[(rank.clamp(1, self.count()) - 1) as usize])
    }

    fn count_at_most(&self, ns: f64) -> u64 {
        self.0.partition_point(|k| sample(*k) <= ns) as u64
    }
}

/// One round's histogram as a table that can be searched.
pub struct Bins {
    /// Values of the bins in ns, rising, the exact extremes among them.
    values: Vec<f64>,
    /// Samples up to and with each value.
    up_to: Vec<u64>,
    lost: u64,
}

impl Bins {
    /// The bins of a histogram that are not empty.
    pub fn new(histogram: &LiveHistogram) -> Self {
        let (mut values, mut up_to, mut seen) = (Vec::new(), Vec::new(), 0_u64);
        let mut push = |value: f64, times: u64| {
            if times > 0 {
                seen += times;
                values.push(value);
                up_to.push(seen);
            }
        };
        let finite = histogram.totals.finite;
        let mut left = finite;
        for (middle, times) in histogram.values_ns() {
            // The smallest and the largest are known exactly: one sample each.
            let smallest = u64::from(left == finite);
            let largest = u64::from(left == times && finite > 1);
            push(histogram.min_ns().unwrap_or(middle), smallest);
            push(middle, times - smallest - largest);
            push(histogram.max_ns().unwrap_or(middle), largest);
            left -= times;
        }
        Bins { values, up_to, lost: histogram.totals.lost }
    }
}

impl Ranked for Bins {
    fn count(&self) -> u64 {
        self.finite() + self.lost
    }

    fn at_rank(&self, rank: u64) -> f64 {
        let bin = self.up_to.partition_point(|seen| *seen < rank);
        self.values.get(bin).copied().unwrap_or(f64::INFINITY)
    }

    fn count_at_most(&self, ns: f64) -> u64 {
        let bins = self.values.partition_point(|v| *v <= ns);
        let lost = if ns == f64::INFINITY { self.lost } else { 0 };
        lost + if bins == 0 { 0 } else { self.up_to[bins - 1] }
    }
}

/// All rounds as one sample, without merging them.
pub struct Pooled<T>(pub Vec<T>);

impl<T: Ranked> Ranked for Pooled<T> {
    fn count_at_most(&self, ns: f64) -> u64 {
        self.0.iter().map(|r| r.count_at_most(ns)).sum()
    }

    fn count(&self) -> u64 {
        self.0.iter().map(Ranked::count).sum()
    }

    /// The smallest value with `rank` samples at or below it is a sample: 64 counts in each round
    /// instead of a merge of all.
    fn at_rank(&self, rank: u64) -> f64 {
        let rank = rank.clamp(1, self.count());
        first(f64::NEG_INFINITY, f64::INFINITY, |value| self.count_at_most(value) >= rank)
    }
}

/// The smallest value above `below` and up to `up_to` at which something holds, if from there on it
/// holds at all: bisection on the 2^64 keys. `up_to` where it holds nowhere.
pub fn first(below: f64, up_to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (key(below), key(up_to));
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(sample(middle)) { high = middle } else { low = middle + 1 }
    }
    // Plus zero: the search may end at -0, which equals the 0 that was measured.
    sample(low) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_order_as_the_samples_do() {
        let inf = f64::INFINITY;
        let rising = [-inf, -2.5, -1e-300, -0.0, 0.0, 1e-300, 3.0, inf];
        assert!(rising.map(key).is_sorted());
        assert!(rising.iter().all(|x| sample(key(*x)).to_bits() == x.to_bits()));
        assert_eq!(key(f64::NAN), key(inf));
        assert_eq!(key(-f64::NAN), key(inf));
    }

    #[test]
    fn what_a_histogram_lost_lies_above_every_value() {
        let mut histogram = LiveHistogram::new(1.0).unwrap();
        histogram.record_many(5, 2);
        histogram.record_lost(3);
        let bins = Bins::new(&histogram);
        let up_to = [4.0, 5.0, f64::MAX, f64::INFINITY].map(|ns| bins.count_at_most(ns));
        assert_eq!((up_to, bins.count()), ([0, 2, 2, 5], 5));
        assert_eq!((bins.at_rank(2), bins.at_rank(3)), (5.0, f64::INFINITY));
    }

    #[test]
    fn a_zero_has_no_sign() {
        let pooled = Pooled(vec![Run::sorted(&[0.0, 0.0])]);
        assert_eq!(pooled.at_rank(1).to_bits(), 0.0_f64.to_bits());
    }

    proptest! {
        #[test]
        fn pooling_sorted_rounds_is_sorting_all(
            rounds in prop::collection::vec(prop::collection::vec(-1e3..1e6_f64, 0..50), 1..6),
            rank in 1_u64..300,
        ) {
            let mut all: Vec<f64> = rounds.concat();
            prop_assume!(!all.is_empty());
            all.sort_by(f64::total_cmp);
            let pooled = Pooled(rounds.iter().map(|r| Run::sorted(r)).collect::<Vec<_>>());
            let expected = all[(rank.min(all.len() as u64) - 1) as usize];
            prop_assert_eq!(pooled.at_rank(rank), expected);
        }
    }
}
