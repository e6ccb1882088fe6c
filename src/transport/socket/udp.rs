//! `udp`: its options.

use super::SocketTransport;
use crate::transport::{Descriptor, settings};

const SOCKET: SocketTransport = SocketTransport {
    is_stream: false,
    is_ip: true,
    unavailable: "a UDP socket on 127.0.0.1 cannot be bound",
};

/// The UDP transport.
pub const UDP: Descriptor = Descriptor {
    about: "UDP over IP",
    // 65535 less the headers of IP and UDP.
    largest: 65507,
    loses: true,
    ordered: false,
    between_hosts: true,
    watchable: true,
    in_survey: true,
    settings: &[
        settings::DSCP,
        settings::INTERFACE,
        settings::SEND_BUFFER,
        settings::RECEIVE_BUFFER,
        settings::BUSY_POLL,
    ],
    path: "send, the kernel's UDP and IP, recv: both copies included",
    available: || SOCKET.available(),
    ..Descriptor::opened_by(|setup| SOCKET.open(setup))
};
