//! The run's secrets: random, and written as hex where an environment variable carries them.

/// 256 random bits.
pub fn fresh() -> Result<[u8; 32], String> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|error| format!("no random numbers to be had: {error}"))?;
    Ok(bits)
}

/// As hex.
pub fn to_hex(secret: &[u8; 32]) -> String {
    secret.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// From hex; `None` where it is not 64 hex digits.
pub fn from_hex(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut secret = [0; 32];
    for (byte, digits) in secret.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_its_hex() {
        let secret = fresh().unwrap();
        assert_eq!(from_hex(&to_hex(&secret)), Some(secret));
        assert_eq!(from_hex("zz"), None);
    }
}
