//! `explain packets`: what the module of the kernel's Homa traced, of files.

use crate::support::controller::{Scratch, wiregauge, words};
use std::fs;

const TRACE: &str = "\
cpu_khz: 2000000
1000 [C00] calling ip_queue_xmit: wire_bytes 142, peer 0x7f000001, id 884, offset 0
1200 [C00] Finished queueing packet: rpc id 884, offset 0, len 64, qid 0
2200 [C01] homa_gro_receive got packet from 0x7f000001 id 885, offset 0, priority 7
2210 [C01] homa_softirq starting
2220 [C01] incoming data packet, id 885, peer 0x7f000001, offset 0/64
";

#[test]
fn packets_of_a_trace_are_shown_by_stage_and_as_json() {
    let scratch = Scratch::new();
    fs::write(scratch.join("trace"), TRACE).unwrap();
    let ended = wiregauge(&scratch, &words("explain packets trace"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in ["data packet, client to server (1)", "network", "1 packet followed"] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let row = ended.stdout.lines().find(|line| line.starts_with("network")).unwrap();
    assert!(row.split_whitespace().nth(1) == Some("0.500"), "{row}");
    let ended = wiregauge(&scratch, &words("explain packets --json trace"));
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["packets"]["lives"][0]["direction"], "to_server");
    assert_eq!(found["packets"]["lives"][0]["stages_ns"][1][3], 500.0);
}

#[test]
fn what_is_no_trace_and_what_cannot_be_compared_is_refused_in_a_sentence() {
    let scratch = Scratch::new();
    fs::write(scratch.join("trace"), TRACE).unwrap();
    fs::write(scratch.join("other"), "hello\n").unwrap();
    fs::write(scratch.join("idle"), "cpu_khz: 1000\n7 [C00] homa_softirq starting\n").unwrap();
    for (line, code, says) in [
        ("explain packets other", 4, "other:1: no cpu_khz"),
        ("explain packets absent", 4, "absent: No such file"),
        ("explain packets trace idle", 4, "their clocks cannot be compared"),
        ("explain packets idle", 4, "none of the 1 events of the trace is of a packet"),
        ("explain packets trace trace trace", 2, "of one host, or those of two"),
        ("explain packets --fast trace", 2, "has no option '--fast'"),
    ] {
        let ended = wiregauge(&scratch, &words(line));
        assert!(ended.stderr.contains(says), "{line}: {ended:?}");
        assert_eq!(ended.code, Some(code), "{line}: {}", ended.stderr);
    }
    if !std::path::Path::new("/proc/timetrace").exists() {
        let ended = wiregauge(&scratch, &words("explain packets"));
        assert!(ended.stderr.contains("this kernel has no trace of Homa's"), "{ended:?}");
    }
}
