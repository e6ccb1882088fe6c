//! The data path of `villas`: that of datagrams, and the two translations between a message of
//! [`wiregauge_signal`] and a datagram, one copy more at each end.

use crate::counter::FinalCounters;
use crate::socket::datagram::Datagrams;
use crate::socket::messages::Wire;
use crate::socket::seen;
use crate::{Link, Result, Setup};
use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::Socket;
use std::cell::RefCell;
use wiregauge_signal::format::binary::{datagram_bytes, decode, encode};
use wiregauge_signal::{Kind, METADATA, TimeOfDay, VALUE};

/// Datagrams that are messages of a stream.
pub struct Samples {
    datagrams: Datagrams,
    kind: Kind,
    /// The datagram that is sent.
    outgoing: RefCell<Box<[u8]>>,
    /// The message that came last.
    incoming: Box<[u8]>,
    /// When it was opened: what was made before is of an earlier round.
    since: TimeOfDay,
    /// Datagrams that were no sample of this stream.
    foreign: u64,
}

impl Samples {
    /// Takes a connected socket, for messages of `size` bytes; how many datagrams were thrown away.
    pub(super) fn connected(socket: Socket, size: usize, setup: &Setup) -> Result<(Samples, u64)> {
        let bytes = datagram_bytes((size - METADATA) / VALUE);
        // A byte more than a datagram, so that a longer one shows.
        let (datagrams, rejected) = Datagrams::connected(socket, bytes + 1, setup, true)?;
        let samples = Samples {
            datagrams,
            kind: setup.kind,
            outgoing: RefCell::new(vec![1; bytes].into_boxed_slice()),
            incoming: vec![0; size].into_boxed_slice(),
            since: setup.opened,
            foreign: 0,
        };
        Ok((samples, rejected))
    }
}

/// There is no connection: the kernel of the node's host says that nobody receives there.
fn failed(link: Link) -> Link {
    match link {
        Link::Closed => Link::Failed(Errno::CONNREFUSED.raw_os_error()),
        other => other,
    }
}

impl Wire for Samples {
    #[inline]
    fn send(&self, message: &[u8]) -> Result<(), Errno> {
        let datagram = &mut *self.outgoing.borrow_mut();
        encode(message, self.kind, datagram);
        self.datagrams.send(datagram)
    }

    #[inline]
    fn receive(&mut self, sleeps: bool) -> Result<Option<usize>, Link> {
        let Some(length) = self.datagrams.receive(sleeps).map_err(failed)? else { return Ok(None) };
        let datagram = &self.datagrams.incoming()[..length];
        match decode(datagram, self.kind, &mut self.incoming) {
            Some(origin) if origin >= self.since => Ok(Some(self.incoming.len())),
            _ => {
                self.foreign += 1;
                Ok(None)
            }
        }
    }

    fn incoming(&self) -> &[u8] {
        &self.incoming
    }

    fn incoming_mut(&mut self) -> &mut [u8] {
        &mut self.incoming
    }

    fn link_after(&self, errno: Errno) -> Link {
        failed(self.datagrams.link_after(errno))
    }

    fn sleep(&self, until: PollFlags) {
        self.datagrams.sleep(until);
    }

    fn final_counters(&self) -> FinalCounters {
        let mut all = seen("datagrams.foreign", self.foreign + self.datagrams.empty);
        all.extend(self.datagrams.of_socket());
        all
    }
}
