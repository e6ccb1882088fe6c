//! `shm`: a lock-free ring each way in POSIX shared memory. [`ring`] is the data path's protocol,
//! [`region`] the memory, this file the transport.
//!
//! A message is copied once into the ring and once out of it, as a program would that keeps its
//! messages: what is measured is a hand-over, not a pointer. To sleep, a process waits on a futex
//! that the other rings; between two busy ends nothing is ever rung.

pub mod region;
pub mod ring;

use super::*;
use crate::units::Bytes;
use region::{Layout, Region, Ring};
use ring::{Consumer, Doorbell, Producer};
use rustix::thread::futex;
use std::sync::Arc;

/// The shared-memory transport.
pub struct Shm;

/// One end before it is connected: the server has made the memory.
pub struct ShmOpening {
    made: Option<Made>,
    setup: Setup,
}

/// Memory with its name, which is removed when the owner goes, whoever has mapped it by then.
struct Made {
    name: String,
    region: Arc<Region>,
}

impl Drop for Made {
    fn drop(&mut self) {
        Region::forget(&self.name);
    }
}

/// A connected end.
pub struct ShmEndpoint {
    producer: Producer<Ring>,
    consumer: Consumer<Ring>,
    size: usize,
    outgoing: Box<[u8]>,
    slots: usize,
    /// Messages that the last poll took out, and how many it may take.
    incoming: Box<[u8]>,
    batch: usize,
    /// Messages whose completion has been reported.
    reported: u64,
    /// Pauses of a poll that finds nothing of a stream: a receiver that looks all the time takes
    /// the cache lines away that the sender is about to write, and both crawl.
    lull: u32,
    /// Messages taken after which the other end is told at once. Half of the ring for a ping-pong:
    /// an answer would have to wait for the cache line, so that [`ShmEndpoint::tidy_up`] tells.
    tell_after: u64,
    /// Whether the other end may sleep and must be rung.
    rings: bool,
    /// Messages that had been handed over at the last ring, and whether room was told since.
    rung: u64,
    told: bool,
    /// Whether a post found no room: then room is worth waking up for.
    crowded: bool,
    region: Arc<Region>,
    side: usize,
    _made: Option<Made>,
}

/// Pauses (about 40 cycles each) of a stream's poll that found nothing: in so long a sender writes
/// some tens of cells, which is what makes reading them a stream, too.
const LULL: u32 = 16;

/// Memory for the messages that one poll takes out: a cache's worth.
const BATCH_BYTES: usize = 256 << 10;

const DESCRIPTOR: Descriptor = Descriptor {
    about: "a lock-free ring each way in POSIX shared memory, between two processes",
    largest: Bytes::MIB.0 * 16,
    in_survey: true,
    path: "a copy into the ring, a cache-line hand-over, a copy out of it",
    ..Descriptor::BASE
};

impl Transport for Shm {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn available(&self) -> Result<(), String> {
        let name = random_name().map_err(|error| error.to_string())?;
        let made = Region::create(&name, Layout::for_size(8, Layout::MOST_CELLS));
        Region::forget(&name);
        made.map(drop).map_err(|error| format!("{error} (is /dev/shm mounted and writable?)"))
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let made = match setup.role {
            Role::Client => None,
            Role::Server => {
                let name = random_name()?;
                let region = Region::create(&name, Layout::of(setup))?;
                Some(Made { name, region })
            }
        };
        Ok(Box::new(ShmOpening { made, setup: setup.clone() }))
    }
}

fn random_name() -> Result<String, SetupError> {
    let mut bits = [0u8; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| SetupError::Refused(format!("no random numbers to be had: {error}")))?;
    Ok(format!("/wiregauge-{:032x}", u128::from_ne_bytes(bits)))
}

impl Opening for ShmOpening {
    fn address(&self) -> Blob {
        Blob(self.made.as_ref().map(|made| made.name.clone().into_bytes()).unwrap_or_default())
    }

