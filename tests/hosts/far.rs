//! Another host for a test: a network namespace with an sshd of its own, joined by a veth pair. It
//! shares this machine's files and CPUs, and has another network stack.

use super::driver::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long sshd may take to listen.
const WATCHDOG: Duration = Duration::from_secs(20);

/// The other host.
pub struct FarHost {
    /// Its address, and this host's on the same wire.
    pub address: String,
    pub own: String,
    /// The interface of each end.
    pub interface: String,
    pub own_interface: String,
    /// The value of --ssh.
    pub ssh: String,
    namespace: String,
    sshd: Child,
}

fn run(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
    found.status.success()
}

/// Keys, and the configuration of both sides.
fn configure(dir: &Path, address: &str, own: &str) -> PathBuf {
    for key in ["host", "user"] {
        // An empty pass phrase is a word that `run` does not know.
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key));
        assert!(keygen.status().unwrap().success());
    }
    let at = dir.display();
    fs::copy(dir.join("user.pub"), dir.join("authorized")).unwrap();
    let host_key = fs::read_to_string(dir.join("host.pub")).unwrap();
    fs::write(dir.join("known"), format!("{address} {host_key}")).unwrap();
    let sshd = format!(
        "ListenAddress {address}\nPort 22\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
         PidFile none\nLogLevel ERROR\n"
    );
    fs::write(dir.join("sshd_config"), sshd).unwrap();
    let hosts = format!(
        "Host far\n  HostName {address}\n  User root\n\
         Host closed\n  HostName {own}\n  Port 1\n\
         Host *\n  IdentityFile {at}/user\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
         UserKnownHostsFile {at}/known\n  GlobalKnownHostsFile /dev/null\n  \
         StrictHostKeyChecking yes\n"
    );
    fs::write(dir.join("ssh_config"), hosts).unwrap();
    dir.join("ssh_config")
}

impl FarHost {
    /// A host beside this one. `None`, said on stderr, where none can be made.
    pub fn beside(scratch: &Scratch) -> Option<FarHost> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: a network namespace needs root");
            return None;
        }
        for program in ["ip", "ssh", "ssh-keygen", "/usr/sbin/sshd"] {
            assert!(has(program), "{program} is missing: install what ./test lists");
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id() % 50_000;
        let namespace = format!("wg{id}n{number}");
        let (near, far) = (format!("wa{id}n{number}"), format!("wb{id}n{number}"));
        // 198.18.0.0/15 is for benchmarks of networks (RFC 2544).
        let base = (id * 5 + number) % 32_000 * 4;
        let at = |last: u32| {
            let word = base + last;
            format!("198.{}.{}.{}", 18 + (word >> 16), (word >> 8) & 255, word & 255)
        };
        let (own, address) = (at(1), at(2));
        run(&format!("ip netns add {namespace}"));
        run(&format!("ip link add {near} type veth peer name {far} netns {namespace}"));
        run(&format!("ip addr add {own}/30 dev {near}"));
        run(&format!("ip link set {near} up"));
        run(&format!("ip -n {namespace} addr add {address}/30 dev {far}"));
        run(&format!("ip -n {namespace} link set {far} up"));
        run(&format!("ip -n {namespace} link set lo up"));
        let dir = scratch.join("ssh");
        fs::create_dir_all(&dir).unwrap();
        // sshd wants it, whoever starts it.
        fs::create_dir_all("/run/sshd").unwrap();
        let config = configure(&dir, &address, &own);
        let sshd = Command::new("ip")
            .args(["netns", "exec", &namespace, "/usr/sbin/sshd", "-D", "-e", "-f"])
            .arg(dir.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(fs::File::create(dir.join("sshd.log")).unwrap())
            .spawn()
            .unwrap();
        let ssh = format!("ssh -F {}", config.display());
        let host =
            FarHost { address, own, interface: far, own_interface: near, ssh, namespace, sshd };
        host.await_sshd();
        Some(host)
    }

    fn await_sshd(&self) {
        let deadline = Instant::now() + WATCHDOG;
        while TcpStream::connect((self.address.as_str(), 22)).is_err() {
            assert!(Instant::now() < deadline, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ports but ssh's on which something listens there, as its own /proc/net/tcp says.
    pub fn listening(&self) -> Vec<u16> {
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.sshd.id()));
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
        run(&format!("ip addr flush dev {} scope global", self.own_interface));
        let deadline = Instant::now() + WATCHDOG;
        let tentative = || {
            let shown = Command::new("ip")
                .args(["-6", "addr", "show", "dev", &self.own_interface])
                .output()
                .unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            shown.contains("tentative") || !shown.contains("fe80::")
        };
        while tentative() {
            assert!(Instant::now() < deadline, "no link-local address");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether a process is below another.
    fn is_below(pid: i32, ancestor: i32) -> bool {
        let parent = |pid: i32| -> Option<i32> {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
        };
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
        let own = self.sshd.id() as i32;
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

    /// Programs of wiregauge in its namespace.
    pub fn agents(&self) -> usize {
        let pids = Command::new("ip").args(["netns", "pids", &self.namespace]).output().unwrap();
        let pids = String::from_utf8(pids.stdout).unwrap();
        let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        pids.lines().filter(|pid| name(pid).starts_with("wiregauge")).count()
    }

    /// A program that is to run there.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command
    }

    /// Waits until no agent is left there.
    pub fn await_no_agents(&self) {
        let deadline = Instant::now() + WATCHDOG;
        while self.agents() > 0 {
            assert!(Instant::now() < deadline, "an agent stays");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for FarHost {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        let _ = Command::new("ip").args(["link", "del", &self.own_interface]).status();
        let _ = Command::new("ip").args(["netns", "del", &self.namespace]).status();
    }
}
