//! The registered memory of an end: slots for sending, then slots in which messages arrive.

use super::adapter::Adapter;
use super::foreign::{self, Foreign, Registered};
use super::memory_kind::MemoryKind;
use super::options::{self, OnDemand};
use super::resources::Registration;
use super::states::REMOTE_ACCESS;
use crate::transport::optional::LiveWord;
use crate::transport::{Result, SetupError, Slot};
use fabric_sys::verbs::types::*;
use memmap2::{MmapOptions, MmapRaw};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Slots begin on a cache line.
const LINE: usize = 64;
/// What a datagram's receive puts before the payload: the global routing header.
pub const GRH: usize = 40;

/// Where what lies.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Payload bytes of a message.
    pub size: usize,
    /// Slots for sending.
    pub sending: usize,
    /// Slots for arrivals.
    pub arriving: usize,
    /// From one sending slot to the next: the payload and the marker of a write.
    send_stride: usize,
    /// From one arrival to the next, which a writer must know.
    pub arrive_stride: usize,
    /// Where the slots for arrivals begin.
    arrivals_at: usize,
    /// Where the first payload of an arrival is: a cache line further where a header comes first.
    first_arrival_at: usize,
}

impl Layout {
    /// For messages of `size` bytes, with or without a header before an arrival.
    pub fn new(size: usize, sending: usize, arriving: usize, headed: bool) -> Layout {
        let arrive_offset = if headed { LINE } else { 0 };
        let send_stride = (size + 1).next_multiple_of(LINE);
        let arrive_stride = arrive_offset + send_stride;
        let arrivals_at = (sending * send_stride).next_multiple_of(4096);
        let first_arrival_at = arrivals_at + arrive_offset;
        Layout {
            size,
            sending,
            arriving,
            send_stride,
            arrive_stride,
            arrivals_at,
            first_arrival_at,
        }
    }

    /// What it takes at most: in huge pages.
    pub fn mapped_bytes(&self) -> usize {
        self.bytes().next_multiple_of(HUGE_PAGE)
    }

    fn bytes(&self) -> usize {
        self.arrivals_at + self.arriving * self.arrive_stride
    }

    /// Where a sending slot's payload begins.
    #[inline(always)]
    pub fn sending_at(&self, slot: usize) -> usize {
        slot * self.send_stride
    }

    /// Where an arrival's payload begins.
    #[inline(always)]
    pub fn arrival_at(&self, slot: usize) -> usize {
        self.first_arrival_at + slot * self.arrive_stride
    }

    /// Where a slot's payload begins.
    #[inline(always)]
    pub fn at(&self, slot: Slot) -> usize {
        match slot.has_arrived() {
            true => self.arrival_at(slot.number()),
            false => self.sending_at(slot.number()),
        }
    }
}

/// The size of a huge page that is asked for: the smallest on x86-64 and most of arm64.
const HUGE_PAGE: usize = 2 << 20;

/// Anonymous memory, of which every page is touched before the first message.
fn map(bytes: usize, huge_pages: bool) -> Result<MmapRaw> {
    let mut options = MmapOptions::new();
    options.populate().len(bytes);
    if huge_pages {
        options.len(bytes.next_multiple_of(HUGE_PAGE)).huge(Some(HUGE_PAGE.ilog2() as u8));
    }
    options.map_anon().map(MmapRaw::from).map_err(|error| match huge_pages {
        true => SetupError::NotAllowed(format!(
            "--huge-pages needs {} free huge pages of 2 MiB ({error}); reserve them with `sysctl \
             vm.nr_hugepages=N`",
            bytes.div_ceil(HUGE_PAGE)
        )),
        false => SetupError::system(format!("mapping {bytes} B of memory"))(error),
    })
}

/// Memory that the adapter reads and writes.
pub struct Memory {
    // Dropped in this order: the adapter first.
    pub registration: Registration,
    /// Who keeps registered memory that is not this host's: the mapping is not registered then, and
    /// takes what is written of payloads that nobody reads.
    foreign: Option<Foreign>,
    mapping: Arc<MmapRaw>,
    /// Where the mapping begins, and its length: what a message needs, without the way there.
    base: *mut u8,
    length: usize,
    /// Where the registered memory begins for work requests.
    address: u64,
    /// The function that has registered it.
    pub way: &'static str,
    /// Where what lies in it.
    pub layout: Layout,
}

