//! The options of the testbeds: a machine with an RDMA device, a network of hosts.

use super::Asked;
use crate::plan::Refusal;
use crate::testbed::{self, net};
use crate::units::{BitRate, Bytes, Span};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const RDMA: &str = "\
Examples:
  wiregauge testbed rdma -- ibv_devinfo
  wiregauge testbed rdma --out results -- sh -c 'ib_send_lat & sleep 1; ib_send_lat localhost'

The machine sees the files of this host. What the command writes stays in the machine's memory,
but for /out. Exit codes: the command's own; 124 after --timeout, 128 and a signal's number after
a signal; 2 wrong use, 4 the machine could not run it.";

const NET: &str = "\
Examples:
  wiregauge testbed net --hosts 2 -- wiregauge latency --to wg-h2
  wiregauge testbed net --hosts 3 --rate 1gbit -- sh -c 'ssh wg-h2 ip addr; ping -c 3 wg-h3'

The hosts share this machine's files, processors and clock; each has a network of its own. Exit
codes: the command's own; 128 and a signal's number after a signal; 2 wrong use, 4 the network
could not be made. It needs root.";

/// The kinds of testbed.
#[derive(Debug, Subcommand)]
pub enum TestbedTask {
    /// Run a command in a small virtual machine that has an RDMA device (Soft-RoCE)
    #[command(after_help = RDMA)]
    Rdma(RdmaArguments),
    /// Run a command in the first of several hosts: network namespaces of this machine, joined by
    /// shaped links, each reached by ssh under its name (wg-h1, wg-h2, ...)
    #[command(after_help = NET)]
    Net(NetArguments),
}

/// What `testbed rdma` takes.
#[derive(Debug, Args)]
pub struct RdmaArguments {
    /// How many machines: 1, or 2 joined by a wire; COMMAND runs in the first
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    pub machines: u8,
    /// Run this line of shell in the second machine, started before COMMAND and ended with it; its
    /// output goes to stderr
    #[arg(long, value_name = "LINE")]
    pub peer: Option<String>,
    /// Memory of a machine
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub memory: Bytes,
    /// End the machine when the command has taken so long
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub timeout: Span,
    /// Where the files of the guest's /out go, an empty directory or a new one [default: a
    /// temporary directory, which is named at the end]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Debian's kernel package as a file [default: fetched by apt, once]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// The command, with its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<OsString>,
}

/// What `testbed net` takes.
#[derive(Debug, Args)]
pub struct NetArguments {
    /// How many hosts
    #[arg(long, value_name = "N", default_value = "2")]
    #[arg(value_parser = clap::value_parser!(u8).range(2..=net::MOST_HOSTS))]
    pub hosts: u8,
    /// How they are joined: star (a switch between all), pair (one wire between two), ring (each
    /// with the next; those between pass packets on)
    #[arg(long, value_name = "NAME", value_parser = super::values::topologies())]
    #[arg(default_value = "star")]
    pub topology: net::Topology,
    /// What a link carries each way, as 100mbit or 1gbit [default: as fast as the machine is]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<BitRate>,
    /// What a packet takes on a host's way out, as 100us; needs a kernel with netem [default: none]
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Span>,
    /// The command, with its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<OsString>,
}

/// What was asked for, or why it cannot be.
pub fn asked(task: TestbedTask) -> Result<Asked, Refusal> {
    match task {
        TestbedTask::Rdma(typed) => rdma(typed),
        TestbedTask::Net(typed) => network(typed),
    }
}

fn network(typed: NetArguments) -> Result<Asked, Refusal> {
    let NetArguments { hosts, topology, rate, delay, command } = typed;
    let (few, sentence) = match topology {
        net::Topology::Pair => (hosts == 2, "--topology pair joins 2 hosts; write --hosts 2"),
        net::Topology::Ring => (hosts >= 3, "--topology ring needs 3 hosts; write --hosts 3"),
        net::Topology::Star => (true, ""),
    };
    if !few {
        return Err(Refusal(format!("{sentence}, or --topology star for any number")));
    }
    let delay = delay.filter(|delay| delay.0 > 0);
    Ok(Asked::TestbedNet(Box::new(net::Wanted {
        hosts: hosts.into(),
        topology,
        rate,
        delay,
        command,
    })))
}

fn rdma(typed: RdmaArguments) -> Result<Asked, Refusal> {
    if typed.memory < testbed::LEAST_MEMORY {
        let least = testbed::LEAST_MEMORY;
        return Err(Refusal(format!(
            "--memory {} is too little; write {least} or more",
            typed.memory
        )));
    }
    if typed.peer.is_some() && typed.machines != 2 {
        return Err(Refusal("--peer needs a second machine; write --machines 2 as well".into()));
    }
    if typed.timeout.0 == 0 {
        return Err(Refusal("--timeout 0 is not allowed; write a time above 0 as 60s".into()));
    }
    if let Some(out) = &typed.out {
        empty_directory(out)?;
    }
    if let Some(kernel) = &typed.kernel
        && let Err(error) = std::fs::File::open(kernel)
    {
        let path = kernel.display();
        return Err(Refusal(format!("--kernel: '{path}' cannot be read ({error})")));
    }
    Ok(Asked::Testbed(Box::new(testbed::Wanted {
        memory: typed.memory,
        timeout: typed.timeout,
        out: typed.out,
        kernel: typed.kernel,
        machines: typed.machines.into(),
        peer: typed.peer,
        command: typed.command,
    })))
}

/// Whether a path may take files: an empty directory, or none as yet.
fn empty_directory(path: &Path) -> Result<(), Refusal> {
    let wrong = match path.read_dir().map(|mut entries| entries.next()) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => "is not empty".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("cannot be used ({error})"),
    };
    Err(Refusal(format!(
        "--out: '{}' {wrong}; name an empty directory, or one that does not exist yet",
        path.display()
    )))
}
