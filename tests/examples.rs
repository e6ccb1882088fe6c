//! The examples: a pattern of its own, from the command line to the record and the page, and a
//! program that measures by itself.
//!
//! This program is an example where it is started as such: by the tests below, and as the agents
//! that the example starts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../examples/burst/main.rs"]
mod burst;
#[path = "it/support/controller.rs"]
#[allow(dead_code)]
mod controller;
#[path = "../examples/measure/main.rs"]
mod measure;

use controller::{Controller, Ended, Scratch, words};
use std::process::{Command, ExitCode};
use wiregauge::record::read_record;

/// Names the example that this program is.
const EXAMPLE: &str = "WIREGAUGE_TEST_EXAMPLE";

const LINE: &str =
    "burst --messages 16 --transport shm --count 480 --warmup 0 --rounds 2 --out run";

fn main() -> ExitCode {
    match std::env::var(EXAMPLE).as_deref() {
        Ok("burst") => return burst::main(),
        Ok("measure") => return measure::main(),
        _ => {}
    }
    run_named();
    ExitCode::SUCCESS
}

/// Lists the tests, or runs those whose names are given, or all: what `cargo test` and nextest ask
/// of a test program.
fn run_named() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has_flag = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let names: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    for (name, test) in TESTS {
        if has_flag("--list") {
            if !has_flag("--ignored") {
                println!("{name}: test");
            }
        } else if names.is_empty() || names.iter().any(|wanted| name.contains(*wanted)) {
            test();
        }
    }
}

const TESTS: [(&str, fn()); 2] = [
    ("a_burst_is_run_kept_and_shown", a_burst_is_run_kept_and_shown),
    ("a_program_measures_by_itself", a_program_measures_by_itself),
];

/// Runs an example to its end.
fn example(scratch: &Scratch, name: &str, arguments: &[&str]) -> Ended {
    let mut example = Command::new(std::env::current_exe().unwrap());
    example.env(EXAMPLE, name).args(arguments);
    let ended = Controller::of(scratch, example).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

fn a_program_measures_by_itself() {
    let scratch = Scratch::new();
    let ended = example(&scratch, "measure", &[]);
    for transport in ["shm", "unix", "tcp"] {
        let begin = format!("{transport}: p50 ");
        assert!(ended.stdout.lines().any(|line| line.starts_with(&begin)), "{ended:?}");
    }
    assert_eq!(ended.stderr, "");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is kept");
}

fn a_burst_is_run_kept_and_shown() {
    let scratch = Scratch::new();
    example(&scratch, "burst", &words(LINE));
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
