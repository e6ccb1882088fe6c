//! How messages move: the contract of a transport. Read this first.
//!
//! Takes a [`Setup`]; gives a connected [`Endpoint`] to the measured loops. A transport has two
//! planes:
//!
//! * **Control** ([`Descriptor`], [`Opening`]): open, give the local address as an opaque blob,
//!   connect to the other end's blob. May allocate, log and fail with a sentence. The control
//!   channel carries the blobs, so no transport needs a handshake of its own.
//! * **Data** ([`Endpoint`]): queues. *Post* a message from a registered slot, *flush* what was
//!   posted (the doorbell, the system call), *poll* what completed and what arrived into a fixed
//!   array, *wait* where the case asks for it. No allocation, no lock, no log, no `Result`: loss,
//!   reordering and errors of a connection are data in [`Events`].
//!
//! Everything but the measured loops handles a `Box<dyn Endpoint>`, and `loops::compiled` says for
//! which endpoints a loop is compiled apart. What only some transports have stands in [`optional`].
//!
//! To add a transport: its folder, one line in the registry, and the conformance suite
//! (`tests/it/conformance.rs`) turns green.
//!
//! Must never: know a pattern, or read a clock (but for simulated transports, which are clocks, and
//! an adapter's own, which stamps completions).
#![warn(missing_docs)]

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod collectives;
pub mod counter;
pub mod definitions;
pub mod descriptor;
pub mod endpoint_set;
mod events;
pub mod evidence;
pub mod homa;
pub mod mpi;
pub mod null;
pub mod optional;
pub mod per_end;
pub mod registry;
pub mod settings;
pub mod setup;
pub mod shm;
pub mod socket;
pub mod synthetic;
mod traffic;
pub mod verbs;

use auto_impl::auto_impl;
use collectives::{CollectiveOperation, CollectiveRank};
use counter::FinalCounters;
pub use descriptor::{Descriptor, KernelPath};
pub use events::{Arrival, Events, Link, Polled};
use optional::{DeviceClock, LiveWord, Watched};
pub use registry::TransportKind;
pub use settings::{Interfaces, Settings};
pub use setup::{Blob, Rank, Result, Setup, SetupError, Site, TransportRequest};
pub use socket::CONGESTION;
pub use socket::ENDS_OF_A_PORT;
pub use socket::options::congestion_available;
pub use socket::preflight;
pub use socket::site::{
    BIND_VARIABLE, PEERS_VARIABLE, PORTS_VARIABLE, address as address_of_site,
    bind as bind_within_limits, check_own, check_peer, is_peer, parse_ports, towards,
};
pub use socket::stream::PREFIX as LENGTH_PREFIX;
use std::any::Any;
use std::os::fd::BorrowedFd;
pub use synthetic::Synthetic;
pub use traffic::{Lengths, Operation, Role, Traffic, Wait};

/// Most messages that one poll hands over; also the most that are staged by posts before a flush.
///
/// 64 keeps [`Events`] within nine cache lines and is more than a doorbell batch that any adapter
/// of today gains from.
pub const MOST_EVENTS: usize = 64;

/// A place in registered memory that holds one message.
///
/// Slots `0..Endpoint::slots()` are for sending and belong to the caller. Others name messages that
/// have arrived; they come from [`Events`] and nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    const ARRIVED: u32 = 1 << 31;

    /// The sending slot of this number.
    #[inline(always)]
    pub const fn sending(number: u32) -> Slot {
        Slot(number & !Slot::ARRIVED)
    }

    /// The slot of a message that has arrived. For transports alone.
    #[inline(always)]
    pub const fn arrived(number: u32) -> Slot {
        Slot(number | Slot::ARRIVED)
    }

    /// Whether a message arrived in it.
    #[inline(always)]
    pub const fn has_arrived(self) -> bool {
        self.0 & Slot::ARRIVED != 0
    }

    /// The number without its kind.
    #[inline(always)]
    pub const fn number(self) -> usize {
        (self.0 & !Slot::ARRIVED) as usize
    }
}

/// The result of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Posted {
    /// Accepted; it will complete.
    Accepted,
    /// The queue has no room: flush, poll, and post again. Nothing was taken.
    Full,
}

