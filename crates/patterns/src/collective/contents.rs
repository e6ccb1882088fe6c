//! What the blocks of an operation hold, and what must be there when it is over. Pure.
//!
//! Sums are of small whole numbers, which a `double` holds exactly, in whatever order they are
//! added.

use wiregauge_measure::loops::payload;
use wiregauge_transport::collectives::CollectiveOperation;

/// Bytes of a number.
pub const NUMBER: usize = 8;
/// Numbers differ by their place and by the operation, with this period: a prime, so that a part
/// that is shifted or stale shows.
const PERIOD: u64 = 97;

/// One operation of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// What it is.
    pub operation: CollectiveOperation,
    /// This rank, and how many there are.
    pub rank: u32,
    pub ranks: u32,
    /// The number of the operation.
    pub number: u64,
    /// Bytes of a block.
    pub size: usize,
}

impl Turn {
    /// Fills what this rank gives.
    pub fn fill(&self, input: &mut [u8]) {
        if self.operation.adds() {
            let factor = f64::from(self.rank) + 1.0;
            for (place, number) in input.chunks_exact_mut(NUMBER).enumerate() {
                number.copy_from_slice(&(self.addend(place) * factor).to_ne_bytes());
            }
            return;
        }
        if self.size == 0 {
            return;
        }
        for (to, block) in (0..).zip(input.chunks_exact_mut(self.size)) {
            payload::fill(block, self.name(self.rank, to));
        }
    }

    /// Whether what this rank got is what all others gave.
    pub fn is_right(&self, output: &[u8]) -> bool {
        use CollectiveOperation as Of;
        let is_root = self.rank == 0;
        let gets = match self.operation {
            Of::Barrier => false,
            Of::Bcast => !is_root,
            Of::Reduce | Of::Gather | Of::Gatherv => is_root,
            _ => true,
        };
        if !gets || self.size == 0 {
            return true;
        }
        if self.operation.adds() {
            return self.is_sum(output);
        }
        let to = match self.operation {
            Of::Alltoall | Of::Alltoallv | Of::Scatter | Of::Scatterv => self.rank,
            _ => 0,
        };
        let mut blocks = (0..).zip(output.chunks_exact(self.size));
        blocks.all(|(from, block)| payload::verify(block, self.name(from, to)))
    }

    fn is_sum(&self, output: &[u8]) -> bool {
        use CollectiveOperation as Of;
        let parts = output.len() / NUMBER;
        let first = match self.operation {
            Of::ReduceScatter | Of::ReduceScatterBlock => self.rank as usize * parts,
            _ => 0,
        };
        let added = if self.operation == Of::Scan { self.rank + 1 } else { self.ranks };
        let factor = f64::from(added) * (f64::from(added) + 1.0) / 2.0;
        output
            .chunks_exact(NUMBER)
            .enumerate()
            .all(|(place, number)| *number == (self.addend(first + place) * factor).to_ne_bytes())
    }

    /// What rank 0 adds at a place; rank r adds r + 1 times that.
    fn addend(&self, place: usize) -> f64 {
        (1 + (self.number + place as u64) % PERIOD) as f64
    }

    /// The number of the block of a rank for another: below 2^22 pairs of ranks.
    fn name(&self, from: u32, to: u32) -> u64 {
        self.number << 22 | u64::from(from) << 11 | u64::from(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each rank gets of an operation of `ranks`, carried out by its definition.
    fn carried_out(operation: CollectiveOperation, ranks: usize, size: usize) -> Vec<Vec<u8>> {
        use CollectiveOperation as Of;
        let turn = |rank| turn(operation, rank, ranks, size);
        let given: Vec<Vec<u8>> = (0..ranks)
            .map(|rank| {
                let mut input = vec![0; operation.blocks(ranks).0 * size];
                turn(rank).fill(&mut input);
                input
            })
            .collect();
        let block = |from: usize, at: usize| given[from][at * size..(at + 1) * size].to_vec();
        let sum = |most: usize, at: usize| {
            let mut sum = vec![0.0; size / NUMBER];
            for from in 0..most {
                for (place, number) in block(from, at).chunks_exact(NUMBER).enumerate() {
                    sum[place] += f64::from_ne_bytes(number.try_into().unwrap());
                }
            }
            sum.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>()
        };
        let gets = |rank: usize| match operation {
            Of::Barrier => vec![],
            Of::Bcast => block(0, 0),
            Of::Reduce | Of::Allreduce | Of::ReduceBcast => sum(ranks, 0),
            Of::Gather | Of::Gatherv | Of::Allgather | Of::Allgatherv => {
                (0..ranks).flat_map(|from| block(from, 0)).collect()
            }
            Of::Scatter | Of::Scatterv => block(0, rank),
            Of::Alltoall | Of::Alltoallv => (0..ranks).flat_map(|from| block(from, rank)).collect(),
            Of::ReduceScatter | Of::ReduceScatterBlock => sum(ranks, rank),
            Of::Scan => sum(rank + 1, 0),
        };
        (0..ranks).map(gets).collect()
    }

    fn turn(operation: CollectiveOperation, rank: usize, ranks: usize, size: usize) -> Turn {
        Turn { operation, rank: rank as u32, ranks: ranks as u32, number: 5, size }
    }

    #[test]
    fn each_operation_s_result_is_right_and_one_changed_byte_is_not() {
        for &operation in CollectiveOperation::ALL {
            for (rank, mut output) in carried_out(operation, 4, 24).into_iter().enumerate() {
                let own = turn(operation, rank, 4, 24);
                assert!(own.is_right(&output), "{operation:?} at rank {rank}");
                let gets = match operation {
                    CollectiveOperation::Barrier => false,
                    CollectiveOperation::Bcast => rank > 0,
                    CollectiveOperation::Reduce
                    | CollectiveOperation::Gather
                    | CollectiveOperation::Gatherv => rank == 0,
                    _ => true,
                };
                // What the operation before has left.
                assert_eq!(Turn { number: 6, ..own }.is_right(&output), !gets, "{operation:?}");
                output.last_mut().into_iter().for_each(|last| *last ^= 1);
                assert_eq!(own.is_right(&output), !gets, "{operation:?} at rank {rank}");
            }
        }
    }
}
