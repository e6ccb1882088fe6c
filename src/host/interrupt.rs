//! Interrupting a measured loop's sleep in the kernel: a signal that does nothing but make the
//! system call return.
//!
//! A time-out on every receive would cost each message a timer; a signal costs nothing until it is
//! sent.

use std::io;

/// The signal: one that programs leave to their users, and that the loop's process alone sends.
const SIGNAL: libc::c_int = libc::SIGUSR1;

/// A thread whose system calls can be interrupted.
#[derive(Clone)]
pub struct Interrupter {
    process: libc::pid_t,
    thread: libc::pid_t,
}

extern "C" fn nothing(_: libc::c_int) {}

/// Installs the handler: without SA_RESTART, so that a system call returns EINTR.
pub fn install() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: an all-zero sigaction is valid: default action, empty mask, no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: sigaction(2) with a handler that does nothing, which is async-signal-safe.
    let done = unsafe { libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Interrupter {
    /// Of the calling thread.
    pub fn this_thread() -> Interrupter {
        // SAFETY: getpid(2) and gettid(2) take nothing and cannot fail.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        Interrupter { process, thread }
    }

    /// Interrupts it, where it still lives.
    pub fn interrupt(&self) {
        // SAFETY: tgkill(2) with numbers; a thread that is gone gives ESRCH.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, SIGNAL) };
    }
}
