//! The admission of connections: one from an address that the daemon allows, whose first bytes
//! are the run's cookie and the number of an end that has no connection. Anybody else is dropped
//! and the wait goes on.

use crate::{Blob, Result, Setup, SetupError};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use socket2::Socket;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long a connection may take to present the cookie: the other end sends it at once, so that a
/// silent peer delays the real one by no more than this.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often a listener looks for a connection while none is there.
const PAUSE: Duration = Duration::from_millis(1);

/// Bytes that a connection shows first: the cookie, and the number of the end that it is for.
const HELLO: usize = 32 + 4;
/// Tried while a connection is awaited.
const WHAT: &str = "accepting the client's connection";
/// Between the address of a listening socket and the number of an end behind it.
const NUMBER: char = '#';

/// Returns the address of one of the ends behind a listening socket.
pub(super) fn numbered(address: &Blob, number: u32) -> Blob {
    let mut bytes = address.0.clone();
    bytes.extend(format!("{NUMBER}{number}").bytes());
    Blob(bytes)
}

/// Returns the parts of such an address: that of the socket, and the number.
pub(super) fn parts(address: &Blob) -> Result<(&[u8], u32)> {
    let at = address.0.iter().rposition(|byte| *byte == NUMBER as u8).ok_or(SetupError::Address)?;
    let number = str::from_utf8(&address.0[at + 1..]).ok().and_then(|number| number.parse().ok());
    Ok((&address.0[..at], number.ok_or(SetupError::Address)?))
}

/// A listening socket of several ends. Each connection says which of them it is for, so that it is
/// the same on both sides whatever order they come in.
pub(super) struct Listener {
    socket: Socket,
    /// True for each end that was let in.
    is_known: Box<[bool]>,
    /// Connections whose end has not asked for them yet.
    early: HashMap<u32, Socket>,
}

impl Listener {
    /// Returns the listener of this number of ends.
    pub(super) fn new(socket: Socket, ends: u32) -> Listener {
        let is_known = vec![false; ends as usize].into_boxed_slice();
        Listener { socket, is_known, early: HashMap::new() }
    }

