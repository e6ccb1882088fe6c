//! Threads that sleep over several connections, of which the adapter tells those that were armed.

use super::{counts, has_device, records};
use serde_json::Value;

/// Times that the first end of the first round slept.
fn slept(record: &Value) -> u64 {
    record["runs"][0]["rounds"][0]["client"]["voluntary_switches"].as_u64().unwrap()
}

fn nothing_is_missing(record: &Value, words: &str) {
    let run = &record["runs"][0];
    let wrong = ["lost", "corrupt", "duplicates", "unfinished"].map(|name| counts(run, name));
    assert_eq!(wrong, [0; 4], "{words}");
    assert!(counts(run, "received") > 0, "{words}");
}

#[test]
fn nodes_sleep_over_all_their_connections() {
    if !has_device() {
        return;
    }
    let nodes = "exchange --transport verbs --nodes 3 --time 500ms --check";
    let slots = format!("{nodes} --slot 10ms --size 4KiB");
    let chaotic = ["--operation write_imm", "--send-wait busy", "--queue-pairs 2", "--service ud"];
    let mut commands = ["busy", "block"].map(|wait| format!("{slots} --wait {wait}")).to_vec();
    commands
        .extend(chaotic.map(|more| format!("{nodes} --chaotic --size 1KiB --wait block {more}")));
    let records = records(&commands);
    nothing_is_missing(&records[0], &commands[0]);
    nothing_is_missing(&records[1], &commands[1]);
    // 50 slots: in each, a message is sent, completes, and another one comes. On a busy host
    // an emulated machine was seen to sleep in 12 only.
    let (busy, block) = (slept(&records[0]), slept(&records[1]));
    assert!(block >= busy + 6, "{block} sleeps, {busy} where it polls");
    // The conformance suite sleeps over several connections of every service.
    for ((record, words), more) in records.iter().zip(&commands).skip(2).zip(chaotic) {
        let run = &record["runs"][0];
        assert!(counts(run, "received") > 100, "{words}");
        assert_eq!((counts(run, "corrupt"), counts(run, "duplicates")), (0, 0), "{words}");
        if more != "--service ud" {
            nothing_is_missing(record, words);
        }
    }
}

#[test]
fn a_server_of_several_connections_sleeps_until_one_has_a_request() {
    if !has_device() {
        return;
    }
    let load = "load --transport verbs --threads 2 --rate 200 --time 500ms";
    let rpc = "rpc --transport verbs --connections 3 --clients 6 --workload 200B --count 400 \
               --no-unloaded";
    // Requests of a closed loop come while a server works: on a busy machine it hardly sleeps.
    let commands = [load, &format!("{load} --shared-receive-queue"), rpc]
        .map(|words| format!("{words} --check --wait block"));
    for ((record, words), least) in records(&commands).iter().zip(&commands).zip([10, 10, 1]) {
        nothing_is_missing(record, words);
        let server = &record["runs"][0]["rounds"][0]["server"];
        assert!(server["effective_settings"]["connections"] != "1", "{words}");
        let slept = server["voluntary_switches"].as_u64().unwrap();
        assert!(slept >= least, "{words}: {slept} sleeps");
    }
}
