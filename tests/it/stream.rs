//! `stream` as a user meets it: samples of a signal through a transport into a file.
//!
//! No figure of time decides here: counts, numbers and stamps do.

mod node;

use crate::support::controller::{Controller, Scratch, wiregauge};
use std::path::Path;
use wiregauge::pattern::stream;
use wiregauge::record::schema::{Metric, RateMetric, Record, Run};
use wiregauge::record::{SampleReader, read_record};
use wiregauge::sample::{Flags, Sample as Message};
use wiregauge::signal::format::Format;
use wiregauge::signal::{Kind, Sample, Value};
use wiregauge_test_support::villas;

fn measured(line: &str) -> (Scratch, Record) {
    crate::support::controller::measured("stream", line)
}

/// The messages of the first round.
fn messages(scratch: &Scratch) -> Vec<Message> {
    let path = scratch.join("run").join("samples.parquet");
    SampleReader::open(&path).unwrap().next().unwrap().unwrap().samples
}

fn read(path: &Path, format: Format, kind: Kind) -> Vec<Sample> {
    villas::read(format, &std::fs::read(path).unwrap(), kind).unwrap()
}

fn rate(run: &Run, metric: RateMetric) -> f64 {
    run.rates.iter().find(|figure| figure.metric == metric).unwrap().rate.value
}

#[test]
fn what_arrives_is_in_the_file() {
    for (transport, format) in [("shm", Format::Csv), ("tcp", Format::Human)] {
        let (scratch, record) = measured(&format!(
            "--transport {transport} --rate 2k --count 600 --values 3 --signal counter \
             --kind integer --rounds 1 --file out.txt --format {}",
            format.name()
        ));
        let run = &record.runs[0];
        let spec: stream::Spec = run.case.spec("stream").unwrap();
        assert_eq!((run.case.size.0, spec.values), (48, 3));
        let told = &run.rounds[0].server.final_counters;
        assert_eq!(told["file.samples"], run.counts.received.to_string());
        assert_eq!(told["file.left_out"], "0");
        // Said where the file was written on the receiver's CPU, which is where no third was free.
        let free = wiregauge::host::allowed_cpus().len() > 2;
        let beside = run.warnings.iter().any(|warning| warning.kind == "file_on_receiver_cpu");
        assert_eq!((beside, told.contains_key("file.beside")), (!free, !free));

        let kept = read(&scratch.join("out.txt"), format, Kind::Integer);
        let messages = messages(&scratch);
        let arrived: Vec<&Message> =
            messages.iter().filter(|message| !message.receive_ns.is_nan()).collect();
        assert!(arrived.len() > 1, "{:?}", run.counts);
        assert_eq!(kept.len(), arrived.len());
        for (sample, message) in kept.iter().zip(&arrived) {
            assert_eq!(sample.sequence, message.sequence);
            let one = Value::Integer(sample.sequence as i64);
            assert_eq!(sample.values, [one; 3]);
            // The origin is the intended time: the delay in the file is the response.
            let delay = (sample.received.unwrap().as_ns() - sample.origin.as_ns()) as f64;
            let response = message.receive_ns - message.intended_ns;
            assert!((delay - response).abs() <= 3.0, "{delay} {response}");
        }
        let steps = kept.windows(2).map(|two| {
            let steps = two[1].sequence - two[0].sequence;
            (two[1].origin.as_ns() - two[0].origin.as_ns()).abs_diff(500_000 * steps)
        });
        assert!(steps.max().unwrap() <= 1);
    }
}

