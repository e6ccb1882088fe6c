//! `udp`: the control path. Both ends bind on loopback, or where they were asked to, and connect to
//! each other.

use super::datagram::DatagramEndpoint;
use super::{options, site};
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

const DESCRIPTOR: Descriptor = Descriptor {
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
    ..Descriptor::BASE
};

impl Transport for Udp {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn available(&self) -> Result<(), String> {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .map(drop)
            .map_err(|error| format!("a UDP socket on 127.0.0.1 cannot be bound: {error}"))
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let own = site::address(&setup.site)?;
        let socket = site::bind(own, UdpSocket::bind)
            .map_err(SetupError::system(format!("binding on {}", own.ip())))?;
        Ok(Box::new(UdpOpening { socket, own, setup: setup.clone() }))
    }
}

impl Opening for UdpOpening {
    fn address(&self) -> Blob {
        Blob(self.socket.local_addr().map(|a| a.to_string().into_bytes()).unwrap_or_default())
    }

    fn connect(self: Box<Self>, other: &Blob) -> Result<Connected, SetupError> {
        let address: SocketAddr = other.text()?.parse().map_err(|_| SetupError::Address)?;
        let address = site::towards(address, self.own);
        self.socket
            .connect(address)
            .map_err(SetupError::system(format!("connecting to {address}")))?;
        let socket: OwnedFd = self.socket.into();
        options::apply_ip(&socket, &self.setup.settings)?;
        let (endpoint, rejected_peers) = DatagramEndpoint::connected(socket, &self.setup, true)?;
        let effective_settings = options::effective_ip(endpoint.socket());
        Ok(Connected { endpoint: Box::new(endpoint), effective_settings, rejected_peers })
    }
}
