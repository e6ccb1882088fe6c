//! What happens when something goes wrong while a real run is under way: the program says what,
//! keeps what it has, leaves no process and no half-written directory, and ends soon with the right
//! code.
//!
//! Every process that is killed, stopped or signalled here was started by the test that does it.

mod few_threads;
mod foreign_files;
mod limits;
mod recover;
mod rejected_peer;
mod seeded;
mod shared_memory;
mod suspended;

use crate::support::controller::{
    Controller, Ended, PublicCopy, Scratch, copy_as_earlier, wiregauge, words,
};
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use wiregauge::control::frame;
use wiregauge::control::protocol::{FromAgent, MAGIC, SECRET_VARIABLE, ToAgent, VERSION};
use wiregauge::record::schema::{self, RoundEnd};
use wiregauge_test_support::bounded::SOON;

/// A round that would go on for far longer than [`SOON`] if nothing happened.
const LONG: &str = "--count 300000 --warmup 50 --pause 200us --rounds 1";

/// A latency run of which messages have passed.
fn under_way(scratch: &Scratch, transport: &str, wait: &str, more: &[&str]) -> Controller {
    let run = ["latency", "--transport", transport, "--wait", wait, "--out", "run"];
    let controller = Controller::start(scratch, &[&run[..], &words(LONG), more].concat());
    controller.await_messages(300);
    controller
}

/// Asserts that a run ended as an incomplete one that kept what it had; its fault.
fn kept(scratch: &Scratch, ended: &Ended) -> String {
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.took < SOON, "{ended:?}");
    assert!(ended.survivors.is_empty(), "{ended:?}");
    let dir = scratch.join("run");
    let record = wiregauge::record::read_record(&dir).unwrap();
    assert!(!record.complete && !record.runs[0].complete, "{ended:?}");
    let [fault] = record.faults.as_slice() else { panic!("{:?}", record.faults) };
    let run = &record.runs[0];
    // Once: as a fault of the record, or in the warning that the run is incomplete.
    let is_said = |what: &str| ended.stderr.contains(what) || ended.stdout.contains(what);
    assert!(is_said(fault) || is_said(&run.stopped), "{fault}\n{ended:?}");
    assert!(ended.stdout.matches(&run.stopped).count() <= 1, "{ended:?}");
    assert!(run.counts.received > 200, "{:?}", run.counts);
    assert!(run.counts.sent >= run.counts.received, "{:?}", run.counts);
    let missing = run.counts.sent - run.counts.received;
    assert_eq!(run.counts.lost + run.counts.unfinished, missing);
    assert!(run.rounds[0].ended != RoundEnd::Unknown && run.stopped != "unknown");
    let rows = wiregauge::record::SampleReader::open(&dir.join("samples.parquet")).unwrap();
    let rows: u64 = rows.map(|round| round.unwrap().samples.len() as u64).sum();
    assert_eq!(rows, run.rounds[0].samples);
    assert!(rows > 200, "{rows}");
    for figure in &run.figures {
        let kept = rows - run.counts.warmup;
        assert!(figure.summary.count <= kept && figure.summary.count > 100, "{figure:?}");
    }
    retold(scratch);
    fault.clone()
}