    fn connect(self: Box<Self>, other: &Blob) -> Result<Connected, SetupError> {
        let setup = self.setup;
        let region = match &self.made {
            Some(made) => Arc::clone(&made.region),
            None => Region::adopt(other.text()?, Layout::of(&setup))?,
        };
        let side = match setup.role {
            Role::Client => 0,
            Role::Server => 1,
        };
        let size = setup.size.max(1);
        let slots = (setup.window as usize).clamp(1, MOST_EVENTS);
        // An echo's window is all that can arrive at once: looking for more would only mispredict.
        let most = match setup.traffic {
            Traffic::Echo { .. } => slots,
            Traffic::Forward | Traffic::Both | Traffic::OneSided => MOST_EVENTS,
        };
        let batch = (BATCH_BYTES / size).clamp(1, most);
        let endpoint = ShmEndpoint {
            producer: Producer::new(Ring::of(&region, side)),
            consumer: Consumer::new(Ring::of(&region, 1 - side)),
            size,
            outgoing: vec![1; slots * size].into_boxed_slice(),
            slots,
            incoming: vec![1; batch * size].into_boxed_slice(),
            batch,
            reported: 0,
            lull: match setup.traffic {
                Traffic::Echo { .. } => 0,
                Traffic::Forward | Traffic::Both | Traffic::OneSided => LULL,
            },
            tell_after: match setup.traffic {
                Traffic::Echo { .. } => region.layout().cells / 2,
                Traffic::Forward | Traffic::Both | Traffic::OneSided => region.layout().cells / 4,
            },
            rings: setup.wait.sleeps(),
            rung: 0,
            told: false,
            crowded: false,
            region,
            side,
            _made: self.made,
        };
        let layout = endpoint.region.layout();
        let effective_settings = vec![
            ("ring_cells".into(), layout.cells.to_string()),
            ("cell_bytes".into(), layout.stride.to_string()),
        ];
        Ok(Connected { effective_settings, ..Connected::new(endpoint) })
    }
}

impl ShmEndpoint {
    #[inline(always)]
    fn ring(&mut self) {
        if self.rings && (self.told || self.rung != self.producer.sent()) {
            self.rung = self.producer.sent();
            self.told = false;
            if Doorbell(self.region.doorbell(1 - self.side)).must_ring() {
                let word = self.region.doorbell(1 - self.side);
                // A wake that fails has nobody to wake.
                let _ = futex::wake(word, futex::Flags::empty(), 1);
            }
        }
    }

    /// Takes what has arrived.
    #[inline(always)]
    fn take(&mut self, events: &mut Events) {
        let most = self.batch.min(events.most());
        let took = |place, length| events.place(place, Slot::arrived(place as u32), length as u32);
        let taken = self.consumer.pop(&mut self.incoming, self.size, most, took);
        events.placed(taken);
        self.told |= self.consumer.tell(self.tell_after);
    }

    /// Reports what has completed: all that was handed over. Whether there was anything.
    #[inline(always)]
    fn complete(&mut self, events: &mut Events) -> bool {
        let sent = self.producer.sent();
        events.completed = (sent - self.reported) as u32;
        self.reported = sent;
        events.completed != 0
    }

    /// After a message has gone and before the next has come: what would cost time later.
    #[inline(always)]
    fn tidy_up(&mut self) {
        self.told |= self.consumer.tell(self.tell_after / 2);
        self.producer.look_ahead();
    }
}

impl Endpoint for ShmEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        self.slots as u32
    }

    #[inline(always)]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() * self.size;
        let memory = if slot.has_arrived() { &mut self.incoming } else { &mut self.outgoing };
        &mut memory[at..at + self.size]
    }

    #[inline(always)]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        let at = slot.number() * self.size;
        let memory = if slot.has_arrived() { &self.incoming } else { &self.outgoing };
        if !self.producer.push(&memory[at..at + length]) {
            self.crowded = true;
            return Posted::Full;
        }
        Posted::Accepted
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.ring();
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Events) -> bool {
        if self.consumer.is_ready() {
            self.take(events);
            self.complete(events);
        } else if self.complete(events) {
            events.placed(0);
            self.tidy_up();
        } else {
            events.placed(0);
            for _ in 0..self.lull {
                std::hint::spin_loop();
            }
            return false;
        }
        self.ring();
        true
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        if self.poll(events) {
            return;
        }
        let word = self.region.doorbell(self.side);
        let doorbell = Doorbell(word);
        doorbell.about_to_sleep();
        let crowded = std::mem::take(&mut self.crowded);
        let can_go_on = self.consumer.is_ready() || (crowded && self.producer.has_room());
        if !can_go_on {
            // EAGAIN: rung in between. EINTR: a signal, as the contract allows.
            let _ = futex::wait(word, futex::Flags::empty(), 1, None);
        }
        doorbell.awake();
        self.take(events);
        self.complete(events);
        self.ring();
    }
}
