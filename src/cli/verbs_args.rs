//! The options of the verbs transport.

use super::values;
use crate::plan::Wait;
use crate::transport::verbs::options::{
    Connect, Inline, Polling, Posting, Service, Signal, StampComplete,
};
use clap::Args;

const VERBS: &str = "Transport verbs";

/// Settings of the verbs transport.
#[derive(Debug, Args)]
pub struct VerbsArguments {
    /// RDMA device, as mlx5_0 [default: the first whose port is up]
    #[arg(long, value_name = "NAME", value_parser = values::device, help_heading = VERBS)]
    pub device: Option<String>,
    /// Its port [default: the first that is up]
    #[arg(long, value_name = "N", help_heading = VERBS)]
    pub port: Option<u8>,
    /// Entry of the port's GID table [default: RoCE v2 before v1, IPv4 before IPv6]
    #[arg(long, value_name = "N", help_heading = VERBS)]
    pub gid_index: Option<u8>,
    /// Service type [default: rc]
    #[arg(long, value_name = "TYPE", value_parser = values::services(), help_heading = VERBS)]
    pub service: Option<Service>,
    /// How the queue pairs find each other: by the control channel, or by the RDMA connection
    /// manager [default: exchange]
    #[arg(long, value_name = "WAY", value_parser = values::connects(), help_heading = VERBS)]
    pub connect: Option<Connect>,
    /// Payloads inside the work requests: off, auto (up to 128 B), or up to so many bytes
    /// [default: auto]
    #[arg(long, value_name = "SIZE", value_parser = values::inline, help_heading = VERBS)]
    pub inline: Option<Inline>,
    /// Sends for one completion: auto (half of the send queue), or so many [default: auto]
    #[arg(long, value_name = "N", value_parser = values::signal, help_heading = VERBS)]
    pub signal_every: Option<Signal>,
    /// Work requests of the send queue [default: 128]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = VERBS)]
    pub send_depth: Option<u32>,
    /// Receives that are posted [default: 512 for a stream, twice the burst else]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = VERBS)]
    pub receive_depth: Option<u32>,
    /// Which calls post: ibv_post_send, or ibv_wr_* [default: classic]
    #[arg(long, value_name = "CALLS", value_parser = values::postings(), help_heading = VERBS)]
    pub post: Option<Posting>,
    /// Which calls take completions: ibv_poll_cq, or ibv_start_poll [default: classic]
    #[arg(long, value_name = "CALLS", value_parser = values::pollings(), help_heading = VERBS)]
    pub poll: Option<Polling>,
    /// Queue pairs that the messages go over in turn, 1 to 64 [default: 1]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = VERBS)]
    pub queue_pairs: Option<u32>,
    /// All queue pairs of an end take their receives from one queue
    #[arg(long, help_heading = VERBS)]
    pub shared_receive_queue: bool,
    /// Registered memory of huge pages (2 MiB)
    #[arg(long, help_heading = VERBS)]
    pub huge_pages: bool,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the smaller of the two ports']
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = VERBS)]
    pub mtu: Option<u32>,
    /// Service level, 0 to 15
    #[arg(long, value_name = "N", help_heading = VERBS)]
    pub service_level: Option<u8>,
    /// Traffic class of the global route, 0 to 255
    #[arg(long, value_name = "N", help_heading = VERBS)]
    pub traffic_class: Option<u8>,
    /// How completions of sends are waited for [default: as --wait]
    #[arg(long, value_name = "MODE", value_parser = values::waits(), help_heading = VERBS)]
    pub send_wait: Option<Wait>,
    /// Register memory with relaxed ordering
    #[arg(long, help_heading = VERBS)]
    pub relaxed_ordering: bool,
    /// Keep writing the time into the message until the adapter has taken it: figure transfer
    #[arg(long, help_heading = VERBS)]
    pub stamp_send: bool,
    /// Whose clock says when a send has completed: the CPU's as the loop takes the completion, or
    /// the device's own (oneway) [default: cpu]
    #[arg(long, value_name = "CLOCK", help_heading = VERBS)]
    #[arg(value_parser = values::stamps_complete())]
    pub stamp_complete: Option<StampComplete>,
}
