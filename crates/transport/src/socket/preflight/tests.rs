//! Ends that reach each other, those that do not, and strangers at their ports.

use super::*;
use std::net::{TcpListener, TcpStream};
use wiregauge_test_support::bounded::{Bound, LIMIT};

const ALL: PathNeeds = PathNeeds { tcp: true, udp: true };

fn end() -> PreflightEnd {
    PreflightEnd::open(&Site::Loopback, None, None, true).unwrap()
}

/// Has ends go on until all that have begun are over.
fn run(ends: &mut [&mut PreflightEnd]) {
    while !ends.iter().filter(|end| end.times.is_some()).all(|end| end.is_over()) {
        ends.iter_mut().for_each(|end| end.step(POLL_TIMEOUT).unwrap());
    }
}

fn peer(number: u32, end: &PreflightEnd) -> PreflightPeer {
    PreflightPeer { number, addresses: end.addresses().clone(), cookie: [7; COOKIE], needs: ALL }
}

/// A peer at which somebody else listens.
fn peer_at(number: u32, listener: &TcpListener) -> PreflightPeer {
    let closed = peer(number, &end());
    let tcp = Some(listener.local_addr().unwrap());
    PreflightPeer { addresses: PreflightAddresses { tcp, ..closed.addresses }, ..closed }
}

fn hello(number: u32, cookie: [u8; COOKIE]) -> [u8; HELLO] {
    Hello { number, cookie }.to_bytes()
}

/// Returns a datagram of an IP packet of this size.
fn probe(cookie: [u8; COOKIE], number: u32, size: u32, packet: u32) -> Vec<u8> {
    let mut bytes = DatagramHead { kind: PROBE, number, size }.to_bytes(&cookie);
    bytes.resize(packet as usize - 28, 0);
    bytes
}

/// Returns the acknowledgement of the first peer.
fn ack(cookie: [u8; COOKIE], size: u32) -> Vec<u8> {
    DatagramHead { kind: ACK, number: 1, size }.to_bytes(&cookie)
}

fn parse_address(text: &str) -> SocketAddr {
    text.parse().unwrap()
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
        assert_eq!((report.number, &report.tcp, &report.unsent), (number, &Some(Ok(())), &None));
        assert_eq!((&report.acknowledged, &report.received), (&sizes, &sizes));
    }
}

#[test]
fn what_is_refused_foreign_or_closed_is_told_apart() {
    let _bound = Bound::new();
    let refused = peer(1, &end());
    let [foreign, closing] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let peers = [refused, peer_at(2, &foreign), peer_at(3, &closing)];
    // One shows what nobody has asked for, and the other nothing at all.
    let stranger = std::thread::spawn(move || {
        let (mut stream, _) = foreign.accept().unwrap();
        stream.write_all(b"SSH-2.0").unwrap();
    });
    closing.set_nonblocking(true).unwrap();
    let mut one = end();
    one.begin(0, &peers).unwrap();
    while !one.is_over() {
        drop(closing.accept());
        one.step(POLL_TIMEOUT).unwrap();
    }
    stranger.join().unwrap();
    let report = one.report();
    let found = report.iter().map(|one| one.tcp.clone().unwrap().unwrap_err());
    let wanted = [ConnectFailure::Refused, ConnectFailure::Foreign, ConnectFailure::Closed];
    assert_eq!(Vec::from_iter(found), wanted);
    assert!(report.iter().all(|one| one.acknowledged.is_empty() && one.received.is_empty()));
}

#[test]
fn a_connection_that_is_closed_before_the_cookie_came_is_made_again() {
    let _bound = Bound::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut one = end();
    let of_other = peer_at(1, &listener);
    let other = std::thread::spawn(move || {
        // As an end does whose queue is full of strangers.
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        let mut shown = [0; HELLO];
        stream.read_exact(&mut shown).unwrap();
        stream.write_all(&hello(1, [7; COOKIE])).unwrap();
        shown
    });
    one.begin(0, &[of_other]).unwrap();
    run(&mut [&mut one]);
    assert_eq!(one.report()[0].tcp, Some(Ok(())));
    assert_eq!(other.join().unwrap(), hello(0, [7; COOKIE]));
}

#[test]
fn a_stranger_learns_nothing_before_all_of_its_cookie_is_there() {
    let _bound = Bound::new();
    let mut one = end();
    one.begin(0, &[peer(1, &end())]).unwrap();
    let right = hello(1, [7; COOKIE]);
    // Wrong in the first byte of the cookie, in the last, and in the number.
    let wrong = [4, HELLO - 1, 0].map(|at| {
        let mut shown = right;
        shown[at] ^= 1;
        shown
    });
    let port = one.addresses().tcp.unwrap();
    let mut all = [right, wrong[0], wrong[1], wrong[2]]
        .map(|shown| (TcpStream::connect(port).unwrap(), shown));
    for length in [1, 5, HELLO - 1] {
        for (stream, shown) in &mut all {
            let from = if length == 1 { 0 } else { [1, 5][usize::from(length > 5)] };
            stream.write_all(&shown[from..length]).unwrap();
        }
        (0..5).for_each(|_| one.step(POLL_TIMEOUT).unwrap());
        assert_eq!(one.waiting.len(), all.len(), "after {length} bytes");
        assert!(one.waiting.iter().all(|one| one.shown.len() == length));
    }
    for (stream, shown) in &mut all {
        stream.write_all(&shown[HELLO - 1..]).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
    }
    while !one.waiting.is_empty() {
        one.step(POLL_TIMEOUT).unwrap();
    }
    let answers = all.map(|(mut stream, _)| {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        said
    });
    assert_eq!(answers, [hello(0, [7; COOKIE]).to_vec(), vec![], vec![], vec![]]);
}

