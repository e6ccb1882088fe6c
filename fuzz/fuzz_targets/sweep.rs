//! Sweeps as typed (`8..64KiB*2`, `1k..100k/8`, lists): values or a sentence, and never many.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wiregauge::plan::sweep::Sweep;

fuzz_target!(|text: &str| {
    if let Err(e) = text.parse::<Sweep>() {
        assert!(!e.to_string().is_empty());
    }
});
