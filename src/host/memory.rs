//! Sample memory and message buffers that never fault while a run measures.

use std::mem::MaybeUninit;
use thiserror::Error;

/// Why memory could not be locked. The run goes on with touched memory; the record says so.
#[derive(Debug, Error)]
pub enum LockError {
    /// The limit of locked memory is too small.
    #[error("cannot lock {bytes} B: the limit is {limit} B (RLIMIT_MEMLOCK)")]
    Limit {
        /// Bytes that were to be locked.
        bytes: usize,
        /// The limit in bytes.
        limit: u64,
    },
    /// Another reason.
    #[error("cannot lock {bytes} B: {source}")]
    System {
        /// Bytes that were to be locked.
        bytes: usize,
        /// What the kernel answered.
        source: std::io::Error,
    },
}

/// Writes to every page of `region` what stands there, so that the kernel gives the page now.
///
/// Reading alone would leave anonymous pages mapped to the shared page of zeros. Not for memory
/// to which somebody else writes meanwhile: a write of theirs could be undone.
pub fn touch<T>(region: &mut [T]) {
    let bytes = size_of_val(region);
    let start = region.as_mut_ptr().cast::<MaybeUninit<u8>>();
    for offset in (0..bytes).step_by(rustix::param::page_size()) {
        // SAFETY: `offset < bytes`, so the byte lies in the region, which is borrowed mutably;
        // `MaybeUninit<u8>` may hold any byte (padding too), and the same byte is written back.
        unsafe {
            let byte = start.add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
    if bytes > 0 {
        // SAFETY: as above; the last page starts after the last step where the region is not
        // aligned to pages.
        unsafe {
            let byte = start.add(bytes - 1);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Locks the pages of `region` in memory (mlock) until they are unmapped.
pub fn lock<T>(region: &mut [T]) -> Result<(), LockError> {
    let bytes = size_of_val(region);
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: mlock(2) changes neither contents nor protection, and the range is one borrowed
    // allocation; whole pages are locked, which neighbours cannot notice.
    let result = unsafe { rustix::mm::mlock(region.as_mut_ptr().cast(), bytes) };
    let Err(errno) = result else { return Ok(()) };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match (errno, limit) {
        (
            rustix::io::Errno::NOMEM | rustix::io::Errno::PERM | rustix::io::Errno::AGAIN,
            Some(limit),
        ) => Err(LockError::Limit { bytes, limit }),
        _ => Err(LockError::System { bytes, source: errno.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_changes_nothing() {
        let mut region: Vec<u64> = (0..10_000).collect();
        touch(&mut region);
        assert!(region.iter().copied().eq(0..10_000));
        touch::<u64>(&mut []);
    }

    #[test]
    fn a_page_is_locked_or_the_reason_is_a_sentence() {
        let mut region = vec![0u8; 100];
        if let Err(error) = lock(&mut region) {
            assert!(error.to_string().starts_with("cannot lock 100 B: "), "{error}");
        }
        assert!(lock::<u8>(&mut []).is_ok());
    }

    #[test]
    fn the_limit_is_named_with_its_remedy() {
        let text = LockError::Limit { bytes: 100, limit: 64 }.to_string();
        assert_eq!(text, "cannot lock 100 B: the limit is 64 B (RLIMIT_MEMLOCK)");
    }
}
