//! Asked, granted and seen: the device that carried the messages, the program that
//! ran, buffers that the kernel cut, and the places where datagrams were lost.

use crate::support::controller::{Controller, Ended, PublicCopy, Scratch, wiregauge, words};
use crate::support::far::{FarHost, await_link};
use crate::support::program::PROGRAM;
use crate::support::testbed::run;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use wiregauge::explain::{Cause, Named};
use wiregauge::record::read_record;
use wiregauge::record::schema::{RateMetric, Record, Usage};

fn record_of(scratch: &Scratch, ended: &Ended) -> Record {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    fs::remove_dir_all(scratch.join("run")).unwrap();
    record
}

fn measured(scratch: &Scratch, line: &str) -> Record {
    let ended = wiregauge(scratch, &words(&format!("{line} --out run")));
    record_of(scratch, &ended)
}

/// Returns the sentences of a run's warnings of this kind.
fn warnings(record: &Record, kind: &str) -> Vec<String> {
    let all = record.runs[0].warnings.iter().filter(|warning| warning.kind == kind);
    all.map(|warning| format!("{} ({})", warning.sentence, warning.advice)).collect()
}

fn counter(usage: &Usage, name: &str) -> u64 {
    usage.final_counters.get(name).map_or(0, |count| count.parse().unwrap())
}

/// Adds a second wire between two hosts, in the subnet of the first.
fn add_wire(host: &FarHost) {
    let [here, there] = host.namespaces();
    run(&format!("ip -n {here} link add a1 type veth peer name b1 netns {there}"));
    run(&format!("ip -n {here} addr add 198.18.0.101/24 dev a1"));
    run(&format!("ip -n {there} addr add 198.18.0.102/24 dev b1"));
    run(&format!("ip -n {here} link set a1 up"));
    run(&format!("ip -n {there} link set b1 up"));
    await_link(here, "a1");
    await_link(there, "b1");
}

#[test]
fn each_rail_over_ip_carries_the_messages_of_its_own_case() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    add_wire(&host);
    for rails in ["each", "all"] {
        let line = format!(
            "latency --transport udp --wait block --count 1000 --rounds 1 --to far --rails {rails} \
             --remote-binary {PROGRAM} --out {rails} --ssh"
        );
        let mut words = words(&line);
        words.push(&host.ssh);
        let ended = wiregauge(&scratch, &words);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = read_record(&scratch.join(rails)).unwrap();
        let named = record.runs.iter().map(|run| record.plan.rail(&run.case).unwrap());
        assert_eq!(named.collect::<Vec<_>>(), ["0 (a1,b1)", "1 (wire0,wirefar)"]);
        for (run, ends) in record.runs.iter().zip([["a1", "b1"], ["wire0", "wirefar"]]) {
            let round = &run.rounds[0];
            for (end, asked) in [&round.client, &round.server].into_iter().zip(ends) {
                assert_eq!(end.effective_settings["bound_device"], asked, "{rails}");
                let sent = counter(end, &format!("counter.net.{asked}.tx_packets"));
                assert!(sent > 1000, "{rails}: {sent} by {asked}");
            }
        }
        assert_eq!(warnings(&record, "another_device"), [""; 0]);
    }
}

#[test]
fn messages_go_by_the_interface_that_was_asked_for_where_two_are_in_one_subnet() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    add_wire(&host);
    for transport in ["tcp", "udp"] {
        let line = format!(
            "latency --transport {transport} --wait block --count 1000 --rounds 1 --to far \
             --interface a1,b1 --remote-binary {PROGRAM} --out run --ssh"
        );
        let mut words = words(&line);
        words.push(&host.ssh);
        let record = record_of(&scratch, &wiregauge(&scratch, &words));
        let round = &record.runs[0].rounds[0];
        for (end, asked, other) in
            [(&round.client, "a1", "wire0"), (&round.server, "b1", "wirefar")]
        {
            assert_eq!(end.effective_settings["interface"], asked, "{transport}");
            assert_eq!(end.effective_settings["bound_device"], asked, "{transport}");
            let sent = counter(end, &format!("counter.net.{asked}.tx_packets"));
            let by_other = counter(end, &format!("counter.net.{other}.tx_packets"));
            assert!(sent > 1000 && by_other < 100, "{transport}: {sent} by {asked}, {by_other}");
        }
        assert_eq!(warnings(&record, "another_device"), [""; 0]);
    }
}

