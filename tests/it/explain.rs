//! `explain`: stages add up to the measured time, and what is done to messages is found by name.
//!
//! Skipped with a reason where the kernel allows no tracing.

mod causes;
mod packets;
mod tail;
mod unprivileged;

use crate::support::controller::{Controller, Ended, PublicCopy, Scratch, wiregauge, words};
use rustix::process::Signal;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge::explain::{Cause, Explanation, Slow};
use wiregauge::record::read_record;

/// Where the kernel may be asked; `None` with the reason.
fn scratch() -> Option<Scratch> {
    let scratch = Scratch::new();
    let ended = wiregauge(&scratch, &words("explain latency --count 1000 --rounds 1 --out probe"));
    match ended.code {
        Some(0) => Some(scratch),
        _ => {
            eprintln!("skipped: {}", ended.stderr);
            None
        }
    }
}

/// What a run found.
fn explained_in(scratch: &Scratch, ended: &Ended) -> Explanation {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    *record.explanation.expect("an explanation")
}

/// The same of a run that is not needed any more.
fn explained(scratch: &Scratch, ended: &Ended) -> Explanation {
    let found = explained_in(scratch, ended);
    fs::remove_dir_all(scratch.join("run")).unwrap();
    found
}

fn explain(scratch: &Scratch, line: &str) -> Explanation {
    let ended = wiregauge(scratch, &words(&format!("explain {line} --out run")));
    explained(scratch, &ended)
}

fn names(found: &Explanation) -> Vec<&str> {
    found.stages.iter().map(|stage| stage.name.as_str()).collect()
}

/// How many slow messages have this cause, of someone whose name begins so.
fn named(slow: &Slow, cause: Cause, name: &str) -> u64 {
    let own = slow.causes.iter();
    let own = own.filter(|(one, _)| one.cause == cause && one.who.starts_with(name));
    own.map(|(_, number)| number).sum()
}

/// What must hold of every explanation of one connection.
fn check(found: &Explanation) {
    // A thread that polls a Unix or UDP socket may find a message before the sender announces it.
    let is_tcp = found.stages.iter().any(|stage| stage.name.starts_with("TCP"));
    let most = if is_tcp { 0 } else { found.messages / 100 };
    assert!(found.disordered <= most, "{} disordered", found.disordered);
    check_sums(found);
}

/// What must hold of every one.
fn check_sums(found: &Explanation) {
    assert!(found.messages > 0 && found.sum_error < 1e-3, "{found:?}");
    assert!(found.incomplete * 20 < found.messages, "{} incomplete", found.incomplete);
    assert!(found.anchor_ns > 0.0 && found.anchor_ns < 1e5, "{}", found.anchor_ns);
    let sum = |value: fn(&wiregauge::explain::StageFigures) -> f64| -> f64 {
        found.stages.iter().map(value).sum()
    };
    let is_near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    assert!(is_near(sum(|stage| stage.best_ns), found.total.best_ns));
    assert!(is_near(sum(|stage| stage.slow_ns), found.total.slow_ns));
    let of_causes: u64 = found.slow.causes.iter().map(|(_, number)| number).sum();
    assert_eq!(of_causes, found.slow.count);
    for one in &found.slowest {
        let sum: f64 = one.stages.iter().map(|(ns, _)| ns).sum();
        assert!((sum / one.total_ns - 1.0).abs() < 1e-3, "{one:?}");
    }
}

#[test]
fn stages_of_every_transport_and_wait_mode_add_up_to_the_measured_time() {
    let Some(scratch) = scratch() else { return };
    for (transport, wait, stage) in [
        ("tcp", "busy", "TCP and IP send"),
        ("tcp", "block", "wake-up"),
        ("udp", "busy", "IP and UDP receive"),
        ("udp", "block", "wake-up"),
        ("unix", "busy", "poll and copy"),
        ("unix", "block", "system call and send"),
        ("unixgram", "block", "system call and send"),
        ("shm", "busy", "way and poll"),
        ("shm", "block", "wake-up"),
    ] {
        let line = format!("latency --transport {transport} --wait {wait} --count 2000 --rounds 2");
        let found = explain(&scratch, &line);
        check(&found);
        // Each way has its own.
        let legs = found.stages.iter().filter(|one| one.name.ends_with(stage)).count();
        assert_eq!(legs, 2, "{transport} {wait}: {:?}", names(&found));
    }
}

