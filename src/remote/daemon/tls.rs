//! TLS 1.3 with both sides authenticated, over one TCP connection whose two directions are used by
//! two threads.
//!
//! rustls and its own verifiers decide who is let in; here stands only how bytes come and go, each
//! with a limit of time.

use super::identity::{Identity, NAME};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{Acceptor, ClientHello, NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is spoken: the frames of the control protocol ...
pub const FRAMES: &[u8] = b"wiregauge/1";
/// ... or a pairing (ALPN, RFC 7301).
pub const PAIRING: &[u8] = b"wiregauge-pairing/1";
/// Bytes that are taken from the network at once: one record of TLS.
const PIECE: usize = 16 << 10;
/// How long the other side may not take what it is sent.
const SENDING: Duration = Duration::from_secs(30);
/// A connection that says nothing is asked after so long, so often, with such pauses: one that is
/// cut off is noticed within 11 s.
const SILENT: Duration = Duration::from_secs(5);
const ASKED: u32 = 3;
const BETWEEN: Duration = Duration::from_secs(2);

/// Why there is no connection, or no more.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The network.
    #[error("{0}")]
    Network(#[from] io::Error),
    /// The other side does not prove who it is, or speaks something else.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    /// It could not be set up here.
    #[error("{0}")]
    Own(String),
}

fn own(error: impl std::fmt::Display) -> TlsError {
    TlsError::Own(error.to_string())
}

fn roots<'a>(all: impl Iterator<Item = &'a CertificateDer<'static>>) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // One that is no certificate opens nothing.
    let _ = roots.add_parsable_certificates(all.cloned());
    Arc::new(roots)
}

/// The listening side. It trusts these certificates and no other. Nothing is resumed: every
/// session proves anew who is there.
pub fn listening(
    identity: &Identity,
    trusted: &[CertificateDer<'static>],
    protocol: &[u8],
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(default_provider());
    // Its own is among them since an empty list is not allowed.
    let roots = roots(trusted.iter().chain([&identity.certificate]));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        // Strangers are not told who is trusted.
        .clear_root_hint_subjects()
        .build()
        .map_err(own)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.certificate.clone()], identity.key())?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The dialling side. It trusts this certificate and no other.
pub fn dialling(
    identity: &Identity,
    trusted: &CertificateDer<'static>,
    protocol: &[u8],
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(default_provider());
    let roots = roots([trusted].into_iter());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(own)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(vec![identity.certificate.clone()], identity.key())?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// A connection whose other side has proved who it is.
pub struct Channel {
    connection: Connection,
    socket: TcpStream,
}

/// A socket that is read until a time.
struct Timed<'a> {
    socket: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(left) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(bytes).map_err(in_words)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "nothing came in time")
}

/// A socket's time-out has another name than ours.
fn in_words(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { late() } else { error }
}

impl Channel {
    /// Lets one in who has connected. `choose` gives the configuration for what it wants to speak.
    pub fn accept(
        socket: TcpStream,
        deadline: Instant,
        choose: impl FnOnce(&ClientHello<'_>) -> Result<Arc<ServerConfig>, TlsError>,
    ) -> Result<Channel, TlsError> {
        prepare(&socket)?;
        let mut timed = Timed { socket: &socket, deadline };
        let mut acceptor = Acceptor::default();
        let accepted = loop {
            if acceptor.read_tls(&mut timed)? == 0 {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err((error, mut alert)) => {
                    let _ = alert.write_all(&mut timed);
                    return Err(error.into());
                }
            }
        };
        let config = choose(&accepted.client_hello())?;
        let mut connection = match accepted.into_connection(config) {
            Ok(connection) => Connection::from(connection),
            Err((error, mut alert)) => {
                let _ = alert.write_all(&mut timed);
                return Err(error.into());
            }
        };
        shake_hands(&mut connection, &mut timed)?;
        Ok(Channel { connection, socket })
    }

    /// Proves to the other side who is here, and has it prove the same.
    pub fn dial(
        socket: TcpStream,
        deadline: Instant,
        config: Arc<ClientConfig>,
    ) -> Result<Channel, TlsError> {
        prepare(&socket)?;
        let name = ServerName::try_from(NAME).map_err(own)?;
        let mut connection = Connection::from(ClientConnection::new(config, name)?);
        let mut timed = Timed { socket: &socket, deadline };
        shake_hands(&mut connection, &mut timed)?;
        Ok(Channel { connection, socket })
    }

    /// What the other side has shown.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        let first = self.connection.peer_certificates()?.first()?;
        Some(first.clone().into_owned())
    }

