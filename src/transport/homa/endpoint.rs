//! The data path of `homa`: one message a system call each way, requests one way and replies the
//! other.
//!
//! A client's post is a new request, and what arrives there is a reply. A server's post answers the
//! oldest request that it has not answered: the order in which all patterns answer. Nothing can be
//! posted there while no request is open.

use super::abi::{SendArgs, is_request};
use super::admit;
use super::inbox::{Failure, Inbox, Incoming};
use super::socket::{Calls, Socket};
use crate::transport::counter::{CounterValue, FinalCounters};
use crate::transport::{Endpoint, Events, Link, MOST_EVENTS, Posted, Role, Slot};
use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::SockAddr;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

#[cfg(test)]
mod tests;

/// Most requests that a server has received and not answered; with more it reads no further until
/// it has answered one. Patterns answer what one poll brought before the next one.
const MOST_UNANSWERED: usize = 1024;

/// The requests that a server has not answered, oldest first.
struct Unanswered {
    ids: Box<[u64; MOST_UNANSWERED]>,
    first: usize,
    count: usize,
}

impl Unanswered {
    fn new() -> Unanswered {
        Unanswered { ids: Box::new([0; MOST_UNANSWERED]), first: 0, count: 0 }
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.count == MOST_UNANSWERED
    }

    /// The caller ensures that there is room.
    #[inline(always)]
    fn push(&mut self, id: u64) {
        self.ids[(self.first + self.count) % MOST_UNANSWERED] = id;
        self.count += 1;
    }

    #[inline(always)]
    fn oldest(&self) -> Option<u64> {
        (self.count > 0).then(|| self.ids[self.first])
    }

    #[inline(always)]
    fn answered(&mut self) {
        self.first = (self.first + 1) % MOST_UNANSWERED;
        self.count = self.count.saturating_sub(1);
    }
}

/// A request that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its number among this end's, from 1; 0 for one that came from the other end.
    pub number: u64,
    /// Why.
    pub errno: Errno,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            0 => write!(f, "one of the other end's: {}", self.errno),
            number => write!(f, "number {number}: {}", self.errno),
        }
    }
}

/// A connected end.
pub struct HomaEndpoint<S = Socket> {
    inbox: Inbox<S>,
    role: Role,
    /// The other end.
    peer: SocketAddr,
    to: SockAddr,
    size: usize,
    outgoing: Box<[u8]>,
    /// Posted and not yet sent, with their lengths: `staged[first..last]`.
    staged: [(Slot, usize); MOST_EVENTS],
    first: usize,
    last: usize,
    unanswered: Unanswered,
    /// Requests that were sent.
    requests: u64,
    completed: u32,
    link: Link,
    rejected: u64,
    failed: Option<Failed>,
}

impl<S: Calls> HomaEndpoint<S> {
    /// The end of this role, with so many slots of `size` bytes, whose other end is `peer`. So many
    /// peers were rejected before.
    pub(super) fn new(
        inbox: Inbox<S>,
        role: Role,
        peer: SocketAddr,
        (slots, size): (usize, usize),
        rejected: u64,
    ) -> HomaEndpoint<S> {
        HomaEndpoint {
            inbox,
            role,
            peer,
            to: peer.into(),
            size,
            outgoing: vec![1; slots * size].into_boxed_slice(),
            staged: [(Slot::default(), 0); MOST_EVENTS],
            first: 0,
            last: 0,
            unanswered: Unanswered::new(),
            requests: 0,
            completed: 0,
            link: Link::Up,
            rejected,
            failed: None,
        }
    }

    #[cold]
    fn fail(&mut self, errno: Errno) {
        self.link = match errno {
            // There is no such port at the other end any more, or this socket was shut down.
            Errno::NOTCONN | Errno::SHUTDOWN => Link::Closed,
            other => Link::Failed(other.raw_os_error()),
        };
    }

    /// The arguments of `sendmsg` for the oldest post.
    #[inline(always)]
    fn arguments(&self) -> Option<SendArgs> {
        match self.role {
            Role::Client => Some(SendArgs::request(self.requests + 1)),
            Role::Server => self.unanswered.oldest().map(SendArgs::reply),
        }
    }

    /// Accounts for the oldest post, which was sent.
    #[inline(always)]
    fn sent(&mut self) {
        self.first += 1;
        self.completed += 1;
        match self.role {
            Role::Client => self.requests += 1,
            Role::Server => self.unanswered.answered(),
        }
    }

