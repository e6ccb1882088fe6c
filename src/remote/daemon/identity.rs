//! Who a driver and a standing agent are to each other: a key, and a certificate that it signs
//! itself. Each side trusts exactly the certificates that it was given at a pairing.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519, PublicKeyData,
    SerialNumber, date_time_ymd,
};
use ring::{digest, hkdf};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name in every certificate: which agent it is, is told by the certificate itself.
pub const NAME: &str = "wiregauge";
/// Where this host's identity and those it is paired with are, instead of the usual folder.
pub const FOLDER_VARIABLE: &str = "WIREGAUGE_CONFIG";
/// The folder of the agents that this host may dial.
const AGENTS: &str = "agents";
/// How long an identity is valid: long enough for a cluster's life between two reinstallations,
/// short enough that a key that was lost does not open a host for ever.
const VALID_DAYS: i64 = 2 * 365;
/// Before today, for a clock that is behind.
const EARLIER_DAYS: i64 = 1;
/// Longest file with a certificate or a key: ours have below 1 KiB.
pub const LONGEST_PEM: u64 = 16 << 10;
/// Most certificates that one folder may hold.
const MOST_PEERS: usize = 4096;
/// What a PKCS #8 key of Ed25519 begins with (RFC 8410, section 7); the 32 bytes of the key follow.
const PKCS8_ED25519: [u8; 16] =
    *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// A key and the certificate that it has signed.
pub struct Identity {
    /// What the other side is shown.
    pub certificate: CertificateDer<'static>,
    pem: String,
    key: PrivatePkcs8KeyDer<'static>,
}

/// Which end of a connection an identity is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that dials.
    Driver,
    /// The one that listens.
    Agent,
}

impl Identity {
    /// A new one, valid from yesterday on.
    pub fn fresh() -> Result<Identity, String> {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let days = jiff::Span::new;
        let from = today.checked_sub(days().days(EARLIER_DAYS));
        let until = today.checked_add(days().days(VALID_DAYS));
        match (from, until) {
            (Ok(from), Ok(until)) => Identity::valid(from, until),
            _ => Err("this host's clock says no date".into()),
        }
    }

    /// A new one that is valid between two days.
    pub fn valid(from: Date, until: Date) -> Result<Identity, String> {
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|error| unmade(&error))?;
        Identity::of(&key, from, until)
    }

    /// That of everybody who knows a secret: the same bytes on both sides, so that each can trust
    /// it before anything was exchanged. It tells nothing of the secret.
    pub fn derived(secret: &[u8; 32], end: End) -> Result<Identity, String> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"wiregauge derived identity 1");
        let info: &[&[u8]] = match end {
            End::Driver => &[b"driver"],
            End::Agent => &[b"agent"],
        };
        let mut seed = [0; 32];
        salt.extract(secret)
            .expand(info, hkdf::HKDF_SHA256)
            .and_then(|made| made.fill(&mut seed))
            .map_err(|error| unmade(&error))?;
        let key = [&PKCS8_ED25519[..], &seed].concat();
        let key = PrivatePkcs8KeyDer::from(key);
        let key = KeyPair::try_from(&key).map_err(|error| unmade(&error))?;
        // A secret's time is kept by those who know it.
        Identity::of(&key, Date::constant(2000, 1, 1), Date::constant(2999, 12, 31))
    }

    fn of(key: &KeyPair, from: Date, until: Date) -> Result<Identity, String> {
        let of_key = fingerprint(key.der_bytes());
        let mut params =
            CertificateParams::new(vec![NAME.to_string()]).map_err(|error| unmade(&error))?;
        let at = |day: Date| date_time_ymd(day.year().into(), day.month() as u8, day.day() as u8);
        (params.not_before, params.not_after) = (at(from), at(until));
        params.distinguished_name = DistinguishedName::new();
        // A name of its own: those who verify look for the one that has signed by its name.
        params.distinguished_name.push(DnType::CommonName, format!("{NAME} {of_key}"));
        params.serial_number = Some(SerialNumber::from(1));
        let certificate = params.self_signed(key).map_err(|error| unmade(&error))?;
        Ok(Identity {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        })
    }

    /// Its certificate as text.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Its key.
    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }

    /// That of this host, which is made where there is none.
    pub fn of_host(folder: &Path) -> Result<Identity, String> {
        let file = folder.join("identity.pem");
        if let Some(text) = read(&file)? {
            return Identity::read(&file, &text);
        }
        Identity::fresh()?.save(folder)?;
        // Somebody may have made another one at the same time: the first stays.
        match read(&file)? {
            Some(text) => Identity::read(&file, &text),
            None => Err(format!("{} is gone again", file.display())),
        }
    }

    /// Keeps it as this host's, where there is none yet.
    pub fn save(&self, folder: &Path) -> Result<(), String> {
        let key = KeyPair::try_from(&self.key).map_err(|error| unmade(&error))?;
        put(&folder.join("identity.pem"), &(key.serialize_pem() + &self.pem))
    }

    fn read(file: &Path, text: &str) -> Result<Identity, String> {
        let wrong = |what: &dyn std::fmt::Display| {
            format!("{} holds no identity ({what}); remove it and pair again", file.display())
        };
        let mode = file.metadata().map_err(|error| wrong(&error))?.mode();
        if mode & 0o077 != 0 {
            return Err(format!(
                "{0} may be read by others than its owner; run: chmod 600 {0}",
                file.display()
            ));
        }
        let certificate =
            CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| wrong(&error))?;
        let key =
            PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|error| wrong(&error))?;
        let at = text.find("-----BEGIN CERTIFICATE").unwrap_or_default();
        Ok(Identity { certificate, pem: text[at..].to_string(), key })
    }
}

