//! The pre-flight of the data path: before the first round, the ends of two hosts try to reach each
//! other by TCP, and by datagrams of the sizes that their interfaces carry.
//!
//! A datagram that arrives is acknowledged by a small one. What arrives is counted at its receiver,
//! too: so a path that loses one direction only shows which.

use super::site;
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
pub const LIMIT: Duration = Duration::from_millis(2500);
/// Interval at which datagrams that were not acknowledged are sent again.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for anything to come, of all ends that one thread drives.
pub const STEP: Duration = Duration::from_millis(20);
/// Most ends that one tries to reach: as many as a rank may be connected to.
pub const MAX_PEERS: usize = 1024;
/// Most connections of others that have not shown the cookie: of more the oldest is dropped.
const MAX_WAITING: usize = 256;
/// Most datagrams that are taken in one step: those that are due go out meanwhile.
const BATCH: usize = 256;
/// The queue of connections to be accepted.
const BACKLOG: i32 = 1024;

/// Sizes of IP packets that are tried in addition to those of the interfaces: Ethernet's, and the
/// least that IPv6 demands of a link.
const SIZES: [u32; 2] = [1500, 1280];
/// Most sizes that are tried: those two, the smallest, and the MTU of each interface.
pub const MAX_SIZES: usize = SIZES.len() + 3;
/// The largest IP packet.
pub const MAX_PACKET: u32 = 65_535;

const COOKIE: usize = 32;
const TRIED: u8 = 1;
const ARRIVED: u8 = 2;
/// Bytes of a datagram without its padding: cookie, kind, number of the sender, size.
const HEAD: usize = COOKIE + 1 + 4 + 4;

/// The addresses of an end, for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightAddresses {
    /// The address that accepts connections.
    pub tcp: SocketAddr,
    /// The address that receives datagrams.
    pub udp: SocketAddr,
    /// The network interface, where that is known.
    pub interface: Option<String>,
    /// The MTU of that interface in bytes.
    pub mtu_bytes: Option<u32>,
}

/// An end that another one is to reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightPeer {
    /// The number of the end in the pre-flight.
    pub number: u32,
    /// The addresses of the end.
    pub addresses: PreflightAddresses,
}

/// The results of one end towards another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// The number of the other one.
    pub number: u32,
    /// The reason for which no connection was made; `None`: one was.
    pub tcp: Option<ConnectFailure>,
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
            ConnectFailure::Silent | ConnectFailure::Refused | ConnectFailure::Foreign => None,
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

/// Returns the sizes of IP packets that an end tries to send, in bytes: the smallest that holds
/// what a datagram begins with, and those up to what its interface carries.
fn sizes(own: SocketAddr, mtu: Option<u32>, other: Option<u32>) -> BTreeSet<u32> {
    let mtu = mtu.unwrap_or(SIZES[0]).min(MAX_PACKET);
    let both = other.map(|other| other.min(mtu));
    let tried = SIZES.into_iter().filter(|size| *size < mtu).chain([mtu]).chain(both);
    let smallest = headers(own) + HEAD as u32;
    tried.filter(|size| *size > smallest).chain([smallest]).collect()
}

/// An outgoing connection.
enum Dialing {
    /// The kernel connects.
    Connecting(Socket),
    /// It stands, and the cookie is awaited.
    Standing(Socket, Vec<u8>),
    /// It is decided.
    Over(Option<ConnectFailure>),
}

/// Another end, and how far it was reached.
struct Attempt {
    number: u32,
    udp: SocketAddr,
    dialing: Dialing,
    due: BTreeSet<u32>,
    acknowledged: BTreeSet<u32>,
    unsent: Option<String>,
}

/// A connection of somebody who has not shown the whole cookie.
struct Caller {
    socket: Socket,
    shown: Vec<u8>,
}

