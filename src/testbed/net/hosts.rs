//! The hosts themselves: made, entered, and taken away.

use super::super::error::{TestbedError, file};
use super::super::machine::{Private, private_folder};
use super::super::tools::{call, last_words};
use super::tools::NetTools;
use super::wiring::{self, host_name};
use super::{Wanted, login};
use crate::host::child;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The namespaces of one owner. They are taken away when this goes.
#[derive(Debug)]
pub struct Hosts<'a> {
    tools: &'a NetTools,
    owner: u32,
    hosts: usize,
    names: Vec<String>,
    servers: Vec<Child>,
    folder: Private,
    is_removed: bool,
}

fn namespace(owner: u32, number: usize) -> String {
    format!("{PREFIX}{owner}-{number}")
}

/// The owner of a namespace of ours.
fn owner_of(name: &str) -> Option<u32> {
    let (owner, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<usize>().ok()?;
    owner.parse().ok()
}

impl<'a> Hosts<'a> {
    /// Makes them. A signal ends the making early.
    pub fn make(
        wanted: &Wanted,
        tools: &'a NetTools,
        signal: &AtomicUsize,
    ) -> Result<Hosts<'a>, TestbedError> {
        let owner = std::process::id();
        let folder = Private(private_folder(FOLDER)?);
        let names: Vec<String> =
            wiring::namespaces(wanted).map(|number| namespace(owner, number)).collect();
        let add: Vec<String> = names.iter().map(|name| format!("netns add {name}")).collect();
        let (hosts, servers) = (wanted.hosts, Vec::new());
        let mut made = Hosts { tools, owner, hosts, names, servers, folder, is_removed: false };
        made.write()?;
        batch(&tools.ip, None, &add)?;
        for lines in wiring::lines(wanted, |number| namespace(owner, number)) {
            if signal.load(Ordering::Relaxed) != 0 {
                return Ok(made);
            }
            made.wire(&lines)?;
        }
        // sshd wants it, whoever starts it.
        let own = Path::new("/run/sshd");
        fs::create_dir_all(own).map_err(file("making", own))?;
        for number in 1..=wanted.hosts {
            made.serve(number)?;
        }
        made.await_servers(signal)?;
        made.await_links(signal)?;
        Ok(made)
    }

    /// What `ip netns exec` puts over `/etc` in each host.
    fn write(&self) -> Result<(), TestbedError> {
        let folder = &self.folder.0;
        let ssh = folder.join("ssh");
        login::prepare(&ssh, self.tools)?;
        let names = folder.join("hosts");
        let own = fs::read_to_string("/etc/hosts").unwrap_or_default();
        fs::write(&names, wiring::names(&own, self.hosts)).map_err(file("writing", &names))?;
        for number in 1..=self.hosts {
            let over = Path::new(OVER_ETC).join(namespace(self.owner, number));
            fs::create_dir_all(&over).map_err(file("making", &over))?;
            for (name, there) in [("hosts", &names), ("ssh", &ssh)] {
                let link = over.join(name);
                symlink(there, &link).map_err(file("making", &link))?;
            }
        }
        Ok(())
    }

    fn wire(&self, lines: &wiring::Lines) -> Result<(), TestbedError> {
        let name = namespace(self.owner, lines.namespace);
        batch(&self.tools.ip, Some(&name), &lines.ip)?;
        batch(&self.tools.tc, Some(&name), &lines.tc).map_err(without_netem)?;
        if lines.forwards {
            let words = ["netns", "exec", &name, "sh", "-c"].map(OsStr::new);
            let line = OsStr::new("echo 1 >/proc/sys/net/ipv4/ip_forward");
            call(&self.tools.ip, &[&words[..], &[line]].concat(), None)?;
        }
        Ok(())
    }

    /// A command in a host: its network, its name, what stands over `/etc` there.
    fn inside(&self, number: usize) -> Command {
        let mut command = Command::new(&self.tools.ip);
        command.args(["netns", "exec", &namespace(self.owner, number)]);
        command.arg(&self.tools.unshare).args(["--uts", "sh", "-c"]);
        command.arg("echo \"$0\" >/proc/sys/kernel/hostname && exec \"$@\"");
        command.arg(host_name(number));
        command
    }

    fn serve(&mut self, number: usize) -> Result<(), TestbedError> {
        let mut command = self.inside(number);
        command.arg(&self.tools.sshd).args(["-D", "-e", "-f", "/etc/ssh/sshd_config"]);
        let log = self.log(number);
        let said = fs::File::create(&log).map_err(file("making", &log))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let child = child::ends_with_us(&mut command).spawn();
        self.servers.push(child.map_err(file("starting", &self.tools.sshd))?);
        Ok(())
    }

    /// What a host's sshd says.
    fn log(&self, number: usize) -> PathBuf {
        self.folder.0.join(format!("sshd-{number}.log"))
    }

    fn await_servers(&mut self, signal: &AtomicUsize) -> Result<(), TestbedError> {
        let deadline = Instant::now() + LISTEN_LIMIT;
        for index in 0..self.servers.len() {
            while !listens(self.servers[index].id()) && signal.load(Ordering::Relaxed) == 0 {
                let is_over = matches!(self.servers[index].try_wait(), Ok(Some(_)));
                if is_over || Instant::now() > deadline {
                    let said = fs::read(self.log(index + 1)).unwrap_or_default();
                    return Err(TestbedError::Tool {
                        program: format!("sshd of {} (it does not listen)", host_name(index + 1)),
                        said: last_words(&said),
                    });
                }
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Waits until the kernel has seen that both ends of every link are up.
    fn await_links(&self, signal: &AtomicUsize) -> Result<(), TestbedError> {
        let deadline = Instant::now() + LISTEN_LIMIT;
        for name in &self.names {
            let words = ["-n", name, "-brief", "link", "show", "type", "veth"].map(OsStr::new);
            while signal.load(Ordering::Relaxed) == 0 {
                let shown = call(&self.tools.ip, &words, None)?;
                let shown = String::from_utf8_lossy(&shown);
                let state = |line: &str| line.split_whitespace().nth(1).map(|word| word == "UP");
                if shown.lines().all(|line| state(line) == Some(true)) {
                    break;
                }
                if Instant::now() > deadline {
                    let said = format!("a link of {name} does not come up: {}", shown.trim());
                    return Err(TestbedError::Unable(said));
                }
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Starts a command in the first host, in this process's group: a terminal is shared.
    pub fn start(&self, words: &[OsString]) -> Result<Child, TestbedError> {
        let numbers = 1..=self.hosts;
        let all = |of: &dyn Fn(usize) -> String| numbers.clone().map(of).collect::<Vec<_>>();
        let mut command = self.inside(1);
        command.args(words);
        command.env("PATH", login::programs()).env("WIREGAUGE_TESTBED", "net");
        command.env("WIREGAUGE_TESTBED_HOSTS", all(&host_name).join(","));
        let namespaces = all(&|number| namespace(self.owner, number));
        command.env("WIREGAUGE_TESTBED_NAMESPACES", namespaces.join(","));
        child::dies_with_us(&mut command).spawn().map_err(file("starting", &self.tools.ip))
    }

    /// Takes everything away.
    pub fn remove(mut self) -> Result<(), TestbedError> {
        self.is_removed = true;
        self.end()
    }

    fn end(&mut self) -> Result<(), TestbedError> {
        for server in &mut self.servers {
            // The child is ours and was not waited for: its number cannot be another's.
            let _ = server.kill();
            let _ = server.wait();
        }
        take_away(self.tools, &self.names)
    }
}

impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        if !self.is_removed {
            let _ = self.end();
        }
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
fn without_netem(error: TestbedError) -> TestbedError {
    match &error {
        TestbedError::Tool { program, said }
            if program.starts_with("tc ") && said.contains("qdisc kind is unknown") =>
        {
            let sentence = "this kernel lacks a queueing discipline: --rate needs tbf \
                            (CONFIG_NET_SCH_TBF), --delay needs netem (CONFIG_NET_SCH_NETEM)";
            TestbedError::Unable(sentence.into())
        }
        _ => error,
    }
}

/// Has `ip` or `tc` do lines in a namespace.
fn batch(program: &Path, namespace: Option<&str>, lines: &[String]) -> Result<(), TestbedError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = Command::new(program);
    command.args(namespace.iter().flat_map(|name| ["-n", name])).args(["-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child::ends_with_us(&mut command).spawn().map_err(file("starting", program))?;
    if let Some(mut input) = child.stdin.take() {
        // One that stops reading says why at its end.
        let _ = input.write_all((lines.join("\n") + "\n").as_bytes());
    }
    let output = child.wait_with_output().map_err(file("waiting for", program))?;
    if output.status.success() {
        return Ok(());
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Err(TestbedError::Tool {
        program: format!("{name} {}", lines.join("; ")),
        said: last_words(&output.stderr),
    })
}

/// Ends every process of these namespaces, then them.
fn take_away(tools: &NetTools, names: &[String]) -> Result<(), TestbedError> {
    let there: Vec<&String> =
        names.iter().filter(|name| Path::new(NAMESPACES).join(name).exists()).collect();
    let deadline = Instant::now() + GONE_LIMIT;
    while kill_all(&there) > 0 && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    let lines: Vec<String> = there.iter().map(|name| format!("netns del {name}")).collect();
    let done = batch(&tools.ip, None, &lines);
    for name in names {
        // Of the switch there is none.
        let _ = fs::remove_dir_all(Path::new(OVER_ETC).join(name));
    }
    // Where others have something in it, it stays.
    let _ = fs::remove_dir(OVER_ETC);
    done
}

/// Kills every process in these namespaces; how many there were.
fn kill_all(names: &[&String]) -> usize {
    let identity = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
    };
    let ours: Vec<_> =
        names.iter().filter_map(|name| identity(&Path::new(NAMESPACES).join(name))).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let inside = numbers.filter(|number| {
        identity(Path::new(&format!("/proc/{number}/ns/net"))).is_some_and(|id| ours.contains(&id))
    });
    let mut killed = 0;
    for pid in inside.filter_map(rustix::process::Pid::from_raw) {
        // One that has ended by itself meanwhile is no fault.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        killed += 1;
    }
    killed
}

/// Takes away what owners have left that are no more.
pub fn sweep(tools: &NetTools, tell: &dyn Fn(&str)) {
    let entries = |folder: &Path| -> Vec<String> {
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        found.filter_map(|entry| entry.file_name().into_string().ok()).collect()
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
        match take_away(tools, &left) {
            Ok(()) => tell("what a testbed had left that was killed is taken away"),
            Err(error) => tell(&format!("what a killed testbed had left stays: {error}")),
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
        assert_eq!(owner_of(&namespace(77, 3)), Some(77));
        for name in ["wgnet-", "wgnet-77", "wgnet-77-", "wgnet-a-1", "wg77n1", "eth0", "wgnet-7-1x"]
        {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }
}
