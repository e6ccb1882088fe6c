//! Bounds of time for tests: whatever waits ends, and the test fails with a sentence.
//!
//! No bound is a claim about speed: all are far above what a busy machine needs.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// No single wait of a test is longer.
pub const LIMIT: Duration = Duration::from_secs(120);
/// No test is longer, whatever it consists of.
const TEST_LIMIT: Duration = Duration::from_secs(600);
/// Time within which a process ends that ends by itself. What it would have done otherwise lasts
/// longer.
pub const SOON: Duration = Duration::from_secs(20);
/// Between two looks.
pub const LOOK: Duration = Duration::from_millis(5);
/// Attempts at a claim that a fault of another program may spoil.
const ATTEMPTS: u32 = 6;

/// Returns true once `seen` returns true, and false if it has not within `limit`.
pub fn is_soon(limit: Duration, seen: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !seen() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, limit: Duration, seen: impl Fn() -> bool) {
    assert!(is_soon(limit, seen), "not within {limit:?}: {what}");
}

/// Waits for a value.
#[track_caller]
pub fn until_some<T>(what: &str, limit: Duration, mut seen: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = seen() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(LOOK);
    }
}

/// A fault of a program that is not this project's, with the evidence. These are the only reasons
/// to check a claim again.
#[derive(Debug)]
pub enum ForeignFault {
    /// On one CPU with its ranks, `mpirun` of MPICH 4.0 may poll for ever after they have ended: it
    /// has no child and no connection left then, and is killed.
    LauncherPollsForEver,
    /// `mpirun` of MPICH 4.0 may end on a busy machine before it has passed on what a rank wrote.
    LauncherLosesOutput,
    /// The scheduler of Linux 6.18 may let one thread have a CPU for 45 to 60 s: timer interrupts
    /// go on, every other thread of that CPU is runnable and gets nothing, and the kernel says
    /// "BUG: workqueue lockup".
    CpuOfOneThread,
}

/// Checks a claim that a fault of another program may spoil: it must hold in one of several
/// attempts. A defect of ours spoils all of them.
pub fn in_spite_of(fault: ForeignFault, claim: impl Fn()) {
    for attempt in 1.. {
        match catch_unwind(AssertUnwindSafe(&claim)) {
            Ok(()) => return,
            Err(panic) if attempt == ATTEMPTS => resume_unwind(panic),
            Err(_) => eprintln!("{fault:?}? Attempt {attempt} of {ATTEMPTS} failed"),
        }
    }
}

/// The exit status of a process; one that does not end within `limit` is killed and has none.
pub fn end_or_kill(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(LOOK);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// The exit status of a process, which must end within `limit`.
#[track_caller]
pub fn end(child: &mut Child, limit: Duration) -> ExitStatus {
    let status = end_or_kill(child, limit);
    status.unwrap_or_else(|| panic!("process {} did not end within {limit:?}", child.id()))
}

/// A running command and all that it prints. Files hold it: a process that outlives the command
/// would keep a pipe open.
pub struct Running {
    pub child: Child,
    out: File,
    err: File,
}

/// Starts a command in a process group of its own, without input.
pub fn start(command: &mut Command) -> Running {
    start_with(command, Stdio::null())
}

/// Starts a command in a process group of its own with this input.
pub fn start_with(command: &mut Command, input: impl Into<Stdio>) -> Running {
    let file = |name| File::from(memfd_create(name, MemfdFlags::CLOEXEC).unwrap());
    let (out, err) = (file("stdout"), file("stderr"));
    let child = command
        .stdin(input)
        .stdout(out.try_clone().unwrap())
        .stderr(err.try_clone().unwrap())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Running { child, out, err }
}

impl Running {
    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `seen`. Panics with the output so far if the command ends first or `limit`
    /// passes.
    #[track_caller]
    pub fn until(&mut self, what: &str, limit: Duration, seen: impl Fn() -> bool) {
        let deadline = Instant::now() + limit;
        while !seen() {
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() || Instant::now() > deadline {
                let said = self.said();
                panic!(
                    "not before the command's end ({ended:?}), within {limit:?}: {what}; {said}"
                );
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for the command's end. After `limit` its process group is killed.
    #[track_caller]
    pub fn end(mut self, limit: Duration) -> Output {
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let group = Pid::from_child(&self.child);
                let _ = kill_process_group(group, Signal::KILL);
                let _ = self.child.wait();
                let said = self.said();
                panic!("process {group:?} did not end within {limit:?}; {said}");
            }
            std::thread::sleep(LOOK);
        };
        Output { status, stdout: read(&mut self.out), stderr: read(&mut self.err) }
    }

    fn said(&mut self) -> String {
        let said = [read(&mut self.out), read(&mut self.err)].concat();
        format!("it printed: {}", String::from_utf8_lossy(&said))
    }
}

fn read(file: &mut File) -> Vec<u8> {
    let mut all = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut all).unwrap();
    all
}

/// Runs a command to its end, within [`LIMIT`].
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    start(command).end(LIMIT)
}

/// While this lives, the test must end within `TEST_LIMIT`; else the whole program ends and names
/// the test. It is the last resort: a thread that hangs in a call cannot be ended.
pub struct Bound(#[allow(dead_code)] Sender<()>);

impl Default for Bound {
    fn default() -> Bound {
        Bound::new()
    }
}

impl Bound {
    pub fn new() -> Bound {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("of no name").to_string();
        let (alive, ended) = channel();
        std::thread::spawn(move || {
            if ended.recv_timeout(TEST_LIMIT) == Err(RecvTimeoutError::Timeout) {
                let sentence = format!("test {name} did not end within {TEST_LIMIT:?}: aborted\n");
                // What is printed otherwise would be captured.
                let _ = std::io::stderr().write_all(sentence.as_bytes());
                std::process::abort();
            }
        });
        Bound(alive)
    }
}