/// Returns the receive buffer of the server in bytes.
fn granted_buffer(record: &Record) -> u64 {
    let settings = &record.runs[0].rounds[0].server.effective_settings;
    settings["receive_buffer_bytes"].parse().unwrap()
}

#[test]
fn a_buffer_is_as_large_as_was_asked_for_or_the_sysctl_that_cuts_it_is_named() {
    let scratch = Scratch::new();
    let line =
        "latency --transport udp --wait block --count 100 --rounds 1 --receive-buffer 256MiB";
    let most = 2 * fs::read_to_string("/proc/sys/net/core/rmem_max")
        .unwrap()
        .trim()
        .parse::<u64>()
        .unwrap();
    assert!(most < 512 << 20, "this host allows {most} B");
    let record = measured(&scratch, line);
    if rustix::process::geteuid().is_root() {
        assert_eq!(
            (granted_buffer(&record), warnings(&record, "not_granted").len()),
            (512 << 20, 0)
        );
    }
    let copy = PublicCopy::new();
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy.0);
    command.args(words(&format!("{line} --out run")));
    let record = record_of(&scratch, &Controller::of(&scratch, command).end());
    assert_eq!(granted_buffer(&record), most);
    let said = warnings(&record, "not_granted");
    assert_eq!(said.len(), 2, "{said:?}");
    let asked = "--receive-buffer 256 MiB was asked of the client, which has";
    assert!(said[0].starts_with(asked) && said[0].contains("net.core.rmem_max"), "{said:?}");
}

#[test]
fn a_datagram_that_does_not_fit_into_the_send_buffer_is_refused_with_the_least_one() {
    let scratch = Scratch::new();
    let line = "latency --transport unixgram --wait block --count 100 --rounds 1";
    let with = |more: &str| wiregauge(&scratch, &words(&format!("{line} {more} --out run")));
    let refused = with("--size 100KiB --send-buffer 16KiB");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--send-buffer 16 KiB: use 51216 B or more"), "{refused:?}");
    assert_eq!(with("--size 100KiB --send-buffer 51216").code, Some(0));
}

#[test]
fn a_program_that_is_replaced_or_removed_in_mid_run_is_the_one_that_goes_on() {
    for replace in [true, false] {
        let scratch = Scratch::new();
        let program = scratch.join("program");
        fs::copy(PROGRAM, &program).unwrap();
        let mut command = Command::new(&program);
        command.args(words("latency --wait block --count 300 --rounds 4 --time 5s --out run"));
        let controller = Controller::of(&scratch, command);
        controller.await_messages(1);
        fs::remove_file(&program).unwrap();
        if replace {
            fs::write(&program, "#!/bin/sh\nexit 9\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let record = record_of(&scratch, &controller.end());
        assert!(record.complete && record.runs[0].rounds.len() == 4, "{:?}", record.faults);
        let hash = wiregauge::control::program::hash_of(PROGRAM.as_ref()).unwrap();
        assert_eq!(record.program_sha256, hash);
    }
}

#[test]
fn another_build_on_the_other_host_is_refused_with_both_hashes() {
    let scratch = Scratch::new();
    let Some(host) = FarHost::beside(&scratch) else { return };
    let program = scratch.join("rebuilt");
    fs::copy(PROGRAM, &program).unwrap();
    // Bytes behind an executable's sections change nothing that runs.
    let mut bytes = fs::read(&program).unwrap();
    bytes.push(0);
    fs::write(&program, bytes).unwrap();
    let line = format!(
        "latency --count 100 --rounds 1 --to far --remote-binary {} --out run --ssh",
        program.display()
    );
    let mut words = words(&line);
    words.push(&host.ssh);
    let refused = wiregauge(&scratch, &words);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("wiregauge on far is another build"), "{refused:?}");
    let hash = wiregauge::control::program::hash_of(&program).unwrap();
    assert!(refused.stderr.contains(&hash[..12]), "{refused:?}");
}

#[test]
fn measuring_threads_are_named_by_their_roles() {
    let scratch = Scratch::new();
    let line =
        "latency --wait block --count 1000000 --pause 100us --rounds 1 --threads 2 --out run";
    let controller = Controller::start(&scratch, &words(line));
    controller.await_messages(10);
    let mut found: Vec<String> = Vec::new();
    for agent in controller.agents() {
        let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid)).unwrap();
        let names =
            tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap());
        found.extend(
            names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with("wg-")),
        );
    }
    found.sort();
    assert_eq!(found, ["wg-client-0", "wg-client-1", "wg-server-0", "wg-server-1"]);
    controller.signal(rustix::process::Signal::INT);
    controller.end();
}

