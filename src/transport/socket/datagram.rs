//! The data path of a datagram socket (udp, unixgram): one message a datagram, one system call a
//! message.
//!
//! Both sockets are connected, so that the kernel drops what others send. A datagram that finds
//! the receiver's buffer full is lost without an error: that is a result.

use super::common::{seen, slots_for};
use super::options;
use crate::transport::counter::FinalCounters;
use crate::transport::{
    Endpoint, Events, Link, MOST_EVENTS, Posted, Role, Setup, SetupError, Slot,
};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most datagrams that are thrown away before a round: many times what a socket's buffer holds.
const MOST_REJECTED: u64 = 1 << 16;

/// A connected datagram socket with its memory.
pub struct DatagramEndpoint {
    socket: OwnedFd,
    size: usize,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
    /// Posted and not yet sent, with their lengths: `staged[first..last]`.
    staged: [(Slot, usize); MOST_EVENTS],
    first: usize,
    last: usize,
    completed: u32,
    link: Link,
    /// Whether an empty datagram means that the other end has closed, as on a unix socket. On a
    /// network anybody may send one.
    empty_ends: bool,
    /// Empty datagrams.
    empty: u64,
}

impl DatagramEndpoint {
    /// Makes an endpoint of a connected socket: sets its options, and throws away and counts what
    /// others sent before it was connected (the other end sends nothing before both are; a node
    /// may).
    pub(super) fn connected(
        socket: OwnedFd,
        setup: &Setup,
        loses: bool,
    ) -> Result<(DatagramEndpoint, u64), SetupError> {
        options::apply_common(&socket, &setup.settings)?;
        if loses && setup.wait.sleeps() && setup.role == Role::Client {
            set_socket_timeout(&socket, Timeout::Recv, Some(setup.loss_after.duration()))
                .map_err(SetupError::system("SO_RCVTIMEO"))?;
        }
        let (mut byte, mut rejected) = ([0u8; 1], 0);
        while rustix::net::recv(&socket, &mut byte, RecvFlags::DONTWAIT).is_ok() {
            rejected += 1;
            if rejected > MOST_REJECTED {
                let sentence = "datagrams that nobody asked for come faster than they can be \
                                thrown away; end what sends them";
                return Err(SetupError::Refused(sentence.into()));
            }
        }
        let endpoint = DatagramEndpoint { empty_ends: !loses, ..Self::new(socket, setup) };
        Ok((endpoint, rejected))
    }

    fn new(socket: OwnedFd, setup: &Setup) -> DatagramEndpoint {
        let size = setup.size.max(1);
        DatagramEndpoint::over(socket, size, slots_for(setup.window, size))
    }

    fn over(socket: OwnedFd, size: usize, slots: usize) -> DatagramEndpoint {
        DatagramEndpoint {
            socket,
            size,
            outgoing: vec![1; slots * size].into_boxed_slice(),
            incoming: vec![1; size].into_boxed_slice(),
            staged: [(Slot::default(), 0); MOST_EVENTS],
            first: 0,
            last: 0,
            completed: 0,
            link: Link::Up,
            empty_ends: false,
            empty: 0,
        }
    }

    /// Datagrams without a byte, of which no end sends any.
    pub(super) fn empty(&self) -> u64 {
        self.empty
    }

    /// The socket, for reading its settings.
    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    fn fail(&mut self, errno: Errno) {
        self.link = match errno {
            // The other end's socket is gone.
            Errno::CONNREFUSED | Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN => Link::Closed,
            other => Link::Failed(other.raw_os_error()),
        };
    }

    #[inline]
    fn receive(&mut self, flags: RecvFlags, events: &mut Events) {
        match rustix::net::recv(&self.socket, &mut self.incoming[..], flags) {
            Ok((_, 0)) if self.empty_ends => self.link = Link::Closed,
            Ok((_, 0)) => self.empty += 1,
            Ok((_, got)) => events.arrive(Slot::arrived(0), got as u32),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.fail(errno),
        }
    }

    #[inline]
    fn report(&mut self, events: &mut Events) {
        events.completed = self.completed;
        self.completed = 0;
        events.link = self.link;
    }

    fn has_pending(&self) -> bool {
        self.first < self.last
    }

    /// Whether an echo that the kernel has not taken yet still lies where a receive would write.
    fn has_pending_echo(&self) -> bool {
        self.staged[self.first..self.last].iter().any(|(slot, _)| slot.has_arrived())
    }
}

impl Endpoint for DatagramEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        (self.outgoing.len() / self.size) as u32
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
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if self.first == self.last {
            self.first = 0;
            self.last = 0;
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
            let message = if slot.has_arrived() {
                &self.incoming[..length]
            } else {
                let at = slot.number() * self.size;
                &self.outgoing[at..at + length]
            };
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.socket, message, flags) {
                Ok(_) => {
                    self.first += 1;
                    self.completed += 1;
                }
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => return,
                Err(errno) => self.fail(errno),
            }
        }
    }

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.flush();
        if !self.has_pending_echo() && !events.is_full() {
            self.receive(RecvFlags::DONTWAIT, events);
        }
        self.report(events);
        events.any()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn receiver(&self) -> Option<Box<dyn Endpoint>> {
        let second = DatagramEndpoint::over(self.socket.try_clone().ok()?, self.size, 1);
        Some(Box::new(DatagramEndpoint { empty_ends: self.empty_ends, ..second }))
    }

    fn final_counters(&self) -> FinalCounters {
        seen("datagrams.empty", self.empty)
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.flush();
        if self.completed != 0 || self.link != Link::Up {
            return self.report(events);
        }
        if self.has_pending() {
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::OUT)];
            // An interruption comes back with nothing, as the contract allows.
            let _ = rustix::event::poll(&mut polled, None);
            let _ = self.poll(events);
            return;
        }
        self.receive(RecvFlags::empty(), events);
        self.report(events);
    }
}
