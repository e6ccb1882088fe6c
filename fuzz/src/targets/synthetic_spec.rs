//! The behaviour of the synthetic transport as typed: every value in its range, or one sentence.

use crate::valid_text;
use wiregauge::transport::synthetic::Synthetic;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    match text.parse::<Synthetic>() {
        Err(e) => assert!(e.contains("use constant(T)") || e.contains("more than"), "{e}"),
        Ok(spec) => {
            for share in [spec.loss, spec.duplicate, spec.reorder, spec.forward_share] {
                assert!((0.0..=1.0).contains(&share), "{spec:?}");
            }
            assert!(spec.drift_ppm.is_finite() && spec.offset_ns.is_finite());
        }
    }
}