/// What a sender posts by [`Endpoint::post_list`], from one list to the next: as the list of work
/// requests that an adapter is given by one call.
#[derive(Clone, Copy, Debug)]
pub struct PostList {
    /// Bytes of each message.
    pub length: usize,
    /// Messages after which it flushes.
    pub burst: u64,
    /// The number of the sending slot that comes next: a counter, since a division a message would
    /// show at 8 B.
    pub slot: u32,
    /// Messages posted since the last flush.
    pub unflushed: u64,
}

impl PostList {
    /// Counts a message that was posted; whether a flush is due.
    #[inline(always)]
    fn posted(&mut self, slots: u32) -> bool {
        self.slot += 1;
        if self.slot == slots {
            self.slot = 0;
        }
        self.unflushed += 1;
        let is_due = self.unflushed == self.burst;
        if is_due {
            self.unflushed = 0;
        }
        is_due
    }
}

/// Settings for the record: name, value.
pub type NamedValues = Vec<(String, String)>;

/// One end of a connection: the data path.
///
/// Promises that the conformance suite checks, for every transport:
/// * a message arrives whole, once, and as it was posted, or (where the descriptor says that the
///   transport loses messages) not at all;
/// * messages keep their order where the descriptor says so;
/// * a post is taken whole or not at all; what is posted goes no later than at the next flush;
/// * every accepted post completes once, in the order of posting, and without a further post;
/// * `wait` returns when something has happened, or early with nothing when a signal interrupts it.
#[auto_impl(Box)]
pub trait Endpoint: Any + Send {
    /// Number of sending slots.
    fn slots(&self) -> u32;

    /// The memory of a slot: for sending slots all that a message may have, for arrivals the
    /// message in front (its length is in its [`Arrival`]).
    fn payload(&mut self, slot: Slot) -> &mut [u8];

    /// The message that has arrived.
    #[inline(always)]
    fn message(&mut self, arrival: &Arrival) -> &[u8] {
        let memory = self.payload(arrival.slot);
        &memory[..(arrival.length as usize).min(memory.len())]
    }

    /// Takes a slot for sending: `length` bytes, which is the size of the set-up, or at most that
    /// with [`Lengths::Varied`]. A sending slot must not be written until it completes. The slot of
    /// an arrival may be posted until the next poll, and again where it was `Full`.
    fn post(&mut self, slot: Slot, length: usize) -> Posted;

    /// Sends what was posted. What the transport cannot take now it keeps, and goes on at the next
    /// flush, poll or wait.
    fn flush(&mut self);

    /// As a post and a flush, of a message that goes alone.
    #[inline(always)]
    fn post_now(&mut self, slot: Slot, length: usize) -> Posted {
        let posted = self.post(slot, length);
        self.flush();
        posted
    }

    /// Posts up to `most` messages, one sending slot after the other, and flushes after each burst;
    /// how many: fewer, where there is no room for more. `write` is given a slot and the message's
    /// place in the list, and writes the message before it is posted.
    ///
    /// It does what this body does, which a transport replaces to do once what is the same for all.
    #[inline(always)]
    #[auto_impl(keep_default_for(Box))]
    fn post_list(
        &mut self,
        list: &mut PostList,
        most: u64,
        mut write: impl FnMut(&mut [u8], u64),
    ) -> u64
    where
        Self: Sized,
    {
        let slots = self.slots();
        // It counts in registers: a store a message less is a cache line more that a processor's
        // store buffer holds while it awaits the other end's.
        let mut counted = *list;
        let mut posted = 0;
        while posted < most {
            let slot = Slot::sending(counted.slot);
            write(self.payload(slot), posted);
            if self.post(slot, counted.length) == Posted::Full {
                break;
            }
            posted += 1;
            if counted.posted(slots) {
                self.flush();
            }
        }
        *list = counted;
        posted
    }

    /// What has happened, without waiting; whether anything has. Gives the memory of earlier
    /// arrivals back.
    ///
    /// Its result says in a register what [`Events::any`] says from memory: a busy wait is mostly
    /// polls that found nothing.
    fn poll(&mut self, events: &mut Events) -> bool;

