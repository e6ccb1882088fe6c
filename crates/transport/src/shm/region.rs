//! The shared memory itself: an anonymous file that the server makes and the client opens through
//! `/proc`. It has no name, so nothing is left of it, whatever dies first.

use super::ring::{INLINE, Memory};
use crate::{Result, Setup, SetupError, Traffic};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of the number that a loop writes in front of a message.
const FRONT: usize = 8;
/// A cache line; also the alignment of cells whose messages are answered.
const LINE: usize = 64;
/// The shortest cell of a stream: a header and 8 B of payload.
const GRAIN: usize = 16;
/// The shortest cells that a line has.
const CELLS_OF_LINE: u64 = (LINE / GRAIN) as u64;
/// Cells of this size and more are aligned to lines: what the last line has free is then small.
const LINES: usize = 1024;
/// Lines of a message that are fetched while its header is awaited: to 256 B. Messages of 1 KiB
/// took 7 % longer with it, since the sender has to take back a line that is fetched too early.
const LINES_FETCHED: usize = 5;
/// Two lines apart, since adjacent-line prefetch would couple words one line apart.
const APART: usize = 2 * LINE;
/// The words before the rings: taken x 2, doorbell x 2.
const HEADER: usize = 4096;

/// Seals of memory whose size stays: any process of this user can open it through `/proc`
/// (memfd_create(2)).
const OF_FIXED_SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

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
        match setup.traffic {
            Traffic::Echo { .. } => {}
            Traffic::Forward => return Self::of_stream(setup.size),
            // An end that sends and polls in turns takes messages one by one as they come: a line
            // with several would change hands for each.
            Traffic::Both | Traffic::OneSided | Traffic::Collective => {
                return Self::of_grain(setup.size, LINE);
            }
        }
        let window = 2 * u64::from(setup.window).next_power_of_two();
        let most = window.clamp(Self::FEWEST_CELLS, Self::MOST_CELLS);
        // Cells apart: who reads an answer must not get the line along that is written next.
        let stride = (size_of::<u64>() + setup.size).next_multiple_of(APART);
        Layout { cells: Self::cells_of(setup.size, most), stride }
    }

    /// For a stream of messages of at most `size` bytes. Close together: the time of a stream of
    /// short messages is that of the cache lines that change hands.
    pub fn of_stream(size: usize) -> Layout {
        let bytes = (size_of::<u64>() + size).next_multiple_of(GRAIN);
        Self::of_grain(size, if bytes < LINES { GRAIN } else { LINE })
    }

    /// As many cells as there may be, each a multiple of `grain`.
    fn of_grain(size: usize, grain: usize) -> Layout {
        let stride = (size_of::<u64>() + size).next_multiple_of(grain);
        Layout { cells: Self::cells_of(size, Self::MOST_CELLS), stride }
    }

    /// How many cells for messages of at most `size` bytes: at most `most`, a power of two.
    fn cells_of(size: usize, most: u64) -> u64 {
        let stride = (size_of::<u64>() + size.max(INLINE)).next_multiple_of(LINE);
        let fit = (Self::RING_BYTES / stride) as u64;
        fit.clamp(Self::FEWEST_CELLS, most).next_power_of_two()
    }

    fn ring_bytes(self) -> usize {
        self.cells as usize * self.stride
    }

    /// Returns the bytes of the region: both rings, and the words before them.
    pub fn total_bytes(self) -> usize {
        HEADER + 2 * self.ring_bytes()
    }
}

/// A mapping of the shared memory. Unmapped with its last user.
pub struct Region {
    mapping: MmapRaw,
    /// How its rings are laid out.
    pub layout: Layout,
    /// Of the end that made it: the other opens it by this descriptor's number.
    file: Option<OwnedFd>,
}

