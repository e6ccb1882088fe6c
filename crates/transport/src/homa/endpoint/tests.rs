//! The endpoint over sockets of a network in memory.

use super::*;
use crate::homa::abi::{BPAGE, LARGEST};
use crate::homa::fake::{Fake, Net};
use crate::{Endpoint, Events, Posted, Slot};

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:50000";
const FOREIGN_PEER: &str = "10.0.0.3:60000";

/// One end and what its last poll found.
struct End {
    endpoint: HomaEndpoint<Fake>,
    events: Events,
    completed: u32,
}

impl End {
    fn new(net: &Net, role: Role, size: usize, pages: impl IntoIterator<Item = u32>) -> End {
        let (own, peer) = role.pick((CLIENT, SERVER), (SERVER, CLIENT));
        let inbox = Inbox::new(net.socket(own, pages), size);
        let endpoint = MessageEndpoint::new(
            HomaWire::new(inbox, role, peer.parse().unwrap(), size, 0),
            4,
            size,
        );
        End { endpoint, events: Events::default(), completed: 0 }
    }

    fn post(&mut self, slot: u32, message: &[u8]) {
        let slot = Slot::sending(slot);
        self.endpoint.payload(slot)[..message.len()].copy_from_slice(message);
        assert_eq!(self.endpoint.post(slot, message.len()), Posted::Accepted);
        self.endpoint.flush();
    }

    /// What one poll brings, if it brings a message.
    fn poll(&mut self) -> Option<Vec<u8>> {
        let some = self.endpoint.poll(&mut self.events);
        assert_eq!(some, self.events.any());
        self.completed += self.events.completed;
        self.arrived()
    }

    fn arrived(&mut self) -> Option<Vec<u8>> {
        let arrival = *self.events.arrivals().first()?;
        assert_eq!(self.events.arrivals().len(), 1);
        let message = self.endpoint.payload(arrival.slot);
        assert!(message.len() >= arrival.length as usize);
        Some(message[..arrival.length as usize].to_vec())
    }

    /// Answers with what has arrived, from where it lies.
    fn echo(&mut self) {
        let arrival = self.events.arrivals()[0];
        assert_eq!(self.endpoint.post(arrival.slot, arrival.length as usize), Posted::Accepted);
        self.endpoint.flush();
    }
}

fn both(size: usize) -> (Net, End, End) {
    let net = Net::default();
    let client = End::new(&net, Role::Client, size, 0..32);
    let server = End::new(&net, Role::Server, size, 0..32);
    (net, client, server)
}

/// Bytes that differ from page to page.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / BPAGE * 31 + at % 251) as u8).collect()
}

#[test]
fn a_request_is_answered_from_where_it_lies() {
    let (_net, mut client, mut server) = both(100);
    client.post(0, b"a request");
    assert_eq!(server.poll().unwrap(), b"a request");
    server.echo();
    assert_eq!(client.poll().unwrap(), b"a request");
    assert_eq!((server.poll(), client.poll()), (None, None));
    assert_eq!((client.completed, server.completed), (1, 1));
    assert_eq!(client.endpoint.wire.inbox.gatherings, 0);
}

#[test]
fn replies_have_lengths_of_their_own() {
    let (_net, mut client, mut server) = both(100);
    for (request, reply) in [(&b"long request"[..], &b"s"[..]), (b"r", b"a longer reply")] {
        client.post(0, request);
        assert_eq!(server.poll().unwrap(), request);
        server.post(1, reply);
        assert_eq!(client.poll().unwrap(), reply);
    }
}

