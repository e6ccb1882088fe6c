//! The data path of a stream socket (tcp, unix): messages of one size back to back, no framing.
//!
//! A flush is one `send` of all that was posted, since the slots lie side by side; a poll is one
//! `recv` of as much as fits. Neither copies: what the kernel wrote is what the pattern reads.

use super::common::{RECEIVE_BYTES, link_of, slots_for};
use super::options::{self, ZeroCopy};
use crate::transport::{Endpoint, Events, Link, Posted, Setup, Slot};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::OwnedFd;

/// A connected stream socket with its memory.
pub struct StreamEndpoint {
    socket: OwnedFd,
    size: usize,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
    /// `incoming[taken..filled]` has arrived and has not been handed over.
    taken: usize,
    filled: usize,
    /// What was posted and not yet taken by the kernel.
    pending: Pending,
    /// Bytes that the kernel took of a message that it did not take whole.
    partial: usize,
    /// Messages that the kernel took since the last poll.
    completed: u32,
    link: Link,
    zerocopy: Option<ZeroCopy>,
}

/// A stretch of bytes to be sent: of the sending slots, or (an echo) of what arrived.
#[derive(Clone, Copy, Default)]
struct Pending {
    echo: bool,
    start: usize,
    end: usize,
}

impl StreamEndpoint {
    /// Wraps a connected socket.
    pub(super) fn new(socket: OwnedFd, setup: &Setup) -> StreamEndpoint {
        let size = setup.size.max(1);
        let receive = (RECEIVE_BYTES / size).max(1) * size;
        let zerocopy = setup.settings.flag("zerocopy").then(ZeroCopy::default);
        StreamEndpoint {
            socket,
            size,
            outgoing: vec![1; slots_for(setup.window, size) * size].into_boxed_slice(),
            incoming: vec![1; receive].into_boxed_slice(),
            taken: 0,
            filled: 0,
            pending: Pending::default(),
            partial: 0,
            completed: 0,
            link: Link::Up,
            zerocopy,
        }
    }

    #[inline]
    fn send_pending(&mut self) {
        let Pending { echo, start, end } = self.pending;
        let memory = if echo { &self.incoming } else { &self.outgoing };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL | options::zerocopy(&self.zerocopy);
        match rustix::net::send(&self.socket, &memory[start..end], flags) {
            Ok(sent) => {
                self.pending.start += sent;
                self.account(sent);
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => {}
            Err(errno) => self.link = link_of(errno),
        }
    }

    /// Counts the messages that the kernel took whole.
    #[inline]
    fn account(&mut self, sent: usize) {
        let whole = if sent == self.size && self.partial == 0 {
            1
        } else {
            self.partial += sent;
            let whole = self.partial / self.size;
            self.partial %= self.size;
            whole
        };
        match &mut self.zerocopy {
            None => self.completed += whole as u32,
            Some(zerocopy) => zerocopy.sent(whole as u32),
        }
    }

    #[inline]
    fn receive(&mut self, flags: RecvFlags) {
        if self.taken == self.filled {
            // All was handed over, and the last poll's arrivals are given back now. Since the
            // memory holds whole messages, it is never full of less than one.
            self.taken = 0;
            self.filled = 0;
        }
        match rustix::net::recv(&self.socket, &mut self.incoming[self.filled..], flags) {
            Ok((_, 0)) => self.link = Link::Closed,
            Ok((_, got)) => self.filled += got,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.link = link_of(errno),
        }
    }

    #[inline]
    fn hand_over(&mut self, events: &mut Events) {
        while self.filled - self.taken >= self.size && !events.is_full() {
            events.arrive(Slot::arrived((self.taken / self.size) as u32), self.size as u32);
            self.taken += self.size;
        }
        if let Some(zerocopy) = &mut self.zerocopy {
            self.completed += zerocopy.reap(&self.socket);
        }
        events.completed = self.completed;
        self.completed = 0;
        events.link = self.link;
    }

    fn has_pending(&self) -> bool {
        self.pending.start < self.pending.end
    }

    /// Whether a whole message has arrived that the last poll had no room to hand over.
    fn has_backlog(&self) -> bool {
        self.filled - self.taken >= self.size
    }
}

impl Endpoint for StreamEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        (self.outgoing.len() / self.size) as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.number() * self.size;
        let memory = if slot.has_arrived() { &mut self.incoming } else { &mut self.outgoing };
        &mut memory[at..at + self.size]
    }

    #[inline]
    fn post(&mut self, slot: Slot, _: usize) -> Posted {
        let at = slot.number() * self.size;
        let echo = slot.has_arrived();
        if self.has_pending() {
            if self.pending.end != at || self.pending.echo != echo {
                self.send_pending();
                if self.has_pending() {
                    return Posted::Full;
                }
                self.pending = Pending { echo, start: at, end: at };
            }
        } else {
            self.pending = Pending { echo, start: at, end: at };
        }
        self.pending.end += self.size;
        Posted::Accepted
    }

    #[inline]
    fn flush(&mut self) {
        if self.has_pending() {
            self.send_pending();
        }
    }

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.flush();
        // An echo that the kernel has not taken yet still lies where a receive would write.
        let is_echo_held_up = self.has_pending() && self.pending.echo;
        if !self.has_backlog() && !is_echo_held_up {
            self.receive(RecvFlags::DONTWAIT);
        }
        self.hand_over(events);
        events.any()
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.flush();
        if self.completed != 0 || self.has_backlog() || self.link != Link::Up {
            return self.hand_over(events);
        }
        let awaits_completion = self.zerocopy.as_ref().is_some_and(ZeroCopy::awaits);
        if self.has_pending() || awaits_completion {
            let out = if self.has_pending() { PollFlags::OUT } else { PollFlags::empty() };
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN | out)];
            // An interruption comes back with nothing, as the contract allows.
            let _ = rustix::event::poll(&mut polled, None);
            let _ = self.poll(events);
            return;
        }
        self.receive(RecvFlags::empty());
        self.hand_over(events);
    }
}
