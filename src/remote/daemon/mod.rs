//! The standing agent: it listens for drivers that have no other way to this host, lets in those
//! with which it was paired, and starts a fresh process for each session, as sshd does for ssh.
//!
//! Takes TLS connections; gives each paired driver an agent ([`crate::agent::serve`]) behind a
//! channel on which its own limits are kept ([`caps`]). Everything that waits or grows has a bound,
//! and every session that was ended or refused leaves one line in the log.

pub mod caps;
pub mod dial;
pub mod identity;
mod log;
pub mod network;
pub mod pairing;
mod session;
pub mod tls;

use crate::control::fault::Fault;
use crate::control::frame;
use crate::control::protocol::FromAgent;
use caps::Caps;
use identity::Identity;
use log::Log;
use network::Network;
use pairing::Offer;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::ClientHello;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tls::{Channel, TlsError};

/// The port where none is named.
pub const PORT: u16 = 7425;
/// How long a stranger may take to prove who it is.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Strangers that may be proving it at once: the one that has taken longest makes room, so that no
/// number of slow ones keeps a paired driver out.
const MOST_STRANGERS: usize = 64;
/// Threads for strangers, those included that are about to end.
const MOST_THREADS: usize = 4 * MOST_STRANGERS;
/// Sessions at once: a round has two, and other drivers may be there.
const MOST_SESSIONS: usize = 64;
/// After an error of accept(2), as too many open files.
const RECOVERY: Duration = Duration::from_millis(100);

