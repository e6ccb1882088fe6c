//! `exchange` as a user meets it: nodes by slots and with full queues, files of slots, and what is
//! kept when a node dies.
//!
//! No figure of time decides here: counts, who sent to whom, and what is said of them do.

use crate::support::controller::{Controller, Scratch, measured, samples, wiregauge, words};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use wiregauge::plan::topology::Connections;
use wiregauge::record::read_record;
use wiregauge::record::schema::Run;
use wiregauge::sample::Sample;

/// Sender and receiver of a sample.
fn ends(sample: &Sample) -> (u64, u32) {
    (sample.sequence >> 32, sample.thread)
}

/// All pairs of so many nodes.
fn all(nodes: u32) -> BTreeSet<(u64, u32)> {
    let from = |to: u32| (0..u64::from(nodes)).map(move |from| (from, to));
    (0..nodes).flat_map(from).filter(|(from, to)| *from != u64::from(*to)).collect()
}

fn nothing_is_missing(run: &Run) {
    let counts = &run.counts;
    assert!(counts.sent > 0 && counts.sent == counts.received, "{counts:?}");
    assert_eq!((counts.lost, counts.unfinished, counts.corrupt, counts.gaps), (0, 0, 0, 0));
}

#[test]
fn four_nodes_exchange_over_each_transport_and_lose_nothing() {
    for transport in ["tcp", "shm", "unix", "unixgram"] {
        let sleeps = if transport == "shm" { "--chaotic" } else { "--chaotic --wait block" };
        for how in ["--slot 2ms", "--chaotic --queue 4 --receive-queue 5", sleeps] {
            let (scratch, record) = measured(
                "exchange",
                &format!("--nodes 4 --size 4KiB --transport {transport} {how} --rounds 1 --check"),
            );
            let run = &record.runs[0];
            nothing_is_missing(run);
            let kept = samples(&scratch, 0);
            let seen: BTreeSet<_> = kept.iter().map(ends).collect();
            // On a busy machine a node of slots may miss its few turns of one of them.
            assert!(seen.is_subset(&all(4)) && seen.len() > 6, "{transport} {how}: {seen:?}");
            assert!(kept.iter().all(|one| one.size == 4096 && one.receive_ns > one.submit_ns));
            let late = kept.iter().all(|one| one.submit_ns >= one.intended_ns);
            assert!(late || how.starts_with("--chaotic"), "nothing is sent before its slot");
            let details = run.details.as_ref().unwrap();
            assert_eq!(details["connections"].as_array().unwrap().len(), 12);
            assert_eq!(details["nodes"].as_array().unwrap().len(), 4);
        }
    }
}

#[test]
fn nodes_that_sleep_until_their_slots_send_all_of_them_and_none_early() {
    for wait in ["block", "adaptive"] {
        let line = format!(
            "--nodes 3 --size 4KiB --transport tcp --slot 5ms --time 500ms --wait {wait} --rounds 1"
        );
        let (scratch, record) = measured("exchange", &line);
        let run = &record.runs[0];
        nothing_is_missing(run);
        let kept = samples(&scratch, 0);
        assert!(kept.iter().all(|one| one.submit_ns >= one.intended_ns), "{wait}");
        // A slot each 5 ms of each node in 50 ms and 500 ms: what was not reached is counted.
        let (seen, due) = (kept.len() as u64, 3 * 110);
        assert!(seen <= due && seen + run.counts.unsent >= due, "{wait}: {seen}");
        // Asleep between slots: 3 nodes that polled would take all of two CPUs, or of one.
        let details = run.details.as_ref().unwrap();
        for node in details["nodes"].as_array().unwrap() {
            let cpu = node["cpu"].as_f64().unwrap_or(0.0);
            assert!(cpu < 0.3, "{wait}: {node}");
        }
        // One that polls asks for no switch, on a machine that is busy either.
        let [round] = &run.rounds[..] else { panic!("one round") };
        let asleep = round.client.voluntary_switches;
        assert!(asleep >= 50, "{wait}: {asleep} sleeps");
    }
}

