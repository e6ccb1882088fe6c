//! The pools of a server of `load`, which over verbs are its queues.

use super::{counts, has_device, record, records};

#[test]
fn the_pools_of_a_server_are_its_queues_and_each_answer_completes() {
    if !has_device() {
        return;
    }
    let line = "load --transport verbs --clients 16 --tx-buffers 8 --rx-buffers 24 --time 500ms";
    let record = record(line);
    let round = &record["runs"][0]["rounds"][0];
    let granted = |end: &str, name: &str| round[end]["effective_settings"][name].clone();
    assert_eq!(granted("server", "send_depth"), "8");
    assert_eq!(granted("server", "receive_depth"), "24");
    assert_ne!(granted("client", "receive_depth"), "24");
    let of = |metric: &str| {
        let rates = record["runs"][0]["rates"].as_array().unwrap();
        let found = rates.iter().find(|rate| rate["metric"] == metric);
        found.unwrap_or_else(|| panic!("no {metric}"))["rate"]["value"].as_f64().unwrap()
    };
    // Each answer is a completion of its own: so many polls that brought some, times what they
    // brought, are the answers.
    let completed = of("full_polls") * of("completions_per_poll");
    assert!((0.9..=1.1).contains(&completed), "{completed} completions an answer");
}

#[test]
fn the_connections_of_a_server_take_their_messages_from_one_queue() {
    if !has_device() {
        return;
    }
    let commands = ["rc", "ud"].map(|service| {
        format!(
            "rpc --transport verbs --service {service} --shared-receive-queue --connections 8 \
             --workload 200B --clients 8 --check --no-unloaded --count 400"
        )
    });
    for (record, line) in records(&commands).iter().zip(&commands) {
        let run = &record["runs"][0];
        let granted = &run["rounds"][0]["server"]["effective_settings"];
        assert_eq!(granted["shared_receive_queue"], "on", "{line}");
        assert_eq!(granted["connections"], "8", "{line}");
        let wrong = ["lost", "corrupt", "duplicates"].map(|name| counts(run, name));
        assert_eq!(wrong, [0; 3], "{line}");
        assert!(counts(run, "received") >= 400, "{line}");
    }
}

#[test]
fn requests_that_find_no_shared_receive_are_refused_sent_again_and_warned_of() {
    if !has_device() {
        return;
    }
    let line = "load --transport verbs --shared-receive-queue --threads 2 --clients 64 \
                --tx-buffers 8 --rx-buffers 16 --time 500ms";
    let record = record(line);
    let run = &record["runs"][0];
    let server = &run["rounds"][0]["server"];
    assert_eq!(server["effective_settings"]["receive_depth"], "16", "of both connections");
    assert_eq!(counts(run, "lost"), 0);
    assert!(counts(run, "received") > 64);
    let warnings = run["warnings"].as_array().unwrap();
    let counters = &server["final_counters"];
    assert!(warnings.iter().any(|one| one["kind"] == "receiver_not_ready"), "{counters}");
}
