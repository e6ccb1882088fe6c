//! Authentication: the server accepts the end whose first request is the run's cookie, from an
//! address that the daemon allows.
//!
//! Homa has no connections, and a socket of its protocol is reached by every address of the host.
//! So the client begins with a request that holds the cookie, and the server answers none but the
//! end that sent it. It also learns by it from which address that end's requests come, which is the
//! kernel's choice where a host has several.

use super::abi::{SendArgs, is_request};
use super::inbox::{Failure, Inbox};
use super::socket::Calls;
use crate::{Result, Setup, SetupError};
use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::SockAddr;
use std::net::{IpAddr, SocketAddr};

/// The answer to the cookie.
const WELCOME: [u8; 1] = [1];
/// The answer to everything else, which lets the kernel forget the request.
const REJECTION: [u8; 1] = [0];

/// Answers the request of a peer that is rejected; errors do not matter.
#[cold]
pub fn turn_away<S: Calls>(socket: &S, id: u64, from: Option<SocketAddr>) {
    if let Some(from) = from.filter(|_| is_request(id)) {
        let _ = socket.send(&mut SendArgs::reply(id), &from.into(), &REJECTION);
    }
}

/// Presents the cookie to the server at this address, and waits until it is accepted.
pub fn present<S: Calls>(inbox: &mut Inbox<S>, server: SocketAddr, setup: &Setup) -> Result<()> {
    let failed =
        |errno: Errno| SetupError::system(format!("presenting the cookie to {server}"))(errno);
    let deadline = setup.deadline();
    let to = SockAddr::from(server);
    while let Err(errno) = inbox.socket.send(&mut SendArgs::request(0), &to, &setup.cookie) {
        match errno {
            Errno::AGAIN | Errno::INTR | Errno::NOBUFS => {
                inbox.socket.sleep(PollFlags::OUT, Some(deadline.left("sending")?));
            }
            other => return Err(failed(other)),
        }
    }
    loop {
        match inbox.receive(false) {
            Ok(reply) if is_request(reply.id) => turn_away(&inbox.socket, reply.id, reply.from),
            Ok(reply) if inbox.lay_out(reply.length) && *inbox.message() == WELCOME => {
                return Ok(());
            }
            Ok(_) => {
                return Err(SetupError::Refused(format!(
                    "the end at {server} does not know the cookie of this run"
                )));
            }
            Err(Failure::Nothing) => {
                let left = deadline.left("the server's answer to the cookie")?;
                inbox.socket.sleep(PollFlags::IN, Some(left));
            }
            Err(Failure::Request { errno, .. } | Failure::Socket(errno)) => {
                return Err(failed(errno));
            }
        }
    }
}

/// Waits for the request of an allowed peer that holds the cookie; returns its sender's address and
/// the number of peers that were rejected.
pub fn admit<S: Calls>(
    inbox: &mut Inbox<S>,
    setup: &Setup,
    is_peer: fn(IpAddr) -> bool,
) -> Result<(SocketAddr, u64)> {
    let failed = |errno: Errno| SetupError::system("awaiting the client's cookie")(errno);
    let deadline = setup.deadline();
    let mut rejected = 0;
    loop {
        match inbox.receive(false) {
            Ok(request) => {
                let is_allowed = request.from.is_some_and(|from| is_peer(from.ip()));
                let knows =
                    is_allowed && inbox.lay_out(request.length) && setup.is_cookie(inbox.message());
                if let Some(from) = request.from.filter(|_| knows && is_request(request.id)) {
                    let reply = &mut SendArgs::reply(request.id);
                    inbox.socket.send(reply, &from.into(), &WELCOME).map_err(failed)?;
                    return Ok((from, rejected));
                }
                turn_away(&inbox.socket, request.id, request.from);
                rejected += 1;
            }
            Err(Failure::Nothing) => {
                let left = deadline.left("the client's cookie")?;
                inbox.socket.sleep(PollFlags::IN, Some(left));
            }
            Err(Failure::Request { .. }) => rejected += 1,
            Err(Failure::Socket(errno)) => return Err(failed(errno)),
        }
    }
}
