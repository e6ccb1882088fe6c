//! The command line as its users meet it: each file of `tests/cli` is a transcript, and a document.
//!
//! After a change that is meant, `TRYCMD=overwrite cargo test --test cli` writes them again.

#[test]
fn transcripts_hold() {
    trycmd::TestCases::new().env("COLUMNS", "100").case("tests/cli/*.md");
}