impl Region {
    /// Makes it.
    pub fn create(layout: Layout) -> Result<Arc<Region>> {
        let failed = || SetupError::system("making the shared memory".to_string());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("wiregauge-ring", flags).map_err(failed())?;
        let bytes = layout.total_bytes() as u64;
        rustix::fs::ftruncate(&file, bytes).map_err(failed())?;
        // A size alone is a promise: where memory is short its first touch would be a SIGBUS.
        let all = || rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes);
        rustix::io::retry_on_intr(all).map_err(failed())?;
        // A process of this user that resized it would end both ends by SIGBUS.
        let seals = OF_FIXED_SIZE | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(failed())?;
        let region = Self::map(&file, layout)?;
        Ok(Arc::new(Region { file: Some(file), ..region }))
    }

    /// Where another process of this user can open it, as long as this end has it.
    pub fn path(&self) -> String {
        let number = self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        // Of the thread, whose descriptors may not be those of its process.
        format!("/proc/{}/fd/{number}", rustix::thread::gettid())
    }

    /// Maps what the other end has made.
    pub fn adopt(path: &str, layout: Layout) -> Result<Arc<Region>> {
        // It comes from the other end, and opening any other file could have effects.
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        let parts = path.strip_prefix("/proc/").and_then(|rest| rest.split_once("/fd/"));
        let is_descriptor = parts.is_some_and(|(pid, fd)| is_number(pid) && is_number(fd));
        ensure!(is_descriptor, SetupError::Address);
        let failed = || SetupError::system(format!("opening the shared memory {path}"));
        let file = File::options().read(true).write(true).open(path).map_err(failed())?;
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if !seals.contains(OF_FIXED_SIZE) {
            return Err(SetupError::Refused(format!(
                "the shared memory {path} can be resized, so it is not what the other end makes"
            )));
        }
        let size = file.metadata().map_err(failed())?.len() as usize;
        if size != layout.total_bytes() {
            return Err(SetupError::Refused(format!(
                "the shared memory {path} has {size} B, and both ends must have agreed on {} B",
                layout.total_bytes()
            )));
        }
        Ok(Arc::new(Self::map(&file.into(), layout)?))
    }

    /// Every page is touched before the first message.
    fn map(file: &OwnedFd, layout: Layout) -> Result<Region> {
        let mapping = MmapOptions::new().len(layout.total_bytes()).populate().map_raw(file);
        let what = "mapping the shared memory".to_string();
        let mapping = mapping.map_err(SetupError::system(what))?;
        Ok(Region { mapping, layout, file: None })
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

/// One of the two rings of a region.
pub struct Ring {
    cells: Cells,
    /// Keeps the mapping, and with it the cells.
    _region: Arc<Region>,
}

/// Where the cells of a ring are, apart from what keeps them mapped: small enough for registers.
#[derive(Clone, Copy)]
struct Cells {
    base: *mut u8,
    taken: *const AtomicU64,
    layout: Layout,
}

// SAFETY: a Ring has pointers into a mapping that it keeps alive; the ring's protocol hands each
// cell to one side at a time, whichever thread of this process that side is.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring that carries from client to server (0) or back (1).
    pub fn of(region: &Arc<Region>, side: usize) -> Ring {
        let layout = region.layout;
        let at = HEADER + side * layout.ring_bytes();
        // SAFETY: HEADER + 2 rings is the size of the mapping, and side is 0 or 1.
        let base = unsafe { region.mapping.as_mut_ptr().add(at) };
        let taken = region.word(side).cast::<AtomicU64>();
        Ring { cells: Cells { base, taken, layout }, _region: Arc::clone(region) }
    }
}

impl Cells {
    #[inline(always)]
    fn cell(&self, cell: u64) -> *mut u8 {
        debug_assert!(cell < self.layout.cells);
        // SAFETY: the ring's protocol masks cell to below the number of cells, all of which lie in
        // the mapping that the Ring keeps alive.
        unsafe { self.base.add(cell as usize * self.layout.stride) }
    }
}

impl Memory for Cells {
    #[inline(always)]
    fn cells(&self) -> u64 {
        self.layout.cells
    }

