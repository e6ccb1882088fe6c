//! Interrupting a measured loop's sleep in the kernel: a signal that does nothing but make the
//! system call return.
//!
//! A time-out on every receive would cost each message a timer; a signal costs nothing until it is
//! sent.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rustix::time::Timespec;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// The signal: one that programs leave to their users, and that the loop's process alone sends.
const SIGNAL: Signal = Signal::SIGUSR1;

/// A thread whose system calls can be interrupted.
#[derive(Clone)]
pub struct Interrupter(libc::pid_t);

extern "C" fn nothing(_: libc::c_int) {}

/// Installs the handler: without SA_RESTART, so that a system call returns EINTR.
pub fn install() -> io::Result<()> {
    let handler = SigHandler::Handler(nothing);
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: sigaction(2) with a handler that does nothing, which is async-signal-safe.
    unsafe { sigaction(SIGNAL, &action)? };
    Ok(())
}

/// Has a file that exceeds `ulimit -f` be an error of the write, and not the end of this process
/// without a word.
pub fn ignore_file_limit() {
    // SAFETY: signal(2) with a disposition that runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Whether this process was started with a signal ignored, or has it ignored since.
pub fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: sigaction(2) without a new action writes the present one where it is told to.
    let failed = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } < 0;
    ensure!(!failed, io::Error::last_os_error());
    // SAFETY: the call has filled it.
    Ok(unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN)
}

/// Sleeps for so long, or until the thread is interrupted.
pub fn nap(time: Duration) {
    // Longer than a timer can be is for ever.
    let time = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
    let _ = rustix::thread::nanosleep(&time);
}

impl Interrupter {
    /// Of the calling thread.
    pub fn this_thread() -> Interrupter {
        Interrupter(rustix::thread::gettid().as_raw_pid())
    }

    /// Interrupts it, where it still lives.
    pub fn interrupt(&self) {
        let process = rustix::process::getpid().as_raw_pid();
        // SAFETY: tgkill(2) with numbers; a thread that is gone gives ESRCH.
        unsafe { libc::syscall(libc::SYS_tgkill, process, self.0, SIGNAL as i32) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use wiregauge_test_support::bounded::Bound;

    #[test]
    fn an_interrupt_ends_a_nap() {
        let _bound = Bound::new();
        install().unwrap();
        let (says, hears) = mpsc::channel();
        let sleeping = std::thread::spawn(move || {
            says.send(Interrupter::this_thread()).unwrap();
            nap(Duration::MAX);
        });
        let thread = hears.recv().unwrap();
        // One that comes before the sleep has begun is missed.
        while !sleeping.is_finished() {
            thread.interrupt();
            std::thread::sleep(Duration::from_millis(1));
        }
        sleeping.join().unwrap();
    }
}
