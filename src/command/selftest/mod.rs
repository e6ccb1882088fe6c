//! `selftest`: the instrument against transports whose true figures are known (METHOD.md,
//! "The self-test"). Deterministic but for T8, T15, T16 and T19: simulated time, seeded draws.

mod clocks;
mod collectives;
mod coverage;
mod curves;
mod figures;
mod generator;
mod outputs;
mod processes;
mod simulate;
mod statistics;

use super::console::{show, whole_layout};
use super::{CommandError, Exit};
use crate::options::Given;
use crate::report::table::{Cell, Grid};
use serde::Serialize;
use std::error::Error;

/// What a test gives, or why it could not be carried out.
type Fallible<T> = Result<T, Box<dyn Error>>;

/// What is true, what was measured, and whether that is allowed.
type Outcome = Fallible<(String, String, bool)>;

/// A test: its number, what is injected, what is allowed, and how it is done.
type Test = (u32, &'static str, &'static str, fn() -> Outcome);

/// By their numbers.
#[rustfmt::skip]
const TESTS: [Test; 25] = [
    (1, "normal delays 1.0 us, sd 0.3 us", "within 5 %", statistics::t1_standard_deviation),
    (2, "one 5 ms stall in 1000 samples of about 1.1 us",
     "max 5 ms, mean 6.1 us, visible in every output", outputs::t2_stall),
    (3, "1000 samples", "p99.9 is \"n too small\" or has an interval", statistics::t3_too_few),
    (4, "10^7 samples, 1 % slow (50 us) in the first half",
     "of the whole run", statistics::t4_whole_run),
    (5, "the same stream by duration and by count",
     "the same quantiles", statistics::t5_count_and_time),
    (6, "pauses of 50 us between messages", "latency unchanged", statistics::t6_pauses),
    (7, "server stalls 100 ms under 100 k/s Poisson",
     "response p99 within 5 %; service p99 unmoved", generator::t7_stall),
    (8, "periodic and Poisson, 100/s to the highest stated rate",
     "rate within 0.1 %; Anderson-Darling at 5 %", generator::t8_generators),
    (9, "1 % loss and 1 % reordering, 100 k/s one way",
     "p99.5 infinite; latencies kept; counts exact", statistics::t9_loss_and_reordering),
    (10, "asymmetry 3:1 and 30:1, offset 1 s, drift 20 ppm",
     "error <= bound; drift within 0.1 ppm; bound grows with age", clocks::t10_offset_and_drift),
    (11, "24 h x 100 M/s simulated", "no overflow, NaN or negative", statistics::t11_a_day),
    (12, "every output format", "strict readers read back what was injected",
     outputs::t12_formats),
    (13, "one 100 ms outlier among 100000", "p50 and p99 unchanged", statistics::t13_outlier),
    (14, "one late rank in a scheduled exchange, 8 clocks",
     "that round is flagged, and no other; the rank is named", clocks::t14_late_rank),
    (15, "other version, wrong secret, unknown option",
     "one plain sentence, no hang, exit code 2", processes::t15_refusals),
    (16, "null transport, real clock",
     "latency <= printed error; overhead 5 to 100 % of the loop", processes::t16_null),
    (17, "400 runs each: independent, AR(1) 0.9, two modes, levels, rates",
     "93 % or more enclose the truth", coverage::t17_coverage),
    (18, "known counts in known times", "rates within 0.1 %; counts exact", figures::t18_rates),
    (19, "a second of CLOCK_MONOTONIC", "within 1000 ppm", clocks::t19_scale),
    (20, "a warm-up that is 50 times slower", "in no figure, in no rate", figures::t20_warmup),
    (21, "uniform delays, 1 to 2 us", "each quantile within 5 sigma", figures::t21_quantiles),
    (22, "knee and limit of a queue of known response",
     "exact; at the end of a sweep, a lower bound", curves::t22_knee_and_limit),
    (23, "5 % duplicates, no loss", "no duplicate counts as lost", figures::t23_duplicates),
    (24, "allreduce of 4 ranks, 1 us a message; one of MPI here",
     "first entry to last exit, not the time after a barrier", collectives::t24_collectives),
    (25, "the median of 100 numbers, and of ten rounds in two modes", "exact", coverage::t25_order),
];

/// One row of the self-test.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// T1 and so on.
    test: String,
    /// What was injected.
    input: &'static str,
    /// What is true.
    truth: String,
    /// What was measured.
    measured: String,
    /// What is allowed.
    allowed: &'static str,
    /// `pass`: within what is allowed; `fail`: outside, or not carried out.
    verdict: &'static str,
}

fn row((number, input, allowed, test): Test) -> Row {
    let failed = |why: Box<dyn Error>| ("-".to_owned(), why.to_string(), false);
    let (truth, measured, passes) = test().unwrap_or_else(failed);
    let verdict = if passes { "pass" } else { "fail" };
    Row { test: format!("T{number}"), input, truth, measured, allowed, verdict }
}

/// Runs it; the exit code says whether every row passes.
pub fn selftest(given: &Given) -> Result<Exit, CommandError> {
    let rows: Vec<Row> = TESTS.into_iter().map(row).collect();
    let failed = rows.iter().filter(|row| row.verdict == "fail").count();
    show(given.flag("json"), &rows, |rows| table(rows, failed))?;
    Ok(if failed > 0 { Exit::EXCEEDED } else { Exit::RIGHT })
}

fn table(rows: &[Row], failed: usize) -> String {
    let mut grid = Grid::new(["test", "input", "true", "measured", "allowed", "verdict"]);
    for row in rows {
        let verdict = row.verdict.replace("fail", "FAIL");
        let words = [&row.test, row.input, &row.truth, &row.measured, row.allowed, &verdict];
        grid.row(words.map(Cell::from));
    }
    let (text, _) = grid.text(&whole_layout());
    format!("{text}{} rows pass, {failed} fail\n", rows.len() - failed)
}