/// Asserts that the commands that read a record can read this one.
fn retold(scratch: &Scratch) {
    let report = wiregauge(scratch, &["report", "run"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(report.stdout.contains("INCOMPLETE"), "{report:?}");
    let csv = wiregauge(scratch, &["export", "run", "--format", "csv", "--out", "run.csv"]);
    assert_eq!(csv.code, Some(0), "{csv:?}");
    assert!(fs::read_to_string(scratch.join("run.csv")).unwrap().lines().count() > 200);
    copy_as_earlier(&scratch.join("run"), &scratch.join("before"));
    let same = wiregauge(scratch, &["compare", "before", "run"]);
    assert_eq!(same.code, Some(3), "an incomplete run: {same:?}");
    assert!(!same.stdout.contains("yes"), "{same:?}");
}

/// How long a controller waits for the last words of an agent that may still have some.
const LAST_WORDS: Duration = Duration::from_secs(10);

fn killed(transport: &str) {
    let mut soonest = Duration::MAX;
    for (wait, role) in [("busy", 0), ("block", 0), ("busy", 1), ("block", 1)] {
        let scratch = Scratch::new();
        let controller = under_way(&scratch, transport, wait, &["--timeout", "60s"]);
        let name = ["server", "client"][role];
        let agent = controller.agents()[role];
        agent.signal(Signal::KILL);
        let ended = controller.end();
        let fault = kept(&scratch, &ended);
        let said = format!("the {name}'s process ({}) was killed by signal 9", agent.pid);
        assert!(fault.contains(&said), "{transport} {wait} {name}: {fault}");
        soonest = soonest.min(ended.took);
    }
    // One of four at least, on a machine that has much else to do.
    assert!(soonest < LAST_WORDS, "{transport}: the dead were waited for: {soonest:?}");
}

fn stalled(transport: &str) {
    for (wait, role) in [("busy", 0), ("block", 1)] {
        let scratch = Scratch::new();
        // Long enough for a machine so busy that a message takes a tenth of a second.
        let controller = under_way(&scratch, transport, wait, &["--timeout", "4s"]);
        controller.agents()[role].signal(Signal::STOP);
        let ended = controller.end();
        let fault = kept(&scratch, &ended);
        assert!(fault.contains("stalled"), "{transport} {wait}: {fault}");
        let name = ["server", "client"][role];
        assert!(fault.contains(&format!("the {name}'s process")), "{transport}: {fault}");
    }
}

#[test]
fn a_killed_agent_is_named_over_tcp() {
    killed("tcp");
}

#[test]
fn a_killed_agent_is_named_over_udp() {
    killed("udp");
}

#[test]
fn a_killed_agent_is_named_over_unix() {
    killed("unix");
}

#[test]
fn a_killed_agent_is_named_over_shm() {
    killed("shm");
}

#[test]
fn a_stopped_agent_is_a_stall_over_tcp() {
    stalled("tcp");
}

#[test]
fn a_stopped_agent_is_a_stall_over_udp() {
    stalled("udp");
}

#[test]
fn a_stopped_agent_is_a_stall_over_unix() {
    stalled("unix");
}

#[test]
fn a_stopped_agent_is_a_stall_over_shm() {
    stalled("shm");
}

#[test]
fn a_killed_agent_of_a_bandwidth_or_one_way_run_is_named() {
    for (pattern, role) in [("bandwidth", 0), ("bandwidth", 1), ("oneway", 0), ("oneway", 1)] {
        let scratch = Scratch::new();
        let bound = match pattern {
            "oneway" => ["--count", "300000", "--rate", "10k"],
            _ => ["--time", "20s", "--size", "1KiB"],
        };
        let run = [pattern, "--wait", "block", "--rounds", "1", "--out", "run"];
        let controller = Controller::start(&scratch, &[&run[..], &bound].concat());
        controller.await_messages(if pattern == "oneway" { 2000 } else { 50_000 });
        controller.agents()[role].signal(Signal::KILL);
        let ended = controller.end();
        let fault = kept(&scratch, &ended);
        assert!(fault.contains("was killed by signal 9"), "{fault}");
    }
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    for (signal, transport, wait) in [
        (Signal::INT, "tcp", "block"),
        (Signal::TERM, "tcp", "busy"),
        (Signal::HUP, "udp", "block"),
        (Signal::TERM, "shm", "block"),
        (Signal::HUP, "shm", "busy"),
        (Signal::INT, "unix", "block"),
        (Signal::QUIT, "unix", "busy"),
    ] {
        let scratch = Scratch::new();
        let controller = under_way(&scratch, transport, wait, &[]);
        // As a terminal does: the controller and all that are in its group.
        controller.signal_group(signal);
        let ended = controller.end();
        let fault = kept(&scratch, &ended);
        assert!(fault.contains("interrupted by the user"), "{fault}");
    }
}

#[test]
fn an_interrupt_before_the_first_message_leaves_a_record() {
    let scratch = Scratch::new();
    let controller = Controller::start(&scratch, &["latency", "--out", "run"]);
    controller.await_hidden_directory();
    controller.signal(Signal::INT);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.survivors.is_empty() && ended.took < SOON, "{ended:?}");
    let record = wiregauge::record::read_record(&scratch.join("run")).unwrap();
    assert!(!record.complete && record.faults[0].contains("interrupted"), "{ended:?}");
    assert_eq!(wiregauge(&scratch, &["report", "run"]).code, Some(0));
}

#[test]
fn a_run_on_the_cpus_of_another_says_so() {
    let scratch = Scratch::new();
    let long = under_way(&scratch, "tcp", "block", &["--cpus", "0,0"]);
    let short = ["latency", "--transport", "tcp", "--wait", "block", "--cpus", "0,0", "--count"];
    let short = [&short[..], &["500", "--rounds", "1", "--out", "short"]].concat();
    let ended = wiregauge(&scratch, &short);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("another wiregauge measured on CPU 0"), "{ended:?}");
    // How it ends does not matter: on a machine that is busy enough it has ended by itself.
    long.signal(Signal::INT);
    long.end();
}

