//! The files and frames of a pairing: an offer or none, a card with a safe name or a sentence.

use wiregauge::remote::daemon::identity::certificate;
use wiregauge::remote::daemon::pairing::{parse_offer, read_card};

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some((secret, _)) = parse_offer(&text) {
        assert_eq!(secret.to_string().parse(), Ok(secret));
    }
    let _ = certificate(&text);
    if let Ok((name, certificate)) = read_card(&mut &*data) {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || "@-_".contains(c);
        assert!(name.len() < 100 && name.chars().all(is_safe), "{name}");
        assert!(certificate.len() <= 16 << 10);
    }
}
