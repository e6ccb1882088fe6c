//! The identities of controllers and daemons: a key and a self-signed certificate. Each side trusts
//! exactly the certificates that it received when it was paired.

use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519, PublicKeyData,
    SerialNumber,
};
use ring::hkdf;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fs::DirBuilder;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;
use wiregauge_host::{read_text, user_folder};
use wiregauge_measure::control::secret;

/// The name in every certificate. The certificate itself identifies its owner.
pub const NAME: &str = "wiregauge";
/// Environment variable with the folder of this host's identity and its peers' certificates.
pub const FOLDER_VARIABLE: &str = "WIREGAUGE_CONFIG";
/// The subfolder of the daemons that this host is paired with.
const AGENTS: &str = "agents";
const DAY: u64 = 24 * 3600;
/// Validity of an identity: longer than a cluster runs between reinstallations, and short enough
/// that a lost key expires.
const VALIDITY: Duration = Duration::from_secs(2 * 365 * DAY);
/// Validity begins earlier, for clocks that are behind.
const EARLIER: Duration = Duration::from_secs(DAY);
/// The validity of a derived identity, since 1970: the years 2000 to 2999.
const DERIVED_VALIDITY: [Duration; 2] =
    [Duration::from_secs(946_684_800), Duration::from_secs(32_503_593_600)];
/// The end of the year 9999, since 1970: the last date that a certificate can hold (RFC 5280,
/// 4.1.2.5).
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);
/// Longest file of a certificate or key that is read; ours have less than 1 KiB.
pub const LONGEST_PEM: u64 = 16 << 10;
/// Most certificates read from a folder.
const MAX_PEERS: usize = 4096;
/// Prefix of a PKCS #8 key of Ed25519 (RFC 8410, section 7); the 32 bytes of the key follow.
const PKCS8_ED25519: [u8; 16] =
    *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// A key and its self-signed certificate.
pub struct Identity {
    /// The certificate that the peer receives.
    pub certificate: CertificateDer<'static>,
    /// The same in PEM.
    pub pem: String,
    key: PrivatePkcs8KeyDer<'static>,
}

/// The identities of both ends of a connection, derived from a secret that they share.
pub struct DerivedPair {
    /// The end that listens.
    pub agent: Identity,
    /// The end that dials.
    pub controller: Identity,
}

impl DerivedPair {
    /// Both sides derive the same bytes, so that each can trust the other's identity without an
    /// exchange. It reveals nothing about the secret.
    pub fn of_secret(secret: &[u8; 32]) -> Result<DerivedPair, String> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"wiregauge derived identity 1");
        let secret = salt.extract(secret);
        let derive = |end: &[u8]| {
            let mut seed = [0; 32];
            let info = [end];
            let made = secret.expand(&info, hkdf::HKDF_SHA256);
            made.and_then(|made| made.fill(&mut seed)).map_err(unmade)?;
            let key = PrivatePkcs8KeyDer::from([&PKCS8_ED25519[..], &seed].concat());
            let key = KeyPair::try_from(&key).map_err(unmade)?;
            // Its validity is that of the secret.
            let [from, until] = DERIVED_VALIDITY.map(|since| SystemTime::UNIX_EPOCH + since);
            Identity::of(&key, from, until)
        };
        Ok(DerivedPair { agent: derive(b"agent")?, controller: derive(b"controller")? })
    }
}

impl Identity {
    /// A new identity, valid since yesterday.
    pub fn fresh() -> Result<Identity, String> {
        let now = SystemTime::now();
        Identity::valid(now - EARLIER, now + VALIDITY)
    }

    /// A new identity, valid between two times.
    pub fn valid(from: SystemTime, until: SystemTime) -> Result<Identity, String> {
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(unmade)?;
        Identity::of(&key, from, until)
    }

