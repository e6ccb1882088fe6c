//! Pairing: a controller that knows a one-time secret exchanges certificates with a daemon.
//!
//! Both sides derive the same two identities from the secret, so that TLS proves that each knows
//! it: with a wrong secret the handshake fails. The secret has 128 random bits, which cannot be
//! guessed even from a recorded pairing: attempts are not counted, or anybody could close an open
//! pairing by a few of them.

use super::dial;
use super::identity::{
    self, DerivedPair, Identity, LONGEST_PEM, agent_file, fingerprint, read, write,
};
use super::tls::{self, Channel};
use hex::FromHex;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};
use wiregauge_base::wall_clock;
use wiregauge_measure::control::fault::Fault;
use wiregauge_measure::control::frame::{self, FrameError};
use wiregauge_measure::control::secret;

/// The subfolder of the controllers that may connect.
pub const CONTROLLERS: &str = "controllers";
/// The file of an offered secret.
const OFFER: &str = "pairing";
/// Validity of an offered secret.
pub const VALID: SignedDuration = SignedDuration::from_mins(10);
/// Time limit of the exchange of certificates.
const EXCHANGE: Duration = Duration::from_secs(10);
/// Characters of a controller's name that are kept.
const LONGEST_NAME: usize = 64;

/// A one-time secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 16]);

impl Secret {
    /// A new secret.
    pub fn fresh() -> Result<Secret, String> {
        secret::fresh().map(Secret)
    }

    /// The identities of the daemon and the controller for this pairing.
    pub(super) fn identities(self) -> Result<DerivedPair, String> {
        DerivedPair::of_secret(&secret::digested(&self.0))
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> = self.0.chunks(2).map(secret::to_hex).collect();
        f.write_str(&groups.join("-"))
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
        FromHex::from_hex(digits).map(Secret).map_err(|_| {
            "invalid secret: expected the 32 hexadecimal digits that `wiregauge agent --pair` \
             printed at the agent's host"
                .into()
        })
    }
}

/// Offers a new secret for one pairing with the daemon that uses this folder.
pub fn offer(folder: &Path) -> Result<Secret, String> {
    let secret = Secret::fresh()?;
    let until = wall_clock::now().saturating_add(VALID).unwrap_or(Timestamp::MAX);
    write(&folder.join(OFFER), &format!("{secret}\n{until}\n"), true)?;
    Ok(secret)
}

/// The secret of an offer's file, and until when it is valid.
pub fn parse_offer(text: &str) -> Option<(Secret, Timestamp)> {
    let mut lines = text.lines();
    Some((lines.next()?.parse().ok()?, lines.next()?.parse().ok()?))
}

/// An open pairing.
#[derive(Debug)]
pub struct Offer {
    folder: PathBuf,
    /// Its secret.
    pub(super) secret: Secret,
}

impl Offer {
    /// The open pairing of a folder.
    pub fn open(folder: &Path) -> Result<Offer, String> {
        let none = || "no pairing is open".to_string();
        let text = read(&folder.join(OFFER))?.ok_or_else(none)?;
        let (secret, until) = parse_offer(&text).ok_or_else(none)?;
        let offer = Offer { folder: folder.into(), secret };
        let is_late = until < wall_clock::now();
        if is_late {
            let _ = fs::remove_file(offer.folder.join(OFFER));
            return Err("the open pairing expired".into());
        }
        Ok(offer)
    }

    /// Claims the secret: succeeds once.
    fn claim(&self) -> Result<(), String> {
        let used = self.folder.join(format!(".{}", secret::to_hex(secret::fresh::<32>()?)));
        let claimed = fs::rename(self.folder.join(OFFER), &used);
        let _ = fs::remove_file(&used);
        claimed.map_err(|_| "the secret was already used".into())
    }
}

/// What the sides exchange.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    name: String,
    certificate: String,
}

impl Card {
    fn check(&self) -> Result<CertificateDer<'static>, String> {
        let fits = self.certificate.len() as u64 <= LONGEST_PEM;
        ensure!(fits, "the certificate is too long");
        identity::certificate(&self.certificate)
    }
}

/// The daemon's side, once TLS has proved that the controller knows the secret. Returns its name.
pub fn accept(
    (mut reader, mut writer): Channel,
    offer: Offer,
    own: &Identity,
) -> Result<String, String> {
    offer.claim()?;
    reader.deadline = Some(Instant::now() + EXCHANGE);
    let (name, certificate) = read_card(&mut reader)?;
    let file = offer.folder.join(CONTROLLERS).join(format!("{name}.pem"));
    write(&file, &certificate, true)?;
    let card = Card { name: String::new(), certificate: own.pem.clone() };
    frame::write(&mut writer, &card).map_err(|error| error.to_string())?;
    writer.close();
    Ok(name)
}

/// Reads a controller's card: the name by which it is kept, and its certificate in PEM.
pub fn read_card(channel: &mut impl Read) -> Result<(String, String), String> {
    let card: Card = frame::read(channel).map_err(|error| error.to_string())?;
    let name = format!("{}-{}", file_name_of(&card.name), fingerprint(&card.check()?));
    Ok((name, card.certificate))
}

/// A name as a safe file name.
fn file_name_of(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@-_".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    name.chars().take(LONGEST_NAME).map(plain).collect()
}

/// The controller's side: pairs with the daemon at an address.
pub fn pair(folder: &Path, host: &str, port: u16, secret: Secret) -> Result<(), Fault> {
    let own = Identity::of_host(folder)?;
    let ends = secret.identities()?;
    let deadline = Instant::now() + EXCHANGE;
    let exchange = || {
        let (socket, theirs) = (dial::connect(host, port)?, &ends.agent.certificate);
        let (mut reader, mut writer) =
            tls::dial(socket, deadline, &ends.controller, theirs, tls::PAIRING)?;
        reader.deadline = Some(deadline);
        let card = Card { name: own_name(), certificate: own.pem.clone() };
        let said = frame::write(&mut writer, &card);
        let card = said.and_then(|()| frame::read::<Card>(&mut reader));
        card.map_err(|error| match error {
            FrameError::Channel(error) => error,
            error => io::Error::other(error),
        })
    };
    let card = exchange().map_err(|error| dial::pairing_failed(host, port, &error))?;
    card.check()?;
    Ok(write(&agent_file(folder, host, port), &card.certificate, true)?)
}

/// The name of this controller in the daemon's log.
fn own_name() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    if user.is_empty() { host.into_owned() } else { format!("{user}@{host}") }
}

#[cfg(test)]
mod tests;
