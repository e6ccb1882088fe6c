//! How the ends find each other, over sockets of a network in memory; and what is said where the
//! kernel has no Homa.

use super::abi::SendArgs;
use super::fake::{Fake, Net};
use super::*;
use std::net::IpAddr;
use wiregauge_base::units::Span;
use wiregauge_test_support::bounded::Bound;

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:50000";
const FOREIGN_PEER: &str = "10.0.0.3:60000";

fn setup(role: Role, timeout: Span) -> Setup {
    let setup = Setup::new(role, Traffic::Echo { every: 1 }, Wait::Busy, 8);
    Setup { window: 3, timeout, cookie: [7; 32], ..setup }
}

fn end(net: &Net, role: Role, timeout: Span) -> Result<HomaEndpoint<Fake>> {
    let own = role.pick(CLIENT, SERVER);
    let other = Blob(role.pick(SERVER, CLIENT).into());
    join(net.socket(own, 0..8), own.parse().unwrap(), &other, &setup(role, timeout))
}

fn send(socket: &Fake, to: &str, message: &[u8]) {
    let to: SocketAddr = to.parse().unwrap();
    socket.send(&mut SendArgs::request(0), &to.into(), message).unwrap();
}

const LONG: Span = Span(5_000_000_000);
const SHORT: Span = Span(3_000_000);

#[test]
fn the_end_that_knows_the_cookie_is_let_in() {
    let _bound = Bound::new();
    let net = Net::default();
    // Both sockets are open before either end is told of the other.
    let (served, called) = (net.socket(SERVER, 0..8), net.socket(CLIENT, 0..8));
    let foreign = net.socket(FOREIGN_PEER, 0..8);
    send(&foreign, SERVER, &[7; 31]);
    send(&foreign, SERVER, &[[7; 31].as_slice(), &[6]].concat());
    send(&foreign, SERVER, &[7; 33]);
    let (mut client, mut server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let setup = setup(Role::Server, LONG);
            join(served, SERVER.parse().unwrap(), &Blob::default(), &setup).unwrap()
        });
        let setup = setup(Role::Client, LONG);
        let client = join(called, CLIENT.parse().unwrap(), &Blob(SERVER.into()), &setup).unwrap();
        (client, server.join().unwrap())
    });
    assert_eq!((client.rejected_peers(), server.rejected_peers()), (0, 3));
    assert_eq!(client.slots(), 3);
    // The peer is the one that showed it, and hears nothing but replies.
    let mut events = Events::default();
    assert!(!client.poll(&mut events) && !server.poll(&mut events));
    client.payload(Slot::sending(0)).copy_from_slice(b"let in!!");
    assert_eq!(client.post(Slot::sending(0), 8), Posted::Accepted);
    client.flush();
    assert!(server.poll(&mut events));
    assert_eq!(events.arrivals().len(), 1);
    assert_eq!(server.rejected_peers(), 3);
}

#[test]
fn a_peer_that_is_not_allowed_is_turned_away_though_it_has_the_cookie() {
    let _bound = Bound::new();
    let net = Net::default();
    let mut inbox = Inbox::new(net.socket(SERVER, 0..8), 64);
    let (foreign, own) = (net.socket(FOREIGN_PEER, 0..8), net.socket(CLIENT, 0..8));
    send(&foreign, SERVER, &[7; 32]);
    send(&own, SERVER, &[7; 32]);
    let is_peer = |ip: IpAddr| ip == IpAddr::from([10, 0, 0, 1]);
    let admitted = admit::admit(&mut inbox, &setup(Role::Server, LONG), is_peer).unwrap();
    assert_eq!(admitted, (CLIENT.parse().unwrap(), 1));
    // It hears that it was rejected, and never that it is welcome.
    let mut heard = Inbox::new(foreign, 64);
    assert!(heard.receive(false).is_ok_and(|reply| heard.lay_out(reply.length)));
    assert_eq!(heard.message(), [0]);
}

#[test]
fn a_client_with_another_cookie_is_told_so() {
    let _bound = Bound::new();
    let net = Net::default();
    let other = net.socket(SERVER, 0..8);
    let refused = std::thread::scope(|scope| {
        let client = scope.spawn(|| end(&net, Role::Client, LONG).err());
        let mut inbox = Inbox::new(other, 64);
        let request = loop {
            if let Ok(request) = inbox.receive(false) {
                break request;
            }
        };
        admit::turn_away(&inbox.socket, request.id, request.from);
        client.join().unwrap()
    });
    let sentence = refused.unwrap().to_string();
    assert!(sentence.contains("does not know the cookie"), "{sentence}");
}

#[test]
fn who_never_comes_is_late() {
    let _bound = Bound::new();
    let net = Net::default();
    let late = end(&net, Role::Server, SHORT).err();
    assert!(matches!(late, Some(SetupError::Late { .. })), "{late:?}");
    let _silent = net.socket(SERVER, 0..8);
    let late = end(&net, Role::Client, SHORT).err();
    assert!(matches!(late, Some(SetupError::Late { .. })), "{late:?}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let _bound = Bound::new();
    let sentence = end(&Net::default(), Role::Client, LONG).err().unwrap().to_string();
    assert!(sentence.contains(SERVER), "{sentence}");
}

#[test]
fn a_foreign_address_is_refused() {
    let _bound = Bound::new();
    let net = Net::default();
    for text in ["", "nowhere", "10.0.0.2", "/tmp/socket"] {
        let socket = net.socket(CLIENT, 0..8);
        let setup = setup(Role::Client, LONG);
        let own = CLIENT.parse().unwrap();
        let refused = join(socket, own, &Blob(text.into()), &setup).err();
        assert!(matches!(refused, Some(SetupError::Address)), "{text}: {refused:?}");
    }
}

#[test]
fn the_region_holds_what_is_on_the_way() {
    let _bound = Bound::new();
    assert_eq!(region_bytes(1, 8, 2), 64 * BPAGE);
    assert_eq!(region_bytes(10, 1_000_000, 2), 320 * BPAGE);
    assert_eq!(region_bytes(u32::MAX, 1_000_000, 2), 1024 * BPAGE);
    // The module asks for a page of each possible CPU and 2 MB.
    for cpus in [33, 34, 256, 8192] {
        let bytes = region_bytes(1, 8, cpus);
        assert!(bytes >= cpus * BPAGE + 2_000_000 && bytes <= 1 << 32, "{cpus}: {bytes}");
    }
}

#[test]
fn a_kernel_without_homa_is_named_in_one_sentence() {
    let _bound = Bound::new();
    match socket::probe() {
        Ok(()) => eprintln!("not checked here: this kernel has Homa"),
        Err(_) => {
            let sentence = available(&Settings::default()).unwrap_err();
            assert!(sentence.contains("Homa"), "{sentence}");
            let refused = open(&setup(Role::Server, LONG)).err().unwrap().to_string();
            assert!(refused.contains("opening a Homa socket at 127.0.0.1"), "{refused}");
        }
    }
}
