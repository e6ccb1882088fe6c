//! The memory of one role's samples in one round: preallocated, touched, locked where permitted,
//! and shared with the controller, so that what a killed process has measured is not lost.
//!
//! The controller makes it as an anonymous file and the agent opens it through `/proc`; nothing has
//! to be removed, whatever dies first. A header page, then the rows.

use crate::Flags;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wiregauge_clock::Ticks;

/// One message, in raw ticks; zero where there is no stamp. 40 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Row {
    /// When the schedule wanted it sent.
    pub intended: Ticks,
    /// Before the post.
    pub submit: Ticks,
    /// First visibility.
    pub receive: Ticks,
    /// When the completion of the post was seen.
    pub complete: Ticks,
    /// Its flags.
    pub flags: Flags,
    /// Of a bandwidth run: nothing; of a node the rank of the sender, plus 1; else the order of
    /// arrival, from 1.
    pub order: u32,
}

/// The words before the rows: what a measured loop tells the controller while it runs, by one plain
/// store a message.
#[repr(C)]
pub struct Progress {
    /// Messages handled so far: for the progress display and to notice a stall.
    progress: AtomicU64,
    /// Rows below this one are in use.
    used: AtomicU64,
    /// Messages that were given up.
    lost: AtomicU64,
    /// Messages for which there was no row, by their time in ticks.
    beyond: [AtomicU32; BINS],
}

/// Bins of the times of messages without a row, as many as fit in the header.
///
/// EXECUTIVE SUMMARY: a time that is read from them is within 1.6 % of the message's, up to 2^35
/// ticks (11 s at 3 GHz). They serve the lines of a running round alone; the figures of a record
/// are made of [`LiveHistogram`](super::histogram::LiveHistogram).
///
/// DETAILS: one for each value below 64, then 32 for each power of two, so that a bin is at most
/// 1/32 of its value wide. The last has what is longer. A count of 32 bits that wraps between two
/// looks would take 2^32 messages in a period.
pub const BINS: usize = 64 + 29 * 32;

const _: () = assert!(size_of::<Progress>() <= HEADER_BYTES, "the words fit before the rows");

/// The bin of a time in ticks.
#[inline(always)]
fn bin(ticks: u64) -> usize {
    match ticks {
        0..64 => ticks as usize,
        _ => {
            let power = ticks.ilog2();
            let within = (ticks >> (power - 5)) & 31;
            (64 + (power as usize - 6) * 32 + within as usize).min(BINS - 1)
        }
    }
}

/// The middle of a bin in ticks.
pub fn bin_middle(bin: usize) -> f64 {
    match bin {
        0..64 => bin as f64,
        _ => {
            let (power, within) = ((bin - 64) / 32 + 6, (bin - 64) % 32);
            (32.5 + within as f64) * 2f64.powi(power as i32 - 5)
        }
    }
}

/// Seals of memory whose size stays: touching what a mapping has lost would be a SIGBUS, and any
/// process of this user can open the memory and resize it otherwise (memfd_create(2)).
const OF_FIXED_SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// Bytes of the header: a page, so that the rows begin on one.
const HEADER_BYTES: usize = 4096;

/// A mapping of one arena.
pub struct Arena {
    memory: MmapRaw,
    rows: usize,
    file: OwnedFd,
}

