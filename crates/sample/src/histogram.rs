//! The histogram of a run too long to keep every sample.
//!
//! EXECUTIVE SUMMARY: a quantile read from it is within 0.05 % of a sample, or within half a unit
//! where that is more; count, extremes and sum are exact; nothing overflows in 24 h at
//! 100 M messages/s.
//!
//! DETAILS: hdrhistogram with 3 significant digits splits each power of two into 1024 bins (values
//! below 2048 units have one each), so a bin is at most 1/1024 of its value wide and its middle at
//! most 1/2048 = 0.049 % from any value in it. 2^48 units in bins of 8 bytes take 312 KiB, all
//! allocated at the start. 8.64e12 messages are 2^43 (a `u64` counts them), and their sum below
//! 2^91 units (an `i128` holds it).

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The unit where nothing else is said: 1/64 ns, as fine as a stamp of 24 h in an `f64` is. A unit
/// coarser than 1/16 ns would cost more than 0.1 % at the 30 ns of the fastest transports.
pub const DEFAULT_UNIT_NS: f64 = 1.0 / 64.0;

/// Values above this many units go into the last bin: 73 min in 1/64 ns, 26 h in ticks of
/// 3 GHz. The maximum and the sum stay exact.
pub const HIGHEST_UNITS: u64 = (1 << 48) - 1;

/// A histogram holds at most this many samples: an `f64` counts exactly to here, and that is 1000
/// days at 100 M messages/s. Only what is read from outside or merged can come near it.
pub const MOST_SAMPLES: u64 = 1 << 53;

/// The relative error of a value read from the bins.
pub const RELATIVE_ERROR: f64 = 1.0 / 2048.0;

/// Durations by size, counted while they are measured: recording never allocates.
///
/// A duration is a whole number of units: of clock ticks in a measured loop, where nothing is
/// converted, else of [`DEFAULT_UNIT_NS`].
#[derive(Clone, Debug)]
pub struct LiveHistogram {
    /// What is known exactly.
    pub totals: Totals,
    bins: Histogram<u64>,
}

/// What a histogram knows exactly, whatever its bins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Nanoseconds of one unit.
    pub unit_ns: f64,
    /// Samples that are not lost.
    pub finite: u64,
    /// Lost messages.
    pub lost: u64,
    /// Smallest sample in units; above `max` if there are no samples.
    pub min: i64,
    /// Largest sample in units.
    pub max: i64,
    /// Sum of the samples in units.
    pub sum: i128,
}

/// What is wrong with a histogram from outside, or with a unit: a sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct HistogramError(String);

const TOO_MANY: &str = "more than 2^53 samples";

fn wrong(sentence: impl Into<String>) -> HistogramError {
    HistogramError(sentence.into())
}

fn inconsistent(is_wrong: bool, why: &str) -> Result<(), HistogramError> {
    if is_wrong { Err(wrong(format!("inconsistent histogram: {why}"))) } else { Ok(()) }
}

/// A [`LiveHistogram`] as it is written: the bins that are not empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SparseHistogram {
    /// What is known exactly.
    pub totals: Totals,
    /// (the middle of a bin in units, samples in it), rising.
    pub bins: Vec<(u64, u64)>,
}

impl LiveHistogram {
    /// An empty histogram in units of `unit_ns` nanoseconds, all memory allocated.
    ///
    /// # Errors
    /// A unit that is not finite and positive.
    pub fn new(unit_ns: f64) -> Result<Self, HistogramError> {
        if !(unit_ns.is_finite() && unit_ns > 0.0) {
            return Err(wrong(format!(
                "a histogram's unit of {unit_ns} ns is not allowed; it must be finite and above 0"
            )));
        }
        let bins = Histogram::new_with_bounds(1, HIGHEST_UNITS, 3);
        let bins = bins.map_err(|_| wrong("no memory for a histogram"))?;
        let (min, max) = (i64::MAX, i64::MIN);
        Ok(LiveHistogram { totals: Totals { unit_ns, finite: 0, lost: 0, min, max, sum: 0 }, bins })
    }

    /// Samples, lost ones included.
    pub fn count(&self) -> u64 {
        self.totals.finite + self.totals.lost
    }

    /// Counts one duration in units. A negative one (clocks of two hosts) counts as 0 in the bins
    /// and in full in the minimum and in the sum.
    #[inline]
    pub fn record(&mut self, units: i64) {
        self.record_many(units, 1);
    }

    /// Counts a duration, in units, `times` times.
    #[inline]
    pub fn record_many(&mut self, units: i64, times: u64) {
        if times == 0 {
            return;
        }
        self.bins.saturating_record_n((units.max(0) as u64).min(HIGHEST_UNITS), times);
        let totals = &mut self.totals;
        totals.finite += times;
        totals.min = totals.min.min(units);
        totals.max = totals.max.max(units);
        totals.sum += i128::from(units) * i128::from(times);
    }

