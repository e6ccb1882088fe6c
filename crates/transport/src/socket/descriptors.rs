//! `tcp`, `udp`, `unix` and `unixgram`: their options, and how they differ.

use super::transport::SocketTransport;
use super::{RECEIVE_BYTES, bytes_of_end, slots_for};
use crate::settings::{BUSY_POLL, DSCP, FAMILY, INTERFACE, RECEIVE_BUFFER, SEND_BUFFER};
use crate::{Descriptor, KernelPath, Lengths, Settings, TransportRequest};
use wiregauge_base::options::OptionDef;
use wiregauge_base::units::Bytes;
use wiregauge_host::Family;

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
    splits: true,
    in_survey: true,
    settings: &[
        NODELAY,
        CONGESTION,
        MSS,
        DSCP,
        INTERFACE,
        FAMILY,
        ZEROCOPY,
        SEND_BUFFER,
        RECEIVE_BUFFER,
        BUSY_POLL,
    ],
    path: "send, the kernel's TCP and IP, recv: both copies included",
    kernel_path: KernelPath::Segments,
    memory_beside_slots: |setup| bytes_of_end(setup, RECEIVE_BYTES) as u64,
    least_buffer_bytes: |setup| {
        // Where lengths differ memory is the kernel's until a message needs it.
        if setup.lengths != Lengths::Fixed {
            return 0;
        }
        let receive = (bytes_of_end(setup, RECEIVE_BYTES) / setup.size.max(1)).max(1) * setup.size;
        (slots_for(setup, setup.size) * setup.size + receive) as u64
    },
    least_descriptors: 1,
    over_loopback: true,
    available: |_| SocketTransport::TCP.available(),
    open_several: Some(|setup, ends| SocketTransport::TCP.open_several(setup, ends)),
    ..Descriptor::opened_by(|setup| SocketTransport::TCP.open(setup))
};

/// Returns by how much a datagram over IPv6 may be longer: its length does not count the header of
/// IP (RFC 8200, section 3), which is 20 bytes of an IPv4 packet.
fn larger_over_ipv6(settings: &Settings) -> u64 {
    if settings.family() == Some(Family::Ipv6) { 20 } else { 0 }
}

/// The UDP transport.
pub const UDP: Descriptor = Descriptor {
    about: "UDP over IP",
    // 65535 less the headers of IPv4 (20) and UDP (8). Which family an end has without --family is
    // known when it is opened, so the larger payload of IPv6 has to be asked for.
    largest: 65507,
    larger_with: larger_over_ipv6,
    loses: true,
    ordered: false,
    settings: &[DSCP, INTERFACE, FAMILY, SEND_BUFFER, RECEIVE_BUFFER, BUSY_POLL],
    path: "send, the kernel's UDP and IP, recv: both copies included",
    kernel_path: KernelPath::Datagrams,
    memory_beside_slots: |_| 0,
    least_buffer_bytes: |setup| ((slots_for(setup, setup.size) + 1) * setup.size) as u64,
    available: |_| SocketTransport::UDP.available(),
    open: |setup| SocketTransport::UDP.open(setup),
    open_several: None,
    ..TCP
};

/// The transport over unix domain stream sockets.
pub const UNIX: Descriptor = Descriptor {
    about: "unix domain stream socket",
    between_hosts: false,
    over_loopback: false,
    settings: &[SEND_BUFFER, RECEIVE_BUFFER, BUSY_POLL],
    path: "send, the kernel's socket queue, recv: both copies included",
    kernel_path: KernelPath::LocalStream,
    available: |_| SocketTransport::UNIX.available(),
    open: |setup| SocketTransport::UNIX.open(setup),
    open_several: Some(|setup, ends| SocketTransport::UNIX.open_several(setup, ends)),
    ..TCP
};

/// The transport over unix domain datagram sockets.
pub const UNIXGRAM: Descriptor = Descriptor {
    about: "unix domain datagram socket",
    // What the default of net.core.wmem_default (212992) lets through in one datagram.
    largest: 128 << 10,
    memory_beside_slots: |_| 0,
    least_buffer_bytes: UDP.least_buffer_bytes,
    available: |_| SocketTransport::UNIXGRAM.available(),
    kernel_path: KernelPath::LocalDatagrams,
    open: |setup| SocketTransport::UNIXGRAM.open(setup),
    open_several: None,
    check: check_datagram_fits,
    ..UNIX
};

/// Bytes of a send buffer that the kernel needs more than the datagram (`unix_dgram_sendmsg`).
const BESIDE_DATAGRAM: u64 = 32;

/// Refuses a datagram that does not fit into the send buffer that was asked for, which the kernel
/// doubles.
fn check_datagram_fits(request: &TransportRequest<'_>) -> Result<(), String> {
    let Some(buffer) = request.settings.size("send-buffer") else { return Ok(()) };
    let needed = Bytes((request.size + BESIDE_DATAGRAM).div_ceil(2));
    ensure!(
        buffer.0 >= needed.0,
        "a datagram of {} does not fit into --send-buffer {buffer}: use {needed} or more",
        Bytes(request.size)
    );
    Ok(())
}