/// One end of a pre-flight: it can be reached while [`PreflightEnd::step`] is called, and tries to
/// reach others from [`PreflightEnd::begin`] on.
pub struct PreflightEnd {
    cookie: [u8; COOKIE],
    own: SocketAddr,
    addresses: PreflightAddresses,
    device: Option<String>,
    listener: Socket,
    datagrams: UdpSocket,
    callers: VecDeque<Caller>,
    number: u32,
    attempts: Vec<Attempt>,
    /// Sizes of packets that came, each with the number of its sender.
    received: BTreeSet<(u32, u32)>,
    /// When attempts end, and when datagrams are sent again.
    times: Option<(Instant, Instant)>,
}

/// Tried when a socket of a pre-flight is made.
const WHAT: &str = "opening the pre-flight of the data path";

impl PreflightEnd {
    /// Opens an end at a site; with a device its packets leave by that.
    ///
    /// # Errors
    /// There is no such address, a daemon does not allow it, or no port is free.
    pub fn open(
        site: &Site,
        family: Option<Family>,
        device: Option<String>,
        cookie: [u8; COOKIE],
    ) -> Result<PreflightEnd> {
        let own = site::address(site, family)?;
        let listener = bound_within_limits(own, Type::STREAM, device.as_deref())?;
        listener.listen(BACKLOG).map_err(SetupError::system(WHAT))?;
        let datagrams = bound_within_limits(own, Type::DGRAM, device.as_deref())?;
        let datagrams = UdpSocket::from(datagrams);
        forbid_fragments(&datagrams, own).map_err(SetupError::system(WHAT))?;
        let interface = wiregauge_host::interface_with(own.ip());
        let addresses = PreflightAddresses {
            tcp: local(&listener)?,
            udp: datagrams.local_addr().map_err(SetupError::system(WHAT))?,
            mtu_bytes: interface.as_ref().and_then(|one| one.mtu_bytes),
            interface: interface.map(|one| one.name),
        };
        let (callers, attempts, received) = Default::default();
        Ok(PreflightEnd {
            cookie,
            own,
            addresses,
            device,
            listener,
            datagrams,
            callers,
            number: 0,
            attempts,
            received,
            times: None,
        })
    }

    /// Returns what others must know of it.
    pub fn addresses(&self) -> &PreflightAddresses {
        &self.addresses
    }

    /// Begins to reach others, as the end of this number.
    ///
    /// # Errors
    /// There are too many, or the daemon does not allow one of them.
    pub fn begin(&mut self, number: u32, peers: &[PreflightPeer]) -> Result<()> {
        ensure!(
            peers.len() <= MAX_PEERS && self.times.is_none(),
            SetupError::NotAllowed(format!(
                "a pre-flight to {} ends: at most {MAX_PEERS}, and once",
                peers.len()
            ))
        );
        wiregauge_host::allow_descriptors();
        self.number = number;
        for peer in peers {
            let tcp = site::towards(peer.addresses.tcp, self.own)?;
            let udp = site::towards(peer.addresses.udp, self.own)?;
            self.attempts.push(Attempt {
                number: peer.number,
                udp,
                dialing: self.dial(tcp),
                due: sizes(self.own, self.addresses.mtu_bytes, peer.addresses.mtu_bytes),
                acknowledged: BTreeSet::new(),
                unsent: None,
            });
        }
        let now = Instant::now();
        self.times = Some((now + LIMIT, now));
        Ok(())
    }

    /// Returns true if all attempts are decided, or their time is over.
    pub fn is_over(&self) -> bool {
        let is_late = self.times.is_some_and(|(end, _)| Instant::now() >= end);
        is_late || (self.times.is_some() && self.attempts.iter().all(Attempt::is_decided))
    }

    /// Returns how far each of the others was reached.
    pub fn report(&self) -> Vec<PeerReport> {
        let attempts = self.attempts.iter();
        attempts
            .map(|attempt| PeerReport {
                number: attempt.number,
                tcp: match &attempt.dialing {
                    Dialing::Over(failure) => failure.clone(),
                    Dialing::Connecting(_) | Dialing::Standing(..) => Some(ConnectFailure::Silent),
                },
                acknowledged: attempt.acknowledged.clone(),
                received: self.received_from(attempt.number),
                unsent: attempt.unsent.clone(),
            })
            .collect()
    }

