//! A single-producer single-consumer ring of message cells in memory that two processes share: the
//! data path's protocol, apart from where the memory comes from, so that a model checker can run
//! it.
//!
//! A cell is a header word and the payload after it. The producer writes the payload and then
//! publishes the header; the consumer polls the header of the next cell. The header holds the
//! message's number (its low 32 bits, from 1) and its length: a cell of an earlier lap carries
//! another number, so nothing has to be cleared.
//!
//! What costs time is the transfer of cache lines. Where messages are answered, cells are whole
//! lines: a message of at most [`INLINE`] bytes is handed over in the one line that carries its
//! header. The short messages of a stream share lines.
//! The consumer publishes its position only every quarter of a lap: one line the other way for many
//! messages.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes of payload that share a cache line with the header.
pub const INLINE: usize = 56;

/// Bytes of the messages that a message rate is asked for, which have loops of their own.
const WORD: usize = 8;

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

    /// Has the processor fetch the cache lines of so many cells from this one on, where that gains
    /// time: a loop over messages has few transfers under way at once, since a processor looks only
    /// so many instructions ahead. A line that the producer has not written again is still here.
    #[inline(always)]
    fn fetch(&self, _first: u64, _cells: u64) {}

    /// Has the processor fetch a message of at most so many bytes along with the header that is
    /// awaited, where that gains time: else its further lines are asked for only after the header
    /// has come, one transfer after the other.
    #[inline(always)]
    fn fetch_payload(&self, _cell: u64, _length: usize) {}

    /// The same memory as a value of a loop's own. For all that the compiler knows, an atomic
    /// access changes what stands behind a reference, so it would be read again for each message.
    #[inline(always)]
    fn in_registers(&self) -> impl Memory + '_
    where
        Self: Sized,
    {
        self
    }
}

impl<M: Memory> Memory for &M {
    #[inline(always)]
    fn cells(&self) -> u64 {
        (**self).cells()
    }

    #[inline(always)]
    fn header(&self, cell: u64) -> &AtomicU64 {
        (**self).header(cell)
    }

    #[inline(always)]
    fn taken(&self) -> &AtomicU64 {
        (**self).taken()
    }

    #[inline(always)]
    fn write(&self, cell: u64, message: &[u8]) {
        (**self).write(cell, message);
    }

    #[inline(always)]
    fn read(&self, cell: u64, message: &mut [u8]) {
        (**self).read(cell, message);
    }

    #[inline(always)]
    fn fetch(&self, first: u64, cells: u64) {
        (**self).fetch(first, cells);
    }

    #[inline(always)]
    fn fetch_payload(&self, cell: u64, length: usize) {
        (**self).fetch_payload(cell, length);
    }
}

/// Where a sender's messages lie until they are handed over: one of `size` bytes after the other.
pub struct Slots<'a> {
    /// The memory of all slots.
    pub memory: &'a mut [u8],
    /// Bytes of a slot.
    pub size: usize,
    /// The slot of the next message; the first comes after the last.
    pub next: usize,
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