#[test]
fn steps_that_are_missed_are_gaps_and_neither_lost_nor_slow() {
    // A sample of 1024 values of a random walk takes far longer than 1 us to make.
    let line = "--transport shm --rate 1M --values 1024 --signal random --count 20k --warmup 0 \
                --rounds 1";
    let (scratch, record) = measured(line);
    let run = &record.runs[0];
    let counts = &run.counts;
    assert!(counts.missed_steps > 10_000, "{counts:?}");
    assert_eq!(counts.lost, 0, "{counts:?}");
    let all = messages(&scratch);
    let missed: Vec<&Message> = all.iter().filter(|m| m.flags.has(Flags::MISSED)).collect();
    assert_eq!(missed.len() as u64, counts.missed_steps);
    for message in missed {
        assert!(message.submit_ns.is_nan() && message.receive_ns.is_nan(), "{message:?}");
        assert!(!message.intended_ns.is_nan() && !message.flags.has(Flags::LOST));
    }
    assert_eq!(run.summary(Metric::OneWay).unwrap().count, counts.received);
    assert_eq!(run.summary(Metric::Jitter).unwrap().count, counts.received - 1);
    // What is sent is the last step that is due.
    let share = counts.sent as f64 / (counts.sent + counts.missed_steps) as f64;
    assert!((rate(run, RateMetric::Missed) - (1.0 - share)).abs() < 1e-9);
    let ceiling = rate(run, RateMetric::Ceiling);
    assert!((ceiling / (share * 1e6 * 8216.0) - 1.0).abs() < 1e-9, "{ceiling}");
    let first = all.iter().find(|m| !m.receive_ns.is_nan()).unwrap().sequence;
    let last = all.iter().rfind(|m| !m.receive_ns.is_nan()).unwrap().sequence;
    assert_eq!(last - first + 1 - counts.received, counts.gaps - first);
}

#[test]
fn rounds_and_sweeps() {
    let (scratch, record) =
        measured("--rate 5k --values 1,4 --count 100 --rounds 1 --timer timerfd --wait block");
    let sizes: Vec<u64> = record.runs.iter().map(|run| run.case.size.0).collect();
    assert_eq!(sizes, [32, 56]);
    assert!(record.runs[0].label.starts_with("stream tcp block 32 B at 5000/s"));
    assert_eq!(record.plan.name, "stream");
    drop(scratch);

    let (scratch, _) = measured("--rate 5k --count 100 --rounds 2 --file out.bin --format json");
    for round in 0..2 {
        let kept = read(&scratch.join(&format!("out.{round}.bin")), Format::Json, Kind::Float);
        assert!(!kept.is_empty());
    }
}

/// Exit code 2 and this in the sentence.
fn refused(line: &str, says: &str) {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("there"), "").unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let ended = wiregauge(&scratch, &[&["stream"], &words[..]].concat());
    assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
    assert!(format!("{ended:?}").contains(says), "{line}: {ended:?}");
}

#[test]
fn what_no_stream_has_is_refused_in_a_sentence() {
    refused("--values 0", "1");
    refused("--values 1025", "use 1 to 1024");
    refused("--rate 5", "use 10 to 1000000");
    refused("--rate 2M", "use 10 to 1000000");
    refused("--threads 2", "use --threads 1");
    refused("--check", "its messages are samples");
    refused("--frequency nan", "invalid number");
    refused("--file there", "exists already");
    refused("--file new --values 1,2", "one combination");
    refused("--file new --rate 10,20", "one combination");
    refused("--format csv", "--file");
    refused("--transport verbs --operation read", "--operation");
}

#[test]
fn a_file_that_cannot_be_made_is_refused_before_anything_is_sent() {
    refused("--file none/such --rounds 1", "could not be created");
}

#[test]
fn a_full_disk_ends_the_file_and_not_the_stream() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("small")).unwrap();
    let small = "mount -t tmpfs -o size=64k none small && exec \"$0\" stream --transport tcp \
                 --rate 20k --values 64 --count 4000 --rounds 1 --out run --file small/out.csv";
    // A mount of its own, which goes with the process.
    let mine: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["--mount"],
        false => &["--mount", "--user", "--map-root-user"],
    };
    let mut command = std::process::Command::new("unshare");
    command.args(mine).args(["sh", "-c", small, env!("CARGO_BIN_EXE_wiregauge")]);
    let ended = Controller::of(&scratch, command).end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(!record.complete, "the file was asked for");
    let run = &record.runs[0];
    let seen = &run.rounds[0].server.final_counters;
    let count = |name: &str| seen[name].parse::<u64>().unwrap();
    assert!(seen["file.fault"].contains("cannot write more samples"), "{seen:?}");
    assert_eq!(count("file.samples") + count("file.left_out"), run.counts.received);
    assert!(count("file.left_out") > 0);
    assert!(run.warnings.iter().any(|warning| warning.kind == "file_failed"), "{:?}", run.warnings);
    assert!(run.complete);
}
