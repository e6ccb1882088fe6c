//! `selftest`: the instrument against transports whose true figures are known (METHOD.md,
//! "The self-test"). Deterministic but for T15 and T16: simulated time, seeded draws.

mod clocks;
mod generator;
mod outputs;
mod processes;
mod simulate;
mod statistics;

use super::console::{print, print_json};
use super::{CommandError, Exit};
use crate::report::table::{Cell, Grid};
use serde::Serialize;

/// How a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within what is allowed.
    Pass,
    /// Outside.
    Fail,
}

/// One row of the self-test.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// T1 to T16.
    pub test: &'static str,
    /// What was injected.
    pub input: &'static str,
    /// What is true.
    pub truth: String,
    /// What was measured.
    pub measured: String,
    /// What is allowed.
    pub allowed: &'static str,
    /// How it ended.
    pub verdict: Verdict,
}

impl Row {
    /// A row that passes where `passes`.
    fn new(
        (test, input, allowed): (&'static str, &'static str, &'static str),
        truth: impl Into<String>,
        measured: impl Into<String>,
        passes: bool,
    ) -> Row {
        let verdict = if passes { Verdict::Pass } else { Verdict::Fail };
        Row { test, input, truth: truth.into(), measured: measured.into(), allowed, verdict }
    }

    /// A row whose test could not be carried out: it fails, with the reason.
    fn broken(what: (&'static str, &'static str, &'static str), why: impl ToString) -> Row {
        Row::new(what, "-", why.to_string(), false)
    }
}

/// All rows, in order.
pub fn rows() -> Vec<Row> {
    vec![
        statistics::t1_standard_deviation(),
        outputs::t2_stall(),
        statistics::t3_too_few(),
        statistics::t4_whole_run(),
        statistics::t5_count_and_time(),
        statistics::t6_pauses(),
        generator::t7_stall(),
        generator::t8_generators(),
        statistics::t9_loss_and_reordering(),
        clocks::t10_offset_and_drift(),
        statistics::t11_a_day(),
        outputs::t12_formats(),
        statistics::t13_outlier(),
        clocks::t14_late_rank(),
        processes::t15_refusals(),
        processes::t16_null(),
    ]
}

/// Runs it; the exit code says whether every row passes.
pub fn selftest(json: bool) -> Result<Exit, CommandError> {
    let rows = rows();
    let failed = rows.iter().filter(|row| row.verdict == Verdict::Fail).count();
    match json {
        true => print_json(&rows)?,
        false => print(tell(&rows, failed).as_bytes())?,
    };
    Ok(if failed > 0 { Exit::Exceeded } else { Exit::Right })
}

fn tell(rows: &[Row], failed: usize) -> String {
    let mut grid = Grid::new(["test", "input", "true", "measured", "allowed", "verdict"]);
    for row in rows {
        let verdict = match row.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
        };
        let words = [row.test, row.input, &row.truth, &row.measured, row.allowed, verdict];
        grid.row(words.map(Cell::from));
    }
    let passed = rows.iter().filter(|row| row.verdict == Verdict::Pass).count();
    format!("{grid}{passed} rows pass, {failed} fail\n")
}
