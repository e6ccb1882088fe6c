//! The hosts themselves: made, entered, and removed.

use super::super::tools::{self, call, last_words, private_folder, start, wait_until};
use super::wiring::{self, host_name};
use super::{NetworkRequest, Topology, login};
use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wiregauge_host::child::{self, OwnedChild};

/// What the names of our namespaces begin with; the owner's number and the host's follow.
const PREFIX: &str = "wgnet-";
/// Where `ip netns` keeps namespaces, and what it puts over `/etc` in each.
const NAMESPACES: &str = "/run/netns";
const OVER_ETC: &str = "/etc/netns";
/// The kind of folder that one testbed has among the temporary files.
const FOLDER: &str = "net";
/// How long an sshd may take to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(20);
/// How long killed processes may take to go.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// The namespaces of one owner. They are removed when this is dropped.
#[derive(Debug)]
pub struct Hosts {
    hosts: usize,
    names: Vec<String>,
    servers: Vec<OwnedChild>,
    folder: TempDir,
}

/// What a host's sshd says.
fn log(folder: &TempDir, number: usize) -> PathBuf {
    folder.path().join(format!("sshd-{number}.log"))
}

fn namespace(number: usize) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

/// The owner of a namespace of ours.
fn owner_of(name: &str) -> Option<u32> {
    let (owner, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<usize>().ok()?;
    owner.parse().ok()
}

impl Hosts {
    /// Makes them. A signal ends the making early.
    pub fn make(wanted: &NetworkRequest, signal: &AtomicUsize) -> io::Result<Hosts> {
        let folder = private_folder(FOLDER)?;
        let names: Vec<String> = wiring::namespaces(wanted).map(namespace).collect();
        let add: Vec<String> = names.iter().map(|name| format!("netns add {name}")).collect();
        let mut made = Hosts { hosts: wanted.hosts, names, servers: Vec::new(), folder };
        made.write()?;
        batch("ip", None, &add)?;
        if wanted.topology == Topology::Ring {
            // A host passes on packets that are for others.
            let line = "echo 1 >/proc/sys/net/ipv4/ip_forward";
            for name in &made.names {
                call(tools::command("ip").args(["netns", "exec", name, "sh", "-c", line]), "")?;
            }
        }
        for lines in wiring::lines(wanted, namespace) {
            if signal.load(Ordering::Relaxed) != 0 {
                return Ok(made);
            }
            let name = namespace(lines.namespace);
            batch("ip", Some(&name), &lines.ip)?;
            batch("tc", Some(&name), &lines.tc).map_err(without_netem)?;
        }
        // sshd wants it, whoever starts it.
        fs::create_dir_all("/run/sshd")?;
        for number in 1..=wanted.hosts {
            made.serve(number)?;
        }
        made.await_servers(signal)?;
        made.await_links(signal)?;
        Ok(made)
    }

    /// What `ip netns exec` puts over `/etc` in each host.
    fn write(&self) -> io::Result<()> {
        let folder = self.folder.path();
        let ssh = folder.join("ssh");
        login::prepare(&ssh)?;
        let names = folder.join("hosts");
        let own = fs::read_to_string("/etc/hosts").unwrap_or_default();
        fs::write(&names, wiring::names(&own, self.hosts))?;
        for number in 1..=self.hosts {
            let over = Path::new(OVER_ETC).join(namespace(number));
            fs::create_dir_all(&over)?;
            symlink(&names, over.join("hosts"))?;
            symlink(&ssh, over.join("ssh"))?;
        }
        Ok(())
    }

    /// A command in a host: its network, its name, what covers `/etc` there.
    fn inside(&self, number: usize) -> Command {
        let mut command = tools::command("ip");
        command.args(["netns", "exec", &namespace(number)]);
        // Its /proc is that of its PID namespace.
        command.args(["unshare", "--uts", "--mount-proc", "sh", "-c"]);
        command.arg("echo \"$0\" >/proc/sys/kernel/hostname && exec \"$@\"");
        command.arg(host_name(number));
        command
    }

    fn serve(&mut self, number: usize) -> io::Result<()> {
        let mut command = self.inside(number);
        // It refuses to be called by less than its path.
        let program = tools::find("sshd").unwrap_or_default();
        command.arg(&program).args(["-D", "-e", "-f", "/etc/ssh/sshd_config"]);
        let said = fs::File::create(log(&self.folder, number))?.into_file();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        self.servers.push(OwnedChild(start(&mut command)?));
        Ok(())
    }

    fn await_servers(&mut self, signal: &AtomicUsize) -> io::Result<()> {
        let deadline = Instant::now() + LISTEN_LIMIT;
        for (number, server) in (1..).zip(&mut self.servers) {
            let listening = wait_until(deadline, || {
                let is_ready = listens(server.0.id()) || signal.load(Ordering::Relaxed) != 0;
                let mut is_over = || matches!(server.0.try_wait(), Ok(Some(_)));
                (is_ready || is_over()).then_some(is_ready)
            });
            if listening != Some(true) {
                let said = last_words(&fs::read(log(&self.folder, number)).unwrap_or_default());
                let host = host_name(number);
                let sentence = format!("sshd of {host} (it does not listen) failed: {said}");
                return Err(io::Error::other(sentence));
            }
        }
        Ok(())
    }

    /// Waits until the kernel has seen that both ends of every link are up.
    fn await_links(&self, signal: &AtomicUsize) -> io::Result<()> {
        let deadline = Instant::now() + LISTEN_LIMIT;
        for name in &self.names {
            let mut show = tools::command("ip");
            show.args(["-n", name, "-brief", "link", "show", "type", "veth"]);
            let mut shown = String::new();
            let up = wait_until(deadline, || {
                let said = call(&mut show, "").unwrap_or_else(|error| error.to_string().into());
                shown = String::from_utf8_lossy(&said).into_owned();
                let is_up = |line: &str| line.split_whitespace().nth(1) == Some("UP");
                let is_over = shown.lines().all(is_up) || signal.load(Ordering::Relaxed) != 0;
                is_over.then_some(())
            });
            up.ok_or_else(|| {
                let shown = shown.trim();
                io::Error::other(format!("a link of {name} does not come up: {shown}"))
            })?;
        }
        Ok(())
    }

    /// Starts a command in the first host, in this process's group: a terminal is shared.
    pub fn start(&self, words: &[OsString]) -> io::Result<Child> {
        let numbers = 1..=self.hosts;
        let all = |of: &dyn Fn(usize) -> String| numbers.clone().map(of).collect::<Vec<_>>();
        let mut command = self.inside(1);
        command.args(words);
        command.env("PATH", login::programs()).env("WIREGAUGE_TESTBED", "net");
        command.env("WIREGAUGE_TESTBED_HOSTS", all(&host_name).join(","));
        let namespaces = all(&namespace);
        command.env("WIREGAUGE_TESTBED_NAMESPACES", namespaces.join(","));
        child::dies_with_us(&mut command).spawn()
    }

    /// Removes everything; nothing the second time.
    pub fn remove(&mut self) -> io::Result<()> {
        self.servers.clear();
        take_away(&std::mem::take(&mut self.names))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Whether a process listens for ssh, as its own network's table says (state 0A, port 22).
fn listens(pid: u32) -> bool {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let ours = fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    // Until it has entered its network it has this machine's.
    let apart = fs::read_link(format!("/proc/{pid}/ns/net")).ok()
        != fs::read_link("/proc/self/ns/net").ok();
    apart && table != ours && table.contains(":0016 00000000:0000 0A")
}

/// Says what a kernel without netem lacks.
fn without_netem(error: io::Error) -> io::Error {
    match error.to_string().contains("qdisc kind is unknown") {
        true => io::Error::other(
            "this kernel lacks a queueing discipline: --rate needs tbf (CONFIG_NET_SCH_TBF), \
             --delay needs netem (CONFIG_NET_SCH_NETEM)",
        ),
        false => error,
    }
}

/// Has `ip` or `tc` do lines in a namespace.
fn batch(program: &str, namespace: Option<&str>, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = tools::command(program);
    command.args(namespace.iter().flat_map(|name| ["-n", name])).args(["-batch", "-"]);
    call(&mut command, &(lines.join("\n") + "\n")).map(drop)
}

/// Ends every process of these namespaces, then them.
fn take_away(names: &[String]) -> io::Result<()> {
    let there: Vec<&String> =
        names.iter().filter(|name| Path::new(NAMESPACES).join(name).exists()).collect();
    // A namespace whose processes cannot be listed counts as one process.
    let kill_all = || there.iter().map(|name| kill_in(name).unwrap_or(1)).sum::<usize>();
    wait_until(Instant::now() + GONE_LIMIT, || (kill_all() == 0).then_some(()));
    let lines: Vec<String> = there.iter().map(|name| format!("netns del {name}")).collect();
    let done = batch("ip", None, &lines);
    for name in names {
        // The switch has no such folder.
        let _ = fs::remove_dir_all(Path::new(OVER_ETC).join(name));
    }
    // Where others have something in it, it stays.
    let _ = fs::remove_dir(OVER_ETC);
    done
}

/// Kills every process in a namespace; how many there were.
fn kill_in(name: &str) -> io::Result<usize> {
    let listed = call(tools::command("ip").args(["netns", "pids", name]), "")?;
    let namespace = fs::metadata(Path::new(NAMESPACES).join(name))?;
    let is_in = |pid: &i32| {
        let own = fs::metadata(format!("/proc/{pid}/ns/net"));
        own.is_ok_and(|own| (own.dev(), own.ino()) == (namespace.dev(), namespace.ino()))
    };
    let pids = String::from_utf8_lossy(&listed);
    let pids = pids.lines().filter_map(|line| line.trim().parse().ok());
    // Asked once more: the number of one that has ended may be another's by now.
    let there: Vec<_> = pids.filter(is_in).filter_map(rustix::process::Pid::from_raw).collect();
    for pid in &there {
        // One that has ended by itself meanwhile is no fault.
        let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
    }
    Ok(there.len())
}

/// Removes what killed owners have left.
pub fn sweep(tell: &dyn Fn(&str)) {
    let entries = |folder: &Path| {
        let all = fs::read_dir(folder).into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let is_gone =
        |owner: u32| owner == std::process::id() || !Path::new(&format!("/proc/{owner}")).exists();
    let mut left: Vec<String> = [NAMESPACES, OVER_ETC]
        .iter()
        .flat_map(|folder| entries(Path::new(folder)))
        .filter(|name| owner_of(name).is_some_and(is_gone))
        .collect();
    left.sort();
    left.dedup();
    if !left.is_empty() {
        match take_away(&left) {
            Ok(()) => tell("removed what a killed testbed had left"),
            Err(error) => tell(&format!("cannot remove what a killed testbed had left: {error}")),
        }
    }
    let temporary = std::env::temp_dir();
    let prefix = format!("wiregauge-{FOLDER}-");
    for name in entries(&temporary) {
        let owner = name.strip_prefix(&prefix).and_then(|rest| rest.split('-').next());
        if owner.and_then(|owner| owner.parse().ok()).is_some_and(is_gone) {
            let _ = fs::remove_dir_all(temporary.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_an_owner() {
        assert_eq!(owner_of(&namespace(3)), Some(std::process::id()));
        for name in ["wgnet-", "wgnet-77", "wgnet-77-", "wgnet-a-1", "wg77n1", "eth0", "wgnet-7-1x"]
        {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }
}
