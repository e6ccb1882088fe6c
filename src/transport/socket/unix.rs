//! `unix` and `unixgram`: their options.

use super::SocketTransport;
use crate::transport::{Descriptor, settings};
use crate::units::Bytes;

const STREAM: SocketTransport =
    SocketTransport { is_stream: true, is_ip: false, unavailable: "a unix socket cannot be made" };
const DATAGRAM: SocketTransport = SocketTransport { is_stream: false, ..STREAM };

/// The transport over unix domain stream sockets.
pub const UNIX: Descriptor = Descriptor {
    about: "unix domain stream socket",
    largest: Bytes::MIB.0 * 64,
    watchable: true,
    in_survey: true,
    settings: &[settings::SEND_BUFFER, settings::RECEIVE_BUFFER, settings::BUSY_POLL],
    path: "send, the kernel's socket queue, recv: both copies included",
    available: || STREAM.available(),
    ..Descriptor::opened_by(|setup| STREAM.open(setup))
};

/// The transport over unix domain datagram sockets.
pub const UNIXGRAM: Descriptor = Descriptor {
    about: "unix domain datagram socket",
    // What the default of net.core.wmem_default (212992) lets through in one datagram.
    largest: 128 << 10,
    available: || DATAGRAM.available(),
    open: |setup| DATAGRAM.open(setup),
    ..UNIX
};
