//! The pre-flight of the data path: before the first round, the ends of two hosts try to reach each
//! other by TCP, and by datagrams of the sizes that their interfaces carry.
//!
//! A datagram that arrives is acknowledged by a small one. What arrives is counted at its receiver,
//! too: so a path that loses one direction only shows which.

use super::site;
use crate::setup::is_same_secret;
use crate::{Result, SetupError, Site};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use wiregauge_host::Family;

/// Time for ends to reach each other: a SYN that is lost is sent again after 1 s.
pub const PREFLIGHT_TIMEOUT: Duration = Duration::from_millis(2500);
/// Interval at which datagrams that were not acknowledged are sent again, and connections that
/// were closed are made again.
const RESEND_INTERVAL: Duration = Duration::from_millis(100);
/// Time for datagrams that no case needs, which show what the path carries: three of each size.
const UNNEEDED_TIMEOUT: Duration = Duration::from_millis(300);
/// Longest wait for anything to come, of all ends that one thread drives.
pub const POLL_TIMEOUT: Duration = Duration::from_millis(20);
/// Most ends that one tries to reach: as many as a rank may be connected to.
pub const MAX_PEERS: usize = 1024;
/// Most connections of others that have not shown a cookie: of more the oldest is dropped.
const MAX_WAITING: usize = 256;
/// Most connections that are accepted in one step: fewer than may wait, so that each is read once
/// at least.
const MAX_ACCEPTS_PER_STEP: usize = 64;
/// Most datagrams that are read in one step: those that are due go out meanwhile.
const MAX_DATAGRAMS_PER_STEP: usize = 256;
/// The queue of connections to be accepted.
const BACKLOG: i32 = 1024;

/// Sizes of IP packets that are tried in addition to those of the interfaces: Ethernet's, and the
/// least that IPv6 demands of a link.
const SIZES: [u32; 2] = [1500, 1280];
/// The largest IP packet.
pub const MAX_PACKET: u32 = 65_535;

/// Bytes of the secret of a pair of ends.
pub const COOKIE: usize = 32;
/// The first bytes of a connection, in each direction: the number of the sender, and the cookie.
const HELLO: usize = 4 + COOKIE;
/// The kinds of datagrams.
const PROBE: u8 = 1;
const ACK: u8 = 2;
/// Bytes of a datagram without its padding: cookie, kind, number of the sender, size.
const HEAD: usize = COOKIE + 1 + 4 + 4;

/// The addresses of an end, for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightAddresses {
    /// The address that accepts connections; `None`: nobody is to connect.
    pub tcp: Option<SocketAddr>,
    /// The address that receives datagrams.
    pub udp: SocketAddr,
    /// The network interface, where that is known.
    pub interface: Option<String>,
    /// The MTU of that interface in bytes.
    pub mtu_bytes: Option<u32>,
}

/// Requirements of an end on its path to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathNeeds {
    /// A connection to the other one: else none is tried.
    pub tcp: bool,
    /// Datagrams in both directions: else they are tried for a short time, to learn the MTU.
    pub udp: bool,
}

/// An end that another one is to reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightPeer {
    /// The number of the end in the pre-flight.
    pub number: u32,
    /// The addresses of the end.
    pub addresses: PreflightAddresses,
    /// The secret that only these two ends and their controller know.
    pub cookie: [u8; COOKIE],
    /// Requirements of the path to it.
    pub needs: PathNeeds,
}

/// Results of one end towards another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// The number of the other one.
    pub number: u32,
    /// The reason for which the daemon of this end does not let it send anything to the other.
    pub refused: Option<String>,
    /// The result of the connection to the other; `None`: none was tried.
    pub tcp: Option<Result<(), ConnectFailure>>,
    /// Sizes of IP packets to it that it has acknowledged, in bytes.
    pub acknowledged: BTreeSet<u32>,
    /// Sizes of IP packets of the other one that came here, in bytes.
    pub received: BTreeSet<u32>,
    /// The kernel's reason for which datagrams could not be sent to it, where it gave one.
    pub unsent: Option<String>,
}

/// The reason for which a connection was not made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ConnectFailure {
    /// Nothing answered in time.
    Silent,
    /// The other end, or something on the way, refused it.
    Refused,
    /// It was closed each time before anything came back.
    Closed,
    /// The kernel has no way there, or another error.
    Failed(String),
    /// Another program answered, without the cookie.
    Foreign,
}

