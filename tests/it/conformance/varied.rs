//! What every transport promises where messages have different lengths and one thread has several
//! connections.

use super::ends::{Bench, Meeting, Patience, give_up, install_once, rethrow, unless_lost};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use wiregauge::loops::payload;
use wiregauge::transport::endpoint_set::{EndpointSet, left};
use wiregauge::transport::{
    Blob, Endpoint, Events, Lengths, Link, Opening, Posted, Role, Setup, Slot, Traffic,
};
use wiregauge::units::Span;

/// Connections of each end.
const LANES: usize = 3;
/// How long the other end may take to open.
const PATIENCE: Duration = Duration::from_secs(60);

/// A length of 8 to `longest` bytes that looks drawn.
fn length(sequence: u64, longest: usize) -> usize {
    let drawn = (sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize;
    // Mostly short, as requests are.
    let longest = if sequence.is_multiple_of(5) { longest } else { longest.min(300) };
    8 + drawn % (longest - 7)
}

/// One end.
struct End {
    set: EndpointSet<Box<dyn Endpoint>>,
    /// Posts of each connection that were accepted and have not completed.
    open: [u32; LANES],
    next: [u32; LANES],
}

impl End {
    fn connect(
        bench: Bench,
        role: Role,
        longest: usize,
        exchange: impl FnOnce(Vec<Blob>) -> Vec<Blob>,
    ) -> End {
        let setup = bench.setup(role, Traffic::Echo { every: 1 }, longest, 8);
        let setup = Setup { lengths: Lengths::Varied, ..setup };
        let openings: Vec<Opening> = (0..LANES).map(|_| bench.kind.open(&setup).unwrap()).collect();
        let others = exchange(openings.iter().map(|opening| opening.address.clone()).collect());
        let ends = openings.into_iter().zip(others);
        let ends = ends.map(|(opening, other)| opening.connect(&other).unwrap().endpoint);
        // A sleep that nothing ends, as where a message was lost, must come back.
        let longest_sleep = Span(if bench.loses() { 200_000_000 } else { 60_000_000_000 });
        let set = EndpointSet::new(ends.collect(), Some(longest_sleep)).unwrap();
        End { set, open: [0; LANES], next: [0; LANES] }
    }

    /// Posts a message on a connection, where there is room.
    fn post(&mut self, lane: usize, sequence: u64, length: usize) -> bool {
        let end = &mut self.set.ends[lane];
        if self.open[lane] == end.slots() {
            return false;
        }
        let slot = Slot::sending(self.next[lane]);
        payload::fill(&mut end.payload(slot)[..length], sequence);
        if end.post(slot, length) == Posted::Full {
            return false;
        }
        end.flush();
        self.next[lane] = (self.next[lane] + 1) % end.slots();
        self.open[lane] += 1;
        self.set.stir(lane);
        true
    }

    /// Looks once; what has arrived is given to `take` with its connection.
    fn look(&mut self, sleeps: bool, events: &mut Events, mut take: impl FnMut(usize, &[u8])) {
        let open = &mut self.open;
        let mut is_idle = true;
        self.set.look(sleeps, |lane, end, sleeps| {
            if sleeps {
                end.wait(events);
            } else {
                end.poll(events);
            }
            is_idle &= !events.any();
            open[lane] -= events.completed;
            for arrival in events.arrivals() {
                take(lane, &end.payload(arrival.slot)[..arrival.length as usize]);
            }
            assert_eq!(events.link, Link::Up, "of connection {lane}");
            left(events, open[lane])
        });
        // The other end may need the CPU to go on.
        if is_idle {
            std::thread::yield_now();
        }
    }
}

/// What flows.
struct Flow {
    bench: Bench,
    longest: usize,
    total: u64,
    /// Most messages that are not answered.
    ahead: u64,
    /// As the controller does: nobody sends before both are connected, or goes before both are
    /// done.
    meet: Meeting,
}

/// Answers each message on its connection.
fn serve(flow: &Flow, to_other: Sender<Vec<Blob>>, from_other: Receiver<Vec<Blob>>) {
    let Flow { bench, longest, total, meet, .. } = flow;
    let (bench, longest, total) = (*bench, *longest, *total);
    let mut end = End::connect(bench, Role::Server, longest, |own| {
        to_other.send(own).unwrap();
        from_other.recv_timeout(PATIENCE).unwrap()
    });
    meet.wait();
    let (mut events, mut seen, mut answered) = (Events::default(), 0, 0);
    let mut waiting: VecDeque<(usize, u64)> = VecDeque::new();
    let mut patience = Patience::new(bench);
    while answered < total || end.open.iter().any(|open| *open > 0) {
        patience.check(seen + answered);
        end.look(false, &mut events, |lane, message| {
            let sequence = payload::sequence(message, 0);
            assert_eq!(message.len(), length(sequence, longest), "of {sequence}");
            assert!(payload::verify(message, sequence), "{sequence} is not as it was sent");
            assert_eq!(sequence as usize % LANES, lane);
            waiting.push_back((lane, sequence));
            seen += 1;
        });
        while let Some((lane, sequence)) = waiting.front().copied() {
            if !end.post(lane, sequence, length(!sequence, longest)) {
                break;
            }
            waiting.pop_front();
            answered += 1;
        }
    }
    assert_eq!(seen, total);
    meet.wait();
}

/// Sends them, and hears the answers.
fn ask(flow: &Flow, to_other: Sender<Vec<Blob>>, from_other: Receiver<Vec<Blob>>) {
    let Flow { bench, longest, total, ahead, meet } = flow;
    let (bench, longest, total, ahead) = (*bench, *longest, *total, *ahead);
    let mut end = End::connect(bench, Role::Client, longest, |own| {
        to_other.send(own).unwrap();
        from_other.recv_timeout(PATIENCE).unwrap()
    });
    meet.wait();
    // It may sleep where the kernel watches all connections.
    let is_watched = end.set.ends.iter().all(|end| end.watched().is_some());
    let sleeps = bench.wait.sleeps() && (is_watched || end.set.ends.len() == 1);
    let (mut events, mut sent, mut heard) = (Events::default(), 0, 0);
    let mut next = [0, 1, 2];
    let mut patience = Patience::new(bench);
    while heard < total {
        patience.check(heard + sent);
        while sent < total && sent - heard < ahead {
            if !end.post(sent as usize % LANES, sent, length(sent, longest)) {
                break;
            }
            sent += 1;
        }
        end.look(sleeps, &mut events, |lane, message| {
            let sequence = payload::sequence(message, 0);
            if bench.loses() && sequence > next[lane] {
                give_up();
            }
            assert_eq!(sequence, next[lane], "in the order of its connection");
            next[lane] += LANES as u64;
            assert_eq!(message.len(), length(!sequence, longest));
            assert!(payload::verify(message, sequence));
            heard += 1;
        });
    }
    meet.wait();
}

/// The client sends messages of many lengths over all connections; each is answered by one of
/// another length, in the order of its connection.
pub fn messages_of_many_lengths_arrive_whole(bench: Bench) {
    install_once();
    // What is lost would be waited for: so little is on the way that there always is room.
    let loses = bench.loses();
    let most = if loses { 8000 } else { 200_000 };
    let longest = (bench.kind.descriptor().largest as usize).min(most);
    let (total, ahead) = if loses { (300, 2) } else { (900, 40) };
    unless_lost(bench, || {
        let flow = &Flow { bench, longest, total, ahead, meet: Meeting::default() };
        let (to_server, from_client) = channel::<Vec<Blob>>();
        let (to_client, from_server) = channel::<Vec<Blob>>();
        std::thread::scope(|scope| {
            let server = scope.spawn(move || serve(flow, to_client, from_client));
            let client = scope.spawn(move || ask(flow, to_server, from_server));
            rethrow([server.join(), client.join()]);
        });
    });
}
