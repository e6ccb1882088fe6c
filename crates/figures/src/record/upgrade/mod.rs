//! Turns the JSON of an older record into that of today before it is deserialised. The reader has
//! bounded its size and depth.

mod case1;
mod settings1;
mod version1;

use super::schema::VERSION;
use serde_json::Value;

// A new version needs a step here.
const _: () = assert!(VERSION == 3);

/// The record as this build would have written it. A version that never was is left as it is.
pub fn upgrade(mut record: Value, version: u64) -> Value {
    match version {
        1 => version1::upgrade(&mut record),
        // Its figures are of all samples together: what a figure without `basis` is read as.
        2 => {}
        _ => return record,
    }
    if let Some(version) = record.get_mut("version") {
        *version = VERSION.into();
    }
    record
}
