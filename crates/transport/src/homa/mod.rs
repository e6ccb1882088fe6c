//! `homa`: requests and replies by the kernel's Homa protocol, where it has one.
//!
//! * Control: this file, and `admit`, by which the ends authenticate each other.
//! * What the module says of itself: `module`.
//! * Data: `endpoint` over `inbox` (what arrives, and whose its pages are) over `socket` (the
//!   system calls, which tests replace), by the numbers and structures of `abi`.
//!
//! Homa carries requests and replies and nothing else: a message that nobody answers has no place
//! in it, so that its traffic is an echo of each message.

mod abi;
mod admit;
mod endpoint;
#[cfg(test)]
mod fake;
mod inbox;
mod module;
mod socket;
#[cfg(test)]
mod tests;

use super::socket::messages::MessageEndpoint;
use super::socket::{options, slots_for};
use super::*;
use abi::{BPAGE, MOST_BPAGES};
use endpoint::{HomaEndpoint, HomaWire};
use inbox::Inbox;
use rustix::io::Errno;
use socket::{Calls, Socket};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use wiregauge_host::Tree;

/// Fewest pages of a receive region, where the module does not ask for more: one that the program
/// holds, one that each of some cores fills with small messages, and the largest message twice.
const FEWEST_BPAGES: usize = 4 * MOST_BPAGES;
/// Most of them, 64 MiB: about what the protocol's own load generator has. With fewer than what is
/// on the way Homa holds messages back until pages are returned.
const MOST_REGION_BPAGES: usize = 1024;

/// Bytes of the receive region: for twice the messages that may be on the way, and no fewer than
/// the module takes on a host with so many possible CPUs.
fn region_bytes(window: u32, size: usize, possible_cpus: usize) -> usize {
    let asked = (2 * window as usize).saturating_mul(size.div_ceil(BPAGE));
    let fewest = FEWEST_BPAGES.max(module::fewest_pages(possible_cpus));
    asked.clamp(fewest, MOST_REGION_BPAGES.max(fewest)) * BPAGE
}

/// The same on this host.
fn own_region_bytes(setup: &Setup) -> usize {
    region_bytes(setup.window, setup.size, module::possible_cpus(&Tree::default()))
}

/// What the kernel's Homa of this host has counted since it was loaded, over all cores; none where
/// there is none.
pub fn counted(tree: &Tree) -> BTreeMap<String, u64> {
    module::Metrics::read(tree).counted()
}

/// The Homa transport.
pub const DESCRIPTOR: Descriptor = Descriptor {
    about: "Homa over IP: requests and replies, by a kernel that has the protocol",
    largest: abi::LARGEST as u64,
    traffic: &[Traffic::Echo { every: 1 }],
    ordered: false,
    between_hosts: true,
    watchable: true,
    splits: true,
    settings: &[settings::INTERFACE, settings::FAMILY],
    path: "sendmsg, the kernel's Homa and IP, recvmsg: both copies included, and a third one \
           for nearly every message above 64 KiB, whose pages are not contiguous",
    // The region, and a message whose pages lie apart.
    memory_beside_slots: |setup| (own_region_bytes(setup) + setup.size) as u64,
    // How many CPUs another host has, only that host knows.
    least_buffer_bytes: |setup| region_bytes(setup.window, setup.size, 1) as u64,
    least_descriptors: 1,
    over_loopback: true,
    counter_warnings: module::warnings,
    available,
    ..Descriptor::opened_by(open)
};

fn available(_: &Settings) -> Result<(), String> {
    socket::probe().map_err(|errno| match errno {
        Errno::PROTONOSUPPORT => "this kernel has no Homa: its module (HomaModule of \
                                  Stanford's PlatformLab) is not part of Linux: build it for \
                                  this kernel and load it"
            .to_string(),
        other => format!("a Homa socket cannot be opened: {other}"),
    })
}

fn open(setup: &Setup) -> Result<Opening> {
    let own = address_of_site(&setup.site, setup.settings.family())?;
    let bytes = own_region_bytes(setup);
    let open = |at| Socket::open(at, bytes, setup.role == Role::Server);
    let what = format!(
        "opening a Homa socket at {} (where a port is asked for, Homa has 1 to {})",
        own.ip(),
        abi::LAST_ASKED_PORT
    );
    let socket = bind_within_limits(own, open).map_err(SetupError::system(what))?;
    let (own, setup) = (socket.own, setup.clone());
    Ok(Opening::new(Blob(own.to_string().into_bytes()), move |other| {
        let mut effective_settings = options::effective_address(own.ip());
        effective_settings.push(("port".into(), own.port().to_string()));
        effective_settings.push(("receive_region_bytes".into(), bytes.to_string()));
        effective_settings.extend(module::settings(&Tree::default()));
        let endpoint = join(socket, own, other, &setup)?;
        Ok(Connected { effective_settings, ..Connected::new(endpoint) })
    }))
}

/// Lets the ends find each other; `other` is the server's address.
fn join<S: Calls>(
    socket: S,
    own: SocketAddr,
    other: &Blob,
    setup: &Setup,
) -> Result<HomaEndpoint<S>> {
    let size = setup.size.max(1);
    let mut inbox = Inbox::new(socket, size);
    let (peer, rejected) = match setup.role {
        Role::Client | Role::Node => {
            let server = other.text()?.parse().map_err(|_| SetupError::Address)?;
            let server = towards(server, own)?;
            admit::present(&mut inbox, server, setup)?;
            (server, 0)
        }
        Role::Server => {
            let (client, rejected) = admit::admit(&mut inbox, setup, is_peer)?;
            (towards(client, own)?, rejected)
        }
    };
    let wire = HomaWire::new(inbox, setup.role, peer, size, rejected);
    Ok(MessageEndpoint::new(wire, slots_for(setup, size), size))
}
