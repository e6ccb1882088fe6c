//! What flows over a connection: the roles, the traffic between them, the operation of a post, the
//! lengths of messages and how an end waits.

use serde::{Deserialize, Serialize};
use wiregauge_base::options::named_enum;

named_enum! {
    /// How an end waits for completions and messages.
    #[derive(PartialOrd, Ord)]
    pub enum Wait {
        /// Poll without a pause; the CPU is never given back.
        Busy = "busy",
        /// Sleep in the kernel until something happens.
        Block = "block",
        /// Poll for a while, then sleep.
        Adaptive = "adaptive",
    }
}

impl Wait {
    /// Whether this mode ever sleeps in the kernel.
    pub const fn sleeps(self) -> bool {
        !matches!(self, Wait::Busy)
    }
}

named_enum! {
    /// The role of a process in a pattern.
    pub enum Role {
        /// Begins: sends the first message, and measures round trips.
        Client = "client",
        /// Answers or receives.
        Server = "server",
        /// One of several that all run the same code. Of a connection between two of them the one
        /// of the lower rank is the client's end, the other the server's.
        Node = "node",
    }
}

impl Role {
    /// The two sides of a connection.
    pub const SIDES: [Role; 2] = [Role::Client, Role::Server];

    /// The role of the other end.
    pub fn other(self) -> Role {
        self.pick(Role::Server, Role::Client)
    }

    /// The side on which it stands where there are two: nodes all stand on the client's, since they
    /// begin, send and measure, and nobody stands on the other.
    pub const fn side(self) -> Role {
        match self {
            Role::Client | Role::Node => Role::Client,
            Role::Server => Role::Server,
        }
    }

    /// The value for this role's side.
    pub fn pick<T>(self, client: T, server: T) -> T {
        match self.side() {
            Role::Client | Role::Node => client,
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
    /// No messages of its own: all ranks take part in collective operations.
    Collective,
}

impl Traffic {
    /// Messages per answer; `None` where nothing is answered.
    pub fn answered_every(self) -> Option<u32> {
        match self {
            Traffic::Echo { every } => Some(every.max(1)),
            Traffic::Forward | Traffic::Both | Traffic::OneSided | Traffic::Collective => None,
        }
    }

    /// Whether both are the same kind of traffic, whatever their numbers.
    pub fn same_kind(self, other: Traffic) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

named_enum! {
    /// What a post does, in the terms of the RDMA verbs.
    #[derive(Default)]
    pub enum Operation {
        /// A message into a receive buffer that the other end has posted.
        #[default]
        Send = "send",
        /// The same, with an immediate value.
        SendImm = "send_imm",
        /// RDMA write: the other end gets no completion.
        Write = "write",
        /// RDMA write with an immediate value, which completes a receive of the other end.
        WriteImm = "write_imm",
        /// RDMA read.
        Read = "read",
        /// Atomic fetch-and-add of 8 bytes of the other end's memory.
        FetchAdd = "fetch_add",
        /// Atomic compare-and-swap of 8 bytes of the other end's memory.
        CompareSwap = "compare_swap",
    }
}

impl Operation {
    /// Whether it is an atomic operation on 8 bytes.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Operation::FetchAdd | Operation::CompareSwap)
    }

    /// Whether a payload goes from this end to the other.
    pub const fn carries_payload(self) -> bool {
        !matches!(self, Operation::Read | Operation::FetchAdd | Operation::CompareSwap)
    }

    /// Whether the other end's CPU takes no part. A write that is answered is polled for in memory.
    pub const fn is_one_sided(self, is_stream: bool) -> bool {
        !self.carries_payload() || (is_stream && matches!(self, Operation::Write))
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
