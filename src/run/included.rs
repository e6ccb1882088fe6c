//! What was included in a run's figures: name, value.

use crate::loops::role;
use crate::plan::Case;
use crate::transport::Wait;
use std::collections::BTreeMap;

/// The pairs that stand in the record.
pub(super) fn of(case: &Case) -> BTreeMap<String, String> {
    let wait = match case.wait {
        Wait::Busy => "busy: both ends poll without a pause".to_string(),
        Wait::Block => "block: both ends sleep in the kernel".to_string(),
        Wait::Adaptive => {
            format!("adaptive: both ends poll for {} us, then sleep", role::ADAPTIVE_SPIN.0 / 1000)
        }
    };
    let check = match (case.check, &case.stream) {
        (true, _) => "filled and verified",
        (false, Some(_)) => "samples, not verified",
        (false, None) => "numbered, not verified",
    };
    let batching = match case.burst {
        1 => "one message a flush".to_string(),
        burst => format!("{burst} messages a flush"),
    };
    BTreeMap::from([
        ("wait".to_string(), wait),
        ("payload".to_string(), check.to_string()),
        ("batching".to_string(), batching),
        ("path".to_string(), case.transport.descriptor().path.to_string()),
    ])
}
