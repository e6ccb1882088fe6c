//! The shared memory itself: made by the server under a random name, mapped by both, its name
//! removed as soon as both have it.

use super::ring::{INLINE, Memory};
use crate::transport::{Result, Setup, SetupError};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use rustix::shm::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A cache line; also the alignment of cells.
const LINE: usize = 64;
/// Two lines apart, since adjacent-line prefetch would couple words one line apart.
const APART: usize = 2 * LINE;
/// The words before the rings: taken x 2, doorbell x 2.
const HEADER: usize = 4096;

/// The sizes that both ends derive from the same setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Cells of each ring.
    pub cells: u64,
    /// Bytes of a cell.
    pub stride: usize,
}

impl Layout {
    /// Memory of one ring: half of a small L2 cache, so that a cell is handed over between caches
    /// and not through memory.
    const RING_BYTES: usize = 512 << 10;
    /// More cells gain nothing: a ring of small messages is to stay in half of an L1 cache.
    pub const MOST_CELLS: u64 = 256;
    /// Fewer would make sender and receiver take turns.
    const FEWEST_CELLS: u64 = 8;

    /// For the traffic of a set-up.
    pub fn of(setup: &Setup) -> Layout {
        let window = 2 * u64::from(setup.window).next_power_of_two();
        let most = setup.traffic.answered_every().map_or(Self::MOST_CELLS, |_| window);
        Self::for_size(setup.size, most.clamp(Self::FEWEST_CELLS, Self::MOST_CELLS))
    }

    /// For messages of at most `size` bytes, in at most `most` cells (a power of two).
    pub fn for_size(size: usize, most: u64) -> Layout {
        let stride = (size_of::<u64>() + size.max(INLINE)).next_multiple_of(LINE);
        let fit = (Self::RING_BYTES / stride) as u64;
        let cells = fit.clamp(Self::FEWEST_CELLS, most).next_power_of_two();
        Layout { cells, stride }
    }

    fn ring_bytes(self) -> usize {
        self.cells as usize * self.stride
    }

    fn total_bytes(self) -> usize {
        HEADER + 2 * self.ring_bytes()
    }
}

/// A mapping of the shared memory. Unmapped with its last user.
pub struct Region {
    mapping: MmapRaw,
    /// How its rings are laid out.
    pub layout: Layout,
    /// Of the end that made it.
    _name: Option<Name>,
}

/// The name of memory, which is removed when its maker goes, whoever has mapped it by then: the
/// memory stays with those that have it.
struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        let _ = rustix::shm::unlink(&self.0);
    }
}

impl Region {
    /// Makes it under this name.
    pub fn create(name: &str, layout: Layout) -> Result<Arc<Region>> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        let failed = || SetupError::system(format!("making the shared memory /dev/shm{name}"));
        let file = rustix::shm::open(name, flags, Mode::RUSR | Mode::WUSR).map_err(failed())?;
        let name = Name(name.to_owned());
        let bytes = layout.total_bytes() as u64;
        rustix::fs::ftruncate(&file, bytes).map_err(failed())?;
        // A size alone is a promise: where /dev/shm is full its first touch would be a SIGBUS.
        let all = || rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes);
        rustix::io::retry_on_intr(all).map_err(failed())?;
        let region = Self::map(&name.0, &file, layout)?;
        Ok(Arc::new(Region { _name: Some(name), ..region }))
    }

    /// Maps what the other end has made under this name, and removes the name.
    pub fn adopt(name: &str, layout: Layout) -> Result<Arc<Region>> {
        let failed = || SetupError::system(format!("opening the shared memory {name}"));
        let file = rustix::shm::open(name, OFlags::RDWR, Mode::empty()).map_err(failed())?;
        let size = rustix::fs::fstat(&file).map_err(failed())?.st_size as usize;
        if size != layout.total_bytes() {
            return Err(SetupError::Refused(format!(
                "the shared memory {name} has {size} B, and both ends must have agreed on {} B",
                layout.total_bytes()
            )));
        }
        let region = Self::map(name, &file, layout)?;
        drop(Name(name.to_owned()));
        Ok(Arc::new(region))
    }

    /// Every page is touched before the first message.
    fn map(name: &str, file: &OwnedFd, layout: Layout) -> Result<Region> {
        let mapping = MmapOptions::new().len(layout.total_bytes()).populate().map_raw(file);
        let what = format!("mapping the shared memory {name}");
        let mapping = mapping.map_err(SetupError::system(what))?;
        Ok(Region { mapping, layout, _name: None })
    }

    fn word(&self, number: usize) -> *mut u8 {
        debug_assert!((number + 1) * APART <= HEADER);
        // SAFETY: the mapping has HEADER bytes of words before the rings, and number is below 4.
        unsafe { self.mapping.as_mut_ptr().add(number * APART) }
    }

    /// The futex word where the client (0) or the server (1) sleeps.
    pub fn doorbell(&self, side: usize) -> &AtomicU32 {
        // SAFETY: the word is inside the mapping, aligned to a line, zero at first, and used by
        // both processes as an atomic only.
        unsafe { &*self.word(2 + side).cast::<AtomicU32>() }
    }
}

