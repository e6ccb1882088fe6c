//! Several hosts for a test, made by `testbed net`: the controller runs in the first, which is not
//! among those counted here. They are reached by a script in the place of ssh, which stays where a
//! host is cut off (that a real ssh does the same is shown by the tests of two hosts).

use super::controller::Scratch;
use super::testbed::{Testbed, run};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use wiregauge_test_support::bounded::{LIMIT, until};

/// The hosts.
pub struct Net {
    /// Their names.
    pub names: Vec<String>,
    /// Their addresses.
    pub addresses: Vec<String>,
    /// The value of --ssh.
    pub ssh: String,
    testbed: Testbed,
    kept: Cell<u32>,
}

/// What stands in the place of ssh: the last word but one is the host, the last the command.
fn script(testbed: &Testbed, scratch: &Scratch) -> String {
    let path = scratch.join("reach");
    let (before, _) = testbed.namespaces[0].rsplit_once('-').unwrap();
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nhost={before}-${{1#wg-h}}\n\
         [ -e \"/run/netns/$host\" ] || {{ echo \"no host $1\" >&2; exit 255; }}\n\
         export SSH_CONNECTION=\"198.18.0.1 1 198.18.0.${{1#wg-h}} 22\"\n\
         exec ip netns exec \"$host\" sh -c \"$2\"\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

impl Net {
    /// So many hosts beside the controller's. `None`, said on stderr, where none can be made.
    pub fn of(count: u32, scratch: &Scratch) -> Option<Net> {
        let testbed = Testbed::of(count + 1, "star", scratch)?;
        let others = 2..=count + 1;
        let ssh = script(&testbed, scratch);
        Some(Net {
            names: others.clone().map(|host| format!("wg-h{host}")).collect(),
            addresses: others.map(|host| format!("198.18.0.{host}")).collect(),
            ssh,
            testbed,
            kept: Cell::new(0),
        })
    }

    /// The value of --hosts.
    pub fn list(&self) -> String {
        self.names.join(",")
    }

    /// A number that rises with each call.
    pub fn kept(&self) -> u32 {
        self.kept.replace(self.kept.get() + 1)
    }

    /// Takes a host's wire away.
    pub fn cut_off(&self, host: usize) {
        self.set_wire(host, "down");
    }

    /// Takes a host's wire away for a while.
    pub fn cut_off_for(&self, host: usize, time: Duration) {
        self.set_wire(host, "down");
        std::thread::sleep(time);
        self.set_wire(host, "up");
    }

    /// Kills the agents of a host.
    pub fn kill_agents(&self, host: usize) {
        for pid in self.testbed.agent_pids(host + 1).into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn set_wire(&self, host: usize, state: &str) {
        run(&format!("ip -n {} link set wire0 {state}", self.testbed.namespaces[host + 1]));
    }

    /// Has what a host sends go slowly.
    pub fn slow_down(&self, host: usize) {
        let namespace = &self.testbed.namespaces[host + 1];
        let shape = "root tbf rate 40mbit burst 64kb latency 20ms";
        run(&format!("ip netns exec {namespace} tc qdisc add dev wire0 {shape}"));
    }

    /// Packets that a host has received.
    fn packets(&self, host: usize) -> u64 {
        let pids = self.testbed.pids(host + 1);
        let tables =
            pids.iter().filter_map(|p| fs::read_to_string(format!("/proc/{p}/net/dev")).ok());
        let of = |table: String| {
            let (_, fields) = table.lines().find_map(|line| line.split_once("wire0:"))?;
            fields.split_whitespace().nth(1)?.parse().ok()
        };
        tables.filter_map(of).next().unwrap_or(0)
    }

    /// Waits until a host receives messages.
    pub fn await_messages(&self, host: usize) {
        let before = self.packets(host);
        until("messages pass", LIMIT, || self.packets(host) > before + 500);
    }

    fn agents(&self) -> usize {
        (1..=self.names.len()).map(|host| self.testbed.agents(host)).sum()
    }

    /// Waits until so many agents run.
    pub fn await_agents(&self, count: usize) {
        until(&format!("{count} agents run"), LIMIT, || self.agents() >= count);
    }

    /// Waits until no agent is left.
    pub fn await_no_agents(&self) {
        until("no agent is left", LIMIT, || self.agents() == 0);
    }
}
