//! Child processes: none outlives this one or its time.

use rustix::process::{Pid, Signal, getpgid, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wiregauge_base::threads;

/// Interval between two checks for an exit.
const PAUSE: Duration = Duration::from_millis(2);
/// Longest output of a command that is read.
const LONGEST_OUTPUT: u64 = 8192;

/// A child process that is killed when this is dropped.
#[derive(Debug)]
pub struct OwnedChild(pub Child);

impl Drop for OwnedChild {
    fn drop(&mut self) {
        let _ = kill(&mut self.0);
        let _ = self.0.wait();
    }
}

/// Kills a child; one that leads a process group with all that it has started there.
fn kill(child: &mut Child) -> io::Result<()> {
    // A child that was waited for is left alone: its pid may be another's.
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    let pid = Pid::from_child(child);
    if getpgid(Some(pid)) == Ok(pid) {
        // The group may be gone meanwhile; what counts is the child.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    child.kill()
}

/// How a child process ended.
pub enum Exit {
    /// By itself.
    Done(ExitStatus),
    /// It was killed: it had not ended in time, or nobody waits for it any more.
    Killed(ExitStatus),
}

/// Waits for a child's exit; kills it when `limit` is over or `is_left` says so.
pub fn wait(child: &mut Child, limit: Duration, is_left: impl Fn() -> bool) -> io::Result<Exit> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Exit::Done(status)),
            None if Instant::now() < deadline && !is_left() => std::thread::sleep(PAUSE),
            None => {
                kill(child)?;
                return child.wait().map(Exit::Killed);
            }
        }
    }
}

/// Runs a command until its end or that of its time, as [`wait`]; its end, and where it succeeded
/// the first 8 KiB of its standard output.
pub fn run(
    command: &mut Command,
    limit: Duration,
    is_left: impl Fn() -> bool,
) -> io::Result<(Exit, String)> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(with_limit)?;
    let output = child.stdout.take();
    let (exit, mut text) = (wait(&mut child, limit, is_left)?, String::new());
    if let (Exit::Done(status), Some(output)) = (&exit, output)
        && status.success()
    {
        output.take(LONGEST_OUTPUT).read_to_string(&mut text)?;
    }
    Ok((exit, text))
}

/// Names the limits of processes in an error of starting one, where it is about these.
pub fn with_limit(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), threads::explain_limit(&error))
}

/// The signal that killed a process: `signal 11 (SIGSEGV)`.
pub fn signal(status: ExitStatus) -> Option<String> {
    let signal = status.signal()?;
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("unnamed");
    Some(format!("signal {signal} ({name})"))
}

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
            let kill = Some(Signal::KILL);
            rustix::process::set_parent_process_death_signal(kill)?;
            // A parent that died before that call sends nothing. One outside of this PID namespace
            // has no number here.
            match rustix::process::getppid() {
                None => Ok(()),
                Some(pid) if pid == parent => Ok(()),
                Some(_) => Err(io::ErrorKind::BrokenPipe.into()),
            }
        })
    }
}
