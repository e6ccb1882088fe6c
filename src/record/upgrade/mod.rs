//! Turns the JSON of an older record into that of today, one version at a time, before it is
//! deserialised. The reader has bounded its size and depth.

mod case1;
mod settings1;
mod version1;

use super::schema::VERSION;
use serde_json::Value;

/// Each turns version n into n + 1: that of version 1 is the first.
const STEPS: [fn(&mut Value); VERSION as usize - 1] = [version1::upgrade];

/// The record as this build would have written it. A version that never was is left as it is.
pub fn upgrade(mut record: Value, version: u64) -> Value {
    let done = usize::try_from(version).unwrap_or(0);
    if let Some(steps) = done.checked_sub(1).and_then(|first| STEPS.get(first..)) {
        steps.iter().for_each(|step| step(&mut record));
        if let Some(version) = record.get_mut("version") {
            *version = VERSION.into();
        }
    }
    record
}
