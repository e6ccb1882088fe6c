//! The data path of `homa`: one message a system call each way, requests one way and replies the
//! other.
//!
//! A client's post is a new request, and what arrives there is a reply. A server's post answers the
//! oldest request that it has not answered: the order in which all patterns answer. Nothing can be
//! posted there while no request is open.

use super::abi::{SendArgs, is_request};
use super::admit;
use super::inbox::{Failure, Inbox, Incoming};
use super::module::Metrics;
use super::socket::{Calls, Socket};
use crate::counter::{CounterValue, FinalCounters};
use crate::socket::messages::{MessageEndpoint, Wire};
use crate::socket::seen;
use crate::{Link, Role};
use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::SockAddr;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use wiregauge_host::Tree;

#[cfg(test)]
mod tests;

/// Most requests that a server has received and not answered; with more it reads no further until
/// it has answered one. Patterns answer what one poll brought before the next one.
const MOST_UNANSWERED: usize = 1024;

/// The end of a connection.
pub type HomaEndpoint<S = Socket> = MessageEndpoint<HomaWire<S>>;

/// A socket whose other end is known.
pub struct HomaWire<S> {
    inbox: Inbox<S>,
    role: Role,
    /// The other end.
    peer: SocketAddr,
    to: SockAddr,
    /// Bytes of the longest message.
    size: usize,
    /// The requests that a server has not answered, oldest first: at most [`MOST_UNANSWERED`].
    unanswered: VecDeque<u64>,
    /// Requests that were sent.
    requests: u64,
    rejected: u64,
    /// What the module had counted when this end was opened.
    before: Metrics,
    /// A request that has failed, and why: its number among this end's, from 1; 0 for one that came
    /// from the other end.
    failed: Option<(u64, Errno)>,
}

impl<S: Calls> HomaWire<S> {
    /// The end of this role, for messages of `size` bytes, whose other end is `peer`. So many peers
    /// were rejected before.
    pub(super) fn new(
        inbox: Inbox<S>,
        role: Role,
        peer: SocketAddr,
        size: usize,
        rejected: u64,
    ) -> HomaWire<S> {
        HomaWire {
            inbox,
            role,
            peer,
            to: peer.into(),
            size,
            unanswered: VecDeque::with_capacity(MOST_UNANSWERED),
            requests: 0,
            rejected,
            before: Metrics::read(&Tree::default()),
            failed: None,
        }
    }

    /// Whether a message is what the other end sends. Only its addresses and ports are compared: a
    /// link-local one comes without its scope.
    #[inline(always)]
    fn is_of_peer(&self, incoming: &Incoming) -> bool {
        let is_peer =
            |from: SocketAddr| from.ip() == self.peer.ip() && from.port() == self.peer.port();
        match self.role {
            // The kernel lets no requests in, and replies only to what was asked.
            Role::Client | Role::Node => !is_request(incoming.id),
            Role::Server => is_request(incoming.id) && incoming.from.is_some_and(is_peer),
        }
    }

    #[inline(always)]
    fn take(&mut self, incoming: Incoming) -> Result<usize, Link> {
        if incoming.length > self.size || !self.inbox.lay_out(incoming.length) {
            return Err(self.link_after(Errno::MSGSIZE));
        }
        if self.role == Role::Server {
            self.unanswered.push_back(incoming.id);
        }
        Ok(incoming.length)
    }
}

impl<S: Calls> Wire for HomaWire<S> {
    #[inline]
    fn send(&self, message: &[u8]) -> Result<(), Errno> {
        let mut arguments = match self.role {
            Role::Client | Role::Node => SendArgs::request(self.requests + 1),
            Role::Server => SendArgs::reply(*self.unanswered.front().ok_or(Errno::AGAIN)?),
        };
        self.inbox.socket.send(&mut arguments, &self.to, message)
    }

    #[inline(always)]
    fn sent(&mut self) {
        match self.role {
            Role::Client | Role::Node => self.requests += 1,
            Role::Server => drop(self.unanswered.pop_front()),
        }
    }

    /// A server answers no more than was asked.
    #[inline(always)]
    fn may_post(&self, staged: usize) -> bool {
        self.role == Role::Client || staged < self.unanswered.len()
    }

    /// Where the request can be noted.
    #[inline(always)]
    fn may_receive(&self) -> bool {
        self.unanswered.len() < MOST_UNANSWERED
    }

    #[inline]
    fn receive(&mut self, sleeps: bool) -> Result<Option<usize>, Link> {
        loop {
            let incoming = match self.inbox.receive(sleeps) {
                Ok(incoming) => incoming,
                Err(Failure::Nothing) => return Ok(None),
                Err(Failure::Request { cookie, errno }) => {
                    self.failed = Some((cookie, errno));
                    return Err(self.link_after(errno));
                }
                Err(Failure::Socket(errno)) => return Err(self.link_after(errno)),
            };
            if self.is_of_peer(&incoming) {
                return self.take(incoming).map(Some);
            }
            self.rejected += 1;
            admit::turn_away(&self.inbox.socket, incoming.id, incoming.from);
            // A message that is rejected wakes nobody.
            if !sleeps {
                return Ok(None);
            }
        }
    }

    #[inline]
    fn incoming(&self) -> &[u8] {
        self.inbox.message()
    }

    #[inline]
    fn incoming_mut(&mut self) -> &mut [u8] {
        self.inbox.message_mut()
    }

    fn link_after(&self, errno: Errno) -> Link {
        match errno {
            // There is no such port at the other end any more, or this socket was shut down.
            Errno::NOTCONN | Errno::SHUTDOWN => Link::Closed,
            other => Link::Failed(other.raw_os_error()),
        }
    }

    fn sleep(&self, until: PollFlags) {
        self.inbox.socket.sleep(until, None);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inbox.socket.descriptor()
    }

    /// Of a client only: the open requests of a server belong to its one thread.
    fn second(&self) -> Option<HomaWire<S>> {
        let inbox = || Inbox::new(self.inbox.socket.clone(), self.size);
        let second = || HomaWire::new(inbox(), self.role, self.peer, self.size, 0);
        (self.role == Role::Client).then(second)
    }

    fn rejected_peers(&self) -> u64 {
        self.rejected
    }

    fn final_counters(&self) -> FinalCounters {
        let mut all = seen("gathered", self.inbox.gatherings);
        all.extend(Metrics::read(&Tree::default()).since(&self.before));
        let failed = self.failed.map(|failed| match failed {
            (0, errno) => format!("one of the other end's: {errno}"),
            (number, errno) => format!("number {number}: {errno}"),
        });
        all.extend(failed.map(|text| ("error.request".to_string(), CounterValue::Text(text))));
        all
    }
}
