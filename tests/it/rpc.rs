//! `rpc` as a user meets it: many lengths over many connections, what the load does to each length,
//! and what is kept when an end dies or a cap binds.
//!
//! No figure of time decides here: counts, lengths, stamps and what is said of them do.

use crate::support::controller::{Scratch, wiregauge, words};
use std::collections::{BTreeMap, BTreeSet};
use wiregauge::pattern::rpc::{self, Lengths, Slowdown};
use wiregauge::record::read_record;
use wiregauge::record::schema::{Metric, RateMetric, Record, Run};
use wiregauge::sample::{Flags, Sample};

fn samples(scratch: &Scratch, run: &Run) -> Vec<Sample> {
    crate::support::controller::samples(scratch, run.index)
}

fn measured(line: &str) -> (Scratch, Record) {
    crate::support::controller::measured("rpc", line)
}

fn spec(run: &Run) -> rpc::Spec {
    run.case.spec("rpc").unwrap()
}

/// The figures of each length.
fn lengths(run: &Run) -> Lengths {
    serde_json::from_value(run.details.clone().unwrap()).unwrap()
}

/// The run that is loaded, of a record that has one.
fn loaded(record: &Record) -> &Run {
    let is_loaded = |run: &&Run| !spec(run).unloaded;
    record.runs.iter().find(is_loaded).unwrap()
}

#[test]
fn requests_of_many_lengths_are_answered_over_each_transport() {
    for transport in ["tcp", "unix", "shm", "udp"] {
        let (scratch, record) = measured(&format!(
            "--transport {transport} --workload w3 --longest 50kB --rps 2k --time 200ms --rounds 2 \
             --check --no-unloaded"
        ));
        let run = loaded(&record);
        assert_eq!((run.counts.corrupt, run.counts.duplicates), (0, 0), "{transport}");
        assert!(transport == "udp" || run.counts.lost == 0, "{:?}", run.counts);
        let workload = spec(run).workload;
        let allowed: BTreeSet<u32> = workload.steps.iter().map(|(size, _)| size.0 as u32).collect();
        assert_eq!(*allowed.last().unwrap(), 50_000);
        let kept = samples(&scratch, run);
        let counted = kept.iter().filter(|sample| !sample.flags.has(Flags::WARMUP));
        let mut of: BTreeMap<u32, u64> = BTreeMap::new();
        counted.for_each(|sample| *of.entry(sample.size).or_default() += 1);
        assert!(of.keys().all(|size| allowed.contains(size)), "{of:?}");
        assert!(of.len() > 10, "many lengths: {of:?}");
        let lengths = lengths(run);
        let told: BTreeMap<u32, u64> =
            lengths.sizes.iter().map(|of| (of.size, of.summary.count)).collect();
        assert_eq!(told, of, "{transport}");
        assert_eq!(lengths.metric, Metric::Response);
        assert_eq!(lengths.sizes.last().unwrap().share, 1.0);
        let rate = |metric| run.rates.iter().any(|figure| figure.metric == metric);
        assert!(rate(RateMetric::OfferedRate) && rate(RateMetric::Bandwidth));
    }
}

#[test]
fn slowdowns_are_held_against_unloaded_requests_of_the_same_length() {
    // With a link rate: on a busy machine the longest requests may be the fastest, so that no rate
    // can be estimated.
    let (_, record) = measured(
        "--workload w1 --rps 1k --time 300ms --rounds 2 --slowdown serialisation --link 25gbit",
    );
    let run = loaded(&record);
    let lengths = lengths(run);
    let baseline = &record.runs[lengths.baseline.unwrap() as usize];
    assert!(spec(baseline).unloaded);
    let of = self::lengths(baseline);
    let steps = spec(run).workload.steps;
    assert_eq!(of.sizes.len(), steps.len(), "each length is measured unloaded");
    for one in &lengths.sizes {
        let own = of.sizes.iter().find(|own| own.size == one.size).unwrap();
        assert_eq!(one.unloaded.min_ns, Some(own.summary.min.0));
        let half = own.summary.quantiles.iter().find(|quantile| quantile.p == 0.5).unwrap();
        assert_eq!(one.unloaded.p50_ns, half.value.map(|value| value.0));
    }
    let by: Vec<Slowdown> = lengths.slowdowns.iter().map(|one| one.by).collect();
    assert!(by.contains(&Slowdown::UnloadedP50) && by.contains(&Slowdown::UnloadedMin), "{by:?}");
    assert!(lengths.slowdowns.iter().all(|one| one.mean.value > 0.0));
    assert!(lengths.short.is_some() && run.summary(Metric::Short).unwrap().count > 0);
    assert!(run.rates.iter().any(|figure| figure.metric == RateMetric::Slowdown));
}