    /// Waits for the connection of this number whose peer presents the cookie; returns it with the
    /// number of connections that were rejected meanwhile.
    pub(super) fn accept(
        &mut self,
        number: u32,
        setup: &Setup,
        is_peer: fn(IpAddr) -> bool,
    ) -> Result<(Socket, u64)> {
        let mut rejected = 0;
        self.socket.set_nonblocking(true).map_err(SetupError::system(WHAT))?;
        let deadline = setup.deadline();
        loop {
            if let Some(socket) = self.early.remove(&number) {
                return Ok((socket, rejected));
            }
            deadline.left(WHAT)?;
            match self.socket.accept() {
                Ok((stream, from)) => {
                    // A unix socket has none: its peer is on this host.
                    let is_allowed = from.as_socket().is_none_or(|from| is_peer(from.ip()));
                    if !is_allowed || !self.admit(stream, setup) {
                        rejected += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A peer that closed before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => rejected += 1,
                Err(error) => return Err(SetupError::system(WHAT)(error)),
            }
        }
    }

    /// Keeps a connection that presents the cookie and the number of an end that has none; returns
    /// false if it is another.
    fn admit(&mut self, stream: Socket, setup: &Setup) -> bool {
        let Ok(Some(number)) = number_shown(&stream, setup) else { return false };
        match self.is_known.get_mut(number as usize) {
            Some(is_known) if !*is_known && stream.set_read_timeout(None).is_ok() => {
                *is_known = true;
                self.early.insert(number, stream);
                true
            }
            _ => false,
        }
    }
}

/// Returns the number that a peer presents behind the cookie; `None` if it does not know that.
fn number_shown(stream: &Socket, setup: &Setup) -> io::Result<Option<u32>> {
    stream.set_nonblocking(false)?;
    let (deadline, mut shown) = (Instant::now() + PATIENCE, [0; HELLO]);
    loop {
        // For all of it together: neither a byte now and then nor a signal buys more patience.
        let left = deadline.saturating_duration_since(Instant::now());
        // A time-out that is rounded to none would be for ever.
        if left < Duration::from_millis(1) {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match rustix::net::recv(stream, &mut shown[..], RecvFlags::WAITALL) {
            Err(Errno::INTR) => {}
            received => {
                let got = received?.1;
                let (cookie, number) = shown.split_at(32);
                let number = number.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
                return Ok(number.filter(|_| got == HELLO && setup.is_cookie(cookie)));
            }
        }
    }
}

/// Presents the cookie, and the number of the end that the connection is for.
pub(super) fn present(mut stream: &Socket, number: u32, setup: &Setup) -> Result<()> {
    let hello = [&setup.cookie[..], &number.to_le_bytes()].concat();
    stream.write_all(&hello).map_err(SetupError::system("presenting the cookie"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Traffic, Wait};
    use socket2::{Domain, Type};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use wiregauge_test_support::bounded::Bound;

    /// Returns what the client of an end shows.
    fn hello(cookie: &[u8], number: u32) -> Vec<u8> {
        [cookie, &number.to_le_bytes()].concat()
    }

    fn setup() -> Setup {
        let setup = Setup::new(Role::Server, Traffic::Forward, Wait::Block, 1);
        Setup { cookie: [7; 32], ..setup }
    }

    #[test]
    fn peers_without_the_cookie_are_dropped_and_counted() {
        let _bound = Bound::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dial = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let mut rejected = vec![dial(&hello(&[0; 32], 0)), dial(&[7; 31])];
        rejected.pop().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
        let _known = dial(&hello(&[7; 32], 0));
        let mut listener = Listener::new(listener.into(), 1);
        let (_, dropped) = listener.accept(0, &setup(), |_| true).unwrap();
        assert_eq!(dropped, 2);
    }

    #[test]
    fn each_end_gets_the_connection_that_is_for_it_whatever_order_they_come_in() {
        let _bound = Bound::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dial = |number: u32| {
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(&hello(&[7; 32], number)).unwrap();
            stream
        };
        // One that is no end's, and a second for the same one.
        let clients = [2, 0, 3, 2, 1].map(dial);
        let mut listener = Listener::new(listener.try_clone().unwrap().into(), 3);
        let accepted = [0, 1, 2].map(|number| listener.accept(number, &setup(), |_| true).unwrap());
        let peers = accepted.each_ref().map(|(end, _)| end.peer_addr().unwrap().as_socket());
        let own = [1, 4, 0].map(|client: usize| clients[client].local_addr().ok());
        assert_eq!(peers, own);
        assert_eq!(accepted.map(|(_, dropped)| dropped), [0, 2, 0]);
    }

    #[test]
    fn an_address_is_taken_apart_as_it_was_put_together() {
        let address = Blob(b"[fe80::1%2]:4000".to_vec());
        assert_eq!(parts(&numbered(&address, 16_383)).unwrap(), (&*address.0, 16_383));
        for foreign in ["", "127.0.0.1:1", "127.0.0.1:1#", "127.0.0.1:1#-1", "#4294967296"] {
            assert!(parts(&Blob(foreign.into())).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_peer_that_is_not_allowed_is_dropped_though_it_has_the_cookie() {
        let _bound = Bound::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to: SocketAddr = listener.local_addr().unwrap();
        let from = |own: &str| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::new(own.parse().unwrap(), 0).into()).unwrap();
            socket.connect(&to.into()).unwrap();
            present(&socket, 0, &setup()).unwrap();
            socket
        };
        let _others = [from("127.0.0.3"), from("127.0.0.2")];
        let is_peer = |ip: IpAddr| ip == IpAddr::from([127, 0, 0, 2]);
        let mut listener = Listener::new(listener.into(), 1);
        let (let_in, dropped) = listener.accept(0, &setup(), is_peer).unwrap();
        let peer = let_in.peer_addr().unwrap().as_socket().unwrap();
        assert_eq!((is_peer(peer.ip()), dropped), (true, 1));
    }
}
