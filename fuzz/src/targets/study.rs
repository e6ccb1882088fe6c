//! A study's text: requests of the command line or one sentence with its place, and never many.

use crate::valid_text;
use wiregauge::cli::entry;
use wiregauge::pattern::registry;
use wiregauge::plan::study::file;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    let study = match file::parse(&registry::names(), "study.toml", text) {
        Ok(study) => study,
        Err(wrong) => return one_sentence(&wrong),
    };
    assert!((1..=200).contains(&study.entries.len()), "{}", study.entries.len());
    // Each is the whole command line's parser: a few are enough.
    for asked in study.entries.iter().take(3) {
        if let Err(wrong) = entry::request(&study.written, asked) {
            one_sentence(&wrong);
        }
    }
}

fn one_sentence(wrong: &wiregauge::plan::written::Misplaced) {
    assert!(!wrong.sentence.is_empty() && !wrong.sentence.contains('\n'), "{wrong:?}");
    assert_eq!(wrong.marked().lines().count(), 3, "{wrong:?}");
}
