//! The command line as its users meet it: each file of `tests/cli` is a transcript, and a document.
//!
//! After a change that is meant, `TRYCMD=overwrite cargo test --test cli` writes them again.

#[test]
fn transcripts_hold() {
    // Of each command: far above what one takes on a busy machine.
    let limit = std::time::Duration::from_secs(120);
    trycmd::TestCases::new().env("COLUMNS", "100").timeout(limit).case("tests/cli/*.md");
}
