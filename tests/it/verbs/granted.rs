//! What an end was granted of what it asked for: inline payloads, completions, one buffer.

use super::{counts, granted, has_device, record};

#[test]
fn what_is_inline_and_signalled_stands_in_the_record() {
    if !has_device() {
        return;
    }
    let asked = "latency --transport verbs --wait block --count 100 --check --size 64";
    let usual = record(asked);
    assert_eq!((granted(&usual, "inline"), granted(&usual, "signal_every")), yes("on", "64"));
    let off = record(&format!("{asked} --inline off"));
    assert_eq!((granted(&off, "inline"), granted(&off, "signal_every")), yes("off", "1"));
    // Who polls learns from the next message that the last send has completed.
    let polls = record("latency --transport verbs --count 100 --size 64 --inline off");
    assert_eq!((granted(&polls, "inline"), granted(&polls, "signal_every")), yes("off", "64"));
    let each = record(&format!("{asked} --signal-every 1 --send-depth 16"));
    assert_eq!((granted(&each, "inline"), granted(&each, "signal_every")), yes("on", "1"));
    let larger = record(&format!("{asked}000"));
    assert_eq!(granted(&larger, "inline"), "off");
}

#[test]
fn how_completions_of_sends_are_waited_for_stands_in_the_record() {
    if !has_device() {
        return;
    }
    let asked = "bandwidth --transport verbs --time 100ms --size 4096 --wait";
    for (how, waits) in [
        ("busy", "busy"),
        ("busy --send-wait block", "block"),
        ("block --send-wait busy", "busy"),
        ("adaptive", "adaptive"),
    ] {
        assert_eq!(granted(&record(&format!("{asked} {how}")), "send_wait"), waits, "{how}");
    }
}

#[test]
fn as_many_receives_are_posted_as_were_asked_for() {
    if !has_device() {
        return;
    }
    const LATENCY: &str = "latency --transport verbs --count 300 --check";
    for (depth, words) in [
        ("11", "bandwidth --transport verbs --time 50ms --size 4096"),
        ("1", "bandwidth --transport verbs --time 50ms --size 64 --wait block"),
        ("3", "bandwidth --transport verbs --time 50ms --operation write_imm --size 64"),
        ("2", &format!("{LATENCY} --size 64")),
        ("2", &format!("{LATENCY} --size 4096 --wait block")),
        ("2", &format!("{LATENCY} --size 4096 --burst 4 --inline off")),
        ("2", &format!("{LATENCY} --size 64 --operation write_imm")),
        ("3", &format!("{LATENCY} --size 64 --service uc --queue-pairs 2 --wait block")),
    ] {
        let words = format!("{words} --receive-depth {depth}");
        let record = record(&words);
        assert_eq!(granted(&record, "receive_depth"), depth, "{words}");
        let run = &record["runs"][0];
        assert_eq!(counts(run, "received"), counts(run, "sent"), "{words}");
        assert!(counts(run, "received") > 0, "{words}");
    }
}

fn yes(inline: &str, signal: &str) -> (String, String) {
    (inline.to_string(), signal.to_string())
}

#[test]
fn messages_may_share_one_buffer() {
    if !has_device() {
        return;
    }
    for (operation, numbered) in [("send", "order of arrival"), ("write_imm", "slot of the write")]
    {
        let asked = format!("latency --transport verbs --operation {operation} --count 100");
        let one = record(&format!("{asked} --size 4096 --same-buffer"));
        assert_eq!(granted(&one, "same_buffer"), "on");
        assert_eq!(granted(&one, "numbered_by"), numbered);
        let run = &one["runs"][0];
        assert_eq!(counts(run, "received"), counts(run, "sent"), "{operation}");
    }
    for operation in ["send", "write", "read"] {
        let asked = format!("bandwidth --transport verbs --operation {operation} --count 500");
        let one = record(&format!("{asked} --size 65536 --window 64 --same-buffer"));
        assert_eq!(counts(&one["runs"][0], "lost"), 0, "{operation}");
        assert_eq!(granted(&one, "same_buffer"), "on");
    }
}
