//! Operations in which all ranks of a launch take part: what a transport that has them offers
//! beside messages. An endpoint whose traffic is [`Traffic::Collective`](super::Traffic) hands them
//! out.
//!
//! As in the rest of the data path nothing returns an error: a call says whether it succeeded, and
//! [`CollectiveRank::failed`] why not.

use wiregauge_base::options::named_enum;

named_enum! {
    /// The operations, by MPI's names. The root is rank 0.
    #[derive(Default, PartialOrd, Ord)]
    pub enum CollectiveOperation {
        /// Nobody leaves before all have come.
        Barrier = "barrier",
        /// The root's message to all.
        Bcast = "bcast",
        /// The sum of all ranks' vectors, at the root.
        Reduce = "reduce",
        /// The same, at all.
        #[default]
        Allreduce = "allreduce",
        /// A reduce, and a bcast of its result.
        ReduceBcast = "reduce+bcast",
        /// A block of each rank, at the root.
        Gather = "gather",
        /// The same with a length for each block.
        Gatherv = "gatherv",
        /// A block of the root's for each rank.
        Scatter = "scatter",
        /// The same with a length for each block.
        Scatterv = "scatterv",
        /// A block of each rank, at all.
        Allgather = "allgather",
        /// The same with a length for each block.
        Allgatherv = "allgatherv",
        /// A block of each rank for each rank.
        Alltoall = "alltoall",
        /// The same with a length for each block.
        Alltoallv = "alltoallv",
        /// Of the sum of all ranks' vectors each rank has its part.
        ReduceScatter = "reduce_scatter",
        /// The same with parts of one length.
        ReduceScatterBlock = "reduce_scatter_block",
        /// The sum of the vectors of the ranks up to this one.
        Scan = "scan",
    }
}

impl CollectiveOperation {
    /// Whether it adds numbers, of 8 bytes each.
    pub const fn adds(self) -> bool {
        use CollectiveOperation::*;
        matches!(self, Reduce | Allreduce | ReduceBcast | ReduceScatter | ReduceScatterBlock | Scan)
    }

    /// Whether it moves anything.
    pub const fn has_payload(self) -> bool {
        !matches!(self, CollectiveOperation::Barrier)
    }

    /// Blocks of a rank's input, and of its output, among so many ranks.
    pub const fn blocks(self, ranks: usize) -> (usize, usize) {
        use CollectiveOperation::*;
        match self {
            Barrier => (0, 0),
            Bcast | Reduce | Allreduce | ReduceBcast | Scan => (1, 1),
            Gather | Gatherv | Allgather | Allgatherv => (1, ranks),
            Scatter | Scatterv | ReduceScatter | ReduceScatterBlock => (ranks, 1),
            Alltoall | Alltoallv => (ranks, ranks),
        }
    }

    /// Whether there is one call for it, which has a non-blocking form.
    pub const fn is_one_call(self) -> bool {
        !matches!(self, CollectiveOperation::ReduceBcast)
    }
}

/// A rank that takes part in one operation again and again, with memory for it.
pub trait CollectiveRank: Send {
    /// Its number.
    fn rank(&self) -> u32;

    /// How many there are.
    fn ranks(&self) -> u32;

    /// What it gives: as many blocks as [`CollectiveOperation::blocks`] says.
    fn input(&mut self) -> &mut [u8];

    /// What it gets. Of a `bcast` the root gets nothing.
    fn output(&mut self) -> &mut [u8];

    /// Runs the operation to its end; whether it succeeded.
    fn run(&mut self) -> bool;

    /// Starts its non-blocking form; whether that succeeded.
    fn start(&mut self) -> bool;

    /// Waits for the end of what was started; whether it succeeded.
    fn finish(&mut self) -> bool;

    /// Replaces each of these by the largest of all ranks; whether that succeeded.
    fn agree(&mut self, values: &mut [i64; 4]) -> bool;

    /// Waits for all ranks by the transport's own barrier; whether that succeeded.
    fn barrier(&mut self) -> bool;

    /// Why a call has failed.
    fn failed(&self) -> Option<&str>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adds_or_gathers_has_as_many_blocks_as_its_definition_says() {
        use CollectiveOperation::*;
        assert_eq!(Alltoall.blocks(4), (4, 4));
        assert_eq!((Gather.blocks(4), Scatter.blocks(4)), ((1, 4), (4, 1)));
        assert_eq!((Allreduce.blocks(4), ReduceScatter.blocks(4)), ((1, 1), (4, 1)));
        let adding = CollectiveOperation::ALL.iter().filter(|one| one.adds()).count();
        assert_eq!((adding, Barrier.has_payload()), (6, false));
    }
}
