//! A hosts file from anywhere: hosts, none of which ssh takes for an option, or one sentence.

use crate::valid_text;
use wiregauge::cli::entry::hosts;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    match hosts(text, "rack7") {
        Ok(hosts) => {
            assert!((1..=10_000).contains(&hosts.len()));
            let is_plain = |name: &str| {
                !name.is_empty() && !name.starts_with('-') && !name.contains(char::is_whitespace)
            };
            assert!(hosts.iter().all(|one| is_plain(&one.host)), "{hosts:?}");
        }
        Err(wrong) => assert!(wrong.to_string().starts_with("--hosts-file: rack7"), "{wrong}"),
    }
}