impl ConnectFailure {
    /// Returns the kernel's words, where there are any.
    pub fn text(&self) -> Option<&String> {
        match self {
            ConnectFailure::Failed(text) => Some(text),
            ConnectFailure::Silent
            | ConnectFailure::Refused
            | ConnectFailure::Closed
            | ConnectFailure::Foreign => None,
        }
    }
}

/// Returns the bytes of headers before a datagram's payload.
fn headers(own: SocketAddr) -> u32 {
    match Family::of(own.ip()) {
        Family::Ipv4 => 20 + 8,
        Family::Ipv6 => 40 + 8,
    }
}

/// Returns the sizes of IP packets that an end tries to send to another, in bytes: the smallest
/// that holds what a datagram begins with, and those up to what its interface carries.
pub fn tried_sizes(own: &PreflightAddresses, other: &PreflightAddresses) -> BTreeSet<u32> {
    let mtu = own.mtu_bytes.unwrap_or(SIZES[0]).min(MAX_PACKET);
    let both = other.mtu_bytes.map(|other| other.min(mtu));
    let tried = SIZES.into_iter().filter(|size| *size < mtu).chain([mtu]).chain(both);
    let smallest = headers(own.udp) + HEAD as u32;
    tried.filter(|size| *size > smallest).chain([smallest]).collect()
}

/// Returns true for the same address and port. The scope of a link-local address is each host's
/// own, and is lost on the control channel.
fn is_same_port(one: SocketAddr, other: SocketAddr) -> bool {
    one.ip() == other.ip() && one.port() == other.port()
}

/// The first bytes of a connection.
struct Hello {
    number: u32,
    cookie: [u8; COOKIE],
}

impl Hello {
    fn to_bytes(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        let (number, cookie) = bytes.split_at_mut(4);
        number.copy_from_slice(&self.number.to_le_bytes());
        cookie.copy_from_slice(&self.cookie);
        bytes
    }

    fn read(bytes: &[u8; HELLO]) -> Hello {
        let mut number = [0; 4];
        let mut cookie = [0; COOKIE];
        number.copy_from_slice(&bytes[..4]);
        cookie.copy_from_slice(&bytes[4..]);
        Hello { number: u32::from_le_bytes(number), cookie }
    }
}

/// An outgoing connection.
enum Dialing {
    /// No case needs one, or the daemon does not allow it.
    Unneeded,
    /// It was closed before anything came, and is tried again then: a listener whose queue is full
    /// of strangers drops the oldest.
    Closed(Instant),
    /// The kernel connects.
    Connecting(Socket),
    /// It is connected, and the cookie is awaited.
    AwaitingCookie(Socket, Vec<u8>),
    /// It is decided.
    Done(Result<(), ConnectFailure>),
}

/// Another end, and how far it was reached.
struct Attempt {
    number: u32,
    cookie: [u8; COOKIE],
    needs: PathNeeds,
    refused: Option<String>,
    tcp: Option<SocketAddr>,
    udp: SocketAddr,
    dialing: Dialing,
    was_closed: bool,
    due: BTreeSet<u32>,
    acknowledged: BTreeSet<u32>,
    /// Sizes that the other one tries, and those of them that came.
    expected: BTreeSet<u32>,
    received: BTreeSet<u32>,
    unsent: Option<String>,
}

/// A connection of somebody who has not shown all of its first bytes.
struct Unauthenticated {
    socket: Socket,
    shown: Vec<u8>,
}

/// When attempts end.
struct Times {
    deadline: Instant,
    /// For datagrams that nobody needs.
    unneeded_deadline: Instant,
    /// When datagrams are sent again.
    next_send: Instant,
}

/// One end of a pre-flight: from [`PreflightEnd::begin`] on it can be reached while
/// [`PreflightEnd::step`] is called, and tries to reach others. What comes before waits in its
/// sockets.
pub struct PreflightEnd {
    own: SocketAddr,
    addresses: PreflightAddresses,
    device: Option<String>,
    listener: Option<Socket>,
    datagrams: UdpSocket,
    waiting: VecDeque<Unauthenticated>,
    number: u32,
    attempts: Vec<Attempt>,
    /// `None`: it has not begun.
    times: Option<Times>,
}

/// Tried when a socket of a pre-flight is made.
const WHAT: &str = "opening the pre-flight of the data path";

