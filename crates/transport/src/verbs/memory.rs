//! The registered memory of an end: slots for sending, then slots in which messages arrive.

use super::adapter::Adapter;
use super::foreign::{self, Foreign, Registered};
use super::memory_kind::MemoryKind;
use super::options::{self, OnDemand};
use super::resources::Registration;
use super::states::REMOTE_ACCESS;
use crate::optional::LiveWord;
use crate::{Result, Role, SetupError, Slot};
use fabric_sys::verbs::types::*;
use memmap2::{MmapOptions, MmapRaw};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Slots begin on a cache line.
pub const LINE: usize = 64;
/// What a datagram's receive puts before the payload: the global routing header.
pub const GRH: usize = 40;
/// What the words take that the ends tell each other: a line each, since each end writes one.
const WORDS: usize = 2 * LINE;

/// Where what lies.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Payload bytes of a message.
    pub size: usize,
    /// Slots for sending.
    pub sending: usize,
    /// Slots for arrivals.
    pub arriving: usize,
    /// From one sending slot to the next: the payload and the marker of a write. As `arrive_stride`
    /// nothing where all are in one place.
    send_stride: usize,
    /// From one arrival to the next, which a writer must know.
    pub arrive_stride: usize,
    /// Where the slots for arrivals begin.
    arrivals_at: usize,
    /// Where the first payload of an arrival is: a cache line further where a header comes first.
    first_arrival_at: usize,
    /// Where the words are that the ends tell each other beside the messages, if they do.
    pub words_at: Option<usize>,
    bytes: usize,
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
            words_at: None,
            bytes: arrivals_at + arriving * arrive_stride,
        }
    }

    /// The same with words behind the slots.
    pub fn with_words(self) -> Layout {
        Layout { words_at: Some(self.bytes), bytes: self.bytes + WORDS, ..self }
    }

    /// The same with all sending slots in one place, and all arrivals in another.
    pub fn in_one_buffer(self) -> Layout {
        let one = Layout::new(self.size, 1, 1, self.first_arrival_at > self.arrivals_at);
        let Layout { sending, arriving, .. } = self;
        Layout { sending, arriving, send_stride: 0, arrive_stride: 0, ..one }
    }

    /// What it takes at most: in huge pages.
    pub fn mapped_bytes(&self) -> usize {
        self.bytes.next_multiple_of(HUGE_PAGE)
    }

    /// Returns the bytes that it takes: whole pages.
    pub fn touched_bytes(&self, huge_pages: bool) -> usize {
        self.bytes.next_multiple_of(if huge_pages { HUGE_PAGE } else { PAGE })
    }

    /// That of one of `parts` ends that share the arrivals and have as many sending slots each,
    /// from where its own begin; how many bytes that is further on.
    fn part(&self, number: usize, parts: usize) -> (Layout, usize) {
        let sending = self.sending / parts.max(1);
        let before = number * sending * self.send_stride;
        let layout = Layout {
            sending,
            arrivals_at: self.arrivals_at - before,
            first_arrival_at: self.first_arrival_at - before,
            ..*self
        };
        (layout, before)
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

    /// The slots for arrivals in turn.
    pub fn arrivals(&self) -> Ring {
        let [first, stride, slots] = [self.first_arrival_at, self.arrive_stride, self.arriving];
        Ring::new(first as u64, stride as u64, slots as u64)
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

/// The smallest page of any host.
const PAGE: usize = 4096;
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
    pub registration: Arc<Registration>,
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
        let mapping = Arc::new(map(layout.bytes, adapter.settings.flag("huge-pages"))?);
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
                let made = foreign::register(adapter, kind, layout.bytes, access)?;
                let Registered { registration, keeper, address, way } = made;
                (registration, Some(keeper), address, way)
            }
        };
        let registration = Arc::new(registration);
        Ok(Memory { registration, foreign, mapping, base, length, address, way, layout })
    }

    /// The part of one of `parts` ends that share this host memory: sending slots of its own, and
    /// the arrivals of all, each of which belongs to the end to which its completion came until
    /// that end gives it back.
    pub fn part(&self, number: usize, parts: usize) -> Memory {
        let (layout, before) = self.layout.part(number, parts);
        Memory {
            registration: Arc::clone(&self.registration),
            foreign: None,
            mapping: Arc::clone(&self.mapping),
            base: self.base.wrapping_add(before),
            length: self.length.saturating_sub(before),
            address: self.address + before as u64,
            way: self.way,
            layout,
        }
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
        // SAFETY: the range lies in the mapping, of which only `&mut self` gives slices. Of memory
        // that ends share each has its own sending slots, and an arrival is looked at by the end to
        // which it came alone. The adapter writes to a slot only while it is posted to it, when no
        // one looks at the slot.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at), length) }
    }

    /// Eight bytes that may be written while they are posted.
    pub fn live(&self, at: usize) -> Option<LiveWord> {
        let is_read = self.foreign.is_none() && at + 8 <= self.length;
        let at = at + (self.base.addr() - self.mapping.as_mut_ptr().addr());
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

    /// Reads a word that the other end's adapter may be writing. It is aligned, and adapters write
    /// a cache line at once, as all assume who poll for a word.
    #[inline(always)]
    pub fn word_now(&self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length);
        // SAFETY: inside the mapping, which begins on a page, and on a multiple of eight.
        let word = unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) };
        // Acquire: what the other end has given back is written after it.
        u64::from_le(word.load(Ordering::Acquire))
    }
}

/// Markers of an end: half of the bytes that fresh memory does not hold.
const MARKERS: u8 = 127;

