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
