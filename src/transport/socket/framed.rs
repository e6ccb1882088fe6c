//! The data path of a stream socket (tcp, unix) whose messages have different lengths: each goes
//! behind its length in 4 bytes, little endian, which no figure counts as payload.
//!
//! A flush is one `send` of what was posted (one `sendmsg` of several), a poll one `recv` of as
//! much as fits.

use super::common::{RECEIVE_BYTES, link_of, slots_for};
use crate::transport::{Endpoint, Events, Link, MOST_EVENTS, Posted, Setup, Slot};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of the length in front of each message.
const PREFIX: usize = 4;
/// Most messages of one system call.
const AT_ONCE: usize = 16;

/// A connected stream socket with its memory.
pub struct FramedEndpoint {
    socket: OwnedFd,
    /// Bytes of the longest message.
    longest: usize,
    outgoing: Box<[u8]>,
    slots: usize,
    incoming: Box<[u8]>,
    /// `incoming[taken..filled]` has arrived and has not been handed over.
    taken: usize,
    filled: usize,
    /// Where the messages of the last poll lie: first byte and length.
    arrived: [(usize, usize); MOST_EVENTS],
    /// What was posted and not yet taken by the kernel.
    pending: VecDeque<Stretch>,
    completed: u32,
    link: Link,
}

/// A message with its length in front: of the sending slots, or (an echo) of what arrived.
#[derive(Clone, Copy)]
struct Stretch {
    echo: bool,
    start: usize,
    end: usize,
}

impl FramedEndpoint {
    /// Wraps a connected socket.
    pub(super) fn new(socket: OwnedFd, setup: &Setup) -> FramedEndpoint {
        let longest = setup.size.max(1);
        FramedEndpoint::over(socket, longest, slots_for(setup.window, longest))
    }

    fn over(socket: OwnedFd, longest: usize, slots: usize) -> FramedEndpoint {
        // Zeroed memory is the kernel's until it is touched: of many connections few need all.
        FramedEndpoint {
            socket,
            longest,
            outgoing: vec![0; slots * (PREFIX + longest)].into_boxed_slice(),
            slots,
            incoming: vec![0; RECEIVE_BYTES.max(2 * (PREFIX + longest))].into_boxed_slice(),
            taken: 0,
            filled: 0,
            arrived: [(0, 0); MOST_EVENTS],
            pending: VecDeque::with_capacity(slots + MOST_EVENTS),
            completed: 0,
            link: Link::Up,
        }
    }

    #[inline]
    fn send_pending(&mut self) {
        while !self.pending.is_empty() && self.link == Link::Up {
            let bytes = |stretch: &Stretch| {
                let memory = if stretch.echo { &self.incoming } else { &self.outgoing };
                &memory[stretch.start..stretch.end]
            };
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = match self.pending.len() {
                1 => rustix::net::send(&self.socket, bytes(&self.pending[0]), flags),
                several => {
                    let mut pieces = [IoSlice::new(&[]); AT_ONCE];
                    let some = pieces.iter_mut().zip(&self.pending);
                    some.for_each(|(piece, stretch)| *piece = IoSlice::new(bytes(stretch)));
                    let pieces = &pieces[..several.min(AT_ONCE)];
                    let none = &mut SendAncillaryBuffer::default();
                    rustix::net::sendmsg(&self.socket, pieces, none, flags)
                }
            };
            match sent {
                Ok(sent) => self.account(sent),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => return,
                Err(errno) => self.link = link_of(errno),
            }
        }
    }

    /// Takes what the kernel took out of the list.
    #[inline]
    fn account(&mut self, mut sent: usize) {
        while let Some(first) = self.pending.front_mut() {
            let length = first.end - first.start;
            if sent < length {
                first.start += sent;
                return;
            }
            sent -= length;
            self.pending.pop_front();
            self.completed += 1;
        }
    }

    #[inline]
    fn receive(&mut self, flags: RecvFlags) {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        } else if self.taken + PREFIX + self.longest > self.incoming.len() {
            // The last poll's arrivals are given back now: what is there of the next message moves
            // to the front, where all of it fits.
            self.incoming.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        match rustix::net::recv(&self.socket, &mut self.incoming[self.filled..], flags) {
            Ok((_, 0)) => self.link = Link::Closed,
            Ok((_, got)) => self.filled += got,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.link = link_of(errno),
        }
    }

    /// Where the next message lies, where all of it is there.
    #[inline(always)]
    fn next(&self) -> Option<(usize, usize)> {
        let waiting = &self.incoming[self.taken..self.filled];
        let length = u32::from_le_bytes(*waiting.first_chunk::<PREFIX>()?) as usize;
        let is_whole = waiting.len() - PREFIX >= length || length > self.longest;
        is_whole.then_some((self.taken + PREFIX, length))
    }

    #[inline]
    fn hand_over(&mut self, events: &mut Events) {
        let mut number = 0;
        while !events.is_full() {
            let Some((start, length)) = self.next() else { break };
            if length > self.longest {
                // No end of ours sends that.
                self.link = link_of(Errno::PROTO);
                break;
            }
            self.arrived[number] = (start, length);
            events.arrive(Slot::arrived(number as u32), length as u32);
            number += 1;
            self.taken = start + length;
        }
        events.completed = self.completed;
        self.completed = 0;
        events.link = self.link;
    }

