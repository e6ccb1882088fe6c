//! What flows over a connection: the roles, the traffic between them, the operation of a post, the
//! lengths of messages and how an end waits.

use serde::{Deserialize, Serialize};

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

/// The lengths of a connection's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// All have the size of the set-up, so that a stream needs no framing.
    #[default]
    Fixed,
    /// Any, up to the size of the set-up.
    Varied,
}
