//! The self-test: what is true, what was measured, what is allowed.

use super::Grid;
use serde::Serialize;

/// One known answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Its name, e.g. `T1`.
    pub name: String,
    /// What is put in and what is looked at.
    pub what: String,
    /// What is true, with its unit.
    #[serde(rename = "true")]
    pub truth: String,
    /// What was measured, with its unit.
    pub measured: String,
    /// What is allowed.
    pub allowed: String,
    /// Whether what was measured is allowed.
    pub passed: bool,
}

/// The table, and how many failed.
pub fn table(all: &[Known]) -> String {
    let mut grid = Grid::new(["test", "what", "true", "measured", "allowed", "verdict"]);
    for known in all {
        let verdict = if known.passed { "pass" } else { "FAIL" };
        let words = [&known.name, &known.what, &known.truth, &known.measured, &known.allowed];
        grid.row(words.map(|word| word.as_str().into()).into_iter().chain([verdict.into()]));
    }
    let failed = all.iter().filter(|known| !known.passed).count();
    format!("{grid}{} of {} passed\n", all.len() - failed, all.len())
}