#[test]
fn agents_of_a_killed_controller_end_by_themselves() {
    for (transport, wait) in
        [("tcp", "busy"), ("tcp", "block"), ("udp", "block"), ("shm", "busy"), ("shm", "block")]
    {
        let scratch = Scratch::new();
        let controller = under_way(&scratch, transport, wait, &[]);
        controller.signal(Signal::KILL);
        let ended = controller.end();
        assert!(ended.survivors.is_empty(), "{transport} {wait}: {ended:?}");
        assert!(!scratch.join("run").exists());
        let left = wiregauge(&scratch, &["report", &ended.hidden(&scratch)]);
        assert_eq!(left.code, Some(2), "{left:?}");
        assert!(left.stderr.contains("was left by an interrupted run"), "{left:?}");
    }
}

#[test]
fn a_stopped_agent_of_a_killed_controller_ends_too() {
    let scratch = Scratch::new();
    let controller = under_way(&scratch, "tcp", "busy", &[]);
    // The kernel wakes what stands still in a group that nobody leads any more.
    controller.agents()[1].stop();
    controller.signal(Signal::KILL);
    let ended = controller.end();
    assert!(ended.survivors.is_empty(), "{ended:?}");
}

#[test]
fn a_killed_agent_ends_its_case_and_not_the_others() {
    let scratch = Scratch::new();
    let run =
        ["latency", "--wait", "block", "--transport", "tcp,unix", "--out", "run", "--seed", "3"];
    let bound = ["--count", "3000", "--warmup", "50", "--pause", "200us", "--rounds", "2"];
    let controller = Controller::start(&scratch, &[&run[..], &bound].concat());
    controller.await_messages(500);
    controller.agents()[1].signal(Signal::KILL);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let record = wiregauge::record::read_record(&scratch.join("run")).unwrap();
    let complete: Vec<bool> = record.runs.iter().map(|run| run.complete).collect();
    assert!(complete.contains(&true) && complete.contains(&false), "{complete:?}");
    let whole = record.runs.iter().find(|run| run.complete).unwrap();
    assert_eq!(whole.counts.received, 2 * 3050, "{:?}", whole.counts);
}

#[test]
fn two_runs_at_once_get_different_names() {
    let scratch = Scratch::new();
    let run = ["latency", "--wait", "block", "--count", "200", "--rounds", "1"];
    let controllers = [0, 1, 2].map(|_| Controller::start(&scratch, &run));
    for controller in controllers {
        let ended = controller.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    assert_eq!(fs::read_dir(scratch.join("wiregauge-runs")).unwrap().count(), 3);
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let scratch = Scratch::new();
    let script = "short='latency --wait block --count 200 --rounds 1'; \
                  \"$0\" list | head -1; \"$0\" $short --out run | true; \
                  \"$0\" $short --json | head -c 1 >/dev/null; \
                  \"$0\" nonsense 2>/dev/full; \"$0\" list >&- 2>&-; echo";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_wiregauge")]);
    let ended = Controller::of(&scratch, shell).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    assert!(scratch.join("run").join("record.json").exists());
}

/// Runs a shell script in a mount namespace of its own, `$0` the program.
fn unshared(scratch: &Scratch, script: &str) -> Ended {
    let root = rustix::process::geteuid().is_root();
    let mut shell = Command::new("unshare");
    shell.args(if root { &["-m"][..] } else { &["-r", "-m"][..] });
    shell.args(["sh", "-c", script, env!("CARGO_BIN_EXE_wiregauge")]);
    Controller::of(scratch, shell).end()
}

/// A run that is soon over, also on a machine that does much else.
const SHORT: &str = "--wait block --count 500 --rounds 1";

#[test]
fn a_disk_too_small_is_refused_before_the_run() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs disk; \"$0\" latency {SHORT} --out disk/run; \
         code=$?; ls -A disk; exit $code"
    );
    let ended = unshared(&scratch, &script);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("bytes free and the run may write"), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

