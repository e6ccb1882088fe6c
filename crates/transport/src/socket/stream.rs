//! The data path of a stream socket (tcp, unix).
//!
//! Messages of one size go back to back without framing: the slots lie side by side, so that a
//! flush is one `send` of all that was posted. Where lengths differ, each message goes behind its
//! length in 4 bytes, little endian, which no figure counts as payload, and a flush is one `send`
//! (one `sendmsg` of several). A poll is one `recv` of as much as fits. None of them copies: what
//! the kernel wrote is what the pattern reads.

use super::counters::SocketCounters;
use super::options::{MSG_ZEROCOPY, ZeroCopy};
use super::{RECEIVE_BYTES, bytes_of_end, slots_for};
use crate::counter::FinalCounters;
use crate::optional::Watched;
use crate::{
    Arrival, Endpoint, Events, Lengths, Link, MOST_EVENTS, Polled, Posted, Setup, Slot, Wait,
};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of the length in front of each message, where lengths differ.
pub const PREFIX: usize = 4;
/// Most messages of one system call, where lengths differ.
const AT_ONCE: usize = 16;
/// Most ends of a thread that polls which are each looked at: one `recv` that finds nothing costs
/// about as much as the `epoll_wait` that looks at all.
const MAX_POLLED: u32 = 8;
/// Of each `send`.
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// A connected stream socket with its memory.
pub struct StreamEndpoint {
    socket: Socket,
    /// Bytes of the longest message; of each where nothing stands in front.
    longest: usize,
    /// Bytes in front of each message: [`PREFIX`], or none.
    prefix: usize,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
    /// `incoming[taken..filled]` has arrived and has not been handed over.
    taken: usize,
    filled: usize,
    /// Where the messages of the last poll lie: first byte and length.
    arrived: [(usize, usize); MOST_EVENTS],
    /// What was posted and not yet taken by the kernel: at most one stretch without framing.
    pending: VecDeque<Stretch>,
    /// Messages that the kernel took since the last poll.
    completed: u32,
    link: Link,
    zerocopy: Option<ZeroCopy>,
    /// True if epoll says for its owner which of the ends has something.
    is_watched: bool,
    /// Counters of the connection before its round.
    before: Box<SocketCounters>,
}

/// The memory of an end: sending slots, and bytes for arrivals.
struct Buffers {
    slots: usize,
    receive: usize,
}

/// Bytes to be sent, of the sending slots or (an echo) of what arrived: a message with its length
/// in front, or messages of one size.
#[derive(Clone, Copy)]
struct Stretch {
    echo: bool,
    start: usize,
    end: usize,
}

impl StreamEndpoint {
    /// Wraps a connected socket.
    pub(super) fn new(socket: Socket, setup: &Setup) -> StreamEndpoint {
        let longest = setup.size.max(1);
        let prefix = if setup.lengths == Lengths::Fixed { 0 } else { PREFIX };
        let zerocopy = prefix == 0 && setup.settings.flag("zerocopy");
        let slots = slots_for(setup, longest);
        let buffers = Buffers { slots, receive: bytes_of_end(setup, RECEIVE_BYTES) };
        let end = StreamEndpoint::over(socket, longest, prefix, buffers);
        let is_watched = prefix > 0 || setup.wait != Wait::Busy || setup.ends > MAX_POLLED;
        StreamEndpoint { zerocopy: zerocopy.then(ZeroCopy::default), is_watched, ..end }
    }

    fn over(socket: Socket, longest: usize, prefix: usize, buffers: Buffers) -> StreamEndpoint {
        let Buffers { slots, receive: bytes } = buffers;
        let stride = prefix + longest;
        // Whole messages where they have one size: then the memory is never full of less than one.
        // Else it is zeroed, which is the kernel's until it is touched: of many connections few
        // need all.
        let (receive, fresh) = match prefix {
            0 => ((bytes / longest).max(1) * longest, 1),
            _ => (bytes.max(2 * stride), 0),
        };
        StreamEndpoint {
            before: Box::new(SocketCounters::read(&socket)),
            socket,
            longest,
            prefix,
            outgoing: vec![fresh; slots * stride].into_boxed_slice(),
            incoming: vec![fresh; receive].into_boxed_slice(),
            taken: 0,
            filled: 0,
            arrived: [(0, 0); MOST_EVENTS],
            pending: VecDeque::with_capacity(slots + MOST_EVENTS),
            completed: 0,
            link: Link::Up,
            zerocopy: None,
            is_watched: prefix > 0,
        }
    }

    fn fail(&mut self, errno: Errno) {
        self.link = match errno {
            Errno::CONNRESET | Errno::PIPE => Link::Closed,
            other => Link::Failed(other.raw_os_error()),
        };
    }

