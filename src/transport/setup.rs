//! What a transport gets before it opens an end, and its errors.

use super::settings::Settings;
use crate::signal::{Kind, TimeOfDay};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// How an end waits for completions and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Poll without a pause; the CPU is never given back.
    Busy,
    /// Sleep in the kernel until something happens.
    Block,
    /// Poll for a while, then sleep.
    Adaptive,
}

impl Wait {
    /// All.
    pub const ALL: &'static [Wait] = &[Wait::Busy, Wait::Block, Wait::Adaptive];

    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Wait::Busy => "busy",
            Wait::Block => "block",
            Wait::Adaptive => "adaptive",
        }
    }

    /// Whether this mode ever sleeps in the kernel.
    pub const fn sleeps(self) -> bool {
        !matches!(self, Wait::Busy)
    }
}

/// The role of a process in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Begins: sends the first message, and measures round trips.
    Client,
    /// Answers or receives.
    Server,
}

impl Role {
    /// The name as recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }

    /// The role of the other end.
    pub const fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    /// The value for this role.
    pub fn pick<T>(self, client: T, server: T) -> T {
        match self {
            Role::Client => client,
            Role::Server => server,
        }
    }
}

/// The traffic of a connection, for which a transport sizes its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// The server answers the last message of each burst of `every` messages (1: each message).
    Echo {
        /// Messages per answer.
        every: u32,
    },
    /// From client to server only.
    Forward,
    /// Both ways at once.
    Both,
    /// The client accesses the server's memory, and the server's CPU takes no part: there are
    /// completions, but no arrivals.
    OneSided,
}

impl Traffic {
    /// Whether both are the same kind of traffic, whatever their numbers.
    pub fn same_kind(self, other: Traffic) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// What a post does, in the terms of the RDMA verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A message into a receive buffer that the other end has posted.
    #[default]
    Send,
    /// The same, with an immediate value.
    SendImm,
    /// RDMA write: the other end gets no completion.
    Write,
    /// RDMA write with an immediate value, which completes a receive of the other end.
    WriteImm,
    /// RDMA read.
    Read,
    /// Atomic fetch-and-add of 8 bytes of the other end's memory.
    FetchAdd,
    /// Atomic compare-and-swap of 8 bytes of the other end's memory.
    CompareSwap,
}

impl Operation {
    /// All.
    pub const ALL: &'static [Operation] = &[
        Operation::Send,
        Operation::SendImm,
        Operation::Write,
        Operation::WriteImm,
        Operation::Read,
        Operation::FetchAdd,
        Operation::CompareSwap,
    ];

    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Send => "send",
            Operation::SendImm => "send_imm",
            Operation::Write => "write",
            Operation::WriteImm => "write_imm",
            Operation::Read => "read",
            Operation::FetchAdd => "fetch_add",
            Operation::CompareSwap => "compare_swap",
        }
    }

    /// Whether it is an atomic operation on 8 bytes.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Operation::FetchAdd | Operation::CompareSwap)
    }

    /// Whether a payload goes from this end to the other.
    pub const fn carries_payload(self) -> bool {
        matches!(
            self,
            Operation::Send | Operation::SendImm | Operation::Write | Operation::WriteImm
        )
    }

    /// Whether the other end's CPU takes no part. A write that is answered is polled for in memory.
    pub const fn is_one_sided(self, is_stream: bool) -> bool {
        match self {
            Operation::Read | Operation::FetchAdd | Operation::CompareSwap => true,
            Operation::Write => is_stream,
            Operation::Send | Operation::SendImm | Operation::WriteImm => false,
        }
    }
}

/// A request that a transport validates before anything runs.
#[derive(Clone, Copy, Debug)]
pub struct TransportRequest<'a> {
    /// Payload of a message.
    pub size: u64,
    /// How both ends wait.
    pub wait: Wait,
    /// Whether the other end's CPU takes no part.
    pub one_sided: bool,
    /// The settings.
    pub settings: &'a Settings,
}

/// A network interface for each end, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interfaces {
    /// That of the client.
    pub client: String,
    /// That of the server.
    pub server: String,
}

impl Interfaces {
    /// That of a role.
    pub fn of(&self, role: Role) -> &str {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }
}

/// The address at which an end is reachable: from this host only, unless requested otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// On this host only.
    #[default]
    Loopback,
    /// By the address of a network interface.
    Interface(String),
    /// By this address.
    Address(IpAddr),
    /// By the address at which the controller's ssh connection reached this host.
    Session,
}

/// The lengths of a connection's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// All have the size of the set-up, so that a stream needs no framing.
    #[default]
    Fixed,
    /// Any, up to the size of the set-up.
    Varied,
}

/// The place of a process among those that open together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// What a transport needs to open one end.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which end.
    pub role: Role,
    /// Of two roles the client has rank 0 and the server rank 1.
    pub rank: Rank,
    /// The traffic, for sizing queues.
    pub traffic: Traffic,
    /// How both ends wait.
    pub wait: Wait,
    /// Payload of a message: of each, or of the longest.
    pub size: usize,
    /// Whether all have that size.
    pub lengths: Lengths,
    /// Most messages that are posted and not completed.
    pub window: u32,
    /// Timeout of a sleeping receive where messages may be lost.
    pub loss_after: Span,
    /// Timeout of connecting.
    pub timeout: Span,
    /// The run's secret, which a data connection must present to be accepted.
    pub cookie: [u8; 32],
    /// Random seed.
    pub seed: u64,
    /// The address at which this end is reachable.
    pub site: Site,
    /// When it is opened, by the clock that says when a stream's samples were made.
    pub opened: TimeOfDay,
    /// What the values of a stream's samples are.
    pub kind: Kind,
    /// Settings.
    pub settings: Settings,
}

impl Setup {
    /// One end on loopback, with a window of one message and no settings.
    pub fn new(role: Role, traffic: Traffic, wait: Wait, size: usize) -> Setup {
        Setup {
            role,
            rank: Rank { number: role.pick(0, 1), of: 2 },
            traffic,
            wait,
            size,
            lengths: Lengths::Fixed,
            window: 1,
            loss_after: Span(1_000_000),
            timeout: Span(5_000_000_000),
            cookie: [0; 32],
            seed: 0,
            site: Site::Loopback,
            opened: TimeOfDay::default(),
            kind: Kind::default(),
            settings: Settings::default(),
        }
    }
}

/// An address of one end, opaque to all but the transport that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Blob(pub Vec<u8>);

impl Blob {
    /// As text, for transports whose addresses are text.
    pub fn text(&self) -> Result<&str, SetupError> {
        std::str::from_utf8(&self.0).map_err(|_| SetupError::Address)
    }
}

/// Why an end could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried, with its object.
        what: String,
        /// The errno.
        source: std::io::Error,
    },
    /// The other end's address is not one of this transport.
    #[error("the other end's address is not one of this transport")]
    Address,
    /// Nothing came in time.
    #[error("{what}: nothing came within {seconds} s")]
    Late {
        /// What was awaited.
        what: String,
        /// How long, in seconds.
        seconds: f64,
    },
    /// The request cannot be met.
    #[error("{0}")]
    Refused(String),
    /// What was asked for is not allowed on this machine: wrong use, and no fault of the machine.
    #[error("{0}")]
    NotAllowed(String),
}

impl SetupError {
    /// For `map_err`: a system call that failed, with what was tried.
    pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| SetupError::System { what, source: source.into() }
    }
}
