//! The admission of connections: one from an address that the daemon allows, whose first bytes
//! are the run's cookie and the number of an end that has no connection. All that are accepted wait
//! for their first bytes at once, so that none holds up another; anybody else is dropped.

use crate::{Blob, Result, Setup, SetupError};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use socket2::{SockAddr, Socket};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Connections that wait for their first bytes: of more the one that has waited longest is dropped.
const MAX_WAITING: usize = 256;
/// Connections that are accepted before those that wait are read: fewer than may wait, so that each
/// is read once at least.
const BATCH: u32 = 64;
/// Most ends of one listening socket: connections of a client's address to one port have different
/// ports themselves, of which the kernel has 28 232 where nothing is set.
pub const ENDS_OF_A_PORT: u32 = 16_384;
/// The length of the queue of connections to be accepted, at least: the standard library's.
const BACKLOG: u32 = 128;
/// The greatest such length, which net.core.somaxconn has where nothing is set.
const MAX_BACKLOG: u32 = 4096;
/// Period at which a listener polls for connections and their first bytes.
const PAUSE: Duration = Duration::from_millis(1);

/// Bytes that a connection shows first: the cookie, and the number of the end that it is for.
const HELLO: usize = 32 + 4;
/// Tried while a connection is awaited.
const WHAT: &str = "accepting the client's connection";
/// Between the address of a listening socket and the number of an end behind it.
const NUMBER: char = '#';

/// Returns the address of a bound socket, to which the other end connects.
pub(super) fn address_of(socket: &Socket) -> Blob {
    let bytes = socket.local_addr().ok().map(|address| match address.as_socket() {
        Some(address) => address.to_string().into_bytes(),
        None => address.as_abstract_namespace().unwrap_or_default().to_vec(),
    });
    Blob(bytes.unwrap_or_default())
}