impl PreflightEnd {
    /// Opens an end at a site, which accepts connections if it listens; with a device its packets
    /// leave by that.
    ///
    /// # Errors
    /// There is no such address, a daemon does not allow it, or no port is free.
    pub fn open(
        site: &Site,
        family: Option<Family>,
        device: Option<String>,
        listens: bool,
    ) -> Result<PreflightEnd> {
        // Each of its peers is a connection.
        wiregauge_host::allow_descriptors();
        let own = site::address(site, family)?;
        let named = device.as_deref();
        let listener = listens.then(|| opened(own, Type::STREAM, named)).transpose()?;
        let datagrams = UdpSocket::from(opened(own, Type::DGRAM, named)?);
        forbid_fragments(&datagrams, own).map_err(SetupError::system(WHAT))?;
        let interface = wiregauge_host::interface_with(own.ip());
        let addresses = PreflightAddresses {
            tcp: listener.as_ref().map(local_address).transpose()?,
            udp: datagrams.local_addr().map_err(SetupError::system(WHAT))?,
            mtu_bytes: interface.as_ref().and_then(|one| one.mtu_bytes),
            interface: interface.map(|one| one.name),
        };
        Ok(PreflightEnd {
            own,
            addresses,
            device,
            listener,
            datagrams,
            waiting: VecDeque::new(),
            number: 0,
            attempts: Vec::new(),
            times: None,
        })
    }

    /// Returns what others must know of it.
    pub fn addresses(&self) -> &PreflightAddresses {
        &self.addresses
    }

    /// Begins to reach others, as the end of this number. One that the daemon does not allow is
    /// reported as refused; it may connect by another address.
    ///
    /// # Errors
    /// There are too many.
    pub fn begin(&mut self, number: u32, peers: &[PreflightPeer]) -> Result<()> {
        ensure!(
            peers.len() <= MAX_PEERS && self.times.is_none(),
            SetupError::NotAllowed(format!(
                "a pre-flight to {} ends: at most {MAX_PEERS}, and once",
                peers.len()
            ))
        );
        self.number = number;
        self.attempts = peers.iter().map(|peer| self.attempt(peer)).collect();
        let now = Instant::now();
        self.times = Some(Times {
            deadline: now + PREFLIGHT_TIMEOUT,
            unneeded_deadline: now + UNNEEDED_TIMEOUT,
            next_send: now,
        });
        Ok(())
    }

    /// Begins to reach one.
    fn attempt(&self, peer: &PreflightPeer) -> Attempt {
        let PreflightPeer { number, addresses, cookie, needs } = peer;
        let tcp = addresses.tcp.filter(|_| needs.tcp);
        let tcp = tcp.map(|tcp| site::towards(tcp, self.own)).transpose();
        let udp = site::towards(addresses.udp, self.own);
        let refused = tcp.as_ref().err().or(udp.as_ref().err()).map(ToString::to_string);
        let tcp = tcp.unwrap_or_default().filter(|_| refused.is_none());
        Attempt {
            number: *number,
            cookie: *cookie,
            needs: *needs,
            refused,
            tcp,
            udp: udp.unwrap_or(addresses.udp),
            dialing: tcp.map_or(Dialing::Unneeded, |to| self.dial(to)),
            was_closed: false,
            due: tried_sizes(&self.addresses, addresses),
            acknowledged: BTreeSet::new(),
            expected: tried_sizes(addresses, &self.addresses),
            received: BTreeSet::new(),
            unsent: None,
        }
    }

    /// Returns true if all that is needed is decided, or the time for it is over.
    pub fn is_over(&self) -> bool {
        let now = Instant::now();
        self.times.as_ref().is_some_and(|times| {
            let are_awaited = now < times.unneeded_deadline;
            now >= times.deadline || self.attempts.iter().all(|one| one.is_decided(are_awaited))
        })
    }

    /// Returns how far each of the others was reached.
    pub fn report(&self) -> Vec<PeerReport> {
        self.attempts.iter().map(Attempt::report).collect()
    }

    /// Sends what is due, waits at most this long for what comes, and handles it.
    ///
    /// # Errors
    /// The kernel can wait for nothing more.
    pub fn step(&mut self, wait: Duration) -> io::Result<()> {
        self.send_due();
        self.wait_for_any(wait)?;
        if self.times.is_none() {
            return Ok(());
        }
        self.accept();
        self.read_waiting();
        for number in 0..self.attempts.len() {
            self.advance(number);
        }
        self.receive();
        Ok(())
    }

