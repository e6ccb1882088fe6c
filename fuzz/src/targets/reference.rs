//! A reference's text: published tables, or one sentence with its place.

use crate::valid_text;
use wiregauge::plan::reference::parse;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let text = valid_text(data);
    if let Err(wrong) = parse("reference.toml", text) {
        assert!(!wrong.sentence.is_empty() && !wrong.sentence.contains('\n'), "{wrong:?}");
        assert_eq!(wrong.marked().lines().count(), 3, "{wrong:?}");
    }
}