#[test]
fn every_rule_sends_to_those_that_it_says() {
    let pairs = |run: &Run| -> BTreeSet<(u64, u64)> {
        let details = run.details.as_ref().unwrap();
        let number = |one: &Value, end: &str| one[end].as_u64().unwrap();
        let of = |one: &Value| (number(one, "from"), number(one, "to"));
        details["connections"].as_array().unwrap().iter().map(of).collect()
    };
    let (scratch, record) = measured(
        "exchange",
        "--nodes 5 --size 1KiB --slot 1ms --rounds 1 --time 100ms --degree 1,3 \
         --schedule one-to-all,all-to-one,fixed,shift,even-odd,permutations,incast",
    );
    let expected: [&[(u64, u64)]; 8] = [
        &[(0, 1), (0, 2), (0, 3), (0, 4)],
        &[(1, 0), (2, 0), (3, 0), (4, 0)],
        &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        &[(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)],
        &[(0, 1), (2, 3)],
        &[],
        &[(1, 0)],
        &[(1, 0), (2, 0), (3, 0)],
    ];
    assert_eq!(record.runs.len(), expected.len());
    for (run, expected) in record.runs.iter().zip(expected) {
        nothing_is_missing(run);
        let (own, label) = (pairs(run), &run.label);
        let expected: BTreeSet<_> = expected.iter().copied().collect();
        assert!(own == expected || (expected.is_empty() && own.len() == 20), "{label}: {own:?}");
        // Those that send to each other are connected, and each has a connection.
        let connected = match &run.case.topology.connections {
            Connections::Pairs(pairs) => pairs.iter().copied().collect::<BTreeSet<_>>(),
            Connections::AllToAll => BTreeSet::new(),
        };
        let ordered = |(a, b): &(u64, u64)| (*a.min(b) as u32, *a.max(b) as u32);
        assert!(expected.iter().map(ordered).all(|pair| connected.contains(&pair)), "{label}");
        let has_one = |node| connected.iter().any(|(a, b)| *a == node || *b == node);
        assert!(expected.is_empty() || (0..5).all(has_one), "{label}: {connected:?}");
        assert!(connected.len() <= 5, "{label}: {connected:?}");
        let seen = samples(&scratch, run.index);
        let seen = seen.iter().map(|one| (ends(one).0, u64::from(ends(one).1)));
        assert!(seen.collect::<BTreeSet<_>>().is_subset(&own), "{label}");
    }
}

#[test]
fn sends_that_come_too_late_are_left_out_and_counted_where_that_is_asked_for() {
    let (_, record) = measured(
        "exchange",
        "--nodes 3 --size 1MiB --slot 5us --skip-late --rounds 1 --time 100ms --transport tcp",
    );
    let run = &record.runs[0];
    nothing_is_missing(run);
    let details = run.details.as_ref().unwrap();
    let of = |name: &str| details[name].as_u64().unwrap();
    // A tenth before: 22 000 slots of each node, far more than 1 MiB can be sent.
    let all = run.counts.sent + of("skipped") + of("unsent");
    assert!(of("skipped") > run.counts.sent && of("held_up") == 0, "{details}");
    assert!(all.abs_diff(3 * 22_000) <= 6, "{all} are sent, left out, or not reached");
}

#[test]
fn what_bounds_the_sum_is_said_where_the_links_are_known() {
    let nodes = "exchange --nodes 3 --size 4KiB --slot 1ms --rounds 2 --time 100ms --link 1gbit";
    for (rule, said) in [
        ("all-to-one", "limited by one link, into node0, of which"),
        ("one-to-all", "limited by one link, out of node0, of which"),
        ("fixed", "% of the rate of 3 links."),
    ] {
        let ended = wiregauge(&Scratch::new(), &words(&format!("{nodes} --schedule {rule}")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
        assert!(ended.stdout.contains("of bound %"), "{}", ended.stdout);
    }
}

#[test]
fn lengths_are_spread_around_their_mean() {
    let (scratch, record) = measured(
        "exchange",
        "--nodes 3 --size 20KiB --chaotic --spread 50% --rounds 1 --time 100ms --check",
    );
    nothing_is_missing(&record.runs[0]);
    let sizes: BTreeSet<u32> = samples(&scratch, 0).iter().map(|one| one.size).collect();
    assert!(sizes.len() > 20, "{sizes:?}");
    assert!(sizes.first() >= Some(&10_240) && sizes.last() <= Some(&30_720), "{sizes:?}");
}

#[test]
fn a_file_of_slots_is_followed_and_a_wrong_one_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let file = scratch.join("slots");
    std::fs::write(&file, "Num senders: 3\nSlot: 0\n0 -> 1\n1 -> 2\nSlot: 2\n2 -> 0 17\n").unwrap();
    let line = "exchange --nodes 3 --size 1KiB --slot 1ms --schedule slots --rounds 1 --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let seen: BTreeSet<_> = samples(&scratch, 0).iter().map(ends).collect();
    assert_eq!(seen, [(0, 1), (1, 2), (2, 0)].into());
    std::fs::write(&file, "Slot: 0\n0 -> 1\n2 -> 1\n").unwrap();
    let ended = wiregauge(&scratch, &words(&line.replace("run", "again")));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("slots:3:6: node 1 receives twice in slot 0"), "{ended:?}");
    assert!(!scratch.join("again").exists());
}

