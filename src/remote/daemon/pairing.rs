//! How a driver and an agent come to know each other: whoever was told a one-time secret may show
//! its certificate, and is shown the agent's.
//!
//! Both sides derive the same two identities from the secret, so that TLS itself proves that each
//! knows it; a wrong secret is a handshake that fails. The secret has 128 random bits, so that
//! trying them out is hopeless also for one who has recorded a pairing.

use super::dial;
use super::identity::{self, End, Identity, LONGEST_PEM, agent_file, fingerprint, read, replace};
use super::tls::{self, Channel};
use crate::control::fault::Fault;
use crate::control::frame;
use crate::control::secret;
use jiff::{SignedDuration, Timestamp};
use ring::digest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The folder of the drivers that may come in.
pub const DRIVERS: &str = "drivers";
/// Where a secret that is offered lies until it is used.
const OFFER: &str = "pairing";
/// A byte in it for each pairing that failed.
const FAILED: &str = "pairing.failed";
/// How long a secret may be used.
pub const VALID: SignedDuration = SignedDuration::from_mins(10);
/// So many wrong ones end an offer.
pub const MOST_FAILURES: u64 = 5;
/// How long the exchange of certificates may take.
const EXCHANGE: Duration = Duration::from_secs(10);
/// Characters of a driver's own name that are kept.
const LONGEST_NAME: usize = 64;

/// A one-time secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 16]);

impl Secret {
    /// A new one.
    pub fn fresh() -> Result<Secret, String> {
        let [bits @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = secret::fresh()?;
        Ok(Secret(bits))
    }

    fn identity(self, end: End) -> Result<Identity, String> {
        let mut whole = [0; 32];
        whole.copy_from_slice(digest::digest(&digest::SHA256, &self.0).as_ref());
        Identity::derived(&whole, end)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, pair) in self.0.chunks(2).enumerate() {
            let dash = if at > 0 { "-" } else { "" };
            write!(f, "{dash}{:02x}{:02x}", pair[0], pair[1])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Secret, String> {
        let digits: String = text.chars().filter(|c| *c != '-' && !c.is_whitespace()).collect();
        // As many again make the 64 digits of a run's secret.
        let whole = secret::from_hex(&format!("{digits}{}", "0".repeat(32)));
        match whole {
            Some(whole) if digits.len() == 32 => Ok(Secret(std::array::from_fn(|i| whole[i]))),
            _ => Err("that is no secret; it has 32 digits, as `wiregauge agent --pair` prints it \
                      at the agent's host"
                .into()),
        }
    }
}

/// Offers a secret to whoever pairs next with an agent that uses this folder.
pub fn offer(folder: &Path) -> Result<Secret, String> {
    let secret = Secret::fresh()?;
    let until = Timestamp::now() + VALID;
    let _ = fs::remove_file(folder.join(FAILED));
    replace(&folder.join(OFFER), &format!("{secret}\n{until}\n"))?;
    Ok(secret)
}

/// A secret that was offered and not used yet.
#[derive(Debug)]
pub struct Offer {
    folder: PathBuf,
    secret: Secret,
}

impl Offer {
    /// What a folder offers now.
    pub fn open(folder: &Path) -> Result<Offer, String> {
        let none = || "no pairing is open here".to_string();
        let text = read(&folder.join(OFFER))?.ok_or_else(none)?;
        let mut lines = text.lines();
        let secret = lines.next().and_then(|line| line.parse().ok());
        let until = lines.next().and_then(|line| line.parse::<Timestamp>().ok());
        let (Some(secret), Some(until)) = (secret, until) else { return Err(none()) };
        let offer = Offer { folder: folder.into(), secret };
        let is_late = until < Timestamp::now();
        if is_late || offer.failures() >= MOST_FAILURES {
            offer.take_back();
            let why = if is_late { "is over" } else { "was tried too often with wrong secrets" };
            return Err(format!("the pairing that was open {why}"));
        }
        Ok(offer)
    }

    /// The agent's identity for this pairing, and the driver's.
    pub fn identities(&self) -> Result<(Identity, Identity), String> {
        Ok((self.secret.identity(End::Agent)?, self.secret.identity(End::Driver)?))
    }

    fn failures(&self) -> u64 {
        self.folder.join(FAILED).metadata().map_or(0, |file| file.len())
    }

    /// Somebody has tried it who does not know it.
    pub fn failed(&self) {
        let open = OpenOptions::new().create(true).append(true).open(self.folder.join(FAILED));
        let noted = open.and_then(|mut file| file.write_all(b"."));
        // Where that cannot be counted nobody pairs.
        if noted.is_err() || self.failures() >= MOST_FAILURES {
            self.take_back();
        }
    }

    fn take_back(&self) {
        let _ = fs::remove_file(self.folder.join(OFFER));
        let _ = fs::remove_file(self.folder.join(FAILED));
    }

    /// Uses it: only one who asks for this is given it.
    fn claim(&self) -> Result<(), String> {
        let used = self.folder.join(format!(".{}", secret::to_hex(&secret::fresh()?)));
        let claimed = fs::rename(self.folder.join(OFFER), &used);
        let _ = fs::remove_file(&used);
        let _ = fs::remove_file(self.folder.join(FAILED));
        claimed.map_err(|_| "the secret has been used already".into())
    }
}

/// What each side shows the other.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    name: String,
    certificate: String,
}

impl Card {
    fn check(self) -> Result<Card, String> {
        if self.certificate.len() as u64 > LONGEST_PEM {
            return Err("a certificate that is too long".into());
        }
        identity::certificate(&self.certificate)?;
        Ok(self)
    }
}

/// The agent's side: the driver has proved that it knows the secret. Its name.
pub fn accept(channel: Channel, offer: Offer, own: &Identity) -> Result<String, String> {
    offer.claim()?;
    let (mut reader, mut writer) = channel.split().map_err(|error| error.to_string())?;
    reader.deadline = Some(Instant::now() + EXCHANGE);
    let card: Card = frame::read(&mut reader).map_err(|error| error.to_string())?;
    let card = card.check()?;
    let shown = identity::certificate(&card.certificate)?;
    let name = format!("{}-{}", plain(&card.name), fingerprint(&shown));
    let file = offer.folder.join(DRIVERS).join(format!("{name}.pem"));
    replace(&file, &card.certificate)?;
    let card = Card { name: String::new(), certificate: own.pem().to_string() };
    frame::write(&mut writer, &card).map_err(|error| error.to_string())?;
    writer.close();
    Ok(name)
}

/// A name that may be a file's.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@-_".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    name.chars().take(LONGEST_NAME).map(plain).collect()
}

