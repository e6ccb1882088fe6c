//! The transports that are sockets: one file a transport for the control path, and three data
//! paths that they share: [`stream`], [`datagram`], and `framed` for lengths that differ. `villas`
//! goes over the second, and writes a stream's samples in VILLASnode's form.

mod admit;
pub mod datagram;
mod framed;
pub mod options;
pub(super) mod site;
pub mod stream;
mod tcp;
mod udp;
mod unix;
mod villas;

pub use tcp::{CONGESTION, Tcp};
pub use udp::Udp;
pub use unix::{UnixDatagram, UnixStream};
pub use villas::Villas;

use crate::transport::{Endpoint, Lengths, Link, NamedValues, Setup};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Most sending slots of a socket endpoint: a window above it gains nothing, since the kernel's
/// buffer is the queue.
const MOST_SLOTS: usize = 1024;

/// Bytes that a stream receives at once where messages are smaller: what iperf3 and most programs
/// use, and half of a small L2 cache.
const RECEIVE_BYTES: usize = 128 << 10;

/// Most memory for sending slots: beyond a cache's size more slots only slow the copy down.
const SEND_BYTES: usize = 1 << 20;

/// The end of a connected stream socket.
fn stream_endpoint(socket: OwnedFd, setup: &Setup) -> Box<dyn Endpoint> {
    match setup.lengths {
        Lengths::Fixed => Box::new(stream::StreamEndpoint::new(socket, setup)),
        Lengths::Varied => Box::new(framed::FramedEndpoint::new(socket, setup)),
    }
}

/// A count of what an end has seen, where it has seen any.
fn seen(name: &str, count: u64) -> NamedValues {
    let some = (count > 0).then(|| (name.to_string(), count.to_string()));
    some.into_iter().collect()
}

/// What an error of a stream socket says of its connection.
fn link_of(errno: Errno) -> Link {
    match errno {
        Errno::CONNRESET | Errno::PIPE => Link::Closed,
        other => Link::Failed(other.raw_os_error()),
    }
}

/// How many sending slots of this size: the window, bounded by [`MOST_SLOTS`] and [`SEND_BYTES`].
pub(super) fn slots_for(window: u32, size: usize) -> usize {
    (window as usize).clamp(1, MOST_SLOTS).min((SEND_BYTES / size.max(1)).max(1))
}
