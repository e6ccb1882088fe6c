//! Operations on memory of other ranks, in the forms of `mpi.h`, and what makes a window of two.

use super::{NoMpi, functions};
use libloading::Library;
use std::ffi::{c_int, c_void};

functions! {
    /// One-sided communication of MPI 3.0 with a passive target. A handle is a `usize`: see
    /// [`Constants`](super::Constants); an `MPI_Aint` is an `isize`.
    Windows:
    MPI_Comm_group(comm: usize, group: *mut usize);
    MPI_Group_incl(group: usize, count: c_int, ranks: *const c_int, made: *mut usize);
    MPI_Group_free(group: *mut usize);
    MPI_Comm_create_group(comm: usize, group: usize, tag: c_int, made: *mut usize);
    MPI_Comm_free(comm: *mut usize);
    MPI_Win_allocate(
        bytes: isize, unit: c_int, info: usize, comm: usize, base: *mut c_void, win: *mut usize
    );
    MPI_Win_free(win: *mut usize);
    MPI_Win_set_errhandler(win: usize, handler: usize);
    MPI_Win_lock_all(assertion: c_int, win: usize);
    MPI_Win_unlock_all(win: usize);
    MPI_Win_flush(rank: c_int, win: usize);
    MPI_Win_sync(win: usize);
    MPI_Put(
        from: *const c_void, count: c_int, datatype: usize, rank: c_int, place: isize, taken:
        c_int, as_datatype: usize, win: usize
    );
    MPI_Get(
        to: *mut c_void, count: c_int, datatype: usize, rank: c_int, place: isize, taken: c_int,
        as_datatype: usize, win: usize
    );
    MPI_Fetch_and_op(
        from: *const c_void, to: *mut c_void, datatype: usize, rank: c_int, place: isize, op:
        usize, win: usize
    );
    MPI_Compare_and_swap(
        from: *const c_void, compare: *const c_void, to: *mut c_void, datatype: usize, rank: c_int,
        place: isize, win: usize
    );
}
