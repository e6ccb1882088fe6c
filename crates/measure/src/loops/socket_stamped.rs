//! An end of a socket whose messages the kernel stamps by SO_TIMESTAMPING, for `explain` without
//! rights: when each is handed to the device queue, when the driver has it, when it is received.
//!
//! It wraps the endpoint of a connected socket, as [`super::stamped`] wraps others. A stamp of a
//! message that came stands beside its bytes, which the endpoint takes by itself, so the wrapper
//! looks at them first without taking them (MSG_PEEK): each look is a system call more. Stamps of
//! messages that left are read from the socket's error queue before every [`READ_EVERY`]th post,
//! which is not to be explained.

use super::around::leave_to_inner;
use super::stamped::identify;
use nix::sys::socket::MsgFlags;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use wiregauge_clock::stamped::{self, Message};
use wiregauge_clock::{Source, Ticks};
use wiregauge_sample::Flags;
use wiregauge_sample::arena::{Arena, Row};
use wiregauge_transport::{Endpoint, Events, Posted, Slot};

/// Messages between two readings of the stamps. Each has two, of some 800 bytes of the receive
/// buffer, which holds 128 KiB at least unless it was made smaller.
pub const READ_EVERY: u64 = 32;
/// The most that is looked at of a message: longer ones are not followed.
pub const LONGEST: usize = 8 << 10;
/// Stamps that are read at once: twice those of the messages.
const MOST_AT_ONCE: u64 = 4 * READ_EVERY;

/// An end that the kernel stamps.
///
/// Its rows: the first has the number of the thread in `order`. Each other one has one time:
/// `intended` is the kernel's stamp before the device queue, `complete` that of the driver,
/// `receive` that of a message that came (all CLOCK_REALTIME), `submit` when the poll that found it
/// returned (by the program's clock). `flags` has the CPU of the last.
pub struct SocketStamped {
    inner: Box<dyn Endpoint>,
    socket: OwnedFd,
    source: Source,
    memory: Arena,
    used: usize,
    posted: u64,
    looked_at: Box<[u8]>,
    received: Option<Ticks>,
}

impl SocketStamped {
    /// Around an end, with memory for the stamps. To be made by the thread that will use it.
    ///
    /// # Errors
    /// It is no socket, or the kernel does not stamp it.
    pub fn new(
        inner: Box<dyn Endpoint>,
        source: Source,
        mut memory: Arena,
    ) -> io::Result<SocketStamped> {
        let socket = inner.socket().map(|socket| socket.try_clone_to_owned());
        let socket = socket.unwrap_or_else(|| Err(io::ErrorKind::Unsupported.into()))?;
        stamped::follow(socket.as_fd())?;
        identify(&mut memory);
        let looked_at = vec![0; LONGEST].into_boxed_slice();
        let (used, posted, received) = (1, 0, None);
        Ok(SocketStamped { inner, socket, source, memory, used, posted, looked_at, received })
    }

    fn keep(&mut self, row: Row) {
        let (rows, progress) = self.memory.writer();
        if let Some(place) = rows.get_mut(self.used) {
            *place = row;
            self.used += 1;
            progress.used(self.used as u64);
        }
    }

    /// Reads the stamps of what has left.
    fn read_left(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let found = Message::take(self.socket.as_fd(), &mut [], MsgFlags::MSG_ERRQUEUE);
            let Ok(Some(message)) = found else { return };
            match (message.stamp, message.left_at) {
                (Some(intended), stamped::BEFORE_QUEUE) => {
                    self.keep(Row { intended, ..Row::default() });
                }
                (Some(complete), stamped::BY_DRIVER) => {
                    self.keep(Row { complete, ..Row::default() });
                }
                _ => {}
            }
        }
    }

    fn posts(&mut self) {
        if self.posted.is_multiple_of(READ_EVERY) {
            self.read_left();
        }
    }

    fn counted(&mut self, posted: Posted) -> Posted {
        self.posted += u64::from(posted == Posted::Accepted);
        posted
    }

    /// Whether there is something to take: bytes, or an end.
    fn looks(&mut self, more: MsgFlags) -> bool {
        let flags = MsgFlags::MSG_PEEK | more;
        match Message::take(self.socket.as_fd(), &mut self.looked_at, flags) {
            Ok(Some(message)) => {
                self.received = message.stamp.or(self.received);
                true
            }
            Ok(None) => false,
            // The endpoint meets it too.
            Err(_) => true,
        }
    }

    /// Keeps when a message that was found came.
    fn found(&mut self, events: &Events) {
        if events.arrivals().is_empty() {
            return;
        }
        let submit = self.source.read();
        let cpu = rustix::thread::sched_getcpu() as u32;
        if let Some(receive) = self.received.take() {
            self.keep(Row { receive, ..Row::default() });
        }
        self.keep(Row { submit, flags: Flags(cpu), ..Row::default() });
    }
}

impl Endpoint for SocketStamped {
    leave_to_inner!();

    fn post(&mut self, slot: Slot, length: usize) -> Posted {
        self.posts();
        let posted = self.inner.post(slot, length);
        self.counted(posted)
    }

    fn post_now(&mut self, slot: Slot, length: usize) -> Posted {
        self.posts();
        let posted = self.inner.post_now(slot, length);
        self.counted(posted)
    }

    /// What is not there at the look is left for the next: it would be taken without its stamp.
    fn poll(&mut self, events: &mut Events) -> bool {
        events.clear();
        self.inner.flush();
        if !self.looks(MsgFlags::MSG_DONTWAIT) {
            return false;
        }
        let has_found = self.inner.poll(events);
        self.found(events);
        has_found
    }

    fn wait(&mut self, events: &mut Events) {
        events.clear();
        self.inner.flush();
        if self.looks(MsgFlags::empty()) {
            self.inner.wait(events);
            self.found(events);
        }
    }
}

impl Drop for SocketStamped {
    fn drop(&mut self) {
        self.read_left();
    }
}
