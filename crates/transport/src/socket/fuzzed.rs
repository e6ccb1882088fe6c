//! Ends over a pair of unix sockets for the fuzz targets, which write what they like to the other
//! one. Nothing else uses them.

use super::datagram::Datagrams;
use super::messages::MessageEndpoint;
use super::stream::StreamEndpoint;
use super::{slots_for, villas};
use crate::{Endpoint, Lengths, Result, Role, Setup, SetupError, Traffic, Wait};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::OwnedFd;

/// Content of such a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Messages of one length, one behind the other.
    Messages,
    /// Messages behind their lengths.
    Prefixed,
    /// A message a datagram.
    Datagrams,
    /// A sample of VILLASnode's form a datagram.
    Samples,
}

/// Opens an end for messages of at most this many bytes.
///
/// # Errors
/// The kernel has no socket left.
pub fn end(carries: Carries, size: usize) -> Result<(Box<dyn Endpoint>, OwnedFd)> {
    let is_stream = matches!(carries, Carries::Messages | Carries::Prefixed);
    let kind = if is_stream { SocketType::STREAM } else { SocketType::DGRAM };
    let (own, peer) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .map_err(SetupError::system("socketpair"))?;
    let setup = Setup::new(Role::Server, Traffic::Echo { every: 1 }, Wait::Busy, size);
    let lengths = if carries == Carries::Prefixed { Lengths::Varied } else { Lengths::Fixed };
    let setup = Setup { window: 4, lengths, ..setup };
    let endpoint: Box<dyn Endpoint> = match carries {
        Carries::Messages | Carries::Prefixed => Box::new(StreamEndpoint::new(own.into(), &setup)),
        Carries::Datagrams => {
            let (datagrams, _) = Datagrams::connected(own.into(), size, &setup, true)?;
            Box::new(MessageEndpoint::new(datagrams, slots_for(&setup, size), size))
        }
        Carries::Samples => villas::endpoint_over(own.into(), &setup)?.0,
    };
    Ok((endpoint, peer))
}