#[test]
fn ports_and_connections_are_a_mesh_and_share_the_load() {
    for wait in ["busy", "block"] {
        let (scratch, record) = measured(&format!(
            "--workload 200B --rps 1200 --time 1s --rounds 1 --ports 3 --server-ports 2 \
             --connections 4 --reply 50B --wait {wait} --check --no-unloaded"
        ));
        let run = &record.runs[0];
        // A busy machine may leave the last requests unsent; what was sent is answered.
        assert_eq!((run.counts.lost, run.counts.unfinished, run.counts.corrupt), (0, 0, 0));
        assert_eq!(lengths(run).sizes[0].reply, 50);
        assert!(lengths(run).slowdowns.is_empty());
        let mut of = [0; 3];
        let kept = samples(&scratch, run);
        kept.iter().for_each(|sample| of[sample.thread as usize] += 1);
        assert!(of.iter().all(|count| (250..600).contains(count)), "{of:?}");
        let round = &run.rounds[0];
        assert_eq!(round.client.effective_settings["connections"], "8", "4 to each of 2");
        assert_eq!(round.server.effective_settings["connections"], "12", "4 from each of 3");
        // Each port has a schedule of its own.
        let first = |thread| kept.iter().find(|s| s.thread == thread).unwrap().intended_ns;
        assert!(first(0) != first(1));
    }
}

#[test]
fn threads_that_take_replies_lose_none_and_see_each_once() {
    for (transport, wait) in
        [("tcp", "block"), ("tcp", "busy"), ("unix", "adaptive"), ("udp", "block")]
    {
        let (scratch, record) = measured(&format!(
            "--transport {transport} --workload w1 --longest 4kB --rps 2k --time 200ms --rounds 1 \
             --connections 3 --receivers 2 --wait {wait} --check --no-unloaded"
        ));
        let run = &record.runs[0];
        assert_eq!(spec(run).receivers, 2);
        let counts = (run.counts.corrupt, run.counts.duplicates);
        assert_eq!(counts, (0, 0), "{transport} {wait}");
        assert!(transport == "udp" || run.counts.lost == 0, "{:?}", run.counts);
        let kept = samples(&scratch, run);
        assert!(kept.len() > 250, "{}", kept.len());
        let seen = kept.iter().filter(|sample| !sample.receive_ns.is_nan());
        assert!(seen.clone().count() > 250);
        assert!(seen.into_iter().all(|sample| sample.submit_ns < sample.receive_ns));
    }
    // A closed loop goes on when a reply was handed over.
    let (_, record) =
        measured("--clients 4 --count 3000 --rounds 1 --receivers 1 --wait block --no-unloaded");
    assert_eq!(record.runs[0].counts.lost, 0);
}

#[test]
fn hundreds_of_connections_lose_nothing() {
    let (_, record) = measured(
        "--workload w2 --longest 4kB --clients 20 --count 2000 --rounds 1 --ports 4 \
         --server-ports 2 --connections 32 --wait block --no-unloaded --check",
    );
    let run = &record.runs[0];
    assert_eq!((run.counts.lost, run.counts.corrupt), (0, 0));
    assert!(run.counts.received >= 8000, "{:?}", run.counts);
    assert!(run.summary(Metric::Rtt).is_some() && run.summary(Metric::Response).is_none());
}

#[test]
fn a_cap_that_binds_is_said() {
    let (_, record) = measured(
        "--workload 1kB --rps 1M --time 5ms --warmup 0 --rounds 1 --outstanding 1 --no-unloaded",
    );
    let run = &record.runs[0];
    assert!(run.counts.held_up > 0, "{:?}", run.counts);
    assert!(
        run.warnings.iter().any(|warning| warning.kind == "generator_blocked"),
        "{:?}",
        run.warnings
    );
    // What was intended and not sent is shed, and counted.
    assert_eq!(run.counts.lost, 0);
}

#[test]
fn two_at_the_same_time_overlap() {
    // Long enough for two that begin late on a busy machine.
    let (_, record) =
        measured("--workload 500B --rps 500 --time 1s --rounds 1 --transport tcp,unix --both");
    let ran = |run: &&Run| run.rounds[0].overlap.is_some();
    let both: Vec<&Run> = record.runs.iter().filter(ran).collect();
    assert_eq!(both.len(), 2);
    assert!(both.iter().all(|run| run.rounds[0].overlap.unwrap() > 0.3));
    assert_ne!(both[0].case.transport, both[1].case.transport);
    let alone: Vec<&Run> = record.runs.iter().filter(|run| !ran(run)).collect();
    assert!(alone.iter().all(|run| spec(run).unloaded));
}

#[test]
fn congestion_controls_are_compared_in_one_run() {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let available = available.unwrap();
    let two: Vec<&str> = available.split_whitespace().take(2).collect();
    if two.len() < 2 {
        return eprintln!("not checked here: this kernel has {available} alone");
    }
    let line = format!(
        "--workload 1kB --rps 500 --time 100ms --rounds 2 --congestion {} --no-unloaded",
        two.join(",")
    );
    let (_, record) = measured(&line);
    let used: Vec<&str> = record
        .runs
        .iter()
        .map(|run| &*run.rounds[0].client.effective_settings["congestion"])
        .collect();
    assert_eq!(used, two);
}

