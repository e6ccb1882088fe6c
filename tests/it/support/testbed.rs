//! A `testbed net` for a test: its hosts wait until it goes.

use super::controller::Scratch;
use super::program::PROGRAM;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command, Stdio};
use wiregauge_test_support::bounded::{LIMIT, end_or_kill, output, until_some};

/// The hosts.
pub struct Testbed {
    /// Their namespaces, the first one's first: there this scratch's programs now run.
    pub namespaces: Vec<String>,
    child: Child,
}

/// Runs a line to its end, which must be a good one.
pub fn run(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let output = output(Command::new(words[0]).args(&words[1..]));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Testbed {
    /// So many hosts. `None`, said on stderr, where none can be made.
    pub fn of(hosts: u32, topology: &str, scratch: &Scratch) -> Option<Testbed> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: a network namespace needs root");
            return None;
        }
        let told = scratch.join("testbed.names");
        let tell = format!(
            "echo $WIREGAUGE_TESTBED_NAMESPACES >{0}.new; mv {0}.new {0}; exec sleep infinity",
            told.display()
        );
        let hosts = hosts.to_string();
        let mut child = Command::new(PROGRAM)
            .args(["testbed", "net", "--hosts", &hosts, "--topology", topology])
            .args(["--", "sh", "-c", &tell])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(scratch.join("testbed.err")).unwrap())
            .spawn()
            .unwrap();
        let names = until_some("the hosts are up", LIMIT, || {
            let over = child.try_wait().unwrap();
            let said = || fs::read_to_string(scratch.join("testbed.err")).unwrap();
            assert!(over.is_none(), "{over:?}: {}", said());
            fs::read_to_string(&told).ok()
        });
        let namespaces: Vec<String> = names.trim().split(',').map(String::from).collect();
        assert!(namespaces.len() > 1, "{names}");
        scratch.run_behind(&["ip", "netns", "exec", &namespaces[0]]);
        Some(Testbed { namespaces, child })
    }

    /// The process that keeps it.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// All processes of a host.
    pub fn pids(&self, host: usize) -> Vec<i32> {
        let name = &self.namespaces[host];
        let pids = output(Command::new("ip").args(["netns", "pids", name]));
        let pids = String::from_utf8(pids.stdout).unwrap();
        pids.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Programs of wiregauge on a host.
    pub fn agents(&self, host: usize) -> usize {
        self.agent_pids(host).len()
    }

    /// Their processes.
    pub fn agent_pids(&self, host: usize) -> Vec<i32> {
        let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        self.pids(host).into_iter().filter(|pid| name(*pid).starts_with("wiregauge")).collect()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = end_or_kill(&mut self.child, LIMIT);
    }
}