#[test]
fn datagrams_that_a_small_buffer_drops_are_counted_where_they_were_lost() {
    let scratch = Scratch::new();
    let record = measured(
        &scratch,
        "bandwidth --transport udp --wait block --size 1000 --receive-buffer 4KiB --time 200ms \
         --rounds 1",
    );
    let run = &record.runs[0];
    assert!(run.counts.lost > 100, "{:?}", run.counts);
    let server = &run.rounds[0].server;
    assert_eq!(counter(server, "socket.dropped"), run.counts.lost, "{server:?}");
    // Of one host the client's thread reads the counters.
    let client = &run.rounds[0].client;
    assert!(counter(client, "counter.Udp.RcvbufErrors") >= run.counts.lost, "{client:?}");
}

/// Returns the places and packets of the table of losses, as a program reads it.
fn losses(ended: &Ended) -> Vec<(String, u64)> {
    let (_, table) = ended.stdout.split_once("lost at").expect(&ended.stdout);
    let rows = table.lines().skip(1).take_while(|line| line.starts_with("udp "));
    rows.map(|row| {
        let fields: Vec<&str> =
            row.split("  ").map(str::trim).filter(|field| !field.is_empty()).collect();
        let [_, place, .., packets] = fields[..] else { panic!("{table}") };
        (place.to_owned(), packets.parse().unwrap())
    })
    .collect()
}

/// Runs `bandwidth` over udp in a network of its own that was prepared so; returns the messages
/// that were lost, and the places of the table with their counts. `None`: this host cannot
/// prepare it.
fn lost_after(scratch: &Scratch, prepare: &str, more: &str) -> Option<(u64, Vec<(String, u64)>)> {
    let line = format!(
        "ip link set lo up; {{ {prepare}; }} || exit 99; exec {PROGRAM} bandwidth --transport udp \
         --wait block --size 1000 --rounds 1 --out run {more}"
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &line]);
    let ended = Controller::of(scratch, command).end();
    if ended.code == Some(99) {
        eprintln!("not checked here: {prepare}: {}", ended.stderr);
        return None;
    }
    Some((record_of(scratch, &ended).runs[0].counts.lost, losses(&ended)))
}

/// A queue of 20 packets at 80 Mb/s, of a sender that is faster.
const SHORT_QUEUE: &str = "tc qdisc add dev lo root tbf rate 80mbit burst 10kb limit 20kb";
/// A queue that drops two of a hundred packets, of which few kernels have the module.
const LOSSY_QUEUE: &str = "tc qdisc add dev lo root netem loss 2%";
/// A filter that drops every tenth message.
const FILTER: &str = "nft add table ip t && \
     nft add chain ip t c '{ type filter hook input priority 0 ; }' && \
     nft add rule ip t c udp length 1008 numgen inc mod 10 == 0 counter drop";
const IN_QUEUE: &str = "queueing discipline of lo";
const IN_FILTER: &str = "packet filter, receiving";
const IN_BUFFER: &str = "receive buffer of the socket";

