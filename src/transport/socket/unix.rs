//! `unix` and `unixgram`: the control path. Names are random ones of the abstract namespace, so
//! that nothing is left behind, whatever becomes of the process.

use super::datagram::DatagramEndpoint;
use super::framed::FramedEndpoint;
use super::stream::StreamEndpoint;
use super::{admit, options};
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

impl Transport for UnixStream {
    type Opening = StreamOpening;

    const DESCRIPTOR: Descriptor = Descriptor {
        about: "unix domain stream socket",
        largest: Bytes::MIB.0 * 64,
        traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both],
        loses: false,
        ordered: true,
        one_process: false,
        between_hosts: false,
        samples_only: false,
        watchable: true,
        settings: &[settings::SEND_BUFFER, settings::RECEIVE_BUFFER, settings::BUSY_POLL],
        path: "send, the kernel's socket queue, recv: both copies included",
    };

    fn available() -> Result<(), String> {
        available()
    }

    fn open(setup: &Setup) -> Result<StreamOpening, SetupError> {
        let name = random_name()?;
        let listener = match setup.role {
            Role::Client => None,
            Role::Server => Some(
                UnixListener::bind_addr(&address_of(&name)?)
                    .map_err(SetupError::system("listening on a unix socket"))?,
            ),
        };
        Ok(StreamOpening { listener, name, setup: setup.clone() })
    }

    fn strangers(endpoint: &StreamEndpoint) -> u64 {
        endpoint.strangers()
    }

    fn granted(endpoint: &StreamEndpoint) -> Vec<(String, String)> {
        options::granted_common(endpoint.socket())
    }
}

impl Opening for StreamOpening {
    type Endpoint = StreamEndpoint;

    fn address(&self) -> Blob {
        Blob(self.name.clone())
    }

    fn connect(self, other: &Blob) -> Result<StreamEndpoint, SetupError> {
        let (socket, strangers) = self.socket(other)?;
        Ok(StreamEndpoint::new(socket, &self.setup, strangers))
    }

    type Varied = FramedEndpoint;

    fn connect_varied(self, other: &Blob) -> Result<Varied<FramedEndpoint>, SetupError> {
        let (socket, strangers) = self.socket(other)?;
        let endpoint = FramedEndpoint::new(socket, &self.setup);
        let granted = options::granted_common(endpoint.socket());
        Ok(Varied { granted, strangers, afterwards: |_| Vec::new(), endpoint })
    }
}

impl StreamOpening {
    /// The connected socket, and how many strangers were dropped for it.
    fn socket(&self, other: &Blob) -> Result<(OwnedFd, u64), SetupError> {
        let (stream, strangers) = match &self.listener {
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
        Ok((socket, strangers))
    }
}

impl Transport for UnixDatagram {
    type Opening = DatagramOpening;

    const DESCRIPTOR: Descriptor = Descriptor {
        about: "unix domain datagram socket",
        // What the default of net.core.wmem_default (212992) lets through in one datagram.
        largest: 128 << 10,
        traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both],
        loses: false,
        ordered: true,
        one_process: false,
        between_hosts: false,
        samples_only: false,
        watchable: true,
        settings: &[settings::SEND_BUFFER, settings::RECEIVE_BUFFER, settings::BUSY_POLL],
        path: "send, the kernel's socket queue, recv: both copies included",
    };

    fn available() -> Result<(), String> {
        available()
    }

    fn open(setup: &Setup) -> Result<DatagramOpening, SetupError> {
        let name = random_name()?;
        let socket = net::UnixDatagram::bind_addr(&address_of(&name)?)
            .map_err(SetupError::system("binding a unix datagram socket"))?;
        Ok(DatagramOpening { socket, name, setup: setup.clone() })
    }

    fn granted(endpoint: &DatagramEndpoint) -> Vec<(String, String)> {
        options::granted_common(endpoint.socket())
    }
}

impl Opening for DatagramOpening {
    type Endpoint = DatagramEndpoint;

    fn address(&self) -> Blob {
        Blob(self.name.clone())
    }

    fn connect(self, other: &Blob) -> Result<DatagramEndpoint, SetupError> {
        self.socket
            .connect_addr(&address_of(&other.0)?)
            .map_err(SetupError::system("connecting to the other end's unix socket"))?;
        DatagramEndpoint::connected(self.socket.into(), &self.setup, false)
    }

    type Varied = DatagramEndpoint;

    fn connect_varied(self, other: &Blob) -> Result<Varied<DatagramEndpoint>, SetupError> {
        self.connect(other).map(Varied::of::<UnixDatagram>)
    }
}

fn available() -> Result<(), String> {
    net::UnixDatagram::unbound()
        .map(drop)
        .map_err(|error| format!("a unix socket cannot be made: {error}"))
}
