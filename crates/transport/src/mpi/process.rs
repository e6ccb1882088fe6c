//! This process as a rank of an MPI launch. MPI is initialised once in a process, and not again
//! after it was finalised.

use super::launcher;
use crate::{Result, Settings, SetupError};
use fabric_sys::mpi::{MPI_SUCCESS, Mpi};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The least that MPI allows as the highest tag (MPI 4.1, 9.1.2).
const HIGHEST_TAG: i32 = 32_767;

/// `MPI_THREAD_SINGLE`, the same in all interfaces.
const THREAD_SINGLE: i32 = 0;

/// The tags of one endpoint: other endpoints of the process have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// Of messages.
    pub data: i32,
    /// Of what the ends tell each other beside.
    pub control: i32,
}

impl Tags {
    /// Those of the next endpoint. They come again after 16383 endpoints, all of which but a few
    /// are gone by then.
    pub fn next() -> Tags {
        static NEXT: AtomicI32 = AtomicI32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed).rem_euclid(HIGHEST_TAG / 2);
        Tags { data: 2 * number, control: 2 * number + 1 }
    }

    /// Those whose first is this.
    pub fn of_data(data: i32) -> Option<Tags> {
        let fits = (0..HIGHEST_TAG - 1).contains(&data) && data % 2 == 0;
        fits.then_some(Tags { data, control: data + 1 })
    }
}

/// A process with MPI.
pub struct Process {
    /// The library.
    pub mpi: Mpi,
    /// Its rank of all.
    pub rank: i32,
    /// How many ranks there are.
    pub size: i32,
    opened: AtomicU32,
}

/// Made by the first endpoint.
static PROCESS: OnceLock<Process> = OnceLock::new();

impl Process {
    /// This process, which is initialised by the first call.
    pub fn of(settings: &Settings, has_threads: bool) -> Result<&'static Process> {
        static FIRST: Mutex<()> = Mutex::new(());
        let _one = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        let process = match PROCESS.get() {
            Some(process) => process,
            None => {
                let made = Process::initialise(settings, has_threads)?;
                PROCESS.get_or_init(|| made)
            }
        };
        process.check_threads(has_threads)?;
        process.opened.fetch_add(1, Ordering::Relaxed);
        Ok(process)
    }

    fn initialise(settings: &Settings, has_threads: bool) -> Result<Process> {
        let mpi = Mpi::open(&launcher::search(settings))
            .map_err(|error| SetupError::Refused(error.to_string()))?;
        let (constants, call) = (mpi.constants, mpi.call);
        // The threads of an agent's rounds use MPI one after the other, and the others never: no
        // call meets another. Each level above that of `MPI_Init` has Open MPI lock in each call.
        let wanted = if has_threads { constants.thread_multiple } else { THREAD_SINGLE };
        let (mut granted, mut rank, mut size) = (0, 0, 0);
        // SAFETY: the first call of the process (it is made under a lock, once); null arguments are
        // allowed since MPI 2.
        let code = unsafe { (call.MPI_Init_thread)(null_mut(), null_mut(), wanted, &mut granted) };
        check(&mpi, code, "MPI_Init_thread")?;
        // SAFETY: the library is initialised, and the handle is its own.
        let codes = unsafe {
            [
                (call.MPI_Comm_set_errhandler)(constants.comm_world, constants.errors_return),
                (call.MPI_Comm_rank)(constants.comm_world, &mut rank),
                (call.MPI_Comm_size)(constants.comm_world, &mut size),
            ]
        };
        codes.into_iter().try_for_each(|code| check(&mpi, code, "MPI_COMM_WORLD"))?;
        Ok(Process { mpi, rank, size, opened: AtomicU32::new(0) })
    }

    fn check_threads(&self, has_threads: bool) -> Result<()> {
        let mut granted = 0;
        // SAFETY: the library is initialised, and the pointer is to an int.
        let code = unsafe { (self.mpi.call.MPI_Query_thread)(&mut granted) };
        check(&self.mpi, code, "MPI_Query_thread")?;
        if has_threads && granted < self.mpi.constants.thread_multiple {
            return Err(SetupError::NotAllowed(format!(
                "{} lets only one thread of a process call it here: use --threads 1",
                self.mpi.version
            )));
        }
        Ok(())
    }

    /// Which round of this process it is: more than the first where rounds share it. A round opens
    /// an end for each other rank, in each of its threads.
    pub fn round(&self, threads: u32) -> u32 {
        let ends = (self.size - 1).max(1) as u32 * threads.max(1);
        self.opened.load(Ordering::Relaxed).div_ceil(ends)
    }
}

/// A code as a result that names the call.
pub fn check(mpi: &Mpi, code: i32, call: &str) -> Result<()> {
    match code {
        MPI_SUCCESS => Ok(()),
        code => Err(SetupError::Refused(format!("{call}: {}", mpi.error(code)))),
    }
}

/// Finalises MPI before the process exits: a launcher takes one that did not as one that failed.
pub fn leave() {
    if let Some(process) = PROCESS.get() {
        // SAFETY: the library is initialised, and no endpoint is left: the process ends.
        let _ = unsafe { (process.mpi.call.MPI_Finalize)() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_two_endpoints_differ_and_are_within_what_every_mpi_allows() {
        let (first, second) = (Tags::next(), Tags::next());
        assert_ne!(first, second);
        assert_eq!(Tags::of_data(first.data), Some(first));
        for wrong in [-2, 1, HIGHEST_TAG, HIGHEST_TAG - 1] {
            assert_eq!(Tags::of_data(wrong), None, "{wrong}");
        }
        assert!((0..40_000).all(|_| Tags::of_data(Tags::next().data).is_some()));
    }
}
