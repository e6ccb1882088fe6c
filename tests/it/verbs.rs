//! Verbs by the program itself: every service type, operation and wait mode, with payloads
//! verified; what is lost, what is killed, and what is refused.
//!
//! It needs an RDMA device. Where there is none each test says so and ends: `./test` runs this file
//! inside the machine of `wiregauge testbed rdma`. No claim judges a time.

mod devices;
mod gpu;
mod granted;
mod many;
mod pools;
mod refusals;
mod services;
mod sleeps;
mod sources;
mod writes;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use wiregauge::transport::TransportKind;
use wiregauge_test_support::bounded::{LIMIT, Running, output, start, until};

/// Longest run of the program: an emulated processor that shares its host takes minutes.
const RUN_LIMIT: Duration = Duration::from_secs(900);

fn program() -> Command {
    // Inside another machine the program lies where the test was built, or where this says.
    let built = env!("CARGO_BIN_EXE_wiregauge").to_string();
    Command::new(std::env::var("WIREGAUGE").unwrap_or(built))
}

/// Whether there is a device; says so where there is none.
fn has_device() -> bool {
    let available = TransportKind::Verbs.available();
    if let Err(why) = &available {
        eprintln!("not checked here: {why}");
    }
    available.is_ok()
}

fn run(words: &str) -> Output {
    let scratch = scratch();
    let mut command = program();
    command.current_dir(&scratch).args(words.split_whitespace());
    let output = run_to_end(command.args(["--rounds", "1", "--json"]));
    let _ = std::fs::remove_dir_all(&scratch);
    output
}

/// Runs the program to its end, within [`RUN_LIMIT`].
fn run_to_end(command: &mut Command) -> Output {
    start(command).end(RUN_LIMIT)
}

