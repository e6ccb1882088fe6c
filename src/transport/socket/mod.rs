//! The transports that are sockets. They share one control path ([`transport`]) and two data
//! paths: [`stream`], and [`messages`] over [`datagram`]. A file each says how they differ.
//! `villas` writes a stream's samples in VILLASnode's form into datagrams.

mod admit;
mod common;
pub mod datagram;
pub mod messages;
pub mod options;
pub(super) mod site;
pub mod stream;
mod tcp;
pub mod transport;
mod udp;
mod unix;
mod villas;

pub(super) use common::{seen, slots_for};
pub use tcp::{CONGESTION, TCP};
pub use transport::SocketTransport;
pub use udp::UDP;
pub use unix::{UNIX, UNIXGRAM};
pub use villas::VILLAS;
