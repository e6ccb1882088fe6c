//! A reference's text: published tables, or one sentence with its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wiregauge::plan::reference::parse;

fuzz_target!(|text: &str| {
    if let Err(wrong) = parse("reference.toml", text) {
        assert!(!wrong.sentence.is_empty() && !wrong.sentence.contains('\n'), "{wrong:?}");
        assert_eq!(wrong.marked().lines().count(), 3, "{wrong:?}");
    }
});
