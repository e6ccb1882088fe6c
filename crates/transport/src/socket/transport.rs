//! The control path of the sockets. A stream's server listens, and lets a connection in when its
//! first bytes are the run's cookie; both ends of a datagram socket bind and connect to each other.
//!
//! IP sockets are on loopback, or where they were asked to be. Unix sockets have random names of
//! the abstract namespace, so that nothing is left behind, whatever becomes of the process.

use super::admit::{self, SharedListener};
use super::datagram::Datagrams;
use super::messages::MessageEndpoint;
use super::stream::StreamEndpoint;
use super::{options, site, slots_for};
use crate::*;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use wiregauge_host::Family;

/// A transport over sockets of one kind.
#[derive(Clone, Copy)]
pub struct SocketTransport {
    is_stream: bool,
    is_ip: bool,
}

impl SocketTransport {
    pub(super) const TCP: Self = SocketTransport { is_stream: true, is_ip: true };
    pub(super) const UDP: Self = SocketTransport { is_stream: false, is_ip: true };
    pub(super) const UNIX: Self = SocketTransport { is_stream: true, is_ip: false };
    pub(super) const UNIXGRAM: Self = SocketTransport { is_stream: false, is_ip: false };

    fn socket(self, domain: Domain) -> io::Result<Socket> {
        Socket::new(domain, if self.is_stream { Type::STREAM } else { Type::DGRAM }, None)
    }

    /// A socket that is bound to an address.
    fn bound_at(self, own: &SockAddr, setup: &Setup) -> io::Result<Socket> {
        let socket = self.socket(own.domain())?;
        // A port whose last connection has just ended is free for those who listen.
        if self.is_ip && self.is_stream {
            socket.set_reuse_address(true)?;
        }
        if self.is_ip {
            site::bind_device(&socket, setup.device.as_deref())?;
        }
        socket.bind(own)?;
        if self.is_stream {
            options::apply_before_handshake(&socket, &setup.settings).map_err(io::Error::other)?;
            // Two sockets may bind the same port, but only one may listen: the next port is tried
            // where another one does.
            socket.listen(1)?;
        }
        Ok(socket)
    }

    /// The same at a port that is allowed here and free.
    fn bound(self, own: &SockAddr, setup: &Setup) -> io::Result<Socket> {
        match own.as_socket() {
            Some(own) => site::bind(own, |at| self.bound_at(&at.into(), setup)),
            None => self.bound_at(own, setup),
        }
    }

    /// The address of an end that is to be opened.
    fn own_address(self, site: &Site, family: Option<Family>) -> Result<SockAddr> {
        match self.is_ip {
            true => Ok(site::address(site, family)?.into()),
            false => abstract_address(setup::random_name()?.as_bytes()),
        }
    }

    /// Whether one can be had.
    pub(super) fn available(self) -> Result<(), String> {
        // Whatever a daemon allows rounds to use.
        let own = match self.is_ip {
            true => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(),
            false => self.own_address(&Site::Loopback, None).map_err(|error| error.to_string())?,
        };
        let bound = self.bound_at(&own, &plain_setup());
        let what = match (self.is_ip, self.is_stream) {
            (true, true) => "a TCP socket on 127.0.0.1 cannot be bound",
            (true, false) => "a UDP socket on 127.0.0.1 cannot be bound",
            (false, _) => "a unix socket cannot be made",
        };
        bound.map(drop).map_err(|error| format!("{what}: {error}"))
    }

    /// Opens one end.
    pub(super) fn open(self, setup: &Setup) -> Result<Opening> {
        if self.is_stream && setup.role == Role::Server {
            return self.listen(setup, 1)?.pop().ok_or(SetupError::Address);
        }
        let own = self.own_address(&setup.site, setup.settings.family())?;
        let what = format!("binding on {}", shown(&own));
        let socket = (!self.is_stream).then(|| self.bound(&own, setup)).transpose();
        let socket = socket.map_err(SetupError::system(what))?;
        let address = socket.as_ref().map(admit::address_of).unwrap_or_default();
        let setup = setup.clone();
        Ok(Opening::new(address, move |other| {
            let socket = self.dial(socket, &own, other, &setup)?;
            self.connected(socket, 0, &setup)
        }))
    }

    /// Opens the ends of a thread of a stream: those of a server have one listening socket.
    pub(super) fn open_several(self, setup: &Setup, ends: u32) -> Result<Vec<Opening>> {
        match setup.role {
            Role::Server => self.listen(setup, ends),
            Role::Client | Role::Node => (0..ends).map(|_| self.open(setup)).collect(),
        }
    }

