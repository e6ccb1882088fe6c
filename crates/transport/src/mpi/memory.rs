//! The memory that MPI reads messages from and writes them into.

use memmap2::MmapMut;
use std::io;
use std::mem::ManuallyDrop;

/// Bytes from one message's memory to the next: whole cache lines.
pub fn stride(size: usize) -> usize {
    size.max(1).next_multiple_of(64)
}

/// Memory for some messages, aligned to pages and touched.
pub struct Memory {
    mapped: ManuallyDrop<MmapMut>,
    stays: bool,
    base: *mut u8,
    size: usize,
    stride: usize,
}

// SAFETY: the memory belongs to this value alone; the pointer is into it.
unsafe impl Send for Memory {}

impl Memory {
    /// For as many messages of this size.
    pub fn new(messages: usize, size: usize) -> io::Result<Memory> {
        let (size, stride) = (size.max(1), stride(size));
        let mut mapped = MmapMut::map_anon(messages * stride)?;
        mapped.fill(1);
        let base = mapped.as_mut_ptr();
        Ok(Memory { mapped: ManuallyDrop::new(mapped), stays: false, base, size, stride })
    }

    /// Where a message's memory begins.
    #[inline(always)]
    pub fn at(&self, number: usize) -> *mut u8 {
        assert!((number + 1) * self.stride <= self.mapped.len(), "no such message");
        // SAFETY: it lies within the mapping, by the line above.
        unsafe { self.base.add(number * self.stride) }
    }

    /// A message's memory.
    ///
    /// Nobody else writes it: the contract of endpoints gives it to the caller until it is posted,
    /// or until the next poll.
    #[inline(always)]
    pub fn message(&mut self, number: usize) -> &mut [u8] {
        let at = self.at(number);
        // SAFETY: `size` bytes from `at` on lie within the mapping, and are no other message's.
        unsafe { std::slice::from_raw_parts_mut(at, self.size) }
    }

    /// Lets the memory be for as long as the process lives: MPI may still use it.
    pub fn stay(&mut self) {
        self.stays = true;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.stays {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.mapped) };
        }
    }
}