fn scratch() -> PathBuf {
    let scratch = std::env::temp_dir().join(format!("wiregauge-verbs-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    scratch
}

/// The record of a run that must be whole.
fn record(words: &str) -> Value {
    let output = run(words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The records of commands that must be whole. One study runs them all: in an emulated machine a
/// start of the program takes as long as two cases of it.
fn records(commands: &[impl AsRef<str>]) -> Vec<Value> {
    records_of(program(), commands)
}

/// The same by a program with variables of its own.
fn records_of(mut command: Command, commands: &[impl AsRef<str>]) -> Vec<Value> {
    let scratch = scratch();
    std::fs::write(scratch.join("study.toml"), study(commands)).unwrap();
    command.current_dir(&scratch).args(["run", "study.toml", "--json"]);
    let output = run_to_end(&mut command);
    let _ = std::fs::remove_dir_all(&scratch);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["complete"], true, "{told}");
    let series = record["plan"]["study"]["series"].as_array().unwrap();
    // Cases that cannot run here are left out of a study, and named.
    assert_eq!(series.len(), commands.len(), "{told}");
    let parts = series.iter().zip(commands).map(|(series, command)| {
        let cases = series["cases"].as_array().unwrap().iter();
        let cases = cases.map(|number| record["runs"][number.as_u64().unwrap() as usize].clone());
        let runs: Vec<Value> = cases.collect();
        assert!(!runs.is_empty(), "{}: {told}", command.as_ref());
        serde_json::json!({ "runs": runs })
    });
    parts.collect()
}

/// A study of commands, each of which is a series.
fn study(commands: &[impl AsRef<str>]) -> String {
    let mut text = "title = \"Do all of these work?\"\n[all]\nrounds = 1\n".to_string();
    for (number, command) in commands.iter().enumerate() {
        let mut words = command.as_ref().split_whitespace().peekable();
        text += &format!("[[{}]]\nseries = \"{number}\"\n", words.next().unwrap());
        while let Some(option) = words.next() {
            let key = option.strip_prefix("--").unwrap();
            let value = words.next_if(|word| !word.starts_with("--"));
            text +=
                &value.map_or(format!("{key} = true\n"), |value| format!("{key} = {value:?}\n"));
        }
    }
    text
}

fn counts(run: &Value, name: &str) -> u64 {
    run["counts"][name].as_u64().unwrap()
}

fn granted(record: &Value, name: &str) -> String {
    let granted = &record["runs"][0]["rounds"][0]["client"]["effective_settings"];
    granted[name].as_str().unwrap_or_else(|| panic!("{name} in {granted}")).to_string()
}

/// Round trips of one service type by each of these operations, in every wait mode that they have.
fn every_wait(service: &str, operations: &[&str]) {
    if !has_device() {
        return;
    }
    let commands: Vec<String> = operations
        .iter()
        .map(|operation| {
            let (waits, size) = match *operation {
                // Its receiver polls memory.
                "write" => ("busy", 64),
                "fetch_add" | "compare_swap" => ("busy,block,adaptive", 8),
                _ => ("busy,block,adaptive", 64),
            };
            let check = if is_one_sided(operation) { "" } else { "--check" };
            format!(
                "latency --transport verbs --service {service} --operation {operation} \
                 --wait {waits} --size {size} --count 40 --warmup 5 {check}"
            )
        })
        .collect();
    for (record, operation) in records(&commands).iter().zip(operations) {
        let runs = record["runs"].as_array().unwrap();
        assert_eq!(runs.len(), if *operation == "write" { 1 } else { 3 }, "{operation}");
        for run in runs {
            let label = &run["label"];
            assert_eq!(counts(run, "sent"), 45, "{label}");
            assert_eq!(counts(run, "received") + counts(run, "lost"), 45, "{label}");
            assert_eq!(counts(run, "corrupt"), 0, "{label}");
            if service == "rc" {
                assert_eq!(counts(run, "lost"), 0, "{label}");
            }
            let first = if is_one_sided(operation) { "rtt" } else { "half_rtt" };
            assert_eq!(run["figures"][0]["metric"], first, "{label}");
        }
    }
}

fn is_one_sided(operation: &str) -> bool {
    ["read", "fetch_add", "compare_swap"].contains(&operation)
}

#[test]
fn reliable_connections_carry_messages_in_every_wait_mode() {
    every_wait("rc", &["send", "send_imm", "write", "write_imm"]);
}

#[test]
fn reliable_connections_read_and_change_memory_in_every_wait_mode() {
    every_wait("rc", &["read", "fetch_add", "compare_swap"]);
}

#[test]
fn unreliable_connections_carry_messages_in_every_wait_mode() {
    every_wait("uc", &["send", "send_imm", "write", "write_imm"]);
}

#[test]
fn datagrams_carry_messages_in_every_wait_mode() {
    every_wait("ud", &["send", "send_imm"]);
}

#[test]
fn both_ways_of_posting_send_the_same_in_lists() {
    if !has_device() {
        return;
    }
    let cases = ["rc", "uc", "ud"].map(|service| [(service, "classic"), (service, "extended")]);
    let cases = cases.as_flattened();
    let commands: Vec<String> = cases
        .iter()
        .map(|(service, post)| {
            format!(
                "latency --transport verbs --service {service} --post {post} --burst 16 --size 64 \
                 --wait block --count 96 --warmup 0 --check"
            )
        })
        .collect();
    for (record, (service, post)) in records(&commands).iter().zip(cases) {
        let run = &record["runs"][0];
        assert_eq!(counts(run, "corrupt"), 0, "{service} {post}");
        assert_eq!(counts(run, "received") + counts(run, "lost"), 96, "{service} {post}");
        assert_eq!(granted(record, "post"), *post);
    }
}

#[test]
fn ends_are_connected_by_the_manager_too() {
    if !has_device() {
        return;
    }
    let all = ["--service rc", "--service ud", "--service rc --queue-pairs 8 --burst 16"];
    let commands = all.map(|words| {
        format!(
            "latency --transport verbs --connect cm --size 64 --wait block --count 96 \
             --warmup 0 --check {words}"
        )
    });
    for (record, words) in records(&commands).iter().zip(all) {
        let run = &record["runs"][0];
        assert_eq!(granted(record, "connect"), "cm", "{words}");
        assert_eq!(counts(run, "corrupt"), 0, "{words}");
        assert_eq!(counts(run, "received") + counts(run, "lost"), 96, "{words}");
    }
}

#[test]
fn messages_over_several_queue_pairs_arrive_once_and_whole() {
    if !has_device() {
        return;
    }
    let all = [
        "--service rc",
        "--service uc --post extended",
        "--service ud",
        "--service rc --operation write_imm",
        "--service rc --shared-receive-queue",
        "--service ud --shared-receive-queue --inline off",
        "--service rc --operation read",
        "--service rc --poll extended --post extended",
    ];
    let latency = all.map(|words| {
        let check = if words.contains("read") { "" } else { "--check" };
        format!(
            "latency --transport verbs --queue-pairs 8 --burst 32 --size 64 --wait block \
             --count 256 --warmup 0 {check} {words}"
        )
    });
    let stream = "bandwidth --transport verbs --queue-pairs 8 --size 4096 --time 100ms \
                  --wait block --inline off";
    let mut commands = latency.to_vec();
    commands.push(stream.into());
    let records = records(&commands);
    for (record, words) in records.iter().zip(all) {
        let run = &record["runs"][0];
        assert_eq!(granted(record, "queue_pairs"), "8", "{words}");
        assert_eq!(counts(run, "corrupt"), 0, "{words}");
        assert_eq!(counts(run, "duplicates"), 0, "{words}");
        assert_eq!(counts(run, "received") + counts(run, "lost"), 256, "{words}");
        assert!(!words.contains("rc") || counts(run, "lost") == 0, "{words}");
    }
    let run = &records[all.len()]["runs"][0];
    assert_eq!(counts(run, "sent"), counts(run, "received"));
}

#[test]
fn completions_are_taken_both_ways() {
    if !has_device() {
        return;
    }
    let commands = ["busy", "block"].map(|wait| {
        format!(
            "latency --transport verbs --poll extended --size 4096 --wait {wait} --burst 16 \
             --count 64 --warmup 0 --check"
        )
    });
    for record in records(&commands) {
        assert_eq!(granted(&record, "poll"), "extended");
        assert_eq!(counts(&record["runs"][0], "received"), 64);
    }
}

#[test]
fn huge_pages_are_used_or_named_as_missing() {
    if !has_device() {
        return;
    }
    const POOL: &str = "/proc/sys/vm/nr_hugepages";
    let words = "latency --transport verbs --huge-pages --wait block --count 40 --check";
    let none = std::fs::read_to_string(POOL).unwrap().trim() == "0";
    if none {
        let refused = run(words);
        let told = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains("vm.nr_hugepages"), "{told}");
    }
    // A pool of this machine's own; where it may not be set there is nothing more to see.
    if std::env::var_os("WIREGAUGE_TESTBED").is_some() && std::fs::write(POOL, "64").is_ok() {
        assert_eq!(granted(&record(words), "pages"), "huge");
    }
}

#[test]
fn a_low_limit_on_locked_memory_is_named_with_what_lifts_it() {
    if !has_device() {
        return;
    }
    // Without the capability that stands above the limit.
    let mut list = Command::new("setpriv");
    list.args(["--bounding-set=-ipc_lock", "prlimit", "--memlock=65536"]);
    let list = output(list.arg(program().get_program()).arg("list"));
    let told = String::from_utf8_lossy(&list.stdout);
    let line = told.lines().find(|line| line.starts_with("not available: verbs"));
    let line = line.unwrap_or_else(|| panic!("{told}"));
    assert!(line.contains("ulimit -l unlimited"), "{line}");
}

#[test]
fn streams_deliver_what_was_sent_or_count_it_as_lost() {
    if !has_device() {
        return;
    }
    let all = [
        "--size 64KiB",
        "--size 64KiB --direction bi",
        "--size 64KiB --operation write",
        "--size 64KiB --operation read --direction bi",
        "--size 4096 --operation write_imm",
        "--size 8 --burst 16",
        "--size 512 --service ud --receive-depth 16",
        "--size 4096 --service uc --receive-depth 16",
    ];
    let commands = all.map(|words| {
        format!("bandwidth --transport verbs --wait block --time 50ms --warmup 10 {words}")
    });
    for (record, words) in records(&commands).iter().zip(all) {
        let run = &record["runs"][0];
        let (sent, received) = (counts(run, "sent"), counts(run, "received"));
        assert_eq!(sent, received + counts(run, "lost"), "{words}");
        assert!(received > 0, "{words}");
        let reliable = !words.contains("--service");
        assert!(!reliable || counts(run, "lost") == 0, "{words}");
        let rate = run["rates"][0]["rate"]["value"].as_f64().unwrap();
        assert!(rate > 0.0, "{words}");
    }
}

#[test]
fn one_way_has_the_four_stamps_in_their_order() {
    if !has_device() {
        return;
    }
    let record = record(
        "oneway --transport verbs --wait block --size 32 --count 200 --stamp-send --signal-every 1",
    );
    let figures = record["runs"][0]["figures"].as_array().unwrap();
    let summary = |metric: &str| {
        let figure = figures.iter().find(|figure| figure["metric"] == metric);
        figure.map(|figure| &figure["summary"])
    };
    let count = |metric| summary(metric).map_or(0, |summary| summary["count"].as_u64().unwrap());
    assert_eq!((count("one_way"), count("complete")), (200, 200));
    // Here a third thread shares two CPUs: not every message has a time of its own.
    let warnings = record["runs"][0]["warnings"].as_array().unwrap();
    let warned = |kind: &str| warnings.iter().any(|warning| warning["kind"] == kind);
    let is_severe = count("transfer") < 180;
    assert_eq!(warned("few_stamped"), is_severe, "{} of 200", count("transfer"));
    let is_less = (180..200).contains(&count("transfer"));
    assert_eq!(warned("never_stamped"), is_less, "{} of 200", count("transfer"));
    let names: Vec<&str> = figures.iter().map(|f| f["metric"].as_str().unwrap()).collect();
    let p50 = |metric| {
        let quantiles = summary(metric)?["quantiles"].as_array().unwrap();
        quantiles.iter().find(|q| q["p"] == 0.5)?["value"].as_f64()
    };
    if summary("transfer").is_some() {
        assert_eq!(names, ["one_way", "transfer", "complete"]);
    } else {
        assert_eq!(names, ["one_way", "complete"]);
    }
    // Few messages have no median. A first stamp is written before the submit, a thread's later.
    if let Some(transfer) = p50("transfer") {
        let one_way = p50("one_way").unwrap();
        assert!(transfer < one_way + 1e6, "{transfer} ns of {one_way} ns");
    }
}

#[test]
fn a_peer_that_is_killed_is_noticed_and_what_came_is_kept() {
    if !has_device() {
        return;
    }
    for service in ["rc", "ud"] {
        let scratch = std::env::temp_dir().join(format!("wiregauge-kill-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch).unwrap();
        let out = scratch.join("run");
        let mut command = program();
        command
            .current_dir(&scratch)
            .args(["latency", "--transport", "verbs", "--service", service, "--wait", "block"])
            .args(["--time", "120s", "--rounds", "1", "--out"])
            .arg(&out);
        let mut controller = start(&mut command);
        wait_for_packets(&mut controller);
        let victim = agents_of(controller.id()).pop().expect("an agent");
        let id = rustix::process::Pid::from_raw(victim).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        let ended = controller.end(LIMIT);
        assert_eq!(ended.status.code(), Some(3), "{service}: {ended:?}");
        let text = std::fs::read_to_string(out.join("record.json")).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["complete"], false);
        assert!(record["runs"][0]["counts"]["received"].as_u64().unwrap() > 0, "{service}");
        let _ = std::fs::remove_dir_all(&scratch);
    }
}

/// Whether this is the machine whose device may be taken away and put back.
fn may_change_the_machine() -> bool {
    let ours = std::env::var_os("WIREGAUGE_TESTBED").is_some();
    if !ours {
        eprintln!("not checked here: it takes the device away");
    }
    ours && has_device()
}

fn shell(line: &str) {
    let ended = output(Command::new("sh").args(["-c", line]));
    assert!(ended.status.success(), "{line}: {ended:?}");
}

/// Until the device is up again.
fn wait_for_device() {
    until("the device comes back", LIMIT, || TransportKind::Verbs.available().is_ok());
}

/// Until the port of this device is up.
fn wait_for_port(device: &str) {
    let state = format!("/sys/class/infiniband/{device}/ports/1/state");
    let is_up = || std::fs::read_to_string(&state).is_ok_and(|state| state.contains("ACTIVE"));
    until("the port comes up", LIMIT, is_up);
}

/// Takes the link down without losing its IPv6 addresses, which other tests need.
fn take_link_down() {
    shell("echo 1 >/proc/sys/net/ipv6/conf/wire0/keep_addr_on_down");
    shell("ip link set wire0 down");
}

#[test]
fn a_port_that_is_down_is_named_before_anything_runs() {
    if !may_change_the_machine() {
        return;
    }
    take_link_down();
    let output = run("latency --transport verbs --count 100");
    shell("ip link set wire0 up");
    wait_for_device();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("is down; bring its link up"), "{told}");
}

#[test]
fn a_port_that_goes_down_in_mid_run_ends_the_round_and_what_came_is_kept() {
    if !may_change_the_machine() {
        return;
    }
    for wait in ["block", "busy"] {
        let scratch = std::env::temp_dir().join(format!("wiregauge-gone-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch).unwrap();
        let out = scratch.join("run");
        let mut command = program();
        command
            .current_dir(&scratch)
            .args(["latency", "--transport", "verbs", "--wait", wait, "--time", "120s"])
            .args(["--rounds", "1", "--out"])
            .arg(&out);
        let mut controller = start(&mut command);
        wait_for_packets(&mut controller);
        take_link_down();
        let ended = controller.end(LIMIT);
        shell("ip link set wire0 up");
        wait_for_device();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(told.contains("0 of 1 rounds were completed: "), "{wait}: {told}");
        assert_eq!(ended.status.code(), Some(3), "{wait}: {told}");
        let text = std::fs::read_to_string(out.join("record.json")).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert!(record["runs"][0]["counts"]["received"].as_u64().unwrap() > 0, "{wait}: {told}");
        // The end whose send fails first waits until the device has counted why; the other one is
        // stopped, perhaps before that.
        let round = &record["runs"][0]["rounds"][0];
        let [client, server] =
            ["client", "server"].map(|end| round[end]["final_counters"].to_string());
        let seen = format!("{client} {server}");
        assert!(seen.contains("counter.link_downed"), "{wait}: {seen}");
        assert!(client.contains("counter.sent_pkts"), "{wait}: {seen}");
        let _ = std::fs::remove_dir_all(&scratch);
    }
}

/// Waits until some packets were sent.
fn wait_for_packets(controller: &mut Running) {
    let enough = packets_sent() + 200;
    controller.until("packets are sent", LIMIT, || packets_sent() >= enough);
}

/// What the ports of Soft-RoCE have sent.
fn packets_sent() -> u64 {
    let devices = std::fs::read_dir("/sys/class/infiniband").unwrap().flatten();
    let counter = |device: std::fs::DirEntry| {
        let file = device.path().join("ports/1/hw_counters/sent_pkts");
        std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
    };
    devices.filter_map(counter).sum()
}

/// The processes that this one has started.
fn agents_of(parent: u32) -> Vec<i32> {
    let own = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default().to_string();
        after.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(own).collect()
}

#[test]
fn threads_have_queue_pairs_of_their_own() {
    if !has_device() {
        return;
    }
    let all =
        ["latency --size 64 --check --count 60", "bandwidth --size 8 --burst 16 --time 100ms"];
    let commands = all.map(|words| {
        format!("{words} --transport verbs --wait block --threads 2 --queue-pairs 2 --warmup 20")
    });
    for (record, way) in records(&commands).iter().zip(["ping-pong", "list"]) {
        let run = &record["runs"][0];
        let threads = run["rounds"][0]["threads"].as_array().unwrap();
        assert_eq!(threads.len(), 2, "{way}");
        for thread in threads {
            let counts = |name: &str| thread["counts"][name].as_u64().unwrap();
            assert!(counts("received") >= 80, "{way}: {thread}");
            assert_eq!((counts("lost"), counts("corrupt")), (0, 0), "{way}: {thread}");
            assert_eq!(
                thread["client"]["effective_settings"]["queue_pairs"], "2",
                "{way}: {thread}"
            );
        }
        let errors = run["rounds"][0]["client"]["final_counters"].as_object().unwrap();
        assert!(errors.keys().all(|name| !name.starts_with("error.")), "{errors:?}");
    }
}
