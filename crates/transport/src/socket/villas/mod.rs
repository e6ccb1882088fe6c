//! `villas`: samples through a socket node of VILLASnode: signal, node under test, file.
//!
//! The client sends each sample to the node as a datagram of `villas.binary`; the node sends it on,
//! as its own configuration says; the server receives it where the node sends to. The node is no
//! part of wiregauge and knows no secret: the kernel lets nothing in but what comes from its
//! address. So nothing but a stream's samples goes this way, and its values lose half their bits.
//!
//! This file is the control path, `endpoint` the data path.

mod endpoint;

use super::messages::MessageEndpoint;
use super::{UDP, options, slots_for};
use crate::settings::{BUSY_POLL, DSCP, RECEIVE_BUFFER, SEND_BUFFER};
use crate::*;
use endpoint::Samples;
use socket2::Socket;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use wiregauge_base::options::OptionDef;
use wiregauge_signal::{METADATA, MOST_VALUES, message_bytes};

/// The socket node of VILLASnode between the two ends: where it receives (its `in.address`), to
/// which the client sends; and where it sends (its `out.address`), at which the server receives.
fn node(settings: &Settings) -> Option<(SocketAddr, SocketAddr)> {
    Some((settings.get("node-in")?, settings.get("node-out")?))
}

const NODE_IN: OptionDef = address("node-in", &["node-out"])
    .help("Address at which a socket node of VILLASnode receives (its in.address)");
const NODE_OUT: OptionDef =
    address("node-out", &["node-in"]).help("Address to which that node sends (its out.address)");

const fn address(name: &'static str, needs: &'static [&'static str]) -> OptionDef {
    OptionDef::text(name, settings::check_address, "").metavar("ADDRESS:PORT").needs(needs)
}

const NEEDS: &str = "villas needs --node-in ADDRESS:PORT, where the node receives, and --node-out \
                     ADDRESS:PORT, where it sends";

/// The transport.
pub const VILLAS: Descriptor = Descriptor {
    about: "UDP datagrams of samples, through a socket node of VILLASnode",
    largest: message_bytes(MOST_VALUES) as u64,
    traffic: &[Traffic::Forward],
    loses: true,
    ordered: false,
    samples_only: true,
    settings: &[NODE_IN, NODE_OUT, DSCP, SEND_BUFFER, RECEIVE_BUFFER, BUSY_POLL],
    path: "a copy into the datagram, send, the kernel's UDP and IP, the node, UDP and IP \
           again, recv, a copy into the message",
    available: |settings| {
        (UDP.available)(settings)?;
        let is_here = node(settings).is_some_and(|(input, _)| input.ip().is_loopback());
        if is_here { wiregauge_host::check_loopback() } else { Ok(()) }
    },
    check,
    ..Descriptor::opened_by(open)
};

fn check(request: &TransportRequest<'_>) -> Result<(), String> {
    let Some((input, output)) = node(request.settings) else { return Err(NEEDS.into()) };
    if input.is_ipv4() != output.is_ipv4() {
        let both = "--node-in and --node-out are addresses of one family: IPv4 or IPv6";
        return Err(both.into());
    }
    if input == output {
        let both = "--node-in and --node-out are one address; the node receives at the first \
                    and wiregauge at the second";
        return Err(both.into());
    }
    Ok(())
}

fn open(setup: &Setup) -> Result<Opening> {
    let ends = node(&setup.settings);
    let (input, output) = ends.ok_or(SetupError::Refused(NEEDS.into()))?;
    let at = match (setup.role, input) {
        (Role::Server, _) => output,
        (Role::Client | Role::Node, input) if input.ip().is_loopback() => (input.ip(), 0).into(),
        (Role::Client | Role::Node, SocketAddr::V4(_)) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (Role::Client | Role::Node, SocketAddr::V6(_)) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // A client receives from the node alone.
    if setup.role == Role::Server {
        check_own(at.ip())?;
    }
    check_peer(input.ip())?;
    let socket = UdpSocket::bind(at).map_err(SetupError::system(format!("binding on {at}")))?;
    // At once: until then it takes what anybody sends.
    let what = format!("connecting to {input}");
    socket.connect(input).map_err(SetupError::system(what))?;
    let (socket, setup) = (Socket::from(socket), setup.clone());
    // The ends do not speak to each other, but to the node.
    Ok(Opening::new(Blob::default(), move |_| {
        options::apply(&socket, &setup.settings)?;
        let effective_settings = options::effective(&socket);
        let (endpoint, rejected_peers) = endpoint_over(socket, &setup)?;
        Ok(Connected { endpoint, effective_settings, rejected_peers })
    }))
}

/// Makes the endpoint of a connected socket; also returns how many datagrams of others it threw
/// away.
pub(super) fn endpoint_over(socket: Socket, setup: &Setup) -> Result<(Box<dyn Endpoint>, u64)> {
    let size = setup.size.max(METADATA);
    let (samples, rejected_peers) = Samples::connected(socket, size, setup)?;
    let endpoint = MessageEndpoint::new(samples, slots_for(setup, size), size);
    Ok((Box::new(endpoint), rejected_peers))
}