#[test]
fn shared_memory_needs_no_room_in_dev_shm() {
    let scratch = Scratch::new();
    let script = format!(
        "mount -t tmpfs -o nr_inodes=1 tmpfs /dev/shm && \
         \"$0\" latency --transport shm {SHORT} --out run"
    );
    let ended = unshared(&scratch, &script);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
fn shared_memory_above_a_limit_is_a_fault_of_that_case_alone() {
    let scratch = Scratch::new();
    // The ring has 16 MiB; a block of the limit has 512 B or 1 KiB.
    let script = format!(
        "ulimit -f 8192; \"$0\" latency --transport shm,unix --size 1MiB {SHORT} --out run"
    );
    let ended = unshared(&scratch, &script);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
    let record = wiregauge::record::read_record(&scratch.join("run")).unwrap();
    let unix = record.runs.iter().find(|run| run.case.transport.name() == "unix").unwrap();
    assert!(unix.complete && unix.counts.received >= 500, "{:?}", unix.counts);
    let said = &record.faults[0];
    assert!(said.contains("shared memory") && said.contains("File too large"), "{said}");
}

#[test]
fn one_cpu_is_said_and_measured_with_blocking_waits() {
    let scratch = Scratch::new();
    let mut one = Command::new("taskset");
    one.args(["-c", "0", env!("CARGO_BIN_EXE_wiregauge"), "latency"]);
    one.args(SHORT.split(' ')).args(["--out", "run"]);
    let ended = Controller::of(&scratch, one).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = wiregauge::record::read_record(&scratch.join("run")).unwrap();
    assert!(record.warnings.iter().any(|warning| warning.kind == "one_cpu"), "{ended:?}");
}

#[test]
fn locked_memory_that_is_refused_is_warned_of() {
    let scratch = Scratch::new();
    fs::set_permissions(&scratch.0, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut limited = Command::new("prlimit");
    limited.arg("--memlock=0");
    if rustix::process::geteuid().is_root() {
        limited.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        limited.args(["--inh-caps=-all", "--bounding-set=-all"]);
    }
    let copy = PublicCopy::new();
    limited.arg(&copy.0).arg("latency");
    limited.args(SHORT.split(' ')).args(["--out", "run", "--verbose"]);
    let ended = Controller::of(&scratch, limited).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("RLIMIT_MEMLOCK"), "{ended:?}");
    let record = wiregauge::record::read_record(&scratch.join("run")).unwrap();
    assert!(!record.runs[0].rounds[0].client.locked && record.complete);
}

#[test]
fn directories_that_cannot_be_made_are_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("there")).unwrap();
    fs::write(scratch.join("file"), "").unwrap();
    for (out, said) in [
        ("there", "exists already and is never overwritten"),
        ("file/run", "cannot create a run directory in file"),
        ("/proc/none/run", "cannot create a run directory in /proc/none"),
        ("..", "exists already and is never overwritten"),
    ] {
        let ended = wiregauge(&scratch, &["latency", "--out", out]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let deep =
        wiregauge(&scratch, &["latency", "--count", "50", "--rounds", "1", "--out", "a/b/c"]);
    assert_eq!(deep.code, Some(0), "{deep:?}");
    assert!(scratch.join("a/b/c/record.json").exists());
}

#[test]
fn foreign_and_damaged_records_are_one_sentence() {
    let scratch = Scratch::new();
    let made = wiregauge(
        &scratch,
        &["latency", "--wait", "block", "--count", "2000", "--rounds", "1", "--out", "run"],
    );
    assert_eq!(made.code, Some(0), "{made:?}");
    let good = fs::read(scratch.join("run/record.json")).unwrap();
    let samples = fs::read(scratch.join("run/samples.parquet")).unwrap();
    let newer = String::from_utf8(good.clone()).unwrap();
    let newer = newer.replacen(&format!("\"version\": {}", schema::VERSION), "\"version\": 99", 1);
    assert_ne!(newer.as_bytes(), good);
    let damaged: [(&[u8], &[u8]); 8] = [
        (b"", &samples),
        (b"{}", &samples),
        (b"[1, 2", &samples),
        (&[0xff; 300], &samples),
        (&good[..good.len() / 2], &samples),
        (newer.as_bytes(), &samples),
        (&good, &samples[..samples.len() / 2]),
        (&good, b"PAR1 is not enough"),
    ];
    for (number, (record, samples)) in damaged.into_iter().enumerate() {
        let name = format!("bad{number}");
        fs::create_dir(scratch.join(&name)).unwrap();
        fs::write(scratch.join(&name).join("record.json"), record).unwrap();
        fs::write(scratch.join(&name).join("samples.parquet"), samples).unwrap();
        for command in [&["report", &name][..], &["export", &name], &["compare", &name, "run"]] {
            let ended = wiregauge(&scratch, command);
            assert_eq!(ended.code, Some(2), "{command:?} {ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "{command:?} {ended:?}");
            assert!(!ended.stderr.contains("panicked"), "{command:?} {ended:?}");
        }
    }
}

#[test]
fn json_is_alone_on_stdout_and_nothing_is_coloured() {
    let scratch = Scratch::new();
    let run = ["latency", "--wait", "block", "--count", "500", "--rounds", "1", "--json"];
    let ended = wiregauge(&scratch, &run);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(record["complete"], true);
    assert!(ended.stderr.lines().all(|line| line.starts_with("wiregauge: ")), "{ended:?}");
    assert!(fs::read_dir(&scratch.0).unwrap().next().is_none(), "no directory was asked for");
    let mut odd = Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    odd.args(["latency", "--wait", "block", "--count", "500", "--rounds", "1", "--out", "run"]);
    odd.env_clear().env("LANG", "\u{1F4E1}").env("TERM", "xterm-256color").env("CLICOLOR", "1");
    let told = Controller::of(&scratch, odd).end();
    assert_eq!(told.code, Some(0), "{told:?}");
    for text in [&ended.stdout, &ended.stderr, &told.stdout, &told.stderr] {
        assert!(!text.contains('\u{1b}'), "an escape code where no terminal is: {text}");
    }
    assert!(told.stderr.is_empty(), "{told:?}");
}

#[test]
fn a_report_tells_what_the_run_told() {
    let scratch = Scratch::new();
    let run =
        ["latency", "--wait", "adaptive,block", "--count", "1500", "--rounds", "2", "--out", "run"];
    let told = wiregauge(&scratch, &run);
    assert_eq!(told.code, Some(0), "{told:?}");
    let again = wiregauge(&scratch, &["report", "run"]);
    let (table, kept) = told.stdout.trim_end().rsplit_once('\n').unwrap();
    assert!(kept.starts_with("kept in "), "{kept}");
    let (_, retold) = again.stdout.trim_end().split_once('\n').unwrap();
    assert_eq!(retold, table);
    let same = wiregauge(&scratch, &["compare", "run", "run"]);
    assert!(same.code == Some(2) && same.stderr.contains("the same runs"), "{same:?}");
    copy_as_earlier(&scratch.join("run"), &scratch.join("before"));
    let copied = wiregauge(&scratch, &["compare", "before", "run"]);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let differ = ["compare", "run@wait=adaptive", "run@wait=block", "--fail-if", "rtt.p50>+0.001%"];
    let differ = wiregauge(&scratch, &differ);
    assert!(differ.stdout.contains("adaptive") && differ.stdout.contains("block"), "{differ:?}");
    let below = ["compare", "before", "run", "--fail-if", "rtt.p50>1ns"];
    let below = wiregauge(&scratch, &below);
    assert_eq!(below.code, Some(1), "{below:?}");
    let none = wiregauge(&scratch, &["compare", "run@wait=busy", "run"]);
    assert_eq!(none.code, Some(2), "{none:?}");
}