#[test]
fn known_drops_of_a_queue_a_buffer_and_a_filter_add_up_to_the_loss() {
    let scratch = Scratch::new();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: a network namespace needs root");
    }
    let short = "--time 200ms";
    // A slow machine sends few in that time, and loses one of fifty.
    let many = "--count 20000";
    let small = "--count 20000 --receive-buffer 4KiB";
    // One packet fits.
    let smallest = "--time 500ms --receive-buffer 1KiB";
    // The bursts fill the buffer, too, of what comes through.
    let queue = "tc qdisc add dev lo root tbf rate 150mbit burst 30kb limit 10kb";
    let both = format!("{queue} && {FILTER}");
    let cases: [(&str, &[&str], &str); 5] = [
        (SHORT_QUEUE, &[IN_QUEUE], short),
        (LOSSY_QUEUE, &[IN_QUEUE], many),
        (FILTER, &[IN_FILTER], many),
        ("true", &[IN_BUFFER], small),
        (&both, &[IN_QUEUE, IN_FILTER, IN_BUFFER], smallest),
    ];
    for (prepare, places, more) in cases {
        let Some((lost, found)) = lost_after(&scratch, prepare, more) else { continue };
        for place in places {
            let own = found.iter().find(|(name, _)| name == place).map_or(0, |(_, count)| *count);
            assert!(lost > 100 && own > 0, "{place}: {lost} lost: {found:?}");
        }
        // Nothing else is in this network but the messages.
        let sum: u64 = found.iter().map(|(_, count)| count).sum();
        assert_eq!(sum, lost, "{places:?}: {found:?}");
    }
}

#[test]
fn both_ways_have_a_rate_each_and_their_sum_hides_nothing() {
    let scratch = Scratch::new();
    let record = measured(
        &scratch,
        "bandwidth --transport tcp --wait block --direction bi --size 4KiB --time 200ms --rounds 3",
    );
    let run = &record.runs[0];
    let [there, back, both] =
        [RateMetric::BandwidthThere, RateMetric::BandwidthBack, RateMetric::Bandwidth]
            .map(|metric| run.rate(metric).unwrap().value);
    let sum = there + back;
    // Each way has a window of its own, and both that which they share.
    assert!((sum / both - 1.0).abs() < 0.5, "{sum} and {both} B/s");
    let one_way = measured(
        &scratch,
        "bandwidth --transport tcp --wait block --size 4KiB --time 50ms --rounds 1",
    );
    assert!(one_way.runs[0].rate(RateMetric::BandwidthThere).is_none());
}

#[test]
fn each_connection_says_how_long_it_took_to_connect() {
    let scratch = Scratch::new();
    let record = measured(
        &scratch,
        "rpc --workload 1kB --rps 500 --time 200ms --rounds 1 --connections 40 --no-unloaded",
    );
    let client = &record.runs[0].rounds[0].client;
    assert_eq!(counter(client, "connect.connections"), 40, "{client:?}");
    let [p50, p99, longest] =
        ["p50", "p99", "longest"].map(|of| counter(client, &format!("connect.{of}_ns")));
    assert!(0 < p50 && p50 <= p99 && p99 <= longest, "{client:?}");
}

#[test]
fn segments_that_were_sent_again_are_counted_and_warned_of() {
    let scratch = Scratch::new();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: a network namespace needs root");
    }
    // Not the first segment, by which the client shows who it is.
    let filter = "nft add table ip t; \
                  nft add chain ip t c { type filter hook input priority 0 \\; }; \
                  nft add rule ip t c tcp flags psh numgen inc mod 100 == 50 counter drop";
    let line = format!(
        "ip link set lo up; {filter} || exit 99; exec {PROGRAM} latency --transport tcp --wait \
         block --count 500 --warmup 10 --rounds 1 --out run"
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &line]);
    let ended = Controller::of(&scratch, command).end();
    if ended.code == Some(99) {
        return eprintln!("not checked here: {}", ended.stderr);
    }
    let record = record_of(&scratch, &ended);
    let round = &record.runs[0].rounds[0];
    let resent = [&round.client, &round.server].map(|end| counter(end, "tcp.retransmitted"));
    // A hundredth of both ways' messages was dropped once.
    assert!(resent.iter().sum::<u64>() >= 5, "{resent:?}");
    assert!(!warnings(&record, "segments_resent").is_empty(), "{resent:?}");
}

