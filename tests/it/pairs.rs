//! Measurements among several hosts of `testbed net`.

use crate::support::controller::{Controller, Ended, Scratch, wiregauge};
use crate::support::net::Net;
use crate::support::program::PROGRAM;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::Duration;
use wiregauge::plan::pairs::AtOnce;
use wiregauge::plan::{HostPair, Pairs};
use wiregauge::record::read_record;
use wiregauge::record::schema::{Begin, Metric, Record, RecordedWarning, Round, Run, Start};
use wiregauge::transport::Role;

fn words<'a>(net: &'a Net, line: &'a str) -> Vec<&'a str> {
    let own = ["--ssh", net.ssh.as_str(), "--remote-binary", PROGRAM];
    line.split(' ').chain(own).collect()
}

fn measured(scratch: &Scratch, net: &Net, line: &str) -> (Record, Ended) {
    let line = format!("{line} --out run");
    let ended = wiregauge(scratch, &words(net, &line));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(record.complete, "{ended:?}");
    std::fs::rename(scratch.join("run"), scratch.join(&format!("run-{}", net.kept()))).unwrap();
    net.await_no_agents();
    (record, ended)
}

#[test]
fn two_other_hosts_measure_each_other() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(2, &scratch) else { return };
    let line = format!("latency --hosts {} --wait block --count 300 --rounds 2", net.list());
    let (record, ended) = measured(&scratch, &net, &line);
    let run = &record.runs[0];
    assert_eq!(run.case.topology.hosts(), HostPair { client: Some(0), server: Some(1) });
    assert_eq!(record.hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), net.names);
    let granted = |index: usize| {
        let round = &run.rounds[index];
        (
            round.client.effective_settings["address"].clone(),
            round.server.effective_settings["address"].clone(),
        )
    };
    assert_eq!(granted(0), (net.addresses[0].clone(), net.addresses[1].clone()));
    assert_eq!(run.counts.received, 660, "{ended:?}");
    // The noise of both CPUs is of those hosts.
    assert!(record.noise.is_empty() && record.hosts.iter().all(|host| host.noise.len() == 1));

    let line = format!("oneway --hosts {} --wait block --count 300 --rounds 2", net.list());
    let (record, ended) = measured(&scratch, &net, &line);
    let run = &record.runs[0];
    let clock = run.widest_clock().unwrap();
    assert!(clock.exchanges >= 20 && clock.bound_ns > 0.0, "{clock:?}");
    // On a busy machine the bound may be wider than the time, which is dropped then.
    let Some(one_way) = run.figures.iter().find(|figure| figure.metric == Metric::OneWay) else {
        let is_told = |warning: &RecordedWarning| warning.kind == "below_clock_bound";
        assert!(run.warnings.iter().any(is_told), "{ended:?}");
        return;
    };
    assert!(one_way.clock_bound_ns.unwrap() >= clock.bound_ns);
    // No message arrives before it was sent, nor later than a stalled round.
    assert!(one_way.summary.min.0 > -clock.bound_ns && one_way.summary.max.0 < 1e10, "{ended:?}");
}

#[test]
fn hosts_that_are_one_machine_do_not_wait_busy_on_the_same_cpu() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    let cpus = std::thread::available_parallelism().unwrap().get();
    let pair = &net.names[..2].join(",");
    let line = format!("latency --hosts {pair} --count 100 --rounds 1");
    let (record, ended) = measured(&scratch, &net, &line);
    let used = record.runs[0].rounds[0].cpus.unwrap();
    assert_eq!(used.client == used.server, cpus < 2, "{ended:?}");

    let line = format!("latency --hosts {} --all-pairs --count 100 --rounds 1", net.list());
    let (record, ended) = measured(&scratch, &net, &line);
    let waits: BTreeSet<&str> = record.runs.iter().map(|run| run.case.wait.name()).collect();
    let is_crowded = cpus < 4;
    assert_eq!(ended.stderr.contains("they block instead"), is_crowded, "{ended:?}");
    assert_eq!(waits, BTreeSet::from([if is_crowded { "block" } else { "busy" }]));
}

