//! The testbeds: a machine with an RDMA device, a network of hosts.

use super::Command;
use super::command_def::{CommandDef, Group, Typed};
use crate::host;
use crate::options::{OptionDef, UsageError, refuse};
use crate::testbed::{self, net};
use crate::units::BitRate;
use std::path::Path;

/// The kinds of testbed.
pub const TESTBED: CommandDef = CommandDef {
    group: Group::Check,
    about: "Run a command in a testbed: a virtual machine with an RDMA device, or a network",
    commands: &[RDMA, NET],
    ..CommandDef::new("testbed", |_| refuse("testbed needs a kind: use rdma or net"))
};

const COMMAND: OptionDef =
    OptionDef::path("COMMAND", "The command, with its arguments").required().last();

const RDMA: CommandDef = CommandDef {
    about: "Run a command in a virtual machine that has an RDMA device (Soft-RoCE)",
    examples: "
  wiregauge testbed rdma -- ibv_devinfo
  wiregauge testbed rdma --out results -- sh -c 'ib_send_lat & sleep 1; ib_send_lat localhost'

The machine sees the files of this host. What the command writes stays in the machine's memory,
except in /out. Exit codes: the command's own; 124 after --timeout, 128 plus the signal's number
after a signal; 2 wrong usage, 4 the machine could not run it.",
    operands: &[COMMAND],
    tables: &[&[
        OptionDef::count("machines", "Machines, joined by a wire; COMMAND runs in the first")
            .limits(1, 2)
            .default("1"),
        OptionDef::path(
            "peer",
            "Run this shell line in the second machine while COMMAND runs; its output goes to \
             stderr",
        )
        .metavar("LINE"),
        OptionDef::size("memory", "Memory of a machine")
            .limits(testbed::LEAST_MEMORY.0, u64::MAX)
            .default("2GiB"),
        OptionDef::duration("timeout", "End the machine after this time").default("10min"),
        OptionDef::path("out", "Empty or new directory for the files of the guest's /out")
            .metavar("DIR")
            .default_note("a temporary directory, which is named at the end"),
        OptionDef::path("kernel", "Debian's kernel package as a file")
            .default_note("fetched by apt, once"),
    ]],
    ..CommandDef::new("rdma", rdma)
};

const NET: CommandDef = CommandDef {
    about: "Run a command in the first of several hosts: network namespaces of this machine, \
            joined by shaped links, each reached by ssh under its name (wg-h1, wg-h2, ...)",
    examples: "
  wiregauge testbed net --hosts 2 -- wiregauge latency --to wg-h2
  wiregauge testbed net --hosts 3 --rate 1gbit -- sh -c 'ssh wg-h2 ip addr; ping -c 3 wg-h3'

The hosts share this machine's files, processors and clock; each has a network of its own. Exit
codes: the command's own; 128 plus the signal's number after a signal; 2 wrong usage, 4 the network
could not be made. It needs root.",
    operands: &[COMMAND],
    tables: &[&[
        OptionDef::count("hosts", "Number of hosts").limits(2, net::MOST_HOSTS as u64).default("2"),
        OptionDef::choice::<net::Topology>(
            "topology",
            "Links between hosts: star (a switch between all), pair (one wire between two) or ring \
             (each with the next; those between forward packets)",
        )
        .default("star"),
        OptionDef::parsed::<BitRate>(
            "rate",
            "Rate of each link, each way, such as 100mbit or 1gbit",
        )
        .metavar("RATE")
        .default_note("unlimited"),
        OptionDef::time(
            "delay",
            "Delay of packets on a host's way out, such as 100us; needs netem",
        )
        .default_note("none"),
    ]],
    ..CommandDef::new("net", network)
};

fn network(typed: Typed) -> Result<Command, UsageError> {
    let hosts = typed.given.count("hosts").unwrap_or_default();
    let topology = typed.given.choice("topology").unwrap_or(net::Topology::Star);
    let (fits, sentence) = match topology {
        net::Topology::Pair => (hosts == 2, "--topology pair joins 2 hosts: use --hosts 2"),
        net::Topology::Ring => (hosts >= 3, "--topology ring needs 3 hosts: use --hosts 3"),
        net::Topology::Star => (true, ""),
    };
    ensure!(fits, "{sentence}, or --topology star for any number");
    Ok(Command::TestbedNet(Box::new(net::NetworkRequest {
        hosts: hosts as usize,
        topology,
        rate: typed.given.get("rate"),
        delay: typed.given.time("delay").filter(|delay| delay.0 > 0),
        command: typed.operands("COMMAND").to_vec(),
    })))
}

fn rdma(typed: Typed) -> Result<Command, UsageError> {
    let given = &typed.given;
    let has_second = !given.is_given("peer") || given.count("machines") == Some(2);
    ensure!(has_second, "--peer needs a second machine: use --machines 2 as well");
    let request: testbed::MachineRequest = given.fields()?;
    if let Some(out) = &request.out {
        empty_directory(out)?;
    }
    if let Some(path) = &request.kernel
        && let Err(error) = host::open_file(path)
    {
        return refuse(format!("--kernel: cannot read '{}' ({error})", path.display()));
    }
    let command = typed.operands("COMMAND").to_vec();
    Ok(Command::Testbed(Box::new(testbed::MachineRequest { command, ..request })))
}

/// Whether a path may take files: an empty directory, or none as yet.
fn empty_directory(path: &Path) -> Result<(), UsageError> {
    let wrong = match path.read_dir().map(|mut entries| entries.next()) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => "is not empty".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("cannot be used ({error})"),
    };
    refuse(format!("--out: '{}' {wrong}: use an empty or a new directory", path.display()))
}
