//! The transports that are sockets: one file a transport for the control path, and three data
//! paths that they share: [`stream`], [`datagram`], and `framed` for lengths that differ. `villas`
//! goes over the second, and writes a stream's samples in VILLASnode's form.

mod admit;
mod common;
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

use crate::transport::{Endpoint, Lengths, Setup};
pub(super) use common::slots_for;
use std::os::fd::OwnedFd;

/// The end of a connected stream socket.
fn stream_endpoint(socket: OwnedFd, setup: &Setup) -> Box<dyn Endpoint> {
    match setup.lengths {
        Lengths::Fixed => Box::new(stream::StreamEndpoint::new(socket, setup)),
        Lengths::Varied => Box::new(framed::FramedEndpoint::new(socket, setup)),
    }
}