#[test]
fn segments_are_as_small_as_both_ends_were_told() {
    let line = "--workload 10kB --rps 500 --time 100ms --rounds 1 --mss 1460 --no-unloaded";
    let (_, record) = measured(line);
    let run = &record.runs[0];
    assert!(run.label.contains(" mss 1460 "), "{}", run.label);
    for end in [&run.rounds[0].client, &run.rounds[0].server] {
        let granted: u32 = end.effective_settings["mss_bytes"].parse().unwrap();
        // Less TCP's time stamps, where they are on.
        assert!((1448..=1460).contains(&granted), "{granted}");
    }
}

#[test]
fn requests_of_a_server_that_is_killed_are_lost_and_kept() {
    let line = "rpc --workload w2 --rps 2k --time 30s --rounds 1 --ports 2 --no-unloaded";
    let (_, _, lost) = crate::support::controller::server_dies(line);
    assert!(lost >= 100, "2000 a second came while it stood still: {lost}");
}

#[test]
fn a_client_that_is_killed_frees_its_server() {
    let line = "rpc --workload w2 --rps 2k --time 30s --rounds 1 --no-unloaded";
    let (scratch, record) = crate::support::controller::client_dies(line);
    assert!(samples(&scratch, &record.runs[0]).len() >= 500);
}

#[test]
fn a_file_of_lengths_is_drawn_from_and_a_wrong_one_is_refused_with_its_place() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("lengths"), "64 0.5\n128 1\n").unwrap();
    let line = "rpc --workload lengths --clients 1 --count 500 --rounds 1 --out run --no-unloaded";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let lengths = lengths(&record.runs[0]);
    let sizes: Vec<u32> = lengths.sizes.iter().map(|of| of.size).collect();
    assert_eq!(sizes, [64, 128]);
    std::fs::write(scratch.join("lengths"), "64 0.5\n32 1\n").unwrap();
    let ended = wiregauge(&scratch, &words(&line.replace("run ", "again ")));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("lengths:2:1"), "{}", ended.stderr);
    assert!(!scratch.join("again").exists());
}

#[test]
fn a_trace_says_when_each_request_comes_and_how_long_it_is() {
    let scratch = Scratch::new();
    let sizes = [100, 1500, 64, 20_000, 100];
    let lines = (0..400).map(|n| format!("{}us {}\n", 250 * n, sizes[n % sizes.len()]));
    std::fs::write(scratch.join("calls"), lines.collect::<String>()).unwrap();
    let line = "rpc --trace calls --longest 10kB --warmup 0 --rounds 1 --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let run = loaded(&record);
    assert_eq!((run.counts.sent, run.counts.lost), (400, 0));
    let samples = samples(&scratch, run);
    assert_eq!(samples.len(), 400);
    let begin = samples[0].intended_ns;
    for sample in &samples {
        let at = sample.sequence as usize;
        assert_eq!(u64::from(sample.size), [100, 1500, 64, 10_000, 100][at % sizes.len()]);
        assert!((sample.intended_ns - begin - 250e3 * at as f64).abs() < 2.0, "{sample:?}");
    }
    let lengths = lengths(run);
    let of: Vec<(u32, u64)> = lengths.sizes.iter().map(|of| (of.size, of.summary.count)).collect();
    assert_eq!(of, [(64, 80), (100, 160), (1500, 80), (10_000, 80)]);
    assert_eq!(lengths.slowdowns.len(), 4, "each length was measured unloaded, too");

    for (more, says) in [
        ("--workload w1", "without --workload"),
        ("--clients 2", "exclude each other"),
        ("--load 0.5", "exclude each other"),
        ("--ports 2", "use one host and --ports 1"),
        ("--rps 1k", "exclude each other"),
    ] {
        let ended = wiregauge(&scratch, &words(&format!("rpc --trace calls {more} --out no")));
        assert_eq!(ended.code, Some(2), "{more}: {ended:?}");
        assert!(ended.stderr.contains(says), "{more}: {}", ended.stderr);
    }
    // Lengths of bursts that nothing would use are never passed over.
    for line in ["--load 0.5 --on 1ms", "--clients 2 --off 1ms", "--rps 1k --on 1ms"] {
        let ended = wiregauge(&scratch, &words(&format!("rpc {line} --out no")));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
    }
}

#[test]
fn bursts_come_while_the_source_is_on() {
    let line = "--workload 64B --rps 20k --arrivals on-off --on 2ms --off 8ms --time 200ms \
                --rounds 1 --warmup 0 --no-unloaded";
    let (scratch, record) = measured(line);
    let samples = samples(&scratch, loaded(&record));
    assert!(samples.len() > 2000, "{}", samples.len());
    // The first request may come some time after the schedule's begin: what counts is that in each
    // 10 ms there is one stretch of 8 without any.
    let times: Vec<f64> = samples.iter().map(|sample| sample.intended_ns).collect();
    let pauses = times.windows(2).filter(|two| two[1] - two[0] >= 8e6).count();
    assert!((18..=20).contains(&pauses), "{pauses}");
}
