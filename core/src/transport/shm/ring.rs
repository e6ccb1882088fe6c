//! A single-producer single-consumer ring of message cells in memory that two processes share: the
//! data path's protocol, apart from where the memory comes from, so that a model checker can run
//! it.
//!
//! A cell is a header word and the payload after it, a whole number of cache lines. The producer
//! writes the payload and then publishes the header; the consumer polls the header of the next
//! cell. A message of at most [`INLINE`] bytes is thus handed over in the one cache line that
//! carries the header. The header holds the message's number (its low 32 bits, from 1) and its
//! length: a cell of an earlier lap carries another number, so nothing has to be cleared.
//!
//! The consumer publishes its position only every quarter of a lap: one cache line the other way
//! for many messages.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes of payload that share a cache line with the header.
pub const INLINE: usize = 56;

/// The memory of one direction, as both processes see it.
pub trait Memory {
    /// Number of cells, a power of two, at least 4.
    fn cells(&self) -> u64;
    /// The header of a cell; zero at first.
    fn header(&self, cell: u64) -> &AtomicU64;
    /// How many messages the consumer has taken, in a cache line of its own; zero at first.
    fn taken(&self) -> &AtomicU64;
    /// Writes a message behind a header. Called only while the cell is the producer's.
    fn write(&self, cell: u64, message: &[u8]);
    /// Reads a message from behind a header. Called only while the cell is the consumer's.
    fn read(&self, cell: u64, message: &mut [u8]);
}

/// The end that sends.
pub struct Producer<M> {
    memory: M,
    cells: u64,
    next: u64,
    taken: u64,
}

/// The end that receives.
pub struct Consumer<M> {
    memory: M,
    mask: u64,
    next: u64,
    published: u64,
}

#[inline(always)]
fn header_of(number: u64, length: usize) -> u64 {
    ((number + 1) << 32) | length as u64
}

impl<M: Memory> Producer<M> {
    /// The sending end of fresh memory.
    pub fn new(memory: M) -> Self {
        Producer { cells: memory.cells(), memory, next: 0, taken: 0 }
    }

    /// Hands a message over; `false` when the ring is full.
    #[inline(always)]
    pub fn push(&mut self, message: &[u8]) -> bool {
        if !self.has_room() {
            return false;
        }
        let cell = self.next & (self.cells - 1);
        self.memory.write(cell, message);
        // Release: whoever sees this header sees the payload.
        self.memory.header(cell).store(header_of(self.next, message.len()), Ordering::Release);
        self.next += 1;
        true
    }

    /// Whether a message fits. Reads the consumer's cache line only when the ring looks full.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        self.next - self.taken < self.cells || self.has_room_now()
    }

    #[cold]
    fn has_room_now(&mut self) -> bool {
        self.learn();
        self.next - self.taken < self.cells
    }

    #[inline(always)]
    fn learn(&mut self) {
        // Acquire: the consumer has read the cells before it published.
        self.taken = self.memory.taken().load(Ordering::Acquire);
    }

    /// Reads the consumer's position before it is needed: while idle, the transfer of the cache
    /// line costs nothing.
    #[inline(always)]
    pub fn look_ahead(&mut self) {
        if self.next - self.taken > self.cells / 2 {
            self.learn();
        }
    }

    /// How many messages have been handed over.
    #[inline(always)]
    pub fn sent(&self) -> u64 {
        self.next
    }
}

impl<M: Memory> Consumer<M> {
    /// The receiving end of fresh memory.
    pub fn new(memory: M) -> Self {
        Consumer { mask: memory.cells() - 1, memory, next: 0, published: 0 }
    }

    /// Whether a message is there.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.length_of(self.next).is_some()
    }

    /// The length of message `number`, where it is there.
    #[inline(always)]
    fn length_of(&self, number: u64) -> Option<usize> {
        let header = self.memory.header(number & self.mask).load(Ordering::Acquire);
        ((header >> 32) as u32 == (number + 1) as u32).then_some(header as u32 as usize)
    }

    /// Takes up to `most` messages into `messages`, each `size` bytes after the last, and calls
    /// `took` with the place and length of each; how many.
    ///
    /// A length above `size` is cut: the memory is shared with another process.
    #[inline(always)]
    pub fn pop(
        &mut self,
        messages: &mut [u8],
        size: usize,
        most: usize,
        mut took: impl FnMut(usize, usize),
    ) -> usize {
        // Counted in a register: for all that the compiler knows, what an atomic reads is `self`.
        let first = self.next;
        let mut place = 0;
        while place < most {
            let number = first + place as u64;
            let Some(length) = self.length_of(number) else { break };
            let length = length.min(size);
            self.memory.read(number & self.mask, &mut messages[place * size..][..length]);
            took(place, length);
            place += 1;
        }
        self.next = first + place as u64;
        place
    }

    /// Takes one message; its length, which is cut to the memory that is given.
    #[inline(always)]
    pub fn pop_one(&mut self, message: &mut [u8]) -> Option<usize> {
        let number = self.next;
        let length = self.length_of(number)?.min(message.len());
        self.memory.read(number & self.mask, &mut message[..length]);
        self.next = number + 1;
        Some(length)
    }

    /// Publishes the consumer's position if it has moved by `at_least` messages; whether
    /// it did.
    #[inline(always)]
    pub fn publish(&mut self, at_least: u64) -> bool {
        if self.next - self.published < at_least {
            return false;
        }
        self.published = self.next;
        // Release: what the cells held has been read.
        self.memory.taken().store(self.next, Ordering::Release);
        true
    }
}

/// Where one process sleeps until the other rings: the word of a futex in shared memory.
///
/// The sleeper sets the word, looks again, and sleeps; the ringer publishes, then looks at the
/// word. The two fences make it impossible that both miss each other (Dekker's pattern).
pub struct Doorbell<'a>(pub &'a AtomicU32);

impl Doorbell<'_> {
    /// Says that this process is about to sleep. It must look for work once more after this.
    #[inline]
    pub fn about_to_sleep(&self) {
        self.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that this process is awake.
    #[inline]
    pub fn awake(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// After publishing: whether the other process sleeps and must be woken. Says so once.
    #[inline]
    pub fn must_ring(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) == 1 && self.0.swap(0, Ordering::Relaxed) == 1
    }
}