#[test]
fn all_pairs_are_a_matrix() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(3, &scratch) else { return };
    let hosts = format!("here,{}", net.list());
    let line = format!("latency --hosts {hosts} --all-pairs --wait block --count 100 --rounds 2");
    let (record, ended) = measured(&scratch, &net, &line);
    assert_eq!(record.plan.pairs, Some(Pairs::All { at_once: AtOnce::Matching }));
    let hosts: BTreeSet<HostPair> =
        record.runs.iter().map(|run| run.case.topology.hosts()).collect();
    assert_eq!((record.runs.len(), hosts.len(), record.plan.concurrent.len()), (6, 6, 3));
    for run in &record.runs {
        assert_eq!((run.rounds.len(), run.counts.received), (2, 220), "{}", run.label);
        assert!(run.rounds.iter().all(|round| round.overlap.is_some()), "two pairs at once");
        began_by_their_clocks(run);
    }
    let answer = "latency tcp block 64 B, 6 pairs: half_rtt p50 from ";
    assert!(ended.stdout.starts_with(answer), "{ended:?}");
    let head = "half_rtt p50, latency tcp block 64 B, in us: each pair was measured once and has \
                both of its cells";
    let mut matrix = ended.stdout.lines().skip_while(|line| *line != head).skip(1);
    let (label, name) = (&record.runs[0].label, &net.names[0]);
    assert!(matrix.next().is_some_and(|names| names.contains(name.as_str())), "{ended:?}");
    for row in matrix.take(4) {
        assert_eq!(row.split_whitespace().count(), 5, "{ended:?}");
    }
    assert!(label.starts_with("latency tcp block 64 B ") && label.contains(" to "), "{label}");

    let line = format!(
        "bandwidth --hosts {} --all-pairs --at-once pair --time 20ms --rounds 1 --wait block",
        net.list()
    );
    let (record, ended) = measured(&scratch, &net, &line);
    assert_eq!((record.runs.len(), record.plan.concurrent.len()), (6, 0), "both directions");
    assert!(record.runs.iter().all(|run| run.rates[0].rate.value > 1e5), "{ended:?}");
    let page = std::fs::read_to_string(scratch.join("run-1").join("report.html")).unwrap();
    assert!(page.contains("<table class=\"heat\">") && page.contains("--heat:1.000"));
}

/// Each end was told the instant in its own clock and waited for it, and who was late is named.
fn began_by_their_clocks(run: &Run) {
    let starts: Vec<Start> = run.rounds.iter().filter_map(|round| round.start).collect();
    assert_eq!(starts.len(), run.rounds.len(), "{}: all clocks were compared", run.label);
    for start in &starts {
        assert_eq!(start.begins().count(), 2);
        // The clocks of the hosts differ by as much as the starts of their agents; what is left of
        // that is not more than is known.
        let early = start.begins().find(|begin| begin.late_ns < -begin.bound_ns - 1.0);
        assert_eq!(early, None, "{}", run.label);
        let latest = start.begins().map(|begin| begin.late_ns).fold(0.0, f64::max);
        assert!(latest < 10e9 && start.spread_ns < 10e9, "{start:?}");
    }
    let is_late = |begin: &Begin| begin.late_ns > begin.bound_ns + 100_000.0;
    let late = starts.iter().flat_map(Start::begins).filter(|begin| is_late(begin)).count();
    let told = run.warnings.iter().filter(|warning| warning.kind == "late_start").count();
    assert_eq!(told, late, "{:?}", run.warnings);
}

#[test]
fn random_matchings_give_the_bisection_bandwidth() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    let line = format!(
        "bandwidth --hosts {} --bisection 3 --time 50ms --rounds 2 --wait block",
        net.list()
    );
    let (record, ended) = measured(&scratch, &net, &line);
    let pairs = record.pairs.unwrap();
    let [found] = pairs.bisections.as_slice() else { panic!("{pairs:?}") };
    assert_eq!((found.pairs, found.matchings.len()), (2, 3));
    assert_eq!(
        found.bandwidth.rounds,
        found.matchings.iter().map(|rate| rate.0).collect::<Vec<_>>()
    );
    let single: f64 = record.runs.iter().map(|run| run.rates[0].rate.value).fold(0.0, f64::max);
    assert!(found.bandwidth.value > 0.0 && found.bandwidth.value < 2.1 * single, "{found:?}");
    assert!(found.overlap.is_some_and(|share| share > 0.0 && share <= 1.0), "{found:?}");
    assert!(ended.stdout.contains("all pairs MB/s"), "{ended:?}");
}

