//! The run's secrets: random, and written as hex where an environment variable carries them.

use hex::FromHex;
pub use hex::encode as to_hex;
use ring::digest::{SHA256, digest};
use ring::hmac;

/// Random bits.
pub fn fresh<const BYTES: usize>() -> Result<[u8; BYTES], String> {
    let mut bits = [0; BYTES];
    getrandom::fill(&mut bits).map_err(|error| format!("cannot get random numbers: {error}"))?;
    Ok(bits)
}

/// From hex; `None` where it is not 64 hex digits.
pub fn from_hex(hex: &str) -> Option<[u8; 32]> {
    FromHex::from_hex(hex).ok()
}

/// The SHA-256 of a text.
pub fn digested(text: &[u8]) -> [u8; 32] {
    let mut whole = [0; 32];
    whole.copy_from_slice(digest(&SHA256, text).as_ref());
    whole
}

/// Returns the secret of two ends, in either order, from one of all: whoever is told it learns
/// nothing of that of any other two.
pub fn of_pair(secret: &[u8; 32], one: u32, other: u32) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let numbers = [one.min(other).to_le_bytes(), one.max(other).to_le_bytes()].concat();
    let mut whole = [0; 32];
    whole.copy_from_slice(hmac::sign(&key, &numbers).as_ref());
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_secret_of_its_own() {
        let run = [7; 32];
        assert_eq!(of_pair(&run, 1, 2), of_pair(&run, 2, 1));
        let of_run = [(0, 1), (0, 2), (1, 2), (0, 256)].map(|(a, b)| of_pair(&run, a, b));
        let all: Vec<_> = of_run.into_iter().chain([of_pair(&[8; 32], 0, 1)]).collect();
        assert!((0..all.len()).all(|one| !all[..one].contains(&all[one])));
    }

    #[test]
    fn a_secret_survives_its_hex() {
        let secret: [u8; 32] = fresh().unwrap();
        assert_eq!(from_hex(&to_hex(secret)), Some(secret));
        assert_eq!(from_hex("zz"), None);
    }
}
