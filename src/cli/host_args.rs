//! The options that put ends on other hosts.

use super::args::OutputArguments;
use super::values;
use crate::clock::Source;
use crate::plan::pairs::AtOnce;
use crate::transport::Interfaces;
use crate::units::{Span, Untrue};
use clap::Args;
use std::path::PathBuf;

const HOSTS: &str = "Other hosts";
const JOB: &str = "Processes of one job (srun, mpirun and such start them; the first drives)";

/// What `clocks` takes.
#[derive(Debug, Args)]
pub struct ClocksArguments {
    #[command(flatten)]
    pub reach: ReachArguments,
    #[command(flatten)]
    pub job: RankArguments,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Span,
    /// Network interface whose addresses are used, as ib0, or this host's and the other's as
    /// ib0,ib1 [default: the way that ssh took]
    #[arg(long, value_name = "NAME", value_parser = values::interfaces)]
    pub interface: Option<Interfaces>,
    /// The clock of both [default: tsc where it is invariant]
    #[arg(long, value_name = "NAME", value_parser = values::clocks())]
    pub clock: Option<Source>,
    /// Make the other host's clock wrong by a known amount, to see whether that is found
    #[arg(long, value_name = "SPEC", hide = true)]
    pub untrue_clock: Option<Untrue>,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// What `hosts` takes.
#[derive(Debug, Args)]
pub struct HostsArguments {
    #[command(flatten)]
    pub reach: ReachArguments,
    #[command(flatten)]
    pub job: RankArguments,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The other hosts, and which of their pairs are measured.
#[derive(Debug, Args)]
pub struct PlacementArguments {
    #[command(flatten)]
    pub reach: ReachArguments,
    #[command(flatten)]
    pub job: RankArguments,
    /// Measure every pair of --hosts: a matrix, with slow pairs named
    #[arg(long, help_heading = HOSTS)]
    pub all_pairs: bool,
    /// Which of all pairs at the same time: one pair, a matching in which no host is in two, or
    /// all [default: matching]
    #[arg(long, value_name = "WHICH", value_parser = values::at_once(), help_heading = HOSTS)]
    pub at_once: Option<AtOnce>,
    /// Measure so many random perfect matchings of --hosts: effective bisection bandwidth
    #[arg(long, value_name = "MATCHINGS", value_parser = values::count32, help_heading = HOSTS)]
    pub bisection: Option<u32>,
}

/// Which process of a job this is. A launcher says it by itself.
#[derive(Debug, Args)]
pub struct RankArguments {
    /// Which process of a job this is, from 0, where no launcher says it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32), help_heading = JOB)]
    pub rank: Option<u32>,
    /// Of how many; 1: measure alone whatever a launcher says
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = JOB)]
    pub ranks: Option<u32>,
    /// The host of rank 0, as node01 or 10.1.0.1:7426
    #[arg(long, value_name = "HOST", value_parser = values::leader, help_heading = JOB)]
    pub leader: Option<(String, u16)>,
}

/// The other hosts, and how they are reached.
#[derive(Debug, Args)]
pub struct ReachArguments {
    /// Run the server's end on this host, reached by ssh: user@node07, or a name of ssh's own
    /// configuration; or by an agent that stands there: agent:node07
    #[arg(long, value_name = "HOST", value_parser = values::host, help_heading = HOSTS)]
    pub to: Option<values::Host>,
    /// Hosts whose pairs are measured, as node1,node2: the client's end on the first, the server's
    /// on the second; 'here' is this one
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', help_heading = HOSTS)]
    #[arg(value_parser = values::host)]
    pub hosts: Vec<values::Host>,
    /// A file with such hosts, one a line
    #[arg(long, value_name = "FILE", help_heading = HOSTS)]
    pub hosts_file: Option<PathBuf>,
    /// Where wiregauge is there [default: where its shell looks]
    #[arg(long, value_name = "PATH", value_parser = values::line, help_heading = HOSTS)]
    pub remote_binary: Option<String>,
    /// Copy this program there first, and remove it afterwards
    #[arg(long, help_heading = HOSTS)]
    pub push: bool,
    /// The ssh to use, with its own options, as 'ssh -F FILE -p 2222' [default: ssh]
    #[arg(long, value_name = "COMMAND", value_parser = values::ssh, help_heading = HOSTS)]
    pub ssh: Option<values::Ssh>,
}