#[test]
fn a_host_that_is_not_there_is_named_and_nothing_runs() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(1, &scratch) else { return };
    let line = format!("latency --hosts {},nowhere --count 10", net.list());
    let ended = wiregauge(&scratch, &words(&net, &line));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("nowhere"), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    net.await_no_agents();
}

#[test]
fn a_host_that_is_cut_off_ends_its_pair_alone() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    let line = format!(
        "latency --hosts {} --all-pairs --at-once pair --wait block --time 2s --rounds 1 \
         --timeout 5s --out run",
        net.list()
    );
    let controller = Controller::start(&scratch, &words(&net, &line));
    controller.await_round();
    net.await_messages(3);
    net.cut_off(3);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let (whole, broken): (Vec<_>, Vec<_>) = record.runs.iter().partition(|run| run.complete);
    let name = &net.names[3];
    assert!(!whole.is_empty() && !broken.is_empty(), "{ended:?}");
    assert!(broken.iter().all(|run| run.label.contains(name.as_str())), "{ended:?}");
    assert!(record.faults.iter().all(|fault| fault.contains(name.as_str())), "{ended:?}");
}

#[test]
fn a_link_that_flaps_is_in_the_tail_and_ends_nothing() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(2, &scratch) else { return };
    let line = format!(
        "latency --hosts {} --wait block --time 4s --rounds 1 --warmup 0 --out run",
        net.list()
    );
    let controller = Controller::start(&scratch, &words(&net, &line));
    net.await_messages(1);
    for _ in 0..3 {
        net.cut_off_for(1, Duration::from_millis(250));
        std::thread::sleep(Duration::from_millis(200));
    }
    let ended = controller.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let run = &record.runs[0];
    let rtt = run.figures.iter().find(|figure| figure.metric == Metric::Rtt).unwrap();
    assert_eq!((run.counts.lost, run.complete), (0, true), "{ended:?}");
    assert!(rtt.summary.max.0 > 1e8, "the longest is the outage: {:?}", rtt.summary.max);
    net.await_no_agents();
}

#[test]
fn a_slow_host_is_named_by_its_pairs() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    net.slow_down(2);
    let line = format!(
        "bandwidth --hosts {} --all-pairs --at-once pair --wait block --time 50ms --rounds 3 \
         --warmup 10",
        net.list()
    );
    let (record, ended) = measured(&scratch, &net, &line);
    let slow = &record.pairs.unwrap().slow;
    let sent_by = |run: u32| record.runs[run as usize].case.topology.hosts().client;
    assert!(!slow.is_empty(), "{ended:?}");
    assert!(slow.iter().all(|pair| sent_by(pair.run) == Some(2)), "{slow:?}");
    if slow.len() > 1 {
        let says = format!("slow pairs are those of {}: look there first.", net.names[2]);
        assert!(ended.stdout.contains(&says), "{ended:?}");
    }
    assert!(
        ended.stdout.contains(&format!("slow pair: bandwidth tcp block 64 KiB {}", net.names[2]))
    );
}

#[test]
fn an_interrupt_ends_all_pairs() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    let line = format!(
        "latency --hosts {} --all-pairs --wait block --time 20s --rounds 1 --out run",
        net.list()
    );
    let controller = Controller::start(&scratch, &words(&net, &line));
    net.await_agents(4);
    net.await_messages(0);
    controller.signal(Signal::INT);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    net.await_no_agents();
    assert!(!read_record(&scratch.join("run")).unwrap().complete);
}

