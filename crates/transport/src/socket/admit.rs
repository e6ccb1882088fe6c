//! Who is let in: a connection from an address that the daemon allows, whose first 32 bytes are the
//! run's cookie. Anybody else is dropped and the wait goes on.

use crate::{Result, Setup, SetupError};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use socket2::Socket;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long a connection may take to present the cookie: the other end sends it at once, so that a
/// silent peer delays the real one by no more than this.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often a listener looks for a connection while none is there.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits for the connection of a peer that presents the cookie; gives it with the number of others.
pub(super) fn accept(
    listener: &Socket,
    setup: &Setup,
    is_peer: fn(IpAddr) -> bool,
) -> Result<(Socket, u64)> {
    let mut rejected = 0;
    let failed = || SetupError::system("accepting the client's connection");
    listener.set_nonblocking(true).map_err(failed())?;
    let deadline = setup.deadline();
    loop {
        deadline.left("accepting the client's connection")?;
        match listener.accept() {
            Ok((stream, from)) => {
                // A unix socket has none: its peer is on this host.
                let is_allowed = from.as_socket().is_none_or(|from| is_peer(from.ip()));
                if is_allowed && knows_cookie(&stream, setup).unwrap_or(false) {
                    stream.set_read_timeout(None).map_err(failed())?;
                    return Ok((stream, rejected));
                }
                rejected += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A peer that closed before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => rejected += 1,
            Err(error) => return Err(failed()(error)),
        }
    }
}

fn knows_cookie(stream: &Socket, setup: &Setup) -> io::Result<bool> {
    stream.set_nonblocking(false)?;
    let (deadline, mut shown) = (Instant::now() + PATIENCE, [0; 32]);
    loop {
        // For all of it together: neither a byte now and then nor a signal buys more patience.
        let left = deadline.saturating_duration_since(Instant::now());
        // A time-out that is rounded to none would be for ever.
        if left < Duration::from_millis(1) {
            return Ok(false);
        }
        stream.set_read_timeout(Some(left))?;
        match rustix::net::recv(stream, &mut shown[..], RecvFlags::WAITALL) {
            Err(Errno::INTR) => {}
            received => return Ok(setup.is_cookie(&shown[..received?.1])),
        }
    }
}

/// Presents the cookie.
pub(super) fn present(mut stream: &Socket, setup: &Setup) -> Result<()> {
    stream.write_all(&setup.cookie).map_err(SetupError::system("presenting the cookie"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Traffic, Wait};
    use socket2::{Domain, Type};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use wiregauge_test_support::bounded::Bound;

    #[test]
    fn peers_without_the_cookie_are_dropped_and_counted() {
        let _bound = Bound::new();
        let setup = Setup::new(Role::Server, Traffic::Forward, Wait::Block, 1);
        let setup = Setup { cookie: [7; 32], ..setup };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dial = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let mut rejected = vec![dial(&[0; 32]), dial(&[7; 31])];
        rejected.pop().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
        let _known = dial(&[7; 32]);
        let (_, dropped) = accept(&listener.into(), &setup, |_| true).unwrap();
        assert_eq!(dropped, 2);
    }

    #[test]
    fn a_peer_that_is_not_allowed_is_dropped_though_it_has_the_cookie() {
        let _bound = Bound::new();
        let setup = Setup::new(Role::Server, Traffic::Forward, Wait::Block, 1);
        let setup = Setup { cookie: [7; 32], ..setup };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to: SocketAddr = listener.local_addr().unwrap();
        let from = |own: &str| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::new(own.parse().unwrap(), 0).into()).unwrap();
            socket.connect(&to.into()).unwrap();
            present(&socket, &setup).unwrap();
            socket
        };
        let _others = [from("127.0.0.3"), from("127.0.0.2")];
        let is_peer = |ip: IpAddr| ip == IpAddr::from([127, 0, 0, 2]);
        let (let_in, dropped) = accept(&listener.into(), &setup, is_peer).unwrap();
        let peer = let_in.peer_addr().unwrap().as_socket().unwrap();
        assert_eq!((is_peer(peer.ip()), dropped), (true, 1));
    }
}
