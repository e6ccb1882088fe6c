//! The RDMA testbed boots, runs a command, and always ends.
//!
//! Skipped with a reason where the host lacks a program, and where
//! `WIREGAUGE_TESTS_WITHOUT_MACHINE` is set. A boot takes some 10 s of both processors: three
//! boots prove much each, and those that are killed are not waited for.

mod control_groups;
mod recipes;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wiregauge_test_support::bounded::{LIMIT, end, output, start, until, until_some};

/// A machine boots, works and ends within this, also where the kernel must be fetched first.
const MACHINE_LIMIT: Duration = Duration::from_secs(600);

/// A plain file that is no kernel's package.
const NO_PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// One machine at a time: two that boot at once take more than twice as long.
static TURN: Mutex<()> = Mutex::new(());

/// What is said of a machine's kernel where its command failed.
const KERNEL: &str = "wiregauge: the kernel of machine ";

fn wiregauge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    command.args(["testbed", "rdma"]).args(arguments).stdin(Stdio::null());
    command
}

/// The turn to run a machine; `None`, with a printed reason: there can be none here.
fn turn() -> Option<MutexGuard<'static, ()>> {
    let reason = match std::env::var_os("WIREGAUGE_TESTS_WITHOUT_MACHINE") {
        Some(_) => Some("WIREGAUGE_TESTS_WITHOUT_MACHINE is set".to_owned()),
        None => {
            // The programs are looked for before the package, here a wrong file, is unpacked.
            let probe = output(&mut wiregauge(&["--kernel", NO_PACKAGE, "--", "true"]));
            let said = String::from_utf8(probe.stderr).unwrap();
            assert_eq!(probe.status.code(), Some(4), "{said}");
            (!said.contains(NO_PACKAGE)).then_some(said)
        }
    };
    if let Some(reason) = reason {
        eprintln!("skipped: {}", reason.trim_end());
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A folder that does not exist yet, and goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("testbed-{}-{name}", std::process::id());
        Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The emulators that a process has started.
fn machines_of(parent: u32) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let of_parent = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let name = stat.contains("(qemu-system-x86");
        name && stat.rsplit(')').next().unwrap().split_whitespace().nth(1)
            == Some(parent.to_string().as_str())
    };
    numbers.filter(of_parent).filter_map(Pid::from_raw).collect()
}

fn await_machine(controller: &mut Child) -> Pid {
    until_some("a machine", MACHINE_LIMIT, || {
        let over = controller.try_wait().unwrap();
        let machine = machines_of(controller.id()).first().copied();
        assert!(over.is_none() || machine.is_some(), "it ended before its machine began: {over:?}");
        machine
    })
}

fn assert_gone(machine: Pid) {
    let stat = format!("/proc/{}/stat", machine.as_raw_nonzero());
    let lives = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    until("the machine ends with its controller", LIMIT, || !lives());
}