#[test]
fn clients_on_several_hosts_share_one_server() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(3, &scratch) else { return };
    for (line, threads) in [
        ("load --clients 4 --threads 2 --count 100", 6),
        ("load --rate 2k --threads 1 --time 100ms", 3),
        ("load --clients 6 --tx-buffers 2 --rx-buffers 2 --count 100 --wait busy", 3),
        ("rpc --workload 100B --clients 1 --ports 2 --no-unloaded --count 100", 6),
    ] {
        let wait = if line.contains("--wait") { "" } else { " --wait block" };
        let line = format!("{line}{wait} --rounds 2 --client-hosts {}", net.list());
        let (record, ended) = measured(&scratch, &net, &line);
        let run = &record.runs[0];
        let clients = run.case.topology.ranks_of(Role::Client);
        let hosts: Vec<Option<u32>> = clients.map(|rank| rank.host).collect();
        // Four clients are one on each host, since a second on each would be six.
        let threads = if line.contains("--clients 4") { 3 } else { threads };
        assert_eq!(hosts, [Some(0), Some(1), Some(2)], "{line}");
        assert_eq!(run.case.topology.host_of(Role::Server), None);
        for round in &run.rounds {
            assert_eq!(round.threads.len(), threads, "{line}: {ended:?}");
            let received = round.threads.iter().map(|thread| thread.counts.received);
            assert!(received.clone().all(|one| one > 0), "{line}: each host was answered");
            assert_eq!(received.sum::<u64>(), round.counts.received);
            assert_eq!((round.counts.lost, round.counts.unfinished), (0, 0), "{line}");
            // All threads in one time, though each host has a clock of its own.
            assert!(round.length_ns < 60e9, "{line}: {}", round.length_ns);
            assert!(round.start.is_some(), "{line}: the clocks were compared");
        }
        assert!(record.hosts.iter().all(|host| !host.noise.is_empty()), "{line}");
        // Each host has its own requests, and all of them together are those of the run.
        let names: Vec<&str> = run.client_hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, net.names, "{line}");
        let of_hosts: u64 = run.client_hosts.iter().map(|host| host.summary.count).sum();
        assert_eq!(of_hosts, run.figures[0].summary.count, "{line}");
    }
}

#[test]
fn a_client_s_host_that_dies_ends_the_round_and_is_named() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(2, &scratch) else { return };
    let line = format!(
        "load --clients 2 --wait block --time 60s --rounds 1 --out run \
         --client-hosts {}",
        net.list()
    );
    let controller = Controller::start(&scratch, &words(&net, &line));
    net.await_messages(1);
    net.kill_agents(1);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(!record.complete && record.runs[0].counts.received > 0, "{ended:?}");
    assert!(record.faults[0].contains(&net.names[1]), "{ended:?}");
}

#[test]
fn parts_of_a_study_start_together_on_the_hosts_that_they_name() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(3, &scratch) else { return };
    let [a, b, c] = [0, 1, 2].map(|host| net.names[host].to_string());
    let text = format!(
        "title = \"t\"\n[all]\nrounds = 2\nwait = \"block\"\n\
         [[latency]]\nseries = \"l\"\ntogether = \"t\"\nafter = \"50ms\"\ntime = \"100ms\"\n\
         places = [\"{c}\", \"{a}\"]\n\
         [[bandwidth]]\nseries = \"b\"\ntogether = \"t\"\ntopology = \"many-to-one\"\n\
         time = \"300ms\"\nplaces = [\"{a}\", \"{b}\", \"{c}\"]\n"
    );
    std::fs::write(scratch.join("s.toml"), text).unwrap();
    let (record, ended) = measured(&scratch, &net, &format!("run s.toml --hosts {}", net.list()));
    assert_eq!(record.plan.concurrent, [[0, 1, 2]]);
    let ends = |case: usize| record.plan.hosts_of(&record.plan.cases[case]);
    let expected = [format!("{c} to {a}"), format!("{b} to {a}"), format!("{c} to {a}")];
    assert_eq!([0, 1, 2].map(ends), expected);
    for run in &record.runs {
        assert!(run.counts.received > 0, "{ended:?}");
        for Round { start, overlap, .. } in &run.rounds {
            let Start { client, server, .. } = start.as_ref().unwrap();
            let known = [client, server].map(|begin| begin.as_ref().unwrap().bound_ns);
            assert!(known.iter().all(|bound| bound.is_finite()), "{known:?}");
            assert!(overlap.is_some());
        }
    }
    let label = &record.runs[1].label;
    assert!(label.ends_with(&format!(" {b} to {a}")), "{label}");
    assert!(ended.stdout.contains(label), "{ended:?}");
}

