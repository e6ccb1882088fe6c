//! The agent daemon (`wiregauge agent`), for hosts without ssh. It accepts paired controllers over
//! TLS and starts a fresh agent process for each session, as sshd does.
//!
//! Takes TLS connections; gives each paired controller an agent
//! ([`wiregauge_measure::agent::serve`]) behind a channel that enforces the daemon's limits
//! ([`caps`]). Everything that waits or grows has a bound, and every session and every rejected
//! peer is logged.

pub mod caps;
pub mod dial;
pub mod identity;
mod log;
mod memory;
pub mod pairing;
mod session;
pub mod tls;

use crate::locked;
use crate::program::AgentProgram;
use caps::Caps;
use identity::Identity;
use log::Log;
use pairing::Offer;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::ClientHello;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tls::Channel;
use wiregauge_base::threads;
use wiregauge_host::ip_network::Network;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::frame;
use wiregauge_measure::control::protocol::FromAgent;
use wiregauge_plan::FindPattern;
use wiregauge_plan::host_spec;

/// Time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Most concurrent handshakes. A further one drops the oldest, so that slow peers cannot keep a
/// paired controller out.
const MOST_HANDSHAKES: usize = 64;
/// Most threads for handshakes, including those about to end.
const MOST_THREADS: usize = 4 * MOST_HANDSHAKES;
/// Most concurrent sessions. A round needs two, and several controllers may share the host.
const MOST_SESSIONS: usize = 64;
/// Pause after an error of accept(2), such as too many open files.
const RECOVERY: Duration = Duration::from_millis(100);

/// Which controllers may connect.
pub enum Trust {
    /// Those whose certificates are in this folder, and one that knows the pairing secret in it.
    Folder(PathBuf),
    /// The one with this certificate.
    One(CertificateDer<'static>),
}

/// The daemon's settings and state.
pub struct Daemon {
    /// The program to start for a session: this one.
    pub program: AgentProgram,
    /// This host's identity.
    pub identity: Identity,
    /// Which controllers may connect.
    pub trust: Trust,
    /// From which networks; empty: from any.
    pub allow: Vec<Network>,
    /// The limits of their rounds.
    pub caps: Caps,
    /// The patterns that it knows.
    pub patterns: FindPattern,
    /// Connections that were rejected.
    pub rejected: AtomicU64,
    log: Log,
    /// Memory of the rounds that run.
    memory: memory::Ledger,
    /// One more reference per session, and per thread of a handshake.
    sessions: Arc<()>,
    threads: Arc<()>,
    /// Connections in their handshake, the oldest first.
    handshakes: Mutex<VecDeque<Weak<TcpStream>>>,
}

/// Counts one more of these, unless there are `most` already.
fn count(most: usize, counted: &Arc<()>) -> Option<Arc<()>> {
    let one = Arc::clone(counted);
    // The owner has a reference, too.
    (Arc::strong_count(counted) - 1 <= most).then_some(one)
}

impl Daemon {
    /// A daemon that does not serve yet. `quiet`: without a log.
    pub fn new(
        program: AgentProgram,
        patterns: FindPattern,
        identity: Identity,
        trust: Trust,
        quiet: bool,
    ) -> Daemon {
        Daemon {
            program,
            identity,
            trust,
            allow: Vec::new(),
            caps: Caps::default(),
            patterns,
            rejected: AtomicU64::new(0),
            log: Log::new(quiet),
            memory: memory::Ledger::default(),
            sessions: Arc::default(),
            threads: Arc::default(),
            handshakes: Mutex::default(),
        }
    }

    /// Registers a handshake, which lasts as long as the returned socket; the oldest one may be
    /// dropped for it.
    fn wait(&self, socket: &TcpStream) -> io::Result<Arc<TcpStream>> {
        let socket = Arc::new(socket.try_clone()?);
        let mut handshakes = locked(&self.handshakes);
        handshakes.retain(|one| one.strong_count() > 0);
        handshakes.push_back(Arc::downgrade(&socket));
        if handshakes.len() > MOST_HANDSHAKES
            && let Some(oldest) = handshakes.pop_front().and_then(|oldest| oldest.upgrade())
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(socket)
    }

    fn reject(&self, from: SocketAddr, why: &dyn std::fmt::Display) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        self.log.rejected(from, why);
    }

    /// The controllers that may connect, with their names for the log.
    fn trusted(&self) -> Result<Vec<identity::Peer>, String> {
        match &self.trust {
            Trust::Folder(folder) => identity::peers(&folder.join(pairing::CONTROLLERS)),
            Trust::One(certificate) => Ok(vec![identity::Peer {
                name: "controller".into(),
                certificate: certificate.clone(),
            }]),
        }
    }
}

/// Listens at an address, or says why that fails.
pub fn listen(at: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(at).map_err(|error| {
        Fault::new(match error.kind() {
            io::ErrorKind::AddrInUse => {
                let mut other = at;
                other.set_port(at.port().wrapping_add(1).max(1024));
                format!(
                    "{at} is in use by another daemon or program: choose another port, such as \
                     --listen {}",
                    host_spec::typed(&other.to_string())
                )
            }
            io::ErrorKind::AddrNotAvailable => {
                format!("{at} is not an address of this host: use one of its own with --listen")
            }
            _ => format!("listening on {at}: {error}"),
        })
    })
}

