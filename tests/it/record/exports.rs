//! Exports: what readers that are not ours find in them.

use super::{names, written};
use crate::support::python::{READERS, python};
use crate::support::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge::options::Named;
use wiregauge::plan::Axis;
use wiregauge::record::schema::{Record, Run};
use wiregauge::record::{RunDirectory, read_record};
use wiregauge::report::export::{ExportError, Format, Rows, Selection, export, export_to};
use wiregauge::sample::{Flags, RoundSamples, Sample};
use wiregauge::stats::Metric;
use wiregauge::units::Bytes;
use wiregauge_test_support::bounded::output;

/// A table column by column. Their order is part of what is compared, and a map of serde_json
/// sorts.
type Columns = Vec<(&'static str, Vec<Value>)>;

fn number(v: f64) -> Value {
    match v {
        v if v.is_nan() => Value::Null,
        v if v.is_infinite() => Value::String(v.to_string()),
        v => json!(v),
    }
}

fn stamps(s: &Sample) -> [(&'static str, Value); 5] {
    let names = ["intended_ns", "submit_ns", "send_ns", "receive_ns", "complete_ns"];
    std::array::from_fn(|at| (names[at], number(s.stamps()[at])))
}

/// A row of `samples.parquet`.
fn stored(round: &RoundSamples, s: &Sample) -> Vec<(&'static str, Value)> {
    let mut row = vec![
        ("run", json!(round.run)),
        ("round", json!(round.round)),
        ("thread", json!(s.thread)),
        ("sequence", json!(s.sequence)),
        ("size", json!(s.size)),
    ];
    row.extend(stamps(s));
    row.push(("flags", json!(s.flags.0.cast_signed())));
    row
}

/// A row of an export, with these columns in the middle.
fn exported(
    run: &Run,
    round: u32,
    s: &Sample,
    middle: Vec<(&'static str, Value)>,
) -> Vec<(&'static str, Value)> {
    let fates = [(128, "missed"), (256, "unsent"), (512, "unfinished"), (2, "lost")];
    let fate = fates.iter().find(|(bit, _)| s.flags.0 & bit != 0);
    let clients = run.case.on_axis(Axis::Clients).map(|clients| clients as i64);
    let mut row = vec![
        ("run", json!(run.index)),
        ("case", json!(run.label)),
        ("pattern", json!(run.case.pattern)),
        ("transport", json!(run.case.transport.name())),
        ("wait", json!(run.case.wait.name())),
        ("size_bytes", json!(s.size)),
        ("offered_per_s", run.case.on_axis(Axis::Rate).map_or(Value::Null, number)),
        ("clients", json!(clients)),
        ("round", json!(round)),
        ("role", json!(if s.flags.has(Flags::REVERSE) { "server" } else { "client" })),
        ("thread", json!(s.thread)),
        ("sequence", json!(s.sequence)),
        ("messages", json!(7)),
    ];
    row.extend(middle);
    row.push(("warmup", json!(s.flags.has(Flags::WARMUP))));
    row.push(("outcome", json!(fate.map_or("received", |(_, fate)| fate))));
    row.push(("flags", json!(s.flags.0)));
    row
}

fn values(s: &Sample) -> Option<Vec<(&'static str, Value)>> {
    let missed = s.flags.has(Flags::MISSED) || s.submit_ns.is_nan();
    let lost = s.flags.has(Flags::LOST) || s.receive_ns.is_nan();
    let value = if lost { f64::INFINITY } else { s.receive_ns - s.submit_ns };
    let row = [
        ("time_ns", number(s.submit_ns)),
        ("metric", json!("rtt")),
        ("value", number(value)),
        ("unit", json!("ns")),
    ];
    (!missed).then_some(row.to_vec())
}

fn columns(rows: impl Iterator<Item = Vec<(&'static str, Value)>>) -> Columns {
    let mut columns = Columns::new();
    for row in rows {
        for (at, (name, value)) in row.into_iter().enumerate() {
            if columns.len() <= at {
                columns.push((name, Vec::new()));
            }
            columns[at].1.push(value);
        }
    }
    columns
}

/// What `tests/readers.py` is to find: tables column by column, and the record.
fn expected(record: &Record, rounds: &[RoundSamples]) -> String {
    let every = || rounds.iter().flat_map(|r| r.samples.iter().map(move |s| (r, s)));
    let run = |r: &RoundSamples| record.runs.iter().find(|run| run.index == r.run).unwrap();
    let tables = [
        ("samples", columns(every().map(|(r, s)| stored(r, s)))),
        ("stamps", columns(every().map(|(r, s)| exported(run(r), r.round, s, stamps(s).to_vec())))),
        (
            "values",
            columns(every().filter_map(|(r, s)| Some(exported(run(r), r.round, s, values(s)?)))),
        ),
    ];
    let object = |parts: Vec<String>| format!("{{{}}}", parts.join(","));
    let table = |(name, columns): &(&str, Columns)| {
        let columns = columns.iter().map(|(n, v)| format!("\"{n}\":{}", json!(v)));
        format!("\"{name}\":{}", object(columns.collect()))
    };
    let tables = object(tables.iter().map(table).collect());
    let record = serde_json::to_value(record).unwrap();
    format!("{{\"tables\":{tables},\"record\":{record}}}")
}

/// A record of awkward rounds, with a name that needs quotes and rows of several messages.
fn awkward(dir: &Path) -> (Record, Vec<RoundSamples>) {
    let rounds = awkward_rounds();
    let mut record = record_of(&rounds);
    for run in &mut record.runs {
        run.label = format!("tcp \"{}\", 64 B", run.index);
        run.rounds.iter_mut().for_each(|round| round.stride = 7);
    }
    let mut writer = RunDirectory::create(dir, Bytes(1 << 20)).unwrap();
    rounds.iter().for_each(|round| writer.append(round).unwrap());
    writer.finish(&record, |_| String::new()).unwrap();
    (read_record(dir).unwrap(), rounds)
}

/// Has `tests/readers.py` read files, each named as a table.
fn read_by_others(wanted: &Path, files: &[PathBuf]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers.py");
    let read = output(Command::new(python()).arg(script).arg(wanted).args(files));
    let text = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{text}\nTo install the readers: {READERS}");
}

#[test]
fn every_format_is_read_back_by_strict_parsers() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    let (record, rounds) = awkward(&dir);
    let wanted = scratch.join("expected.json");
    fs::write(&wanted, expected(&record, &rounds)).unwrap();
    let mut files = vec![dir.join(super::SAMPLES)];
    for (rows, name) in [(Rows::Values, "values"), (Rows::Stamps, "stamps")] {
        for format in [Format::Parquet, Format::Csv, Format::Json] {
            let path = scratch.join(&format!("{name}.{}", format.name()));
            let selection = Selection { rows, with_warmup: true, ..Selection::default() };
            export(&dir, format, &selection, Some(&path)).unwrap();
            files.push(path);
        }
    }
    read_by_others(&wanted, &files);
}

/// The rows of a CSV without quotes, by the names of its columns.
fn csv(dir: &Path, selection: &Selection) -> Vec<Map<String, Value>> {
    let mut out = Vec::new();
    export_to(dir, Format::Csv, selection, Path::new("memory"), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let cell = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
    let row = |line: &str| {
        let cells = line.split(',').map(cell);
        names.iter().map(|name| name.to_string()).zip(cells).collect()
    };
    lines.map(row).collect()
}

#[test]
fn a_selection_leaves_out_what_it_says() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    written(&dir, &awkward_rounds());
    let all = Selection { rows: Rows::Stamps, with_warmup: true, ..Selection::default() };
    let one = Selection { runs: vec![0], ..all.clone() };
    let part = Selection { with_warmup: false, ..one.clone() };
    let round = |round| Selection { rounds: vec![round], ..one.clone() };
    assert_eq!(csv(&dir, &all).len(), 5006);
    assert_eq!(csv(&dir, &one).len(), 5000);
    assert_eq!(csv(&dir, &part).len(), 4900);
    assert_eq!(csv(&dir, &round(0)).len(), 0);
    assert_eq!(csv(&dir, &round(1)).len(), 5000);
    assert!(csv(&dir, &part).iter().all(|row| row["warmup"] == false && row["run"] == 0));
    let path = scratch.join("part.parquet");
    export(&dir, Format::Parquet, &part, Some(&path)).unwrap();
    let error = |selection: &Selection| {
        export(&dir, Format::Csv, selection, Some(&scratch.join("none.csv"))).unwrap_err()
    };
    let none = Selection { runs: vec![9], ..all.clone() };
    assert!(matches!(error(&none), ExportError::Selection(_)));
    assert!(error(&none).to_string().contains("run 9 is not in"), "{}", error(&none));
    assert!(error(&round(2)).to_string().ends_with(": use 0 to 1"), "{}", error(&round(2)));
    let post = Metric::Post.into();
    let absent = error(&Selection { observables: vec![post], ..Selection::default() });
    assert_eq!(absent.to_string(), "no selected run has the metric post: use rtt");
    let error = export(&dir, Format::Csv, &all, Some(&path)).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(names(&scratch.0), ["part.parquet", "run"]);
}

/// The messages that a trace shows, by sequence.
fn traced(dir: &Path, selection: &Selection) -> Vec<u64> {
    let mut out = Vec::new();
    export_to(dir, Format::Trace, selection, Path::new("memory"), &mut out).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let shown: BTreeSet<u64> =
        events.filter_map(|event| event["args"]["sequence"].as_u64()).collect();
    shown.into_iter().collect()
}

/// A record of one round with these metrics.
fn of_metrics(dir: &Path, round: RoundSamples, metrics: &[Metric]) {
    let rounds = [round];
    let mut record = record_of(&rounds);
    record.runs[0].figures = metrics.iter().map(|metric| figure_of(&rounds, *metric)).collect();
    let mut writer = RunDirectory::create(dir, Bytes(1 << 20)).unwrap();
    writer.append(&rounds[0]).unwrap();
    writer.finish(&record, |_| String::new()).unwrap();
}

#[test]
fn a_trace_is_around_the_slowest_message_that_arrived() {
    let scratch = Scratch::new();
    // The first 100 are the warm-up. One was posted for long and never arrived.
    let trace = |name: &str, slowest: usize, selection: &Selection| {
        let mut round = realistic_round(0, 0, 1000);
        let [late, lost] = [slowest, 150].map(|at| round.samples[at].submit_ns);
        round.samples[slowest].receive_ns = late + 1e6;
        let lost_one = &mut round.samples[150];
        (lost_one.receive_ns, lost_one.complete_ns) = (f64::NAN, lost + 5e6);
        lost_one.flags = Flags::LOST;
        let dir = scratch.join(name);
        of_metrics(&dir, round, &[Metric::Rtt, Metric::Post]);
        traced(&dir, selection)
    };
    let measured = Selection { around: Some(10), ..Selection::default() };
    let ten = Selection { with_warmup: true, ..measured.clone() };
    let sequences = |range: std::ops::Range<u64>| range.collect::<Vec<_>>();
    assert_eq!(trace("middle", 120, &ten), sequences(115..125));
    assert_eq!(trace("end", 997, &ten), sequences(990..1000), "as many at the end");
    assert_eq!(trace("begin", 102, &ten), sequences(97..107));
    assert_eq!(trace("measured", 102, &measured), sequences(100..110), "without the warm-up");
    let all = Selection { around: Some(5000), ..ten };
    assert_eq!(trace("all", 120, &all), sequences(0..1000));
}

#[test]
fn a_trace_of_a_metric_that_is_no_span_is_refused() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    let metrics = [Metric::Rtt, Metric::HalfRtt, Metric::Jitter, Metric::Post];
    of_metrics(&dir, realistic_round(0, 0, 1000), &metrics);
    let export = |metrics: &[Metric], format| {
        let observables = metrics.iter().map(|metric| (*metric).into()).collect();
        let selection = Selection { observables, ..Selection::default() };
        export_to(&dir, format, &selection, Path::new("memory"), &mut Vec::new())
    };
    for metric in [Metric::HalfRtt, Metric::Jitter] {
        let error = export(&[Metric::Rtt, metric], Format::Trace).unwrap_err().to_string();
        let name = metric.name();
        let says =
            format!("a trace cannot show {name}, which is not a span of time: use rtt, post");
        assert_eq!(error, says);
        export(&[metric], Format::Csv).unwrap();
    }
    export(&[Metric::Post], Format::Trace).unwrap();
    let error = export(&[Metric::Response], Format::Trace).unwrap_err().to_string();
    assert_eq!(error, "no selected run has the metric response: use rtt, post");
}

#[test]
fn every_format_has_a_name_that_is_read_back() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(*format));
    }
    assert_eq!(Format::from_name("xml"), None);
}
