//! What every transport between two processes promises.

use super::ends::{Bench, End, both_ends};
use std::sync::atomic::{AtomicBool, Ordering};
use wiregauge::host::interrupt::Interrupter;
use wiregauge::transport::{
    Blob, Endpoint, Link, Posted, Role, SetupError, Slot, Traffic, TransportKind,
};

const ECHO: Traffic = Traffic::Echo { every: 1 };
/// The largest message that is sent here: what the emulated machine has memory for.
const LARGEST: usize = 16 << 20;

fn messages_for(size: usize) -> u64 {
    if size > 10_000 { 40 } else { 400 }
}

pub fn messages_arrive_whole_once_and_as_posted(bench: Bench) {
    for (number, size) in bench.sizes().into_iter().enumerate() {
        // A window of one, of a few, and of more than any queue of slots.
        let window = [1, 5, 4096][number % 3];
        let total = messages_for(size);
        both_ends(
            bench,
            Traffic::Forward,
            (size, window),
            |client| {
                client.send_up_to(total);
                client.meet();
                client.is_quiet();
            },
            |server| {
                server.receive_up_to(0, total);
                server.meet();
                server.is_quiet();
            },
        );
    }
}

pub fn the_largest_message_passes_both_ways(bench: Bench) {
    // The largest ones take memory: one claim at a time.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let size = (bench.kind.descriptor().largest as usize).min(LARGEST);
    both_ends(
        bench,
        ECHO,
        (size, 1),
        |client| {
            for sequence in 0..2 {
                client.send_up_to_and_hear(sequence + 1);
            }
            client.meet();
        },
        |server| {
            answer(server, 2);
            server.meet();
        },
    );
}

/// Echoes `total` messages from where they arrived.
fn answer(end: &mut End<'_>, total: u64) {
    let mut expected = 0;
    while expected < total {
        end.next();
        expected = end.verify_arrivals(expected);
        for index in 0..end.events.arrivals().len() {
            let arrival = end.events.arrivals()[index];
            while end.endpoint.post(arrival.slot, end.size) == Posted::Full {
                end.endpoint.flush();
                end.check_time();
            }
            end.accepted += 1;
        }
        end.endpoint.flush();
    }
    while end.completed < end.accepted {
        end.next();
    }
}

impl End<'_> {
    /// Posts messages up to `total` and receives their answers, whichever is possible.
    pub fn send_up_to_and_hear(&mut self, total: u64) {
        let mut heard = self.received;
        while self.accepted < total || heard < total || self.completed < self.accepted {
            let posted = self.post_up_to(total);
            if posted {
                self.poll();
            } else {
                self.next();
            }
            heard = self.verify_arrivals(heard);
            assert!(self.events.link == Link::Up || heard == total, "{:?}", self.events.link);
        }
    }
}

pub fn an_arrived_slot_can_be_posted(bench: Bench) {
    for size in bench.sizes() {
        let bursts = [1, 16, 200];
        let total: u64 = bursts.iter().sum();
        both_ends(
            bench,
            ECHO,
            (size, 16),
            |client| {
                let mut sent = 0;
                for burst in bursts {
                    sent += burst;
                    client.send_up_to_and_hear(sent);
                }
                client.meet();
                client.is_quiet();
            },
            |server| {
                answer(server, total);
                server.meet();
                server.is_quiet();
            },
        );
    }
}

/// Attempts without any success after which a queue is taken as full.
const ATTEMPTS: u32 = 2000;
/// More messages than any queue holds.
const MORE_THAN_FITS: u64 = 100_000;

/// Posts without the other end reading, until nothing more is taken.
fn fill(end: &mut End<'_>) {
    let mut fruitless = 0;
    while fruitless < ATTEMPTS {
        let posted = end.post_up_to(MORE_THAN_FITS);
        let completed = end.completed;
        end.poll();
        fruitless = if posted || end.completed > completed { 0 } else { fruitless + 1 };
        assert!(end.accepted < MORE_THAN_FITS, "no end of room");
    }
}

pub fn a_full_queue_takes_nothing_and_loses_nothing(bench: Bench) {
    if bench.loses() {
        return what_overflows_is_lost_whole(bench);
    }
    for (size, window) in [(64, 4096), (4096, 64), (60_000, 3)] {
        let room = std::sync::atomic::AtomicU64::new(0);
        both_ends(
            bench,
            Traffic::Forward,
            (size, window),
            |client| {
                fill(client);
                room.store(client.accepted, Ordering::Release);
                client.meet();
                // Now that the other end reads, it goes on, woken where it sleeps.
                client.send_up_to(client.accepted + 100);
                client.meet();
                client.is_quiet();
            },
            |server| {
                server.meet();
                let total = room.load(Ordering::Acquire) + 100;
                server.receive_up_to(0, total);
                server.meet();
                server.is_quiet();
            },
        );
    }
}

fn what_overflows_is_lost_whole(bench: Bench) {
    let size = 1000;
    both_ends(
        bench,
        Traffic::Forward,
        (size, 64),
        |client| {
            client.give_credit_without_end();
            client.send_up_to(3000);
            client.meet();
        },
        |server| {
            server.meet();
            let mut highest = None;
            server.poll();
            while !server.events.arrivals().is_empty() {
                let arrival = server.events.arrivals()[0];
                assert_eq!(arrival.length as usize, size);
                let message = &server.endpoint.payload(arrival.slot)[..size];
                let sequence = wiregauge::loops::payload::sequence(message, 0);
                assert!(wiregauge::loops::payload::verify(message, sequence));
                assert!(highest < Some(sequence), "{sequence} after {highest:?}");
                highest = Some(sequence);
                server.poll();
            }
            assert!((1..3000).contains(&server.received), "{}", server.received);
        },
    );
}

