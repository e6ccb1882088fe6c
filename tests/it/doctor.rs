//! `wiregauge doctor` and `wiregauge noise --together` as a user runs them. The checks themselves
//! are tested on made-up trees (`crates/host/src/doctor/tests.rs`), what is made of gaps on made-up
//! ones (`crates/host/src/together`).

use crate::support::Scratch;
use crate::support::program::{Printed, wiregauge};
use rustix::process::geteuid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use wiregauge::host::doctor::CHECKS;
use wiregauge::host::{allowed_cpus, child::OwnedChild};
use wiregauge::record::read_record;
use wiregauge::record::schema::Kind;

#[test]
fn each_check_has_a_row_in_the_document_and_each_row_a_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/doctor.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let known: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(rows.collect::<BTreeSet<_>>(), known);
}

#[test]
fn the_exit_code_says_whether_something_is_wrong_and_nothing_is_written() {
    let scratch = Scratch::new();
    let ended = wiregauge(&scratch.0, &["doctor", "--for", "latency --transport shm", "--json"]);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let is_wrong = findings.iter().any(|one| one["severity"] != "note");
    assert_eq!(ended.code, Some(i32::from(is_wrong)), "{ended:?}");
    // Messages through memory pass no network.
    let network = ["coalescing", "offloads", "busy_poll", "device_interrupts", "mtu"];
    let is_of_network = |one: &&Value| network.contains(&one["check"].as_str().unwrap());
    assert!(!findings.iter().any(|one| is_of_network(&one) && one["subject"] != "eth0"), "{found}");
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[test]
fn nothing_is_changed_without_a_yes() {
    let scratch = Scratch::new();
    let shown = wiregauge(&scratch.0, &["doctor", "--fix", "--check", "watchdogs,huge_pages"]);
    match shown.stdout.contains("these commands would run") {
        // Stdin is no terminal.
        true => assert!(shown.code == Some(2) && shown.stderr.contains("use --yes"), "{shown:?}"),
        false => assert!(shown.stdout.contains("no command changes anything"), "{shown:?}"),
    }
    for (words, why) in [
        (&["doctor", "--yes"][..], "--fix"),
        (&["doctor", "--fix", "--measure"], "--measure"),
        (&["doctor", "--fix", "--json"], "--json"),
        (&["doctor", "--for", "list"], "--for takes a command that measures"),
        (&["doctor", "--for", "latency --size x"], "--for: --size: "),
        (&["doctor", "--check", "nothing"], "--check"),
        (&["noise", "--out", "x"], "--together"),
    ] {
        let refused = wiregauge(&scratch.0, words);
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{words:?}: {refused:?}");
    }
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
}

/// A command in the first of two hosts, which a wire connects; `None`: they cannot be made here.
fn in_testbed(scratch: &Scratch, line: &str) -> Option<Printed> {
    let words = ["testbed", "net", "--hosts", "2", "--topology", "pair", "--", "sh", "-ec", line];
    let ended = wiregauge(&scratch.0, &words);
    if !geteuid().is_root() || ended.stderr.contains("testbed net needs") {
        eprintln!("skipped: {}", ended.stderr);
        return None;
    }
    Some(ended)
}

const ON_THE_WIRE: &str = "--for 'latency --transport tcp --interface wire0 --cpus 0,1'";

#[test]
fn what_was_changed_is_taken_back_by_the_script() {
    let scratch = Scratch::new();
    let doctor = format!("wiregauge doctor {ON_THE_WIRE} --check offloads,packet_steering");
    let line = format!(
        "state() {{ echo $1 $(ethtool -k wire0 | grep -w generic-receive-offload) \
         $(cat $rps); }}; rps=/sys/class/net/wire0/queues/rx-0/rps_cpus; \
         ethtool -K wire0 gro on; echo 3 > $rps; state before; \
         {doctor} --fix --yes --undo back.sh; state changed; sh back.sh; state after"
    );
    let Some(ended) = in_testbed(&scratch, &line) else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let states = ["before", "changed", "after"].map(|when| {
        let own = ended.stdout.lines().find_map(|line| line.strip_prefix(when));
        own.unwrap_or_else(|| panic!("{when}: {ended:?}")).trim()
    });
    let [on, off] = ["on 3", "off 0"].map(|state| format!("generic-receive-offload: {state}"));
    assert_eq!(states, [&on, &off, &on], "{ended:?}");
    assert!(ended.stdout.contains("fix: 2 of 2 commands succeeded"), "{ended:?}");
}

#[test]
fn hosts_are_examined_over_ssh_and_what_differs_between_them_is_named() {
    let scratch = Scratch::new();
    let line = format!(
        "ethtool -K wire0 gro on; ssh wg-h2 ethtool -K wire0 gro off; \
         wiregauge doctor {ON_THE_WIRE} --hosts here,wg-h2 --json > both.json || [ $? = 1 ]; \
         wiregauge doctor {ON_THE_WIRE} --hosts wg-h2,wg-h9 --json > one.json && exit 9; \
         [ $? = 3 ]"
    );
    let Some(ended) = in_testbed(&scratch, &line) else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(scratch.join(name)).unwrap()).unwrap()
    };
    let both = read("both.json");
    let hosts = both["hosts"].as_array().unwrap();
    let name = |host: &Value| host["host"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = hosts.iter().map(name).collect();
    assert_eq!(names, ["here (wg-h1)", "wg-h2"].map(str::to_owned).into(), "{both}");
    // GRO delays here and not there, and is the only setting of the wire that is not the same.
    for host in hosts {
        let found = host["findings"].as_array().unwrap();
        let has = found.iter().any(|one| one["check"] == "offloads" && one["subject"] == "wire0");
        assert_eq!(has, name(host) != "wg-h2", "{host}");
    }
    let of_wire = |one: &&Value| one["name"].as_str().unwrap().starts_with("wire0 ");
    let differ: Vec<&Value> =
        both["differences"].as_array().unwrap().iter().filter(of_wire).collect();
    assert_eq!(differ.len(), 1, "{both}");
    assert_eq!(differ[0]["name"], "wire0 GRO");
    let one = read("one.json");
    assert_eq!(one["not_reached"][0][0], "wg-h9", "{one}");
    assert_eq!(one["hosts"][0]["host"], "wg-h2", "{one}");
}