#[test]
fn a_victim_between_two_hosts_has_congestors_on_the_others() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    let before = format!("impact --under incast --hosts {}", net.list());
    let victim = "latency --transport tcp --wait block --time 200ms --rounds 2 --out run";
    let all = [words(&net, &before), victim.split(' ').collect()].concat();
    let ended = wiregauge(&scratch, &all);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let hosts = |run: &Run| run.case.topology.ranks.iter().map(|rank| rank.host).collect();
    let ends: Vec<Vec<Option<u32>>> = record.runs.iter().map(hosts).collect();
    assert_eq!(ends, [[Some(0), Some(1)], [Some(0), Some(1)], [Some(2), Some(3)]]);
    assert_eq!(record.hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), net.names);
    let [_, under, congestor] = &record.runs[..] else { panic!("{ended:?}") };
    assert!(congestor.counts.received > 0, "{ended:?}");
    assert!(under.rounds.iter().all(|round| round.congested.is_some()), "{ended:?}");
    let is_shared = |warning: &RecordedWarning| warning.kind == "congestor_on_cpus";
    assert!(!under.warnings.iter().any(is_shared), "each host has CPUs of its own: {ended:?}");
    net.await_no_agents();
}

/// The record of an exchange of four hosts that was to last five minutes, and in which something
/// happened to one of them.
fn exchange_in_which(
    happens: impl FnOnce(&Net),
    how: &str,
) -> Option<(Vec<String>, Record, Ended)> {
    let scratch = Scratch::new();
    let net = Net::of(4, &scratch)?;
    let line = format!(
        "exchange --hosts {} --size 4KiB {how} --time 300s --rounds 1 --timeout 5s --out run",
        net.list()
    );
    let controller = Controller::start(&scratch, &words(&net, &line));
    net.await_messages(3);
    happens(&net);
    let ended = controller.end();
    let record = read_record(&scratch.join("run")).unwrap();
    Some((net.names.clone(), record, ended))
}

#[test]
fn a_node_that_is_cut_off_ends_the_exchange_in_time_and_is_named() {
    for how in ["--slot 5ms --wait block", "--chaotic --wait block"] {
        let Some((names, record, ended)) = exchange_in_which(|net| net.cut_off(3), how) else {
            return;
        };
        assert_eq!(ended.code, Some(3), "{how}: {ended:?}");
        // After 5 s; what is left is for a machine that has much else to do.
        assert!(ended.took.as_secs() < 150, "{how}: {ended:?}");
        assert!(!record.complete && record.runs[0].counts.received > 0, "{how}: {ended:?}");
        assert!(record.faults[0].contains(&names[3]), "{how}: {ended:?}");
    }
}

#[test]
fn a_node_that_is_killed_on_its_host_ends_the_exchange_and_is_named() {
    let Some((names, record, ended)) =
        exchange_in_which(|net| net.kill_agents(2), "--slot 5ms --wait block")
    else {
        return;
    };
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(!record.complete && record.runs[0].counts.received > 0, "{ended:?}");
    assert!(record.faults[0].contains(&names[2]), "{ended:?}");
}

#[test]
fn a_node_that_sends_slowly_is_named_by_what_it_sends() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(4, &scratch) else { return };
    net.slow_down(2);
    let line = format!(
        "exchange --hosts {} --chaotic --wait block --size 16KiB --time 1s --rounds 3",
        net.list()
    );
    let (_, ended) = measured(&scratch, &net, &line);
    let sentence = format!(": {} sends at ", net.names[2]);
    let said = ended.stdout.lines().find(|line| line.contains(&sentence));
    assert!(said.is_some_and(|line| line.contains("of the others' median")), "{ended:?}");
}

#[test]
fn slots_that_are_shorter_than_the_clocks_are_known_are_refused_with_both_figures() {
    let scratch = Scratch::new();
    let Some(net) = Net::of(2, &scratch) else { return };
    let line = format!(
        "exchange --hosts {} --size 24 --slot 1us --time 50ms --rounds 1 --out run",
        net.list()
    );
    let ended = wiregauge(&scratch, &words(&net, &line));
    // Half of a microsecond: less than any exchange of datagrams can tell.
    assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
    assert!(ended.stderr.contains("the clocks of the hosts are known to "), "{ended:?}");
    assert!(ended.stderr.contains("and this needs 500 ns"), "{ended:?}");
    net.await_no_agents();
}