impl Memory {
    /// Maps, touches and registers it.
    pub fn new(adapter: &Adapter, layout: Layout, kind: MemoryKind) -> Result<Memory> {
        let mapping = Arc::new(map(layout.bytes(), adapter.settings.flag("huge-pages"))?);
        let mut access = IBV_ACCESS_LOCAL_WRITE | REMOTE_ACCESS;
        if adapter.settings.flag("relaxed-ordering") {
            access |= IBV_ACCESS_RELAXED_ORDERING;
        }
        let (mut at, mut bytes) = (mapping.as_mut_ptr(), mapping.len());
        if let Some(paging) = options::on_demand(&adapter.settings) {
            adapter.check_on_demand(paging)?;
            access |= IBV_ACCESS_ON_DEMAND;
            if paging == OnDemand::Implicit {
                // All of the address space, as ibv_reg_mr(3) has it.
                (at, bytes) = (std::ptr::null_mut(), usize::MAX);
            }
        }
        let (base, length) = (mapping.as_mut_ptr(), mapping.len());
        let (registration, foreign, address, way) = match kind {
            MemoryKind::Host => {
                // SAFETY: the registration goes before the mapping.
                let made = unsafe { adapter.domain.register(at, bytes, access as i32)? };
                (made, None, base as u64, "ibv_reg_mr")
            }
            _ => {
                let made = foreign::register(adapter, kind, layout.bytes(), access)?;
                let Registered { registration, keeper, address, way } = made;
                (registration, Some(keeper), address, way)
            }
        };
        Ok(Memory { registration, foreign, mapping, base, length, address, way, layout })
    }

    /// The address of a place, as work requests want it.
    #[inline(always)]
    pub fn address(&self, at: usize) -> u64 {
        debug_assert!(at < self.length);
        self.address + at as u64
    }

    /// The bytes of a place.
    #[inline(always)]
    pub fn bytes(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(at + length <= self.length);
        // SAFETY: the range lies in the mapping, of which only `&mut self` gives slices. The
        // adapter writes to a slot only while it is posted to it, when no one looks at the slot.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at), length) }
    }

    /// Eight bytes that may be written while they are posted.
    pub fn live(&self, at: usize) -> Option<LiveWord> {
        let is_read = self.foreign.is_none() && at + 8 <= self.mapping.len();
        let (fits, mapping) = (is_read && at.is_multiple_of(8), &self.mapping);
        let mapping = fits.then(|| Arc::clone(mapping))?;
        Some(Box::new(move |value| {
            // SAFETY: the word lies in the mapping, aligned, as has been seen; the mapping is kept
            // alive; whoever writes it sees to it that nobody else looks at these bytes meanwhile.
            let word = unsafe { AtomicU64::from_ptr(mapping.as_mut_ptr().add(at).cast()) };
            word.store(value.to_le(), Ordering::Relaxed);
        }))
    }

    /// Reads one byte that the other end's adapter may be writing.
    #[inline(always)]
    pub fn byte_now(&self, at: usize) -> u8 {
        assert!(at < self.length);
        // SAFETY: inside the mapping; an atomic of one byte has no alignment.
        let byte = unsafe { AtomicU8::from_ptr(self.base.add(at)) };
        // Acquire: what was written before it is read after it.
        byte.load(Ordering::Acquire)
    }
}

/// A place in a ring of slots that are used in turn. Counted, since a division by a number that
/// only the other end knows costs as much as ten stores.
#[derive(Clone, Copy)]
pub struct Lap {
    pub slot: u64,
    /// What stands behind the payload of a write in this lap.
    pub marker: u8,
}

impl Lap {
    /// Where message `number` is.
    pub fn of(number: u64, slots: u64) -> Lap {
        Lap { slot: number % slots, marker: marker(number / slots) }
    }

    /// Goes on to the next slot.
    #[inline(always)]
    pub fn advance(&mut self, slots: u64) {
        self.slot += 1;
        if self.slot >= slots {
            // As `marker` of the next lap.
            *self = Lap { slot: 0, marker: if self.marker == 255 { 1 } else { self.marker + 1 } };
        }
    }
}

/// What stands behind the payload of a write, for the other end to see that it has come: another in
/// each lap, and never what fresh memory holds.
#[inline(always)]
fn marker(lap: u64) -> u8 {
    (lap % 255) as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_overlap_and_a_header_keeps_out_of_the_payload() {
        for (size, headed) in [(1, false), (8, true), (63, false), (64, true), (4096, true)] {
            let layout = Layout::new(size, 3, 4, headed);
            assert!(layout.sending_at(1) - layout.sending_at(0) > size);
            assert!(layout.sending_at(2) + size < layout.arrival_at(0));
            assert!(layout.arrival_at(1) - layout.arrival_at(0) > size);
            let header = if headed { GRH } else { 0 };
            assert!(layout.arrival_at(0) - header >= layout.sending_at(2) + size);
            assert!(layout.arrival_at(1) - header > layout.arrival_at(0) + size);
            assert!(layout.arrival_at(3) + size < layout.bytes());
            assert_eq!(layout.arrival_at(1) % LINE, 0);
        }
    }
}
