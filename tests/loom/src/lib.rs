//! The shared-memory ring, every interleaving of it (loom) and every access of it (miri).
//!
//! loom runs a model once for each way in which its threads can interleave and each value that the
//! memory model lets a load return; payloads are loom's `UnsafeCell`s, so that an access which is
//! not ordered after the other side's fails. miri runs the ring on real threads and heap memory.
#![cfg(test)]

#[path = "../../../core/src/transport/shm/ring.rs"]
mod ring;

/// Both ways of taking a message: as one of several, and alone.
fn ways<M: ring::Memory>() -> [Pop<M>; 2] {
    [pop, ring::Consumer::pop_one]
}

type Pop<M> = fn(&mut ring::Consumer<M>, &mut [u8]) -> Option<usize>;

/// Takes one message, where one is there; its length.
fn pop<M: ring::Memory>(consumer: &mut ring::Consumer<M>, message: &mut [u8]) -> Option<usize> {
    let (size, mut length) = (message.len(), None);
    consumer.pop(message, size, 1, |_, taken| length = Some(taken));
    length
}

#[cfg(loom)]
mod models;
#[cfg(not(loom))]
mod threads;
