//! How messages move: the contract of a transport. Read this first.
//!
//! Takes a [`Setup`]; gives a connected [`Endpoint`] to the patterns. A transport has two planes:
//!
//! * **Control** ([`Transport`], [`Opening`]): open, tell the local address as an opaque blob,
//!   connect to the other end's blob. May allocate, log and fail with a sentence. The control
//!   channel carries the blobs, so no transport needs a handshake of its own.
//! * **Data** ([`Endpoint`]): queues. *Post* a message from a registered slot, *flush* what was
//!   posted (the doorbell, the system call), *poll* what completed and what arrived into a fixed
//!   array, *wait* where the case asks for it. No allocation, no lock, no log, no `Result`: loss,
//!   reordering and errors of a connection are data in [`Events`].
//!
//! Patterns are generic over the endpoint and compiled once a transport: [`registry`] holds the one
//! `match`. To add a transport: its file, one line in the registry, and the conformance suite
//! (`tests/conformance.rs`) turns green.
//!
//! Must never: know a pattern, read a clock (but for simulated transports, which are clocks, and an
//! adapter's own, which says when it has completed what).

pub mod fan;
pub mod homa;
pub mod null;
pub mod registry;
pub mod settings;
pub mod setup;
pub mod shm;
pub mod socket;
pub mod synthetic;
pub mod verbs;

use crate::clock::{DeviceStamps, DeviceTicks};
pub use registry::{Descriptor, TransportKind, Visitor, with_transport};
pub use settings::Settings;
pub use setup::{
    Blob, Interfaces, Operation, Role, Setup, SetupError, Site, Traffic, TransportRequest, Wait,
};
pub use socket::site::{
    PORTS_VARIABLE, address as address_of_site, bind as bind_within_limits, parse_ports, towards,
};
use std::os::fd::BorrowedFd;
pub use synthetic::Synthetic;
pub use verbs::LiveWord;

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

/// What became of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Posted {
    /// Accepted; it will complete.
    Accepted,
    /// The queue has no room: flush, poll, and post again. Nothing was taken.
    Full,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// Where it lies: readable, and postable (an echo), until the next poll or wait.
    pub slot: Slot,
    /// Its length in bytes.
    pub length: u32,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Works.
    #[default]
    Up,
    /// The other end has closed it.
    Closed,
    /// It failed with this errno.
    Failed(i32),
}

/// What one poll found: fixed memory, reused.
#[derive(Debug)]
pub struct Events {
    arrivals: [Arrival; MOST_EVENTS],
    arrived: usize,
    most: usize,
    /// Posts that have completed since the last poll, in the order of posting. Their slots may be
    /// written again.
    pub completed: u32,
    /// The state of the connection.
    pub link: Link,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            arrivals: [Arrival::default(); MOST_EVENTS],
            arrived: 0,
            most: MOST_EVENTS,
            completed: 0,
            link: Link::Up,
        }
    }
}

impl Events {
    /// Forgets what an earlier poll found. A transport's poll begins with it.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.arrived = 0;
        self.completed = 0;
    }

    /// Sets how many messages a poll may hand over from now on, [`MOST_EVENTS`] unless said: with 0
    /// it brings completions alone. What has arrived meanwhile comes with a later poll.
    #[inline(always)]
    pub fn limit(&mut self, most: usize) {
        self.most = most.min(MOST_EVENTS);
    }

    /// How many messages a poll may hand over.
    #[inline(always)]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Adds a message that has arrived. The caller sees to it that there is room.
    #[inline(always)]
    pub fn arrive(&mut self, slot: Slot, length: u32) {
        if let Some(place) = self.arrivals.get_mut(self.arrived) {
            *place = Arrival { slot, length };
            self.arrived += 1;
        }
    }

    /// Writes down the message that has arrived `place`th since the `clear`; [`Self::placed`] then
    /// says how many there are. For transports that count in a register.
    #[inline(always)]
    pub fn place(&mut self, place: usize, slot: Slot, length: u32) {
        if let Some(free) = self.arrivals.get_mut(place) {
            *free = Arrival { slot, length };
        }
    }

    /// How many messages were written down by [`Self::place`].
    #[inline(always)]
    pub fn placed(&mut self, arrived: usize) {
        self.arrived = arrived.min(MOST_EVENTS);
    }

    /// Whether no further arrival fits.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.arrived >= self.most
    }

    /// The messages that have arrived, oldest first.
    #[inline(always)]
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals[..self.arrived]
    }

    /// Whether anything has happened that the caller must look at.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.arrived != 0 || self.completed != 0 || self.link != Link::Up
    }
}

/// One end of a connection: the data path. Every method is called between two stamps.
///
/// Promises that the conformance suite checks, for every transport:
/// * a message arrives whole, once, and as it was posted, or (where the descriptor says that the
///   transport loses messages) not at all;
/// * messages keep their order where the descriptor says so;
/// * a post is taken whole or not at all; what is posted goes no later than at the next flush;
/// * every accepted post completes once, in the order of posting, and without a further post;
/// * `wait` returns when something has happened, or early with nothing when a signal interrupts it.
pub trait Endpoint {
    /// Number of sending slots.
    fn slots(&self) -> u32;