/// Serves until the process ends.
pub fn serve(daemon: &Arc<Daemon>, listener: &TcpListener) -> ! {
    loop {
        daemon.log.await_readable(listener);
        let (socket, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(_) => {
                std::thread::sleep(RECOVERY);
                continue;
            }
        };
        let from = unmapped(from);
        if !daemon.allow.is_empty() && !daemon.allow.iter().any(|one| one.has(from.ip())) {
            daemon.reject(from, &"address not allowed (--allow)");
            continue;
        }
        let theirs = Arc::clone(daemon);
        let spawned = threads::spawn("serve a connection", move || {
            match count(MOST_THREADS, &theirs.threads) {
                Some(_) => handle(&theirs, socket, from),
                None => theirs.reject(from, &"too many concurrent handshakes"),
            }
        });
        if let Err(error) = spawned {
            daemon.reject(from, &error);
        }
    }
}

/// Unmaps an IPv4-mapped IPv6 address.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// What a connection is for.
enum Purpose {
    Session(Vec<identity::Peer>),
    Pairing(Offer),
}

/// Authenticates a connection and serves it, or rejects it.
fn handle(daemon: &Arc<Daemon>, socket: TcpStream, from: SocketAddr) {
    let own = socket.local_addr().map(unmapped);
    let (Ok(own), Ok(place)) = (own, daemon.wait(&socket)) else {
        return daemon.reject(from, &"connection closed");
    };
    let mut purpose = None;
    let deadline = Instant::now() + HANDSHAKE;
    let accepted = tls::accept(socket, deadline, |hello| choose(daemon, hello, &mut purpose));
    drop(place);
    match (accepted, purpose) {
        (Ok(channel), Some(Purpose::Session(peers))) => {
            let shown = channel.0.certificate();
            let known = peers.into_iter().find(|peer| Some(&peer.certificate) == shown.as_ref());
            match known {
                Some(peer) => start_session(daemon, channel, [from, own], &peer.name),
                None => daemon.reject(from, &"not paired"),
            }
        }
        (Ok(channel), Some(Purpose::Pairing(offer))) => pair(daemon, channel, offer, from),
        (Err(error), Some(Purpose::Pairing(_))) => {
            daemon.reject(from, &format!("pairing with a wrong secret ({error})"));
        }
        (Ok(_), None) => daemon.reject(from, &"no known protocol"),
        (Err(error), _) => daemon.reject(from, &error),
    }
}

/// The TLS configuration for the protocol that a connection asks for.
fn choose(
    daemon: &Daemon,
    hello: &ClientHello<'_>,
    purpose: &mut Option<Purpose>,
) -> io::Result<Arc<ServerConfig>> {
    let speaks: Vec<&[u8]> = hello.alpn().map(Iterator::collect).unwrap_or_default();
    match &daemon.trust {
        Trust::Folder(folder) if speaks.contains(&tls::PAIRING) => {
            let offer = Offer::open(folder).map_err(io::Error::other)?;
            let ends = offer.secret.identities().map_err(io::Error::other)?;
            *purpose = Some(Purpose::Pairing(offer));
            tls::listening(&ends.agent, &[ends.controller.certificate], tls::PAIRING)
        }
        _ => {
            let peers = daemon.trusted().map_err(io::Error::other)?;
            let trusted: Vec<_> = peers.iter().map(|peer| peer.certificate.clone()).collect();
            *purpose = Some(Purpose::Session(peers));
            // TLS itself refuses a connection that offers no protocol of ours.
            tls::listening(&daemon.identity, &trusted, tls::FRAMES)
        }
    }
}

fn start_session(daemon: &Arc<Daemon>, channel: Channel, ends: [SocketAddr; 2], name: &str) {
    let Some(_counted) = count(MOST_SESSIONS, &daemon.sessions) else {
        let sentence = format!("this agent already serves {MOST_SESSIONS} sessions");
        daemon.log.session(ends[0], name, "nothing", &format!("refused: {sentence}"));
        let mut writer = channel.1;
        let _ = frame::write(&mut writer, &FromAgent::Refused { wrong_use: false, sentence });
        return writer.close();
    };
    let mut writer = channel.1.clone();
    let (what, result) = session::serve(daemon, channel, ends).unwrap_or_else(|error| {
        let sentence = error.to_string();
        // Fails only where the controller is gone.
        let _ = frame::write(&mut writer, &FromAgent::Refused { wrong_use: false, sentence });
        writer.close();
        ("nothing".into(), format!("failed: {error}"))
    });
    daemon.log.session(ends[0], name, &what, &result);
}

fn pair(daemon: &Daemon, channel: Channel, offer: Offer, from: SocketAddr) {
    match pairing::accept(channel, offer, &daemon.identity) {
        Ok(name) => daemon.log.session(from, &name, "pairing", "ended"),
        Err(error) => daemon.log.session(from, "somebody", "pairing", &format!("failed: {error}")),
    }
}

#[cfg(test)]
mod tests;
