//! How messages move: the contract (read this first) and one file or folder a transport.
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// The transports that this build knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// TCP over IPv4 loopback or between hosts.
    Tcp,
    /// UDP.
    Udp,
    /// Unix domain stream socket.
    Unix,
    /// Unix domain datagram socket.
    Unixgram,
    /// A lock-free ring in POSIX shared memory.
    Shm,
    /// No transport: a message arrives as it is posted.
    Null,
    /// A simulated transport on a virtual clock.
    Synthetic,
}

/// What the synthetic transport does to messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synthetic {
    /// Mean delay.
    pub delay: Span,
}