    /// Receives one message; whether it was rejected.
    #[inline]
    fn receive(&mut self, sleeps: bool, events: &mut Events) -> bool {
        match self.inbox.receive(sleeps) {
            Ok(incoming) if self.is_of_peer(&incoming) => {
                self.take(incoming, events);
                return false;
            }
            Ok(Incoming { id, from, .. }) => {
                self.rejected += 1;
                admit::turn_away(self.inbox.socket(), id, from);
                return true;
            }
            Err(Failure::Nothing) => {}
            Err(Failure::Request { id: _, cookie: number, errno }) => {
                self.failed = Some(Failed { number, errno });
                self.fail(errno);
            }
            Err(Failure::Socket(errno)) => self.fail(errno),
        }
        false
    }

    /// Whether a message is what the other end sends. Only its addresses and ports are compared: a
    /// link-local one comes without its scope.
    #[inline(always)]
    fn is_of_peer(&self, incoming: &Incoming) -> bool {
        let is_peer =
            |from: SocketAddr| from.ip() == self.peer.ip() && from.port() == self.peer.port();
        match self.role {
            // The kernel lets no requests in, and replies only to what was asked.
            Role::Client => !is_request(incoming.id),
            Role::Server => is_request(incoming.id) && incoming.from.is_some_and(is_peer),
        }
    }

    #[inline(always)]
    fn take(&mut self, incoming: Incoming, events: &mut Events) {
        if incoming.length > self.size || !self.inbox.lay_out(incoming.length) {
            return self.fail(Errno::MSGSIZE);
        }
        if self.role == Role::Server {
            self.unanswered.push(incoming.id);
        }
        events.arrive(Slot::arrived(0), incoming.length as u32);
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

    /// Whether another message may be received: there is a place for it, its request can be noted,
    /// and no echo that the kernel has not taken yet lies in the pages that would be given back.
    #[inline(always)]
    fn may_receive(&self, events: &Events) -> bool {
        !events.is_full()
            && !self.unanswered.is_full()
            && !self.staged[self.first..self.last].iter().any(|(slot, _)| slot.has_arrived())
    }
}

impl<S: Calls + Send + 'static> Endpoint for HomaEndpoint<S> {
    #[inline]
    fn slots(&self) -> u32 {
        (self.outgoing.len() / self.size) as u32
    }

    #[inline]
    fn payload(&mut self, slot: Slot) -> &mut [u8] {
        if slot.has_arrived() {
            return self.inbox.message_mut();
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
        if self.role == Role::Server && self.last - self.first == self.unanswered.count {
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
            let Some(mut arguments) = self.arguments() else { return };
            let (slot, length) = self.staged[self.first];
            let message = if slot.has_arrived() {
                let arrived = self.inbox.message();
                &arrived[..length.min(arrived.len())]
            } else {
                let at = slot.number() * self.size;
                &self.outgoing[at..at + length]
            };
            match self.inbox.socket().send(&mut arguments, &self.to, message) {
                Ok(()) => self.sent(),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => return,
                Err(errno) => self.fail(errno),
            }
        }
    }

    #[inline]
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.flush();
        if self.may_receive(events) {
            let _ = self.receive(false, events);
        }
        self.report(events);
        events.any()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inbox.socket().descriptor()
    }

    /// Of a client only: the open requests of a server belong to its one thread.
    fn receiver(&self) -> Option<Box<dyn Endpoint>> {
        let inbox = self.inbox.second().filter(|_| self.role == Role::Client)?;
        Some(Box::new(HomaEndpoint::new(inbox, self.role, self.peer, (1, self.size), 0)))
    }

    fn rejected_peers(&self) -> u64 {
        self.rejected
    }

    fn final_counters(&self) -> FinalCounters {
        let gathered = Some(self.inbox.gatherings()).filter(|messages| *messages > 0);
        let seen = [
            ("gathered", gathered.map(CounterValue::Events)),
            ("error.request", self.failed.map(|failed| CounterValue::Text(failed.to_string()))),
        ];
        seen.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
    }

    #[inline]
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.flush();
        if self.completed != 0 || self.link != Link::Up {
            return self.report(events);
        }
        if self.has_pending() {
            self.inbox.socket().sleep(PollFlags::IN | PollFlags::OUT, None);
            let _ = self.poll(events);
            return;
        }
        // A message that is rejected wakes nobody.
        while self.may_receive(events) && self.receive(true, events) {}
        self.report(events);
    }
}
