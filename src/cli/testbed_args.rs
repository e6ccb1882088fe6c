//! The options of the testbed.

use crate::units::{Bytes, Span};
use clap::Args;
use std::path::PathBuf;

/// Shown below its help.
pub const TESTBED: &str = "\
Examples:
  wiregauge testbed rdma -- ibv_devinfo
  wiregauge testbed rdma --out results -- sh -c 'ib_send_lat & sleep 1; ib_send_lat localhost'

The machine sees the files of this host. What the command writes stays in the machine's memory,
but for /out. Exit codes: the command's own; 124 after --timeout, 128 and a signal's number after
a signal; 2 wrong use, 4 the machine could not run it.";

/// What `testbed` takes.
#[derive(Debug, Args)]
pub struct TestbedArguments {
    /// The kind of machine
    #[arg(value_name = "KIND", value_parser = ["rdma"], hide_possible_values = true)]
    #[arg(help = "The kind of machine: rdma")]
    pub kind: String,
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
    pub command: Vec<std::ffi::OsString>,
}