impl Arena {
    /// Creates one for `rows` rows (controller).
    pub fn create(rows: usize) -> io::Result<Arena> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("wiregauge-samples", flags)?;
        rustix::fs::ftruncate(&file, Self::bytes_for(rows) as u64)?;
        rustix::fs::fcntl_add_seals(&file, OF_FIXED_SIZE | SealFlags::SEAL)?;
        Self::map(file, rows, &mut MmapOptions::new())
    }

    /// Where another process of this user can open it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Opens one that the controller has made (agent), with every page touched.
    pub fn open(path: &Path) -> io::Result<Arena> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = file.metadata()?.len() as usize;
        // Who has no seals is no memory of this kind, or one that may shrink under the mapping.
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if bytes < HEADER_BYTES || !seals.contains(OF_FIXED_SIZE) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no sample memory"));
        }
        let rows = (bytes - HEADER_BYTES) / size_of::<Row>();
        Self::map(file.into(), rows, MmapOptions::new().populate())
    }

    /// Bytes of memory for `rows` rows.
    pub const fn bytes_for(rows: usize) -> usize {
        HEADER_BYTES + rows * size_of::<Row>()
    }

    fn map(file: OwnedFd, rows: usize, options: &mut MmapOptions) -> io::Result<Arena> {
        let memory = options.len(Self::bytes_for(rows)).map_raw(&file)?;
        Ok(Arena { memory, rows, file })
    }

    fn header(&self) -> &Progress {
        // SAFETY: the mapping begins with a page for the header, zero at first, aligned to a page,
        // and only ever used as atomics.
        unsafe { &*self.memory.as_mut_ptr().cast::<Progress>() }
    }

    fn first_row(&self) -> *mut Row {
        // SAFETY: the rows begin a page into a mapping of bytes_for(rows).
        unsafe { self.memory.as_mut_ptr().add(HEADER_BYTES).cast() }
    }

    /// Rows that there is memory for.
    pub fn capacity(&self) -> usize {
        self.rows
    }

    /// Messages handled so far.
    pub fn progress(&self) -> u64 {
        self.header().progress.load(Ordering::Relaxed)
    }

    /// Messages that were given up so far.
    pub fn lost(&self) -> u64 {
        self.header().lost.load(Ordering::Relaxed)
    }

    /// Messages for which there was no row, of each bin of their times.
    pub fn beyond(&self) -> impl Iterator<Item = u32> + '_ {
        self.header().beyond.iter().map(|count| count.load(Ordering::Relaxed))
    }

    /// At most so many of the rows in use from `from` on, evenly spread, and how many are in use,
    /// while another process writes: a message under way has no receive stamp yet.
    pub fn look(&self, from: usize, most: usize) -> (Vec<Row>, usize) {
        let used = (self.header().used.load(Ordering::Acquire) as usize).min(self.rows);
        let every = used.saturating_sub(from).div_ceil(most).max(1);
        // SAFETY: used rows lie in the mapping; any bits make a valid Row. It is copied, since the
        // other process may change it at any time.
        let copy = |row: usize| unsafe { self.first_row().add(row).read_volatile() };
        ((from..used).step_by(every).map(copy).collect(), used)
    }

    /// The rows in use. A process that still writes may be half-way through the last.
    pub fn rows(&self) -> &[Row] {
        let used = (self.header().used.load(Ordering::Acquire) as usize).min(self.rows);
        // SAFETY: used rows lie in the mapping; any bits make a valid Row. The controller reads
        // after the writer has ended or was stopped; a row that a killed writer left half-written
        // has zero stamps, which the reader takes as absent.
        unsafe { std::slice::from_raw_parts(self.first_row(), used) }
    }

    /// Adds rows that another host's process has written; whether there was room for all.
    pub fn extend(&mut self, more: &[Row]) -> bool {
        let used = self.rows().len();
        let (rows, progress) = self.writer();
        let Some(free) = rows.get_mut(used..used + more.len()) else { return false };
        free.copy_from_slice(more);
        progress.used((used + more.len()) as u64);
        true
    }

    /// All rows, for the one writer, with the words it publishes.
    pub fn writer(&mut self) -> (&mut [Row], &Progress) {
        let first = self.first_row();
        // SAFETY: the rows lie in the mapping, any bits make a valid Row, and `&mut self` makes
        // this the only writer of this process, before whose rows the header lies; the controller
        // writes no row.
        let rows = unsafe { std::slice::from_raw_parts_mut(first, self.rows) };
        (rows, self.header())
    }
}

impl Progress {
    /// So many messages have been handled.
    #[inline(always)]
    pub fn handled(&self, messages: u64) {
        self.progress.store(messages, Ordering::Relaxed);
    }

    /// One more message was given up.
    #[cold]
    pub fn lose(&self) {
        self.lost.store(self.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// A message for which there was no row took so many ticks.
    #[inline]
    pub fn beyond(&self, ticks: i64) {
        let count = &self.beyond[bin(ticks.max(0) as u64)];
        // There is one writer.
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Rows below this one are complete.
    #[inline(always)]
    pub fn used(&self, rows: u64) {
        self.used.store(rows, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_a_thirtysecond_of_its_value_wide() {
        for ticks in [0, 1, 63, 64, 65, 127, 128, 1000, 12_345, 999_999, 1 << 30, (1 << 35) - 1] {
            let middle = bin_middle(bin(ticks));
            let apart = (middle - ticks as f64).abs();
            assert!(apart <= (ticks as f64 / 64.0).max(0.0), "{ticks}: {middle}");
        }
        assert_eq!((bin(u64::MAX), bin((1 << 35) - 1)), (BINS - 1, BINS - 1));
        assert!((0..BINS - 1).all(|one| bin_middle(one) < bin_middle(one + 1)));
    }

    #[test]
    fn an_opened_arena_has_as_many_rows_as_it_was_created_with() {
        for rows in [0, 1, 100, 1000] {
            let created = Arena::create(rows).unwrap();
            assert_eq!(Arena::open(&created.path()).unwrap().capacity(), rows);
        }
    }

    #[test]
    fn no_process_can_resize_it_or_take_the_seals_away() {
        let created = Arena::create(100).unwrap();
        let other = File::options().read(true).write(true).open(created.path()).unwrap();
        for bytes in [0, 1, Arena::bytes_for(99), Arena::bytes_for(101)] {
            let error = other.set_len(bytes as u64).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{bytes}");
        }
        assert!(rustix::fs::fcntl_add_seals(&other, SealFlags::WRITE).is_err());
        assert_eq!(other.metadata().unwrap().len(), Arena::bytes_for(100) as u64);
    }

    #[test]
    fn memory_that_could_shrink_is_not_opened() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("unsealed", flags).unwrap();
        rustix::fs::ftruncate(&file, Arena::bytes_for(10) as u64).unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        assert!(Arena::open(&path).is_err(), "without seals");
        rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        assert!(Arena::open(&path).is_err(), "it may still shrink");
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert_eq!(Arena::open(&path).unwrap().capacity(), 10);
    }
}