    #[inline(always)]
    fn header(&self, cell: u64) -> &AtomicU64 {
        // SAFETY: a cell begins with its header, aligned to GRAIN and used as an atomic only.
        unsafe { &*self.cell(cell).cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn taken(&self) -> &AtomicU64 {
        // SAFETY: as for the doorbells.
        unsafe { &*self.taken }
    }

    #[inline(always)]
    fn write(&self, cell: u64, message: &[u8]) {
        assert!(message.len() + size_of::<u64>() <= self.layout.stride);
        // SAFETY: the assertion keeps the copy inside the cell, which the protocol has given to
        // this producer alone until it publishes the header; private and shared memory are apart.
        unsafe {
            let to = self.cell(cell).add(size_of::<u64>());
            match message.len().checked_sub(FRONT) {
                // A copy that loads the number, which was just stored, together with what follows
                // it would wait until that store has left the core, behind all stores into cells
                // that the other end has (half of the rate at 64 B).
                Some(rest) if rest > 0 => {
                    copy(message.as_ptr(), to, FRONT);
                    copy_any(message.as_ptr().add(FRONT), to.add(FRONT), rest);
                }
                _ => copy(message.as_ptr(), to, message.len()),
            }
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

    /// Only of the shortest cells: 64 of them are 16 lines, as many as a core of today fetches at
    /// once. Of longer cells it took time instead (a third of the rate at 64 B a cell).
    #[inline(always)]
    fn fetch(&self, first: u64, cells: u64) {
        if self.layout.stride == GRAIN {
            for line in 0..cells / CELLS_OF_LINE {
                prefetch(self.cell((first + line * CELLS_OF_LINE) & (self.layout.cells - 1)));
            }
        }
    }

    #[inline(always)]
    fn fetch_payload(&self, cell: u64, length: usize) {
        let lines = (size_of::<u64>() + length).div_ceil(LINE);
        if lines <= LINES_FETCHED {
            for line in 1..lines {
                prefetch(self.cell(cell).wrapping_add(line * LINE));
            }
        }
    }
}

impl Memory for Ring {
    #[inline(always)]
    fn cells(&self) -> u64 {
        self.cells.cells()
    }

    #[inline(always)]
    fn header(&self, cell: u64) -> &AtomicU64 {
        self.cells.header(cell)
    }

    #[inline(always)]
    fn taken(&self) -> &AtomicU64 {
        self.cells.taken()
    }

    #[inline(always)]
    fn write(&self, cell: u64, message: &[u8]) {
        self.cells.write(cell, message);
    }

    #[inline(always)]
    fn read(&self, cell: u64, message: &mut [u8]) {
        self.cells.read(cell, message);
    }

    #[inline(always)]
    fn fetch(&self, first: u64, cells: u64) {
        self.cells.fetch(first, cells);
    }

    #[inline(always)]
    fn fetch_payload(&self, cell: u64, length: usize) {
        self.cells.fetch_payload(cell, length);
    }

    // The Ring is borrowed by what it returns, so the mapping stays.
    #[inline(always)]
    fn in_registers(&self) -> impl Memory + '_ {
        self.cells
    }
}

/// Has the processor fetch the line of this address, where it can be asked to.
#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 changes no memory and does not fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
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

/// Copies; the sizes that benchmarks ask for most often, and those without the number in front,
/// without a further call.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(never)]
unsafe fn copy_any(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match length {
            8 => std::ptr::copy_nonoverlapping(from, to, 8),
            16 => std::ptr::copy_nonoverlapping(from, to, 16),
            24 => std::ptr::copy_nonoverlapping(from, to, 24),
            32 => std::ptr::copy_nonoverlapping(from, to, 32),
            56 => std::ptr::copy_nonoverlapping(from, to, 56),
            64 => std::ptr::copy_nonoverlapping(from, to, 64),
            _ => std::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_no_name_and_is_opened_by_its_descriptor() {
        let layout = Layout::of_stream(64);
        let before = std::fs::read_dir("/dev/shm").map(Iterator::count).ok();
        let made = Region::create(layout).unwrap();
        assert_eq!(std::fs::read_dir("/dev/shm").map(Iterator::count).ok(), before);
        let adopted = Region::adopt(&made.path(), layout).unwrap();
        made.doorbell(0).store(7, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(adopted.doorbell(0).load(std::sync::atomic::Ordering::Relaxed), 7);
        let path = made.path();
        drop(made);
        assert!(Region::adopt(&path, layout).is_err());
    }

    #[test]
    fn no_process_can_resize_it_and_what_can_be_resized_is_refused() {
        let layout = Layout::of_stream(64);
        let made = Region::create(layout).unwrap();
        let other = File::options().read(true).write(true).open(made.path()).unwrap();
        for bytes in [0, layout.total_bytes() - 1, layout.total_bytes() + 1] {
            let error = other.set_len(bytes as u64).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{bytes}");
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let unsealed = rustix::fs::memfd_create("unsealed", flags).unwrap();
        rustix::fs::ftruncate(&unsealed, layout.total_bytes() as u64).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), unsealed.as_raw_fd());
        assert!(matches!(Region::adopt(&path, layout), Err(SetupError::Refused(_))));
    }

    #[test]
    fn no_other_file_is_opened() {
        let layout = Layout::of_stream(64);
        for path in ["/dev/zero", "/proc/self/fd/0", "/proc/1/fd/x", "/proc/1/fd/../mem", ""] {
            assert!(matches!(Region::adopt(path, layout), Err(SetupError::Address)), "{path}");
        }
    }
}
