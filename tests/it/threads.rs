//! Several threads of each end, through the program itself: what is kept of each, what is made of
//! all, and what is said where that cannot be.

use crate::support::controller::{Controller, Ended, Scratch, wiregauge};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use wiregauge::loops;
use wiregauge::record::schema::{RateMetric, Record, RoundEnd, Run};
use wiregauge::record::{SampleReader, read_record};
use wiregauge::sample::{Flags, Sample};

/// Runs a command to its end and reads what it kept.
fn kept(scratch: &Scratch, command: &str) -> (Ended, Record, Vec<(u32, u32, Sample)>) {
    let words: Vec<&str> = command.split(' ').chain(["--out", "run"]).collect();
    let ended = wiregauge(scratch, &words);
    assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    let samples = samples(scratch);
    (ended, record, samples)
}

/// All rows with their run and round.
fn samples(scratch: &Scratch) -> Vec<(u32, u32, Sample)> {
    let reader = SampleReader::open(&scratch.join("run/samples.parquet")).unwrap();
    let mut all = Vec::new();
    for round in reader {
        let round = round.unwrap();
        all.extend(round.samples.iter().map(|sample| (round.run, round.round, *sample)));
    }
    all
}

fn run_of(record: &Record, threads: u32, transport: &str) -> Run {
    let is_it =
        |run: &&Run| run.case.threads() == threads && run.case.transport.name() == transport;
    record.runs.iter().find(is_it).unwrap().clone()
}

#[test]
fn every_thread_s_samples_are_kept_and_pooled() {
    let scratch = Scratch::new();
    let command =
        "latency --transport tcp,shm --wait block --threads 1,3 --count 300 --warmup 30 --rounds 2";
    let (ended, record, samples) = kept(&scratch, command);
    assert!(ended.stderr.contains("3 threads of each end: the client's on CPU"), "{ended:?}");
    for transport in ["tcp", "shm"] {
        let run = run_of(&record, 3, transport);
        assert_eq!(run.label, format!("latency {transport} block 64 B 3 threads"));
        assert_eq!(run.counts.received, 2 * 3 * 330);
        assert_eq!(run.figures[0].summary.count, 2 * 3 * 300);
        for round in &run.rounds {
            assert_eq!((round.samples, round.threads.len()), (3 * 330, 3));
            assert!(round.threads.iter().all(|thread| thread.counts.received == 330));
            assert!(
                round
                    .threads
                    .iter()
                    .all(|thread| thread.ended == RoundEnd::Loop(loops::Ended::Count))
            );
            let rows = |thread: u32| {
                let of = samples
                    .iter()
                    .filter(|(r, n, s)| (*r, *n, s.thread) == (run.index, round.index, thread));
                of.map(|(.., s)| s.sequence).collect::<BTreeSet<u64>>()
            };
            for thread in 0..3 {
                assert_eq!(rows(thread), (0..330).collect(), "{transport} thread {thread}");
            }
        }
        let alone = run_of(&record, 1, transport);
        assert!(alone.rounds.iter().all(|round| round.threads.is_empty()));
        assert_eq!(alone.figures[0].summary.count, 2 * 300);
    }
    let in_time = |pair: &[(u32, u32, Sample)]| {
        let [a, b] = pair else { return true };
        (a.0, a.1) != (b.0, b.1) || a.2.submit_ns <= b.2.submit_ns
    };
    assert!(samples.windows(2).all(in_time), "rows of all threads stand in the order of time");
    let csv = wiregauge(&scratch, &["export", "run", "--format", "csv"]).stdout;
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "thread").unwrap();
    let rows = csv.lines().skip(1);
    let threads: BTreeSet<&str> = rows.filter_map(|row| row.split(',').nth(column)).collect();
    assert_eq!(threads, BTreeSet::from(["0", "1", "2"]));
    assert!(ended.stdout.contains("threads  transport"), "{ended:?}");
}

/// Messages of each flow until `at`, straight from its stamps.
fn until(stamps: &[f64], at: f64) -> f64 {
    let before = stamps.iter().filter(|stamp| **stamp <= at).count();
    let (last, next) = (stamps[before - 1], stamps.get(before));
    before as f64 - 1.0 + next.map_or(0.0, |next| (at - last) / (next - last))
}

