//! Collective operations over `MPI_COMM_WORLD`: an end that has no messages of its own, and a
//! rank's calls of one operation.

use super::memory::Memory;
use super::process::Process;
use crate::collectives::{CollectiveOperation, CollectiveRank};
use crate::{Endpoint, Events, Posted, Result, Setup, SetupError, Slot};
use fabric_sys::mpi::{MPI_SUCCESS, Status};
use std::ffi::c_int;

/// Most bytes of the input, and of the output, of a rank: their places are `int`s.
const MOST_BYTES: usize = 1 << 30;
/// Bytes of a number of those that are added.
const NUMBER: usize = 8;

/// An end towards another rank that was seen to be one of the same launch.
pub struct CollectiveEndpoint {
    process: &'static Process,
    size: usize,
}

impl CollectiveEndpoint {
    /// An end of these settings.
    pub(super) fn new(process: &'static Process, setup: &Setup) -> CollectiveEndpoint {
        CollectiveEndpoint { process, size: setup.size }
    }
}

impl Endpoint for CollectiveEndpoint {
    fn slots(&self) -> u32 {
        0
    }

    fn payload(&mut self, _: Slot) -> &mut [u8] {
        &mut []
    }

    fn post(&mut self, _: Slot, _: usize) -> Posted {
        Posted::Full
    }

    fn flush(&mut self) {}

    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        false
    }

    fn wait(&mut self, events: &mut Events) {
        self.poll(events);
    }

    fn collective(
        &self,
        operation: CollectiveOperation,
    ) -> Option<Result<Box<dyn CollectiveRank>>> {
        let rank = MpiRank::new(self.process, operation, self.size);
        Some(rank.map(|rank| Box::new(rank) as Box<dyn CollectiveRank>))
    }
}

/// Calls a blocking form, or starts the non-blocking one, with the same arguments.
macro_rules! either {
    ($by:expr, $blocking:ident, $starting:ident, $($argument:expr),*) => {{
        let (call, is_started, request) = $by;
        // SAFETY: MPI is initialised; input and output have as many blocks of `size` bytes as the
        // operation takes (`CollectiveOperation::blocks`), the arrays have one number for each
        // rank, and all of them live as long as their `MpiRank`, whose drop leaves the memory where
        // an operation has not ended.
        unsafe {
            match is_started {
                true => (call.$starting)($($argument,)* request),
                false => (call.$blocking)($($argument),*),
            }
        }
    }};
}

/// A rank's calls of one operation.
struct MpiRank {
    process: &'static Process,
    operation: CollectiveOperation,
    /// Bytes of a block, and where the block of each rank begins.
    size: c_int,
    lengths: Box<[c_int]>,
    places: Box<[c_int]>,
    /// Numbers of each part of a sum.
    parts: Box<[c_int]>,
    input: Memory,
    output: Memory,
    request: usize,
    failed: Option<String>,
}

impl MpiRank {
    fn new(
        process: &'static Process,
        operation: CollectiveOperation,
        size: usize,
    ) -> Result<MpiRank> {
        let size = if operation.has_payload() { size } else { 0 };
        let ranks = process.size as usize;
        if size.saturating_mul(ranks) > MOST_BYTES {
            return Err(SetupError::Refused(format!(
                "{ranks} blocks of {size} B are more than {MOST_BYTES} B: use a smaller --size"
            )));
        }
        let (gives, gets) = operation.blocks(ranks);
        let memory = |blocks: usize| {
            Memory::new(1, blocks * size).map_err(SetupError::system("mapping memory for blocks"))
        };
        let (input, output) = (memory(gives)?, memory(gets)?);
        let places = (0..ranks).map(|rank| (rank * size) as c_int).collect();
        Ok(MpiRank {
            process,
            operation,
            size: size as c_int,
            lengths: vec![size as c_int; ranks].into(),
            places,
            parts: vec![(size / NUMBER) as c_int; ranks].into(),
            input,
            output,
            request: process.mpi.constants.request_null,
            failed: None,
        })
    }

