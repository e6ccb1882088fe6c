//! The data path of `villas`: that of a datagram socket, and the two translations between a message
//! of [`crate::signal`] and a datagram, one copy more at each end.

use crate::signal::format::binary::{decode, encode};
use crate::signal::{Kind, TimeOfDay};
use crate::transport::counter::FinalCounters;
use crate::transport::socket::common::seen;
use crate::transport::socket::datagram::DatagramEndpoint;
use crate::transport::{Arrival, Endpoint, Events, Link, Posted, Slot};
use rustix::io::Errno;

/// A connected end with its messages, which are not the datagrams.
pub struct VillasEndpoint {
    datagrams: DatagramEndpoint,
    kind: Kind,
    size: usize,
    /// Bytes of a datagram.
    wire: usize,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
    /// When it was opened: what was made before is of an earlier round.
    since: TimeOfDay,
    /// Datagrams that were no sample of this stream.
    foreign: u64,
}

impl VillasEndpoint {
    /// An end whose messages have `size` bytes, and their datagrams `wire`.
    pub(super) fn new(
        datagrams: DatagramEndpoint,
        (size, wire): (usize, usize),
        kind: Kind,
        since: TimeOfDay,
    ) -> VillasEndpoint {
        let slots = datagrams.slots() as usize;
        VillasEndpoint {
            datagrams,
            kind,
            size,
            wire,
            outgoing: vec![0; slots * size].into_boxed_slice(),
            incoming: vec![0; size].into_boxed_slice(),
            since,
            foreign: 0,
        }
    }

    /// Puts the message in place of the datagram that has arrived: a poll brings one at most.
    #[inline]
    fn translate(&mut self, events: &mut Events) {
        if events.link == Link::Closed {
            // No connection: the kernel of the node's host says that nobody receives there.
            events.link = Link::Failed(Errno::CONNREFUSED.raw_os_error());
        }
        let Some(Arrival { slot, length }) = events.arrivals().first().copied() else { return };
        let datagram = &self.datagrams.payload(slot)[..length as usize];
        match decode(datagram, self.kind, &mut self.incoming) {
            Some(origin) if origin >= self.since => events.place(0, slot, self.size as u32),
            _ => {
                self.foreign += 1;
                events.placed(0);
            }
        }
    }
}

impl Endpoint for VillasEndpoint {
    fn slots(&self) -> u32 {
        self.datagrams.slots()
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        if slot.has_arrived() {
            return &mut self.incoming;
        }
        let at = slot.number() * self.size;
        &mut self.outgoing[at..at + self.size]
    }

    #[inline]
    fn post(&mut self, slot: Slot, _: usize) -> Posted {
        if !slot.has_arrived() {
            let at = slot.number() * self.size;
            encode(&self.outgoing[at..at + self.size], self.kind, self.datagrams.payload(slot));
        }
        self.datagrams.post(slot, self.wire)
    }

    #[inline]
    fn flush(&mut self) {
        self.datagrams.flush();
    }

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        let any = self.datagrams.poll(events);
        if any {
            self.translate(events);
        }
        any && events.any()
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        self.datagrams.wait(events);
        self.translate(events);
    }

    fn final_counters(&self) -> FinalCounters {
        seen("datagrams.foreign", self.foreign + self.datagrams.empty())
    }
}
