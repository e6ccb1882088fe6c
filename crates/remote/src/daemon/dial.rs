//! The connection to an agent daemon: a process that takes ssh's place. Its standard input and
//! output are the control channel, which it carries over TLS.

use super::identity::{self, DerivedPair, Identity};
use super::tls::{self, Channel};
use rustls::pki_types::CertificateDer;
use rustls::{AlertDescription, CertificateError, Error};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, Instant};
use wiregauge_base::threads;
use wiregauge_measure::agent::serve::NAME;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::secret;
use wiregauge_plan::host_spec;

/// The hidden command.
pub const DIAL: &str = "dial-agent";
/// Environment variable with the key of a job, from which its processes derive their identities.
pub const KEY_VARIABLE: &str = "WIREGAUGE_JOB_KEY";
/// Time limits of connecting, and of the TLS handshake.
const CONNECTING: Duration = Duration::from_secs(10);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes copied at once.
const PIECE: usize = 16 << 10;

/// Connects to the first address of a name that answers.
pub(super) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address for this name");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn how_to_pair(host: &str, port: u16) -> String {
    let to = host_spec::typed(&host_spec::joined(host, port));
    format!("run `wiregauge agent --pair` there and `wiregauge pair {to}` here")
}

/// Explains why a daemon, or a rank of the same job, cannot be reached.
fn explain(host: &str, port: u16, is_rank: bool, error: &io::Error) -> Fault {
    if is_rank {
        return explain_rank(host, port, error);
    }
    let pair = how_to_pair(host, port);
    let at = host_spec::joined(host, port);
    let Some(of_tls) = tls::of_tls(error) else {
        return Fault::new(match error.kind() {
            io::ErrorKind::Other => format!("the agent at {at}: {error}"),
            _ => format!(
                "cannot reach the agent at {at} ({error}): run \
                 `wiregauge agent --listen ADDRESS` there"
            ),
        });
    };
    Fault::Refused(match of_tls {
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => format!(
                "this host's certificate has expired, says the agent at {at}: remove \
                 identity.pem here and pair again ({pair})"
            ),
            AlertDescription::NoApplicationProtocol => {
                format!("the agent at {at} is another version: install the same wiregauge on both")
            }
            _ => format!("the agent at {at} is not paired with this host ({alert:?}): {pair}"),
        },
        Error::InvalidCertificate(wrong) => match wrong {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!(
                "the certificate of the agent at {at} has expired: remove identity.pem \
                 there, restart the agent, and {pair}"
            ),
            _ => format!(
                "{at} is not the agent that this host is paired with: if that is \
                 expected, {pair}"
            ),
        },
        error => {
            let sentence = "does not answer as an agent of this program does";
            return Fault::new(format!("{at} {sentence} ({error})"));
        }
    })
}

/// Explains why a rank of the same job cannot be reached: it was no daemon that somebody could
/// start or pair.
fn explain_rank(host: &str, port: u16, error: &io::Error) -> Fault {
    Fault::new(format!(
        "the rank at {} has ended or cannot be reached ({error}): what it or its launcher printed \
         says why; start all ranks with the same command, and see that nothing ends one early",
        host_spec::joined(host, port)
    ))
}

/// Explains why a pairing failed.
pub(super) fn pairing_failed(host: &str, port: u16, error: &io::Error) -> Fault {
    use io::ErrorKind::{ConnectionReset, UnexpectedEof};
    match (tls::of_tls(error), error.kind()) {
        (Some(Error::InvalidCertificate(_) | Error::AlertReceived(_)), _)
        // Without an open pairing the agent just closes the connection.
        | (None, UnexpectedEof | ConnectionReset) => Fault::Refused(format!(
            "the agent at {} rejected the secret: it is wrong, used, or older than 10 min; run \
             `wiregauge agent --pair` there for a new one",
            host_spec::joined(host, port)
        )),
        _ => explain(host, port, false, error),
    }
}

/// Carries the control channel until either side closes it; returns the exit code.
pub fn main(host: &str, port: u16) -> u8 {
    let _ = rustix::thread::set_name(NAME);
    let key = std::env::var(KEY_VARIABLE).ok().and_then(|hex| secret::from_hex(&hex));
    let is_rank = key.is_some();
    let opened = || match key {
        // An agent of the same job.
        Some(key) => {
            let ends = DerivedPair::of_secret(&key)?;
            authenticate(&ends.controller, &ends.agent.certificate, host, port, is_rank)
        }
        None => open(&identity::folder()?, host, port),
    };
    match opened().and_then(|channel| carry(host, port, channel, is_rank)) {
        Ok(()) => 0,
        Err(fault) => {
            let _ = writeln!(io::stderr(), "{fault}");
            if fault.is_refused() { 2 } else { 4 }
        }
    }
}

/// Connects to an agent with which this host is paired.
pub fn open(folder: &Path, host: &str, port: u16) -> Result<Channel, Fault> {
    let Some(known) = identity::read(&identity::agent_file(folder, host, port))? else {
        let how = how_to_pair(host, port);
        let at = host_spec::joined(host, port);
        return Err(Fault::Refused(format!("not paired with the agent at {at}: {how}")));
    };
    authenticate(&Identity::of_host(folder)?, &identity::certificate(&known)?, host, port, false)
}

fn authenticate(
    own: &Identity,
    theirs: &CertificateDer<'static>,
    host: &str,
    port: u16,
    is_rank: bool,
) -> Result<Channel, Fault> {
    connect(host, port)
        .and_then(|to| tls::dial(to, Instant::now() + HANDSHAKE, own, theirs, tls::FRAMES))
        .map_err(|error| explain(host, port, is_rank, &error))
}

fn carry(
    host: &str,
    port: u16,
    (mut reader, mut writer): Channel,
    is_rank: bool,
) -> Result<(), Fault> {
    let at = host_spec::joined(host, port);
    let agent = at.clone();
    threads::spawn("carry frames to the agent", move || {
        use io::ErrorKind::{TimedOut, WouldBlock};
        // It ends when either side is gone.
        match io::copy(&mut io::stdin().lock(), &mut writer) {
            // An agent that takes nothing may never say anything.
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => {
                let _ = writeln!(io::stderr(), "lost the agent at {agent}: {error}");
                std::process::exit(4);
            }
            // Why it is gone is read.
            _ => writer.close(),
        }
    })?;
    let mut piece = vec![0; PIECE];
    let mut output = io::stdout().lock();
    let mut is_first = true;
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(got) => {
                is_first = false;
                // A controller that is gone reads no more.
                if output.write_all(&piece[..got]).and_then(|()| output.flush()).is_err() {
                    return Ok(());
                }
            }
            // In TLS 1.3 the dialling side learns only now that it was rejected.
            Err(error) if is_first || is_rank || tls::of_tls(&error).is_some() => {
                return Err(explain(host, port, is_rank, &error));
            }
            Err(error) => {
                return Err(Fault::new(format!("lost the agent at {at}: {error}")));
            }
        }
    }
}