    /// Takes a code; whether it is that of success.
    #[inline(always)]
    fn succeeds(&mut self, code: c_int, call: &str) -> bool {
        if code != MPI_SUCCESS {
            self.fail(code, call);
        }
        code == MPI_SUCCESS
    }

    #[cold]
    fn fail(&mut self, code: c_int, call: &str) {
        let said =
            || format!("{call} of {}: {}", self.operation.name(), self.process.mpi.error(code));
        self.failed = self.failed.take().or_else(|| Some(said()));
    }

    /// Calls an operation that moves blocks, or starts it.
    fn moves(&mut self, is_started: bool) -> c_int {
        use CollectiveOperation as Of;
        let known = &self.process.mpi.constants;
        let (world, byte, size) = (known.comm_world, known.byte, self.size);
        let (from, to) = (self.input.at(0).cast(), self.output.at(0).cast());
        // The root's message stands in its input.
        let bcast = if self.process.rank == ROOT { from } else { to };
        let by = (&self.process.mpi.collectives, is_started, &raw mut self.request);
        match self.operation {
            Of::Barrier => either!(by, MPI_Barrier, MPI_Ibarrier, world),
            Of::Bcast => either!(by, MPI_Bcast, MPI_Ibcast, bcast, size, byte, ROOT, world),
            Of::Gather => {
                either!(by, MPI_Gather, MPI_Igather, from, size, byte, to, size, byte, ROOT, world)
            }
            Of::Scatter => either!(
                by,
                MPI_Scatter,
                MPI_Iscatter,
                from,
                size,
                byte,
                to,
                size,
                byte,
                ROOT,
                world
            ),
            Of::Allgather => {
                either!(by, MPI_Allgather, MPI_Iallgather, from, size, byte, to, size, byte, world)
            }
            Of::Alltoall => {
                either!(by, MPI_Alltoall, MPI_Ialltoall, from, size, byte, to, size, byte, world)
            }
            Of::Gatherv | Of::Scatterv | Of::Allgatherv | Of::Alltoallv => self.varied(is_started),
            _ => self.adds(is_started),
        }
    }

    /// The same where each block has a length and a place.
    fn varied(&mut self, is_started: bool) -> c_int {
        use CollectiveOperation as Of;
        let known = &self.process.mpi.constants;
        let (world, byte, size) = (known.comm_world, known.byte, self.size);
        let (from, to) = (self.input.at(0).cast(), self.output.at(0).cast());
        let (each, at) = (self.lengths.as_ptr(), self.places.as_ptr());
        let by = (&self.process.mpi.collectives, is_started, &raw mut self.request);
        match self.operation {
            Of::Gatherv => either!(
                by,
                MPI_Gatherv,
                MPI_Igatherv,
                from,
                size,
                byte,
                to,
                each,
                at,
                byte,
                ROOT,
                world
            ),
            Of::Scatterv => either!(
                by,
                MPI_Scatterv,
                MPI_Iscatterv,
                from,
                each,
                at,
                byte,
                to,
                size,
                byte,
                ROOT,
                world
            ),
            Of::Allgatherv => either!(
                by,
                MPI_Allgatherv,
                MPI_Iallgatherv,
                from,
                size,
                byte,
                to,
                each,
                at,
                byte,
                world
            ),
            _ => either!(
                by,
                MPI_Alltoallv,
                MPI_Ialltoallv,
                from,
                each,
                at,
                byte,
                to,
                each,
                at,
                byte,
                world
            ),
        }
    }