    /// Whether an echo that the kernel has not taken yet still lies where a receive would write.
    fn has_pending_echo(&self) -> bool {
        self.pending.iter().any(|stretch| stretch.echo)
    }
}

impl Endpoint for FramedEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        self.slots as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        if slot.has_arrived() {
            let (start, length) = self.arrived[slot.number()];
            return &mut self.incoming[start..start + length];
        }
        let at = slot.number() * (PREFIX + self.longest) + PREFIX;
        &mut self.outgoing[at..at + self.longest]
    }

    #[inline]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        if self.pending.len() == self.pending.capacity() {
            return Posted::Full;
        }
        let echo = slot.has_arrived();
        let (memory, start) = match echo {
            true => (&mut self.incoming, self.arrived[slot.number()].0 - PREFIX),
            false => (&mut self.outgoing, slot.number() * (PREFIX + self.longest)),
        };
        memory[start..start + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
        self.pending.push_back(Stretch { echo, start, end: start + PREFIX + length });
        Posted::Accepted
    }

    #[inline]
    fn flush(&mut self) {
        self.send_pending();
    }

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.flush();
        let may_receive = events.most() > 0 && self.next().is_none() && !self.has_pending_echo();
        if may_receive && self.link == Link::Up {
            self.receive(RecvFlags::DONTWAIT);
        }
        self.hand_over(events);
        events.any()
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.flush();
        if self.completed != 0 || self.next().is_some() || self.link != Link::Up {
            return self.hand_over(events);
        }
        if !self.pending.is_empty() {
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::OUT)];
            // An interruption comes back with nothing, as the contract allows.
            let _ = rustix::event::poll(&mut polled, None);
            let _ = self.poll(events);
            return;
        }
        self.receive(RecvFlags::empty());
        self.hand_over(events);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn receiver(&self) -> Option<Box<dyn Endpoint>> {
        let socket = self.socket.try_clone().ok()?;
        Some(Box::new(FramedEndpoint::over(socket, self.longest, 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Role, Traffic, Wait};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn setup(longest: usize) -> Setup {
        let traffic = Traffic::Echo { every: 1 };
        Setup { window: 4, ..Setup::new(Role::Server, traffic, Wait::Busy, longest) }
    }

    /// An end, and the socket of a peer that writes what it likes.
    fn end(longest: usize) -> (FramedEndpoint, OwnedFd) {
        let kind = (AddressFamily::UNIX, SocketType::STREAM);
        let (own, peer) = socketpair(kind.0, kind.1, SocketFlags::CLOEXEC, None).unwrap();
        (FramedEndpoint::new(own, &setup(longest)), peer)
    }

    fn write(peer: &OwnedFd, bytes: &[u8]) {
        assert_eq!(rustix::net::send(peer, bytes, SendFlags::empty()).unwrap(), bytes.len());
    }

    #[test]
    fn a_message_that_comes_byte_by_byte_arrives_once_and_whole() {
        let (mut end, peer) = end(10);
        let mut events = Events::default();
        for byte in [3, 0, 0, 0, b'a', b'b'] {
            write(&peer, &[byte]);
            assert!(!end.poll(&mut events));
        }
        write(&peer, b"c");
        assert!(end.poll(&mut events));
        let [arrival] = events.arrivals() else { panic!("{:?}", events.arrivals()) };
        assert_eq!((end.payload(arrival.slot) as &[u8], arrival.length), (&b"abc"[..], 3));
    }

    #[test]
    fn a_length_above_the_longest_ends_the_connection_and_nothing_else() {
        let (mut end, peer) = end(10);
        write(&peer, &11u32.to_le_bytes());
        let mut events = Events::default();
        assert!(end.poll(&mut events));
        assert_eq!(events.link, Link::Failed(Errno::PROTO.raw_os_error()));
        assert!(events.arrivals().is_empty());
        end.poll(&mut events);
        assert!(events.arrivals().is_empty());
    }

    #[test]
    fn with_no_room_for_arrivals_a_poll_leaves_them_where_they_are() {
        let (mut end, peer) = end(10);
        let mut events = Events::default();
        for _ in 0..3 {
            write(&peer, &[1, 0, 0, 0, 7]);
        }
        events.limit(0);
        assert!(!end.poll(&mut events));
        events.limit(2);
        assert!(end.poll(&mut events));
        assert_eq!(events.arrivals().len(), 2);
        assert!(end.poll(&mut events));
        assert_eq!(events.arrivals().len(), 1);
    }

    #[test]
    fn an_echo_goes_back_with_its_own_length() {
        let (mut end, peer) = end(10);
        let mut events = Events::default();
        write(&peer, &[2, 0, 0, 0, 5, 6]);
        end.poll(&mut events);
        assert_eq!(end.post(events.arrivals()[0].slot, 2), Posted::Accepted);
        end.poll(&mut events);
        assert_eq!(events.completed, 1);
        let mut back = [0; 16];
        let (got, _) = rustix::net::recv(&peer, &mut back, RecvFlags::empty()).unwrap();
        assert_eq!(back[..got], [2, 0, 0, 0, 5, 6]);
    }
}
