//! What a transport is told before it opens, and how it says no.

use super::settings::Settings;
use crate::signal::{Kind, TimeOfDay};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// How an end waits for what has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Poll without a pause; the CPU is never given back.
    Busy,
    /// Sleep in the kernel until something comes.
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

    /// Whether an end that waits so ever sleeps in the kernel.
    pub const fn sleeps(self) -> bool {
        !matches!(self, Wait::Busy)
    }
}

/// What a process does in a pattern.
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

    /// The one at the other end.
    pub const fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    /// What belongs to it of a client's and a server's.
    pub fn pick<T>(self, client: T, server: T) -> T {
        match self {
            Role::Client => client,
            Role::Server => server,
        }
    }
}

/// What will flow, so that a transport may size its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// The server answers the last message of each burst of `every` messages (1: each message).
    Echo {
        /// Messages for one answer.
        every: u32,
    },
    /// From client to server only.
    Forward,
    /// Both ways at once.
    Both,
    /// The client acts on the server's memory, and the server takes no part: a completion is all
    /// that there is to see.
    OneSided,
}

impl Traffic {
    /// Whether the two are of one kind, whatever their numbers.
    pub fn same_kind(self, other: Traffic) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// What a post does: the words of the verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A message, received where the other end has put a buffer.
    #[default]
    Send,
    /// The same, with an immediate value.
    SendImm,
    /// Written into the other end's memory, which does not hear of it.
    Write,
    /// The same, and the other end hears of it by an immediate value.
    WriteImm,
    /// Read from the other end's memory.
    Read,
    /// Adds to 8 bytes of the other end's memory, and gives what stood there.
    FetchAdd,
    /// Exchanges 8 bytes of the other end's memory where they are what is said.
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

    /// Whether it changes 8 bytes at once.
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

    /// Whether the other end takes no part; a write is watched for where it is answered.
    pub const fn is_one_sided(self, is_stream: bool) -> bool {
        match self {
            Operation::Read | Operation::FetchAdd | Operation::CompareSwap => true,
            Operation::Write => is_stream,
            Operation::Send | Operation::SendImm | Operation::WriteImm => false,
        }
    }
}

/// What is asked of a transport, for it to say no before anything runs.
#[derive(Clone, Copy, Debug)]
pub struct TransportRequest<'a> {
    /// Payload of a message.
    pub size: u64,
    /// How both ends wait.
    pub wait: Wait,
    /// Whether the other end takes no part.
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

/// Where an end with an address is to be reached. Nothing is reachable beyond this host unless it
/// was asked for.
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
    /// By the address at which the driver's ssh reached this host.
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

/// All that a transport is told when it opens one end.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which end.
    pub role: Role,
    /// Of two roles the client has rank 0 and the server rank 1.
    pub rank: Rank,
    /// What will flow.
    pub traffic: Traffic,
    /// How this end and the other wait.
    pub wait: Wait,
    /// Payload of a message: of each, or of the longest.
    pub size: usize,
    /// Whether all have that size.
    pub lengths: Lengths,
    /// Most messages that are posted and not completed.
    pub window: u32,
    /// A datagram receive that sleeps comes back after so long, for the loss to be noticed.
    pub loss_after: Span,
    /// How long connecting may take.
    pub timeout: Span,
    /// The run's secret: what a data connection must present to be let in.
    pub cookie: [u8; 32],
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Where this end is to be reached.
    pub site: Site,
    /// When it is opened, by the clock that says when a stream's samples were made.
    pub opened: TimeOfDay,
    /// What the values of a stream's samples are.
    pub kind: Kind,
    /// Settings.
    pub settings: Settings,
}

impl Setup {
    /// One end on this host's loopback, with one message on the way at a time, and no settings.
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