/// The driver's side: pairs with the agent at an address.
pub fn pair(folder: &Path, host: &str, port: u16, secret: Secret) -> Result<(), Fault> {
    let own = Identity::of_host(folder).map_err(Fault::new)?;
    let mine = secret.identity(End::Driver).map_err(Fault::new)?;
    let theirs = secret.identity(End::Agent).map_err(Fault::new)?;
    let deadline = Instant::now() + EXCHANGE;
    let exchange = || {
        let config = tls::dialling(&mine, &theirs.certificate, tls::PAIRING)?;
        let channel = Channel::dial(dial::connect(host, port)?, deadline, config)?;
        let (mut reader, mut writer) = channel.split()?;
        reader.deadline = Some(deadline);
        let card = Card { name: own_name(), certificate: own.pem().to_string() };
        let said = frame::write(&mut writer, &card);
        let card = said.and_then(|()| frame::read::<Card>(&mut reader));
        card.map_err(dial::of_frame)
    };
    let card = exchange().map_err(|error| dial::pairing_failed(host, port, &error))?;
    let card = card.check().map_err(Fault::new)?;
    replace(&agent_file(folder, host, port), &card.certificate).map_err(Fault::new)
}

/// What the agent's log calls this driver.
fn own_name() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    if user.is_empty() { host.into_owned() } else { format!("{user}@{host}") }
}

#[cfg(test)]
mod tests;