    fn of(key: &KeyPair, from: SystemTime, until: SystemTime) -> Result<Identity, String> {
        let is_date = |time: SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since <= LAST_DATE)
        };
        let are_dates = is_date(from) && is_date(until);
        ensure!(are_dates, "this host's clock shows no valid date: set it, and try again");
        let of_key = fingerprint(key.der_bytes());
        let mut params = CertificateParams::new(vec![NAME.to_string()]).map_err(unmade)?;
        (params.not_before, params.not_after) = (from.into(), until.into());
        params.distinguished_name = DistinguishedName::new();
        // A name of its own: verifiers find the issuer by its name.
        params.distinguished_name.push(DnType::CommonName, format!("{NAME} {of_key}"));
        params.serial_number = Some(SerialNumber::from(1));
        let certificate = params.self_signed(key).map_err(unmade)?;
        Ok(Identity {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        })
    }

    /// Its key.
    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }

    /// This host's identity, created at the first use.
    pub fn of_host(folder: &Path) -> Result<Identity, String> {
        let file = folder.join("identity.pem");
        if let Some(text) = read(&file)? {
            return Identity::read(&file, &text);
        }
        Identity::fresh()?.save(folder)?;
        // Another process may have created one at the same time: the first one is kept.
        match read(&file)? {
            Some(text) => Identity::read(&file, &text),
            None => Err(format!("{} disappeared", file.display())),
        }
    }

    /// Saves it as this host's identity, unless there is one.
    pub fn save(&self, folder: &Path) -> Result<(), String> {
        let key = KeyPair::try_from(&self.key).map_err(unmade)?;
        write(&folder.join("identity.pem"), &(key.serialize_pem() + &self.pem), false)
    }

    fn read(file: &Path, text: &str) -> Result<Identity, String> {
        let shown = file.display();
        let found = file.metadata().map_err(|error| format!("reading {shown}: {error}"))?;
        let is_own = found.mode() & 0o077 == 0;
        ensure!(is_own, "{shown} is readable by other users: run `chmod 600 {shown}`");
        let certificate = CertificateDer::from_pem_slice(text.as_bytes());
        let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes());
        let both = certificate.and_then(|certificate| Ok((certificate, key?)));
        let (certificate, key) = both.map_err(|error| {
            format!("{shown} holds no valid identity ({error}): remove it and pair again")
        })?;
        let at = text.find("-----BEGIN CERTIFICATE").unwrap_or_default();
        Ok(Identity { certificate, pem: text[at..].to_string(), key })
    }
}

fn unmade(error: impl std::fmt::Display) -> String {
    format!("cannot create an identity: {error}")
}

/// The first 64 bits of SHA-256 in hex, to tell certificates apart.
pub fn fingerprint(bytes: &[u8]) -> String {
    secret::to_hex(&secret::digested(bytes)[..8])
}

/// The folder of identities: `WIREGAUGE_CONFIG`, else by the XDG base directories.
pub fn folder() -> Result<PathBuf, String> {
    user_folder(FOLDER_VARIABLE, "XDG_CONFIG_HOME", ".config", NAME)
}

/// A paired controller or daemon.
pub struct Peer {
    /// The name of its file.
    pub name: String,
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
}

/// All peers of a folder; files without a certificate are skipped.
pub fn peers(folder: &Path) -> Result<Vec<Peer>, String> {
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "pem"));
    files.sort();
    files.truncate(MAX_PEERS);
    let one = |file: PathBuf| {
        let name = file.file_stem()?.to_string_lossy().into_owned();
        Some(Peer { name, certificate: certificate(&read(&file).ok()??).ok()? })
    };
    Ok(files.into_iter().filter_map(one).collect())
}

/// Reads a certificate in PEM.
pub fn certificate(text: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(text.as_bytes())
        .map_err(|error| format!("not a certificate ({error})"))
}

/// Reads a short text file; `None`: there is no such file.
pub(super) fn read(file: &Path) -> Result<Option<String>, String> {
    match read_text(file, LONGEST_PEM) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("reading {}: {error}", file.display())),
    }
}

/// Writes a private file atomically, in a folder that is made if needed. A file that exists is
/// replaced, or else kept.
pub(super) fn write(file: &Path, text: &str, replaces: bool) -> Result<(), String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let write = || {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut unfinished = NamedTempFile::new_in(folder)?;
        unfinished.write_all(text.as_bytes())?;
        unfinished.as_file().sync_all()?;
        if replaces {
            unfinished.persist(file)?;
            return Ok(());
        }
        match unfinished.persist_noclobber(file) {
            Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    };
    write().map_err(|error: io::Error| format!("writing {}: {error}", file.display()))
}

/// The file with the certificate of the daemon at an address.
pub fn agent_file(folder: &Path, host: &str, port: u16) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.:".contains(c) { c } else { '_' };
    let host: String = host.to_ascii_lowercase().chars().map(plain).collect();
    folder.join(AGENTS).join(format!("{host}:{port}.pem"))
}