/// Runs a command in a network of its own in which a hundredth of the segments that carry messages
/// are dropped; `None`: this host cannot prepare it.
fn record_under_loss(scratch: &Scratch, command: &str) -> Option<Record> {
    let filter = "nft add table ip t && \
                  nft add chain ip t c '{ type filter hook input priority 0 ; }' && \
                  nft add rule ip t c tcp flags psh numgen inc mod 100 == 50 counter drop";
    let line = format!("ip link set lo up; {{ {filter}; }} || exit 99; exec {command}");
    let mut shell = Command::new("unshare");
    shell.args(["--net", "sh", "-c", &line]);
    let ended = Controller::of(scratch, shell).end();
    if ended.code == Some(99) {
        eprintln!("not checked here: {}", ended.stderr);
        return None;
    }
    Some(record_of(scratch, &ended))
}

/// Returns the cause of the most slow messages.
fn first_cause(causes: &[(Named, u64)]) -> Cause {
    causes.iter().max_by_key(|(_, count)| *count).unwrap().0.cause
}

#[test]
fn a_message_that_tcp_sent_again_has_that_cause_with_trace_points_and_without() {
    let scratch = Scratch::new();
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: a network namespace needs root");
    }
    let line = "latency --transport tcp --wait block --count 500 --warmup 10 --rounds 1 --out run";
    let asked = format!("{PROGRAM} {line} --causes");
    let Some(record) = record_under_loss(&scratch, &asked) else { return };
    let tail = &record.tails[0];
    // More than the five above p99 were sent again, each 200 ms late.
    assert_eq!(first_cause(&tail.slow.causes), Cause::Retransmission, "{:?}", tail.slow);
    assert!(tail.slow.above_ns > 100e6, "{:?}", tail.slow);
    // Nobody may load programs; TCP's counters are anybody's to read.
    let copy = PublicCopy::new();
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).unwrap();
    let who = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let asked = format!("{who} {} {line} --causes", copy.0.display());
    let tail = &record_under_loss(&scratch, &asked).unwrap().tails[0];
    assert_eq!(first_cause(&tail.slow.causes), Cause::Retransmission, "{:?}", tail.slow);
    assert!(tail.missing[0].starts_with("all trace points"), "{:?}", tail.missing);
    let asked = format!("{PROGRAM} explain {}", line.replace("--rounds 1", "--rounds 2"));
    let explained = record_under_loss(&scratch, &asked).unwrap().explanation.unwrap();
    let mut causes = explained.slow.causes.iter();
    assert!(causes.any(|(one, _)| one.cause == Cause::Retransmission), "{:?}", explained.slow);
}

#[test]
fn a_time_namespace_changes_nothing_of_an_explanation() {
    let scratch = Scratch::new();
    let line = "explain latency --transport tcp --wait block --count 2000 --rounds 1 --out run";
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", "86400", "--boottime", "86400", "--fork", PROGRAM]);
    command.args(words(line));
    let ended = Controller::of(&scratch, command).end();
    if ended.code != Some(0) && ended.stderr.contains("the kernel allows no tracing") {
        return eprintln!("skipped: {}", ended.stderr);
    }
    let record = record_of(&scratch, &ended);
    let found = record.explanation.expect("an explanation");
    assert!(found.messages > 1000 && found.incomplete * 20 < found.messages, "{found:?}");
}

#[test]
fn a_comparison_names_the_place_at_which_one_run_lost_more() {
    let scratch = Scratch::new();
    let line = "bandwidth --transport udp --wait block --size 1000 --time 50ms --rounds 2 --out";
    let lost = [("good", "64MiB"), ("bad", "4KiB")].map(|(name, buffer)| {
        let line = format!("{line} {name} --receive-buffer {buffer}");
        let ended = wiregauge(&scratch, &words(&line));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let counts = read_record(&scratch.join(name)).unwrap().runs[0].counts;
        counts.lost as f64 / counts.sent as f64
    });
    if lost[1] < 0.01 || lost[1] < 2.0 * lost[0] {
        return eprintln!("not checked here: shares of {lost:?} were lost");
    }
    let ended = wiregauge(&scratch, &words("compare good bad --json"));
    let said = "packets lost at receive buffer of the socket (server)";
    assert!(ended.stdout.contains(said), "{lost:?}: {ended:?}");
}