#[test]
fn messages_one_way_have_stages_from_the_time_at_which_they_were_due() {
    let Some(scratch) = scratch() else { return };
    for (line, first) in [
        ("oneway --transport tcp", "application call, system call"),
        ("oneway --transport tcp --rate 10k", "generator lateness"),
        ("oneway --transport tcp --rate 10k --wait block", "generator lateness"),
        ("oneway --transport tcp --outstanding 16", "application call, system call"),
        ("oneway --transport udp --rate 10k", "generator lateness"),
        ("oneway --transport udp --rate 10k --wait block", "generator lateness"),
        ("oneway --transport udp --burst 8", "application call, system call, UDP and IP send"),
        ("oneway --transport unix --rate 10k --wait block", "generator lateness"),
        ("oneway --transport unixgram --rate 10k --wait block", "generator lateness"),
        ("oneway --transport shm", "post"),
        ("oneway --transport shm --rate 10k", "generator lateness"),
    ] {
        let found = explain(&scratch, &format!("{line} --count 2000 --rounds 2"));
        check(&found);
        assert_eq!(names(&found)[0], first, "{line}");
        assert!(found.stages.iter().all(|stage| stage.leg == 0), "{line}: {:?}", names(&found));
        // The program knows which message it is that it found, and not how many were before it.
        let is_stamped_by_kernel = !line.contains("shm");
        assert_eq!(found.queues.len(), usize::from(is_stamped_by_kernel), "{line}");
    }
}

#[test]
fn requests_under_load_have_the_stages_of_both_ways() {
    let Some(scratch) = scratch() else { return };
    for line in [
        "load --transport tcp --rate 10k",
        "load --transport tcp --clients 8 --wait block",
        "load --transport udp --clients 4",
        "load --transport unix --clients 8 --wait block",
        "rpc --transport tcp --rps 5k --workload w2",
        "rpc --transport tcp --clients 4 --reply 300B",
        "rpc --transport udp --clients 4",
        "rpc --transport unix --clients 4 --wait block --no-unloaded",
    ] {
        let found = explain(&scratch, &format!("{line} --count 2000 --rounds 2"));
        check(&found);
        let copies = found.stages.iter().filter(|stage| stage.name.ends_with("copy"));
        assert_eq!(copies.map(|stage| stage.leg).collect::<Vec<_>>(), [0, 1], "{line}");
        assert_eq!(found.queues.len(), 2, "{line}");
    }
}

#[test]
fn a_message_finds_no_more_in_a_queue_than_there_are_others() {
    let Some(scratch) = scratch() else { return };
    let line = "load --transport tcp --clients 32 --wait busy --count 20000 --rounds 1";
    let found = explain(&scratch, line);
    check(&found);
    // Of 32 requests at a time 31 are others.
    let most = found.queues.iter().flatten().copied().fold(0.0, f64::max);
    assert!((1.0..32.0).contains(&most), "{:?}", found.queues);
    assert_eq!(found.batches.len(), 2);
    let names = names(&found);
    assert!(names.contains(&"behind others in the socket buffer"), "{names:?}");
}

#[test]
fn messages_of_several_threads_have_the_stamps_of_their_own_connection() {
    let Some(scratch) = scratch() else { return };
    // Also where threads have other numbers than the kernel's.
    scratch.run_behind(&["unshare", "--pid", "--fork", "--mount-proc"]);
    for line in [
        "latency --transport tcp --wait block",
        "latency --transport udp --wait block",
        "latency --transport unix --wait block",
        "latency --transport shm --wait block",
        "oneway --transport tcp --wait block",
        "load --transport tcp --clients 2 --wait block",
        "rpc --transport tcp --clients 4 --wait block --connections 3",
        "rpc --transport udp --clients 4 --wait block --connections 2 --server-ports 2",
    ] {
        let threads =
            if line.starts_with("rpc") { "--ports 2 --no-unloaded" } else { "--threads 2" };
        let found = explain(&scratch, &format!("{line} {threads} --count 1000 --rounds 1"));
        check_sums(&found);
        let most = if line.contains("tcp") { 0 } else { found.messages / 100 };
        assert!(found.disordered <= most, "{line}: {} disordered", found.disordered);
        assert!(found.messages > 1500, "{line}: {}", found.messages);
        // A server of one thread also works for the other client.
        let is_alone = line.starts_with("latency");
        let waits = names(&found).iter().any(|name| name.starts_with("behind others"));
        assert!(!is_alone || !waits, "{line}: {:?}", names(&found));
    }
}