/// The next slot of a ring that is used in turn. Counted, since a division or a multiplication by
/// numbers that only the other end knows costs more than all the rest.
#[derive(Clone, Copy, Default)]
pub struct Ring {
    /// Where the slot begins.
    pub at: u64,
    /// What stands behind the payload of a write in this lap, for the other end to see that it has
    /// come: another in each lap, and never what fresh memory holds.
    pub marker: u8,
    /// Before the first of the markers.
    before_markers: u8,
    /// Slots to the end of the lap, this one included.
    left: u64,
    lap: u64,
    /// Where the first slot begins, from one to the next, and how many there are.
    first: u64,
    stride: u64,
    slots: u64,
}

impl Ring {
    /// A ring of slots whose first begins at `first`.
    pub fn new(first: u64, stride: u64, slots: u64) -> Ring {
        let ring = Ring { first, stride, slots: slots.max(1), ..Ring::default() };
        ring.of(0)
    }

    /// The same of messages that this end of the connection writes. Each end has markers of its
    /// own: an answer is sent from the slot of what it answers, whose marker then is the writer's.
    pub fn written_by(self, role: Role) -> Ring {
        Ring { before_markers: role.pick(0, MARKERS), ..self }.of(self.number())
    }

    /// The same at message `number`.
    pub fn of(mut self, number: u64) -> Ring {
        let slot = number % self.slots;
        (self.lap, self.left) = (number / self.slots, self.slots - slot);
        self.at = self.place(slot);
        self.marker = self.before_markers + (self.lap % u64::from(MARKERS)) as u8 + 1;
        self
    }

    /// The number of the slot.
    #[inline(always)]
    pub fn slot(&self) -> u64 {
        self.slots - self.left
    }

    /// How many slots there are.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The number of the message.
    pub fn number(&self) -> u64 {
        self.lap * self.slots + self.slot()
    }

    /// Goes on to the next slot.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.at = self.at.wrapping_add(self.stride);
        self.left -= 1;
        if self.left == 0 {
            self.begin_lap();
        }
    }

    /// Wrapping: an address of the other end is checked by the adapter that it is used at.
    fn place(&self, slot: u64) -> u64 {
        self.first.wrapping_add(slot.wrapping_mul(self.stride))
    }

    /// As `of`, without its divisions.
    #[inline(always)]
    fn begin_lap(&mut self) {
        self.lap += 1;
        (self.at, self.left) = (self.first, self.slots);
        let is_last = self.marker == self.before_markers + MARKERS;
        self.marker = if is_last { self.before_markers } else { self.marker } + 1;
    }
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
            assert!(layout.arrival_at(3) + size < layout.bytes);
            assert_eq!(layout.arrival_at(1) % LINE, 0);
        }
    }

    #[test]
    fn words_lie_behind_all_slots_on_lines_of_their_own() {
        for (size, slots) in [(1, 1), (64, 3), (4096, 5)] {
            let layout = Layout::new(size, 2, slots, false).with_words();
            let at = layout.words_at.unwrap();
            assert!(at.is_multiple_of(LINE) && at + 2 * LINE == layout.bytes);
            assert!(layout.arrival_at(slots - 1) + size < at, "behind the last marker");
        }
    }

    #[test]
    fn one_buffer_has_all_slots_in_one_place_and_takes_no_more_than_one_of_each() {
        for headed in [false, true] {
            let layout = Layout::new(4096, 128, 512, headed).in_one_buffer();
            assert_eq!((layout.sending_at(127), layout.sending), (layout.sending_at(0), 128));
            assert_eq!((layout.arrival_at(511), layout.arriving), (layout.arrival_at(0), 512));
            assert!(layout.sending_at(0) + 4096 < layout.arrival_at(0));
            assert!((layout.arrival_at(0) + 4096..5 * 4096).contains(&layout.bytes));
        }
    }

    #[test]
    fn ends_that_share_arrivals_have_sending_slots_of_their_own() {
        let whole = Layout::new(100, 3 * 4, 5, true);
        for number in 0..3 {
            let (part, before) = whole.part(number, 3);
            assert_eq!(part.sending, 4);
            for slot in 0..4 {
                assert_eq!(before + part.sending_at(slot), whole.sending_at(4 * number + slot));
            }
            for slot in 0..5 {
                assert_eq!(before + part.arrival_at(slot), whole.arrival_at(slot));
            }
        }
    }

    #[test]
    fn a_ring_counted_on_is_where_a_division_says() {
        for slots in [1, 2, 3, 16] {
            let begin = Ring::new(4096, 128, slots);
            let mut counted = begin;
            for number in 0..600 * slots {
                let (at, marker) = (4096 + number % slots * 128, (number / slots % 127) as u8 + 1);
                for ring in [counted, begin.of(number)] {
                    assert_eq!((ring.at, ring.marker), (at, marker), "{number} of {slots}");
                    assert_eq!((ring.slot(), ring.number()), (number % slots, number));
                }
                counted.advance();
            }
        }
    }

    #[test]
    fn no_marker_of_an_end_is_one_of_the_other_or_of_fresh_memory() {
        let of = |role| {
            let mut ring = Ring::new(0, 64, 1).written_by(role);
            let next = |_| {
                ring.advance();
                assert_eq!(ring.marker, ring.of(ring.number()).marker);
                ring.marker
            };
            (0..300).map(next).collect::<std::collections::BTreeSet<u8>>()
        };
        let (client, server) = (of(Role::Client), of(Role::Server));
        assert!(client.is_disjoint(&server) && !client.contains(&0) && !server.contains(&0));
        assert_eq!((client.len(), server.len()), (127, 127));
    }
}