/// A task of this name that keeps a CPU busy until it is dropped.
fn busy(scratch: &Scratch, name: &str, cpu: u32) -> OwnedChild {
    let program = scratch.join(name);
    fs::copy("/bin/sh", &program).unwrap();
    let mut command = Command::new("taskset");
    command.arg("-c").arg(cpu.to_string()).arg(program).args(["-c", "while :; do :; done"]);
    OwnedChild(command.stdin(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_task_that_takes_a_cpu_is_found_by_its_name() {
    let scratch = Scratch::new();
    let cpu = *allowed_cpus().last().unwrap();
    let task = busy(&scratch, "wg-busy-task", cpu);
    let words = ["noise", "--together", "--time", "1500ms", "--out", "seen"];
    let ended = wiregauge(&scratch.0, &words);
    drop(task);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("seen")).unwrap();
    let found = record.together.as_ref().unwrap();
    assert_eq!(found.cpus, allowed_cpus());
    assert!(found.observed_ns >= 1.5e9 && found.length_ns >= found.observed_ns, "{found:?}");
    if let Some(why) = &found.not_traced {
        assert!(found.causes.iter().all(|one| one.kind == Kind::Unknown), "{found:?}");
        eprintln!("without names: {why}");
        return;
    }
    let task = found.causes.iter().find(|one| one.name == "wg-busy-task");
    let task = task.unwrap_or_else(|| panic!("{:?}", found.causes));
    assert_eq!((task.kind, &task.cpus[..]), (Kind::Task, &[cpu][..]));
    // Its share of the CPU is the scheduler's choice; the kernel recorded nearly all of it.
    assert!(task.lost_ns > 0.0 && task.recorded > 0.9, "{task:?}");
    assert!(ended.stdout.contains("wg-busy-task"), "{}", ended.stdout);
    let page = fs::read_to_string(scratch.join("seen/report.html")).unwrap();
    assert!(page.contains("together-lanes") && page.contains("wg-busy-task"));
    let again = wiregauge(&scratch.0, &["report", "seen"]);
    assert!(again.code == Some(0) && again.stdout.contains("wg-busy-task"), "{again:?}");
}
