//! Several hosts for a test: network namespaces on one bridge, reached by a script in the place of
//! ssh (that a real ssh does the same is shown by the tests of two hosts).

use super::driver::Scratch;
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long processes may take to come and to go.
const WATCHDOG: Duration = Duration::from_secs(30);

/// The hosts.
pub struct Net {
    /// Their names, which are those of their namespaces.
    pub names: Vec<String>,
    /// Their addresses.
    pub addresses: Vec<String>,
    /// The value of --ssh.
    pub ssh: String,
    bridge: String,
    kept: Cell<u32>,
}

fn run(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Net {
    /// So many hosts. `None`, said on stderr, where none can be made.
    pub fn of(count: u32, scratch: &Scratch) -> Option<Net> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: a network namespace needs root");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id() % 50_000;
        let bridge = format!("wr{id}n{number}");
        let subnet = 1 + (id * 3 + number) % 250;
        run(&format!("ip link add {bridge} type bridge"));
        let mut net = Net {
            names: Vec::new(),
            addresses: Vec::new(),
            ssh: String::new(),
            bridge,
            kept: Cell::new(0),
        };
        // 198.18.0.0/15 is for benchmarks of networks (RFC 2544).
        run(&format!("ip addr add 198.19.{subnet}.250/24 dev {}", net.bridge));
        run(&format!("ip link set {} up", net.bridge));
        for host in 1..=count {
            let name = format!("wg{id}n{number}h{host}");
            let (near, address) =
                (format!("wv{id}n{number}h{host}"), format!("198.19.{subnet}.{host}"));
            run(&format!("ip netns add {name}"));
            net.names.push(name.clone());
            net.addresses.push(address.clone());
            run(&format!("ip link add {near} type veth peer name eth0 netns {name}"));
            run(&format!("ip link set {near} master {} up", net.bridge));
            run(&format!("ip -n {name} addr add {address}/24 dev eth0"));
            run(&format!("ip -n {name} link set eth0 up"));
            run(&format!("ip -n {name} link set lo up"));
        }
        net.ssh = net.script(scratch, subnet);
        Some(net)
    }

    /// What stands in the place of ssh: the last word but one is the host, the last the command.
    fn script(&self, scratch: &Scratch, subnet: u32) -> String {
        let path = scratch.join("reach");
        let script = format!(
            "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\n\
             [ -e \"/run/netns/$1\" ] || {{ echo \"no host $1\" >&2; exit 255; }}\n\
             export SSH_CONNECTION=\"198.19.{subnet}.250 1 198.19.{subnet}.${{1##*h}} 22\"\n\
             exec ip netns exec \"$1\" sh -c \"$2\"\n"
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
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
        run(&format!("ip -n {} link set eth0 down", self.names[host]));
    }

    fn agents(&self) -> usize {
        let pids = |name: &String| {
            let pids = Command::new("ip").args(["netns", "pids", name]).output().unwrap();
            String::from_utf8(pids.stdout).unwrap()
        };
        let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let all: String = self.names.iter().map(pids).collect();
        all.lines().filter(|pid| name(pid).starts_with("wiregauge")).count()
    }

    /// Waits until so many agents run.
    pub fn await_agents(&self, count: usize) {
        let deadline = Instant::now() + WATCHDOG;
        while self.agents() < count {
            assert!(Instant::now() < deadline, "{} agents of {count}", self.agents());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no agent is left.
    pub fn await_no_agents(&self) {
        let deadline = Instant::now() + WATCHDOG;
        while self.agents() > 0 {
            assert!(Instant::now() < deadline, "an agent stays");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
        let _ = Command::new("ip").args(["link", "del", &self.bridge]).status();
    }
}
