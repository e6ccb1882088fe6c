//! Connected datagram sockets (udp, unixgram): one message a datagram.
//!
//! Both sockets are connected, so that the kernel drops what others send. A datagram that finds
//! the receiver's buffer full is lost without an error: that is a result.

use super::counters::SocketCounters;
use super::messages::Wire;
use super::seen;
use crate::counter::FinalCounters;
use crate::{Link, Result, Role, Setup, SetupError};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;
use std::os::fd::{AsFd, BorrowedFd};

/// Most datagrams that are thrown away before a round: many times what a socket's buffer holds.
const MOST_REJECTED: u64 = 1 << 16;

/// A connected datagram socket with the datagram that came last.
pub struct Datagrams {
    socket: Socket,
    incoming: Box<[u8]>,
    /// Whether an empty datagram means that the other end has closed, as on a unix socket. On a
    /// network anybody may send one.
    empty_ends: bool,
    /// Empty datagrams, of which no end sends any.
    pub(super) empty: u64,
    /// Counters of the socket before its round; `None`: of a second handle, which counts the same.
    before: Option<Box<SocketCounters>>,
}

impl Datagrams {
    /// Takes a connected socket, for datagrams of at most `size` bytes; throws away and counts what
    /// others sent before it was connected (the other end sends nothing before both are; a node
    /// may).
    pub(super) fn connected(
        socket: Socket,
        size: usize,
        setup: &Setup,
        loses: bool,
    ) -> Result<(Datagrams, u64)> {
        if loses && setup.wait.sleeps() && setup.role == Role::Client {
            set_socket_timeout(&socket, Timeout::Recv, Some(setup.loss_after.duration()))
                .map_err(SetupError::system("SO_RCVTIMEO"))?;
        }
        let (mut byte, mut rejected) = ([0u8; 1], 0);
        while rustix::net::recv(&socket, &mut byte, RecvFlags::DONTWAIT).is_ok() {
            rejected += 1;
            if rejected > MOST_REJECTED {
                let sentence = "unexpected datagrams arrive faster than they can be discarded: \
                                stop what sends them";
                return Err(SetupError::Refused(sentence.into()));
            }
        }
        let incoming = vec![1; size].into_boxed_slice();
        let before = Some(Box::new(SocketCounters::read(&socket)));
        Ok((Datagrams { socket, incoming, empty_ends: !loses, empty: 0, before }, rejected))
    }
}

impl Datagrams {
    /// Returns what the kernel has counted of the socket.
    pub(super) fn of_socket(&self) -> FinalCounters {
        self.before.as_ref().map(|before| before.moved(&self.socket)).unwrap_or_default()
    }
}

impl Wire for Datagrams {
    #[inline]
    fn send(&self, message: &[u8]) -> Result<(), Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(&self.socket, message, flags).map(drop)
    }

    #[inline]
    fn receive(&mut self, sleeps: bool) -> Result<Option<usize>, Link> {
        let flags = if sleeps { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        match rustix::net::recv(&self.socket, &mut self.incoming[..], flags) {
            Ok((_, 0)) if self.empty_ends => Err(Link::Closed),
            Ok((_, 0)) => {
                self.empty += 1;
                Ok(None)
            }
            Ok((_, got)) => Ok(Some(got)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(self.link_after(errno)),
        }
    }

    fn incoming(&self) -> &[u8] {
        &self.incoming
    }

    fn incoming_mut(&mut self) -> &mut [u8] {
        &mut self.incoming
    }

    fn link_after(&self, errno: Errno) -> Link {
        match errno {
            // The other end's socket is gone.
            Errno::CONNREFUSED | Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN => Link::Closed,
            other => Link::Failed(other.raw_os_error()),
        }
    }

    fn sleep(&self, until: PollFlags) {
        let _ = rustix::event::poll(&mut [PollFd::new(&self.socket, until)], None);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn second(&self) -> Option<Datagrams> {
        let (socket, incoming) = (self.socket.try_clone().ok()?, self.incoming.clone());
        Some(Datagrams { socket, incoming, empty_ends: self.empty_ends, empty: 0, before: None })
    }

    fn final_counters(&self) -> FinalCounters {
        let mut all = seen("datagrams.empty", self.empty);
        all.extend(self.of_socket());
        all
    }
}