pub fn arrivals_stay_until_the_next_poll(bench: Bench) {
    let (size, total) = (1000, 300);
    both_ends(
        bench,
        Traffic::Both,
        (size, 8),
        |client| {
            client.send_up_to_and_hear(total);
            client.meet();
        },
        |server| {
            let mut expected = 0;
            while expected < total || server.accepted < total || server.completed < server.accepted
            {
                if expected < total {
                    server.next();
                } else {
                    server.poll();
                }
                let before = expected;
                expected = server.verify_arrivals(before);
                // Posts and flushes of its own leave what has arrived alone.
                server.post_up_to(total);
                server.post_up_to(total);
                assert_eq!(server.verify_arrivals(before), expected);
            }
            server.meet();
        },
    );
}

pub fn both_ways_at_once_there_is_no_deadlock(bench: Bench) {
    for (size, window) in [(64, 4096), (4096, 64), (60_000, 3)] {
        let beyond = if size > 10_000 { 100 } else { 1000 };
        let filled = [const { std::sync::atomic::AtomicU64::new(0) }; 2];
        let play = |end: &mut End<'_>, me: usize| {
            // Both fill their queues before either reads.
            if !bench.loses() {
                let mut fruitless = 0;
                while fruitless < ATTEMPTS {
                    let posted = end.post_up_to(MORE_THAN_FITS);
                    fruitless = if posted { 0 } else { fruitless + 1 };
                }
            }
            let mine = end.accepted + beyond;
            filled[me].store(mine, Ordering::Release);
            end.meet();
            let others = filled[1 - me].load(Ordering::Acquire);
            let mut heard = 0;
            while end.accepted < mine || end.completed < mine || heard < others {
                let posted = end.post_up_to(mine);
                // A sleeper is woken by room where it found none and by arrivals; nothing else.
                let nothing_wakes = heard == others || end.is_held_back();
                if posted || nothing_wakes {
                    end.poll();
                } else {
                    end.next();
                }
                heard = end.verify_arrivals(heard);
            }
            end.meet();
            end.is_quiet();
            end.meet();
        };
        both_ends(
            bench,
            Traffic::Both,
            (size, window),
            |client| play(client, 0),
            |server| play(server, 1),
        );
    }
}

pub fn a_signal_ends_a_wait_with_nothing(bench: Bench) {
    both_ends(
        bench,
        ECHO,
        (64, 1),
        |client| client.meet(),
        |server| {
            let (sleeper, awake) = (Interrupter::this_thread(), &AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // One that comes just before the system call is missed.
                    while !awake.load(Ordering::Acquire) {
                        sleeper.interrupt();
                        std::thread::yield_now();
                    }
                });
                server.endpoint.wait(&mut server.events);
                awake.store(true, Ordering::Release);
            });
            assert!(!server.events.any());
            server.meet();
        },
    );
}

pub fn a_peer_that_is_gone_is_seen_after_what_it_sent(bench: Bench) {
    both_ends(
        bench,
        Traffic::Both,
        (64, 16),
        |client| client.send_up_to(10),
        |server| {
            server.receive_up_to(0, 10);
            if matches!(bench.kind, TransportKind::Shm | TransportKind::Verbs) {
                // Memory does not tell who else has it, nor an adapter before its retries are
                // over: the controller sees the process end.
                return;
            }
            while server.events.link == Link::Up {
                // A datagram socket learns of it by sending.
                if server.may_post() {
                    let _ = server.post_next();
                }
                server.endpoint.flush();
                server.poll();
            }
            assert_eq!(server.events.link, Link::Closed);
            server.poll();
            assert_eq!(server.events.link, Link::Closed, "it stays so");
            server.endpoint.wait(&mut server.events);
            assert_eq!(server.events.link, Link::Closed, "nobody sleeps on a closed link");
        },
    );
}

pub fn a_foreign_address_is_refused(bench: Bench) {
    for blob in [&b""[..], b"\xff\xfe", b"nowhere", &[b'x'; 5000]] {
        let opening = bench.kind.open(&bench.setup(Role::Client, ECHO, 64, 1)).unwrap();
        let refused = opening.connect(&Blob(blob.to_vec())).err();
        let sentence = refused.expect("connected to nothing").to_string();
        assert!(!sentence.is_empty() && !sentence.contains("panicked"));
    }
}

pub fn slots_are_told_apart(bench: Bench) {
    both_ends(
        bench,
        ECHO,
        (64, 7),
        |client| {
            let slots = client.endpoint.slots();
            assert!((1..=7).contains(&slots), "{slots} slots for a window of 7");
            for number in 0..slots {
                client.endpoint.payload(Slot::sending(number)).fill(number as u8);
            }
            for number in 0..slots {
                let memory = client.endpoint.payload(Slot::sending(number));
                assert!(memory.len() == 64 && memory.iter().all(|byte| *byte == number as u8));
            }
            client.meet();
        },
        |server| server.meet(),
    );
}

pub fn a_peer_that_never_comes_is_late(bench: Bench) {
    if !matches!(bench.kind, TransportKind::Tcp | TransportKind::Unix) {
        return; // The others have nothing to wait for: their memory and names are there at once.
    }
    let mut setup = bench.setup(Role::Server, ECHO, 64, 1);
    setup.timeout = wiregauge::units::Span(10_000_000);
    let late = bench.kind.open(&setup).unwrap().connect(&Blob::default()).err();
    assert!(matches!(late, Some(SetupError::Late { .. })), "{late:?}");
}