#[test]
fn an_end_in_another_network_namespace_is_stamped_too() {
    let Some(scratch) = scratch() else { return };
    let program = env!("CARGO_BIN_EXE_wiregauge");
    for (number, line) in [
        "latency --transport tcp --wait block",
        "latency --transport udp --wait busy",
        "load --transport tcp --clients 4",
    ]
    .iter()
    .enumerate()
    {
        // Over a wire, and through a switch.
        let topology = ["pair", "star"][number % 2];
        let own = format!("{line} --count 2000 --rounds 1 --to wg-h2 --out run");
        let mut command = Command::new(program);
        command.args(["testbed", "net", "--hosts", "2", "--topology", topology, "--", program]);
        command.arg("explain").args(words(&own));
        let ended = Controller::of(&scratch, command).end();
        if ended.stderr.contains("testbed net needs") {
            eprintln!("skipped: {}", ended.stderr);
            return;
        }
        let found = explained(&scratch, &ended);
        check(&found);
        for stage in ["driver", "SoftIRQ and NAPI"] {
            let legs = found.stages.iter().filter(|one| one.name == stage).count();
            assert_eq!(legs, 2, "{line}: {:?}", names(&found));
        }
    }
}

#[test]
fn what_stands_in_for_a_trace_point_ends_the_same_stage_and_a_refusal_is_said() {
    let Some(scratch) = scratch() else { return };
    let own =
        words("explain latency --transport tcp --wait block --count 1000 --rounds 1 --out run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    command.env("WIREGAUGE_EXPLAIN_FUNCTIONS", "1").args(own);
    let found = explained(&scratch, &Controller::of(&scratch, command).end());
    check(&found);
    let ends: Vec<&str> = found.stages.iter().map(|one| one.ends_at.as_str()).collect();
    for (point, stand_in) in [
        ("tcp_sendmsg_locked", "begin of tcp_sendmsg_locked"),
        ("sk_data_ready", "begin of sock_def_readable"),
    ] {
        assert!(!ends.contains(&point), "{ends:?}");
        let legs = ends.iter().filter(|end| **end == stand_in).count();
        let is_refused = |why: &&String| why.starts_with(&format!("{point} (refused: "));
        match found.missing.iter().find(is_refused) {
            Some(why) => assert_eq!(legs, 0, "{why}: {ends:?}"),
            None => assert_eq!(legs, 2, "{:?}: {ends:?}", found.missing),
        }
    }
}

/// A run between two network namespaces whose ends are stamped as those of two hosts are, each by
/// its own agent; `None` where there can be none.
fn explain_apart(scratch: &Scratch, line: &str, how: &str) -> Option<(Explanation, String)> {
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let own = format!("{line} --count 2000 --rounds 1 --to wg-h2 --out run");
    let mut command = Command::new(program);
    command.env("WIREGAUGE_EXPLAIN_APART", how);
    command.args(["testbed", "net", "--hosts", "2", "--topology", "pair", "--", program]);
    command.arg("explain").args(words(&own));
    let ended = Controller::of(scratch, command).end();
    if ended.stderr.contains("testbed net needs") {
        eprintln!("skipped: {}", ended.stderr);
        return None;
    }
    let stdout = ended.stdout.clone();
    Some((explained(scratch, &ended), stdout))
}

#[test]
fn each_end_of_two_hosts_is_stamped_by_its_own_kernel_and_the_wire_is_what_lies_between() {
    let Some(scratch) = scratch() else { return };
    for (line, legs) in [
        ("latency --transport tcp --wait block", 2),
        ("latency --transport udp --wait busy", 2),
        ("load --transport tcp --clients 4 --wait block", 2),
        ("oneway --transport tcp --rate 5k --wait block", 1),
    ] {
        let Some((found, said)) = explain_apart(&scratch, line, "1") else { return };
        check_sums(&found);
        let apart = found.apart.as_ref().unwrap();
        assert_eq!(apart.refused, None, "{line}");
        assert!(apart.bound_ns > 0.0 && apart.bound_ns < 1e6, "{line}: {}", apart.bound_ns);
        assert!(said.contains("each host's kernel stamps its own end"), "{said}");
        let of = |name: &str| {
            let own = found.stages.iter().filter(|one| one.name == name);
            own.map(|one| one.leg).collect::<Vec<_>>()
        };
        let legs: Vec<u32> = (0..legs).collect();
        assert_eq!(of("wire"), legs, "{line}: {:?}", names(&found));
        assert_eq!(of("SoftIRQ and NAPI"), legs, "{line}: {:?}", names(&found));
        // The receiving ends have CPUs of their own host.
        let copies = found.stages.iter().filter(|one| one.name.ends_with("copy"));
        for stage in copies {
            let is_there = stage.cpus.iter().all(|(cpu, _)| *cpu >= 1024);
            assert_eq!(is_there, stage.leg == 0, "{line}: {stage:?}");
        }
        assert!(found.disordered * 20 < found.messages, "{line}: {}", found.disordered);
    }
}

#[test]
fn an_end_that_may_not_stamp_leaves_the_stages_of_ours() {
    let Some(scratch) = scratch() else { return };
    for (line, goes_back) in [
        ("latency --transport tcp --wait block", true),
        ("load --transport tcp --clients 4 --wait block", true),
        ("oneway --transport udp --rate 5k --wait block", false),
    ] {
        let Some((found, said)) = explain_apart(&scratch, line, "refused") else { return };
        check_sums(&found);
        let why = found.apart.as_ref().unwrap().refused.as_ref().unwrap();
        assert!(said.contains("the server's host stamps nothing") && said.contains(why), "{said}");
        let all = names(&found);
        assert!(all.contains(&"wire and other end"), "{line}: {all:?}");
        // What the client's kernel does with an answer.
        assert_eq!(all.contains(&"SoftIRQ and NAPI"), goes_back, "{line}: {all:?}");
    }
}

#[test]
fn processes_are_known_in_a_pid_namespace() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&["unshare", "--pid", "--fork", "--mount-proc"]);
    let found = explain(&scratch, "latency --transport tcp --count 2000 --rounds 1");
    check(&found);
    assert!(found.messages > 1000, "{}", found.messages);
}

