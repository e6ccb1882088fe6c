//! `record.json` from anywhere: a record that is written and read again as it was, or a sentence.

use std::path::Path;
use wiregauge::record::directory::parse_record;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    match parse_record(Path::new("record.json"), data) {
        Err(e) => assert!(!e.to_string().contains('\n')),
        Ok(record) => {
            let text = serde_json::to_vec(&record).expect("what was read can be written");
            let again = parse_record(Path::new("record.json"), &text).expect("and read again");
            let again = serde_json::to_vec(&again).expect("what was read can be written");
            assert_eq!(text, again);
        }
    }
}