fn unmade(error: &dyn std::fmt::Display) -> String {
    format!("an identity cannot be made: {error}")
}

/// The first 64 bits of SHA-256, as hex: enough for a person to tell certificates apart.
pub fn fingerprint(bytes: &[u8]) -> String {
    let whole = digest::digest(&digest::SHA256, bytes);
    whole.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The folder for identities: `WIREGAUGE_CONFIG`, else as the XDG base directories say.
pub fn folder() -> Result<PathBuf, String> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let usual = || {
        let above = named("XDG_CONFIG_HOME").map(PathBuf::from);
        let above = above.filter(|path| path.is_absolute());
        above.or_else(|| Some(PathBuf::from(named("HOME")?).join(".config")))
    };
    named(FOLDER_VARIABLE)
        .map(PathBuf::from)
        .or_else(|| usual().map(|above| above.join(NAME)))
        .ok_or_else(|| format!("there is no HOME; name a folder in {FOLDER_VARIABLE}"))
}

/// One that this host is paired with.
pub struct Peer {
    /// What its file is called.
    pub name: String,
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
}

/// All in a folder; a file that holds no certificate is passed over.
pub fn peers(folder: &Path) -> Result<Vec<Peer>, String> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "pem"));
    files.sort();
    files.truncate(MOST_PEERS);
    let one = |file: PathBuf| {
        let name = file.file_stem()?.to_string_lossy().into_owned();
        Some(Peer { name, certificate: certificate(&read(&file).ok()??).ok()? })
    };
    Ok(files.into_iter().filter_map(one).collect())
}

/// The certificate in a text.
pub fn certificate(text: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(text.as_bytes())
        .map_err(|error| format!("no certificate ({error})"))
}

/// A text that is only this user's; `None`: there is no such file.
pub(super) fn read(file: &Path) -> Result<Option<String>, String> {
    let wrong = |error: std::io::Error| format!("reading {}: {error}", file.display());
    let mut text = String::new();
    match File::open(file) {
        Ok(open) => open.take(LONGEST_PEM).read_to_string(&mut text).map_err(wrong)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    Ok(Some(text))
}

/// Writes a text for this user alone, whole or not at all. One that is there stays.
pub(super) fn put(file: &Path, text: &str) -> Result<(), String> {
    let unfinished = write_beside(file, text)?;
    let linked = fs::hard_link(&unfinished, file);
    let _ = fs::remove_file(&unfinished);
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(unwritten(file, &error)),
        _ => Ok(()),
    }
}

/// The same, but one that is there is replaced.
pub(super) fn replace(file: &Path, text: &str) -> Result<(), String> {
    let unfinished = write_beside(file, text)?;
    fs::rename(&unfinished, file).map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        unwritten(file, &error)
    })
}

fn unwritten(file: &Path, error: &std::io::Error) -> String {
    format!("writing {}: {error}", file.display())
}

fn write_beside(file: &Path, text: &str) -> Result<PathBuf, String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let wrong = |error: std::io::Error| unwritten(file, &error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(wrong)?;
    let number = crate::control::secret::fresh()?;
    let hidden = format!(".{}", crate::control::secret::to_hex(&number));
    let unfinished = folder.join(hidden);
    let mut open = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(wrong)?;
    let written = open.write_all(text.as_bytes()).and_then(|()| open.sync_all());
    match written {
        Ok(()) => Ok(unfinished),
        Err(error) => {
            let _ = fs::remove_file(&unfinished);
            Err(wrong(error))
        }
    }
}

/// The file with the certificate of the agent at an address.
pub fn agent_file(folder: &Path, host: &str, port: u16) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.:".contains(c) { c } else { '_' };
    let host: String = host.to_ascii_lowercase().chars().map(plain).collect();
    folder.join(AGENTS).join(format!("{host}:{port}.pem"))
}
