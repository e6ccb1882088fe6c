//! `wiregauge compare`: verdicts with their exit codes, what differs between two records, and that
//! the samples are those of the record.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use support::Scratch;
use support::bounded::output;

/// What a command has printed, and its exit code.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn wiregauge(folder: &Path, arguments: &[&str]) -> Ended {
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let ended = output(Command::new(program).args(arguments).current_dir(folder));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(ended.stdout), text(ended.stderr));
    Ended { code: ended.status.code(), stdout, stderr }
}

/// Measures simulated round trips into a directory of this name.
fn measured(scratch: &Scratch, name: &str, delays: &str, more: &[&str]) {
    let usual = ["latency", "--transport", "synthetic", "--count", "2000", "--out", name];
    let arguments = [&usual, &["--synthetic", delays][..], more].concat();
    let ended = wiregauge(&scratch.0, &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Changes `record.json` of a run directory.
fn edited(scratch: &Scratch, name: &str, edit: impl FnOnce(&mut Value)) {
    let path = scratch.join(name).join("record.json");
    let mut record = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(&mut record);
    std::fs::write(path, serde_json::to_vec(&record).unwrap()).unwrap();
}

fn compared(scratch: &Scratch, arguments: &[&str]) -> Ended {
    wiregauge(&scratch.0, &[&["compare"], arguments].concat())
}

#[test]
fn each_verdict_has_its_exit_code() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(3us)", &[]);
    measured(&scratch, "once", "constant(3us)", &["--rounds", "1"]);
    let judged = |b: &str, limits: &[&str], more: &[&str]| {
        let limits: Vec<&str> = limits.iter().flat_map(|limit| ["--fail-if", limit]).collect();
        compared(&scratch, &[&["a", b], limits.as_slice(), more].concat())
    };
    let held = judged("b", &["rtt.p50>+60%", "rtt.max<1us"], &[]);
    assert_eq!(held.code, Some(0), "{held:?}");
    let line = "limit rtt.p50>+60% (latency synthetic busy 64 B): held: +50 % (+50 % to +50 %)";
    assert!(held.stdout.contains(line), "{held:?}");
    let exceeded = judged("b", &["rtt.p50>+40%"], &[]);
    assert_eq!(exceeded.code, Some(1), "{exceeded:?}");
    assert!(exceeded.stdout.contains("exceeded: +50 %"), "{exceeded:?}");
    let answer = "B is 50 % slower at p50 (50..50 %), 50 % slower at p99 (50..50 %)";
    assert!(exceeded.stdout.contains(answer), "{exceeded:?}");
    let unknown = judged("once", &["rtt.max>+40%"], &[]);
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
    let why = "inconclusive: rtt.max has no interval: measure 2 rounds or more";
    assert!(unknown.stdout.contains(why), "{unknown:?}");
    assert_eq!(judged("once", &["rtt.max>+40%"], &["--strict"]).code, Some(1));
    let both = judged("once", &["rtt.max>+40%", "rtt.min>1us"], &[]);
    assert_eq!(both.code, Some(5), "min has no interval either: {both:?}");
    let worst = judged("b", &["rtt.p50>+40%", "rtt.p99.99>+1%"], &[]);
    assert_eq!(worst.code, Some(1), "exceeded is worse than inconclusive: {worst:?}");
    let nothing = judged("b", &["bandwidth<-1%"], &[]);
    assert_eq!(nothing.code, Some(5), "{nothing:?}");
    assert!(nothing.stdout.contains("no run measured bandwidth"), "{nothing:?}");
    let alone = compared(&scratch, &["a", "b", "--strict"]);
    assert_eq!(alone.code, Some(2), "--strict without a limit: {alone:?}");
}

#[test]
fn an_unclear_pair_tells_what_it_could_have_shown_and_what_would_tell() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "exponential(1us,1us)", &[]);
    measured(&scratch, "b", "exponential(1us,1us)", &["--seed", "2"]);
    let ended = compared(&scratch, &["a", "b", "--fail-if", "rtt.p99>+1%", "--json"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let limit = &all["limits"][0];
    assert_eq!(limit["verdict"], "inconclusive");
    let share = |value: &Value| value.as_f64().unwrap();
    let ends = ["low", "high"].map(|end| share(&limit["interval"][end]));
    assert!(ends[0] < 0.01 && ends[1] > 0.01, "{limit}");
    let measured = share(&limit["measured"]);
    let half = (ends[1] - measured).max(measured - ends[0]);
    assert_eq!(share(&limit["smallest_change"]), half, "{limit}");
    let sentence = limit["sentence"].as_str().unwrap();
    assert!(sentence.contains("; these runs cannot show a change below "), "{sentence}");
    let more = &limit["needed"];
    let rounds = more["rounds"].as_u64().or(more["more_than"].as_u64()).unwrap();
    assert!(rounds > 6 && sentence.contains(&rounds.to_string()), "{limit}");
}

#[test]
fn what_differs_is_told_worst_first() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    measured(&scratch, "b", "constant(2us)", &["--size", "128", "--seed", "7"]);
    edited(&scratch, "b", |record| {
        record["environment"]["host"] = json!("elsewhere");
        record["environment"]["kernel"] = json!("9.9.9");
        record["environment"]["memory"]["total_bytes"] = json!(1);
        record["environment"]["load_average"] = json!([99.0, 99.0, 99.0]);
        record["environment"]["cpus"] = json!([{"cpu": 5, "governor": "powersave"}]);
        record["tool"] = json!("99.0.0");
    });
    let ended = compared(&scratch, &["a", "b"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let fields = |line: &str| -> Vec<String> {
        line.split("  ").filter(|part| !part.is_empty()).map(|part| part.trim().into()).collect()
    };
    let table = ended.stdout.split_once("\ndiffers").unwrap().1;
    let rows: Vec<Vec<String>> = table.lines().skip(1).map(fields).collect();
    let at = |what: &str, severity: &str| {
        let found = rows.iter().position(|row| row[0] == what && row[1] == severity);
        found.unwrap_or_else(|| panic!("{what} {severity}: {table}"))
    };
    let worst = [at("host", "severe"), at("size", "severe")];
    let weaker = ["kernel", "cpus.governor", "wiregauge"].map(|what| at(what, "warning"));
    let notes = [at("memory.total_bytes", "note"), at("seed", "note")];
    assert!(worst.iter().max() < weaker.iter().min(), "{table}");
    assert!(weaker.iter().max() < notes.iter().min(), "{table}");
    assert_eq!(rows[at("host", "severe")][3], "elsewhere");
    assert_eq!(rows[at("size", "severe")][2..], ["64", "128"]);
    assert!(!table.contains("load_average") && !table.contains("interrupts"), "{table}");
    // A record beside itself has no other conditions.
    let same = compared(&scratch, &["a", "a"]);
    assert!(!same.stdout.contains("differs  severity"), "{same:?}");
}

#[test]
fn runs_that_have_no_counterpart_are_named() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &["--size", "64,128"]);
    measured(&scratch, "b", "constant(2us)", &["--size", "128,256"]);
    let all = compared(&scratch, &["a", "b", "--json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    let [answer] = all["answers"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert!(answer["runs"].as_str().unwrap().contains("128 B"), "{all}");
    let first = &all["conditions"][0];
    assert_eq!(first["what"], "runs without a counterpart");
    assert!(first["a"].as_str().unwrap().contains("64 B"), "{first}");
    assert!(first["b"].as_str().unwrap().contains("256 B"), "{first}");
}

#[test]
fn samples_that_were_changed_are_refused() {
    let scratch = Scratch::new();
    measured(&scratch, "a", "constant(2us)", &[]);
    let path = scratch.join("a").join("samples.parquet");
    let mut samples = std::fs::read(&path).unwrap();
    // One bit in the middle: no header is hurt.
    let middle = samples.len() / 2;
    samples[middle] ^= 1;
    std::fs::write(path, samples).unwrap();
    let ended = compared(&scratch, &["a", "a"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("it was changed since its record was written"), "{ended:?}");
}
