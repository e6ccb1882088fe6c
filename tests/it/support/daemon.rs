//! A running agent daemon, and a controller with a folder of its own.

use super::controller::{Controller, Ended, Scratch};
use super::program::PROGRAM;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use wiregauge_test_support::bounded::{self, LIMIT, SOON, is_soon, until};

/// The agent.
pub struct Daemon {
    /// Where it listens.
    pub at: SocketAddr,
    /// Its identity and its controllers.
    pub folder: PathBuf,
    log: PathBuf,
    child: Child,
}

/// Lets a daemon on loopback exchange data with a controller that is not behind a tunnel.
pub const HERE: &str = "--peers 127.0.0.1,::1";

/// What a process says of memory or its parent in /proc/PID/status.
pub fn status(pid: u32, word: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with(word))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl Daemon {
    /// One on loopback, whose rounds may exchange data with this host.
    pub fn start(scratch: &Scratch, options: &str) -> Daemon {
        let peers = if options.contains("--peers") { "" } else { HERE };
        let options = format!("--listen 127.0.0.1:0 {peers} {options}");
        Daemon::of(scratch, Command::new(PROGRAM), &options)
    }

    /// One that a command runs, as in another namespace.
    pub fn of(scratch: &Scratch, program: Command, options: &str) -> Daemon {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Daemon::who_is(scratch.join(&format!("agent{number}")), program, options)
    }

    /// One with a folder that may have an identity already.
    pub fn who_is(folder: PathBuf, mut program: Command, options: &str) -> Daemon {
        let log = folder.with_extension("log");
        let child = program
            .arg("agent")
            .args(options.split_whitespace())
            .arg("--identity")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let at = "127.0.0.1:0".parse().unwrap();
        let mut daemon = Daemon { at, folder, log, child };
        until("the agent listens", LIMIT, || daemon.log().contains("paired with"));
        let log = daemon.log();
        let (_, rest) = log.split_once("listening at ").unwrap();
        let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap();
        daemon.at = rest[..end].parse().unwrap();
        daemon
    }

    /// All that it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said so much.
    #[track_caller]
    pub fn await_log(&self, words: &str) {
        let said = is_soon(LIMIT, || self.log().contains(words));
        assert!(said, "no '{words}' within {LIMIT:?} in {}", self.log());
    }

    /// The name that a controller gives.
    pub fn host(&self) -> String {
        format!("agent:{}", self.at)
    }

    /// A secret that it takes.
    pub fn offer(&self) -> String {
        let mut agent = Command::new(PROGRAM);
        agent.args(["agent", "--pair", "--identity"]).arg(&self.folder);
        let output = bounded::output(&mut agent);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Pairs this test's controller with it.
    pub fn pair(&self, scratch: &Scratch) {
        let (code, said) = pair(scratch, self.at, &self.offer());
        assert_eq!(code, Some(0), "{said}");
    }

    /// The processes that it has started and that live.
    pub fn processes(&self) -> Vec<u32> {
        let all = fs::read_dir("/proc").unwrap();
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let own = self.pid();
        pids.filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut words = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
            words.next() != Some("Z") && words.next() == Some(own.to_string().as_str())
        })
        .collect()
    }

    /// Waits until none of them is left.
    #[track_caller]
    pub fn await_no_processes(&self) {
        until("its processes end", SOON, || self.processes().is_empty());
    }

    /// The most memory that it has had, in KiB.
    pub fn peak_kib(&self) -> u64 {
        status(self.pid(), "VmHWM:").unwrap()
    }

    /// Its number; `ip netns exec` becomes the program that it runs.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process.
pub fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// Gives a secret to `pair`: its exit code and what it said.
pub fn pair(scratch: &Scratch, at: SocketAddr, secret: &str) -> (Option<i32>, String) {
    let (typed, mut typing) = std::io::pipe().unwrap();
    typing.write_all(secret.as_bytes()).unwrap();
    drop(typing);
    let mut command = program(scratch, &["pair", &at.to_string()]);
    let output = bounded::start_with(&mut command, typed).end(LIMIT);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The folder of the controller's identity.
pub fn controller_folder(scratch: &Scratch) -> PathBuf {
    scratch.join("controller")
}

/// The program as this test's controller runs it.
pub fn program(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("WIREGAUGE_CONFIG", controller_folder(scratch));
    command
}

/// A run that goes on.
pub fn controlling(scratch: &Scratch, host: &str, line: &str) -> Controller {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    words.extend(["--to", host]);
    Controller::of(scratch, program(scratch, &words))
}

/// A run to its end.
pub fn driven(scratch: &Scratch, host: &str, line: &str) -> Ended {
    controlling(scratch, host, line).end()
}

/// One that is refused in one sentence before anything has run.
#[track_caller]
pub fn refused(scratch: &Scratch, host: &str, line: &str, code: i32) -> String {
    let ended = driven(scratch, host, &format!("{line} --out refused"));
    assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{line}: {ended:?}");
    let _ = fs::remove_dir_all(scratch.join("refused"));
    ended.stderr
}