    /// What both speak.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Its two directions.
    pub fn split(self) -> io::Result<(Reader, Writer)> {
        self.socket.set_write_timeout(Some(SENDING))?;
        let shared = Arc::new(Shared {
            connection: Mutex::new(self.connection),
            socket: self.socket,
            sending: Mutex::new(()),
        });
        let reader = Reader { shared: Arc::clone(&shared), raw: vec![0; PIECE], deadline: None };
        Ok((reader, Writer { shared }))
    }
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let asked =
        socket2::TcpKeepalive::new().with_time(SILENT).with_interval(BETWEEN).with_retries(ASKED);
    socket2::SockRef::from(socket).set_tcp_keepalive(&asked)
}

fn shake_hands(connection: &mut Connection, timed: &mut Timed<'_>) -> Result<(), TlsError> {
    while connection.is_handshaking() || connection.wants_write() {
        match connection.complete_io(timed) {
            Ok((0, 0)) => break,
            Ok(_) => {}
            Err(error) => return Err(of_tls(error)),
        }
    }
    Ok(())
}

/// rustls wraps its own errors.
fn of_tls(error: io::Error) -> TlsError {
    match error.downcast::<rustls::Error>() {
        Ok(error) => TlsError::Tls(error),
        Err(error) => TlsError::Network(error),
    }
}

struct Shared {
    connection: Mutex<Connection>,
    socket: TcpStream,
    /// Held while bytes leave, taken before the connection: records must leave in their order,
    /// and a reader must never wait for the network's other direction.
    sending: Mutex<()>,
}

impl Shared {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the connection make records, and sends them.
    fn send(&self, make: impl FnOnce(&mut Connection) -> io::Result<()>) -> io::Result<()> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = Vec::new();
        let made = {
            let mut connection = self.connection();
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

/// What comes.
pub struct Reader {
    shared: Arc<Shared>,
    raw: Vec<u8>,
    /// When reading ends with an error; `None`: never.
    pub deadline: Option<Instant>,
}

impl Reader {
    /// What has come is put into the connection.
    fn put(&self, mut raw: &[u8]) -> io::Result<()> {
        let mut connection = self.shared.connection();
        loop {
            connection.read_tls(&mut raw)?;
            if let Err(error) = connection.process_new_packets() {
                drop(connection);
                // The other side is told why.
                let _ = self.shared.send(|_| Ok(()));
                return Err(io::Error::other(error));
            }
            if raw.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Read for Reader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.shared.connection().reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            let left = self.deadline.map(|deadline| {
                // Zero would mean no limit.
                deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
            });
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(late());
            }
            self.shared.socket.set_read_timeout(left)?;
            let got = match (&self.shared.socket).read(&mut self.raw) {
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(in_words(error)),
            };
            // None: the connection then says whether its end was told.
            self.put(&self.raw[..got])?;
        }
    }
}

/// What goes.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    /// Says that no more comes. What is on its way still arrives.
    pub fn close(&self) {
        // One who is gone need not be told.
        let _ = self.shared.send(|connection| {
            connection.send_close_notify();
            Ok(())
        });
        let _ = self.shared.socket.shutdown(Shutdown::Write);
    }

    /// Has this side's reader end.
    pub fn hear_no_more(&self) {
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