    /// Waits for anything that is handled now: before it begins that is nothing.
    fn wait_for_any(&self, wait: Duration) -> io::Result<()> {
        let mut polled = Vec::new();
        if self.times.is_some() {
            let listener = self.listener.iter().map(|one| PollFd::new(one, PollFlags::IN));
            polled.extend(listener);
            polled.push(PollFd::new(&self.datagrams, PollFlags::IN));
        }
        polled.extend(self.waiting.iter().map(|one| PollFd::new(&one.socket, PollFlags::IN)));
        for attempt in &self.attempts {
            match &attempt.dialing {
                Dialing::Connecting(socket) => polled.push(PollFd::new(socket, PollFlags::OUT)),
                Dialing::AwaitingCookie(socket, _) => {
                    polled.push(PollFd::new(socket, PollFlags::IN));
                }
                Dialing::Unneeded | Dialing::Closed(_) | Dialing::Done(_) => {}
            }
        }
        let limit = wait.min(POLL_TIMEOUT).as_nanos() as i64;
        match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: limit })) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a connection. What fails at once is decided.
    fn dial(&self, to: SocketAddr) -> Dialing {
        let from = SocketAddr::new(self.own.ip(), 0);
        let from = match (self.own, from) {
            (SocketAddr::V6(own), SocketAddr::V6(mut from)) => {
                from.set_scope_id(own.scope_id());
                from.into()
            }
            (_, from) => from,
        };
        let begun =
            bound(from, Type::STREAM, self.device.as_deref()).and_then(|socket| {
                match socket.connect(&to.into()) {
                    Err(error) if !is_pending(&error) => Err(error),
                    _ => Ok(socket),
                }
            });
        begun.map_or_else(|error| Dialing::Done(Err(failure(&error))), Dialing::Connecting)
    }

    /// Goes on with a connection; one that was closed is made again.
    fn advance(&mut self, number: usize) {
        let attempt = &mut self.attempts[number];
        let before = std::mem::replace(&mut attempt.dialing, Dialing::Unneeded);
        let own = Hello { number: self.number, cookie: attempt.cookie };
        let expected = Hello { number: attempt.number, cookie: attempt.cookie };
        let after = before.advance(&own.to_bytes(), &expected.to_bytes());
        attempt.was_closed |= matches!(after, Dialing::Closed(_));
        let next = match (&after, attempt.tcp) {
            (Dialing::Closed(at), Some(to)) if Instant::now() >= *at => self.dial(to),
            _ => after,
        };
        self.attempts[number].dialing = next;
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        for _ in 0..MAX_ACCEPTS_PER_STEP {
            let Ok((socket, from)) = listener.accept() else { return };
            let is_peer = from.as_socket().is_some_and(|from| site::is_peer(from.ip()));
            if !is_peer || socket.set_nonblocking(true).is_err() {
                continue;
            }
            if self.waiting.len() == MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back(Unauthenticated { socket, shown: Vec::with_capacity(HELLO) });
        }
    }

    /// Reads what connections have shown, and answers those of peers. Anybody else is dropped once
    /// all of the first bytes are there, and not before: it learns nothing of a single one.
    fn read_waiting(&mut self) {
        for mut one in std::mem::take(&mut self.waiting) {
            let is_open = read_up_to(&one.socket, &mut one.shown).is_ok();
            match one.shown.first_chunk() {
                Some(shown) => {
                    if let Some(answer) = self.answer(&Hello::read(shown)) {
                        // So few bytes fit the buffer of a new connection.
                        let _ = (&one.socket).write_all(&answer.to_bytes());
                    }
                }
                None if is_open => self.waiting.push_back(one),
                None => {}
            }
        }
    }

    /// Returns the answer to a peer that shows the cookie of the pair.
    fn answer(&self, shown: &Hello) -> Option<Hello> {
        let attempt = self.attempts.iter().find(|one| one.number == shown.number)?;
        is_same_secret(&shown.cookie, &attempt.cookie)
            .then_some(Hello { number: self.number, cookie: attempt.cookie })
    }

    /// Sends each datagram that was not acknowledged, where it is time for that.
    fn send_due(&mut self) {
        let now = Instant::now();
        let Some(times) = &mut self.times else { return };
        if now < times.next_send || now >= times.deadline {
            return;
        }
        times.next_send = now + RESEND_INTERVAL;
        for attempt in self.attempts.iter_mut().filter(|one| one.refused.is_none()) {
            for size in attempt.due.difference(&attempt.acknowledged) {
                let head = DatagramHead { kind: PROBE, number: self.number, size: *size };
                let payload = size.saturating_sub(headers(self.own)) as usize;
                let mut datagram = head.to_bytes(&attempt.cookie);
                datagram.resize(payload.max(HEAD), 0);
                match self.datagrams.send_to(&datagram, attempt.udp) {
                    Ok(_) => {}
                    // An answer of ICMP to an earlier one, or a full queue: it is sent again.
                    Err(error) => attempt.unsent = Some(error.to_string()),
                }
            }
        }
    }

    fn receive(&mut self) {
        let mut buffer = vec![0; MAX_PACKET as usize];
        for _ in 0..MAX_DATAGRAMS_PER_STEP {
            match self.datagrams.recv_from(&mut buffer) {
                Ok((length, from)) if site::is_peer(from.ip()) => {
                    self.handle_datagram(&buffer[..length], from);
                }
                Ok(_) => {}
                // What ICMP has told of an earlier one.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }

    /// Notes a datagram of a peer, and acknowledges it where it is not an acknowledgement itself.
    /// Rounds connect their sockets to the address of the peer, so from any other nothing is taken.
    fn handle_datagram(&mut self, datagram: &[u8], from: SocketAddr) {
        let Some((cookie, head)) = DatagramHead::read(datagram) else { return };
        let mut attempts = self.attempts.iter_mut();
        let sender = attempts.find(|one| {
            one.number == head.number
                && is_same_port(one.udp, from)
                && is_same_secret(cookie, &one.cookie)
        });
        let Some(attempt) = sender else { return };
        let DatagramHead { kind, size, .. } = head;
        // One that was cut on its way is none of that size.
        let is_whole = datagram.len() + headers(self.own) as usize == size as usize;
        match kind {
            PROBE if is_whole && attempt.expected.contains(&size) => {
                attempt.received.insert(size);
                let answer = DatagramHead { kind: ACK, number: self.number, size };
                // It is tried again until it is acknowledged.
                let _ = self.datagrams.send_to(&answer.to_bytes(&attempt.cookie), from);
            }
            ACK if attempt.due.contains(&size) => {
                attempt.acknowledged.insert(size);
            }
            _ => {}
        }
    }
}

impl Attempt {
    /// Returns true if nothing more is awaited; datagrams that nobody needs only if they are said
    /// to be.
    fn is_decided(&self, unneeded_are_awaited: bool) -> bool {
        let are_awaited = self.needs.udp || unneeded_are_awaited;
        let has_datagrams =
            !are_awaited || self.refused.is_some() || self.due.is_subset(&self.acknowledged);
        matches!(self.dialing, Dialing::Done(_) | Dialing::Unneeded) && has_datagrams
    }

    fn report(&self) -> PeerReport {
        PeerReport {
            number: self.number,
            refused: self.refused.clone(),
            tcp: match &self.dialing {
                Dialing::Unneeded => None,
                Dialing::Done(result) => Some(result.clone()),
                _ if self.was_closed => Some(Err(ConnectFailure::Closed)),
                Dialing::Closed(_) | Dialing::Connecting(_) | Dialing::AwaitingCookie(..) => {
                    Some(Err(ConnectFailure::Silent))
                }
            },
            acknowledged: self.acknowledged.clone(),
            received: self.received.clone(),
            unsent: self.unsent.clone(),
        }
    }
}

impl Dialing {
    /// Returns the state after what the socket has to say.
    fn advance(self, own: &[u8; HELLO], expected: &[u8; HELLO]) -> Dialing {
        match self {
            Dialing::Connecting(socket) => match is_connected(&socket) {
                Ok(false) => Dialing::Connecting(socket),
                Ok(true) => match (&socket).write_all(own) {
                    Ok(()) => Dialing::AwaitingCookie(socket, Vec::with_capacity(HELLO)),
                    Err(error) => Dialing::broken(&error),
                },
                Err(error) => Dialing::Done(Err(failure(&error))),
            },
            Dialing::AwaitingCookie(socket, mut shown) => {
                let read = read_up_to(&socket, &mut shown);
                // The other end has been shown the cookie: there is nothing to hide from it.
                match read {
                    _ if shown == expected => Dialing::Done(Ok(())),
                    _ if !expected.starts_with(&shown) => {
                        Dialing::Done(Err(ConnectFailure::Foreign))
                    }
                    Ok(()) => Dialing::AwaitingCookie(socket, shown),
                    Err(error) => Dialing::broken(&error),
                }
            }
            decided => decided,
        }
    }

    /// Returns the state of a connection that broke before the cookie came.
    fn broken(error: &io::Error) -> Dialing {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => Dialing::Closed(Instant::now() + RESEND_INTERVAL),
            _ => Dialing::Done(Err(failure(error))),
        }
    }
}

/// Reads what is there, up to the length of the first bytes.
///
/// # Errors
/// The connection is closed or broken.
fn read_up_to(socket: &Socket, shown: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; HELLO];
    let most = HELLO.saturating_sub(shown.len());
    let mut socket = socket;
    match socket.read(&mut bytes[..most]) {
        Ok(0) if most > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => {
            shown.extend_from_slice(&bytes[..read]);
            Ok(())
        }
        Err(error) if is_pending(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns true once a connection stands.
fn is_connected(socket: &Socket) -> io::Result<bool> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_pending(error: &io::Error) -> bool {
    let later = error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error());
    later || matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn failure(error: &io::Error) -> ConnectFailure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectFailure::Refused,
        io::ErrorKind::TimedOut => ConnectFailure::Silent,
        _ => ConnectFailure::Failed(error.to_string()),
    }
}

/// Returns a socket that others can reach at a port that is allowed here and free.
fn opened(own: SocketAddr, kind: Type, device: Option<&str>) -> Result<Socket> {
    site::bind(own, |at| opened_at(at, kind, device)).map_err(SetupError::system(WHAT))
}

/// Returns a socket that others can reach at an address. Two sockets may bind one port for
/// connections, but only one may listen: so it listens before that port is taken to be free.
fn opened_at(at: SocketAddr, kind: Type, device: Option<&str>) -> io::Result<Socket> {
    let socket = bound(at, kind, device)?;
    if kind == Type::STREAM {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}

/// Returns a socket that does not block, bound to an address and a device.
fn bound(at: SocketAddr, kind: Type, device: Option<&str>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), kind, None)?;
    socket.set_nonblocking(true)?;
    if kind == Type::STREAM && at.port() != 0 {
        socket.set_reuse_address(true)?;
    }
    site::bind_device(&socket, device)?;
    socket.bind(&at.into())?;
    Ok(socket)
}