/// One of the two rings of a region. The base of its cells is kept, for the hot path's sake.
pub struct Ring {
    region: Arc<Region>,
    cells: *mut u8,
    side: usize,
    layout: Layout,
}

// SAFETY: a Ring is a pointer into a mapping that it keeps alive; the ring's protocol hands each
// cell to one side at a time, whichever thread of this process that side is.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring that carries from client to server (0) or back (1).
    pub fn of(region: &Arc<Region>, side: usize) -> Ring {
        let at = HEADER + side * region.layout.ring_bytes();
        // SAFETY: HEADER + 2 rings is the size of the mapping, and side is 0 or 1.
        let cells = unsafe { region.mapping.as_mut_ptr().add(at) };
        Ring { region: Arc::clone(region), cells, side, layout: region.layout }
    }

    #[inline(always)]
    fn cell(&self, cell: u64) -> *mut u8 {
        debug_assert!(cell < self.layout.cells);
        // SAFETY: the ring's protocol masks cell to below the number of cells, all of which lie in
        // the mapping that `region` keeps alive.
        unsafe { self.cells.add(cell as usize * self.layout.stride) }
    }
}

impl Memory for Ring {
    #[inline(always)]
    fn cells(&self) -> u64 {
        self.layout.cells
    }

    #[inline(always)]
    fn header(&self, cell: u64) -> &AtomicU64 {
        // SAFETY: a cell begins on a cache line with its header, used as an atomic only.
        unsafe { &*self.cell(cell).cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn taken(&self) -> &AtomicU64 {
        // SAFETY: as for the doorbells.
        unsafe { &*self.region.word(self.side).cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn write(&self, cell: u64, message: &[u8]) {
        assert!(message.len() + size_of::<u64>() <= self.layout.stride);
        // SAFETY: the assertion keeps the copy inside the cell, which the protocol has given to
        // this producer alone until it publishes the header; private and shared memory are apart.
        unsafe {
            let to = self.cell(cell).add(size_of::<u64>());
            copy(message.as_ptr(), to, message.len());
        }
    }

    #[inline(always)]
    fn read(&self, cell: u64, message: &mut [u8]) {
        assert!(message.len() + size_of::<u64>() <= self.layout.stride);
        // SAFETY: the assertion keeps the copy inside the cell, which the published header has
        // given to this consumer alone until it publishes; private and shared memory are apart.
        unsafe {
            let from = self.cell(cell).add(size_of::<u64>());
            copy(from, message.as_mut_ptr(), message.len());
        }
    }
}

/// Copies; the size that a message rate is asked for, in line and alone: what stands in line beside
/// it would take the registers of the loops around.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        if length == 8 {
            std::ptr::copy_nonoverlapping(from, to, 8);
        } else {
            copy_any(from, to, length);
        }
    }
}

/// Copies; the sizes that benchmarks ask for most often without a further call.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(never)]
unsafe fn copy_any(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match length {
            16 => std::ptr::copy_nonoverlapping(from, to, 16),
            32 => std::ptr::copy_nonoverlapping(from, to, 32),
            64 => std::ptr::copy_nonoverlapping(from, to, 64),
            _ => std::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}
