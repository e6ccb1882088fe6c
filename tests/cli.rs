//! The command line as its users see it: the transcripts in `tests/cli/` are run and compared.
//! `TRYCMD=overwrite cargo test --test cli` writes them anew; read the difference before it is kept.

#[test]
fn transcripts_hold() {
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("COLUMNS", "100").case("tests/cli/*.md");
}