    /// As `poll` of events that are limited to one arrival, and hands over in registers. The events
    /// are memory for transports that have no shorter way.
    #[inline(always)]
    fn poll_one(&mut self, events: &mut Events) -> Polled {
        let _ = self.poll(events);
        Polled::first_of(events)
    }

    /// As `poll`, and hands each message that has arrived over to `take`, oldest first, instead of
    /// naming it in the events.
    ///
    /// It does what this body does, which a transport replaces where a message may pass without
    /// memory of its place and length.
    #[inline(always)]
    #[auto_impl(keep_default_for(Box))]
    fn poll_each(&mut self, events: &mut Events, mut take: impl FnMut(&[u8])) -> bool
    where
        Self: Sized,
    {
        let has_found = self.poll(events);
        for arrival in events.arrivals() {
            take(self.message(arrival));
        }
        has_found
    }

    /// As `poll`, but sleeps in the kernel until something has happened or a signal comes.
    fn wait(&mut self, events: &mut Events);

    /// Lets a transport that has no thread of its own move what is on its way, while the program
    /// computes. Neither hands over arrivals nor reports completions.
    fn progress(&mut self) {}

    /// Whether this process must call `progress` while the other end accesses its memory.
    fn serves_by_progress(&self) -> bool {
        false
    }

    // Control side: not called between two stamps.

    /// Peers that were rejected since the connection, beside those of [`Connected`].
    fn rejected_peers(&self) -> u64 {
        0
    }

    /// What it has counted when its round is over.
    fn final_counters(&self) -> FinalCounters {
        FinalCounters::new()
    }

    /// What the kernel watches for a thread that sleeps over several ends; `None` where it cannot.
    fn watched(&self) -> Option<Watched<'_>> {
        None
    }

    /// Prepares a sleep on a descriptor that is [`Watched::Armed`]: whether it may begin at once,
    /// since the last poll found nothing, or what has come until now has to be polled for first.
    /// `was_readable`: the descriptor was, since the last call, or this is the first.
    fn arm(&mut self, _was_readable: bool) -> bool {
        true
    }

    /// The connection's socket; `None` where the transport has none.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A second handle, for a thread that receives while this one sends, if there is one.
    fn receiver(&self) -> Option<Box<dyn Endpoint>> {
        None
    }

    /// The eight bytes of a sending slot from `at` on, as a word that another thread may go on
    /// writing while the slot is posted; `None` where a post copies.
    fn live_word(&mut self, _slot: Slot, _at: usize) -> Option<LiveWord> {
        None
    }

    /// This rank's side of an operation of all ranks; `None` where the transport has none.
    fn collective(
        &self,
        _operation: CollectiveOperation,
    ) -> Option<Result<Box<dyn CollectiveRank>>> {
        None
    }

    /// The clock by which the adapter stamps completions, where it was asked to.
    fn device_clock(&self) -> Option<&dyn DeviceClock> {
        None
    }
}

/// Connects a half-open end to the end of this address.
type Connect = dyn FnOnce(&Blob) -> Result<Connected>;

/// A half-open end: has an address, awaits the other's.
pub struct Opening {
    /// What the other end needs for connecting. Opaque to all but the same transport.
    pub address: Blob,
    connect: Box<Connect>,
}

impl Opening {
    /// An end of this address, and what connects it to the other end's.
    pub fn new(
        address: Blob,
        connect: impl FnOnce(&Blob) -> Result<Connected> + 'static,
    ) -> Opening {
        Opening { address, connect: Box::new(connect) }
    }

    /// Connects to the other end. Both ends call it at about the same time; bounded by the
    /// timeout of the set-up.
    pub fn connect(self, other: &Blob) -> Result<Connected> {
        (self.connect)(other)
    }
}

/// A connected end, and what connecting has shown.
pub struct Connected {
    /// The end.
    pub endpoint: Box<dyn Endpoint>,
    /// Settings that are in effect; they may differ from those asked for.
    pub effective_settings: NamedValues,
    /// Connections and datagrams of other senders that were rejected meanwhile.
    pub rejected_peers: u64,
}

impl Connected {
    /// An end about which there is nothing else to say.
    pub fn new(endpoint: impl Endpoint) -> Connected {
        Connected {
            endpoint: Box::new(endpoint),
            effective_settings: Vec::new(),
            rejected_peers: 0,
        }
    }
}
