//! Exports of real runs, read back by programs that are not ours, and the Python package.

use crate::support::controller::{Scratch, wiregauge};
use crate::support::python::{READERS, python};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge::record::read_record;
use wiregauge::report::export::NEVER_NS;
use wiregauge_test_support::bounded;

/// Has the program measure something; a semicolon is a space within an argument.
#[track_caller]
fn run(scratch: &Scratch, name: &str, command: &str) -> PathBuf {
    let line = format!("{command} --out {name}");
    let words: Vec<String> = line.split(' ').map(|word| word.replace(';', " ")).collect();
    let ended = wiregauge(scratch, &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(matches!(ended.code, Some(0 | 1)), "{line}: {ended:?}");
    scratch.join(name)
}

const LOSSY: &str = "latency --transport synthetic --count 2000 --rounds 2 \
                     --synthetic exponential(1us,500ns);loss(0.5%)";

#[track_caller]
fn export(scratch: &Scratch, run: &str, options: &str, out: &str) -> PathBuf {
    let line = format!("export {run} {options} --out {out}");
    let ended = wiregauge(scratch, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    scratch.join(out)
}

/// What a command prints.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = bounded::output(command);
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{why}\nTo install the readers: {READERS}");
    format!("{said}{why}")
}

fn below_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn logs_metrics_and_traces_are_read_back_by_others() {
    let scratch = Scratch::new();
    let runs = [
        ("lossy", LOSSY),
        // Requests overlap; two threads share a process.
        ("load", "load --transport tcp --rate 5k,50k --count 400 --rounds 2"),
        ("threads", "latency --transport tcp --threads 2 --count 300 --rounds 2"),
        ("stream", "stream --transport udp --rate 20k --count 400 --rounds 2"),
        ("bandwidth", "bandwidth --transport tcp --size 4KiB --count 2000 --rounds 2"),
    ];
    for (name, command) in runs {
        let dir = run(&scratch, name, command);
        let mut files = vec![
            export(&scratch, name, "--format hlog", &format!("{name}.hlog")),
            export(&scratch, name, "--format openmetrics", &format!("{name}.openmetrics")),
        ];
        if name != "bandwidth" {
            let options = "--format trace --run 0 --round 1 --with-warmup";
            files.push(export(&scratch, name, options, &format!("{name}.trace")));
        }
        let mut script = Command::new(python());
        let told = said(script.arg(below_root("tests/formats.py")).arg(&dir).args(files));
        assert!(told.contains(", 0 differ"), "{name}: {told}");
    }
}

#[test]
fn a_log_has_the_quantiles_of_the_record() {
    let scratch = Scratch::new();
    let dir = run(&scratch, "lossy", &LOSSY.replace("--rounds 2", "--rounds 1"));
    let bytes = std::fs::read(export(&scratch, "lossy", "--format hlog", "log")).unwrap();
    let mut of_tags: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(&bytes) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        let text = interval.encoded_histogram();
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut &*base64(text)).unwrap();
        let tag = interval.tag().unwrap().to_string();
        match of_tags.get_mut(&tag) {
            Some(all) => all.add(&histogram).unwrap(),
            None => drop(of_tags.insert(tag, histogram)),
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    let record = read_record(&dir).unwrap();
    let comments = text.lines().filter_map(|line| {
        let (_, never) =
            line.strip_prefix("#latency_synthetic_busy_64_B:rtt ")?.split_once(": ")?;
        never.strip_suffix(" never arrived, here 24 h")?.parse::<u64>().ok()
    });
    assert_eq!(comments.sum::<u64>(), record.runs[0].figures[0].summary.lost, "{text}");
    for figure in &record.runs[0].figures {
        let metric = figure.metric.name();
        let log = &of_tags[&format!("latency_synthetic_busy_64_B:{metric}")];
        assert_eq!(log.len(), figure.summary.count, "{metric}");
        assert!(figure.summary.lost > 0 && log.max() >= NEVER_NS, "{metric}: {}", log.max());
        // One round: the figure is of all samples, as the log is.
        for quantile in &figure.summary.quantiles {
            let Some(value) = quantile.value else { continue };
            let (got, want) = (log.value_at_quantile(quantile.p) as f64, value.0);
            let error = (got - want.min(NEVER_NS as f64)).abs();
            assert!(error <= 0.5 + want / 1000.0, "{metric} p{}: {got}, {want}", quantile.p);
        }
    }
}

/// The bytes of a text in base64, by its alphabet.
fn base64(text: &str) -> Vec<u8> {
    use ::base64::Engine;
    ::base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[test]
fn a_trace_shows_a_few_messages_around_the_slowest() {
    let scratch = Scratch::new();
    let stall = "normal(1us,50ns);stall(5ms@700)";
    run(
        &scratch,
        "stall",
        &format!(
            "latency --transport synthetic --synthetic {stall} --count 1000 --rounds 1 --warmup 10"
        ),
    );
    let path = export(&scratch, "stall", "--format trace --around 20", "trace");
    let trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(spans.len(), 20);
    assert!(spans.iter().any(|span| span["dur"].as_f64() == Some(5000.0)), "{spans:?}");
}

#[test]
fn what_a_format_cannot_show_is_refused() {
    let scratch = Scratch::new();
    run(&scratch, "two", "latency --transport null,synthetic --count 20 --rounds 2");
    for (options, says) in [
        ("--format trace", "a trace shows one run: choose it by --run: 0 (latency "),
        ("--format trace --run 1 --round 0,1", "a trace shows one round: use one --round"),
        ("--format hlog --stamps", "hlog does not support --stamps: use csv, json or parquet"),
        ("--format csv --around 5", "csv does not support --around: use trace"),
        ("--format openmetrics --round 1", "openmetrics does not support --round"),
    ] {
        let line = format!("export two {options}");
        let ended = wiregauge(&scratch, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{options}: {ended:?}");
        assert!(ended.stderr.contains(says), "{options}: {ended:?}");
    }
}

#[test]
fn the_python_package_reads_what_the_program_exports() {
    let scratch = Scratch::new();
    let runs = [
        ("lossy", LOSSY),
        ("survey", "latency --transport tcp,shm --count 1000 --rounds 3"),
        ("load", "load --transport tcp --rate 2k,5k,20k --count 300 --rounds 2"),
        ("stream", "stream --transport udp --rate 20k --count 400 --rounds 2"),
        ("bandwidth", "bandwidth --transport tcp --size 4KiB --count 2000 --direction bi"),
    ];
    for (name, command) in runs {
        run(&scratch, name, command);
        for (options, kind) in [("", "values"), (" --stamps", "stamps")] {
            let options = format!("--format parquet --with-warmup{options}");
            export(&scratch, name, &options, &format!("{name}.{kind}.parquet"));
        }
        export(&scratch, name, "--format parquet", &format!("{name}.measured.parquet"));
    }
    for (name, metric) in [("stream", "jitter"), ("load", "lateness")] {
        let options = format!("--format parquet --with-warmup --metric {metric}");
        export(&scratch, name, &options, &format!("{name}.{metric}.parquet"));
    }
    let python = || {
        let mut command = Command::new(python());
        command.env("PYTHONPATH", below_root("python/src")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("WIREGAUGE_RECORDS", &scratch.0).current_dir(&scratch.0);
        command.env("MPLBACKEND", "Agg");
        command
    };
    let tests = ["-m", "unittest", "discover", "-s"];
    let told = said(python().args(tests).arg(below_root("python/tests")));
    assert!(told.trim_end().ends_with("OK"), "{told}");
    let examples = [
        ("cdf.py", vec!["survey"], ["latency tcp busy 64 B: half_rtt", "p99"]),
        ("over_time.py", vec!["survey", "1"], ["latency shm busy 64 B: half_rtt", "2 p50"]),
        ("load_curve.py", vec!["load"], ["offered/s", "20000"]),
    ];
    for (script, arguments, says) in examples {
        let path = below_root("python/examples").join(script);
        let told = said(python().arg(path).args(arguments));
        assert!(says.iter().all(|part| told.contains(part)), "{script}: {told}");
        let plot = scratch.join(&script.replace(".py", ".png"));
        assert_eq!(plot.exists(), told.contains("wrote "), "{script}: {told}");
    }
}
