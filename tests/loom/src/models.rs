//! The models. Small ones: each further atomic access multiplies the interleavings.

use crate::ring::{Consumer, Doorbell, Memory, Producer};
use crate::{Pop, Push, pop, senders, ways};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;

const CELLS: usize = 4;

/// A ring of four cells whose payload is one byte each, watched by loom.
struct Cells {
    headers: [AtomicU64; CELLS],
    payloads: [UnsafeCell<u8>; CELLS],
    taken: AtomicU64,
}

// SAFETY: the payloads are accessed as the ring's protocol allows, which is what loom checks.
unsafe impl Sync for Cells {}

impl Cells {
    fn new() -> Arc<Cells> {
        Arc::new(Cells {
            headers: std::array::from_fn(|_| AtomicU64::new(0)),
            payloads: std::array::from_fn(|_| UnsafeCell::new(0)),
            taken: AtomicU64::new(0),
        })
    }
}

impl Memory for Arc<Cells> {
    fn cells(&self) -> u64 {
        CELLS as u64
    }

    fn header(&self, cell: u64) -> &AtomicU64 {
        &self.headers[cell as usize]
    }

    fn taken(&self) -> &AtomicU64 {
        &self.taken
    }

    fn write(&self, cell: u64, message: &[u8]) {
        // SAFETY: a write that another access is not ordered against panics in loom.
        self.payloads[cell as usize].with_mut(|payload| unsafe { *payload = message[0] });
    }

    fn read(&self, cell: u64, message: &mut [u8]) {
        // SAFETY: as for `write`.
        self.payloads[cell as usize].with(|payload| message[0] = unsafe { *payload });
    }
}

/// Takes messages `from..to`, and publishes them.
fn take(consumer: &mut Consumer<Arc<Cells>>, pop: Pop<Arc<Cells>>, from: u8, to: u8) {
    let mut expected = from;
    while expected < to {
        let mut message = [0xff];
        match pop(consumer, &mut message) {
            Some(length) => {
                assert_eq!((length, message), (1, [expected]));
                expected += 1;
                consumer.publish(1);
            }
            None => thread::yield_now(),
        }
    }
}

/// A model for each way of sending with each of receiving.
fn each_way(model: fn(Push<Arc<Cells>>, Pop<Arc<Cells>>)) {
    for push in senders() {
        ways().into_iter().for_each(|pop| loom::model(move || model(push, pop)));
    }
}

#[test]
fn messages_are_handed_over_whole_and_in_order() {
    each_way(hand_over_three);
}

fn hand_over_three(push: Push<Arc<Cells>>, pop: Pop<Arc<Cells>>) {
    let cells = Cells::new();
    let mut producer = Producer::new(Arc::clone(&cells));
    let mut consumer = Consumer::new(cells);
    let sender = thread::spawn(move || {
        assert_eq!(push(&mut producer, 0, 3), 3, "there is room for four");
    });
    take(&mut consumer, pop, 0, 3);
    sender.join().unwrap();
    assert!(!consumer.is_ready());
}

/// The producer has filled the ring: it gets on only as the consumer publishes, and never writes a
/// cell that the consumer may still read.
#[test]
fn a_cell_is_written_again_only_after_it_was_read() {
    each_way(wrap_around);
}

fn wrap_around(push: Push<Arc<Cells>>, pop: Pop<Arc<Cells>>) {
    let cells = Cells::new();
    let mut producer = Producer::new(Arc::clone(&cells));
    assert_eq!(push(&mut producer, 0, 6), 4, "then it is full");
    let mut consumer = Consumer::new(cells);
    let receiver = thread::spawn(move || {
        take(&mut consumer, pop, 0, 2);
        consumer
    });
    let mut pushed = 4;
    while pushed < 6 {
        match push(&mut producer, pushed, 6 - u64::from(pushed)) {
            0 => thread::yield_now(),
            more => pushed += more as u8,
        }
    }
    let mut consumer = receiver.join().unwrap();
    take(&mut consumer, pop, 2, 6);
    assert!(!consumer.is_ready());
}

/// What is published late (after several messages) is published whole: the consumer pops two first.
#[test]
fn a_late_word_gives_back_all_that_was_taken() {
    loom::model(|| {
        let cells = Cells::new();
        let mut producer = Producer::new(Arc::clone(&cells));
        for message in 0..4 {
            assert!(producer.push(&[message]));
        }
        let mut consumer = Consumer::new(cells);
        let receiver = thread::spawn(move || {
            let mut message = [0];
            assert_eq!((pop(&mut consumer, &mut message), message), (Some(1), [0]));
            assert_eq!((pop(&mut consumer, &mut message), message), (Some(1), [1]));
            assert!(consumer.publish(1));
        });
        let mut pushed = 0;
        while pushed < 2 {
            if producer.push(&[4 + pushed]) {
                pushed += 1;
            } else {
                thread::yield_now();
            }
        }
        receiver.join().unwrap();
        assert!(!producer.push(&[9]), "no more than was given back");
    });
}

/// A sleeper that decides to sleep and a ringer that decides not to ring cannot both be right.
#[test]
fn sleeper_and_ringer_never_miss_each_other() {
    loom::model(|| {
        let word = Arc::new(AtomicU32::new(0));
        let work = Arc::new(AtomicU32::new(0));
        let ringer = {
            let (word, work) = (Arc::clone(&word), Arc::clone(&work));
            thread::spawn(move || {
                work.store(1, Ordering::Release);
                Doorbell(&word).must_ring()
            })
        };
        let doorbell = Doorbell(&word);
        doorbell.about_to_sleep();
        let sleeps = work.load(Ordering::Acquire) == 0;
        if !sleeps {
            doorbell.awake();
        }
        let rings = ringer.join().unwrap();
        assert!(!sleeps || rings, "it sleeps and nobody rings");
    });
}

/// The same on the ring itself: a consumer that finds nothing after its announcement is rung.
#[test]
fn a_sleeping_consumer_is_rung_for_a_message() {
    loom::model(|| {
        let cells = Cells::new();
        let word = Arc::new(AtomicU32::new(0));
        let mut producer = Producer::new(Arc::clone(&cells));
        let consumer = Consumer::new(cells);
        let ringer = {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                assert!(producer.push(&[7]));
                Doorbell(&word).must_ring()
            })
        };
        Doorbell(&word).about_to_sleep();
        let sleeps = !consumer.is_ready();
        let rings = ringer.join().unwrap();
        assert!(!sleeps || rings, "it sleeps and nobody rings");
        assert!(consumer.is_ready());
    });
}

/// And a producer that found no room is rung when the consumer publishes.
#[test]
fn a_sleeping_producer_is_rung_for_room() {
    loom::model(|| {
        let cells = Cells::new();
        let word = Arc::new(AtomicU32::new(0));
        let mut producer = Producer::new(Arc::clone(&cells));
        for message in 0..4 {
            assert!(producer.push(&[message]));
        }
        let mut consumer = Consumer::new(cells);
        let ringer = {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                assert_eq!(pop(&mut consumer, &mut [0]), Some(1));
                assert!(consumer.publish(1));
                Doorbell(&word).must_ring()
            })
        };
        Doorbell(&word).about_to_sleep();
        let sleeps = !producer.has_room();
        let rings = ringer.join().unwrap();
        assert!(!sleeps || rings, "it sleeps and nobody rings");
        assert!(producer.has_room());
    });
}
