//! The options that say how many threads an end has, and which CPUs they run on.

use super::args::{WHAT, WHERE};
use super::values;
use clap::Args;

#[derive(Debug, Args)]
pub struct CpuArguments {
    /// CPU of the client and of the server, as 2,3; of several threads the client's and the
    /// server's lists, as 0-3/4-7 [default: chosen]
    #[arg(long, value_name = "A,B", value_parser = values::role_cpus, help_heading = WHERE)]
    pub cpus: Option<values::RoleCpus>,
}

#[derive(Debug, Args)]
pub struct ThreadArguments {
    /// Threads of each end, 1 to 64, each with an endpoint, CPU and sample memory of its own; one
    /// or more as a list. --count, --time and --window are those of each thread [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = values::count32)]
    #[arg(help_heading = WHAT)]
    pub threads: Vec<u32>,
}
