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

use crate::support::bounded::{LIMIT, Running, output, start, until};
use serde_json::Value;
use std::process::{Command, Output};
use wiregauge::transport::TransportKind;

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
    let scratch = std::env::temp_dir().join(format!("wiregauge-verbs-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let mut command = program();
    command.current_dir(&scratch).args(words.split_whitespace());
    let output = output(command.args(["--rounds", "1", "--json"]));
    let _ = std::fs::remove_dir_all(&scratch);
    output
}

/// The record of a run that must be whole.
fn record(words: &str) -> Value {
    let output = run(words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn counts(run: &Value, name: &str) -> u64 {
    run["counts"][name].as_u64().unwrap()
}

fn granted(record: &Value, name: &str) -> String {
    let granted = &record["runs"][0]["rounds"][0]["client"]["effective_settings"];
    granted[name].as_str().unwrap_or_else(|| panic!("{name} in {granted}")).to_string()
}

/// Round trips of one service type and operation, in every wait mode that it has.
fn every_wait(service: &str, operation: &str) {
    if !has_device() {
        return;
    }
    let (waits, size) = match operation {
        // Its receiver polls memory.
        "write" => ("busy", 64),
        "fetch_add" | "compare_swap" => ("busy,block,adaptive", 8),
        _ => ("busy,block,adaptive", 64),
    };
    let check =
        if ["read", "fetch_add", "compare_swap"].contains(&operation) { "" } else { "--check" };
    let record = record(&format!(
        "latency --transport verbs --service {service} --operation {operation} --wait {waits} \
         --size {size} --count 200 --warmup 20 {check}"
    ));
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), waits.split(',').count());
    for run in runs {
        assert_eq!(counts(run, "sent"), 220, "{}", run["label"]);
        assert_eq!(counts(run, "received") + counts(run, "lost"), 220, "{}", run["label"]);
        assert_eq!(counts(run, "corrupt"), 0, "{}", run["label"]);
        if service == "rc" {
            assert_eq!(counts(run, "lost"), 0, "{}", run["label"]);
        }
        let one_sided = check.is_empty();
        let first = if one_sided { "rtt" } else { "half_rtt" };
        assert_eq!(run["figures"][0]["metric"], first, "{}", run["label"]);
    }
}

macro_rules! each {
    ($($name:ident $service:literal $operation:literal;)+) => {
        $(#[test] fn $name() { every_wait($service, $operation); })+
    };
}

each! {
    rc_send "rc" "send";
    rc_send_imm "rc" "send_imm";
    rc_write "rc" "write";
    rc_write_imm "rc" "write_imm";
    rc_read "rc" "read";
    rc_fetch_add "rc" "fetch_add";
    rc_compare_swap "rc" "compare_swap";
    uc_send "uc" "send";
    uc_send_imm "uc" "send_imm";
    uc_write "uc" "write";
    uc_write_imm "uc" "write_imm";
    ud_send "ud" "send";
    ud_send_imm "ud" "send_imm";
}

#[test]
fn both_ways_of_posting_send_the_same_in_lists() {
    if !has_device() {
        return;
    }
    for service in ["rc", "uc", "ud"] {
        for post in ["classic", "extended"] {
            let record = record(&format!(
                "latency --transport verbs --service {service} --post {post} --burst 16 --size 64 \
                 --wait block --count 320 --warmup 0 --check"
            ));
            let run = &record["runs"][0];
            assert_eq!(counts(run, "corrupt"), 0, "{service} {post}");
            assert_eq!(counts(run, "received") + counts(run, "lost"), 320, "{service} {post}");
            assert_eq!(granted(&record, "post"), post);
        }
    }
}

#[test]
fn ends_are_connected_by_the_manager_too() {
    if !has_device() {
        return;
    }
    for words in ["--service rc", "--service ud", "--service rc --queue-pairs 8 --burst 16"] {
        let record = record(&format!(
            "latency --transport verbs --connect cm --size 64 --wait block --count 320 \
             --warmup 0 --check {words}"
        ));
        let run = &record["runs"][0];
        assert_eq!(granted(&record, "connect"), "cm", "{words}");
        assert_eq!(counts(run, "corrupt"), 0, "{words}");
        assert_eq!(counts(run, "received") + counts(run, "lost"), 320, "{words}");
    }
}

#[test]
fn messages_over_several_queue_pairs_arrive_once_and_whole() {
    if !has_device() {
        return;
    }
    for words in [
        "--service rc",
        "--service uc --post extended",
        "--service ud",
        "--service rc --operation write_imm",
        "--service rc --shared-receive-queue",
        "--service ud --shared-receive-queue --inline off",
        "--service rc --operation read",
        "--service rc --poll extended --post extended",
    ] {
        let check = if words.contains("read") { "" } else { "--check" };
        let record = record(&format!(
            "latency --transport verbs --queue-pairs 8 --burst 32 --size 64 --wait block \
             --count 640 --warmup 0 {check} {words}"
        ));
        let run = &record["runs"][0];
        assert_eq!(granted(&record, "queue_pairs"), "8", "{words}");
        assert_eq!(counts(run, "corrupt"), 0, "{words}");
        assert_eq!(counts(run, "duplicates"), 0, "{words}");
        assert_eq!(counts(run, "received") + counts(run, "lost"), 640, "{words}");
        assert!(!words.contains("rc") || counts(run, "lost") == 0, "{words}");
    }
    let stream = record(
        "bandwidth --transport verbs --queue-pairs 8 --size 4096 --time 100ms --wait block \
         --inline off",
    );
    let run = &stream["runs"][0];
    assert_eq!(counts(run, "sent"), counts(run, "received"));
}

#[test]
fn completions_are_taken_both_ways() {
    if !has_device() {
        return;
    }
    for wait in ["busy", "block"] {
        let record = record(&format!(
            "latency --transport verbs --poll extended --size 4096 --wait {wait} --burst 16 \
             --count 320 --warmup 0 --check"
        ));
        assert_eq!(granted(&record, "poll"), "extended");
        assert_eq!(counts(&record["runs"][0], "received"), 320);
    }
}

#[test]
fn huge_pages_are_used_or_named_as_missing() {
    if !has_device() {
        return;
    }
    const POOL: &str = "/proc/sys/vm/nr_hugepages";
    let words = "latency --transport verbs --huge-pages --wait block --count 100 --check";
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
    for words in [
        "--size 64KiB",
        "--size 64KiB --direction bi",
        "--size 64KiB --operation write",
        "--size 64KiB --operation read --direction bi",
        "--size 4096 --operation write_imm",
        "--size 8 --burst 16",
        "--size 512 --service ud --receive-depth 16",
        "--size 4096 --service uc --receive-depth 16",
    ] {
        let record = record(&format!(
            "bandwidth --transport verbs --wait block --time 100ms --warmup 10 {words}"
        ));
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
    let warned = warnings.iter().any(|warning| warning["kind"] == "never_stamped");
    assert_eq!(warned, count("transfer") < 200, "{} of 200", count("transfer"));
    let names: Vec<&str> = figures.iter().map(|f| f["metric"].as_str().unwrap()).collect();
    let p50 = |metric| {
        let quantiles = summary(metric)?["quantiles"].as_array().unwrap();
        quantiles.iter().find(|q| q["p"] == 0.5)?["value"].as_f64()
    };
    match p50("transfer") {
        // The first time is written just before the submit, a thread's later.
        Some(transfer) => {
            assert_eq!(names, ["one_way", "transfer", "complete"]);
            let one_way = p50("one_way").unwrap();
            assert!(transfer < one_way + 1e6, "{transfer} ns of {one_way} ns");
        }
        None => assert_eq!(names, ["one_way", "complete"]),
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
    for (words, way) in [("latency --size 64 --check", "ping-pong"), ("bandwidth --size 8", "list")]
    {
        let burst = if way == "list" { "--burst 16 --time 100ms" } else { "--count 200" };
        let record = record(&format!(
            "{words} --transport verbs --wait block --threads 2 --queue-pairs 2 --warmup 20 {burst}"
        ));
        let run = &record["runs"][0];
        let threads = run["rounds"][0]["threads"].as_array().unwrap();
        assert_eq!(threads.len(), 2, "{way}");
        for thread in threads {
            let counts = |name: &str| thread["counts"][name].as_u64().unwrap();
            assert!(counts("received") >= 220, "{way}: {thread}");
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