#[test]
fn what_an_exchange_cannot_do_is_refused_before_anything_runs() {
    for (line, why) in [
        ("--nodes 1", "use 2 to"),
        ("--nodes 2000", "use 2 to 1025"),
        ("--nodes 4 --degree 4 --chaotic --schedule incast", "at most 3 senders"),
        ("--schedule fixed", "needs the length of a slot"),
        ("--schedule nothing --chaotic", "is no rule"),
        ("--queue 10 --receive-queue 10", "must be larger"),
        ("--queue 10 --receive-queue 11,20", "tcp posts no receives of its own"),
        ("--slot 1ms --wait block --transport shm", "use --wait busy"),
        ("--threads 2", "one thread"),
        ("--count 100", "use --time"),
        ("--size 16", "24 B or more"),
        ("--to somewhere", "use --hosts"),
        ("--chaotic --wait block --transport shm", "use --wait busy"),
    ] {
        let scratch = Scratch::new();
        let ended = wiregauge(&scratch, &words(&format!("exchange --out run {line}")));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(why), "{line}: {}", ended.stderr);
        assert!(!scratch.join("run").exists(), "{line}");
    }
}

#[test]
fn more_nodes_than_descriptors_are_refused_and_as_many_as_are_allowed_run() {
    let scratch = Scratch::new();
    // Three of each of 8 nodes, and 32.
    let under = |limit: u32| {
        let script = format!(
            "ulimit -n {limit} && exec \"$0\" exchange --nodes 8 --size 1KiB --slot 1ms \
             --time 100ms --rounds 1 --out run"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_wiregauge")]);
        Controller::of(&scratch, shell).end()
    };
    let ended = under(55);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let why = "8 nodes need 56 file descriptors in the process that commands them, and the limit \
               here is 55: use fewer nodes, or raise it (ulimit -Hn 56, as root)\n";
    assert!(ended.stderr.ends_with(why), "{ended:?}");
    assert!(!scratch.join("run").exists());
    let ended = under(56);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    nothing_is_missing(&read_record(&scratch.join("run")).unwrap().runs[0]);
}

#[test]
fn a_node_that_is_killed_is_named_and_what_the_others_have_is_kept() {
    for transport in ["tcp", "shm"] {
        let scratch = Scratch::new();
        let line = format!(
            "exchange --nodes 4 --size 1KiB --slot 1ms --time 60s --rounds 1 --transport \
             {transport} --out run"
        );
        let controller = Controller::start(&scratch, &words(&line));
        controller.await_messages(100);
        let agents = controller.agents();
        assert_eq!(agents.len(), 4);
        agents[2].signal(Signal::KILL);
        let ended = controller.end();
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.survivors.is_empty(), "{ended:?}");
        assert!(ended.took.as_secs() < 30, "{ended:?}");
        let record = read_record(&scratch.join("run")).unwrap();
        let fault = &record.faults[0];
        assert!(!record.complete && fault.contains("node 2"), "{fault}");
        assert!(fault.contains("killed by signal 9"), "{fault}");
        assert!(samples(&scratch, 0).len() >= 20, "{transport}");
        // Rates are over what there was of the round, which is far from its 60 s.
        let run = &record.runs[0];
        let part = run.details.as_ref().unwrap()["over_time"]["seconds"].as_f64().unwrap();
        assert!(50.0 * part <= run.rounds[0].length_ns / 1e9, "{part}");
    }
}

#[test]
fn slots_by_routes_share_no_link_and_a_wrong_file_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let file = scratch.join("net");
    let text = "node0 - a\nnode1 - a\nnode2 - b\nnode3 - b # the other leaf\na - b\n";
    std::fs::write(&file, text).unwrap();
    let line = "exchange --nodes 4 --size 1KiB --slot 1ms --routes net --rounds 1 --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    nothing_is_missing(&record.runs[0]);
    let spec = serde_json::to_value(&record.runs[0].case).unwrap();
    let transfers: Vec<(u32, u32, u32)> =
        serde_json::from_value(spec["spec"]["transfers"].clone()).unwrap();
    // Of 12 transfers 4 go each way over the one link between the leaves.
    let over = |from: &u32, to: &u32| from / 2 == 0 && to / 2 == 1;
    let slots: BTreeSet<u32> =
        transfers.iter().filter(|(_, from, to)| over(from, to)).map(|one| one.0).collect();
    assert_eq!((transfers.len(), slots.len()), (12, 4), "{transfers:?}");
    std::fs::write(&file, format!("{text}node1 a\n")).unwrap();
    let ended = wiregauge(&scratch, &words(&line.replace("run", "again")));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("net:6:1: a line has one link"), "{ended:?}");
}

#[test]
fn more_nodes_than_cpus_all_come_to_their_end() {
    for transport in ["tcp", "shm"] {
        let line = format!(
            "--nodes 64 --size 1KiB --transport {transport} --slot 20ms --time 300ms --rounds 1 \
             --timeout 60s"
        );
        let (_, record) = measured("exchange", &line);
        nothing_is_missing(&record.runs[0]);
    }
}