    /// Calls an operation that adds numbers, or starts it.
    fn adds(&mut self, is_started: bool) -> c_int {
        use CollectiveOperation as Of;
        let known = &self.process.mpi.constants;
        let (world, double, sum) = (known.comm_world, known.double, known.sum);
        let (from, to) = (self.input.at(0).cast(), self.output.at(0).cast());
        let (count, parts) = (self.size / NUMBER as c_int, self.parts.as_ptr());
        let by = (&self.process.mpi.collectives, is_started, &raw mut self.request);
        match self.operation {
            Of::Reduce | Of::ReduceBcast => {
                either!(by, MPI_Reduce, MPI_Ireduce, from, to, count, double, sum, ROOT, world)
            }
            Of::ReduceScatter => either!(
                by,
                MPI_Reduce_scatter,
                MPI_Ireduce_scatter,
                from,
                to,
                parts,
                double,
                sum,
                world
            ),
            Of::ReduceScatterBlock => either!(
                by,
                MPI_Reduce_scatter_block,
                MPI_Ireduce_scatter_block,
                from,
                to,
                count,
                double,
                sum,
                world
            ),
            Of::Scan => either!(by, MPI_Scan, MPI_Iscan, from, to, count, double, sum, world),
            _ => either!(by, MPI_Allreduce, MPI_Iallreduce, from, to, count, double, sum, world),
        }
    }

    /// The second half of a reduce with a bcast.
    fn spread(&mut self) -> c_int {
        let (call, known) = (&self.process.mpi.collectives, &self.process.mpi.constants);
        let (to, count) = (self.output.at(0).cast(), self.size / NUMBER as c_int);
        // SAFETY: as of the operations that move blocks.
        unsafe { (call.MPI_Bcast)(to, count, known.double, ROOT, known.comm_world) }
    }
}

/// The rank that has what others get.
const ROOT: c_int = 0;

impl CollectiveRank for MpiRank {
    fn rank(&self) -> u32 {
        self.process.rank as u32
    }

    fn ranks(&self) -> u32 {
        self.process.size as u32
    }

    fn input(&mut self) -> &mut [u8] {
        let (gives, _) = self.operation.blocks(self.process.size as usize);
        &mut self.input.message(0)[..gives * self.size as usize]
    }

    fn output(&mut self) -> &mut [u8] {
        let (_, gets) = self.operation.blocks(self.process.size as usize);
        &mut self.output.message(0)[..gets * self.size as usize]
    }

    #[inline]
    fn run(&mut self) -> bool {
        let code = self.moves(false);
        let is_half = self.operation == CollectiveOperation::ReduceBcast && code == MPI_SUCCESS;
        let code = if is_half { self.spread() } else { code };
        self.succeeds(code, "the call")
    }

    #[inline]
    fn start(&mut self) -> bool {
        let code = self.moves(true);
        self.succeeds(code, "the start")
    }

    #[inline]
    fn finish(&mut self) -> bool {
        let mut status = Status::default();
        // SAFETY: the request is the one that was started, or the null request.
        let code = unsafe { (self.process.mpi.call.MPI_Wait)(&mut self.request, &mut status) };
        self.succeeds(code, "MPI_Wait")
    }

    fn agree(&mut self, values: &mut [i64; 4]) -> bool {
        let (call, known) = (&self.process.mpi.collectives, &self.process.mpi.constants);
        let own = *values;
        let (from, to, count) =
            (own.as_ptr().cast(), values.as_mut_ptr().cast(), own.len() as c_int);
        // SAFETY: MPI is initialised; both arrays have as many numbers, and live until it returns.
        let code = unsafe {
            (call.MPI_Allreduce)(from, to, count, known.int64, known.max, known.comm_world)
        };
        self.succeeds(code, "the agreement beside it")
    }

    fn barrier(&mut self) -> bool {
        let (call, known) = (&self.process.mpi.collectives, &self.process.mpi.constants);
        // SAFETY: MPI is initialised.
        let code = unsafe { (call.MPI_Barrier)(known.comm_world) };
        self.succeeds(code, "MPI_Barrier")
    }

    fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}

impl Drop for MpiRank {
    /// MPI must not write into memory that is gone.
    fn drop(&mut self) {
        if self.request != self.process.mpi.constants.request_null {
            [&mut self.input, &mut self.output].into_iter().for_each(Memory::stay);
        }
    }
}
