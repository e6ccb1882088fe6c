//! What of the contract applies to transports whose other end is simulated.

use super::ends::Bench;
use wiregauge::clock::Clock;
use wiregauge::loops::payload;
use wiregauge::transport::{
    Blob, Endpoint, Events, Link, MOST_EVENTS, Posted, Role, Slot, Traffic, TransportKind, Wait,
    synthetic,
};

fn open(kind: TransportKind, role: Role, every: u32, spec: &str) -> Box<dyn Endpoint> {
    let mut setup = Bench { kind, wait: Wait::Busy }.setup(role, Traffic::Echo { every }, 24, 64);
    if kind == TransportKind::Synthetic {
        setup.settings.set("synthetic", spec).unwrap();
    }
    kind.open(&setup).unwrap().connect(&Blob::default()).unwrap().endpoint
}

/// Posts messages `first..first + count` from the slots whose turn it is.
fn post<E: Endpoint>(endpoint: &mut E, first: u64, count: u64) {
    for sequence in first..first + count {
        let slot = Slot::sending((sequence % u64::from(endpoint.slots())) as u32);
        payload::fill(endpoint.payload(slot), sequence);
        assert_eq!(endpoint.post(slot, 24), Posted::Accepted);
    }
    endpoint.flush();
}

/// All that arrives until every answer is there: sequence numbers in the order of arrival.
fn hear<E: Endpoint>(endpoint: &mut E, answers: usize) -> (Vec<u64>, u64) {
    let (mut heard, mut completed) = (Vec::new(), 0);
    let mut events = Events::default();
    for _ in 0..10_000 {
        endpoint.poll(&mut events);
        completed += u64::from(events.completed);
        for arrival in events.arrivals() {
            let message = &endpoint.payload(arrival.slot)[..arrival.length as usize];
            let sequence = payload::sequence(message, 0);
            assert!(payload::verify(message, sequence), "message {sequence}");
            heard.push(sequence);
        }
        if heard.len() >= answers || events.link != Link::Up {
            break;
        }
    }
    (heard, completed)
}

fn each_message_comes_back_once(kind: TransportKind) {
    let mut endpoint = open(kind, Role::Client, 1, "constant(1us)");
    let mut first = 0;
    // Bursts that do not begin at slot 0.
    for burst in [1, 3, 64, 7, 60] {
        post(&mut endpoint, first, burst);
        let (heard, completed) = hear(&mut endpoint, burst as usize);
        assert_eq!(heard, (first..first + burst).collect::<Vec<u64>>());
        assert_eq!(completed, burst);
        first += burst;
    }
    let mut events = Events::default();
    endpoint.poll(&mut events);
    assert!(!events.any(), "nothing comes twice");
}

#[test]
fn each_message_comes_back_once_on_null() {
    each_message_comes_back_once(TransportKind::Null);
}

#[test]
fn each_message_comes_back_once_on_synthetic() {
    each_message_comes_back_once(TransportKind::Synthetic);
}

fn the_last_of_each_burst_is_answered(kind: TransportKind) {
    let mut endpoint = open(kind, Role::Client, 4, "constant(1us)");
    post(&mut endpoint, 0, 12);
    assert_eq!(hear(&mut endpoint, 3).0, [3, 7, 11]);
}

#[test]
fn the_last_of_each_burst_is_answered_on_null() {
    the_last_of_each_burst_is_answered(TransportKind::Null);
}

#[test]
fn the_last_of_each_burst_is_answered_on_synthetic() {
    the_last_of_each_burst_is_answered(TransportKind::Synthetic);
}

#[test]
fn null_takes_no_more_than_a_poll_hands_over() {
    let mut endpoint = open(TransportKind::Null, Role::Client, 1, "");
    post(&mut endpoint, 0, MOST_EVENTS as u64);
    assert_eq!(endpoint.post(Slot::sending(0), 24), Posted::Full);
    assert_eq!(hear(&mut endpoint, MOST_EVENTS).1, MOST_EVENTS as u64, "nothing more was taken");
    assert_eq!(endpoint.post(Slot::sending(0), 24), Posted::Accepted);
}

#[test]
fn synthetic_time_passes_by_the_delay_and_no_other_way() {
    let mut endpoint = open(TransportKind::Synthetic, Role::Client, 1, "constant(5us)");
    let clock = synthetic::clock();
    for message in 0..100 {
        let begin = clock.now();
        post(&mut endpoint, message, 1);
        let (heard, completed) = hear(&mut endpoint, 1);
        assert_eq!((heard, completed), (vec![message], 1));
        assert_eq!((clock.now() - begin).0, 5000);
    }
}

#[test]
fn the_synthetic_server_replays_what_the_client_sent() {
    let kind = TransportKind::Synthetic;
    let mut client = open(kind, Role::Client, 1, "constant(1us)");
    post(&mut client, 0, 50);
    assert_eq!(hear(&mut client, 50).0.len(), 50);
    let mut server = open(kind, Role::Server, 1, "constant(1us)");
    assert_eq!(hear(&mut server, 50).0, (0..50).collect::<Vec<u64>>());
    let mut events = Events::default();
    server.poll(&mut events);
    assert_eq!(events.link, Link::Closed, "and then it is over");
}

#[test]
fn the_synthetic_server_without_a_client_is_refused() {
    let setup = Bench { kind: TransportKind::Synthetic, wait: Wait::Busy }.setup(
        Role::Server,
        Traffic::Forward,
        8,
        1,
    );
    let refused = std::thread::spawn(move || TransportKind::Synthetic.open(&setup).is_err()).join();
    assert!(refused.unwrap());
}
