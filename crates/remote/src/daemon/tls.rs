//! Mutually authenticated TLS 1.3 over one TCP connection, with one thread per direction.
//!
//! rustls and its verifiers authenticate; this file moves bytes, with a time limit on every wait.

use super::identity::{Identity, NAME};
use crate::locked;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{
    AcceptedAlert, Acceptor, ClientHello, NoServerSessionStorage, WebPkiClientVerifier,
};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// ALPN (RFC 7301) of the control protocol.
pub const FRAMES: &[u8] = b"wiregauge/2";
/// ALPN of a pairing.
pub const PAIRING: &[u8] = b"wiregauge-pairing/2";
/// Bytes read from the network at once: one TLS record.
const PIECE: usize = 16 << 10;
/// How long the peer may not read.
const SENDING: Duration = Duration::from_secs(30);
/// TCP keepalive: idle time, probes and their interval. A dead connection is noticed within 11 s.
const SILENT: Duration = Duration::from_secs(5);
const ASKED: u32 = 3;
const BETWEEN: Duration = Duration::from_secs(2);

/// The error of rustls in that of a connection: the peer is not authenticated, or speaks another
/// protocol. `None`: the network failed, or (kind `Other`) the set-up on this side.
pub fn of_tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn roots<'a>(all: impl Iterator<Item = &'a CertificateDer<'static>>) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // What is not a certificate authenticates nobody.
    let _ = roots.add_parsable_certificates(all.cloned());
    Arc::new(roots)
}

/// Configuration of the listening side, which trusts these certificates only. Sessions are never
/// resumed: each is authenticated anew.
pub fn listening(
    identity: &Identity,
    trusted: &[CertificateDer<'static>],
    protocol: &[u8],
) -> io::Result<Arc<ServerConfig>> {
    // Its own is included because an empty list is not allowed.
    let roots = roots(trusted.iter().chain([&identity.certificate]));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
        // Unauthenticated peers do not learn who is trusted.
        .clear_root_hint_subjects()
        .build()
        .map_err(io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.certificate.clone()], identity.key())
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The cryptography of this program: a program that links it may have another one too.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The two directions of a connection with an authenticated peer.
pub type Channel = (Reader, Writer);

/// A socket whose operations end at the deadline, if there is one.
#[derive(Clone, Copy)]
struct Timed<'a> {
    socket: &'a TcpStream,
    deadline: Option<Instant>,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) { Err(late()) } else { Ok(left) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(bytes).map_err(in_words)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "timed out")
}

/// The end of a connection that nobody has closed: its other end was killed, or cut off.
fn cut_off() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection was cut off")
}

/// A socket's time-out as ours.
fn in_words(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { late() } else { error }
}

/// The listening side's handshake. `choose` selects the configuration by the offered protocols.
pub fn accept(
    socket: TcpStream,
    deadline: Instant,
    choose: impl FnOnce(&ClientHello<'_>) -> io::Result<Arc<ServerConfig>>,
) -> io::Result<Channel> {
    prepare(&socket)?;
    let mut timed = Timed { socket: &socket, deadline: Some(deadline) };
    let refuse = move |(error, mut alert): (rustls::Error, AcceptedAlert)| {
        let _ = alert.write_all(&mut { timed });
        io::Error::other(error)
    };
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        ensure!(acceptor.read_tls(&mut timed)? > 0, ErrorKind::UnexpectedEof);
        if let Some(accepted) = acceptor.accept().map_err(refuse)? {
            break accepted;
        }
    };
    let config = choose(&accepted.client_hello())?;
    let connection = accepted.into_connection(config).map_err(refuse)?;
    shake_hands(connection.into(), socket, deadline)
}

/// The dialling side's handshake, which trusts this certificate only.
pub fn dial(
    socket: TcpStream,
    deadline: Instant,
    identity: &Identity,
    trusted: &CertificateDer<'static>,
    protocol: &[u8],
) -> io::Result<Channel> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(roots([trusted].into_iter()))
        .with_client_auth_cert(vec![identity.certificate.clone()], identity.key())
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    prepare(&socket)?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    shake_hands(connection.into(), socket, deadline)
}

