//! The options that put the server's end on another host.

use super::values;
use clap::Args;

const FAR: &str = "Another host";

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
