//! What a device does not have is refused in a sentence, before anything runs.

use super::{has_device, run};

/// The command with `words` is refused as invalid, by a sentence with `names` in it.
pub fn assert_refused(words: &str, names: &str) {
    let refused = run(&format!("{words} --transport verbs --count 100"));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{words}: {told}");
    assert!(told.contains(names) && !told.contains("panicked"), "{words}: {told}");
}

#[test]
fn what_no_device_has_is_refused() {
    if !has_device() {
        return;
    }
    for (words, names) in [
        ("latency --device nosuch0", "nosuch0"),
        ("latency --port 99", "--port 99"),
        ("latency --gid-index 250", "--gid-index 250"),
        ("latency --size 64KiB --inline 64KiB", "--inline 65536"),
        ("latency --service ud --size 4096 --mtu 1024", "--size 4096"),
    ] {
        assert_refused(words, names);
    }
}

#[test]
fn what_soft_roce_lacks_is_refused() {
    if !has_device() {
        return;
    }
    // It has one partition key and no clock, limits no rate, moderates no events and locks all
    // pages.
    for (words, names) in [
        ("latency --pkey-index 9", "has 1 partition key,"),
        ("latency --rate-limit 1gbit", "--rate-limit"),
        ("latency --cq-count 16 --cq-period 8us", "--cq-count"),
        ("latency --on-demand explicit", "does not support --on-demand explicit"),
        ("latency --on-demand implicit", "does not support --on-demand implicit"),
        ("latency --ece", "does not support --ece"),
        ("oneway --stamp-complete device", "--stamp-complete cpu"),
    ] {
        assert_refused(words, names);
    }
}
