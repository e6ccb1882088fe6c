//! Two hosts for a test, made by `testbed net`: tests run the program in the first, and the second
//! is known to ssh as `far`. Both share this machine's files and CPUs.

use super::controller::Scratch;
use super::testbed::{Testbed, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Command;
use wiregauge_test_support::bounded::{LIMIT, output, until};

/// The other host.
pub struct FarHost {
    /// Its address, and the first one's.
    pub address: String,
    pub own: String,
    /// The interface of each end.
    pub interface: String,
    pub own_interface: String,
    /// The value of --ssh.
    pub ssh: String,
    /// The namespace of the first.
    here: String,
    testbed: Testbed,
}

/// Waits until the kernel has seen that a link is up.
pub fn await_link(namespace: &str, interface: &str) {
    until(&format!("{interface} is up"), LIMIT, || {
        let words = ["-n", namespace, "-brief", "link", "show", interface];
        let shown = output(Command::new("ip").args(words));
        String::from_utf8(shown.stdout).unwrap().split_whitespace().nth(1) == Some("UP")
    });
}

/// Waits until the kernel has seen that nobody else has a link's own address: none can be bound to
/// before.
fn await_link_local(namespace: &str, interface: &str) {
    until(&format!("{interface} has a link-local address"), LIMIT, || {
        let words = ["-n", namespace, "-6", "addr", "show", "dev", interface];
        let shown = String::from_utf8(output(Command::new("ip").args(words)).stdout).unwrap();
        shown.contains("fe80::") && !shown.contains("tentative")
    });
}

impl FarHost {
    /// A host beside the first, in which this scratch's programs now run. `None`, said on stderr,
    /// where none can be made.
    pub fn beside(scratch: &Scratch) -> Option<FarHost> {
        let testbed = Testbed::of(2, "pair", scratch)?;
        let [here, there] = [0, 1].map(|host| testbed.namespaces[host].clone());
        let (own_interface, interface) = ("wire0", "wirefar");
        for change in [format!("{own_interface} down"), format!("{own_interface} name {interface}")]
        {
            run(&format!("ip -n {there} link set {change}"));
        }
        run(&format!("ip -n {there} link set {interface} up"));
        await_link(&there, interface);
        await_link_local(&here, own_interface);
        await_link_local(&there, interface);
        let config = scratch.join("ssh_config");
        let hosts = "Host far\n  HostName wg-h2\nHost closed\n  HostName wg-h1\n  Port 1\n\
                     Host *\n  Include /etc/ssh/ssh_config\n";
        fs::write(&config, hosts).unwrap();
        Some(FarHost {
            address: "198.18.0.2".into(),
            own: "198.18.0.1".into(),
            interface: interface.into(),
            own_interface: own_interface.into(),
            ssh: format!("ssh -F {}", config.display()),
            here,
            testbed,
        })
    }

    /// Returns the network namespaces of the first host and of this one.
    pub fn namespaces(&self) -> [&str; 2] {
        [&self.here, &self.testbed.namespaces[1]]
    }

    /// Has this host drop what it would send over TCP but for ssh, or over UDP.
    pub fn blackhole(&self, protocol: &str) {
        let ports = if protocol == "tcp" { "sport 1024-65534 " } else { "" };
        let there = &self.testbed.namespaces[1];
        run(&format!("ip -n {there} rule add ipproto {protocol} {ports}priority 5 blackhole"));
    }

    /// Ends what [`FarHost::blackhole`] has begun.
    pub fn end_blackhole(&self) {
        run(&format!("ip -n {} rule del priority 5", self.testbed.namespaces[1]));
    }

    /// Sets the MTU of the first host's end of the wire.
    pub fn set_own_mtu(&self, bytes: u32) {
        run(&format!("ip -n {} link set {} mtu {bytes}", self.here, self.own_interface));
    }

    /// Puts the calling thread into the first host's network.
    pub fn enter(&self) {
        let network = fs::File::open(format!("/run/netns/{}", self.here)).unwrap();
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&network), kind)
            .unwrap();
    }

    /// The sshd that listens there: the testbed's own child.
    fn sshd(&self) -> i32 {
        let own = self.testbed.pid();
        let found = self.testbed.pids(1).into_iter().find(|pid| parent(*pid) == Some(own));
        found.expect("an sshd")
    }

    /// Ports but ssh's on which something listens there, as its own /proc/net/tcp says.
    pub fn listening(&self) -> Vec<u16> {
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.sshd()));
        let listens = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next()?, words.nth(1)?);
            let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
            (state == "0A" && port != 22).then_some(port)
        };
        table.unwrap_or_default().lines().filter_map(listens).collect()
    }

    /// Leaves this host's end of the wire with its link-local address alone.
    pub fn take_ipv4_away_here(&self) {
        run(&format!("ip -n {} addr flush dev {} scope global", self.here, self.own_interface));
        await_link_local(&self.here, &self.own_interface);
    }

    /// Whether a process is below another.
    fn is_below(pid: i32, ancestor: i32) -> bool {
        let mut at = pid;
        while let Some(above) = parent(at) {
            if above == ancestor {
                return true;
            }
            at = above;
        }
        false
    }

    /// The processes of its sessions.
    pub fn sessions(&self) -> Vec<i32> {
        let own = self.sshd();
        let all = fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| Self::is_below(*pid, own))
            .collect()
    }

    /// Kills sshd's processes of the sessions, and not what they run.
    pub fn kill_sessions(&self) {
        for pid in self.sessions() {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.starts_with("sshd") {
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
        }
    }

    /// Kills the first agent that was started there: the one that answers clock exchanges.
    pub fn kill_first_agent(&self) {
        let is_agent = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "wiregauge")
        };
        let first = self.sessions().into_iter().filter(is_agent).min().expect("an agent");
        kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    }

    /// Programs of wiregauge in its namespace.
    pub fn agents(&self) -> usize {
        self.testbed.agents(1)
    }

    /// A program that is to run there.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.testbed.namespaces[1], program]);
        command
    }

    /// Waits until no agent is left there.
    pub fn await_no_agents(&self) {
        until("no agent is left", LIMIT, || self.agents() == 0);
    }
}

/// The process that started another.
fn parent(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
