//! Sweeps as typed (`8..64KiB*2`, `1kB..100kB/8`, lists): sizes or one sentence, and never many.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wiregauge::plan::sweep::{MOST_POINTS, parse};

fuzz_target!(|text: &str| {
    match parse(text) {
        Err(e) => assert!(!e.to_string().is_empty()),
        Ok(sizes) => {
            assert!(!sizes.is_empty() && sizes.len() <= MOST_POINTS);
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
        }
    }
});
