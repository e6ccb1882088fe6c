//! What a transport gets before it opens an end, and its errors.

use super::settings::Settings;
use super::traffic::{Lengths, Role, Traffic, Wait};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use wiregauge_base::units::Span;
use wiregauge_signal::{Kind, TimeOfDay};

/// A request that a transport validates before anything runs.
#[derive(Clone, Copy, Debug)]
pub struct TransportRequest<'a> {
    /// Payload of a message.
    pub size: u64,
    /// How both ends wait.
    pub wait: Wait,
    /// What flows between the ends.
    pub traffic: Traffic,
    /// Whether all messages have that size.
    pub lengths: Lengths,
    /// The settings.
    pub settings: &'a Settings,
    /// Whether more is written into messages, or read of them, than their number.
    pub reads_payloads: bool,
}

/// The address at which an end is reachable: from this host only, unless requested otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// On this host only.
    #[default]
    Loopback,
    /// By the address of a network interface.
    Interface(String),
    /// By this address.
    Address(IpAddr),
    /// By the address at which the controller's ssh connection reached this host.
    Session,
}

/// The place of a process among those that open together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// What a transport needs to open one end.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which end.
    pub role: Role,
    /// Of two roles the client has rank 0 and the server rank 1.
    pub rank: Rank,
    /// Threads of the process that open ends.
    pub threads: u32,
    /// Ends that each of them opens.
    pub ends: u32,
    /// The traffic, for sizing queues.
    pub traffic: Traffic,
    /// How both ends wait.
    pub wait: Wait,
    /// Payload of a message: of each, or of the longest.
    pub size: usize,
    /// Whether all have that size.
    pub lengths: Lengths,
    /// Most messages that are posted and not completed.
    pub window: u32,
    /// Whether a client may have more messages unanswered than that.
    pub outruns_window: bool,
    /// Timeout of a sleeping receive where messages may be lost.
    pub loss_after: Span,
    /// Timeout of connecting.
    pub timeout: Span,
    /// The run's secret, which a data connection must present to be accepted.
    pub cookie: [u8; 32],
    /// Random seed.
    pub seed: u64,
    /// The address at which this end is reachable.
    pub site: Site,
    /// The network device that all packets are to use, where all other ends are on other hosts: on
    /// one host the loopback carries them, whatever device has the address.
    pub device: Option<String>,
    /// When it is opened, by the clock that says when a stream's samples were made.
    pub opened: TimeOfDay,
    /// What the values of a stream's samples are.
    pub kind: Kind,
    /// Settings.
    pub settings: Settings,
}

impl Setup {
    /// One end on loopback, with a window of one message and no settings.
    pub fn new(role: Role, traffic: Traffic, wait: Wait, size: usize) -> Setup {
        Setup {
            role,
            rank: Rank { number: role.pick(0, 1), of: 2 },
            threads: 1,
            ends: 1,
            traffic,
            wait,
            size,
            lengths: Lengths::Fixed,
            window: 1,
            outruns_window: false,
            loss_after: Span(1_000_000),
            timeout: Span(5_000_000_000),
            cookie: [0; 32],
            seed: 0,
            site: Site::Loopback,
            device: None,
            opened: TimeOfDay::default(),
            kind: Kind::default(),
            settings: Settings::default(),
        }
    }
}

/// An address of one end, opaque to all but the transport that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Blob(pub Vec<u8>);

impl Blob {
    /// As text, for transports whose addresses are text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.0).map_err(|_| SetupError::Address)
    }
}

/// What a step of setting an end up gives.
pub type Result<T, E = SetupError> = std::result::Result<T, E>;

/// Why an end could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The other end's address is not one of this transport.
    #[error("the other end's address belongs to another transport")]
    Address,
    /// Nothing came in time.
    #[error("{what}: nothing arrived within {seconds} s")]
    Late {
        /// What was awaited.
        what: String,
        /// How long, in seconds.
        seconds: f64,
    },
    /// The request cannot be met, or a system call failed.
    #[error("{0}")]
    Refused(String),
    /// What was asked for is not allowed on this machine: wrong use, and no fault of the machine.
    #[error("{0}")]
    NotAllowed(String),
}

/// Random bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| SetupError::Refused(format!("cannot get random numbers: {error}")))?;
    Ok(bytes)
}

/// A name of 128 random bits: no two ends share one, and none can be guessed.
pub(super) fn random_name() -> Result<String> {
    Ok(format!("{NAME}{:032x}", u128::from_ne_bytes(random()?)))
}

/// What every random name begins with.
const NAME: &str = "wiregauge-";

/// Whether a name may be one of those.
pub(super) fn is_random_name(name: &[u8]) -> bool {
    name.strip_prefix(NAME.as_bytes())
        .is_some_and(|digits| digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit))
}

impl Setup {
    /// Returns true for the secret of the run.
    pub(super) fn is_cookie(&self, shown: &[u8]) -> bool {
        is_same_secret(shown, &self.cookie)
    }

    /// The end of what begins now and may take as long as connecting may.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline { begin: Instant::now(), timeout: self.timeout.duration() }
    }
}

/// Returns true if a secret was shown. Every byte is compared, so that the time taken reveals
/// nothing.
pub(super) fn is_same_secret(shown: &[u8], secret: &[u8]) -> bool {
    let differences = shown.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b));
    shown.len() == secret.len() && differences == 0
}

/// Until when something is awaited.
pub(super) struct Deadline {
    begin: Instant,
    timeout: Duration,
}

impl Deadline {
    /// The time left; none is an error that names what was awaited.
    pub fn left(&self, what: &str) -> Result<Duration> {
        match self.timeout.saturating_sub(self.begin.elapsed()) {
            Duration::ZERO => {
                Err(SetupError::Late { what: what.into(), seconds: self.timeout.as_secs_f64() })
            }
            left => Ok(left),
        }
    }
}

impl SetupError {
    /// For `map_err`: a system call that failed, with what was tried.
    pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| SetupError::Refused(format!("{what}: {}", Into::<std::io::Error>::into(error)))
    }
}
