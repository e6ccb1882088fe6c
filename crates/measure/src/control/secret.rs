//! The run's secrets: random, and written as hex where an environment variable carries them.

use hex::FromHex;
pub use hex::encode as to_hex;
use ring::digest::{SHA256, digest};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_its_hex() {
        let secret: [u8; 32] = fresh().unwrap();
        assert_eq!(from_hex(&to_hex(secret)), Some(secret));
        assert_eq!(from_hex("zz"), None);
    }
}
