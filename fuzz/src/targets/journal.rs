//! The journal of a run that did not end, from anywhere: its rounds or a sentence, and the samples
//! beside it stay as they were.

use std::fs;
use wiregauge::record::RunDirectory;
use wiregauge::record::directory::SAMPLES_FILE;
use wiregauge::record::journal::{JOURNAL_FILE, sealed};

/// As long as most journals of a few rounds say that the samples are.
const SAMPLES: [u8; 1 << 14] = [7; 1 << 14];

/// Lines behind the checksums that they would have, so that what they hold is read.
fn with_checksums(text: &str) -> Vec<u8> {
    let mut sum = String::new();
    text.lines().map(|line| sealed(&mut sum, line)).collect::<String>().into_bytes()
}

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let name = format!(".fuzz-{0}.partial-{0}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).expect("the temporary directory can be written");
    fs::write(dir.join(SAMPLES_FILE), SAMPLES).expect("the samples are written");
    let text = std::str::from_utf8(data).map(with_checksums);
    for journal in text.iter().map(Vec::as_slice).chain([data]) {
        fs::write(dir.join(JOURNAL_FILE), journal).expect("the journal is written");
        if let Err(error) = RunDirectory::recover(&dir) {
            assert!(!error.to_string().contains('\n'));
        }
        assert_eq!(fs::read(dir.join(SAMPLES_FILE)).ok().as_deref(), Some(&SAMPLES[..]));
        assert_eq!(fs::read_dir(&dir).map(Iterator::count).ok(), Some(2));
    }
    let _ = fs::remove_dir_all(&dir);
}
