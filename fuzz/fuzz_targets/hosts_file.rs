//! A hosts file from anywhere: hosts, none of which ssh takes for an option, or one sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wiregauge::cli::entry::hosts;

fuzz_target!(|text: &str| {
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
});
