//! The shared-memory ring, every interleaving of it (loom) and every access of it (miri).
//!
//! loom runs a model once for each way in which its threads can interleave and each value that the
//! memory model lets a load return; payloads are loom's `UnsafeCell`s, so that an access which is
//! not ordered after the other side's fails. miri runs the ring on real threads and heap memory.
#![cfg(test)]

#[path = "../../../crates/transport/src/shm/ring.rs"]
mod ring;

/// Both ways of taking a message: as one of several, and alone.
fn ways<M: ring::Memory>() -> [Pop<M>; 2] {
    [pop, ring::Consumer::pop_one]
}

/// Both ways of handing messages over: one at a time, and as a list.
fn senders<M: ring::Memory>() -> [Push<M>; 2] {
    [push, push_list]
}

/// Hands over up to `most` messages of one byte, `first` and those after it; how many.
type Push<M> = fn(&mut ring::Producer<M>, first: u8, most: u64) -> u64;

fn push<M: ring::Memory>(producer: &mut ring::Producer<M>, first: u8, most: u64) -> u64 {
    (0..most).take_while(|place| producer.push(&[first + *place as u8])).count() as u64
}

/// From two slots, so that a list of three comes back to the first.
fn push_list<M: ring::Memory>(producer: &mut ring::Producer<M>, first: u8, most: u64) -> u64 {
    let mut slots = ring::Slots { memory: &mut [0xff; 2], size: 1, next: 1 };
    producer.push_each(&mut slots, 1, most, |slot, place| slot[0] = first + place as u8)
}

type Pop<M> = fn(&mut ring::Consumer<M>, &mut [u8]) -> Option<usize>;

/// Takes one message, where one is there; its length.
fn pop<M: ring::Memory>(consumer: &mut ring::Consumer<M>, message: &mut [u8]) -> Option<usize> {
    let (size, mut length) = (message.len(), None);
    consumer.pop(message, size, 1, |_, taken| length = Some(taken.len()));
    length
}

#[cfg(loom)]
mod models;
#[cfg(not(loom))]
mod threads;
