//! The pools of a server of `load`, which over verbs are its queues.

use super::{has_device, record};

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
