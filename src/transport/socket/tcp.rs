//! `tcp`: its options.

use super::SocketTransport;
use crate::options::OptionDef;
use crate::transport::{Descriptor, settings};
use crate::units::Bytes;

pub(super) const SOCKET: SocketTransport = SocketTransport {
    is_stream: true,
    is_ip: true,
    unavailable: "a TCP socket on 127.0.0.1 cannot be bound",
};

/// On unless said: a benchmark that waits for Nagle measures Nagle.
const NODELAY: OptionDef =
    OptionDef::switch("nodelay", "Send small segments at once (TCP_NODELAY)").default("on");
const ZEROCOPY: OptionDef =
    OptionDef::flag("zerocopy", "Send without copying the payload (MSG_ZEROCOPY)");
/// The congestion control by name.
pub const CONGESTION: OptionDef = OptionDef::text(
    "congestion",
    check_congestion,
    "Congestion control, such as cubic (/proc/sys/net/ipv4/tcp_available_congestion_control)",
)
.metavar("NAME")
.default_note("the kernel's");
/// The limits are TCP_MIN_MSS and MAX_TCP_WINDOW of `net/tcp.h`.
const MSS: OptionDef = OptionDef::size(
    "mss",
    "Maximum segment size (TCP_MAXSEG): the MTU less 40 B (IPv4) or 60 B (IPv6)",
)
.limits(88, 32_767);

/// TCP_CA_NAME_MAX of linux/tcp.h, without the closing zero.
const LONGEST_CONGESTION: usize = 15;

/// Whether a name may be one of a congestion control.
fn check_congestion(text: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=LONGEST_CONGESTION).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(());
    }
    Err(format!(
        "invalid congestion control '{text}': use one name such as cubic, of those in \
         /proc/sys/net/ipv4/tcp_available_congestion_control"
    ))
}

/// The TCP transport.
pub const TCP: Descriptor = Descriptor {
    about: "TCP over IP",
    largest: Bytes::MIB.0 * 64,
    between_hosts: true,
    watchable: true,
    in_survey: true,
    settings: &[
        NODELAY,
        CONGESTION,
        MSS,
        settings::DSCP,
        settings::INTERFACE,
        ZEROCOPY,
        settings::SEND_BUFFER,
        settings::RECEIVE_BUFFER,
        settings::BUSY_POLL,
    ],
    path: "send, the kernel's TCP and IP, recv: both copies included",
    available: || SOCKET.available(),
    ..Descriptor::opened_by(|setup| SOCKET.open(setup))
};