#[test]
fn the_rate_is_that_of_all_threads_in_the_time_that_they_share() {
    // Long enough for threads that take turns on a busy machine.
    for (transport, way) in [("tcp", "uni"), ("shm", "uni"), ("unix", "bi")] {
        let scratch = Scratch::new();
        let command = format!(
            "bandwidth --transport {transport} --wait block --size 4096 --threads 2 --direction \
             {way} --time 500ms --warmup 100 --rounds 2"
        );
        let (_, record, samples) = kept(&scratch, &command);
        let run = &record.runs[0];
        let rate = run.rates.iter().find(|f| f.metric == RateMetric::MessageRate).unwrap();
        assert_eq!(rate.rate.rounds.len(), 2, "{:?}", run.warnings);
        for (round, rate) in run.rounds.iter().zip(&rate.rate.rounds) {
            let mut flows: BTreeMap<(bool, u32), Vec<f64>> = BTreeMap::new();
            for (.., sample) in samples.iter().filter(|(_, n, _)| *n == round.index) {
                let flow = (sample.flags.has(Flags::REVERSE), sample.thread);
                let stamps = flows.entry(flow).or_default();
                if sample.flags.has(Flags::WARMUP) {
                    stamps.clear();
                }
                stamps.push(sample.receive_ns);
            }
            assert_eq!(flows.len(), if way == "bi" { 4 } else { 2 });
            let begin = flows.values().map(|s| s[0]).fold(f64::MIN, f64::max);
            let end = flows.values().map(|s| s[s.len() - 1]).fold(f64::MAX, f64::min);
            let strides: f64 = flows.values().map(|s| until(s, end) - until(s, begin)).sum();
            let expected = 1e9 * strides * round.stride as f64 / (end - begin);
            assert!((rate / expected - 1.0).abs() < 1e-9, "{transport} {way}: {rate}, {expected}");
        }
    }
}

#[test]
fn one_way_messages_of_a_thread_are_joined_with_its_own() {
    let scratch = Scratch::new();
    let command =
        "oneway --transport unix --wait block --threads 2 --count 200 --warmup 20 --rounds 1";
    let (_, record, samples) = kept(&scratch, command);
    assert_eq!((samples.len(), record.runs[0].counts.lost), (2 * 220, 0));
    assert!(samples.iter().all(|(.., s)| s.receive_ns >= s.submit_ns));
}

#[test]
fn threads_that_share_a_cpu_are_said_to() {
    let scratch = Scratch::new();
    let command = "latency --transport unix --wait block --threads 2 --cpus 0,0/0,0 --count 100 \
                   --rounds 1";
    let (ended, record, _) = kept(&scratch, command);
    let run = &record.runs[0];
    assert_eq!(record.plan.cpus.len(), 2);
    assert!(run.warnings.iter().any(|warning| warning.kind == "fewer_cpus"), "{:?}", run.warnings);
    assert!(ended.stdout.contains("2 threads of an end share 1 CPU"), "{ended:?}");
    let cpus: Vec<u32> =
        run.rounds[0].threads.iter().map(|thread| thread.cpus.unwrap().client).collect();
    assert_eq!(cpus, [0, 0]);
}

#[test]
fn what_all_threads_have_measured_is_kept_when_an_agent_is_killed() {
    for role in [0, 1] {
        let scratch = Scratch::new();
        let command = "latency --transport tcp --wait block --threads 2 --count 300000 --warmup 50 \
                       --pause 100us --rounds 1 --out run";
        let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        let controller = Controller::start(&scratch, &words);
        controller.await_messages(300);
        let agent = controller.agents()[role];
        agent.signal(Signal::KILL);
        let ended = controller.end();
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.survivors.is_empty(), "{ended:?}");
        let record = read_record(&scratch.join("run")).unwrap();
        assert!(record.faults[0].contains("was killed by signal 9"), "{:?}", record.faults);
        let threads: BTreeSet<u32> = samples(&scratch).iter().map(|(.., s)| s.thread).collect();
        assert_eq!(threads, BTreeSet::from([0, 1]), "role {role}");
        assert!(record.runs[0].rounds[0].threads.iter().all(|t| t.counts.received > 20));
        let names = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("partial")));
    }
}