#[test]
fn strangers_at_the_ports_change_nothing() {
    let _bound = Bound::new();
    let mut one = end();
    let mut other = end();
    let port = other.addresses().tcp.unwrap();
    let silent: Vec<_> = (0..MAX_WAITING + 10).map(|_| TcpStream::connect(port)).collect();
    let noise = UdpSocket::bind("127.0.0.1:0").unwrap();
    for bytes in [&b""[..], b"x", &probe([8; COOKIE], 0, 500, 500)] {
        noise.send_to(bytes, other.addresses().udp).unwrap();
    }
    let of_other = peer(1, &other);
    let of_one = peer(0, &one);
    one.begin(0, &[of_other]).unwrap();
    other.begin(1, &[of_one]).unwrap();
    run(&mut [&mut one, &mut other]);
    assert_eq!(one.report()[0].tcp, Some(Ok(())));
    assert_eq!(one.report()[0].received, other.report()[0].acknowledged);
    drop(silent);
}

#[test]
fn only_sizes_that_the_peer_tries_are_noted_and_only_from_its_own_address() {
    let mut one = end();
    let [known, forged] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut of_other = peer(1, &end());
    of_other.addresses.udp = known.local_addr().unwrap();
    of_other.addresses.mtu_bytes = Some(1500);
    one.begin(0, &[of_other]).unwrap();
    let from = known.local_addr().unwrap();
    let ours = [7; COOKIE];
    // A size that nobody tries, another number, another pair's cookie, cut, of another address.
    one.handle_datagram(&probe(ours, 1, 777, 777), from);
    one.handle_datagram(&probe(ours, 2, 1280, 1280), from);
    one.handle_datagram(&probe([8; COOKIE], 1, 1280, 1280), from);
    one.handle_datagram(&probe(ours, 1, 1500, 1280), from);
    one.handle_datagram(&probe(ours, 1, 1280, 1280), forged.local_addr().unwrap());
    one.handle_datagram(&ack(ours, 777), from);
    let PeerReport { received, acknowledged, .. } = &one.report()[0];
    assert!(received.is_empty() && acknowledged.is_empty(), "{received:?} {acknowledged:?}");
    one.handle_datagram(&probe(ours, 1, 1280, 1280), from);
    one.handle_datagram(&ack(ours, 1500), from);
    let report = &one.report()[0];
    assert_eq!((&report.received, &report.acknowledged), (&[1280].into(), &[1500].into()));
}

#[test]
fn the_scope_of_an_address_does_not_matter() {
    assert!(is_same_port(parse_address("[fe80::1%3]:80"), parse_address("[fe80::1]:80")));
    assert!(!is_same_port(parse_address("[fe80::1]:80"), parse_address("[fe80::1]:81")));
    assert!(!is_same_port(parse_address("[fe80::1]:80"), parse_address("[fe80::2]:80")));
}

#[test]
fn an_end_waits_for_what_is_needed_and_for_the_rest_only_a_while() {
    let _bound = Bound::new();
    let mut one = end();
    let mut other = end();
    // Nothing reads its datagrams.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut of_other = peer(1, &other);
    of_other.addresses.udp = silent.local_addr().unwrap();
    of_other.needs.udp = false;
    let of_one = PreflightPeer { needs: PathNeeds::default(), ..peer(0, &one) };
    one.begin(0, &[of_other]).unwrap();
    other.begin(1, &[of_one]).unwrap();
    assert!(!one.attempts[0].is_decided(false), "the connection is needed");
    run(&mut [&mut one, &mut other]);
    assert_eq!((one.report()[0].tcp.clone(), &other.report()[0].tcp), (Some(Ok(())), &None));
    let attempt = &mut one.attempts[0];
    assert!(attempt.is_decided(false) && !attempt.is_decided(true));
    attempt.needs.udp = true;
    assert!(!attempt.is_decided(false), "datagrams are needed");
}

#[test]
fn an_end_that_nobody_is_to_connect_to_does_not_listen() {
    let quiet = PreflightEnd::open(&Site::Loopback, None, None, false).unwrap();
    assert_eq!((quiet.addresses().tcp, quiet.listener.is_none()), (None, true));
}

#[test]
fn a_port_on_which_another_listens_is_not_free() {
    let first = opened_at("127.0.0.1:0".parse().unwrap(), Type::STREAM, None).unwrap();
    let taken = local_address(&first).unwrap();
    let refused = opened_at(taken, Type::STREAM, None).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn sizes_go_up_to_what_the_interface_carries() {
    let v4: SocketAddr = "10.0.0.1:0".parse().unwrap();
    let v6: SocketAddr = "[fd00::1]:0".parse().unwrap();
    for (udp, mtu, other, tried) in [
        (v4, Some(9000), Some(1500), &[69, 1280, 1500, 9000][..]),
        (v4, Some(9000), Some(4000), &[69, 1280, 1500, 4000, 9000]),
        (v6, Some(1280), Some(9000), &[89, 1280]),
        (v4, None, None, &[69, 1280, 1500]),
        (v4, Some(65_536), Some(65_536), &[69, 1280, 1500, 65_535]),
        (v4, Some(68), None, &[69]),
    ] {
        let ends = [mtu, other].map(|mtu_bytes| PreflightAddresses {
            tcp: None,
            udp,
            interface: None,
            mtu_bytes,
        });
        let sizes = Vec::from_iter(tried_sizes(&ends[0], &ends[1]));
        assert_eq!(sizes, tried, "{mtu:?} {other:?}");
    }
}
