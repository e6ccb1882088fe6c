//! A distribution of lengths from a file: steps that rise to 1, or one sentence with its place.

use crate::valid_text;
use wiregauge::pattern::rpc::workload::Workload;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    match Workload::of_file("w", text) {
        Err(wrong) => {
            assert!(!wrong.sentence.is_empty() && !wrong.sentence.contains('\n'), "{wrong:?}");
            assert_eq!(wrong.marked().lines().count(), 3, "{wrong:?}");
        }
        Ok(workload) => {
            let rises = |pair: &[(wiregauge::units::Bytes, f64)]| {
                pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1
            };
            assert!(workload.steps.windows(2).all(rises), "{workload:?}");
            assert_eq!(workload.steps.last().map(|step| step.1), Some(1.0));
            assert!(workload.mean().is_finite());
        }
    }
}
