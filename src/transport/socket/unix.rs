//! `unix` and `unixgram`: the control path. Names are random ones of the abstract namespace, so
//! that nothing is left behind, whatever becomes of the process.

use super::datagram::DatagramEndpoint;
use super::{admit, options, stream_endpoint};
use crate::transport::*;
use crate::units::Bytes;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, SocketAddr, UnixListener};

/// The transport over unix domain stream sockets.
pub struct UnixStream;
/// The transport over unix domain datagram sockets.
pub struct UnixDatagram;

/// A stream's end before it is connected: the server has a listener.
pub struct StreamOpening {
    listener: Option<UnixListener>,
    name: Vec<u8>,
    setup: Setup,
}

/// A datagram socket's end before it is connected.
pub struct DatagramOpening {
    socket: net::UnixDatagram,
    name: Vec<u8>,
    setup: Setup,
}

/// 128 random bits: no two ends share a name, and none can be guessed.
fn random_name() -> Result<Vec<u8>, SetupError> {
    let mut bits = [0u8; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| SetupError::Refused(format!("no random numbers to be had: {error}")))?;
    let hex: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("wiregauge-{hex}").into_bytes())
}

fn address_of(name: &[u8]) -> Result<SocketAddr, SetupError> {
    SocketAddr::from_abstract_name(name).map_err(|_| SetupError::Address)
}

const STREAM: Descriptor = Descriptor {
    about: "unix domain stream socket",
    largest: Bytes::MIB.0 * 64,
    watchable: true,
    in_survey: true,
    settings: &[settings::SEND_BUFFER, settings::RECEIVE_BUFFER, settings::BUSY_POLL],
    path: "send, the kernel's socket queue, recv: both copies included",
    ..Descriptor::BASE
};

impl Transport for UnixStream {
    fn descriptor(&self) -> &'static Descriptor {
        &STREAM
    }

    fn available(&self) -> Result<(), String> {
        available()
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let name = random_name()?;
        let listener = match setup.role {
            Role::Client => None,
            Role::Server => Some(
                UnixListener::bind_addr(&address_of(&name)?)
                    .map_err(SetupError::system("listening on a unix socket"))?,
            ),
        };
        Ok(Box::new(StreamOpening { listener, name, setup: setup.clone() }))
    }
}

impl Opening for StreamOpening {
    fn address(&self) -> Blob {
        Blob(self.name.clone())
    }

    fn connect(self: Box<Self>, other: &Blob) -> Result<Connected, SetupError> {
        let (socket, rejected_peers) = self.socket(other)?;
        let effective_settings = options::effective_common(&socket);
        let endpoint = stream_endpoint(socket, &self.setup);
        Ok(Connected { endpoint, effective_settings, rejected_peers })
    }
}

impl StreamOpening {
    /// The connected socket, and how many peers were rejected before it.
    fn socket(&self, other: &Blob) -> Result<(OwnedFd, u64), SetupError> {
        let (stream, rejected_peers) = match &self.listener {
            Some(listener) => admit::accept(listener, &self.setup)?,
            None => {
                let mut stream = net::UnixStream::connect_addr(&address_of(&other.0)?)
                    .map_err(SetupError::system("connecting to the server's unix socket"))?;
                admit::present(&mut stream, &self.setup)?;
                (stream, 0)
            }
        };
        let socket: OwnedFd = stream.into();
        options::apply_common(&socket, &self.setup.settings)?;
        Ok((socket, rejected_peers))
    }
}

const DATAGRAM: Descriptor = Descriptor {
    about: "unix domain datagram socket",
    // What the default of net.core.wmem_default (212992) lets through in one datagram.
    largest: 128 << 10,
    watchable: true,
    in_survey: true,
    settings: &[settings::SEND_BUFFER, settings::RECEIVE_BUFFER, settings::BUSY_POLL],
    path: "send, the kernel's socket queue, recv: both copies included",
    ..Descriptor::BASE
};

impl Transport for UnixDatagram {
    fn descriptor(&self) -> &'static Descriptor {
        &DATAGRAM
    }

    fn available(&self) -> Result<(), String> {
        available()
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let name = random_name()?;
        let socket = net::UnixDatagram::bind_addr(&address_of(&name)?)
            .map_err(SetupError::system("binding a unix datagram socket"))?;
        Ok(Box::new(DatagramOpening { socket, name, setup: setup.clone() }))
    }
}

impl Opening for DatagramOpening {
    fn address(&self) -> Blob {
        Blob(self.name.clone())
    }

    fn connect(self: Box<Self>, other: &Blob) -> Result<Connected, SetupError> {
        self.socket
            .connect_addr(&address_of(&other.0)?)
            .map_err(SetupError::system("connecting to the other end's unix socket"))?;
        // Before it was connected nobody knew its name: there is nothing to reject.
        let (endpoint, _) = DatagramEndpoint::connected(self.socket.into(), &self.setup, false)?;
        let effective_settings = options::effective_common(endpoint.socket());
        Ok(Connected { effective_settings, ..Connected::new(endpoint) })
    }
}

fn available() -> Result<(), String> {
    net::UnixDatagram::unbound()
        .map(drop)
        .map_err(|error| format!("a unix socket cannot be made: {error}"))
}
