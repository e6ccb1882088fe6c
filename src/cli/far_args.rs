//! The options that put the server's end on another host.

use super::args::OutputArguments;
use super::values;
use crate::clock::Source;
use crate::transport::Interfaces;
use crate::units::{Span, Untrue};
use clap::Args;

const FAR: &str = "Another host";

/// What `clocks` takes.
#[derive(Debug, Args)]
pub struct ClocksArguments {
    #[command(flatten)]
    pub far: FarArguments,
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

/// The other host.
#[derive(Debug, Args)]
pub struct FarArguments {
    /// Run the server's end on this host, reached by ssh: user@node07, or a name of ssh's own
    /// configuration
    #[arg(long, value_name = "HOST", value_parser = values::host, help_heading = FAR)]
    pub to: Option<String>,
    /// Where wiregauge is there [default: where its shell looks]
    #[arg(long, value_name = "PATH", value_parser = values::line, help_heading = FAR)]
    pub remote_binary: Option<String>,
    /// Copy this program there first, and remove it afterwards
    #[arg(long, help_heading = FAR)]
    pub push: bool,
    /// The ssh to use, with its own options, as 'ssh -F FILE -p 2222' [default: ssh]
    #[arg(long, value_name = "COMMAND", value_parser = values::ssh, help_heading = FAR)]
    pub ssh: Option<values::Ssh>,
}
