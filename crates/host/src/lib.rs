//! The machine: pinning, memory locking, CPU noise, and the environment.
//!
//! Takes what the kernel shows of this host; gives the CPUs to measure on, an [`Environment`] for
//! the record and its warnings, the [`Noise`] of a CPU, and the resource use of a process. Files
//! of `/proc` and `/sys` may be missing or malformed: then the field is `None` in the record,
//! never an error and never a guess.
//!
//! Must never: run inside a measured loop, or change a setting of the machine.

#[macro_use(ensure)]
extern crate wiregauge_base;

mod address;
mod affinity;
pub mod child;
mod claims;
mod container;
mod descriptors;
mod discipline;
pub mod doctor;
mod environment;
mod ethtool;
mod files;
#[doc(hidden)]
pub mod fuzzed;
pub mod interrupt;
pub mod ip_network;
mod memory;
mod net_counters;
mod netlink;
mod network;
mod noise;
pub mod pid_namespace;
pub mod private_folder;
mod processor;
mod rdma;
mod suspension;
mod tcp_sampler;
mod time_namespace;
pub mod together;
pub mod trace;
mod tree;
mod usage;
mod warnings;

pub use address::{
    CONNECTION, Family, SSH_CONNECTION, address_of, address_towards, check_loopback, connection,
    in_family, interface_with, ip_interfaces, loopback, own_addresses, scope, session_address,
};
pub use affinity::{Choice, allowed_cpus, check_cpus, choose_pairs, cpu_beside, pin_to, stay_off};
pub use claims::Claims;
pub use container::{
    Container, ControlGroups, CpuQuota, HARD_NOFILE, MemoryLimit, OomWatch, RAISE_MEMORY,
    RAISE_TASKS, TaskLimit, Throttled, rounded,
};
pub use descriptors::{
    allow_descriptors, inherited, most_descriptors, own_descriptors, stdout_to_stderr,
};
pub use discipline::Discipline;
pub use environment::{Environment, Memory, TOOL_VERSION, available_memory, boot};
pub use files::{named_limit, open_file, open_file_to_lock, open_output, read_file, read_text};
pub use memory::{lock, prefault, touch};
pub use net_counters::NetCounters;
pub use network::{Interface, sysctls};
pub use noise::{Noise, observe, spin};
pub use processor::{CpuState, IdleState, Node, Processor};
pub use rdma::{RdmaLink, RdmaPort, active_rdma_ports, rdma_file, rdma_links, rdma_node};
pub use suspension::Suspension;
pub use tcp_sampler::{Owner, TcpEvent, TcpEventKind, TcpSampler};
pub use tree::{Tree, parse_cpus, value_of};
pub use usage::{ResourceUse, major_faults, now_and_asleep};
pub use wiregauge_base::units::format_cpus;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A folder of this user: the one that the environment names in `variable`, else `name` by the XDG
/// base directories, in `xdg` or in `in_home`.
///
/// # Errors
/// There is no home directory: a sentence.
pub fn user_folder(
    variable: &str,
    xdg: &str,
    in_home: &str,
    name: &str,
) -> Result<PathBuf, String> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let above = || match named(xdg).map(PathBuf::from).filter(|path| path.is_absolute()) {
        None => Some(PathBuf::from(named("HOME")?).join(in_home)),
        above => above,
    };
    let folder = named(variable).map(PathBuf::from).or_else(|| Some(above()?.join(name)));
    folder.ok_or_else(|| format!("HOME is not set: set {variable} to a folder"))
}

/// The CPU of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPair {
    /// CPU of the client.
    pub client: u32,
    /// CPU of the server.
    pub server: u32,
}