    fn received_from(&self, number: u32) -> BTreeSet<u32> {
        self.received.range((number, 0)..=(number, u32::MAX)).map(|(_, size)| *size).collect()
    }

    /// Sends what is due, waits at most this long for what comes, and handles it.
    ///
    /// # Errors
    /// The kernel can wait for nothing more.
    pub fn step(&mut self, wait: Duration) -> io::Result<()> {
        self.send_due();
        self.wait_for_any(wait)?;
        self.accept();
        self.callers = std::mem::take(&mut self.callers)
            .into_iter()
            .filter_map(|caller| caller.answered(&self.cookie))
            .collect();
        for attempt in &mut self.attempts {
            let before = std::mem::replace(&mut attempt.dialing, Dialing::Over(None));
            attempt.dialing = before.gone_on(&self.cookie);
        }
        self.receive();
        Ok(())
    }

    fn wait_for_any(&self, wait: Duration) -> io::Result<()> {
        let mut polled = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.datagrams, PollFlags::IN),
        ];
        polled.extend(self.callers.iter().map(|one| PollFd::new(&one.socket, PollFlags::IN)));
        for attempt in &self.attempts {
            match &attempt.dialing {
                Dialing::Connecting(socket) => polled.push(PollFd::new(socket, PollFlags::OUT)),
                Dialing::Standing(socket, _) => polled.push(PollFd::new(socket, PollFlags::IN)),
                Dialing::Over(_) => {}
            }
        }
        let limit = Timespec { tv_sec: 0, tv_nsec: wait.min(STEP).as_nanos() as i64 };
        match poll(&mut polled, Some(&limit)) {
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
        begun.map_or_else(|error| Dialing::Over(Some(failure(&error))), Dialing::Connecting)
    }

    fn accept(&mut self) {
        for _ in 0..MAX_WAITING {
            let Ok((socket, from)) = self.listener.accept() else { return };
            let is_peer = from.as_socket().is_some_and(|from| site::is_peer(from.ip()));
            if !is_peer || socket.set_nonblocking(true).is_err() {
                continue;
            }
            if self.callers.len() == MAX_WAITING {
                self.callers.pop_front();
            }
            self.callers.push_back(Caller { socket, shown: Vec::with_capacity(COOKIE) });
        }
    }

    /// Sends each datagram that was not acknowledged, where it is time for that.
    fn send_due(&mut self) {
        let now = Instant::now();
        let Some((end, again)) = &mut self.times else { return };
        if now < *again || now >= *end {
            return;
        }
        *again = now + AGAIN;
        for attempt in &mut self.attempts {
            for size in attempt.due.difference(&attempt.acknowledged) {
                let datagram = datagram(&self.cookie, TRIED, self.number, *size, self.own);
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
        for _ in 0..BATCH {
            match self.datagrams.recv_from(&mut buffer) {
                Ok((length, from)) if site::is_peer(from.ip()) => {
                    let head = &buffer[..length.min(HEAD)];
                    self.handle_datagram(head, length, from);
                }
                Ok(_) => {}
                // What ICMP has told of an earlier one.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }

    /// Notes a datagram, and acknowledges it where it is not an acknowledgement itself.
    fn handle_datagram(&mut self, head: &[u8], length: usize, from: SocketAddr) {
        let Some(DatagramHead { kind, number, size }) = DatagramHead::read(&self.cookie, head)
        else {
            return;
        };
        match kind {
            // One that was cut on its way is none of that size.
            TRIED if length + headers(self.own) as usize == size as usize => {
                if self.received.len() < MAX_PEERS * MAX_SIZES {
                    self.received.insert((number, size));
                }
                let mut answer = datagram(&self.cookie, ARRIVED, self.number, size, self.own);
                answer.truncate(HEAD);
                // It is tried again until it is acknowledged.
                let _ = self.datagrams.send_to(&answer, from);
            }
            ARRIVED => {
                let attempts = self.attempts.iter_mut();
                for attempt in attempts.filter(|one| one.udp == from && one.due.contains(&size)) {
                    attempt.acknowledged.insert(size);
                }
            }
            _ => {}
        }
    }
}

impl Attempt {
    fn is_decided(&self) -> bool {
        matches!(self.dialing, Dialing::Over(_)) && self.due.is_subset(&self.acknowledged)
    }
}

impl Caller {
    /// Reads what it shows, and shows the cookie back; `None` once it is served or is nobody.
    fn answered(mut self, cookie: &[u8; COOKIE]) -> Option<Caller> {
        read_up_to(&self.socket, &mut self.shown).ok()?;
        if self.shown.len() < COOKIE && cookie.starts_with(&self.shown) {
            return Some(self);
        }
        if self.shown == cookie {
            // So few bytes fit the buffer of a new connection.
            let _ = (&self.socket).write_all(cookie);
        }
        None
    }
}

impl Dialing {
    /// Returns the state after what the socket has to say.
    fn gone_on(self, cookie: &[u8; COOKIE]) -> Dialing {
        match self {
            Dialing::Connecting(socket) => match is_connected(&socket) {
                Ok(false) => Dialing::Connecting(socket),
                Ok(true) => match (&socket).write_all(cookie) {
                    Ok(()) => Dialing::Standing(socket, Vec::with_capacity(COOKIE)),
                    Err(error) => Dialing::Over(Some(failure(&error))),
                },
                Err(error) => Dialing::Over(Some(failure(&error))),
            },
            Dialing::Standing(socket, mut shown) => match read_up_to(&socket, &mut shown) {
                _ if shown == cookie => Dialing::Over(None),
                Ok(()) if cookie.starts_with(&shown) => Dialing::Standing(socket, shown),
                Ok(()) => Dialing::Over(Some(ConnectFailure::Foreign)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Dialing::Over(Some(ConnectFailure::Foreign))
                }
                Err(error) => Dialing::Over(Some(failure(&error))),
            },
            over => over,
        }
    }
}

/// Reads what is there, up to the length of a cookie.
///
/// # Errors
/// The connection is closed or broken.
fn read_up_to(socket: &Socket, shown: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; COOKIE];
    let most = COOKIE.saturating_sub(shown.len());
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

/// Returns the same at a port that is allowed here and free.
fn bound_within_limits(own: SocketAddr, kind: Type, device: Option<&str>) -> Result<Socket> {
    site::bind(own, |at| bound(at, kind, device)).map_err(SetupError::system(WHAT))
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

fn local(socket: &Socket) -> Result<SocketAddr> {
    let address = socket.local_addr().map_err(SetupError::system(WHAT))?;
    address.as_socket().ok_or(SetupError::Address)
}

/// Returns a datagram whose IP packet has this size.
fn datagram(cookie: &[u8; COOKIE], kind: u8, number: u32, size: u32, own: SocketAddr) -> Vec<u8> {
    let payload = size.saturating_sub(headers(own)) as usize;
    let mut bytes = Vec::with_capacity(payload.max(HEAD));
    bytes.extend_from_slice(cookie);
    bytes.push(kind);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.resize(payload.max(HEAD), 0);
    bytes
}

/// The first bytes of a datagram.
struct DatagramHead {
    kind: u8,
    number: u32,
    size: u32,
}

impl DatagramHead {
    /// Reads that of a datagram of this run.
    fn read(cookie: &[u8; COOKIE], bytes: &[u8]) -> Option<DatagramHead> {
        let own = bytes.strip_prefix(cookie)?;
        let (&kind, numbers) = own.split_first()?;
        let number = u32::from_le_bytes(numbers.get(..4)?.try_into().ok()?);
        let size = u32::from_le_bytes(numbers.get(4..8)?.try_into().ok()?);
        Some(DatagramHead { kind, number, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_test_support::bounded::Bound;

    fn end() -> PreflightEnd {
        PreflightEnd::open(&Site::Loopback, None, None, [7; 32]).unwrap()
    }

    fn run(ends: &mut [&mut PreflightEnd]) {
        while !ends.iter().filter(|end| end.times.is_some()).all(|end| end.is_over()) {
            ends.iter_mut().for_each(|end| end.step(STEP).unwrap());
        }
    }

    fn peer(number: u32, end: &PreflightEnd) -> PreflightPeer {
        PreflightPeer { number, addresses: end.addresses().clone() }
    }

    #[test]
    fn two_ends_that_reach_each_other_say_so_for_each_size() {
        let _bound = Bound::new();
        let mut one = end();
        let mut other = end();
        let of_one = peer(4, &one);
        let of_other = peer(9, &other);
        one.begin(4, &[of_other]).unwrap();
        other.begin(9, &[of_one]).unwrap();
        run(&mut [&mut one, &mut other]);
        let mtu = one.addresses().mtu_bytes.unwrap().min(MAX_PACKET);
        let sizes = BTreeSet::from([28 + HEAD as u32, 1280, 1500, mtu]);
        for (end, number) in [(&one, 9), (&other, 4)] {
            let report = &end.report()[0];
            assert_eq!((report.number, &report.tcp, &report.unsent), (number, &None, &None));
            assert_eq!((&report.acknowledged, &report.received), (&sizes, &sizes));
        }
    }

    #[test]
    fn what_is_refused_foreign_or_silent_is_told_apart() {
        let _bound = Bound::new();
        let closed = peer(1, &end());
        // It accepts, and shows what nobody has asked for.
        let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = foreign.local_addr().unwrap();
        let stranger = std::thread::spawn(move || {
            let (mut stream, _) = foreign.accept().unwrap();
            stream.write_all(b"SSH-2.0").unwrap();
        });
        let addresses = PreflightAddresses { tcp: at, ..closed.addresses.clone() };
        let mut one = end();
        one.begin(0, &[closed, PreflightPeer { number: 2, addresses }]).unwrap();
        run(&mut [&mut one]);
        stranger.join().unwrap();
        let report = one.report();
        assert_eq!(report[0].tcp, Some(ConnectFailure::Refused));
        assert_eq!(report[1].tcp, Some(ConnectFailure::Foreign));
        assert!(report.iter().all(|one| one.acknowledged.is_empty() && one.received.is_empty()));
    }

    #[test]
    fn strangers_at_the_ports_change_nothing() {
        let _bound = Bound::new();
        let mut one = end();
        let mut other = end();
        let silent: Vec<_> = (0..MAX_WAITING + 10)
            .map(|_| std::net::TcpStream::connect(other.addresses().tcp))
            .collect();
        let noise = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let wrong = datagram(&[8; 32], TRIED, 0, 500, one.own);
        let cut = &datagram(&[7; 32], TRIED, 0, 500, one.own)[..HEAD];
        for bytes in [&b""[..], b"x", &wrong, cut] {
            noise.send_to(bytes, other.addresses().udp).unwrap();
        }
        let of_other = peer(1, &other);
        one.begin(0, &[of_other]).unwrap();
        run(&mut [&mut one, &mut other]);
        assert_eq!(one.report()[0].tcp, None);
        assert!(!other.received.contains(&(0, 500)));
        drop(silent);
    }

    #[test]
    fn sizes_go_up_to_what_the_interface_carries() {
        let v4: SocketAddr = "10.0.0.1:0".parse().unwrap();
        let v6: SocketAddr = "[fd00::1]:0".parse().unwrap();
        for (own, mtu, other, tried) in [
            (v4, Some(9000), Some(1500), &[69, 1280, 1500, 9000][..]),
            (v4, Some(9000), Some(4000), &[69, 1280, 1500, 4000, 9000]),
            (v6, Some(1280), Some(9000), &[89, 1280]),
            (v4, None, None, &[69, 1280, 1500]),
            (v4, Some(65_536), Some(65_536), &[69, 1280, 1500, 65_535]),
            (v4, Some(68), None, &[69]),
        ] {
            assert_eq!(Vec::from_iter(sizes(own, mtu, other)), tried, "{mtu:?} {other:?}");
        }
    }
}
