//! The signals that end a testbed.

use super::error::{TestbedError, file};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// The number of the signal that told this process to end; 0 until one has.
pub(super) fn signals() -> Result<Arc<AtomicUsize>, TestbedError> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .map_err(file("watching signals of", Path::new("/proc/self")))?;
    }
    Ok(signal)
}