    /// Takes what the kernel took out of the list, and counts the messages that it took whole.
    #[inline]
    fn account(&mut self, mut sent: usize) {
        let mut whole = 0;
        while let Some(first) = self.pending.front_mut() {
            let (start, length) = (first.start, first.end - first.start);
            let taken = sent.min(length);
            first.start += taken;
            sent -= taken;
            // Messages of one size begin at its multiples.
            whole += match self.prefix {
                0 if taken == self.longest => 1,
                0 => (start + taken) / self.longest - start / self.longest,
                _ => usize::from(taken == length),
            };
            if taken < length {
                break;
            }
            self.pending.pop_front();
        }
        match &mut self.zerocopy {
            None => self.completed += whole as u32,
            Some(zerocopy) => zerocopy.sent(whole as u32),
        }
    }

    #[inline]
    fn receive(&mut self, flags: RecvFlags) {
        if self.taken == self.filled {
            // All was handed over, and the last poll's arrivals are given back now.
            (self.taken, self.filled) = (0, 0);
        } else if self.taken + self.prefix + self.longest > self.incoming.len() {
            // The last poll's arrivals are given back now: what is there of the next message moves
            // to the front, where all of it fits.
            self.incoming.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        match rustix::net::recv(&self.socket, &mut self.incoming[self.filled..], flags) {
            Ok((_, 0)) => self.link = Link::Closed,
            Ok((_, got)) => self.filled += got,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.fail(errno),
        }
    }

    /// Where the next message lies, where all of it is there.
    #[inline(always)]
    fn next(&self) -> Option<(usize, usize)> {
        let waiting = &self.incoming[self.taken..self.filled];
        let length = match self.prefix {
            0 => self.longest,
            _ => u32::from_le_bytes(*waiting.first_chunk::<PREFIX>()?) as usize,
        };
        let is_whole = waiting.len() - self.prefix >= length || length > self.longest;
        is_whole.then_some((self.taken + self.prefix, length))
    }

    #[inline]
    fn hand_over(&mut self, events: &mut Events) {
        let mut number = 0;
        while !events.is_full() {
            let Some((start, length)) = self.next() else { break };
            if length > self.longest {
                // No end of ours sends that.
                self.fail(Errno::PROTO);
                break;
            }
            self.arrived[number] = (start, length);
            events.arrive(Slot::arrived(number as u32), length as u32);
            number += 1;
            self.taken = start + length;
        }
        if let Some(zerocopy) = &mut self.zerocopy {
            self.completed += zerocopy.reap(&self.socket);
        }
        events.completed = std::mem::take(&mut self.completed);
        events.link = self.link;
    }

    /// Whether a message that goes or comes alone has nothing to wait for: none is pending, no
    /// length stands in front, and the kernel copies.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.prefix == 0 && self.zerocopy.is_none() && self.pending.is_empty()
    }

    /// Whether an echo that the kernel has not taken yet still lies where a receive would write.
    fn has_pending_echo(&self) -> bool {
        self.pending.iter().any(|stretch| stretch.echo)
    }
}

impl Endpoint for StreamEndpoint {
    #[inline]
    fn slots(&self) -> u32 {
        (self.outgoing.len() / (self.prefix + self.longest)) as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        if slot.has_arrived() {
            let (start, length) = self.arrived[slot.number()];
            return &mut self.incoming[start..start + length];
        }
        let at = slot.number() * (self.prefix + self.longest) + self.prefix;
        &mut self.outgoing[at..at + self.longest]
    }

    #[inline]
    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        let echo = slot.has_arrived();
        let (memory, start) = match echo {
            true => (&mut self.incoming, self.arrived[slot.number()].0 - self.prefix),
            false => (&mut self.outgoing, slot.number() * (self.prefix + self.longest)),
        };
        let end = start + self.prefix + length;
        if self.prefix > 0 {
            if self.pending.len() == self.pending.capacity() {
                return Posted::Full;
            }
            memory[start..start + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
        } else if let Some(last) = self.pending.back_mut() {
            if last.end == start && last.echo == echo {
                last.end = end;
                return Posted::Accepted;
            }
            self.flush();
            if !self.pending.is_empty() {
                return Posted::Full;
            }
        }
        self.pending.push_back(Stretch { echo, start, end });
        Posted::Accepted
    }

