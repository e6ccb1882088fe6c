//! Many queue pairs of an end: each is connected, each carries messages, and what a device cannot
//! is refused with its limits.

use super::refusals::assert_refused;
use super::{counts, granted, has_device, record, records};

#[test]
fn hundreds_of_queue_pairs_carry_messages_in_turn() {
    if !has_device() {
        return;
    }
    const TAILS: &str = "--inline off --signal-every 4";
    const SHARED: &str = "--shared-receive-queue --post extended";
    let cases = [
        (256, "exchange", TAILS),
        (256, "exchange", SHARED),
        (256, "cm", TAILS),
        (1024, "exchange", SHARED),
    ];
    // Each queue pair has two messages.
    let commands = cases.map(|(pairs, connect, words)| {
        format!(
            "latency --transport verbs --queue-pairs {pairs} --connect {connect} --burst 64 \
             --size 64 --wait block --count {} --warmup 0 --check {words}",
            2 * pairs
        )
    });
    for (record, (pairs, connect, words)) in records(&commands).iter().zip(cases) {
        let count = 2 * pairs;
        let run = &record["runs"][0];
        let of_case = format!("{pairs} {connect} {words}");
        assert_eq!(granted(record, "queue_pairs"), pairs.to_string(), "{of_case}");
        assert_eq!(counts(run, "received"), count, "{of_case}");
        let wrong = ["lost", "corrupt", "duplicates"].map(|name| counts(run, name));
        assert_eq!(wrong, [0; 3], "{of_case}");
    }
}

#[test]
fn a_stream_goes_over_a_thousand_queue_pairs() {
    if !has_device() {
        return;
    }
    let all = ["--operation write --size 4096", "--size 64"];
    let commands = all.map(|words| {
        format!(
            "bandwidth --transport verbs --queue-pairs 1024 --window 2048 --time 300ms --wait \
             block {words}"
        )
    });
    for (record, words) in records(&commands).iter().zip(all) {
        let run = &record["runs"][0];
        assert_eq!(granted(record, "queue_pairs"), "1024", "{words}");
        assert_eq!(counts(run, "sent"), counts(run, "received"), "{words}");
        assert!(counts(run, "sent") > 1024, "{words}: every queue pair has sent");
    }
}

/// Soft-RoCE's completion queues have 32767 entries, of which each queue pair needs two.
#[test]
fn as_many_queue_pairs_as_the_device_has_entries_for_carry_messages() {
    if !has_device() {
        return;
    }
    const PAIRS: u64 = 16383;
    let count = 2 * PAIRS;
    let record = record(&format!(
        "bandwidth --transport verbs --queue-pairs {PAIRS} --send-depth 1 --receive-depth 1 \
         --window 2048 --size 64 --wait block --count {count} --warmup 0 --check"
    ));
    let run = &record["runs"][0];
    assert_eq!(granted(&record, "queue_pairs"), PAIRS.to_string());
    assert_eq!(counts(run, "received"), count);
    let wrong = ["lost", "corrupt", "duplicates"].map(|name| counts(run, name));
    assert_eq!(wrong, [0; 3]);
}

#[test]
fn more_than_a_device_or_a_frame_has_is_refused_with_the_limits() {
    if !has_device() {
        return;
    }
    for (words, names) in [
        // Soft-RoCE has completion queues of 32767 entries.
        ("latency --queue-pairs 16384", "at most 32767 entries"),
        ("latency --queue-pairs 16385", "use 1 to 16384"),
        ("bandwidth --queue-pairs 16384 --send-depth 1000", "use --send-depth 1 to 512"),
        ("latency --queue-pairs 16384 --threads 5", "at most 65536"),
        ("bandwidth --queue-pairs 8192 --size 16MiB", "--shared-receive-queue"),
    ] {
        assert_refused(words, names);
    }
}
