//! The collective operations of MPI, blocking and non-blocking, in the forms of `mpi.h`.

use super::{NoMpi, functions};
use libloading::Library;
use std::ffi::{c_int, c_void};

functions! {
    /// The collective operations of MPI 3.0. A handle is a `usize`: see
    /// [`Constants`](super::Constants).
    Collectives:
    MPI_Barrier(comm: usize);
    MPI_Ibarrier(comm: usize, request: *mut usize);
    MPI_Bcast(at: *mut c_void, count: c_int, datatype: usize, root: c_int, comm: usize);
    MPI_Ibcast(
        at: *mut c_void, count: c_int, datatype: usize, root: c_int, comm: usize, request: *mut
        usize
    );
    MPI_Reduce(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, root:
        c_int, comm: usize
    );
    MPI_Ireduce(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, root:
        c_int, comm: usize, request: *mut usize
    );
    MPI_Allreduce(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, comm:
        usize
    );
    MPI_Iallreduce(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, comm:
        usize, request: *mut usize
    );
    MPI_Gather(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, root: c_int, comm: usize
    );
    MPI_Igather(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, root: c_int, comm: usize, request: *mut usize
    );
    MPI_Gatherv(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: *const c_int,
        places: *const c_int, taken: usize, root: c_int, comm: usize
    );
    MPI_Igatherv(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: *const c_int,
        places: *const c_int, taken: usize, root: c_int, comm: usize, request: *mut usize
    );
    MPI_Scatter(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, root: c_int, comm: usize
    );
    MPI_Iscatter(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, root: c_int, comm: usize, request: *mut usize
    );
    MPI_Scatterv(
        from: *const c_void, sends: *const c_int, places: *const c_int, sent: usize, to: *mut
        c_void, takes: c_int, taken: usize, root: c_int, comm: usize
    );
    MPI_Iscatterv(
        from: *const c_void, sends: *const c_int, places: *const c_int, sent: usize, to: *mut
        c_void, takes: c_int, taken: usize, root: c_int, comm: usize, request: *mut usize
    );
    MPI_Allgather(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, comm: usize
    );
    MPI_Iallgather(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, comm: usize, request: *mut usize
    );
    MPI_Allgatherv(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: *const c_int,
        places: *const c_int, taken: usize, comm: usize
    );
    MPI_Iallgatherv(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: *const c_int,
        places: *const c_int, taken: usize, comm: usize, request: *mut usize
    );
    MPI_Alltoall(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, comm: usize
    );
    MPI_Ialltoall(
        from: *const c_void, sends: c_int, sent: usize, to: *mut c_void, takes: c_int, taken:
        usize, comm: usize, request: *mut usize
    );
    MPI_Alltoallv(
        from: *const c_void, sends: *const c_int, leaves: *const c_int, sent: usize, to: *mut
        c_void, takes: *const c_int, places: *const c_int, taken: usize, comm: usize
    );
    MPI_Ialltoallv(
        from: *const c_void, sends: *const c_int, leaves: *const c_int, sent: usize, to: *mut
        c_void, takes: *const c_int, places: *const c_int, taken: usize, comm: usize, request:
        *mut usize
    );
    MPI_Reduce_scatter(
        from: *const c_void, to: *mut c_void, takes: *const c_int, datatype: usize, op: usize,
        comm: usize
    );
    MPI_Ireduce_scatter(
        from: *const c_void, to: *mut c_void, takes: *const c_int, datatype: usize, op: usize,
        comm: usize, request: *mut usize
    );
    MPI_Reduce_scatter_block(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, comm:
        usize
    );
    MPI_Ireduce_scatter_block(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, comm:
        usize, request: *mut usize
    );
    MPI_Scan(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, comm:
        usize
    );
    MPI_Iscan(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: usize, op: usize, comm:
        usize, request: *mut usize
    );
}
