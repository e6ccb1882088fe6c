//! `udp`: the control path. Both ends bind on loopback, or where they were asked to, and connect to
//! each other.

use super::datagram::DatagramEndpoint;
use super::{options, seen, site};
use crate::transport::*;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

/// The UDP transport.
pub struct Udp;

/// One end before it is connected.
pub struct UdpOpening {
    socket: UdpSocket,
    /// Its address, without the port.
    own: SocketAddr,
    setup: Setup,
}

impl Transport for Udp {
    type Opening = UdpOpening;

    const DESCRIPTOR: Descriptor = Descriptor {
        about: "UDP over IP",
        // 65535 less the headers of IP and UDP.
        largest: 65507,
        traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both],
        loses: true,
        ordered: false,
        one_process: false,
        between_hosts: true,
        samples_only: false,
        watchable: true,
        settings: &[
            settings::DSCP,
            settings::INTERFACE,
            settings::SEND_BUFFER,
            settings::RECEIVE_BUFFER,
            settings::BUSY_POLL,
        ],
        path: "send, the kernel's UDP and IP, recv: both copies included",
    };

    fn available() -> Result<(), String> {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .map(drop)
            .map_err(|error| format!("a UDP socket on 127.0.0.1 cannot be bound: {error}"))
    }

    fn open(setup: &Setup) -> Result<UdpOpening, SetupError> {
        let own = site::address(&setup.site)?;
        let socket = site::bind(own, UdpSocket::bind)
            .map_err(SetupError::system(format!("binding on {}", own.ip())))?;
        Ok(UdpOpening { socket, own, setup: setup.clone() })
    }

    fn strangers(endpoint: &DatagramEndpoint) -> u64 {
        endpoint.strangers()
    }

    fn granted(endpoint: &DatagramEndpoint) -> Vec<(String, String)> {
        options::granted_ip(endpoint.socket())
    }

    fn afterwards(endpoint: &DatagramEndpoint) -> Vec<(String, String)> {
        seen("datagrams.empty", endpoint.empty())
    }
}

impl Opening for UdpOpening {
    type Endpoint = DatagramEndpoint;

    fn address(&self) -> Blob {
        Blob(self.socket.local_addr().map(|a| a.to_string().into_bytes()).unwrap_or_default())
    }

    fn connect(self, other: &Blob) -> Result<DatagramEndpoint, SetupError> {
        let address: SocketAddr = other.text()?.parse().map_err(|_| SetupError::Address)?;
        let address = site::towards(address, self.own);
        self.socket
            .connect(address)
            .map_err(SetupError::system(format!("connecting to {address}")))?;
        let socket: OwnedFd = self.socket.into();
        options::apply_ip(&socket, &self.setup.settings)?;
        DatagramEndpoint::connected(socket, &self.setup, true)
    }

    type Varied = DatagramEndpoint;

    fn connect_varied(self, other: &Blob) -> Result<Varied<DatagramEndpoint>, SetupError> {
        self.connect(other).map(Varied::of::<Udp>)
    }
}