/// Has datagrams of more than a link carries refused or lost, not cut into fragments; what the
/// kernel believes of the path does not count.
fn forbid_fragments(socket: &UdpSocket, own: SocketAddr) -> io::Result<()> {
    let done = match Family::of(own.ip()) {
        Family::Ipv4 => set_ip_mtu_discover(socket.as_fd(), Ipv4PathMtuDiscovery::PROBE),
        Family::Ipv6 => set_ipv6_mtu_discover(socket.as_fd(), Ipv6PathMtuDiscovery::PROBE),
    };
    Ok(done?)
}

fn local_address(socket: &Socket) -> Result<SocketAddr> {
    let address = socket.local_addr().map_err(SetupError::system(WHAT))?;
    address.as_socket().ok_or(SetupError::Address)
}

/// The first bytes of a datagram, but for the cookie.
struct DatagramHead {
    kind: u8,
    number: u32,
    size: u32,
}

impl DatagramHead {
    fn to_bytes(&self, cookie: &[u8; COOKIE]) -> Vec<u8> {
        let mut bytes = cookie.to_vec();
        bytes.push(self.kind);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// Reads that of a datagram, and the cookie that it shows.
    fn read(bytes: &[u8]) -> Option<(&[u8], DatagramHead)> {
        let (cookie, own) = bytes.split_at_checked(COOKIE)?;
        let (&kind, numbers) = own.split_first()?;
        let number = u32::from_le_bytes(numbers.get(..4)?.try_into().ok()?);
        let size = u32::from_le_bytes(numbers.get(4..8)?.try_into().ok()?);
        Some((cookie, DatagramHead { kind, number, size }))
    }
}

#[cfg(test)]
mod tests;