#[test]
fn the_oldest_request_is_answered_first() {
    let (net, mut client, mut server) = both(8);
    for number in 0..3 {
        client.post(number, &[number as u8]);
    }
    let arrived: Vec<_> = (0..3).map(|_| server.poll().unwrap()[0]).collect();
    assert_eq!(arrived, [0, 1, 2]);
    // Two in one flush, then the third.
    for (slot, answer) in [(0, 10), (1, 11)] {
        server.endpoint.payload(Slot::sending(slot))[0] = answer;
        assert_eq!(server.endpoint.post(Slot::sending(slot), 1), Posted::Accepted);
    }
    server.endpoint.flush();
    server.post(2, &[12]);
    assert_eq!(net.lock().answered, [3, 5, 7]);
    let replies: Vec<_> = (0..3).map(|_| client.poll().unwrap()[0]).collect();
    assert_eq!(replies, [10, 11, 12]);
}

#[test]
fn a_server_posts_no_more_than_was_asked() {
    let (_net, mut client, mut server) = both(8);
    assert_eq!(server.endpoint.post(Slot::sending(0), 8), Posted::Full);
    client.post(0, b"one");
    assert!(server.poll().is_some());
    assert_eq!(server.endpoint.post(Slot::sending(0), 8), Posted::Accepted);
    assert_eq!(server.endpoint.post(Slot::sending(1), 8), Posted::Full);
    server.endpoint.flush();
    assert_eq!(server.endpoint.post(Slot::sending(1), 8), Posted::Full);
}

#[test]
fn pages_go_back_with_the_next_receive() {
    let (net, mut client, mut server) = both(3 * BPAGE);
    client.post(0, &pattern(2 * BPAGE + 1));
    assert!(server.poll().is_some());
    assert_eq!(net.pages(SERVER), (3, 0));
    client.post(1, b"next");
    assert!(server.poll().is_some());
    assert_eq!(net.pages(SERVER), (1, 3));
    assert!(server.poll().is_none());
    assert!(server.poll().is_none());
    assert_eq!(net.pages(SERVER), (0, 4), "each page once");
}

#[test]
fn pages_that_a_failed_call_did_not_take_back_go_back_later() {
    let (net, mut client, mut server) = both(8);
    client.post(0, b"one");
    assert!(server.poll().is_some());
    net.refuse(SERVER, Errno::INTR);
    assert!(server.poll().is_none());
    assert_eq!(net.pages(SERVER), (1, 0));
    assert!(server.poll().is_none());
    assert_eq!(net.pages(SERVER), (0, 1));
}

#[test]
fn a_message_of_pages_that_follow_each_other_stays_where_it_is() {
    let (_net, mut client, mut server) = both(LARGEST);
    client.post(0, &pattern(LARGEST));
    assert_eq!(server.poll().unwrap(), pattern(LARGEST));
    assert_eq!(server.endpoint.wire.inbox.gatherings, 0);
    server.echo();
    assert_eq!(client.poll().unwrap(), pattern(LARGEST));
}

#[test]
fn a_message_of_pages_apart_is_put_together() {
    let net = Net::default();
    let mut client = End::new(&net, Role::Client, LARGEST, 0..32);
    let mut server = End::new(&net, Role::Server, LARGEST, [5, 6, 3, 9]);
    client.post(0, &pattern(2 * BPAGE));
    assert_eq!(server.poll().unwrap(), pattern(2 * BPAGE));
    assert_eq!(server.endpoint.wire.inbox.gatherings, 0, "5 and 6 are neighbours");
    server.echo();
    client.post(1, &pattern(BPAGE + 77));
    assert_eq!(server.poll().unwrap(), pattern(BPAGE + 77));
    assert_eq!(server.endpoint.wire.inbox.gatherings, 1);
    server.echo();
    assert_eq!(client.poll().unwrap(), pattern(2 * BPAGE));
    assert_eq!(client.poll().unwrap(), pattern(BPAGE + 77));
}