    /// Counts a finite duration in nanoseconds `times` times, to the nearest unit.
    pub fn record_ns_many(&mut self, ns: f64, times: u64) {
        self.record_many((ns / self.totals.unit_ns).round() as i64, times);
    }

    /// Counts one duration in nanoseconds, to the nearest unit; an infinite one or NaN is a lost
    /// message.
    pub fn record_ns(&mut self, ns: f64) {
        if ns.is_finite() { self.record_ns_many(ns, 1) } else { self.record_lost(1) }
    }

    /// Counts lost messages: samples at +infinity.
    pub fn record_lost(&mut self, times: u64) {
        self.totals.lost += times;
    }

    /// Adds all that another histogram has counted.
    ///
    /// # Errors
    /// Other units than this one's, or more than [`MOST_SAMPLES`] together.
    pub fn merge(&mut self, other: &LiveHistogram) -> Result<(), HistogramError> {
        let samples = self.count().checked_add(other.count());
        inconsistent(samples.is_none_or(|n| n > MOST_SAMPLES), TOO_MANY)?;
        let (own, other, bins) = (&mut self.totals, &other.totals, &other.bins);
        if own.unit_ns.to_bits() != other.unit_ns.to_bits() {
            return Err(wrong(format!(
                "histograms in units of {} ns and of {} ns cannot be merged; record both in one \
                 unit",
                own.unit_ns, other.unit_ns
            )));
        }
        self.bins.add(bins).map_err(|_| wrong("no memory for a histogram"))?;
        own.finite += other.finite;
        own.lost += other.lost;
        own.min = own.min.min(other.min);
        own.max = own.max.max(other.max);
        own.sum += other.sum;
        Ok(())
    }

    /// Smallest finite sample in ns, exact; `None` without one.
    pub fn min_ns(&self) -> Option<f64> {
        self.exact(self.totals.min as f64)
    }

    /// Largest finite sample in ns, exact; `None` without one.
    pub fn max_ns(&self) -> Option<f64> {
        self.exact(self.totals.max as f64)
    }

    /// Mean of the finite samples in ns, exact but for the last rounding; `None` where there is
    /// none.
    pub fn mean_ns(&self) -> Option<f64> {
        self.exact(self.totals.sum as f64 / self.totals.finite as f64)
    }

    /// So many units in ns, where there are finite samples.
    fn exact(&self, units: f64) -> Option<f64> {
        (self.totals.finite > 0).then_some(units * self.totals.unit_ns)
    }

    /// Sum of squared deviations from `centre` in ns^2, from the middles of the bins: relative
    /// error at most twice [`RELATIVE_ERROR`] of the values' squares.
    pub fn squares_about(&self, centre: f64) -> f64 {
        self.values_ns().map(|(x, times)| (x - centre) * (x - centre) * times as f64).sum()
    }

    /// (value in ns, samples) of every bin that is not empty, rising: for tables and plots.
    pub fn values_ns(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.bins.iter_recorded().map(|bin| {
            let middle = self.middle(bin.value_iterated_to());
            (self.within_extremes(middle), bin.count_at_value())
        })
    }

    /// The bins that are not empty, to be written.
    pub fn to_sparse(&self) -> SparseHistogram {
        let bins = self.bins.iter_recorded();
        let totals = match self.totals.finite {
            0 => Totals { min: 0, max: 0, ..self.totals },
            _ => self.totals,
        };
        SparseHistogram {
            totals,
            bins: bins.map(|b| (self.middle(b.value_iterated_to()), b.count_at_value())).collect(),
        }
    }

    /// A histogram that was written.
    ///
    /// # Errors
    /// A unit that is not allowed, or figures that contradict each other.
    pub fn from_sparse(sparse: &SparseHistogram) -> Result<Self, HistogramError> {
        let Totals { unit_ns, finite, lost, min, max, sum } = sparse.totals;
        let mut whole = LiveHistogram::new(unit_ns)?;
        let mut counted = 0_u64;
        for &(units, times) in &sparse.bins {
            inconsistent(units > HIGHEST_UNITS, "a bin lies above the highest value")?;
            counted = counted.saturating_add(times);
            whole.bins.saturating_record_n(units, times);
        }
        inconsistent(counted.saturating_add(lost) > MOST_SAMPLES, TOO_MANY)?;
        inconsistent(counted != finite, "the bins do not add up to the count")?;
        inconsistent(counted > 0 && min > max, "the smallest is above the largest")?;
        let n = i128::from(counted);
        let possible = i128::from(min) * n..=i128::from(max) * n;
        inconsistent(!possible.contains(&sum), "no samples in these bins have that sum")?;
        // Extremes of no sample must not count in a merge.
        let (min, max) =
            if counted > 0 { (min, max) } else { (whole.totals.min, whole.totals.max) };
        whole.totals = Totals { min, max, ..sparse.totals };
        Ok(whole)
    }