    /// One `send` of a message that goes alone. What the kernel does not take is kept.
    #[inline]
    fn post_now(&mut self, slot: Slot, length: usize) -> Posted {
        if !self.is_plain() || self.link != Link::Up {
            let posted = self.post(slot, length);
            self.flush();
            return posted;
        }
        let echo = slot.has_arrived();
        let (memory, start) = match echo {
            true => (&self.incoming, self.arrived[slot.number()].0),
            false => (&self.outgoing, slot.number() * self.longest),
        };
        let (message, flags) = (&memory[start..start + length], FLAGS);
        let sent = match rustix::net::send(&self.socket, message, flags) {
            Ok(sent) if sent == length => {
                self.completed += 1;
                return Posted::Accepted;
            }
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => 0,
            Err(errno) => {
                self.fail(errno);
                0
            }
        };
        self.pending.push_back(Stretch { echo, start: start + sent, end: start + length });
        Posted::Accepted
    }

    #[inline]
    fn flush(&mut self) {
        while !self.pending.is_empty() && self.link == Link::Up {
            let bytes = |stretch: &Stretch| {
                let memory = if stretch.echo { &self.incoming } else { &self.outgoing };
                &memory[stretch.start..stretch.end]
            };
            let mut flags = FLAGS;
            flags.set(MSG_ZEROCOPY, self.zerocopy.is_some());
            let (sent, asked) = match self.pending.len() {
                1 => {
                    let all = bytes(&self.pending[0]);
                    (rustix::net::send(&self.socket, all, flags), all.len())
                }
                several => {
                    let mut pieces = [IoSlice::new(&[]); AT_ONCE];
                    let some = pieces.iter_mut().zip(&self.pending);
                    some.for_each(|(piece, stretch)| *piece = IoSlice::new(bytes(stretch)));
                    let pieces = &pieces[..several.min(AT_ONCE)];
                    let none = &mut SendAncillaryBuffer::default();
                    let sent = rustix::net::sendmsg(&self.socket, pieces, none, flags);
                    (sent, pieces.iter().map(|piece| piece.len()).sum())
                }
            };
            match sent {
                Ok(sent) => {
                    self.account(sent);
                    if sent < asked {
                        return;
                    }
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
        if events.most() > 0 && self.next().is_none() && !self.has_pending_echo() {
            self.receive(RecvFlags::DONTWAIT);
        }
        self.hand_over(events);
        events.any()
    }

    /// One `recv`; where it brings just the message, nothing is looked for in memory.
    #[inline]
    fn poll_one(&mut self, events: &mut Events) -> Polled {
        if !self.is_plain() || self.taken != self.filled {
            let _ = self.poll(events);
            return Polled::first_of(events);
        }
        self.receive(RecvFlags::DONTWAIT);
        let mut arrival = None;
        if self.filled >= self.longest {
            self.arrived[0] = (0, self.longest);
            self.taken = self.longest;
            arrival = Some(Arrival { slot: Slot::arrived(0), length: self.longest as u32 });
        }
        Polled { arrival, completed: std::mem::take(&mut self.completed), link: self.link }
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.flush();
        if self.completed != 0 || self.next().is_some() || self.link != Link::Up {
            return self.hand_over(events);
        }
        let has_pending = !self.pending.is_empty();
        if has_pending || self.zerocopy.as_ref().is_some_and(ZeroCopy::awaits) {
            let out = if has_pending { PollFlags::OUT } else { PollFlags::empty() };
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN | out)];
            // An interruption comes back with nothing, as the contract allows.
            let _ = rustix::event::poll(&mut polled, None);
            let _ = self.poll(events);
            return;
        }
        self.receive(RecvFlags::empty());
        self.hand_over(events);
    }

    /// A few ends whose messages have one length are each looked at in turn by those that poll.
    fn watched(&self) -> Option<Watched<'_>> {
        self.is_watched.then(|| Watched::Level(self.socket.as_fd()))
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn final_counters(&self) -> FinalCounters {
        self.before.moved(&self.socket)
    }

    fn receiver(&self) -> Option<Box<dyn Endpoint>> {
        let socket = self.socket.try_clone().ok().filter(|_| self.prefix > 0)?;
        let buffers = Buffers { slots: 1, receive: self.incoming.len() };
        Some(Box::new(StreamEndpoint::over(socket, self.longest, self.prefix, buffers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Traffic, Wait};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::OwnedFd;

    fn setup(longest: usize) -> Setup {
        let traffic = Traffic::Echo { every: 1 };
        let setup = Setup::new(Role::Server, traffic, Wait::Busy, longest);
        Setup { window: 4, lengths: Lengths::Varied, ..setup }
    }

    /// An end, and the socket of a peer that writes what it likes.
    fn end(longest: usize) -> (StreamEndpoint, OwnedFd) {
        let kind = (AddressFamily::UNIX, SocketType::STREAM);
        let (own, peer) = socketpair(kind.0, kind.1, SocketFlags::CLOEXEC, None).unwrap();
        (StreamEndpoint::new(own.into(), &setup(longest)), peer)
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
