//! An end whose posts and arrivals are stamped by the program itself, for `explain`: over memory or
//! an adapter no trace point of the kernel lies between the stamps of the two ends.
//!
//! It wraps any endpoint behind its table, so no loop is compiled for it, and rounds that are not
//! explained have nothing of it. A stamp is a reading of the clock and of the CPU's number, and a
//! row of 40 bytes.

use super::around::leave_to_inner;
use super::payload;
use wiregauge_clock::{Source, Ticks};
use wiregauge_sample::Flags;
use wiregauge_sample::arena::{Arena, Row};
use wiregauge_transport::{Endpoint, Events, Posted, Slot};

/// Posts and arrivals of the threads of an end that are kept: 10 MiB.
pub const MOST_STAMPS: usize = 1 << 18;

/// An end that stamps.
///
/// Its rows: the first has the number of the thread in `order`, and the CPU in `flags`. Each other
/// one is a post (`submit` before it, `complete` after it) or an arrival (`receive` when
/// its poll has returned), with the message's number in `order` and the CPU in `flags`.
pub struct Stamped {
    inner: Box<dyn Endpoint>,
    source: Source,
    memory: Arena,
    used: usize,
}

/// Writes the number of this thread and its CPU into the first row: which stamps of the kernel are
/// its own.
pub fn identify(memory: &mut Arena) {
    let (rows, progress) = memory.writer();
    if let Some(first) = rows.first_mut() {
        first.order = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        first.flags = Flags(rustix::thread::sched_getcpu() as u32);
        progress.used(1);
    }
}

impl Stamped {
    /// Around an end, with memory for the stamps. To be made by the thread that will use it.
    pub fn new(inner: Box<dyn Endpoint>, source: Source, mut memory: Arena) -> Stamped {
        identify(&mut memory);
        Stamped { inner, source, memory, used: 1 }
    }

    fn keep(&mut self, row: Row) {
        let (rows, progress) = self.memory.writer();
        if let Some(place) = rows.get_mut(self.used) {
            let cpu = rustix::thread::sched_getcpu() as u32;
            *place = Row { flags: Flags(cpu), ..row };
            self.used += 1;
            progress.used(self.used as u64);
        }
    }

    fn posted(&mut self, slot: Slot, submit: Ticks) {
        let complete = self.source.read();
        let near = self.used as u64 / 2;
        let order = payload::sequence(self.inner.payload(slot), near) as u32;
        self.keep(Row { submit, complete, order, ..Row::default() });
    }

    /// Stamps what a poll or a wait has found.
    fn found(&mut self, events: &Events) {
        if events.arrivals().is_empty() {
            return;
        }
        let receive = self.source.read();
        for arrival in events.arrivals() {
            let near = self.used as u64 / 2;
            let order = payload::sequence(self.inner.message(arrival), near) as u32;
            self.keep(Row { receive, order, ..Row::default() });
        }
    }
}

impl Endpoint for Stamped {
    leave_to_inner!();

    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        let submit = self.source.read();
        let posted = self.inner.post(slot, length);
        if posted == Posted::Accepted {
            self.posted(slot, submit);
        }
        posted
    }

    fn post_now(&mut self, slot: Slot, length: usize) -> Posted {
        let submit = self.source.read();
        let posted = self.inner.post_now(slot, length);
        if posted == Posted::Accepted {
            self.posted(slot, submit);
        }
        posted
    }

    fn poll(&mut self, events: &mut Events) -> bool {
        let has_found = self.inner.poll(events);
        if has_found {
            self.found(events);
        }
        has_found
    }

    fn wait(&mut self, events: &mut Events) {
        self.inner.wait(events);
        self.found(events);
    }
}
