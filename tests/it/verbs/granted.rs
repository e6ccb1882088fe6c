//! What an end was granted of what it asked for: inline payloads, completions, one buffer.

use super::{counts, granted, has_device, records};

#[test]
fn what_is_inline_and_signalled_stands_in_the_record() {
    if !has_device() {
        return;
    }
    let asked = "latency --transport verbs --wait block --count 40 --check --size 64";
    let all = [
        (asked.to_string(), ("on", "64")),
        (format!("{asked} --inline off"), ("off", "1")),
        // Who polls learns from the next message that the last send has completed.
        ("latency --transport verbs --count 40 --size 64 --inline off".to_string(), ("off", "64")),
        (format!("{asked} --signal-every 1 --send-depth 16"), ("on", "1")),
        (format!("{asked}000"), ("off", "1")),
    ];
    let commands = all.each_ref().map(|(words, _)| words);
    for (record, (words, expected)) in records(&commands).iter().zip(&all) {
        let found = (granted(record, "inline"), granted(record, "signal_every"));
        assert_eq!((&*found.0, &*found.1), *expected, "{words}");
    }
}

#[test]
fn how_completions_of_sends_are_waited_for_stands_in_the_record() {
    if !has_device() {
        return;
    }
    let asked = "bandwidth --transport verbs --time 50ms --size 4096 --wait";
    let all = [
        ("busy", "busy"),
        ("busy --send-wait block", "block"),
        ("block --send-wait busy", "busy"),
        ("adaptive", "adaptive"),
    ];
    let commands = all.map(|(how, _)| format!("{asked} {how}"));
    for (record, (how, waits)) in records(&commands).iter().zip(all) {
        assert_eq!(granted(record, "send_wait"), waits, "{how}");
    }
}

#[test]
fn as_many_receives_are_posted_as_were_asked_for() {
    if !has_device() {
        return;
    }
    const LATENCY: &str = "latency --transport verbs --count 60 --check";
    let all = [
        ("11", "bandwidth --transport verbs --time 50ms --size 4096"),
        ("1", "bandwidth --transport verbs --time 50ms --size 64 --wait block"),
        ("3", "bandwidth --transport verbs --time 50ms --operation write_imm --size 64"),
        ("2", &format!("{LATENCY} --size 64")),
        ("2", &format!("{LATENCY} --size 4096 --wait block")),
        ("2", &format!("{LATENCY} --size 4096 --burst 4 --inline off")),
        ("2", &format!("{LATENCY} --size 64 --operation write_imm")),
        ("3", &format!("{LATENCY} --size 64 --service uc --queue-pairs 2 --wait block")),
    ];
    let commands = all.map(|(depth, words)| format!("{words} --receive-depth {depth}"));
    for (record, (words, (depth, _))) in records(&commands).iter().zip(commands.iter().zip(all)) {
        assert_eq!(granted(record, "receive_depth"), depth, "{words}");
        let run = &record["runs"][0];
        assert_eq!(counts(run, "received"), counts(run, "sent"), "{words}");
        assert!(counts(run, "received") > 0, "{words}");
    }
}

#[test]
fn messages_may_share_one_buffer() {
    if !has_device() {
        return;
    }
    let latency = [("send", "order of arrival"), ("write_imm", "slot of the write")];
    let bandwidth = ["send", "write", "read"];
    let commands: Vec<String> = latency
        .iter()
        .map(|(operation, _)| {
            format!("latency --transport verbs --operation {operation} --count 40 --size 4096")
        })
        .chain(bandwidth.iter().map(|operation| {
            format!(
                "bandwidth --transport verbs --operation {operation} --count 200 --size 65536 \
                 --window 64"
            )
        }))
        .map(|command| format!("{command} --same-buffer"))
        .collect();
    let records = records(&commands);
    for (record, (operation, numbered)) in records.iter().zip(latency) {
        assert_eq!(granted(record, "same_buffer"), "on");
        assert_eq!(granted(record, "numbered_by"), numbered);
        let run = &record["runs"][0];
        assert_eq!(counts(run, "received"), counts(run, "sent"), "{operation}");
    }
    for (record, operation) in records[latency.len()..].iter().zip(bandwidth) {
        assert_eq!(counts(&record["runs"][0], "lost"), 0, "{operation}");
        assert_eq!(granted(record, "same_buffer"), "on");
    }
}
