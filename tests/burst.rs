//! The example of a pattern of its own, run from the command line to the record and the page.
//!
//! This program is the example where it is started as such: by the test below, and as the agents
//! that the example starts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../examples/burst/main.rs"]
mod burst;
#[path = "controller/mod.rs"]
mod controller;

use controller::{Controller, Scratch, words};
use std::process::{Command, ExitCode};
use wiregauge::record::read_record;

/// Set where this program is the example.
const IS_EXAMPLE: &str = "WIREGAUGE_TEST_BURST";

const LINE: &str =
    "burst --messages 16 --transport shm --count 480 --warmup 0 --rounds 2 --out run";

fn main() -> ExitCode {
    if std::env::var_os(IS_EXAMPLE).is_some() {
        return burst::main();
    }
    // A runner of tests may only want their names.
    if std::env::args().any(|argument| argument == "--list") {
        println!("a_burst_is_run_kept_and_shown: test");
        return ExitCode::SUCCESS;
    }
    a_burst_is_run_kept_and_shown();
    ExitCode::SUCCESS
}

fn a_burst_is_run_kept_and_shown() {
    let scratch = Scratch::new();
    let mut example = Command::new(std::env::current_exe().unwrap());
    example.env(IS_EXAMPLE, "1").args(words(LINE));
    let ended = Controller::of(&scratch, example).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let [run] = record.runs.as_slice() else { unreachable!("{:?}", record.runs) };
    assert_eq!((run.case.pattern.as_str(), run.rounds.len()), ("burst", 2));
    assert_eq!((run.counts.sent, run.counts.received, run.counts.lost), (960, 960, 0));
    assert_eq!(run.case.spec["messages"], 16);
    assert_eq!(run.included["batching"], "16 messages per flush");
    let page = std::fs::read_to_string(scratch.join("run/report.html")).unwrap();
    let row = page.split("<tr").find(|row| row.contains("data-k=\"messages\"")).unwrap();
    for key in ["p50", "p99", "p99.9", "max"] {
        assert!(row.contains(&format!("data-k=\"{key}\"")), "no {key}: {row}");
    }
    assert!([">16<", ">960<", ">0<"].iter().all(|cell| row.contains(cell)), "{row}");
}
