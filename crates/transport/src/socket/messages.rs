//! The data path of sockets that keep messages apart (udp, unixgram, villas, homa): one system call
//! a message. What carries the messages is a [`Wire`].

use crate::counter::FinalCounters;
use crate::optional::Watched;
use crate::{Arrival, Endpoint, Events, Link, MOST_EVENTS, Polled, Posted, Slot};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// A connected socket that keeps messages apart, with the memory of the message that arrived last.
pub trait Wire: Send + Sized + 'static {
    /// Sends a message without waiting.
    fn send(&self, message: &[u8]) -> Result<(), Errno>;

    /// Accounts for the message that was sent just now.
    #[inline(always)]
    fn sent(&mut self) {}

    /// Whether another message may be posted while `staged` are not sent yet.
    #[inline(always)]
    fn may_post(&self, _staged: usize) -> bool {
        true
    }

    /// Whether another message may be received.
    #[inline(always)]
    fn may_receive(&self) -> bool {
        true
    }

    /// Receives a message in place of the last one, and sleeps until there is one where `sleeps`;
    /// its length. `None` if nothing came, or a signal interrupted the wait. The error is what
    /// becomes of the connection.
    fn receive(&mut self, sleeps: bool) -> Result<Option<usize>, Link>;

    /// The message that arrived last.
    fn incoming(&self) -> &[u8];

    /// The same, to be written.
    fn incoming_mut(&mut self) -> &mut [u8];

    /// What becomes of the connection after this error of a send.
    fn link_after(&self, errno: Errno) -> Link;

    /// Sleeps until one of these is so, or a signal comes.
    fn sleep(&self, until: PollFlags);

    /// What is readable while a message is there, where the kernel knows of one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Another handle for a thread that receives, where there can be one.
    fn second(&self) -> Option<Self> {
        None
    }

    /// As [`Endpoint::rejected_peers`].
    fn rejected_peers(&self) -> u64 {
        0
    }

    /// As [`Endpoint::final_counters`].
    fn final_counters(&self) -> FinalCounters;
}

/// A wire with the messages that are to be sent.
pub struct MessageEndpoint<W> {
    pub(crate) wire: W,
    size: usize,
    outgoing: Box<[u8]>,
    /// Posted and not yet sent, with their lengths: `staged[first..last]`.
    staged: [(Slot, usize); MOST_EVENTS],
    first: usize,
    last: usize,
    completed: u32,
    pub(crate) link: Link,
}

impl<W: Wire> MessageEndpoint<W> {
    /// An end with `slots` slots of `size` bytes.
    pub(crate) fn new(wire: W, slots: usize, size: usize) -> MessageEndpoint<W> {
        MessageEndpoint {
            wire,
            size,
            outgoing: vec![1; slots * size].into_boxed_slice(),
            staged: [(Slot::default(), 0); MOST_EVENTS],
            first: 0,
            last: 0,
            completed: 0,
            link: Link::Up,
        }
    }

    /// Whether another message may be received: there is a place for it, and no echo that the
    /// kernel has not taken yet lies where it would be written.
    #[inline(always)]
    fn may_receive(&self, events: &Events) -> bool {
        let mut pending = self.staged[self.first..self.last].iter();
        !events.is_full() && self.wire.may_receive() && !pending.any(|(slot, _)| slot.has_arrived())
    }

    #[inline]
    fn receive(&mut self, sleeps: bool, events: &mut Events) {
        if !self.may_receive(events) {
            return;
        }
        match self.wire.receive(sleeps) {
            Ok(Some(length)) => events.arrive(Slot::arrived(0), length as u32),
            Ok(None) => {}
            Err(link) => self.link = link,
        }
    }

    #[inline]
    fn report(&mut self, events: &mut Events) {
        events.completed = std::mem::take(&mut self.completed);
        events.link = self.link;
    }

    #[inline(always)]
    fn has_pending(&self) -> bool {
        self.first < self.last
    }

    /// Sends a message; whether the kernel took it. The link says it where the connection failed.
    #[inline(always)]
    fn send(&mut self, slot: Slot, length: usize) -> bool {
        let message = if slot.has_arrived() {
            let arrived = self.wire.incoming();
            &arrived[..length.min(arrived.len())]
        } else {
            let at = slot.number() * self.size;
            &self.outgoing[at..at + length]
        };
        match self.wire.send(message) {
            Ok(()) => {
                self.completed += 1;
                self.wire.sent();
                return true;
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => {}
            Err(errno) => self.link = self.wire.link_after(errno),
        }
        false
    }
}

impl<W: Wire> Endpoint for MessageEndpoint<W> {
    #[inline]
    fn slots(&self) -> u32 {
        (self.outgoing.len() / self.size) as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        if slot.has_arrived() {
            return self.wire.incoming_mut();
        }
        let at = slot.number() * self.size;
        &mut self.outgoing[at..at + self.size]
    }

    #[inline]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if self.first == self.last {
            self.first = 0;
            self.last = 0;
        }
        if !self.wire.may_post(self.last - self.first) {
            return Posted::Full;
        }
        let Some(place) = self.staged.get_mut(self.last) else { return Posted::Full };
        *place = (slot, length);
        self.last += 1;
        Posted::Accepted
    }

    #[inline]
    fn flush(&mut self) {
        while self.has_pending() && self.link == Link::Up {
            let (slot, length) = self.staged[self.first];
            if !self.send(slot, length) {
                return;
            }
            self.first += 1;
        }
    }

    #[inline]
    fn post_now(&mut self, slot: Slot, length: usize) -> Posted {
        let is_alone = !self.has_pending() && self.link == Link::Up && self.wire.may_post(0);
        if is_alone && self.send(slot, length) {
            return Posted::Accepted;
        }
        let posted = self.post(slot, length);
        if !is_alone {
            self.flush();
        }
        posted
    }

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.flush();
        self.receive(false, events);
        self.report(events);
        events.any()
    }

    #[inline]
    fn poll_one(&mut self, events: &mut Events) -> Polled {
        if self.has_pending() || !self.wire.may_receive() {
            let _ = self.poll(events);
            return Polled::first_of(events);
        }
        let arrival = match self.wire.receive(false) {
            Ok(length) => {
                length.map(|length| Arrival { slot: Slot::arrived(0), length: length as u32 })
            }
            Err(link) => {
                self.link = link;
                None
            }
        };
        Polled { arrival, completed: std::mem::take(&mut self.completed), link: self.link }
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.flush();
        if self.completed != 0 || self.link != Link::Up {
            return self.report(events);
        }
        if self.has_pending() {
            // An interruption comes back with nothing, as the contract allows.
            self.wire.sleep(PollFlags::IN | PollFlags::OUT);
            let _ = self.poll(events);
            return;
        }
        self.receive(true, events);
        self.report(events);
    }

    fn watched(&self) -> Option<Watched<'_>> {
        self.wire.descriptor().map(Watched::Level)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.wire.descriptor()
    }

    fn receiver(&self) -> Option<Box<dyn Endpoint>> {
        Some(Box::new(MessageEndpoint::new(self.wire.second()?, 1, self.size)))
    }

    fn rejected_peers(&self) -> u64 {
        self.wire.rejected_peers()
    }

    fn final_counters(&self) -> FinalCounters {
        self.wire.final_counters()
    }
}
