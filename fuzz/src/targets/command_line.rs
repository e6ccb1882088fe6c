//! A whole command line, a word a line: a plan of limited size, or one refusal. Nothing is run.

use crate::valid_text;
use std::ffi::OsString;
use wiregauge::cli::{self, Command};

/// More words than a person types; each costs the parser time.
const WORDS: usize = 64;
/// Far above every limit on cases.
const CASES: usize = 1 << 20;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let words = valid_text(data).lines().take(WORDS).map(OsString::from);
    let words: Vec<OsString> = std::iter::once(OsString::from("wiregauge")).chain(words).collect();
    let planned = cli::parse(&words).and_then(|command| match command {
        Command::Measure { request, .. } => request.plan().map(Some),
        _ => Ok(None),
    });
    match planned {
        Ok(plan) => assert!(plan.is_none_or(|plan| (1..=CASES).contains(&plan.cases.len()))),
        Err(refusal) => {
            let sentence = refusal.to_string();
            let is_shown = |c: char| c == '\n' || !c.is_control();
            assert!(!sentence.is_empty() && sentence.chars().all(is_shown), "{sentence:?}");
        }
    }
}
