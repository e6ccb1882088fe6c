//! What Homa's module traces (`/proc/timetrace`): the life of its packets, or one sentence. A line
//! `--` divides the traces of two hosts.

use wiregauge::explain::packets::{STAGES, Trace, follow};

/// The line between two traces.
const DIVIDER: &[u8] = b"\n--\n";

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let divided = data.windows(DIVIDER.len()).position(|bytes| bytes == DIVIDER);
    let parts = match divided {
        Some(at) => vec![&data[..at], &data[at + DIVIDER.len()..]],
        None => vec![data],
    };
    let mut traces = Vec::new();
    for part in parts {
        match Trace::read(part, "timetrace") {
            Ok(trace) => traces.push(trace),
            Err(wrong) => return assert!(!wrong.to_string().contains('\n')),
        }
    }
    let Some((first, rest)) = traces.split_first() else { return };
    let Some(found) = follow(first, rest.first()) else { return };
    for lives in &found.lives {
        assert!(lives.packets > 0 && lives.stages_ns.len() == STAGES.len(), "{lives:?}");
    }
    serde_json::to_string(&found).expect("what was found can be written");
}
