//! The ring on real threads and heap memory: for miri, which finds a data race, a stray pointer or
//! an uninitialised byte, and natively with more messages.

use crate::ring::{Consumer, Doorbell, INLINE, Memory, Producer, Slots};
use crate::{Pop, Push, pop, senders, ways};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const CELLS: usize = 4;
const BYTES: usize = 72;
const MESSAGES: u64 = if cfg!(miri) { 40 } else { 100_000 };

struct Heap {
    headers: [AtomicU64; CELLS],
    payloads: [UnsafeCell<[u8; BYTES]>; CELLS],
    taken: AtomicU64,
}

// SAFETY: a payload is the producer's until its header is published and the consumer's until it
// publishes: the ring's protocol, which miri checks.
unsafe impl Sync for Heap {}

fn heap() -> Arc<Heap> {
    Arc::new(Heap {
        headers: Default::default(),
        payloads: std::array::from_fn(|_| UnsafeCell::new([0; BYTES])),
        taken: AtomicU64::new(0),
    })
}

impl Memory for Arc<Heap> {
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
        // SAFETY: the cell is the producer's, see above; the message is not in the cell.
        let payload = unsafe { &mut *self.payloads[cell as usize].get() };
        payload[..message.len()].copy_from_slice(message);
    }

    fn read(&self, cell: u64, message: &mut [u8]) {
        // SAFETY: the cell is the consumer's, see above.
        let payload = unsafe { &*self.payloads[cell as usize].get() };
        message.copy_from_slice(&payload[..message.len()]);
    }
}

/// Message `number`: its length depends on it too.
fn message(number: u64) -> Vec<u8> {
    let length = [1, 8, INLINE, INLINE + 1, BYTES][(number % 5) as usize];
    (0..length as u64).map(|at| (number * 31 + at) as u8).collect()
}

fn play(pop: Pop<Arc<Heap>>) {
    let heap = heap();
    let mut producer = Producer::new(Arc::clone(&heap));
    let mut consumer = Consumer::new(heap);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..MESSAGES {
                let message = message(number);
                while !producer.push(&message) {
                    std::thread::yield_now();
                }
            }
        });
        let mut buffer = [0; BYTES];
        for number in 0..MESSAGES {
            let length = loop {
                match pop(&mut consumer, &mut buffer) {
                    Some(length) => break length,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(buffer[..length], message(number)[..], "message {number}");
            consumer.publish(1);
        }
        assert!(!consumer.is_ready());
    });
}

#[test]
fn messages_are_handed_over_whole_and_in_order() {
    ways().into_iter().for_each(play);
}

/// Lists of all lengths, of messages that are numbered in their first bytes.
#[test]
fn a_list_is_handed_over_as_its_messages_one_by_one() {
    let heap = heap();
    let mut producer = Producer::new(Arc::clone(&heap));
    let mut consumer = Consumer::new(heap);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut slots = Slots { memory: &mut [0; 3 * BYTES], size: BYTES, next: 0 };
            let mut sent = 0;
            while sent < MESSAGES {
                let most = (sent % 7 + 1).min(MESSAGES - sent);
                let pushed = producer.push_each(&mut slots, 16, most, |slot, place| {
                    slot[..8].copy_from_slice(&(sent + place).to_le_bytes());
                });
                assert!(pushed <= most);
                sent += pushed;
                assert_eq!((producer.sent(), slots.next as u64), (sent, sent % 3));
                if pushed == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut buffer = [0; 3 * BYTES];
        let mut received = 0;
        while received < MESSAGES {
            let before = received;
            let taken = consumer.pop(&mut buffer, BYTES, 9, |place, message| {
                assert_eq!((place as u64, message.len()), (received - before, 16));
                assert_eq!(message[..8], u64::to_le_bytes(received));
                received += 1;
            });
            assert!(taken as u64 == received - before && taken <= 3, "memory for three");
            if !consumer.publish(1) {
                std::thread::yield_now();
            }
        }
    });
}

/// What the models of loom say of one byte, here of real memory.
#[test]
fn a_full_ring_takes_no_more_of_a_list() {
    let both: [Push<Arc<Heap>>; 2] = senders();
    for push in both {
        let heap = heap();
        let mut producer = Producer::new(Arc::clone(&heap));
        assert_eq!(push(&mut producer, 0, 6), CELLS as u64);
        assert_eq!(push(&mut producer, 4, 1), 0);
        let mut consumer = Consumer::new(heap);
        for number in 0..3 {
            let mut message = [0xff];
            assert_eq!((pop(&mut consumer, &mut message), message), (Some(1), [number]));
        }
        consumer.publish(1);
        assert_eq!(push(&mut producer, 4, 9), 3);
    }
}

#[test]
fn a_length_beyond_the_buffer_is_not_believed() {
    let heap = heap();
    let mut consumer = Consumer::new(Arc::clone(&heap));
    heap.headers[0].store(1 << 32 | u64::from(u32::MAX), Ordering::Release);
    assert_eq!(pop(&mut consumer, &mut [0; 16]), Some(16));
}

#[test]
fn sleeper_and_ringer_never_miss_each_other() {
    for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
        let (word, work) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            let ringer = scope.spawn(|| {
                work.store(1, Ordering::Release);
                Doorbell(&word).must_ring()
            });
            Doorbell(&word).about_to_sleep();
            let sleeps = work.load(Ordering::Acquire) == 0;
            let rings = ringer.join().unwrap();
            assert!(!sleeps || rings);
        });
    }
}
