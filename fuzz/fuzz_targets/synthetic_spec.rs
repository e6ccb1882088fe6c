//! The behaviour of the synthetic transport as typed: every value in its range, or one sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wiregauge::transport::synthetic::Synthetic;

fuzz_target!(|text: &str| {
    match text.parse::<Synthetic>() {
        Err(e) => assert!(e.contains("use constant(T)") || e.contains("more than"), "{e}"),
        Ok(spec) => {
            for share in [spec.loss, spec.duplicate, spec.reorder, spec.forward_share] {
                assert!((0.0..=1.0).contains(&share), "{spec:?}");
            }
            assert!(spec.drift_ppm.is_finite() && spec.offset_ns.is_finite());
        }
    }
});
