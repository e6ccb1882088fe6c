//! A trace's text: times that rise, with a rate, or one sentence with its place.

use crate::valid_text;
use wiregauge::plan::Trace;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    match Trace::parse("t", text) {
        Err(wrong) => assert!(wrong.starts_with("t:") && !wrong.contains('\n'), "{wrong}"),
        Ok(trace) => {
            assert!(trace.times_ns.windows(2).all(|pair| pair[0] <= pair[1]));
            assert!(trace.rate().0.is_finite() && trace.rate().0 > 0.0);
            assert!(trace.sizes.is_empty() || trace.sizes.len() == trace.times_ns.len());
        }
    }
}
