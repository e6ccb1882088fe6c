//! A file descriptor that this process inherited, named by its number.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Mutex;

/// Takes it, once.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    static TAKEN: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // The first three belong to the standard library.
    if number < 3 || taken.contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: fcntl(2) with F_GETFD reads the flags of a descriptor and fails with EBADF where
    // there is none of that number.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    taken.push(number);
    // SAFETY: it is open, and whoever has started this process has given it away: nothing else
    // here owns it, and it is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
