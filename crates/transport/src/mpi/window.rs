//! A window of two ranks: memory of each that the other may write and read, from when they are
//! connected until both have gone.

use super::process::{Process, check};
use crate::{Result, SetupError};
use fabric_sys::mpi::MPI_SUCCESS;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

/// A window of this rank and another.
pub struct Window {
    process: &'static Process,
    /// The window, and the communicator of both ranks.
    pub handle: usize,
    comm: usize,
    /// The other's rank of the two.
    pub peer: c_int,
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is reached through this value alone.
unsafe impl Send for Window {}

impl Window {
    /// Memory of as many bytes at both ranks. Both call it; it returns when the other has, with a
    /// tag that no other pair of threads uses meanwhile.
    pub fn of_two(
        process: &'static Process,
        peer: c_int,
        tag: c_int,
        bytes: usize,
    ) -> Result<Window> {
        let (call, known) = (&process.mpi.windows, &process.mpi.constants);
        let ranks = [process.rank.min(peer), process.rank.max(peer)];
        let (mut world, mut group, mut comm, mut handle) = (0, 0, 0, 0);
        let mut base: *mut u8 = std::ptr::null_mut();
        let room = isize::try_from(bytes).map_err(|_| SetupError::Refused("too large".into()))?;
        // SAFETY: MPI is initialised; the handles are its own, the array has as many ranks, and
        // `MPI_Win_allocate` writes a pointer to where its untyped argument points.
        unsafe {
            let took = |code, name| check(&process.mpi, code, name);
            took((call.MPI_Comm_group)(known.comm_world, &mut world), "MPI_Comm_group")?;
            let code = (call.MPI_Group_incl)(world, 2, ranks.as_ptr(), &mut group);
            took(code, "MPI_Group_incl")?;
            let code = (call.MPI_Comm_create_group)(known.comm_world, group, tag, &mut comm);
            took(code, "MPI_Comm_create_group")?;
            took((call.MPI_Group_free)(&mut group), "MPI_Group_free")?;
            took((call.MPI_Group_free)(&mut world), "MPI_Group_free")?;
            let at = (&raw mut base).cast();
            let code = (call.MPI_Win_allocate)(room, 1, known.info_null, comm, at, &mut handle);
            took(code, "MPI_Win_allocate")?;
            let code = (call.MPI_Win_set_errhandler)(handle, known.errors_return);
            took(code, "MPI_Win_set_errhandler")?;
            // Before the other may write: both have allocated, and the caller tells the other.
            std::ptr::write_bytes(base, 0, bytes);
            took((call.MPI_Win_lock_all)(0, handle), "MPI_Win_lock_all")?;
            took((call.MPI_Win_sync)(handle), "MPI_Win_sync")?;
        }
        let peer = c_int::from(process.rank < peer);
        Ok(Window { process, handle, comm, peer, base, bytes })
    }

    /// Where a place of this rank's memory is.
    #[inline(always)]
    pub fn at(&self, place: usize, bytes: usize) -> *mut u8 {
        assert!(place + bytes <= self.bytes, "no such place");
        // SAFETY: it lies within the memory, by the line above.
        unsafe { self.base.add(place) }
    }

    /// The bytes of a place, which the other does not write meanwhile: it is told when it may.
    #[inline(always)]
    pub fn bytes(&mut self, place: usize, bytes: usize) -> &mut [u8] {
        let at = self.at(place, bytes);
        // SAFETY: the bytes lie within the memory, which only this value reaches.
        unsafe { std::slice::from_raw_parts_mut(at, bytes) }
    }

    /// A byte that the other may be writing.
    #[inline(always)]
    pub fn byte_now(&self, place: usize) -> u8 {
        // SAFETY: inside the memory; an atomic of one byte has no alignment.
        let byte = unsafe { AtomicU8::from_ptr(self.at(place, 1)) };
        byte.load(Ordering::Acquire)
    }

    /// Makes what the other has written readable here (MPI 4.1, 12.5.4 and 12.7).
    #[inline(always)]
    pub fn sync(&self) -> c_int {
        // SAFETY: MPI is initialised, and the window is locked by this rank.
        unsafe { (self.process.mpi.windows.MPI_Win_sync)(self.handle) }
    }

    /// Returns when what this rank has begun is done at the other.
    #[inline(always)]
    pub fn flush(&self) -> c_int {
        // SAFETY: as of `sync`.
        unsafe { (self.process.mpi.windows.MPI_Win_flush)(self.peer, self.handle) }
    }

    /// Ends this rank's accesses; whether it could.
    pub fn unlock(&self) -> bool {
        // SAFETY: as of `sync`; nothing is begun after it.
        unsafe { (self.process.mpi.windows.MPI_Win_unlock_all)(self.handle) == MPI_SUCCESS }
    }

    /// Frees it. Returns when the other rank frees it too, so both must have said that they will.
    pub fn free(mut self) {
        let call = &self.process.mpi.windows;
        // SAFETY: the window is unlocked, and nobody uses the memory after this.
        unsafe {
            let _ = (call.MPI_Win_free)(&mut self.handle);
            let _ = (call.MPI_Comm_free)(&mut self.comm);
        }
    }
}
