//! A child process that does not outlive this one.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// As [`dies_with_us`], in a process group of its own, so that a Ctrl-C is for this process alone.
pub fn ends_with_us(command: &mut Command) -> &mut Command {
    dies_with_us(command.process_group(0))
}

/// Has the kernel kill the child when the thread that starts it ends, however it ends: start it
/// from the main thread.
pub fn dies_with_us(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: what runs between fork(2) and execve(2) makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            let kill = Some(rustix::process::Signal::KILL);
            rustix::process::set_parent_process_death_signal(kill)?;
            // A parent that died before that call sends nothing.
            match rustix::process::getppid() == Some(parent) {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        })
    }
}
