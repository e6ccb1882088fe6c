//! The options of the standing agent and of the pairing with one.
#![allow(rustdoc::broken_intra_doc_links, reason = "these comments are the help: [::] is a place")]

use super::values;
use crate::remote::daemon::network::Network;
use crate::transport::TransportKind;
use crate::units::{Bytes, MessageRate, Span};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const LIMITS: &str = "Limits, which the agent keeps whatever a driver asks for";

/// Shown below its help.
pub const AGENT: &str = "\
Examples:
  wiregauge agent --listen 10.1.0.7 --allow 10.1.0.0/16 --longest-run 10min
  wiregauge agent --pair";

/// What `agent` takes.
#[derive(Debug, Args)]
pub struct AgentArguments {
    /// The address of this host on which it listens, as 10.1.0.7, 10.1.0.7:7425 or [::]:7425
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7425")]
    #[arg(value_parser = values::listening)]
    pub listen: SocketAddr,
    /// Print a one-time secret with which one driver can pair within 10 min, and end
    #[arg(long)]
    pub pair: bool,
    /// Let drivers in from these addresses and networks only, as 10.1.0.0/16,10.2.0.7
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    pub allow: Vec<Network>,
    /// The folder with its identity and those of its drivers [default: wiregauge in the user's
    /// configuration folder, or WIREGAUGE_CONFIG]
    #[arg(long, value_name = "DIR")]
    pub identity: Option<PathBuf>,
    /// The longest round
    #[arg(long, value_name = "TIME", default_value = "1h", help_heading = LIMITS)]
    pub longest_run: Span,
    /// The highest rate of messages; rounds that send as fast as they can are then refused
    /// [default: any]
    #[arg(long, value_name = "RATE", help_heading = LIMITS)]
    pub highest_rate: Option<MessageRate>,
    /// The most memory of a round
    #[arg(long, value_name = "SIZE", default_value = "2GiB", help_heading = LIMITS)]
    pub most_memory: Bytes,
    /// The ports on which tcp, udp, homa and the clocks' exchanges are received, as 7500-7599
    /// [default: any]
    #[arg(long, value_name = "A-B", value_parser = values::ports, help_heading = LIMITS)]
    pub ports: Option<(u16, u16)>,
    /// The transports [default: all that reach another host]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = LIMITS)]
    #[arg(value_parser = values::transports())]
    pub transports: Vec<TransportKind>,
}

/// What `pair` takes.
#[derive(Debug, Args)]
pub struct PairArguments {
    /// The agent's host, as node07, node07:7425 or [2001:db8::7]:7425
    #[arg(value_name = "HOST[:PORT]", value_parser = values::agent_address)]
    pub agent: (String, u16),
}

/// What `dial` takes.
#[derive(Debug, Args)]
pub struct DialArguments {
    /// The agent's host
    #[arg(value_name = "HOST[:PORT]", value_parser = values::agent_address)]
    pub agent: (String, u16),
}
