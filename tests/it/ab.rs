//! `wiregauge ab`: two sides in turns, by options, by a prepared state, or by a program.

use crate::support::Scratch;
use crate::support::program::{PROGRAM, Printed, wiregauge};
use std::os::unix::fs::PermissionsExt;
use wiregauge::record::read_record;

const LATENCY: [&str; 5] = ["latency", "--transport", "synthetic", "--count", "1000"];

fn ab(scratch: &Scratch, sides: &[&str], more: &[&str]) -> Printed {
    wiregauge(&scratch.0, &[&["ab"], sides, &LATENCY, more].concat())
}

/// Lines that a command has written.
fn lines(scratch: &Scratch, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(scratch.join(name)).unwrap();
    text.lines().map(String::from).collect()
}

#[test]
fn two_settings_take_turns_and_are_compared() {
    let scratch = Scratch::new();
    let sides = ["--a", "--synthetic constant(2us)", "--b", "--synthetic constant(3us)"];
    let more = ["--rounds", "8", "--out", "ab", "--fail-if", "rtt.p50>+60%"];
    let ended = ab(&scratch, &sides, &more);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut lines = ended.stdout.lines();
    assert_eq!(lines.next(), Some("all limits held"), "{ended:?}");
    let sentence = "B is 50 % slower at p50 (50..50 %), 50 % slower at p99 (50..50 %)";
    assert!(lines.nth(1).unwrap().ends_with(sentence), "{ended:?}");
    assert!(ended.stdout.contains("held: +50 %"), "{ended:?}");
    assert!(!ended.stdout.contains("not interleaved"), "{ended:?}");
    let record = read_record(&scratch.join("ab")).unwrap();
    let mut order: Vec<(u32, u32)> = Vec::new();
    for run in &record.runs {
        order.extend(run.rounds.iter().map(|round| (round.position, run.index)));
    }
    order.sort_unstable();
    let order: Vec<u32> = order.iter().map(|(_, side)| *side).collect();
    assert_eq!(order.len(), 16);
    for four in order.chunks(4) {
        assert!(four[0] != four[1] && four[0] == four[3] && four[1] == four[2], "{order:?}");
    }
    let again = ["compare", "ab@series=A", "ab@series=B", "--fail-if", "rtt.p50>+40%"];
    let again = wiregauge(&scratch.0, &again);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stdout.lines().nth(2).unwrap().ends_with(sentence), "{again:?}");
    assert!(again.stdout.contains("synthetic  note"), "what was set is told: {again:?}");
    assert_eq!(wiregauge(&scratch.0, &["report", "ab"]).code, Some(0));
}

#[test]
fn sweeps_are_compared_case_by_case() {
    let scratch = Scratch::new();
    let sides = ["--a", "--synthetic constant(2us)", "--b", "--synthetic constant(1us)"];
    let ended = ab(&scratch, &sides, &["--size", "64,128", "--json", "--rounds", "2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(record["runs"].as_array().unwrap().len(), 4);
    for size in ["64 B", "128 B"] {
        let begin = format!("wiregauge: latency synthetic busy {size}: B is ");
        let line = ended.stderr.lines().find(|line| line.starts_with(&begin));
        assert!(line.is_some_and(|line| line.contains("50 % faster at p50")), "{ended:?}");
    }
    let uneven = ["--a", "--size 64", "--b", "--size 64,128"];
    let uneven = ab(&scratch, &uneven, &[]);
    assert_eq!(uneven.code, Some(2), "{uneven:?}");
    assert!(uneven.stderr.contains("A has 1 cases and B has 2"), "{uneven:?}");
}

#[test]
fn sides_that_differ_in_neither_transport_nor_wait_are_named_by_their_series() {
    let scratch = Scratch::new();
    let command = ["bandwidth", "--transport", "unix", "--count", "2000", "--rounds", "2"];
    let sides = ["ab", "--a", "--window 8", "--b", "--window 64"];
    let ended = wiregauge(&scratch.0, &[&sides[..], &command].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let says = |line: &&str| line.contains("is highest") || line.contains("distinguished");
    let answer = ended.stdout.lines().find(says).unwrap();
    assert!(
        answer.contains("unix busy at 64 KiB (A)") && answer.contains("unix busy at 64 KiB (B)"),
        "{answer}"
    );
}

#[test]
fn a_command_prepares_each_round_of_its_side() {
    let scratch = Scratch::new();
    let sides = ["--prepare-a", "echo a >> log; echo noise", "--prepare-b", "echo b >> log"];
    let ended = ab(&scratch, &sides, &["--rounds", "4", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let order = lines(&scratch, "log").concat();
    assert!(["abba", "baab"].contains(&&order[..4]), "{order}");
    assert!(["abba", "baab"].contains(&&order[4..]), "{order}");
    let record: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(record["runs"][1]["included"]["prepared by"], "echo b >> log");
    assert!(ended.stderr.contains("noise"), "{ended:?}");
    let failed = ab(&scratch, &["--prepare-a", "exit 3", "--prepare-b", "exit 3; true"], &[]);
    assert!(matches!(failed.code, Some(3 | 4)), "{failed:?}");
    let said = format!("{}{}", failed.stdout, failed.stderr);
    assert!(said.contains("the command before its rounds (exit 3"), "{failed:?}");
    assert!(said.contains(") failed: exit status: 3"), "{failed:?}");
}

#[test]
fn each_side_may_have_a_program_of_its_own() {
    let scratch = Scratch::new();
    let wrapper = scratch.join("other");
    let text = format!("#!/bin/sh\necho \"$1\" >> started\nexec '{PROGRAM}' \"$@\"\n");
    std::fs::write(&wrapper, text).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = ab(&scratch, &["--binary-b", "./other"], &["--rounds", "3", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(lines(&scratch, "started"), ["run-role"; 3], "one for each round of B");
    let record: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(record["runs"][1]["included"]["program"], "./other");
    let missing = ab(&scratch, &["--binary-a", "./missing"], &[]);
    assert!(matches!(missing.code, Some(3 | 4)), "{missing:?}");
}

#[test]
fn what_makes_no_comparison_is_refused() {
    let scratch = Scratch::new();
    for (sides, command, says) in [
        (&[][..], &LATENCY[..], "A and B are the same"),
        (&["--a", "wait"], &LATENCY, "invalid options 'wait'"),
        (&["--a", "--count 5"], &LATENCY, "--count stands in the command and in --a"),
        (&["--a", "--rounds 5"], &LATENCY, "are the same for both"),
        (&["--a", "--wrong 5"], &LATENCY, "A: latency has no option '--wrong'"),
        (&["--a", "--size 5"], &["list"], "A: list has no option '--size'"),
        (
            &["--a", "--size 5"],
            &["--rounds", "6", "latency"],
            "ab has no option '--rounds': type the options of a command after the command",
        ),
        (&["--prepare-a", "true"], &["list"], "ab compares commands that measure"),
        (&["--a", "--size 5"], &["latency", "--baseline", "x"], "ab compares A with B"),
        (&["--binary-a", "x"], &["latency", "--to", "h"], "leave out --to and --hosts"),
    ] {
        let refused = wiregauge(&scratch.0, &[&["ab"], sides, command].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{says}: {refused:?}");
    }
}
