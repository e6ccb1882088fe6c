//! Sample memory and message buffers that never fault while a run measures.

use rustix::io::Errno;
use std::mem::MaybeUninit;

/// Writes to every page of `region` what stands there, so that the kernel gives the page now.
///
/// Reading alone would leave anonymous pages mapped to the shared page of zeros. Not for memory
/// to which somebody else writes meanwhile: a write of theirs could be undone.
pub fn touch<T>(region: &mut [T]) {
    let bytes = size_of_val(region);
    let start = region.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // The last page starts after the last step where the region is not aligned to pages.
    let last = bytes.checked_sub(1);
    for offset in (0..bytes).step_by(rustix::param::page_size()).chain(last) {
        // SAFETY: `offset < bytes`, so the byte lies in the region, which is borrowed mutably;
        // `MaybeUninit<u8>` may hold any byte (padding too), and the same byte is written back.
        unsafe {
            let byte = start.add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Locks the pages of `region` in memory (mlock) until they are unmapped.
///
/// # Errors
/// Why they could not be locked, in a sentence. The run goes on with touched memory; the record
/// says so.
pub fn lock<T>(region: &mut [T]) -> Result<(), String> {
    let bytes = size_of_val(region);
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: mlock(2) changes neither contents nor protection, and the range is one borrowed
    // allocation; whole pages are locked, which neighbours cannot notice.
    let locked = unsafe { rustix::mm::mlock(region.as_mut_ptr().cast(), bytes) };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    locked.map_err(|errno| unlocked(bytes, errno, limit))
}

fn unlocked(bytes: usize, errno: Errno, limit: Option<u64>) -> String {
    match (errno, limit) {
        (Errno::NOMEM | Errno::PERM | Errno::AGAIN, Some(limit)) => {
            format!("cannot lock {bytes} B: the limit is {limit} B (RLIMIT_MEMLOCK)")
        }
        _ => format!("cannot lock {bytes} B: {errno}"),
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
            assert!(error.starts_with("cannot lock 100 B: "), "{error}");
        }
        assert!(lock::<u8>(&mut []).is_ok());
    }

    #[test]
    fn the_limit_is_named_with_its_remedy() {
        let text = unlocked(100, Errno::NOMEM, Some(64));
        assert_eq!(text, "cannot lock 100 B: the limit is 64 B (RLIMIT_MEMLOCK)");
    }
}
