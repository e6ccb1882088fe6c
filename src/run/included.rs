//! What was included in a run's figures: name, value.

use super::analysis::PatternAnalysis;
use crate::loops::waiter::ADAPTIVE_SPIN;
use crate::plan::Case;
use crate::transport::Wait;
use std::collections::BTreeMap;

/// The pairs that stand in the record.
pub(super) fn of(case: &Case, analysis: &dyn PatternAnalysis) -> BTreeMap<String, String> {
    let wait = match case.wait {
        Wait::Busy => "busy: both ends poll without a pause".to_string(),
        Wait::Block => "block: both ends sleep in the kernel".to_string(),
        Wait::Adaptive => {
            format!("adaptive: both ends poll for {} us, then sleep", ADAPTIVE_SPIN.0 / 1000)
        }
    };
    let payload = if case.check { "filled and verified" } else { "numbered, not verified" };
    let mut notes = BTreeMap::from([
        ("wait".to_string(), wait),
        ("payload".to_string(), payload.to_string()),
        ("path".to_string(), case.transport.descriptor().path.to_string()),
    ]);
    notes.extend(analysis.method_notes(case));
    notes
}
