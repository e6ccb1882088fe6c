//! Two devices of one machine: each end with its own, what is asked of their queue pairs and what
//! these have, and one that is taken away while a round runs.
//!
//! The devices lie on the ends of a pair of virtual cables. The kernel delivers between addresses
//! of one machine in memory, but for a sender that names its interface, as Soft-RoCE does.

use super::{counts, granted, has_device, may_change_the_machine, program, record, records, shell};
use super::{wait_for_packets, wait_for_port};
use serde_json::Value;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wiregauge_test_support::bounded::{LIMIT, output, start};

/// The two devices, taken away when it is dropped.
struct TwoDevices(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl TwoDevices {
    fn make() -> TwoDevices {
        static ONE: Mutex<()> = Mutex::new(());
        let two = TwoDevices(ONE.lock().unwrap_or_else(PoisonError::into_inner));
        shell("modprobe veth; ip link add cable0 type veth peer name cable1");
        shell("echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter");
        for (number, device) in ["left0", "right0"].into_iter().enumerate() {
            let conf = format!("/proc/sys/net/ipv4/conf/cable{number}");
            shell(&format!("echo 1 >{conf}/accept_local; echo 0 >{conf}/rp_filter"));
            shell(&format!("ip addr add 10.78.0.{}/24 dev cable{number}", number + 1));
            shell(&format!("ip link set cable{number} up"));
            shell(&format!("rdma link add {device} type rxe netdev cable{number}"));
        }
        ["left0", "right0"].into_iter().for_each(wait_for_port);
        two
    }
}

impl Drop for TwoDevices {
    fn drop(&mut self) {
        for device in ["left0", "right0"] {
            let _ = output(Command::new("rdma").args(["link", "delete", device]));
        }
        let _ = output(Command::new("ip").args(["link", "delete", "cable0"]));
    }
}

/// The setting in effect at an end.
fn at(record: &Value, end: &str, name: &str) -> String {
    let settings = &record["runs"][0]["rounds"][0][end]["effective_settings"];
    settings[name].as_str().unwrap_or_else(|| panic!("{name} in {settings}")).to_string()
}

fn warned(record: &Value, kind: &str) -> bool {
    let warnings = record["runs"][0]["warnings"].as_array().unwrap();
    warnings.iter().any(|warning| warning["kind"] == kind)
}

#[test]
fn each_end_has_the_device_that_it_was_given() {
    if !may_change_the_machine() {
        return;
    }
    let _two = TwoDevices::make();
    let all = ["", "--connect cm", "--service ud"];
    let commands = all.map(|more| {
        let line = "latency --transport verbs --device left0,right0 --port 1,1 --count 60 --check";
        format!("{line} {more}")
    });
    for (record, more) in records(&commands).iter().zip(all) {
        assert_eq!(at(record, "client", "device"), "left0", "{more}");
        assert_eq!(at(record, "server", "device"), "right0", "{more}");
        assert!(!warned(record, "adapter_loopback"), "{more}");
    }
    let record = record("latency --transport verbs --device left0 --count 60 --wait block");
    assert!(warned(&record, "adapter_loopback"), "both ends on one port");
}

/// A program in place of ssh that runs the last of its words on this machine.
fn ssh_to_this_machine(folder: &std::path::Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("ssh");
    let text = "#!/bin/sh\nexport SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n\
                for last; do :; done\nexec sh -c \"$last\"\n";
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    script
}

#[test]
fn every_active_port_is_a_rail_with_figures_of_its_own() {
    if !may_change_the_machine() {
        return;
    }
    let _two = TwoDevices::make();
    let scratch = std::env::temp_dir().join(format!("wiregauge-rails-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let ssh = ssh_to_this_machine(&scratch);
    let binary = program().get_program().to_string_lossy().into_owned();
    let reach = format!("--to far --ssh {} --remote-binary {binary}", ssh.display());
    for (line, at_once) in
        [("latency --count 60 --wait block", "each"), ("bandwidth --time 50ms --wait block", "all")]
    {
        let record = record(&format!("{line} --transport verbs {reach} --rails {at_once}"));
        let rails = &record["plan"]["rails"];
        let found = |ports: &Value| -> Vec<String> {
            let name = |port: &Value| port["device"].as_str().unwrap().to_string();
            ports.as_array().unwrap().iter().map(name).collect()
        };
        let here = found(&rails["here"]);
        assert_eq!(here, found(&rails["hosts"][0]), "one machine: {rails}");
        assert!(here.iter().any(|name| name == "left0") && here.iter().any(|n| n == "right0"));
        assert_eq!(rails["at_once"], at_once);
        let runs = record["runs"].as_array().unwrap();
        assert_eq!(runs.len(), here.len());
        for (run, device) in runs.iter().zip(&here) {
            for end in ["client", "server"] {
                let settings = &run["rounds"][0][end]["effective_settings"];
                assert_eq!(settings["device"].as_str(), Some(&**device), "{at_once}: {end}");
            }
            assert!(counts(run, "received") > 0, "{device}");
            let label = run["label"].as_str().unwrap();
            assert!(label.contains(&format!("({device}/1)")), "{label}");
            assert_eq!(run["rounds"][0]["overlap"].is_null(), at_once == "each", "{device}");
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
}

#[test]
fn a_queue_pair_has_what_was_asked_for() {
    if !has_device() {
        return;
    }
    let all = ["exchange", "cm"];
    let commands = all.map(|connect| {
        format!(
            "latency --transport verbs --count 40 --flow-label 77 --traffic-class 106 --retries 6 \
             --rnr-retries 5 --qp-timeout 15 --rnr-timer 10 --read-depth 4 --connect {connect}"
        )
    });
    for (record, connect) in records(&commands).iter().zip(all) {
        for (name, asked) in [
            ("flow_label", "77"),
            ("traffic_class", "106"),
            ("qp_timeout", "15"),
            ("rnr_timer", "10"),
            ("read_depth", "4"),
            ("pkey_index", "0"),
            ("service_level", "0"),
        ] {
            assert_eq!(granted(record, name), asked, "{connect}: {name}");
        }
        // The manager has its own way to tell the other end of the retries.
        if connect == "exchange" {
            assert_eq!(granted(record, "retries"), "6");
            assert_eq!(granted(record, "rnr_retries"), "5");
        }
    }
}

#[test]
fn an_attribute_that_the_device_does_not_have_is_warned_of() {
    if !has_device() {
        return;
    }
    // Soft-RoCE takes a service level and has none.
    let record = record(
        "latency --transport verbs --count 40 --wait block --service-level 3 --qp-timeout 15",
    );
    assert_eq!(granted(&record, "service_level"), "0");
    let warnings = record["runs"][0]["warnings"].as_array().unwrap();
    let of_kind = |one: &&Value| one["kind"] == "not_granted";
    let said: Vec<_> = warnings.iter().filter(of_kind).map(|one| &one["sentence"]).collect();
    let sentence = |role| format!("--service-level 3 was asked of the {role}, which has 0");
    assert_eq!(said, [&sentence("client"), &sentence("server")]);
}

#[test]
fn a_sender_sleeps_until_its_sends_complete_where_that_is_asked_for() {
    if !may_change_the_machine() {
        return;
    }
    let _two = TwoDevices::make();
    // Without a delay Soft-RoCE completes a send within the call that posts it. The delay is much
    // longer than the emulated machine is ever paused: else sends would complete before a poll.
    shell("modprobe sch_netem; tc qdisc add dev cable0 root netem delay 100ms");
    let commands = ["busy", "block"].map(|wait| {
        format!(
            "bandwidth --transport verbs --device left0,right0 --operation write --signal-every 1 \
             --send-depth 4 --qp-timeout 18 --count 100 --wait busy --send-wait {wait}"
        )
    });
    let slept = records(&commands).into_iter().map(|record| {
        let client = &record["runs"][0]["rounds"][0]["client"];
        client["voluntary_switches"].as_u64().unwrap()
    });
    let [busy, block] = slept.collect::<Vec<_>>()[..] else { unreachable!("two commands") };
    // 25 queues full of sends.
    assert!(block >= busy + 12, "{block} sleeps, {busy} where it polls");
}

#[test]
fn a_device_that_is_removed_in_mid_run_ends_the_round_and_what_came_is_kept() {
    if !may_change_the_machine() {
        return;
    }
    for wait in ["busy", "block"] {
        let _two = TwoDevices::make();
        let scratch = std::env::temp_dir().join(format!("wiregauge-away-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch).unwrap();
        let out = scratch.join("run");
        let mut command = program();
        command
            .current_dir(&scratch)
            .args(["latency", "--transport", "verbs", "--device", "left0,right0", "--wait", wait])
            .args(["--time", "120s", "--rounds", "1", "--out"])
            .arg(&out);
        let mut controller = start(&mut command);
        wait_for_packets(&mut controller);
        // It comes back when the processes that use the device have let go of it.
        shell("rdma link delete right0");
        let ended = controller.end(LIMIT);
        let told = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(3), "{wait}: {told}");
        assert!(told.contains("right0 was removed while the round ran"), "{wait}: {told}");
        let text = std::fs::read_to_string(out.join("record.json")).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert!(record["runs"][0]["counts"]["received"].as_u64().unwrap() > 0, "{wait}: {told}");
        let _ = std::fs::remove_dir_all(&scratch);
    }
}