/// The first of two machines: its command's environment, output, files and exit code, and the wire
/// to the other.
#[test]
fn a_command_runs_as_here_but_for_the_device_and_the_other_machine() {
    let Some(_turn) = turn() else { return };
    let scratch = Scratch::new("whole");
    let out = scratch.0.join("a, b");
    // The peer's listener may come late: the first machine tries until it is there.
    let peer = "busybox nc -l -p 7777 | sed s/ask/answer/; printf tail; : >/out/answered";
    let script = "until echo ask | busybox nc $WIREGAUGE_TESTBED_PEER 7777; do sleep 0.2; done; \
                  until [ -e /out/answered ]; do sleep 0.1; done; sleep 1; \
                  printf 'one\\r\\ntwo\\000\\n'; echo beside >&2; pwd >/out/directory; \
                  cat /sys/class/infiniband/rxe0/ports/1/state; printf '%s|' \"$MINE\" \"$@\"; \
                  mkdir /out/deep; ulimit -l >/out/deep/limit; \
                  echo lost >\"$0\"; \
                  cat \"$0\"; echo '<0>a CPU hangs' >/dev/kmsg; \
                  exit $((WIREGAUGE_TESTBED_NUMBER + 6))";
    let gone = scratch.0.join("stays-in-the-machine");
    fs::create_dir_all(&scratch.0).unwrap();
    let mut command = wiregauge(&["--machines", "2", "--peer", peer, "--timeout", "240s"]);
    command.args(["--out", out.to_str().unwrap(), "--", "sh", "-c", script]);
    command.arg(&gone).args(["it's", "", "$HOME"]).env("MINE", "a 'b'\n");
    let output = start(command.current_dir(&scratch.0)).end(MACHINE_LIMIT);
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(7), "{stdout}{stderr}");
    let expected = "one\r\ntwo\0\n4: ACTIVE\na 'b'\n|it's||$HOME|lost\n";
    assert_eq!(stdout, expected, "{stderr}");
    let (command, kernel) = stderr.split_once(KERNEL).expect("what the kernel said");
    assert!(command.ends_with("beside\n"), "{stderr}");
    assert!(command.contains("peer: answer\n"), "{stderr}");
    // A line that does not end is passed on when its machine has ended.
    assert!(kernel.ends_with("peer: tail\n"), "{stderr}");
    assert!(kernel.contains("a CPU hangs"), "{stderr}");
    let here = scratch.0.canonicalize().unwrap();
    assert_eq!(fs::read_to_string(out.join("directory")).unwrap().trim(), here.to_str().unwrap());
    assert_eq!(fs::read_to_string(out.join("deep/limit")).unwrap(), "unlimited\n");
    assert!(!gone.exists(), "the guest wrote on the host");
}

#[test]
fn a_command_that_hangs_is_ended_with_its_machine() {
    let Some(_turn) = turn() else { return };
    let scratch = Scratch::new("hangs");
    let out = scratch.0.to_str().unwrap();
    let hangs = "echo begun; : >/out/begun; sleep infinity";
    let arguments = ["--timeout", "20s", "--out", out, "--", "sh", "-c", hangs];
    let mut controller = start(&mut wiregauge(&arguments));
    let machine = await_machine(&mut controller.child);
    let begun = scratch.0.join("begun");
    until("the command begins", MACHINE_LIMIT, || begun.exists());
    let output = controller.end(MACHINE_LIMIT);
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert_eq!(stdout, "begun\n");
    assert!(stderr.contains("--timeout 20 s"), "{stderr}");
    assert_gone(machine);
}

/// The temporary files whose names begin so.
fn left(begin: &str) -> Vec<PathBuf> {
    let found = fs::read_dir(std::env::temp_dir()).unwrap().flatten().map(|one| one.path());
    found.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(begin)).collect()
}

#[test]
fn a_machine_ends_with_its_controller_however_that_ends() {
    let Some(_turn) = turn() else { return };
    for (signal, code) in
        [(Signal::TERM, Some(143)), (Signal::INT, Some(130)), (Signal::KILL, None)]
    {
        let mut controller = wiregauge(&["--", "sleep", "infinity"]).spawn().unwrap();
        let machine = await_machine(&mut controller);
        // The controller has the handlers of signals before it starts a machine.
        kill_process(Pid::from_raw(controller.id() as i32).unwrap(), signal).unwrap();
        let status = end(&mut controller, MACHINE_LIMIT);
        assert_eq!(status.code(), code, "{signal:?}");
        assert_gone(machine);
        for kind in ["testbed", "out"] {
            let left = left(&format!("wiregauge-{kind}-{}-", controller.id()));
            // Only who is killed cannot clear up.
            assert_eq!(left.len(), usize::from(signal == Signal::KILL), "{left:?}");
            left.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
        }
    }
}

#[test]
fn a_machine_that_dies_is_said_in_a_sentence() {
    let Some(_turn) = turn() else { return };
    let mut controller = start(&mut wiregauge(&["--", "sleep", "infinity"]));
    let machine = await_machine(&mut controller.child);
    kill_process(machine, Signal::KILL).unwrap();
    let output = controller.end(MACHINE_LIMIT);
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.starts_with("wiregauge: the testbed's machine 1 "), "{stderr}");
}