/// Who may come in.
pub enum Trust {
    /// Those whose certificates are in this folder, and who pairs with what it offers.
    Folder(PathBuf),
    /// One alone.
    One(CertificateDer<'static>),
}

/// What the agent was started with, and what it counts.
pub struct Keeper {
    /// The program that is started for a session: this one.
    pub program: PathBuf,
    /// Who this host is.
    pub identity: Identity,
    /// Who may come in ...
    pub trust: Trust,
    /// ... from where; empty: from everywhere.
    pub allow: Vec<Network>,
    /// What they may do.
    pub caps: Caps,
    /// Connections that were turned away.
    pub strangers: AtomicU64,
    log: Log,
    sessions: AtomicUsize,
    threads: AtomicUsize,
    waiting: Mutex<Waiting>,
}

/// Connections that have not proved yet whose they are, the oldest first.
#[derive(Default)]
struct Waiting {
    next: u64,
    sockets: VecDeque<(u64, TcpStream)>,
}

/// Counts one more while it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn below(most: usize, count: &'a AtomicUsize) -> Option<Counted<'a>> {
        let counted = Counted(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Keeper {
    /// One that is not yet at work. `quiet`: it keeps no log.
    pub fn new(program: PathBuf, identity: Identity, trust: Trust, quiet: bool) -> Keeper {
        Keeper {
            program,
            identity,
            trust,
            allow: Vec::new(),
            caps: Caps::default(),
            strangers: AtomicU64::new(0),
            log: Log::new(quiet),
            sessions: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place among those who wait; the one who has waited longest may lose its own.
    fn wait(&self, socket: &TcpStream) -> io::Result<u64> {
        let socket = socket.try_clone()?;
        let mut waiting = self.waiting();
        waiting.next += 1;
        let number = waiting.next;
        waiting.sockets.push_back((number, socket));
        if waiting.sockets.len() > MOST_STRANGERS
            && let Some((_, oldest)) = waiting.sockets.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(number)
    }

    /// Gives the place back.
    fn leave(&self, number: u64) {
        self.waiting().sockets.retain(|(one, _)| *one != number);
    }

    fn turn_away(&self, from: SocketAddr, why: &dyn std::fmt::Display) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
        self.log.stranger(from, why);
    }

    /// Those who may come in, each with a name for the log.
    fn trusted(&self) -> Result<Vec<identity::Peer>, String> {
        match &self.trust {
            Trust::Folder(folder) => identity::peers(&folder.join(pairing::DRIVERS)),
            Trust::One(certificate) => {
                Ok(vec![identity::Peer { name: "driver".into(), certificate: certificate.clone() }])
            }
        }
    }
}

/// Where an agent listens; why it cannot, in a sentence.
pub fn listen(at: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(at).map_err(|error| {
        Fault::new(match error.kind() {
            io::ErrorKind::AddrInUse => format!(
                "{at} is in use: an agent is there already, or another program; name another port \
                 with --listen {}:PORT",
                at.ip()
            ),
            io::ErrorKind::AddrNotAvailable => {
                format!("{at} is no address of this host; name one of its own with --listen")
            }
            _ => format!("listening on {at}: {error}"),
        })
    })
}

/// Serves until the process ends.
pub fn serve(keeper: &Arc<Keeper>, listener: &TcpListener) -> ! {
    loop {
        keeper.log.await_readable(listener);
        let (socket, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(_) => {
                std::thread::sleep(RECOVERY);
                continue;
            }
        };
        let from = plain(from);
        if !network::is_allowed(&keeper.allow, from.ip()) {
            keeper.turn_away(from, &"its address is not allowed (--allow)");
            continue;
        }
        let theirs = Arc::clone(keeper);
        let spawned = std::thread::Builder::new().spawn(move || {
            match Counted::below(MOST_THREADS, &theirs.threads) {
                Some(_) => meet(&theirs, socket, from),
                None => theirs.turn_away(from, &"too many come at once"),
            }
        });
        if let Err(error) = spawned {
            keeper.turn_away(from, &error);
        }
    }
}

/// An IPv4 address that came over an IPv6 socket is one of IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// What a connection wants.
enum Wants {
    Session(Vec<identity::Peer>),
    Pairing(Offer),
}

/// Lets one in, or turns it away.
fn meet(keeper: &Arc<Keeper>, socket: TcpStream, from: SocketAddr) {
    let own = socket.local_addr().map(plain);
    let (Ok(own), Ok(place)) = (own, keeper.wait(&socket)) else {
        return keeper.turn_away(from, &"it has left");
    };
    let mut wants = None;
    let deadline = Instant::now() + HANDSHAKE;
    let accepted = Channel::accept(socket, deadline, |hello| choose(keeper, hello, &mut wants));
    keeper.leave(place);
    match (accepted, wants) {
        (Ok(channel), Some(Wants::Session(peers))) => {
            let shown = channel.certificate();
            let known = peers.into_iter().find(|peer| Some(&peer.certificate) == shown.as_ref());
            match known {
                Some(peer) => welcome(keeper, channel, [from, own], &peer.name),
                None => keeper.turn_away(from, &"it is not paired"),
            }
        }
        (Ok(channel), Some(Wants::Pairing(offer))) => pair(keeper, channel, offer, from),
        (Err(error), Some(Wants::Pairing(offer))) => {
            offer.failed();
            keeper.turn_away(from, &format!("a pairing with a wrong secret ({error})"));
        }
        (Ok(_), None) => keeper.turn_away(from, &"it wants nothing"),
        (Err(error), _) => keeper.turn_away(from, &error),
    }
}

/// The configuration for what a connection wants to speak.
fn choose(
    keeper: &Keeper,
    hello: &ClientHello<'_>,
    wants: &mut Option<Wants>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let speaks: Vec<&[u8]> = hello.alpn().map(Iterator::collect).unwrap_or_default();
    match &keeper.trust {
        Trust::Folder(folder) if speaks.contains(&tls::PAIRING) => {
            let offer = Offer::open(folder).map_err(TlsError::Own)?;
            let (own, theirs) = offer.identities().map_err(TlsError::Own)?;
            *wants = Some(Wants::Pairing(offer));
            tls::listening(&own, &[theirs.certificate], tls::PAIRING)
        }
        _ => {
            let peers = keeper.trusted().map_err(TlsError::Own)?;
            let trusted: Vec<_> = peers.iter().map(|peer| peer.certificate.clone()).collect();
            *wants = Some(Wants::Session(peers));
            // One that speaks nothing of ours is refused by TLS itself.
            tls::listening(&keeper.identity, &trusted, tls::FRAMES)
        }
    }
}

fn welcome(keeper: &Arc<Keeper>, channel: Channel, ends: [SocketAddr; 2], name: &str) {
    let Some(_counted) = Counted::below(MOST_SESSIONS, &keeper.sessions) else {
        let sentence = format!("this agent has {MOST_SESSIONS} sessions already");
        keeper.log.session(ends[0], name, "nothing", &format!("refused: {sentence}"));
        if let Ok((_, mut writer)) = channel.split() {
            let refused = FromAgent::Refused { wrong_use: false, sentence };
            let _ = frame::write(&mut writer, &refused);
            writer.close();
        }
        return;
    };
    match session::serve(keeper, channel, ends) {
        Ok(told) => keeper.log.session(ends[0], name, &told.what, &told.result),
        Err(error) => {
            keeper.log.session(ends[0], name, "nothing", &format!("failed: {error}"));
        }
    }
}

fn pair(keeper: &Keeper, channel: Channel, offer: Offer, from: SocketAddr) {
    match pairing::accept(channel, offer, &keeper.identity) {
        Ok(name) => keeper.log.session(from, &name, "pairing", "ended"),
        Err(error) => keeper.log.session(from, "somebody", "pairing", &format!("failed: {error}")),
    }
}

#[cfg(test)]
mod tests;
