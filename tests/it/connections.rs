//! Several connections of a thread, as a user meets them: by latency, load and rpc, over one
//! listening port, and what is refused.
//!
//! No figure of time decides here: counts, settings and sentences do.

use crate::support::controller::{Scratch, measured, samples, wiregauge, words};
use crate::support::program::PROGRAM;
use std::net::TcpListener;
use std::process::Command;
use wiregauge::record::read_record;
use wiregauge::record::schema::{Record, Run, Usage};
use wiregauge::transport::TransportKind;
use wiregauge_test_support::bounded::output;

/// Returns the number of connections that an end counted in a round.
fn counted(run: &Run, end: fn(&Run) -> &Usage) -> String {
    end(run).final_counters["connect.connections"].clone()
}

fn client(run: &Run) -> &Usage {
    &run.rounds[0].client
}

fn server(run: &Run) -> &Usage {
    &run.rounds[0].server
}

/// Asserts that each message of each run was answered, by as many connections as were asked for.
fn assert_answered(record: &Record, asked: &[u32], line: &str) {
    assert!(record.complete, "{line}");
    let connections = |run: &Run| run.case.topology.connections_each();
    assert_eq!(record.runs.iter().map(connections).collect::<Vec<_>>(), asked, "{line}");
    for run in &record.runs {
        let counts = &run.counts;
        let wrong = (counts.lost, counts.corrupt, counts.duplicates, counts.unfinished);
        assert_eq!(wrong, (0, 0, 0, 0), "{line}: {}", run.label);
        let all = connections(run).to_string();
        assert_eq!(counted(run, client), all, "{line}");
        assert_eq!(counted(run, server), all, "{line}");
        if run.case.transport == TransportKind::Tcp {
            // The kernel saw each of them carry something, at both ends.
            let used = |end: &Usage| end.final_counters["tcp.connections_used"].clone();
            assert_eq!([used(client(run)), used(server(run))], [all.clone(), all], "{line}");
        }
    }
}

#[test]
fn messages_go_by_as_many_connections_as_were_asked_for() {
    for transport in ["tcp", "unix", "udp", "shm"] {
        for wait in ["busy", "block", "adaptive"] {
            if transport == "shm" && wait != "busy" {
                continue;
            }
            let common = format!(
                "--transport {transport} --wait {wait} --connections 1,3,40 --rounds 1 --check"
            );
            let latency = format!("{common} --count 500 --size 4,100");
            let (scratch, record) = measured("latency", &latency);
            assert_answered(&record, &[1, 3, 40, 1, 3, 40], &latency);
            let kept = samples(&scratch, 2);
            assert_eq!(
                kept.iter().filter(|sample| sample.receive_ns > sample.submit_ns).count(),
                kept.len()
            );
            assert!(record.runs[2].label.ends_with(" 40 connections"), "{}", record.runs[2].label);
            drop(scratch);
            let load = format!("{common} --clients 7 --count 500");
            let (_scratch, record) = measured("load", &load);
            assert_answered(&record, &[1, 3, 40], &load);
        }
    }
}

#[test]
fn all_connections_of_a_stream_have_one_listening_port() {
    let scratch = Scratch::new();
    // Eight ports from a free one on: enough for one, and for whoever takes it first.
    let first = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().min(65_000);
    let ports = format!("WIREGAUGE_PORTS={first}-{}", first + 7);
    scratch.run_behind(&["env", &ports]);
    let line = "rpc --clients 4 --connections 300 --count 6000 --rounds 2 --no-unloaded --check";
    let ended = wiregauge(&scratch, &words(&format!("{line} --out run")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_answered(&read_record(&scratch.join("run")).unwrap(), &[300], line);
}

#[test]
fn thousands_of_connections_are_opened_round_after_round() {
    // More in all than there are ports for those that connect.
    let (_scratch, record) =
        measured("latency", "--connections 8000 --count 9000 --rounds 6 --wait block");
    assert_answered(&record, &[8000], "8000");
    assert_eq!(record.runs[0].rounds.len(), 6);
}

#[test]
fn connections_that_carried_nothing_are_told() {
    let warned = |command: &str, line: &str| {
        let (_scratch, record) = measured(command, line);
        let mut warnings = record.runs[0].warnings.iter();
        warnings.find(|one| one.kind == "unused_connections").map(|one| one.sentence.clone())
    };
    let found = warned("latency", "--connections 300 --count 100 --warmup 50 --rounds 2").unwrap();
    assert!(found.contains("150 of 300 connections carried a message"), "{found}");
    assert_eq!(warned("rpc", "--connections 20 --rps 5k --time 200ms --rounds 2"), None);
}

#[test]
fn connections_that_cannot_be_had_are_refused_in_a_sentence() {
    let refused = |line: &str, sentence: &str| {
        let scratch = Scratch::new();
        let ended = wiregauge(&scratch, &words(line));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(sentence), "{line}: {}", ended.stderr);
    };
    refused("latency --connections 16385", "out of range");
    refused("latency --connections 0", "--connections");
    refused("latency --connections 1KiB", "use 8, 1,8,64 or 1..16384*2");
    refused("latency --connections 2 --burst 2", "without --burst");
    refused("latency --connections 2 --threads 2", "use --threads 1");
    refused("latency --connections 2 --transport shm --wait block", "use --wait busy");
    refused("latency --connections 2 --transport synthetic", "does not support --connections");
    refused("load --connections 2 --probe 100 --rate 1k", "without --connections");
    let scratch = Scratch::new();
    scratch.run_behind(&["prlimit", "--nofile=200:200"]);
    for line in ["latency --connections 300", "load --clients 1 --connections 300"] {
        let ended = wiregauge(&scratch, &words(line));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains("the limit here is 200"), "{}", ended.stderr);
    }
}

/// Runs a command on a host with four local ports; returns its exit code, and what it complains of.
fn with_four_ports(scratch: &Scratch, line: &str) -> (Option<i32>, String) {
    let script = format!(
        "ip link set lo up && echo 60000 60003 >/proc/sys/net/ipv4/ip_local_port_range && \
         exec {PROGRAM} {line} --wait block --rounds 1 --out run"
    );
    let words = ["--net", "--mount-proc", "--mount", "--pid", "--fork", "sh", "-c", &script];
    let done = output(Command::new("unshare").args(words).current_dir(scratch.join(".")));
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn too_few_local_ports_are_told_before_a_run() {
    let scratch = Scratch::new();
    if !output(Command::new("unshare").args(["--net", "true"])).status.success() {
        eprintln!("skipped: no network namespace can be made here");
        return;
    }
    for (line, needed) in [
        ("latency --transport tcp --connections 200 --count 400", 200),
        ("latency --transport udp --connections 3 --count 100", 6),
    ] {
        let (code, said) = with_four_ports(&scratch, line);
        let wanted = format!(
            "needs {needed} local ports at the same time on this host, and \
             net.ipv4.ip_local_port_range allows 4 (60000-60003)"
        );
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(&wanted) && said.lines().count() == 1, "{line}: {said}");
    }
    let (code, said) =
        with_four_ports(&scratch, "latency --transport tcp,udp --connections 2 --count 100");
    assert_eq!(code, Some(0), "{said}");
}