#[test]
fn a_trace_has_the_stages_of_the_slowest_messages() {
    let Some(scratch) = scratch() else { return };
    let line = "explain latency --transport tcp --count 2000 --rounds 1 --out run";
    let ended = wiregauge(&scratch, &words(line));
    let page = fs::read_to_string(scratch.join("run/report.html")).unwrap();
    let found = explained_in(&scratch, &ended);
    assert_eq!(page.matches("class=\"icicle\"").count(), found.slowest.len());
    let line = "export run --format trace --run 1 --out trace.json";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let trace: serde_json::Value =
        serde_json::from_slice(&fs::read(scratch.join("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of_stage = events.iter().filter(|one| one["args"]["ends_at"].is_string()).count();
    let stages = found.stages.len() - 1;
    assert_eq!(of_stage, found.slowest.len() * stages);
}

#[test]
fn a_quiet_run_names_nothing_that_was_not_done_to_it() {
    let Some(scratch) = scratch() else { return };
    let never = [Cause::Stopped, Cause::Qdisc, Cause::Retransmission];
    for _ in 0..5 {
        let line = "latency --transport tcp --wait busy --count 2000 --rounds 1";
        let found = explain(&scratch, line);
        let wrong = found
            .slow
            .causes
            .iter()
            .find(|(named, _)| never.contains(&named.cause) || named.who.starts_with("wg-hog"));
        assert_eq!(wrong, None);
    }
}

#[test]
fn what_cannot_be_split_is_refused_in_a_sentence() {
    let scratch = Scratch::new();
    for (line, says) in [
        ("explain latency --transport null", "explain null is not supported"),
        ("explain load --transport shm --rate 1k", "use latency or oneway"),
        ("explain latency --transport tcp,udp", "explain takes one case"),
        ("explain latency --burst 2", "use latency with one message at a time"),
        ("explain latency --threads 2 --transport tcp --to nobody", "use one with --to"),
        ("explain load --transport unix --threads 2 --rate 1k", "use one thread and"),
        ("explain load --rate 10k,20k", "use one transport, wait mode, size and rate"),
        ("explain load", "load with --rate or --clients"),
        ("explain rpc --transport unix --connections 2", "use one thread and one connection"),
        ("explain rpc --transport tcp --connections 65 --wait block", "at most 64 connections"),
        ("explain rpc --transport unix --workload 64KiB", "at most 32 KiB"),
        ("explain bandwidth --transport tcp", "explain bandwidth is not supported as it is"),
        ("explain oneway --transport udp --rate 1k --size 2B", "at least 4 B"),
        ("explain oneway --transport udp --rate 1k --size 16KiB", "at most 15 KiB"),
        ("explain latency --rounds 20", "use --rounds 10 or fewer"),
        ("explain list", "explain takes a command that measures"),
    ] {
        let ended = wiregauge(&scratch, &words(line));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(says), "{line}: {}", ended.stderr);
    }
    assert!(!Path::new(&scratch.join("run")).exists());
}
