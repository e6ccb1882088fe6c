//! Sweeps as typed (`8..64KiB*2`, `1kB..100kB/8`, lists): sizes or one sentence, and never many.

use crate::valid_text;
use wiregauge::plan::sweep::{MOST_POINTS, parse};

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    match parse(text) {
        Err(e) => assert!(!e.to_string().is_empty()),
        Ok(sizes) => {
            assert!(!sizes.is_empty() && sizes.len() <= MOST_POINTS);
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
        }
    }
}
