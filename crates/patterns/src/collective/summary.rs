//! What a run of collective operations shows beside their times. The record has it as the run's
//! `details`.

use crate::exchange::Between;
use crate::prelude::*;

/// Ranks of which the record has how often they left last.
const MOST_RANKS: usize = 64;

/// What the record has of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// Operations behind the warm-up, of all rounds.
    pub operations: u64,
    /// Of these, those that a rank entered late, which are in no time.
    pub late: u64,
    /// From the first entry to the last of those that are: the median of each round, in ns.
    pub skew_ns: Between,
    /// Of a non-blocking operation: which share of it, or of the computing, whichever is shorter,
    /// passed while the other did.
    pub overlap: Option<Between>,
    /// How long the ranks computed meanwhile, in ns.
    pub compute_ns: Option<Between>,
    /// Of how many operations each rank was the last to leave, as a share; none of many ranks.
    pub left_last: Vec<f64>,
}

/// What is gathered of the rounds.
#[derive(Debug, Default)]
pub struct Gathered {
    operations: u64,
    late: u64,
    skews_ns: Vec<f64>,
    overlaps: Vec<f64>,
    computes_ns: Vec<f64>,
    left_last: BTreeMap<u32, u64>,
}

impl Gathered {
    /// Takes the operations of a round.
    pub fn take(&mut self, samples: &[Sample]) {
        let warm = |one: &&Sample| !one.flags.has(Flags::WARMUP);
        let is_late = |one: &Sample| one.flags.has(Flags::UNALIGNED);
        self.operations += samples.iter().filter(warm).count() as u64;
        self.late += samples.iter().filter(warm).filter(|one| is_late(one)).count() as u64;
        let kept = || samples.iter().filter(warm).filter(|one| !is_late(one));
        for one in kept() {
            *self.left_last.entry(one.thread).or_default() += 1;
        }
        self.skews_ns.extend(median(kept().map(|one| one.send_ns - one.submit_ns)));
        let took = |overlaps: bool| {
            let own = kept().filter(move |one| one.flags.has(Flags::OVERLAPPED) == overlaps);
            median(own.map(|one| one.receive_ns - one.submit_ns))
        };
        let computed = kept().filter(|one| one.flags.has(Flags::OVERLAPPED));
        let computed = median(computed.map(|one| one.complete_ns - one.submit_ns));
        if let (Some(alone), Some(both), Some(computed)) = (took(false), took(true), computed) {
            self.overlaps.extend(overlap(alone, computed, both));
            self.computes_ns.push(computed);
        }
    }

    /// What the record has of a run of so many ranks.
    pub fn details(&self, ranks: usize) -> Details {
        let of = |all: &[f64]| Between::of_numbers(all.iter().copied());
        let some = |all: &[f64]| (!all.is_empty()).then(|| of(all));
        let all = self.left_last.values().sum::<u64>().max(1) as f64;
        let share = |rank: usize| *self.left_last.get(&(rank as u32)).unwrap_or(&0) as f64 / all;
        Details {
            operations: self.operations,
            late: self.late,
            skew_ns: of(&self.skews_ns),
            overlap: some(&self.overlaps),
            compute_ns: some(&self.computes_ns),
            left_last: if ranks <= MOST_RANKS { (0..ranks).map(share).collect() } else { vec![] },
        }
    }
}

/// Which share of the operation, or of the computing, whichever is shorter, passed while the other
/// did: what both take one after the other less what they took together, over the shorter, from 0
/// to 1 (as the non-blocking tests of the Intel MPI Benchmarks define it).
pub fn overlap(alone_ns: f64, computed_ns: f64, both_ns: f64) -> Option<f64> {
    let shorter = alone_ns.min(computed_ns);
    (shorter > 0.0).then(|| ((alone_ns + computed_ns - both_ns) / shorter).clamp(0.0, 1.0))
}

/// The median; `None` of none.
fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = numbers.filter(|number| !number.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let (below, above) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted.get(below)? + sorted.get(above)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_what_was_saved_of_the_shorter_of_the_two() {
        assert_eq!(overlap(10.0, 10.0, 10.0), Some(1.0));
        assert_eq!(overlap(10.0, 10.0, 20.0), Some(0.0));
        assert_eq!(overlap(10.0, 20.0, 25.0), Some(0.5));
        assert_eq!((overlap(10.0, 10.0, 30.0), overlap(10.0, 10.0, 5.0)), (Some(0.0), Some(1.0)));
        assert_eq!(overlap(0.0, 10.0, 10.0), None);
    }

    /// Entered from 0 to `skew`, left at `took`, with `computed` in between.
    fn operation(skew: f64, took: f64, computed: f64, rank: u32, flags: Flags) -> Sample {
        Sample::new(0, 8, [0.0, 0.0, skew, took, computed], flags).of_thread(rank)
    }

    #[test]
    fn late_operations_are_counted_and_in_no_figure() {
        let none = Flags::default();
        let mut gathered = Gathered::default();
        gathered.take(&[
            operation(1.0, 10.0, f64::NAN, 1, none),
            operation(3.0, 10.0, f64::NAN, 1, none),
            operation(2.0, 15.0, 10.0, 0, Flags::OVERLAPPED),
            operation(900.0, 999.0, f64::NAN, 0, Flags::UNALIGNED),
            operation(900.0, 999.0, f64::NAN, 0, Flags::WARMUP),
        ]);
        let found = gathered.details(2);
        assert_eq!((found.operations, found.late, found.skew_ns.value), (4, 1, 2.0));
        assert_eq!(found.overlap.map(|overlap| overlap.value), Some(0.5));
        assert_eq!(found.compute_ns.map(|compute| compute.value), Some(10.0));
        assert_eq!(found.left_last, [1.0 / 3.0, 2.0 / 3.0]);
    }
}
