//! Where agents run: on this host, on another one by ssh or a daemon, or as ranks of a job.

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod clocks;
pub mod daemon;
pub mod host;
pub mod job;
pub mod launch;
mod launch_memory;
pub mod preflight;
pub mod process;
pub mod program;
pub mod ssh;
#[doc(hidden)]
pub mod stderr;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what a panic leaves valid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
