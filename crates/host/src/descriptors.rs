//! The file descriptors of this process: how many it may have, and those that it inherited.

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Mutex;

/// Raises the limit as far as this user may: an end of many connections has a descriptor for each,
/// and the usual 1024 are for programs that use select(2).
pub fn allow_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Where that fails the open that is one too many says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Most file descriptors that a process may have.
pub fn most_descriptors() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Gives this thread a table of descriptors of its own, a copy of the one of the process
/// (unshare(2), `CLONE_FILES`). Threads that it starts later share it.
///
/// Of a table that threads share, the kernel takes and returns a reference to the file in each
/// system call, which is two atomic operations; of another it doesn't (`fdget` in fs/file.c). A
/// descriptor that is opened here afterwards is unknown to the other threads, and one that was open
/// before stays open until both tables have closed it.
///
/// # Errors
/// The system doesn't allow it, as in many containers. The table stays shared then.
pub fn own_descriptors() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_FILES)?)
}

/// Has what goes to standard output go to standard error from now on.
///
/// # Errors
/// There is no standard error.
pub fn stdout_to_stderr() -> io::Result<()> {
    // SAFETY: dup2(2) makes a descriptor that both the standard library and libraries in C may
    // write to at any time another name of a file that they may write to as well.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        code if code < 0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A file descriptor that this process inherited, named by its number. Takes it, once.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    static TAKEN: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // The first three belong to the standard library.
    if number < 3 || taken.contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: fcntl(2) with F_GETFD reads the flags of a descriptor and fails with EBADF if
    // none has that number.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    taken.push(number);
    // SAFETY: it is open, and whoever has started this process has given it away: nothing else
    // here owns it, and it is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_a_thread_opens_among_descriptors_of_its_own_is_not_open_in_others() {
        let is_open = |process: &str, number: i32| {
            fs_err::exists(format!("/proc/{process}/fd/{number}")).unwrap()
        };
        let seen = std::thread::spawn(move || {
            let is_own = own_descriptors().is_ok();
            let file = fs_err::File::open("/dev/null").unwrap();
            // A number that nobody else takes meanwhile.
            let opened = rustix::io::fcntl_dupfd_cloexec(&file, 900).unwrap();
            let number = opened.as_raw_fd();
            (is_own, is_open("thread-self", number), is_open("self", number))
        });
        // Where it is not allowed, as in some containers, all is shared.
        let (is_own, in_thread, in_process) = seen.join().unwrap();
        assert_eq!((in_thread, in_process), (true, !is_own));
    }

    #[test]
    fn all_that_this_user_may_have_is_allowed() {
        allow_descriptors();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
