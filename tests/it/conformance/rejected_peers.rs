//! Who has not been told the run's secret is not let in, and holds nobody up.

use super::ends::Bench;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use wiregauge::transport::{
    Blob, Endpoint, Events, Link, Posted, Role, Slot, Traffic, TransportKind, Wait,
};

/// Far above what a message takes.
const PATIENCE: Duration = Duration::from_secs(60);
const ECHO: Traffic = Traffic::Echo { every: 1 };

fn bench(kind: TransportKind) -> Bench {
    Bench { kind, wait: Wait::Busy }
}

/// Returns the address of a socket; a listening one's stands in front of the number of an end.
fn text(blob: &Blob) -> &str {
    std::str::from_utf8(&blob.0).unwrap().split('#').next().unwrap()
}

fn abstract_name(blob: &Blob) -> SocketAddr {
    SocketAddr::from_abstract_name(text(blob)).unwrap()
}

/// Opens a server, lets foreign peers at it, and then the real client; message 1 must come through.
fn only_the_real_one_is_let_in<S: Write + Send>(
    kind: TransportKind,
    dial: impl Fn(&Blob) -> S + Sync,
) {
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let opening = kind.open(&bench(kind).setup(Role::Server, ECHO, 8, 1)).unwrap();
            tell.send(opening.address.clone()).unwrap();
            let mut endpoint = opening.connect(&Blob::default()).unwrap().endpoint;
            first_message(&mut endpoint)
        });
        let address = told.recv_timeout(PATIENCE).unwrap();
        let mut wrong = dial(&address);
        let _ = wrong.write_all(&[0x55; 36]);
        let mut nearly = dial(&address);
        let mut cookie = [0xc7; 36];
        cookie[31] ^= 1;
        cookie[32..].fill(0);
        let _ = nearly.write_all(&cookie);
        // The cookie, and an end that is not there.
        let mut beyond = dial(&address);
        let _ = beyond.write_all(&[0xc7; 36]);
        let mut short = dial(&address);
        let _ = short.write_all(b"GET / HTTP/1.1\r\n");
        drop(short);
        let silent = dial(&address);

        let opening = kind.open(&bench(kind).setup(Role::Client, ECHO, 8, 1)).unwrap();
        let mut client = opening.connect(&address).unwrap().endpoint;
        send(&mut client, *b"the real");
        assert_eq!(server.join().unwrap(), *b"the real");
        drop((wrong, nearly, beyond, silent));
    });
}

fn send<E: Endpoint>(endpoint: &mut E, message: [u8; 8]) {
    let slot = Slot::sending(0);
    endpoint.payload(slot)[..8].copy_from_slice(&message);
    assert_eq!(endpoint.post(slot, 8), Posted::Accepted);
    endpoint.flush();
}

/// Polls until something has come.
fn first_message<E: Endpoint>(endpoint: &mut E) -> [u8; 8] {
    let mut events = Events::default();
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        endpoint.poll(&mut events);
        assert_eq!(events.link, Link::Up);
        if let Some(arrival) = events.arrivals().first() {
            assert_eq!(arrival.length, 8);
            return endpoint.payload(arrival.slot)[..8].try_into().unwrap();
        }
        std::thread::yield_now();
    }
    panic!("no message came within {PATIENCE:?}");
}

#[test]
fn a_foreign_peer_is_not_let_in_on_tcp() {
    only_the_real_one_is_let_in(TransportKind::Tcp, |address| {
        TcpStream::connect(text(address)).unwrap()
    });
}

#[test]
fn a_foreign_peer_is_not_let_in_on_unix() {
    only_the_real_one_is_let_in(TransportKind::Unix, |address| {
        UnixStream::connect_addr(&abstract_name(address)).unwrap()
    });
}

/// A peer that feeds the server a byte now and then waits while the real one is let in.
#[test]
fn a_foreign_peer_that_dribbles_holds_up_no_longer_than_a_silent_one() {
    let (tell, told) = channel();
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let opening =
                TransportKind::Tcp.open(&bench(TransportKind::Tcp).setup(Role::Server, ECHO, 8, 1));
            let opening = opening.unwrap();
            tell.send(opening.address.clone()).unwrap();
            let mut endpoint = opening.connect(&Blob::default()).unwrap().endpoint;
            first_message(&mut endpoint)
        });
        let address: Blob = told.recv_timeout(PATIENCE).unwrap();
        let mut dribbler = TcpStream::connect(text(&address)).unwrap();
        let fed = scope.spawn(move || {
            let mut fed = 0;
            while !done.load(Ordering::Relaxed) && fed < 31 {
                if dribbler.write_all(&[0xc7]).is_err() {
                    break;
                }
                fed += 1;
                std::thread::park_timeout(Duration::from_millis(200));
            }
            fed
        });
        let setup = bench(TransportKind::Tcp).setup(Role::Client, ECHO, 8, 1);
        let mut client =
            TransportKind::Tcp.open(&setup).unwrap().connect(&address).unwrap().endpoint;
        send(&mut client, *b"the real");
        assert_eq!(server.join().unwrap(), *b"the real");
        done.store(true, Ordering::Relaxed);
        assert!(fed.join().unwrap() < 31, "it was heard to its end");
    });
}

fn foreign_datagrams_are_not_seen(kind: TransportKind, throw: impl Fn(&Blob) -> bool) {
    let open = |role| kind.open(&bench(kind).setup(role, ECHO, 8, 1)).unwrap();
    let (client, server) = (open(Role::Client), open(Role::Server));
    let (to_client, to_server) = (client.address.clone(), server.address.clone());
    assert!(throw(&to_server), "before it is connected anybody may send");
    let mut server = server.connect(&to_client).unwrap().endpoint;
    throw(&to_server);
    let mut client = client.connect(&to_server).unwrap().endpoint;
    throw(&to_server);
    send(&mut client, *b"the real");
    assert_eq!(first_message(&mut server), *b"the real");
}

#[test]
fn a_foreign_datagram_is_not_seen_on_udp() {
    foreign_datagrams_are_not_seen(TransportKind::Udp, |address| {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.send_to(b"peer", text(address)).is_ok()
    });
}

#[test]
fn a_foreign_datagram_is_not_seen_on_unixgram() {
    foreign_datagrams_are_not_seen(TransportKind::Unixgram, |address| {
        let peer = UnixDatagram::unbound().unwrap();
        peer.connect_addr(&abstract_name(address)).is_ok() && peer.send(b"peer").is_ok()
    });
}
