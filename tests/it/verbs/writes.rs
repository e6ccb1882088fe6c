//! Writes that a receiver finds by polling its memory: none is written over another.

use super::{counts, has_device, records, run};

/// All that these commands sent has come, and as it was sent.
fn are_whole(commands: &[String]) {
    for (record, words) in records(commands).iter().zip(commands) {
        let run = &record["runs"][0];
        assert!(counts(run, "sent") > 100, "{words}");
        assert_eq!(counts(run, "received"), counts(run, "sent"), "{words}");
        let wrong = ["lost", "corrupt", "duplicates", "unfinished"].map(|name| counts(run, name));
        assert_eq!(wrong, [0; 4], "{words}");
    }
}

fn is_refused(words: &str, names: &str) {
    let refused = run(&format!("{words} --transport verbs"));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && told.contains(names), "{words}: {told}");
}

/// The receiver has fewer slots than the sender's queue has work requests, so a sender that did not
/// wait would overtake it.
#[test]
fn a_writer_waits_for_the_slots_that_the_receiver_has_taken() {
    if !has_device() {
        return;
    }
    // Answered, and of more clients than there are slots.
    let mut commands = vec![
        "load --transport verbs --operation write --clients 20 --receive-depth 3 --time 500ms \
         --check"
            .to_string(),
    ];
    // The second has a burst for each answer, and laps of both rings that drift apart.
    commands.extend(["latency --burst 8 --count 800", "oneway --burst 8 --count 20000"].map(
        |more| format!("{more} --transport verbs --operation write --receive-depth 8 --check"),
    ));
    commands.extend(
        [
            "--rate 50k --receive-depth 1",
            "--rate 50k --receive-depth 5 --post extended",
            "--outstanding 8 --receive-depth 3 --inline off",
            "--outstanding 8 --receive-depth 2 --queue-pairs 2",
            "--outstanding 1 --receive-depth 4 --send-depth 1",
        ]
        .map(|more| {
            format!(
                "oneway --transport verbs --operation write --size 64 --count 2000 --check {more}"
            )
        }),
    );
    are_whole(&commands);
    is_refused("oneway --operation write --burst 8 --receive-depth 7", "needs as many slots");
    let lossy = "oneway --operation write --service uc --outstanding 4";
    is_refused(lossy, "of a service that loses messages");
}

#[test]
fn nodes_find_writes_in_their_memory() {
    if !has_device() {
        return;
    }
    let nodes = "exchange --transport verbs --nodes 3 --time 500ms --check";
    let all = [
        "--chaotic --size 1KiB --queue 10 --receive-queue 11 --operation write",
        "--chaotic --size 64KiB --operation write --queue-pairs 2",
        "--schedule all-to-one --slot 1ms --size 4KiB --operation write",
        // A message that is shorter than its slot.
        "--chaotic --size 1KiB --spread 50% --operation write_imm",
    ];
    are_whole(&all.map(|more| format!("{nodes} {more}")));
    let lossy = "exchange --nodes 3 --operation write --service uc";
    is_refused(lossy, "of a service that loses messages");
    let of_lengths = "exchange --nodes 3 --chaotic --spread 50% --operation write";
    is_refused(of_lengths, "needs messages of one length");
    is_refused("exchange --nodes 3 --operation read", "--operation read sends no messages");
}
