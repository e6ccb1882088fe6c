//! XRC, DC and SRD, which Soft-RoCE lacks: refused there, and run over queue pairs that
//! `providers.c` makes of those that it has. What a provider or an adapter does is not tested so:
//! only that the calls, their order and their arguments are those of the published interfaces.

use super::refusals::assert_refused;
use super::{counts, has_device, program, records_of, run_to_end};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use wiregauge_test_support::bounded::output;

/// A folder with the library that is loaded before the program; it goes with its owner.
struct Providers(PathBuf);

impl Providers {
    /// `None` where the headers of rdma-core are not installed.
    fn new() -> Option<Providers> {
        let folder = std::env::temp_dir().join(format!("wiregauge-prov-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let source = folder.join("providers.c");
        std::fs::write(&source, include_str!("providers.c")).unwrap();
        let providers = Providers(folder);
        let mut cc = Command::new("cc");
        let made = cc.args(["-shared", "-fPIC", "-o"]).arg(providers.library()).arg(&source);
        let made = output(made);
        let told = String::from_utf8_lossy(&made.stderr);
        if told.contains("infiniband/") && told.contains("No such file") {
            eprintln!("not checked here: no headers of rdma-core (Debian: libibverbs-dev)");
            return None;
        }
        assert!(made.status.success(), "{told}");
        Some(providers)
    }

    fn library(&self) -> PathBuf {
        self.0.join("providers.so")
    }

    /// The program with the library.
    fn program(&self, service: &str) -> Command {
        let mut command = program();
        command.env("LD_PRELOAD", self.library()).env("FAKE_SERVICE", service);
        command
    }

    /// Why a run failed.
    fn refused(&self, service: &str, words: &str) -> String {
        let mut command = self.program(service);
        command.current_dir(&self.0).args(words.split_whitespace());
        command.args(["--transport", "verbs", "--service", service, "--rounds", "1", "--json"]);
        let ended = run_to_end(&mut command);
        assert!(!ended.status.success(), "{service} {words}");
        String::from_utf8_lossy(&ended.stderr).into_owned()
    }

    /// The records of runs.
    fn records(&self, service: &str, commands: &[impl AsRef<str>]) -> Vec<Value> {
        let more = format!("--transport verbs --service {service}");
        let commands: Vec<String> =
            commands.iter().map(|words| format!("{} {more}", words.as_ref())).collect();
        records_of(self.program(service), &commands)
    }

    /// The records of runs that must be whole: nothing lost, nothing corrupt.
    fn whole(&self, service: &str, commands: &[impl AsRef<str>]) -> Vec<Value> {
        let records = self.records(service, commands);
        for (record, words) in records.iter().zip(commands) {
            let words = words.as_ref();
            for run in record["runs"].as_array().unwrap() {
                assert!(counts(run, "sent") > 0, "{service} {words}");
                assert_eq!(counts(run, "received"), counts(run, "sent"), "{service} {words}");
                assert_eq!(counts(run, "corrupt"), 0, "{service} {words}");
            }
        }
        records
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn granted(record: &Value, end: &str) -> Value {
    record["runs"][0]["rounds"][0][end]["effective_settings"].clone()
}

#[test]
fn soft_roce_lacks_them_and_says_so_with_what_it_has() {
    if !has_device() {
        return;
    }
    for (service, why) in [
        ("xrc", "its capabilities lack IBV_DEVICE_XRC"),
        ("dc", "it is not an adapter of NVIDIA's provider mlx5"),
        ("srd", "efadv_query_device: Operation not supported"),
    ] {
        let sentence = format!("does not support --service {service} ({why}");
        assert_refused(&format!("latency --service {service}"), &sentence);
        let instead = "use --service rc, uc or ud, or another --device";
        assert_refused(&format!("latency --service {service}"), instead);
    }
}

#[test]
fn xrc_sends_by_one_queue_pair_and_receives_by_another_into_one_queue() {
    if !has_device() {
        return;
    }
    let Some(providers) = Providers::new() else { return };
    let mut commands = vec![
        "latency --count 50 --queue-pairs 3 --burst 7 --check --rnr-timer 10 --retries 6"
            .to_string(),
        "oneway --operation write --outstanding 8 --receive-depth 2 --count 300 --check"
            .to_string(),
    ];
    for operation in ["send", "send_imm", "write_imm", "write"] {
        for more in ["", "--post extended --inline off"] {
            let wait = if operation == "write" { "busy" } else { "busy,block" };
            commands.push(format!(
                "latency --operation {operation} --wait {wait} --count 40 --check {more}"
            ));
        }
    }
    let records = providers.whole("xrc", &commands);
    let client = granted(&records[0], "client");
    for (name, value) in [
        ("service", "xrc"),
        ("queue_pairs", "3"),
        ("shared_receive_queue", "on"),
        ("order", "not kept"),
        ("retries", "6"),
        ("rnr_timer", "10"),
        ("qp_timeout", "14"),
    ] {
        assert_eq!(client[name], value, "{name} in {client}");
    }
    let unverified = [
        "latency --operation read --count 20",
        "latency --operation fetch_add --size 8 --count 20",
        "bandwidth --operation write --size 4096 --time 50ms --inline off",
        "bandwidth --size 4096 --time 50ms --direction bi",
    ];
    providers.records("xrc", &unverified);
}

#[test]
fn dc_addresses_each_work_request_to_the_target_of_the_other_end() {
    if !has_device() {
        return;
    }
    let Some(providers) = Providers::new() else { return };
    let mut commands = Vec::new();
    for operation in ["send", "send_imm"] {
        for more in ["--wait block", "--inline off --signal-every 1", "--queue-pairs 3 --burst 7"] {
            commands.push(format!("latency --operation {operation} --count 40 --check {more}"));
        }
    }
    for record in providers.whole("dc", &commands) {
        let client = granted(&record, "client");
        assert_eq!((&client["service"], &client["post"]), (&"dc".into(), &"extended".into()));
        assert_eq!(client["shared_receive_queue"], "on");
    }
    let refused = providers.refused("dc", "latency --post classic --count 10");
    assert!(refused.contains("use --post extended"), "{refused}");
}

#[test]
fn srd_completes_in_any_order_and_reads_back_what_it_has() {
    if !has_device() {
        return;
    }
    let Some(providers) = Providers::new() else { return };
    let all = ["", "--post extended", "--wait block --inline off", "--operation send_imm"];
    let mut commands = all
        .map(|more| format!("latency --count 40 --check --size 32 --rnr-retries 5 {more}"))
        .to_vec();
    // An inline payload is as long as the device says.
    let inline = ["latency --count 20 --size 32", "latency --count 20 --size 33"];
    commands.extend(inline.map(String::from));
    commands.push("latency --size 1024 --count 200 --queue-pairs 2 --burst 16 --check".to_string());
    let records = providers.whole("srd", &commands);
    for record in &records[..all.len()] {
        let client = granted(record, "client");
        assert_eq!((&client["order"], &client["signal_every"]), (&"not kept".into(), &"1".into()));
        assert_eq!((&client["rnr_retries"], &client["retries"]), (&"5".into(), &Value::Null));
    }
    assert_eq!(granted(&records[all.len()], "client")["inline"], "on");
    assert_eq!(granted(&records[all.len() + 1], "client")["inline"], "off");
    // What the device lacks is refused.
    for (words, names) in [
        ("latency --inline 64", "up to 32 B inline"),
        ("latency --operation write_imm", "does not support --operation write_imm"),
        ("latency --operation write", "use --operation write_imm"),
        ("bandwidth --operation read --size 2MiB", "takes 1 B to 1 MiB"),
        ("latency --size 16MiB", "takes 1 B to 8 MiB"),
        ("latency --connect cm", "use --connect exchange"),
    ] {
        let refused = providers.refused("srd", &format!("{words} --time 100ms"));
        assert!(refused.contains(names) && !refused.contains("panicked"), "{words}: {refused}");
    }
}
