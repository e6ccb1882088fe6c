//! `load` as a user meets it: open and closed loops with real processes, and what is kept when the
//! server dies or cannot keep up.
//!
//! No figure of time decides here: counts, stamps and what is said of them do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod driver;

use driver::{Driver, Scratch, wiregauge};
use rustix::process::Signal;
use wiregauge::record::schema::{Metric, RateMetric, Record};
use wiregauge::record::{SampleReader, read_record};
use wiregauge::sample::{Flags, Sample};

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// The samples of a run; rounds stand in the order in which they were executed.
fn samples(scratch: &Scratch, run: u32) -> Vec<Sample> {
    let path = scratch.join("run").join("samples.parquet");
    let mut reader = SampleReader::open(&path).unwrap();
    let rounds = std::iter::from_fn(move || reader.next_round());
    let own = rounds.map(|round| round.unwrap()).filter(|round| round.run == run);
    own.flat_map(|round| round.samples).collect()
}

fn measured(line: &str) -> (Scratch, Record) {
    let scratch = Scratch::new();
    let ended = wiregauge(&scratch, &words(&format!("load --out run {line}")));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    (scratch, record)
}

#[test]
fn an_open_loop_keeps_both_times_of_every_request() {
    for transport in ["tcp", "shm"] {
        let line = format!("--transport {transport} --rate 5k --time 200ms --rounds 2 --check");
        let (scratch, record) = measured(&line);
        let run = &record.runs[0];
        let count = run.summary(Metric::Response).unwrap().count;
        assert!((1500..2200).contains(&count), "{count}");
        assert_eq!((run.counts.lost, run.counts.corrupt, run.counts.unsent), (0, 0, 0));
        for metric in [Metric::Service, Metric::Lateness] {
            assert_eq!(run.summary(metric).unwrap().count, count);
        }
        for sample in samples(&scratch, 0) {
            assert!(sample.intended_ns <= sample.submit_ns, "{sample:?}");
            assert!(sample.submit_ns < sample.receive_ns, "{sample:?}");
        }
        let cpu = run.rates.iter().find(|figure| figure.metric == RateMetric::CpuServer);
        assert_eq!(cpu.unwrap().unit, "ns/msg");
    }
}

#[test]
fn a_closed_loop_has_as_many_requests_on_the_way_as_clients_and_no_response() {
    let (scratch, record) =
        measured("--transport tcp --clients 1,4 --count 3000 --rounds 1 --wait block --check");
    for (run, clients) in record.runs.iter().zip([1, 4]) {
        assert_eq!(run.case.load.clients, clients);
        assert!(run.label.ends_with(&format!("of {clients} clients")), "{}", run.label);
        assert!(run.summary(Metric::Response).is_none());
        assert!(run.summary(Metric::Rtt).unwrap().count >= 3000);
        assert_eq!((run.counts.lost, run.counts.corrupt), (0, 0));
    }
    let all = samples(&scratch, 1);
    assert!(all.iter().all(|sample| sample.intended_ns.is_nan()));
    // Of one client, each request is sent after the answer to the one before.
    assert!(samples(&scratch, 0).windows(2).all(|pair| pair[0].receive_ns <= pair[1].submit_ns));
}

#[test]
fn small_pools_are_measured_and_lose_nothing() {
    for transport in ["tcp", "shm"] {
        let (_, record) = measured(&format!(
            "--transport {transport} --clients 20 --count 5000 --rounds 1 --tx-buffers 2 \
             --rx-buffers 3 --check"
        ));
        let run = &record.runs[0];
        assert_eq!((run.counts.lost, run.counts.corrupt), (0, 0));
        let value = |metric| {
            let found = run.rates.iter().find(|figure| figure.metric == metric);
            found.unwrap_or_else(|| panic!("{metric:?}")).rate.value
        };
        let each = value(RateMetric::CompletionsPerPoll);
        assert!((1.0..=2.0).contains(&each), "no more than there are buffers: {each}");
        assert!(value(RateMetric::BufferTime) > 0.0);
        assert!(value(RateMetric::FullPolls) >= 0.5, "two buffers: a poll for every other read");
        let requests = value(RateMetric::RequestsPerPoll);
        assert!((1.0..=3.0).contains(&requests), "no more than there is room for: {requests}");
        let [polls, empty, full] = [
            RateMetric::BufferPollTime,
            RateMetric::BufferEmptyPollTime,
            RateMetric::BufferFullPollTime,
        ]
        .map(value);
        assert!((polls - empty - full).abs() < 1e-6, "{polls} {empty} {full}");
        assert!(polls > 0.0 && polls <= value(RateMetric::BufferTime), "{polls}");
    }
}

#[test]
fn requests_of_a_server_that_is_killed_are_lost_and_kept() {
    let scratch = Scratch::new();
    let line = "load --transport tcp --rate 2k --time 30s --rounds 1 --out run";
    let driver = Driver::start(&scratch, &words(line));
    driver.await_messages(500);
    let server = driver.agents()[0];
    server.signal(Signal::STOP);
    std::thread::sleep(std::time::Duration::from_millis(300));
    server.signal(Signal::KILL);
    let ended = driver.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.survivors.is_empty(), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(record.faults[0].contains("was killed by signal 9"), "{:?}", record.faults);
    let lost = samples(&scratch, 0).iter().filter(|sample| sample.flags.has(Flags::LOST)).count();
    assert!(lost >= 100, "2000 a second came while it stood still: {lost}");
}

#[test]
fn what_a_saturated_server_has_not_taken_is_not_dropped() {
    // No server here reads 50 million objects per second.
    let (scratch, record) = measured("--transport tcp --rate 50M --time 2ms --warmup 0 --rounds 1");
    let run = &record.runs[0];
    let samples = samples(&scratch, 0);
    let intended = samples.iter().filter(|sample| !sample.intended_ns.is_nan()).count();
    assert!((90_000..110_000).contains(&intended), "{intended}");
    let lost = samples.iter().filter(|sample| sample.flags.has(Flags::LOST)).count() as u64;
    assert_eq!(lost, run.counts.lost);
    assert!(run.counts.held_up > 0 || run.counts.missed_steps > 0, "{:?}", run.counts);
    assert!(!run.doubts.is_empty());
}

#[test]
fn a_search_adds_points_and_judges_its_bound() {
    let scratch = Scratch::new();
    let line = "load --transport shm --time 5ms --rounds 1 --slo p50<1ns --out run";
    let ended = wiregauge(&scratch, &words(line));
    assert_eq!(ended.code, Some(1), "no server answers in 1 ns: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert_eq!(record.runs[0].case.load.clients, 64);
    assert!(record.runs.len() >= 10, "{}", record.runs.len());
    assert_eq!(record.plan.cases.len(), record.runs.len());
    assert!(ended.stdout.contains("is kept at no rate"), "{}", ended.stdout);
}