/// The length of message `number`, where this is its header.
#[inline(always)]
fn length_in(header: u64, number: u64) -> Option<usize> {
    ((header >> 32) as u32 == (number + 1) as u32).then_some(header as u32 as usize)
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

    /// Hands over up to `most` messages of `length` bytes, each from the next slot after `write`,
    /// given the slot and the message's place, has written it; how many: fewer, where the ring has
    /// no room for more. What is the same for all is done once, and one that is written is handed
    /// over at once.
    #[inline(always)]
    pub fn push_each(
        &mut self,
        slots: &mut Slots<'_>,
        length: usize,
        most: u64,
        write: impl FnMut(&mut [u8], u64),
    ) -> u64 {
        if !self.has_room() {
            return 0;
        }
        let count = most.min(self.cells - (self.next - self.taken));
        if (slots.size, length) == (WORD, WORD) {
            self.push_words(slots, count, write);
        } else {
            self.push_alike(slots, slots.size, length, count, write);
        }
        self.next += count;
        count
    }

    /// Hands over messages of a word. The compiler knows their length here, so the copy is one
    /// store, nothing is called between two messages, and all that they need stays in registers.
    /// Out of line, since what stands around would take those.
    #[inline(never)]
    fn push_words(&self, slots: &mut Slots<'_>, count: u64, write: impl FnMut(&mut [u8], u64)) {
        self.push_alike(slots, WORD, WORD, count, write);
    }

    /// Hands over messages for which there is room; their slots have `size` bytes.
    #[inline(always)]
    fn push_alike(
        &self,
        slots: &mut Slots<'_>,
        size: usize,
        length: usize,
        count: u64,
        mut write: impl FnMut(&mut [u8], u64),
    ) {
        // All in registers: an atomic access would have what stands in memory read again.
        let memory = self.memory.in_registers();
        let (first, mask) = (self.next, self.cells - 1);
        let Slots { memory: bytes, next: slot, .. } = slots;
        let mut at = *slot * size;
        for place in 0..count {
            let message = &mut bytes[at..at + size];
            write(message, place);
            let cell = (first + place) & mask;
            memory.write(cell, &message[..length]);
            // Release: whoever sees this header sees the payload.
            memory.header(cell).store(header_of(first + place, length), Ordering::Release);
            at += size;
            if at == bytes.len() {
                at = 0;
            }
        }
        *slot = at / size;
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
        // Acquire: its payload is there, too.
        length_in(self.memory.header(number & self.mask).load(Ordering::Acquire), number)
    }

    /// Takes up to `most` messages into `messages`, each `size` bytes after the last, as far as
    /// there is memory, and calls `took` with the place of each and the message; how many.
    ///
    /// A length above `size` is cut: the memory is shared with another process.
    #[inline(always)]
    pub fn pop(
        &mut self,
        messages: &mut [u8],
        size: usize,
        most: usize,
        mut took: impl FnMut(usize, &[u8]),
    ) -> usize {
        let mut rest = messages;
        let mut place = 0;
        loop {
            place = match size {
                WORD => self.pop_words(&mut rest, place, most, &mut took),
                _ => self.pop_alike(&mut rest, size, place, most, &mut took),
            };
            if place == most || rest.len() < size {
                break;
            }
            // None is there, or one of another length.
            let Some(length) = self.length_of(self.next) else { break };
            let length = length.min(size);
            let (message, behind) = std::mem::take(&mut rest).split_at_mut(size);
            self.memory.read(self.next & self.mask, &mut message[..length]);
            self.next += 1;
            took(place, &message[..length]);
            rest = behind;
            place += 1;
        }
        if place == most {
            // More is likely to be there.
            self.memory.fetch(self.next & self.mask, most as u64);
        }
        place
    }

    /// Takes messages of a word: out of line, as [`Producer::push_words`].
    #[inline(never)]
    fn pop_words(
        &mut self,
        messages: &mut &mut [u8],
        place: usize,
        most: usize,
        took: impl FnMut(usize, &[u8]),
    ) -> usize {
        self.pop_alike(messages, WORD, place, most, took)
    }

    /// Takes messages of exactly `size` bytes, the first as number `place` of this poll; the number
    /// of the next. Mostly all have one length, and nothing else has to be asked of a header.
    #[inline(always)]
    fn pop_alike(
        &mut self,
        messages: &mut &mut [u8],
        size: usize,
        mut place: usize,
        most: usize,
        mut took: impl FnMut(usize, &[u8]),
    ) -> usize {
        // All in registers: an atomic access would have what stands in memory read again.
        let memory = self.memory.in_registers();
        let (mut number, mask) = (self.next, self.mask);
        let mut rest = std::mem::take(messages);
        while place < most && rest.len() >= size {
            // Acquire: its payload is there, too.
            if memory.header(number & mask).load(Ordering::Acquire) != header_of(number, size) {
                break;
            }
            let (message, behind) = rest.split_at_mut(size);
            memory.read(number & mask, message);
            took(place, message);
            rest = behind;
            place += 1;
            number += 1;
        }
        *messages = rest;
        self.next = number;
        place
    }

    /// Takes one message; its length, which is cut to the memory that is given.
    #[inline(always)]
    pub fn pop_one(&mut self, message: &mut [u8]) -> Option<usize> {
        let number = self.next;
        let Some(length) = self.length_of(number) else {
            self.memory.fetch_payload(number & self.mask, message.len());
            return None;
        };
        let length = length.min(message.len());
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