    /// The memory of a slot: for sending slots all that a message may have, for arrivals the
    /// message in front (how long it is says its [`Arrival`]).
    fn payload(&mut self, slot: Slot) -> &mut [u8];

    /// Takes a slot for sending: `length` bytes, which is the size of the set-up, since all
    /// messages of a connection have one size; of one that was connected as
    /// [`Opening::connect_varied`] at most that. A sending slot must not be written until it
    /// completes. The slot of an arrival may be posted until the next poll, and again where it was
    /// `Full`.
    fn post(&mut self, slot: Slot, length: usize) -> Posted;

    /// Sends what was posted. What the transport cannot take now it keeps, and goes on at the next
    /// flush, poll or wait.
    fn flush(&mut self);

    /// What has happened, without waiting; whether anything has. Gives the memory of earlier
    /// arrivals back.
    ///
    /// It says in a register what [`Events::any`] says from memory: a busy wait is mostly polls
    /// that found nothing.
    fn poll(&mut self, events: &mut Events) -> bool;

    /// The eight bytes of a sending slot from `at` on, as a word that another thread may go on
    /// writing while the slot is posted: what is sent is what stood there when the adapter read
    /// it. `None` where a post copies.
    fn live(&mut self, _slot: Slot, _at: usize) -> Option<LiveWord> {
        None
    }

    /// As `poll`, but sleeps in the kernel until something has happened or a signal comes.
    fn wait(&mut self, events: &mut Events);

    /// What the kernel says is readable when a message has come; `None` where it does not know.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A second handle on the same connection, for another thread that takes what arrives while
    /// this one sends; `None` where a connection is one thread's.
    fn receiver(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// A half-open end: has an address, awaits the other's.
pub trait Opening {
    /// What it becomes.
    type Endpoint: Endpoint;

    /// What the other end needs for connecting. Opaque to all but the same transport.
    fn address(&self) -> Blob;

    /// Connects to the other end. Both ends call it at about the same time; bounded by the
    /// timeout of the set-up.
    fn connect(self, other: &Blob) -> Result<Self::Endpoint, SetupError>;

    /// What it becomes where messages have different lengths, up to the size of the set-up.
    type Varied: Endpoint + Send;

    /// Connects to an other end that does the same.
    fn connect_varied(self, other: &Blob) -> Result<Varied<Self::Varied>, SetupError>;
}

/// An end whose messages have different lengths, and what is known of it when it is connected.
pub struct Varied<E> {
    /// The end.
    pub endpoint: E,
    /// Settings as the system granted them: name, value.
    pub granted: Vec<(String, String)>,
    /// Connections and datagrams of strangers that were dropped while it was set up.
    pub strangers: u64,
    /// What it has seen when its round is over: name, value.
    pub afterwards: fn(&E) -> Vec<(String, String)>,
}

impl<E> Varied<E> {
    /// Of a transport whose ends take any length as they are.
    pub fn of<T: Transport>(endpoint: E) -> Varied<E>
    where
        T::Opening: Opening<Endpoint = E>,
    {
        let (granted, strangers) = (T::granted(&endpoint), T::strangers(&endpoint));
        Varied { granted, strangers, afterwards: T::afterwards, endpoint }
    }
}

/// A transport: the control path.
pub trait Transport {
    /// The half-open end.
    type Opening: Opening;

    /// What can be asked of it. Known before anything runs.
    const DESCRIPTOR: Descriptor;

    /// Whether it works on this machine; if not, why, in a sentence.
    fn available() -> Result<(), String>;

    /// Why it cannot be asked this, in a sentence that says what is allowed. Beyond what the
    /// descriptor says; known before anything runs.
    fn check(_request: &TransportRequest<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Whether a message may be lost without an error, asked like this.
    fn loses(_settings: &Settings) -> bool {
        Self::DESCRIPTOR.loses
    }

    /// Whether each post, asked like this, makes a completion that says when it was done.
    fn completes_each(_settings: &Settings) -> bool {
        false
    }

    /// The NUMA node of the adapter that it would use, where there is one and it is known.
    fn numa_node(_settings: &Settings) -> Option<u32> {
        None
    }

    /// Opens one end.
    fn open(setup: &Setup) -> Result<Self::Opening, SetupError>;

    /// Settings as the system granted them, which may differ from those asked for: name, value.
    fn granted(endpoint: &<Self::Opening as Opening>::Endpoint) -> Vec<(String, String)>;

    /// Connections and datagrams of strangers that an end has dropped while it was set up.
    fn strangers(_endpoint: &<Self::Opening as Opening>::Endpoint) -> u64 {
        0
    }

    /// What an end has seen from its connection on, when its round is over: name, value.
    fn afterwards(_endpoint: &<Self::Opening as Opening>::Endpoint) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What the clock of the adapter shows now, where completions are stamped by it.
    fn device_clock(_endpoint: &<Self::Opening as Opening>::Endpoint) -> Option<DeviceTicks> {
        None
    }

    /// The adapter's stamps of the sends that have completed, when the round is over.
    fn device_stamps(_endpoint: &<Self::Opening as Opening>::Endpoint) -> Option<DeviceStamps<'_>> {
        None
    }
}