fn shake_hands(
    mut connection: Connection,
    socket: TcpStream,
    deadline: Instant,
) -> io::Result<Channel> {
    let mut timed = Timed { socket: &socket, deadline: Some(deadline) };
    while connection.is_handshaking() || connection.wants_write() {
        if connection.complete_io(&mut timed)? == (0, 0) {
            break;
        }
    }
    socket.set_write_timeout(Some(SENDING))?;
    let (connection, sending) = (Mutex::new(connection), Mutex::new(()));
    let shared = Arc::new(Shared { connection, socket, sending });
    let reader =
        Reader { shared: Arc::clone(&shared), raw: vec![0; PIECE], left: 0..0, deadline: None };
    Ok((reader, Writer { shared }))
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let asked =
        socket2::TcpKeepalive::new().with_time(SILENT).with_interval(BETWEEN).with_retries(ASKED);
    socket2::SockRef::from(socket).set_tcp_keepalive(&asked)
}

struct Shared {
    connection: Mutex<Connection>,
    socket: TcpStream,
    /// Locked while bytes are sent, before `connection`: records must be sent in order, and the
    /// reader must never wait for the network's other direction.
    sending: Mutex<()>,
}

impl Shared {
    /// Makes records and sends them.
    fn send(&self, make: impl FnOnce(&mut Connection) -> io::Result<()>) -> io::Result<()> {
        let _turn = locked(&self.sending);
        let mut records = Vec::new();
        let made = {
            let mut connection = locked(&self.connection);
            let made = make(&mut connection);
            while connection.wants_write() {
                connection.write_tls(&mut records)?;
            }
            made
        };
        (&self.socket).write_all(&records).map_err(in_words)?;
        made
    }
}

/// The receiving direction.
pub struct Reader {
    shared: Arc<Shared>,
    raw: Vec<u8>,
    /// What of `raw` the connection has not taken yet.
    left: Range<usize>,
    /// When reading times out; `None`: never.
    pub deadline: Option<Instant>,
}

impl Reader {
    /// The peer's certificate.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        let connection = locked(&self.shared.connection);
        Some(connection.peer_certificates()?.first()?.clone().into_owned())
    }

    /// Passes received bytes to the connection, as many as it takes: what they say is to be read
    /// before it takes more, since it refuses bytes while a whole record waits in it.
    fn put(&mut self) -> io::Result<()> {
        let mut connection = locked(&self.shared.connection);
        self.left.start += connection.read_tls(&mut &self.raw[self.left.clone()])?;
        if let Err(error) = connection.process_new_packets() {
            drop(connection);
            // Sends the peer an alert.
            let _ = self.shared.send(|_| Ok(()));
            return Err(io::Error::other(error));
        }
        Ok(())
    }
}

impl Read for Reader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match locked(&self.shared.connection).reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(cut_off()),
                read => return read,
            }
            if self.left.is_empty() {
                let mut timed = Timed { socket: &self.shared.socket, deadline: self.deadline };
                let got = match timed.read(&mut self.raw) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    got => got?,
                };
                self.left = 0..got;
            }
            // Zero bytes: the connection then knows whether it was closed properly.
            self.put()?;
        }
    }
}

/// The sending direction.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    /// Closes this direction. Bytes in flight still arrive.
    pub fn close(&self) {
        // Fails only where the peer is gone.
        let _ = self.shared.send(|connection| {
            connection.send_close_notify();
            Ok(())
        });
        let _ = self.shared.socket.shutdown(Shutdown::Write);
    }

    /// Ends both directions at once, and what waits in them.
    pub fn shutdown(&self) {
        let _ = self.shared.socket.shutdown(Shutdown::Both);
    }

    /// Ends this side's reader.
    pub fn shutdown_reader(&self) {
        let _ = self.shared.socket.shutdown(Shutdown::Read);
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.shared.send(|connection| connection.writer().write_all(piece))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
