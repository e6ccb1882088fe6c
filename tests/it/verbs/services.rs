//! XRC, DC and SRD, which Soft-RoCE lacks: refused there, and run over queue pairs that
//! `providers.c` makes of those that it has. What a provider or an adapter does is not tested so:
//! only that the calls, their order and their arguments are those of the published interfaces.

use super::refusals::assert_refused;
use super::{counts, has_device, program};
use crate::support::bounded::output;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

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

    /// The record of a run, or why the run failed.
    fn run(&self, service: &str, words: &str) -> Result<Value, String> {
        let mut command = program();
        command.current_dir(&self.0).args(words.split_whitespace());
        command.args(["--transport", "verbs", "--service", service, "--rounds", "1", "--json"]);
        let ended = output(command.env("LD_PRELOAD", self.library()).env("FAKE_SERVICE", service));
        match ended.status.success() {
            true => Ok(serde_json::from_slice(&ended.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
        }
    }

    /// A run that must be whole: nothing lost, nothing corrupt.
    fn whole(&self, service: &str, words: &str) -> Value {
        let told = |told| panic!("{service} {words}: {told}");
        let record = self.run(service, words).unwrap_or_else(told);
        for run in record["runs"].as_array().unwrap() {
            assert!(counts(run, "sent") > 0, "{service} {words}");
            assert_eq!(counts(run, "received"), counts(run, "sent"), "{service} {words}");
            assert_eq!(counts(run, "corrupt"), 0, "{service} {words}");
        }
        record
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
    for operation in ["send", "send_imm", "write_imm", "write"] {
        for more in ["", "--post extended --inline off"] {
            let wait = if operation == "write" { "busy" } else { "busy,block" };
            let words =
                format!("latency --operation {operation} --wait {wait} --count 150 --check {more}");
            providers.whole("xrc", &words);
        }
    }
    let words = "latency --count 50 --queue-pairs 3 --burst 7 --check --rnr-timer 10 --retries 6";
    let record = providers.whole("xrc", words);
    let client = granted(&record, "client");
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
    let writes = "oneway --operation write --outstanding 8 --receive-depth 2 --count 300 --check";
    providers.whole("xrc", writes);
    for words in [
        "latency --operation read --count 50",
        "latency --operation fetch_add --size 8 --count 50",
        "bandwidth --operation write --size 4096 --time 100ms --inline off",
        "bandwidth --size 4096 --time 100ms --direction bi",
    ] {
        providers.run("xrc", words).unwrap_or_else(|told| panic!("{words}: {told}"));
    }
}

#[test]
fn dc_addresses_each_work_request_to_the_target_of_the_other_end() {
    if !has_device() {
        return;
    }
    let Some(providers) = Providers::new() else { return };
    for operation in ["send", "send_imm"] {
        for more in ["--wait block", "--inline off --signal-every 1", "--queue-pairs 3 --burst 7"] {
            let words = format!("latency --operation {operation} --count 100 --check {more}");
            let record = providers.whole("dc", &words);
            let client = granted(&record, "client");
            assert_eq!((&client["service"], &client["post"]), (&"dc".into(), &"extended".into()));
            assert_eq!(client["shared_receive_queue"], "on");
        }
    }
    let refused = providers.run("dc", "latency --post classic --count 10").unwrap_err();
    assert!(refused.contains("use --post extended"), "{refused}");
}

#[test]
fn srd_completes_in_any_order_and_reads_back_what_it_has() {
    if !has_device() {
        return;
    }
    let Some(providers) = Providers::new() else { return };
    for more in ["", "--post extended", "--wait block --inline off", "--operation send_imm"] {
        let words = format!("latency --count 100 --check --size 32 {more}");
        let record = providers.whole("srd", &format!("{words} --rnr-retries 5"));
        let client = granted(&record, "client");
        assert_eq!((&client["order"], &client["signal_every"]), (&"not kept".into(), &"1".into()));
        assert_eq!((&client["rnr_retries"], &client["retries"]), (&"5".into(), &Value::Null));
    }
    providers.whole("srd", "latency --size 1024 --count 400 --queue-pairs 2 --burst 16 --check");
    // An inline payload is as long as the device says, and what it lacks is refused.
    let inline = |size: &str| granted(&providers.whole("srd", size), "client")["inline"].clone();
    assert_eq!(inline("latency --count 20 --size 32"), "on");
    assert_eq!(inline("latency --count 20 --size 33"), "off");
    for (words, names) in [
        ("latency --inline 64", "up to 32 B inline"),
        ("latency --operation write_imm", "does not support --operation write_imm"),
        ("latency --operation write", "use --operation write_imm"),
        ("bandwidth --operation read --size 2MiB", "takes 1 B to 1 MiB"),
        ("latency --size 16MiB", "takes 1 B to 8 MiB"),
        ("latency --connect cm", "use --connect exchange"),
    ] {
        let refused = providers.run("srd", &format!("{words} --time 100ms")).unwrap_err();
        assert!(refused.contains(names) && !refused.contains("panicked"), "{words}: {refused}");
    }
}