    fn middle(&self, units: u64) -> u64 {
        self.bins.median_equivalent(units).min(HIGHEST_UNITS)
    }

    /// A value from a bin in ns, no further out than the exact extremes.
    fn within_extremes(&self, units: u64) -> f64 {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        let Totals { unit_ns, min, max, .. } = self.totals;
        units.max(min).min(max.max(min)) as f64 * unit_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram() -> LiveHistogram {
        LiveHistogram::new(DEFAULT_UNIT_NS).unwrap()
    }

    #[test]
    fn a_histogram_that_contradicts_itself_is_refused() {
        let mut h = histogram();
        h.record_ns(5.0);
        let good = h.to_sparse();
        let totals = |totals| SparseHistogram { totals, ..good.clone() };
        let cases = [
            totals(Totals { unit_ns: f64::NAN, ..good.totals }),
            totals(Totals { unit_ns: -1.0, ..good.totals }),
            totals(Totals { finite: 2, ..good.totals }),
            totals(Totals { lost: u64::MAX, ..good.totals }),
            totals(Totals { min: 9, max: 1, ..good.totals }),
            SparseHistogram { bins: vec![(u64::MAX, 1)], ..good.clone() },
            SparseHistogram { bins: vec![(1, u64::MAX), (2, 2)], ..good.clone() },
            totals(Totals { sum: i128::MAX, ..good.totals }),
            totals(Totals { sum: good.totals.sum - 1, ..good.totals }),
        ];
        for case in cases {
            assert!(LiveHistogram::from_sparse(&case).is_err(), "{case:?}");
        }
        let mut ticks = LiveHistogram::new(0.5).unwrap();
        assert!(ticks.merge(&h).unwrap_err().to_string().contains("cannot be merged"));
    }

    #[test]
    fn recording_keeps_the_size_of_the_bins() {
        let mut h = histogram();
        let before = h.bins.distinct_values();
        [0, 1, 1 << 47, 1 << 60].into_iter().for_each(|v| h.record(v));
        assert_eq!(h.bins.distinct_values(), before);
        assert!(before * 8 <= 312 * 1024, "{before}");
    }

    #[test]
    fn a_histogram_of_lost_messages_has_no_extremes_and_moves_no_others() {
        assert!(LiveHistogram::new(0.0).is_err());
        let mut lost = histogram();
        lost.record_lost(3);
        assert_eq!((lost.min_ns(), lost.max_ns(), lost.mean_ns()), (None, None, None));
        let mut sparse = lost.to_sparse();
        let mut h = histogram();
        h.record_ns(5.0);
        h.merge(&LiveHistogram::from_sparse(&sparse).unwrap()).unwrap();
        assert_eq!((h.min_ns(), h.max_ns(), h.count()), (Some(5.0), Some(5.0), 4));
        (sparse.totals.min, sparse.totals.max) = (9, 1);
        assert!(LiveHistogram::from_sparse(&sparse).is_ok());
    }

    #[test]
    fn the_largest_value_and_the_most_samples_that_are_allowed_are_taken() {
        let half = MOST_SAMPLES / 2;
        let (mut one, mut other) = (histogram(), histogram());
        one.record_many(1, half);
        other.record_lost(half);
        one.merge(&other).unwrap();
        assert_eq!(LiveHistogram::from_sparse(&one.to_sparse()).unwrap().count(), MOST_SAMPLES);
        let mut more = histogram();
        more.record(1);
        assert!(one.merge(&more).is_err());
        let highest = HIGHEST_UNITS as i64;
        let totals = Totals { min: highest, max: highest, sum: i128::from(highest), ..more.totals };
        let sparse = SparseHistogram { totals, bins: vec![(HIGHEST_UNITS, 1)] };
        assert!(LiveHistogram::from_sparse(&sparse).is_ok());
    }

    #[test]
    fn squares_are_of_the_distances_from_the_centre() {
        let mut h = LiveHistogram::new(1.0).unwrap();
        h.record_many(3, 2);
        h.record(7);
        assert_eq!(h.squares_about(4.0), 2.0 + 9.0);
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(
            samples in prop::collection::vec(-10_i64..1_000_000_000_000, 0..100), lost in 0_u64..9,
        ) {
            let mut h = histogram();
            samples.iter().for_each(|x| h.record(*x));
            h.record_lost(lost);
            let sparse = h.to_sparse();
            let json = serde_json::to_string(&sparse).unwrap();
            let read: SparseHistogram = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&LiveHistogram::from_sparse(&read).unwrap().to_sparse(), &sparse);
        }
    }
}