    /// Opens ends of a server behind one listening socket, which all threads of a process have in a
    /// round. A unix socket's name is each thread's own.
    fn listen(self, setup: &Setup, ends: u32) -> Result<Vec<Opening>> {
        let own = self.own_address(&setup.site, setup.settings.family())?;
        let what = format!("listening on {}", shown(&own));
        let (listener, first) =
            SharedListener::with_ends(&own, ends, setup, || self.bound(&own, setup))
                .map_err(SetupError::system(what))?;
        let openings = (first..first + ends).map(|number| {
            let listener = listener.clone();
            let setup = setup.clone();
            Opening::new(listener.address(number), move |_| {
                let (socket, rejected) = listener.accept(number, &setup, is_peer)?;
                self.connected(socket, rejected, &setup)
            })
        });
        Ok(openings.collect())
    }

    /// Sets what was asked for of a socket that is connected.
    fn connected(self, socket: Socket, rejected: u64, setup: &Setup) -> Result<Connected> {
        let SocketTransport { is_stream, is_ip } = self;
        let mut rejected_peers = rejected;
        options::apply(&socket, &setup.settings)?;
        let effective_settings = options::effective(&socket);
        let endpoint: Box<dyn Endpoint> = if is_stream {
            Box::new(StreamEndpoint::new(socket, setup))
        } else {
            let size = setup.size.max(1);
            let (datagrams, rejected) = Datagrams::connected(socket, size, setup, is_ip)?;
            // Before a unix socket was connected nobody knew its name: there is nothing to reject.
            rejected_peers = if is_ip { rejected } else { 0 };
            Box::new(MessageEndpoint::new(datagrams, slots_for(setup, size), size))
        };
        Ok(Connected { endpoint, effective_settings, rejected_peers })
    }

    /// The socket, connected to the other end. A stream's is made now, and shows the cookie.
    fn dial(
        self,
        socket: Option<Socket>,
        own: &SockAddr,
        other: &Blob,
        setup: &Setup,
    ) -> Result<Socket> {
        let (name, number) =
            if self.is_stream { admit::parts(other)? } else { (other.0.as_slice(), 0) };
        let (address, to) = match own.as_socket() {
            Some(own) => {
                let text = str::from_utf8(name).map_err(|_| SetupError::Address)?;
                let address = text.parse().map_err(|_| SetupError::Address)?;
                let address = site::towards(address, own)?;
                (address.into(), format!("connecting to {address}"))
            }
            None => {
                // No other program's socket has such a name.
                ensure!(setup::is_random_name(name), SetupError::Address);
                (abstract_address(name)?, "connecting to the other end's unix socket".into())
            }
        };
        if let Some(socket) = socket {
            socket.connect(&address).map_err(SetupError::system(to))?;
            return Ok(socket);
        }
        let socket = self.socket(address.domain()).map_err(SetupError::system(&to))?;
        options::apply_before_handshake(&socket, &setup.settings)?;
        if self.is_ip {
            let device = setup.device.as_deref();
            let what = format!("binding to the device {}", device.unwrap_or_default());
            site::bind_device(&socket, device).map_err(SetupError::system(what))?;
        }
        let connected = match self.is_ip {
            true => {
                let what = format!("using the address {}", shown(own));
                // The port is chosen when it connects: one that another connection has, or had a
                // minute ago, serves this one too where the other end's differs.
                let _ = setsockopt(&socket, sockopt::IpBindAddressNoPort, &true);
                socket.bind(own).map_err(SetupError::system(what))?;
                socket.connect_timeout(&address, setup.timeout.duration())
            }
            false => socket.connect(&address),
        };
        connected.map_err(SetupError::system(to))?;
        admit::present(&socket, number, setup)?;
        Ok(socket)
    }
}

/// Returns the set-up of an end on loopback without settings.
fn plain_setup() -> Setup {
    Setup::new(Role::Server, Traffic::Echo { every: 1 }, Wait::Busy, 1)
}

/// The address of a unix socket by its name.
fn abstract_address(name: &[u8]) -> Result<SockAddr> {
    let path = [b"\0", name].concat();
    SockAddr::unix(OsStr::from_bytes(&path)).map_err(|_| SetupError::Address)
}

/// An address in a sentence.
fn shown(address: &SockAddr) -> String {
    address.as_socket().map_or("a unix socket".into(), |address| address.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: SocketTransport = SocketTransport::TCP;

    #[test]
    fn a_port_on_which_another_listens_is_in_use() {
        let own = TCP.own_address(&Site::Loopback, None).unwrap();
        let first = TCP.bound_at(&own, &plain_setup()).unwrap();
        let taken = first.local_addr().unwrap();
        let refused = TCP.bound_at(&taken, &plain_setup()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