#[test]
fn what_the_kernel_cannot_take_now_goes_later() {
    for errno in [Errno::AGAIN, Errno::NOBUFS, Errno::INTR] {
        let (net, mut client, mut server) = both(8);
        net.refuse(CLIENT, errno);
        client.post(0, b"patience");
        assert_eq!((client.endpoint.link, net.queued(SERVER)), (Link::Up, 0));
        assert!(client.poll().is_none());
        assert_eq!((client.completed, client.events.link), (1, Link::Up));
        assert_eq!(server.poll().unwrap(), b"patience");
    }
}

#[test]
fn an_echo_that_waits_keeps_its_pages() {
    let (net, mut client, mut server) = both(8);
    client.post(0, b"first");
    client.post(1, b"second");
    assert_eq!(server.poll().unwrap(), b"first");
    net.refuse(SERVER, Errno::AGAIN);
    server.echo();
    net.refuse(SERVER, Errno::AGAIN);
    assert!(server.poll().is_none(), "its pages would be given back");
    assert_eq!(net.pages(SERVER), (1, 0));
    assert_eq!(server.poll().unwrap(), b"second");
    assert_eq!(client.poll().unwrap(), b"first");
}

#[test]
fn a_poll_for_completions_alone_leaves_messages() {
    let (net, mut client, mut server) = both(8);
    client.post(0, b"later");
    server.events.limit(0);
    assert!(server.poll().is_none());
    assert_eq!(net.queued(SERVER), 1);
    server.events.limit(1);
    assert_eq!(server.poll().unwrap(), b"later");
}

#[test]
fn another_thread_takes_what_arrives() {
    let (net, mut client, mut server) = both(2 * BPAGE);
    assert!(server.endpoint.receiver().is_none(), "its requests are one thread's");
    let endpoint = client.endpoint.receiver().unwrap() as Box<dyn std::any::Any>;
    let endpoint = *endpoint.downcast::<HomaEndpoint<Fake>>().unwrap();
    let mut receiver = End { endpoint, events: Events::default(), completed: 0 };
    client.events.limit(0);
    for message in [&pattern(BPAGE + 1)[..], b"short"] {
        client.post(0, message);
        assert_eq!(server.poll().unwrap(), message);
        server.echo();
        assert!(client.poll().is_none(), "it sends, and another receives");
        assert_eq!(receiver.poll().unwrap(), message);
    }
    assert!(receiver.poll().is_none());
    assert_eq!((client.completed, receiver.completed), (2, 0));
    assert_eq!(net.pages(CLIENT), (0, 3));
    drop(receiver);
    client.post(1, b"on");
    assert_eq!(server.poll().unwrap(), b"on", "the socket stays open");
}

#[test]
fn a_stranger_is_turned_away_and_counted() {
    let (net, mut client, mut server) = both(8);
    let foreign = net.socket(FOREIGN_PEER, 0..4);
    let to = SERVER.parse::<SocketAddr>().unwrap().into();
    for _ in 0..2 {
        foreign.send(&mut SendArgs::request(9), &to, b"let me in").unwrap();
    }
    client.post(0, b"mine");
    assert_eq!((server.poll(), server.endpoint.rejected_peers()), (None, 1));
    // A sleeper is not woken by one.
    server.endpoint.wait(&mut server.events);
    assert_eq!(
        (server.arrived().unwrap(), server.endpoint.rejected_peers()),
        (b"mine".to_vec(), 2)
    );
    server.echo();
    assert_eq!(client.poll().unwrap(), b"mine");
    let mut heard = Inbox::new(foreign, 8);
    for _ in 0..2 {
        let reply = heard.receive(false).unwrap();
        assert!(heard.lay_out(reply.length));
        assert_eq!((heard.message(), is_request(reply.id)), (&[0][..], false));
    }
}

#[test]
fn another_port_of_the_peer_s_host_is_a_stranger() {
    let (net, _client, mut server) = both(8);
    let neighbour = net.socket("10.0.0.1:40001", 0..4);
    let to = SERVER.parse::<SocketAddr>().unwrap().into();
    neighbour.send(&mut SendArgs::request(0), &to, b"nearly").unwrap();
    assert_eq!((server.poll(), server.endpoint.rejected_peers()), (None, 1));
}