/// Returns the address of one of the ends behind a listening socket.
fn numbered(address: &Blob, number: u32) -> Blob {
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

/// A listening socket of several ends, of all threads of a process. Each connection says which of
/// them it is for, so that it is the same on both sides whatever order they come in.
#[derive(Clone)]
pub(super) struct SharedListener(Arc<Mutex<Listener>>);

/// The listening sockets of this process, each with the cookie of its round and the requested
/// address.
static LISTENERS: Mutex<Vec<OfRound>> = Mutex::new(Vec::new());

/// A listening socket that threads may share while one of them has it.
struct OfRound {
    cookie: [u8; 32],
    site: SockAddr,
    listener: Weak<Mutex<Listener>>,
}

impl SharedListener {
    /// Returns the listener of this round at an address, with the number of the first of the ends
    /// that are added to it. The first thread that asks makes its socket; all have one port.
    ///
    /// # Errors
    /// The socket cannot be made, or take that many connections at once.
    pub(super) fn with_ends(
        site: &SockAddr,
        ends: u32,
        setup: &Setup,
        bind: impl FnOnce() -> io::Result<Socket>,
    ) -> io::Result<(SharedListener, u32)> {
        let mut all = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.listener.strong_count() > 0);
        let of_round = all.iter().filter(|one| one.cookie == setup.cookie && one.site == *site);
        let known = of_round.filter_map(|known| Some(SharedListener(known.listener.upgrade()?)));
        let with_room = known.into_iter().find(|known| known.locked().has_room(ends));
        let shared = match with_room {
            Some(known) => known,
            None => {
                let shared = SharedListener::new(bind()?);
                all.push(OfRound {
                    cookie: setup.cookie,
                    site: site.clone(),
                    listener: Arc::downgrade(&shared.0),
                });
                shared
            }
        };
        let first = shared.locked().add_ends(ends)?;
        Ok((shared, first))
    }

    /// Returns the listener of a socket, without ends.
    fn new(socket: Socket) -> SharedListener {
        SharedListener(Arc::new(Mutex::new(Listener {
            socket,
            is_known: Vec::new(),
            early: HashMap::new(),
            waiting: VecDeque::new(),
            rejected: 0,
            reported: 0,
            shortage: None,
        })))
    }

    fn locked(&self) -> MutexGuard<'_, Listener> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address of the end of this number.
    pub(super) fn address(&self, number: u32) -> Blob {
        numbered(&address_of(&self.locked().socket), number)
    }

    /// Waits for the connection of this number whose peer presents the cookie; returns it with the
    /// number of connections that were rejected meanwhile. With the last end those that still wait
    /// are rejected.
    ///
    /// # Errors
    /// None came in time, or the socket fails.
    pub(super) fn accept(
        &self,
        number: u32,
        setup: &Setup,
        is_peer: fn(IpAddr) -> bool,
    ) -> Result<(Socket, u64)> {
        let deadline = setup.deadline();
        loop {
            let mut listener = self.locked();
            if let Some(socket) = listener.early.remove(&number) {
                return Ok((socket, listener.rejected_since()));
            }
            deadline.left(WHAT).map_err(|late| listener.late(late))?;
            let may_have_more = listener.take_batch(setup, is_peer)?;
            let has_come = listener.early.contains_key(&number);
            drop(listener);
            if !may_have_more && !has_come {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// A listening socket, and who has come to it.
struct Listener {
    socket: Socket,
    /// True for each end that was let in.
    is_known: Vec<bool>,
    /// Connections whose end has not asked for them yet.
    early: HashMap<u32, Socket>,
    /// Connections that have not shown all of their first bytes, the oldest first.
    waiting: VecDeque<Waiting>,
    /// Connections that were dropped, and how many of them an end has reported.
    rejected: u64,
    reported: u64,
    /// Why the last one could not be accepted, where descriptors ran out.
    shortage: Option<io::Error>,
}

/// A connection that has not shown all of its first bytes.
struct Waiting {
    stream: Socket,
    shown: [u8; HELLO],
    length: usize,
}

/// The state of a connection after a look at what it has shown.
enum Shown {
    /// More is to come.
    Part,
    /// The cookie and the number of an end.
    Number(u32),
    /// Something else, or it is closed.
    Other,
}

impl Listener {
    /// Returns true if its port has room for more ends.
    fn has_room(&self, ends: u32) -> bool {
        self.is_known.len() as u64 + u64::from(ends) <= u64::from(ENDS_OF_A_PORT)
    }

    /// Adds ends, and returns the number of the first.
    fn add_ends(&mut self, ends: u32) -> io::Result<u32> {
        let first = self.is_known.len() as u32;
        self.is_known.resize(self.is_known.len() + ends as usize, false);
        let all = self.is_known.len() as u32;
        // Two sockets may bind the same port, but only one may listen.
        self.socket.listen(all.clamp(BACKLOG, MAX_BACKLOG) as i32)?;
        self.socket.set_nonblocking(true)?;
        Ok(first)
    }

    /// Returns the number of connections that were rejected and no end has reported.
    fn rejected_since(&mut self) -> u64 {
        if self.early.is_empty() && self.is_known.iter().all(|is_known| *is_known) {
            self.rejected += std::mem::take(&mut self.waiting).len() as u64;
        }
        self.rejected - std::mem::replace(&mut self.reported, self.rejected)
    }

    /// Accepts some connections, and reads what those that wait have shown; returns true if there
    /// may be more.
    fn take_batch(&mut self, setup: &Setup, is_peer: fn(IpAddr) -> bool) -> Result<bool> {
        let mut batch = BATCH;
        while batch > 0 && self.take_new(is_peer)? {
            batch -= 1;
        }
        self.read_waiting(setup);
        Ok(batch == 0)
    }

    /// Adds to the error of a connection that did not come in time what came instead.
    fn late(&self, late: SetupError) -> SetupError {
        let others = self.rejected + self.waiting.len() as u64;
        let SetupError::Late { what, seconds } = late else { return late };
        let shortage = self.shortage.as_ref().map(|error| format!("; {error}"));
        let shortage = shortage.unwrap_or_default();
        let what = match (others, shortage.is_empty()) {
            (0, true) => what,
            _ => format!("{what} ({others} connections were not let in{shortage})"),
        };
        SetupError::Late { what, seconds }
    }

    /// Accepts one connection, if there is any; returns true if there may be more.
    fn take_new(&mut self, is_peer: fn(IpAddr) -> bool) -> Result<bool> {
        match self.socket.accept() {
            Ok((stream, from)) => {
                // A unix socket has none: its peer is on this host.
                let is_allowed = from.as_socket().is_none_or(|from| is_peer(from.ip()));
                if !is_allowed {
                    self.rejected += 1;
                    return Ok(true);
                }
                if self.waiting.len() == MAX_WAITING {
                    self.waiting.pop_front();
                    self.rejected += 1;
                }
                self.waiting.push_back(Waiting { stream, shown: [0; HELLO], length: 0 });
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            // A peer that closed before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                self.rejected += 1;
                Ok(true)
            }
            // No descriptor is left: those who say nothing have them, here or at another listener.
            Err(error) if is_exhausted(&error) => {
                self.shortage = Some(error);
                let is_freed = self.waiting.pop_front().is_some();
                self.rejected += u64::from(is_freed);
                Ok(is_freed)
            }
            Err(error) => Err(SetupError::system(WHAT)(error)),
        }
    }

    /// Reads what those that wait have shown; keeps who presents the cookie and the number of an
    /// end that has no connection, and drops others.
    fn read_waiting(&mut self, setup: &Setup) {
        for mut one in std::mem::take(&mut self.waiting) {
            match one.read_hello(setup) {
                Shown::Part => self.waiting.push_back(one),
                Shown::Number(number) if self.is_free(number) => {
                    self.early.insert(number, one.stream);
                }
                Shown::Number(_) | Shown::Other => self.rejected += 1,
            }
        }
    }

    /// Returns true for an end that has no connection, and has one from then on.
    fn is_free(&mut self, number: u32) -> bool {
        let known = self.is_known.get_mut(number as usize);
        known.is_some_and(|is_known| !std::mem::replace(is_known, true))
    }
}

/// Returns true if the process, or the host, has no descriptor left.
fn is_exhausted(error: &io::Error) -> bool {
    let limits = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|number| limits.contains(&number))
}

impl Waiting {
    /// Reads what is there, and no more than the first bytes.
    fn read_hello(&mut self, setup: &Setup) -> Shown {
        while self.length < HELLO {
            let rest = &mut self.shown[self.length..];
            match rustix::net::recv(&self.stream, rest, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Shown::Other,
                Ok((_, got)) => self.length += got,
                Err(Errno::AGAIN | Errno::INTR) => return Shown::Part,
                Err(_) => return Shown::Other,
            }
        }
        let (cookie, number) = self.shown.split_at(32);
        match number.first_chunk() {
            Some(bytes) if setup.is_cookie(cookie) => Shown::Number(u32::from_le_bytes(*bytes)),
            _ => Shown::Other,
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
    use wiregauge_base::units::Span;
    use wiregauge_test_support::bounded::Bound;

    /// Returns what the client of an end shows.
    fn hello(cookie: &[u8], number: u32) -> Vec<u8> {
        [cookie, &number.to_le_bytes()].concat()
    }

    fn setup() -> Setup {
        let setup = Setup::new(Role::Server, Traffic::Forward, Wait::Block, 1);
        Setup { cookie: [7; 32], ..setup }
    }

    /// Returns the listener of a socket with ends.
    fn of_ends(socket: Socket, ends: u32) -> SharedListener {
        let shared = SharedListener::new(socket);
        shared.locked().add_ends(ends).unwrap();
        shared
    }

    /// Adds ends to the listener of a round on loopback.
    fn in_round(cookie: u8, ends: u32) -> (SharedListener, u32) {
        let site: SockAddr = SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let round = Setup { cookie: [cookie; 32], ..setup() };
        SharedListener::with_ends(&site, ends, &round, || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&site)?;
            Ok(socket)
        })
        .unwrap()
    }

    fn port(listener: &SharedListener) -> u16 {
        let address = listener.locked().socket.local_addr().unwrap();
        address.as_socket().unwrap().port()
    }

    #[test]
    fn the_threads_of_a_round_share_a_port_and_other_rounds_have_their_own() {
        let all = [in_round(41, 2), in_round(41, 3), in_round(42, 1)];
        assert_eq!(all.each_ref().map(|(_, first)| *first), [0, 2, 0]);
        let ports = all.each_ref().map(|(listener, _)| port(listener));
        assert!(ports[0] == ports[1] && ports[0] != ports[2], "{ports:?}");
        let (full, first) = in_round(41, ENDS_OF_A_PORT);
        assert!(first == 0 && port(&full) != ports[0], "a port has room for no more");
        drop((all, full));
        drop(in_round(43, 1));
        let kept = LISTENERS.lock().unwrap();
        assert!(kept.iter().all(|one| ![[41; 32], [42; 32]].contains(&one.cookie)), "none is");
    }

    #[test]
    fn a_thread_hands_over_what_came_for_another() {
        let _bound = Bound::new();
        let (one, _) = in_round(44, 2);
        let (other, _) = in_round(44, 3);
        let to = SocketAddr::from(([127, 0, 0, 1], port(&one)));
        let clients = [3, 0, 4, 1, 2].map(|number| {
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(&hello(&[44; 32], number)).unwrap();
            (number, stream.local_addr().ok(), stream)
        });
        let accepted = std::thread::scope(|scope| {
            let threads = [(one, 0..2), (other, 2..5)].map(|(listener, numbers)| {
                scope.spawn(move || {
                    let round = Setup { cookie: [44; 32], ..setup() };
                    let ends = numbers.map(|number| {
                        let (end, _) = listener.accept(number, &round, |_| true).unwrap();
                        (number, end.peer_addr().unwrap().as_socket())
                    });
                    ends.collect::<Vec<_>>()
                })
            });
            threads.map(|thread| thread.join().unwrap()).concat()
        });
        for (number, peer) in accepted {
            assert!(clients.iter().any(|(of, own, _)| (*of, *own) == (number, peer)), "{number}");
        }
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
        let listener = of_ends(listener.into(), 1);
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
        let listener = of_ends(listener.try_clone().unwrap().into(), 3);
        let accepted = [0, 1, 2].map(|number| listener.accept(number, &setup(), |_| true).unwrap());
        let peers = accepted.each_ref().map(|(end, _)| end.peer_addr().unwrap().as_socket());
        let own = [1, 4, 0].map(|client: usize| clients[client].local_addr().ok());
        assert_eq!(peers, own);
        assert_eq!(accepted.map(|(_, dropped)| dropped).iter().sum::<u64>(), 2);
    }

    #[test]
    fn silent_connections_hold_nobody_up_and_the_oldest_go() {
        let _bound = Bound::new();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(4096).unwrap();
        let to = socket.local_addr().unwrap().as_socket().unwrap();
        let silent: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(to).unwrap()).collect();
        // Two that feed it a byte, and the real one behind them all.
        let mut slow = [TcpStream::connect(to).unwrap(), TcpStream::connect(to).unwrap()];
        slow.iter_mut().for_each(|one| one.write_all(&[7]).unwrap());
        let mut real = TcpStream::connect(to).unwrap();
        real.write_all(&hello(&[7; 32], 0)).unwrap();
        let listener = of_ends(socket, 1);
        let (end, rejected) = listener.accept(0, &setup(), |_| true).unwrap();
        assert_eq!(end.peer_addr().unwrap().as_socket(), real.local_addr().ok());
        // Some by their age, the others when the last end has come.
        assert_eq!(rejected, 402);
        drop((silent, slow));
    }

    #[test]
    fn those_who_were_not_let_in_are_in_the_fault() {
        let _bound = Bound::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut wrong = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        wrong.write_all(&hello(&[0; 32], 0)).unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let setup = Setup { timeout: Span(300_000_000), ..setup() };
        let said = of_ends(listener.into(), 1).accept(0, &setup, |_| true);
        let said = said.err().map(|error| error.to_string()).unwrap();
        let wanted = "accepting the client's connection (2 connections were not let in): \
                      nothing arrived within 0.3 s";
        assert_eq!(said, wanted);
        drop(silent);
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
        let listener = of_ends(listener.into(), 1);
        let (let_in, dropped) = listener.accept(0, &setup(), is_peer).unwrap();
        let peer = let_in.peer_addr().unwrap().as_socket().unwrap();
        assert_eq!((is_peer(peer.ip()), dropped), (true, 1));
    }
}
