//! A cluster of Slurm on this machine: a controller and four nodes, with a munged of their own.

use crate::support::controller::Scratch;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wiregauge_test_support::bounded::{LIMIT, end_or_kill, is_soon, output};

/// How long a daemon may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// The cluster, which ends with its owner.
pub struct Cluster {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Cluster {
    /// One whose nodes are idle. `None`, said on stderr, where it cannot be.
    pub fn start(scratch: &Scratch) -> Option<Cluster> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: a cluster of Slurm needs root");
            return None;
        }
        let folder = scratch.join("slurm");
        for name in ["state", "bin"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let mut cluster = Cluster { folder, children: Vec::new() };
        cluster.configure();
        cluster.start_munged();
        cluster.daemon("slurmctld", &["-D"]);
        for node in ["n1", "n2", "n3", "n4"] {
            cluster.daemon("slurmd", &["-D", "-N", node]);
        }
        cluster.wait("four idle nodes", |cluster| {
            let mut sinfo = Command::new("sinfo");
            cluster.tell(sinfo.args(["-h", "-t", "idle", "-o", "%D"]));
            let output = output(&mut sinfo);
            String::from_utf8_lossy(&output.stdout).trim() == "4"
        });
        Some(cluster)
    }

    fn at(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn configure(&self) {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let port = 12_000 + std::process::id() % 1000 * 8;
        let text = format!(
            "ClusterName=wiregauge\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\n\
             AuthType=auth/munge\nAuthInfo=socket={0}\nCredType=cred/munge\nSlurmUser=root\n\
             StateSaveLocation={1}\nSlurmdSpoolDir={1}/%n\nSlurmctldPidFile={1}/slurmctld.pid\n\
             SlurmdPidFile={1}/%n.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSwitchType=switch/none\nMpiDefault=none\n\
             ReturnToService=2\n\
             NodeName=n[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{2}-{3}] CPUs=2\n\
             PartitionName=all Nodes=n[1-4] Default=YES OverSubscribe=FORCE:8 State=UP\n",
            self.at("munge.socket"),
            self.at("state"),
            port + 1,
            port + 4,
        );
        fs::write(self.folder.join("slurm.conf"), text).unwrap();
        // The commands find their munged as everywhere, by what stands first in PATH.
        for name in ["munge", "unmunge"] {
            let file = self.folder.join("bin").join(name);
            let socket = self.at("munge.socket");
            fs::write(&file, format!("#!/bin/sh\nexec /usr/bin/{name} -S {socket} \"$@\"\n"))
                .unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn start_munged(&mut self) {
        let key = self.folder.join("munge.key");
        let random: Vec<u8> =
            std::iter::repeat_n(std::process::id().to_le_bytes(), 32).flatten().collect();
        fs::write(&key, random).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let words = [
            format!("--key-file={}", key.display()),
            format!("--socket={}", self.at("munge.socket")),
            format!("--pid-file={}", self.at("munge.pid")),
            format!("--log-file={}", self.at("munge.log")),
            format!("--seed-file={}", self.at("munge.seed")),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.daemon("munged", &[&["--foreground", "--force"], &words[..]].concat());
        self.wait("munged", |cluster| {
            let mut munge = Command::new(cluster.at("bin/munge"));
            output(munge.arg("-n")).status.success()
        });
    }

    fn daemon(&mut self, program: &str, arguments: &[&str]) {
        let log = File::create(self.folder.join(format!("{program}.{}", self.children.len())));
        let mut command = Command::new(program);
        self.tell(command.args(arguments));
        let log = log.unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push(command.spawn().unwrap());
    }

    /// Has a command belong to this cluster.
    pub fn tell(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}:/usr/sbin", self.at("bin")));
        command.env("SLURM_CONF", self.at("slurm.conf"));
    }

    fn wait(&self, what: &str, is_there: impl Fn(&Cluster) -> bool) {
        let said = || {
            let all = fs::read_dir(&self.folder).unwrap().flatten();
            let logs = all.filter(|entry| entry.file_name().to_string_lossy().contains('.'));
            logs.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect::<String>()
        };
        assert!(is_soon(LIMIT, || is_there(self)), "no {what} within {LIMIT:?}: {}", said());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }
        for child in &mut self.children {
            let _ = end_or_kill(child, GRACE);
        }
    }
}