#[test]
fn a_request_that_fails_ends_the_link_and_is_named() {
    let (net, mut client, _server) = both(8);
    client.post(0, b"one");
    client.post(1, b"two");
    net.fail(CLIENT, 4, 2, Errno::TIMEDOUT);
    assert!(client.poll().is_none());
    assert_eq!(client.events.link, Link::Failed(Errno::TIMEDOUT.raw_os_error()));
    assert_eq!(client.endpoint.wire.failed, Some((2, Errno::TIMEDOUT)));
    let failed = client.endpoint.final_counters()["error.request"].to_string();
    assert!(failed.starts_with("number 2: "), "{failed}");
    // Nobody sleeps on it, and nothing more is sent.
    client.endpoint.wait(&mut client.events);
    assert_eq!(client.events.link, Link::Failed(Errno::TIMEDOUT.raw_os_error()));
}

#[test]
fn a_port_that_is_gone_closes_the_link() {
    let (_net, mut client, server) = both(8);
    drop(server);
    client.post(0, b"anybody?");
    assert!(client.poll().is_none());
    assert_eq!((client.completed, client.events.link), (1, Link::Closed));
    assert_eq!(client.endpoint.wire.failed, Some((1, Errno::NOTCONN)));
}

#[test]
fn a_socket_that_fails_ends_the_link() {
    let (net, mut client, _server) = both(8);
    net.refuse(CLIENT, Errno::NOMEM);
    assert!(client.poll().is_none());
    assert_eq!(client.events.link, Link::Failed(Errno::NOMEM.raw_os_error()));
    assert_eq!(client.endpoint.wire.failed, None, "it was of no request");
    let (net, mut client, _server) = both(8);
    net.refuse(CLIENT, Errno::INVAL);
    client.post(0, b"refused");
    assert_eq!(client.endpoint.link, Link::Failed(Errno::INVAL.raw_os_error()));
    assert_eq!(net.queued(SERVER), 0);
}

#[test]
fn a_message_that_does_not_fit_ends_the_link() {
    let too_long = Link::Failed(Errno::MSGSIZE.raw_os_error());
    let net = Net::default();
    let mut client = End::new(&net, Role::Client, 9, 0..4);
    let mut server = End::new(&net, Role::Server, 8, 0..4);
    client.post(0, b"nine byte");
    assert_eq!((server.poll(), server.events.link), (None, too_long));
    let (_net, mut client, mut server) = both(8);
    client.post(0, b"");
    assert_eq!((server.poll(), server.events.link), (None, too_long), "none that is empty");
    // Pages that are not of the region, and one that ends beyond it.
    for pages in [[39, 40], [1, 60_000]] {
        let net = Net::default();
        let mut client = End::new(&net, Role::Client, LARGEST, 0..32);
        let mut server = End::new(&net, Role::Server, LARGEST, pages);
        client.post(0, &pattern(BPAGE + 1));
        assert_eq!((server.poll(), server.events.link), (None, too_long));
    }
}

#[test]
fn requests_that_nobody_answers_are_left_with_the_kernel() {
    let (net, mut client, mut server) = both(8);
    for number in 0..MOST_UNANSWERED as u32 + 2 {
        client.post(number % 4, b"again");
        if number < MOST_UNANSWERED as u32 {
            assert!(server.poll().is_some());
        }
    }
    assert!(server.poll().is_none() && server.poll().is_none());
    assert_eq!(net.queued(SERVER), 2);
    server.endpoint.wait(&mut server.events);
    assert!(!server.events.any(), "it does not sleep for what it cannot read");
    server.post(0, b"answer");
    assert!(server.poll().is_some() && server.poll().is_none());
    assert_eq!((client.poll().unwrap(), net.queued(SERVER)), (b"answer".to_vec(), 1));
}
