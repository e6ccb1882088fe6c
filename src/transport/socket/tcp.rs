//! `tcp`: the control path. The server listens on loopback, or on the address that was asked for; a
//! connection is let in when its first bytes are the run's cookie.

use super::{options, site, stream_endpoint};
use crate::options::OptionDef;
use crate::transport::*;
use crate::units::Bytes;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// The TCP transport.
pub struct Tcp;

/// One end before it is connected: the server has a listener.
pub struct TcpOpening {
    listener: Option<TcpListener>,
    /// The address of this end, without a port.
    own: SocketAddr,
    setup: Setup,
}

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
pub fn check_congestion(text: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=LONGEST_CONGESTION).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(());
    }
    Err(format!(
        "invalid congestion control '{text}': use one name such as cubic, of those in \
         /proc/sys/net/ipv4/tcp_available_congestion_control"
    ))
}

const DESCRIPTOR: Descriptor = Descriptor {
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
    ..Descriptor::BASE
};

impl Transport for Tcp {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn available(&self) -> Result<(), String> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map(drop)
            .map_err(|error| format!("a TCP socket on 127.0.0.1 cannot be bound: {error}"))
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let own = site::address(&setup.site)?;
        let listener = match setup.role {
            Role::Client => None,
            Role::Server => Some(
                site::bind(own, TcpListener::bind)
                    .map_err(SetupError::system(format!("listening on {}", own.ip())))?,
            ),
        };
        if let Some(listener) = &listener {
            options::apply_before_handshake(listener, &setup.settings)?;
        }
        Ok(Box::new(TcpOpening { listener, own, setup: setup.clone() }))
    }
}

impl Opening for TcpOpening {
    fn address(&self) -> Blob {
        let address = self.listener.as_ref().and_then(|listener| listener.local_addr().ok());
        Blob(address.map(|a| a.to_string().into_bytes()).unwrap_or_default())
    }

    fn connect(self: Box<Self>, other: &Blob) -> Result<Connected, SetupError> {
        let (socket, rejected_peers) = self.socket(other)?;
        let effective_settings = options::effective_tcp(&socket);
        let endpoint = stream_endpoint(socket, &self.setup);
        Ok(Connected { endpoint, effective_settings, rejected_peers })
    }
}

impl TcpOpening {
    /// The connected socket, and how many peers were rejected before it.
    fn socket(&self, other: &Blob) -> Result<(OwnedFd, u64), SetupError> {
        let setup = &self.setup;
        let (stream, rejected_peers) = match &self.listener {
            Some(listener) => super::admit::accept(listener, setup)?,
            None => {
                let address: SocketAddr = other.text()?.parse().map_err(|_| SetupError::Address)?;
                (dial(site::towards(address, self.own), self.own, setup)?, 0)
            }
        };
        let socket = stream.into();
        options::apply_ip(&socket, &setup.settings)?;
        options::apply_tcp(&socket, &setup.settings)?;
        Ok((socket, rejected_peers))
    }
}

fn dial(address: SocketAddr, own: SocketAddr, setup: &Setup) -> Result<TcpStream, SetupError> {
    let what = || format!("connecting to {address}");
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )
    .map_err(SetupError::system(what()))?;
    options::apply_before_handshake(&socket, &setup.settings)?;
    socket
        .bind(&own.into())
        .map_err(SetupError::system(format!("using the address {}", own.ip())))?;
    socket
        .connect_timeout(&address.into(), setup.timeout.duration())
        .map_err(SetupError::system(what()))?;
    let mut stream: TcpStream = socket.into();
    super::admit::present(&mut stream, setup)?;
    Ok(stream)
}
