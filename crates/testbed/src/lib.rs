//! Hosts that are created for a command and removed again: a small machine with an RDMA device, for
//! tests on machines without one (this file), and several hosts of a network ([`net`]).
//!
//! Takes a [`MachineRequest`]: a command and how much machine it needs. Boots a virtual machine
//! (QEMU without hardware virtualisation, Debian's own kernel, this host's files) that has a
//! Soft-RoCE device, runs the command in it, passes its output on as it comes, and gives its exit
//! code. `docs/testbed.md` explains what it can show: its times say nothing about a network.
//!
//! Must never: change the host (what is made lies in the cache and in the output directory),
//! install anything, or leave a machine behind.

mod cache;
mod debugger;
mod job;
mod kit;
mod machine;
pub mod net;
mod tools;
mod watch;

pub use cache::CACHE_VARIABLE;
pub use watch::Ended;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use wiregauge_base::units::{Bytes, Span};

/// Least memory of a machine: below it, Debian's kernel has no room for its own modules.
pub const LEAST_MEMORY: Bytes = Bytes(512 << 20);

/// What was asked for.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct MachineRequest {
    /// Memory of each machine.
    pub memory: Bytes,
    /// How long the command may take, once the machine is ready.
    pub timeout: Span,
    /// Where `/out` of the guest is on this host; `None`: a temporary directory.
    pub out: Option<PathBuf>,
    /// Debian's kernel package as a file; `None`: the one of the cache, or fetched by apt.
    pub kernel: Option<PathBuf>,
    /// How many machines: 1, or 2 that are joined by a wire.
    pub machines: usize,
    /// What the second machine runs, as a line for its shell; `None`: it only is there.
    pub peer: Option<String>,
    /// The command of the first machine, and its arguments.
    #[serde(skip)]
    pub command: Vec<OsString>,
}

/// Boots, runs the command, ends the machine. `tell` is given what a person should know: what is
/// being made for the first time, and where files were kept.
///
/// Errors: whatever keeps the command from running, or its exit code from coming back.
pub fn run(wanted: &MachineRequest, tell: &dyn Fn(&str)) -> io::Result<Ended> {
    tools::check_for_machines()?;
    let kit = kit::prepare(&cache::folder()?, wanted.kernel.as_deref(), tell)?;
    watch::run(wanted, &kit, tell)
}
