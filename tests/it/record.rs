//! The run directory: what was written is read back, by us and by others; what is damaged or
//! cannot be written is one sentence.

mod damaged;
mod exports;
mod impossible;
mod unfinished;

use crate::support::*;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge::record::directory::default_name;
use wiregauge::record::schema::Record;
use wiregauge::record::{
    RecordError, RunDirectory, SampleReader, SampleWriter, Writer, read_record,
};
use wiregauge::sample::{RoundSamples, Sample, grid};
use wiregauge::units::Bytes;
use wiregauge_test_support::bounded::output;

const SAMPLES: &str = "samples.parquet";

/// Writes a whole run directory.
fn written(path: &Path, rounds: &[RoundSamples]) {
    let mut writer = RunDirectory::create(path, Bytes(1 << 20)).unwrap();
    for round in rounds {
        writer.append(round).unwrap();
    }
    assert!(!path.exists(), "nothing appears before the end");
    assert_eq!(writer.finish(&record_of(rounds), |_| "<!doctype html>".into()).unwrap(), path);
}

fn read_all(path: &Path) -> Result<Vec<RoundSamples>, RecordError> {
    let reader = SampleReader::open(path)?;
    reader.collect()
}

/// An error's sentence: one line, not empty, no debug print.
fn sentence<T>(result: Result<T, RecordError>) -> String {
    let text = result.err().expect("an error").to_string();
    assert!(!text.is_empty() && !text.contains('\n') && text.len() < 1000, "{text}");
    text
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_directory_is_read_back_exactly() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    let rounds = awkward_rounds();
    written(&dir, &rounds);
    assert_eq!(names(&scratch.0), ["run"]);
    assert_eq!(names(&dir), ["record.json", "report.html", SAMPLES]);
    let record = read_record(&dir).unwrap();
    let samples = record.samples.clone();
    let bytes = fs::metadata(dir.join(SAMPLES)).unwrap().len();
    assert_eq!(samples.as_ref().map(|file| file.bytes), Some(bytes));
    let written = Record { samples, ..record_of(&rounds) };
    assert_eq!(serde_json::to_value(record).unwrap(), serde_json::to_value(written).unwrap());
    let back = read_all(&dir.join(SAMPLES)).unwrap();
    assert_eq!(bits(&back), bits(&rounds));
    let full: Vec<_> = rounds.iter().filter(|r| !r.samples.is_empty()).collect();
    assert_eq!(back.len(), full.len());
    let rows: usize = back.iter().map(|round| round.samples.len()).sum();
    assert_eq!(rows, 5 + 1 + 5000);
}

#[test]
fn the_grid_is_exact_and_within_a_thirty_second() {
    for ns in [0.0, 0.03125, 1.03, 12_345.678, 86_400e9 + 0.3, -7.77, 2f64.powi(48) + 0.4] {
        let on = grid(ns);
        assert!((on - ns).abs() <= 1.0 / 32.0, "{ns} became {on}");
        assert_eq!((on * 16.0).fract(), 0.0);
        assert_eq!(grid(on).to_bits(), on.to_bits());
    }
    assert!(grid(f64::NAN).is_nan());
    for far in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
        assert_eq!(grid(far), far);
    }
}

#[test]
fn a_round_of_several_row_groups_is_one_round() {
    let scratch = Scratch::new();
    let path = scratch.join(SAMPLES);
    let count = wiregauge::record::samples::GROUP_ROWS as u64 + 3;
    let rounds = [realistic_round(0, 0, count), realistic_round(0, 1, 2)];
    let mut writer = sample_writer(&path);
    rounds.iter().for_each(|r| writer.append(r).unwrap());
    writer.finish().unwrap();
    assert_eq!(bits(&read_all(&path).unwrap()), bits(&rounds));
    let mut reader = SampleReader::open(&path).unwrap();
    let parts = std::iter::from_fn(|| reader.next_part()).map(|p| p.unwrap().samples.len());
    assert_eq!(parts.collect::<Vec<_>>(), [count as usize - 3, 3, 2]);
}

fn sample_writer(path: &Path) -> SampleWriter<fs::File> {
    SampleWriter::new(fs::File::create_new(path).unwrap(), path, "a test").unwrap()
}

#[test]
fn a_million_rows_take_little_space() {
    let scratch = Scratch::new();
    let path = scratch.join(SAMPLES);
    let mut writer = sample_writer(&path);
    for round in 0..5 {
        writer.append(&realistic_round(0, round, 200_000)).unwrap();
    }
    writer.finish().unwrap();
    let size = fs::metadata(&path).unwrap().len();
    println!("{size} bytes for a million rows");
    // Three stamps of 8 bytes would be 24 MB; what is random in them needs at least 11 bits each.
    assert!(size < 14_500_000, "{size} bytes for a million rows");
}

#[test]
fn numbers_above_the_columns_are_refused() {
    let scratch = Scratch::new();
    let mut writer = sample_writer(&scratch.join(SAMPLES));
    let big = u32::MAX;
    let mut late = realistic_round(0, 0, 1);
    late.samples[0].sequence = u64::MAX;
    let mut long = realistic_round(0, 0, 1);
    long.samples[0].size = big;
    for round in [
        RoundSamples { run: big, ..realistic_round(0, 0, 1) },
        RoundSamples { round: big, ..realistic_round(0, 0, 1) },
        long,
        late,
    ] {
        let text = sentence(writer.append(&round));
        assert!(text.contains("use at most"), "{text}");
    }
}

#[test]
fn a_taken_name_is_refused_and_a_default_one_counts_on() {
    let scratch = Scratch::new();
    let base = scratch.join("wiregauge-runs");
    let started: jiff::Timestamp = "2026-11-21T05:52:43Z".parse().unwrap();
    assert_eq!(default_name("a/b", started), "20261121T055243Z-a-b");
    let create = || RunDirectory::create_named(&base, "survey", started, Bytes(1)).unwrap();
    let finish = |w: Writer| w.finish(&record_of(&[]), |_| String::new()).unwrap();
    let first = finish(create());
    assert_eq!(first, base.join("20261121T055243Z-survey"));
    // Two at the same time: the second does not take the first's name.
    let (a, b) = (create(), create());
    assert_eq!(finish(b), base.join("20261121T055243Z-survey-3"));
    assert_eq!(finish(a), base.join("20261121T055243Z-survey-2"));
    let text = sentence(RunDirectory::create(&first, Bytes(1)));
    assert!(text.contains("exists already"), "{text}");
    assert!(sentence(RunDirectory::create(Path::new("/"), Bytes(1))).contains("name"));
}

#[test]
fn a_target_that_appears_meanwhile_is_not_replaced() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    let writer = RunDirectory::create(&dir, Bytes(1)).unwrap();
    fs::create_dir(&dir).unwrap();
    let text = sentence(writer.finish(&record_of(&[]), |_| String::new()));
    assert!(text.contains("appeared while the run went on, and is never overwritten"), "{text}");
    let partial = format!(".run.partial-{}", std::process::id());
    assert_eq!(names(&scratch.0), [partial, "run".into()]);
    assert!(names(&dir).is_empty());
}

#[test]
fn an_abandoned_run_leaves_nothing() {
    let scratch = Scratch::new();
    let mut writer = RunDirectory::create(&scratch.join("run"), Bytes(1)).unwrap();
    writer.append(&realistic_round(0, 0, 1000)).unwrap();
    let partial = format!(".run.partial-{}", std::process::id());
    assert_eq!(names(&scratch.0), [partial]);
    drop(writer);
    assert!(names(&scratch.0).is_empty());
}

#[test]
fn a_record_that_could_not_be_read_again_keeps_its_samples() {
    let scratch = Scratch::new();
    let mut writer = RunDirectory::create(&scratch.join("run"), Bytes(1)).unwrap();
    let round = realistic_round(0, 0, 10);
    writer.append(&round).unwrap();
    let mut record = record_of(std::slice::from_ref(&round));
    record.clock.residual_ppb = f64::NAN;
    let text = sentence(writer.finish(&record, |_| String::new()));
    assert!(text.contains("samples are kept in"), "{text}");
    let partial = scratch.join(&format!(".run.partial-{}", std::process::id()));
    assert_eq!(bits(&read_all(&partial.join(SAMPLES)).unwrap()), bits(&[round]));
    assert!(sentence(read_record(&partial)).contains("interrupted run"));
}

#[test]
fn what_cannot_be_written_is_refused_before_the_run() {
    let scratch = Scratch::new();
    let huge = RunDirectory::create(&scratch.join("run"), Bytes(u64::MAX)).map(|_| ());
    let text = sentence(huge);
    assert!(text.contains("bytes free and the run may write"), "{text}");
    assert!(names(&scratch.0).is_empty());
    fs::write(scratch.join("file"), "").unwrap();
    let under_a_file = RunDirectory::create(&scratch.join("file").join("run"), Bytes(1));
    assert!(sentence(under_a_file.map(|_| ())).contains("cannot create"));
    // Holds for root too, who may write where permissions forbid it.
    let in_proc = RunDirectory::create(Path::new("/proc/run"), Bytes(0));
    assert!(sentence(in_proc.map(|_| ())).contains("cannot create a run directory in /proc"));
}

/// Runs the ignored test `inner` of this module in a mount namespace of its own, with `options` for
/// a tmpfs on the directory that it finds in `WIREGAUGE_TMPFS`. The mount ends with the process.
fn on_tmpfs(options: &str, inner: &str) {
    let scratch = Scratch::new();
    let mount = scratch.join("mount");
    fs::create_dir(&mount).unwrap();
    let script = "mount -t tmpfs -o \"$1\" tmpfs \"$WIREGAUGE_TMPFS\" && \
                  exec \"$2\" --exact \"$3\" --ignored --nocapture";
    let root = rustix::process::geteuid().is_root();
    let mut unshare = Command::new("unshare");
    unshare
        .args(if root { &["-m"][..] } else { &["-r", "-m"][..] })
        .args(["sh", "-c", script, "sh", options])
        .arg(std::env::current_exe().unwrap())
        .arg(format!("record::{inner}"))
        .env("WIREGAUGE_TMPFS", &mount);
    let output = output(&mut unshare);
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn tmpfs() -> PathBuf {
    std::env::var_os("WIREGAUGE_TMPFS").expect("run by on_tmpfs").into()
}

#[test]
fn a_full_disk_leaves_no_directory() {
    on_tmpfs("size=256k", "inner_full_disk");
}

#[test]
#[ignore = "runs in the mount namespace of a_full_disk_leaves_no_directory"]
fn inner_full_disk() {
    let mount = tmpfs();
    let dir = mount.join("run");
    let text = sentence(RunDirectory::create(&dir, Bytes(1 << 20)).map(|_| ()));
    assert!(text.contains("bytes free"), "{text}");
    let mut writer = RunDirectory::create(&dir, Bytes(100_000)).unwrap();
    let full = (0..100).find_map(|n| writer.append(&realistic_round(0, n, 2000)).err());
    let text = full.expect("100 rounds are more than 256 KiB").to_string();
    assert!(text.contains("is full") && text.contains(SAMPLES), "{text}");
    assert!(names(&mount).is_empty(), "{:?}", names(&mount));
    assert!(sentence(writer.append(&realistic_round(0, 0, 1))).contains("abandoned"));
    assert!(sentence(writer.finish(&record_of(&[]), |_| String::new())).contains("abandoned"));
    assert!(names(&mount).is_empty());
    // The last file may be the one that does not fit.
    let mut writer = RunDirectory::create(&dir, Bytes(100_000)).unwrap();
    let round = [realistic_round(0, 0, 2000)];
    writer.append(&round[0]).unwrap();
    let text = sentence(writer.finish(&record_of(&round), |_| "x".repeat(1 << 18)));
    assert!(text.contains("is full") && text.contains("report.html"), "{text}");
    assert!(names(&mount).is_empty());
    println!("full disk: {text}");
}

#[test]
fn a_read_only_parent_is_refused() {
    on_tmpfs("size=256k,ro", "inner_read_only");
}

#[test]
#[ignore = "runs in the mount namespace of a_read_only_parent_is_refused"]
fn inner_read_only() {
    let text = sentence(RunDirectory::create(&tmpfs().join("run"), Bytes(1)).map(|_| ()));
    assert!(text.contains("cannot create") && text.contains("Read-only"), "{text}");
}

#[test]
fn what_is_no_record_is_a_sentence() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    assert!(sentence(read_record(&dir)).contains("does not exist"));
    fs::create_dir(&dir).unwrap();
    let empty = sentence(read_record(&dir));
    assert!(empty.contains("it is empty") && empty.contains("wiregauge recover DIR"), "{empty}");
    let file = dir.join("record.json");
    fs::write(&file, "").unwrap();
    assert!(sentence(read_record(&file)).contains("it is a file"));
    let told = |content: &[u8]| {
        fs::write(&file, content).unwrap();
        sentence(read_record(&dir))
    };
    assert!(told(b"").contains("record.json is empty: use a run directory, or `wiregauge recover"));
    assert!(told(b"{\n  \"schema\": nonsense").contains("line 2, column"));
    assert!(told(b"{}").contains("is no record: use a run directory, or `wiregauge recover DIR`"));
    assert!(told(b"[1]").contains("line 1"));
    assert!(told(br#"{"schema": "fio", "version": 1}"#).contains("\"fio\""));
    assert!(told(br#"{"schema": ["\u0007"], "version": 1}"#).contains("schema"));
    let newer = told(br#"{"schema": "wiregauge.record", "version": 4}"#);
    assert!(newer.contains("version 4") && newer.contains("up to 3"), "{newer}");
    for version in 0..=3 {
        let empty = format!(r#"{{"schema": "wiregauge.record", "version": {version}}}"#);
        assert!(told(empty.as_bytes()).contains("missing field"), "{version}");
    }
    assert!(told(&b"[".repeat(100_000)).contains("line 1"));
    let sparse = fs::File::create(&file).unwrap();
    sparse.set_len((64 << 20) + 1).unwrap();
    assert!(sentence(read_record(&dir)).contains("above the limit of"));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(sentence(read_record(&dir)).contains("not a plain file"));
}

#[test]
fn what_is_no_samples_file_is_a_sentence() {
    let scratch = Scratch::new();
    let path = scratch.join(SAMPLES);
    assert!(sentence(read_all(&path)).contains(SAMPLES));
    let told = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        sentence(read_all(&path))
    };
    assert!(told(b"").contains("is empty: restore it"));
    assert!(told(b"PAR1").contains("too few"));
    assert!(told(b"PAR1 and nothing else").contains("does not end"));
    assert!(told(b"PAR1\xff\xff\xff\x7fPAR1").contains("longer than the file"));
    assert!(told(b"PAR1\0\0\0\0PAR1").contains("is damaged"));
    assert!(sentence(read_all(&scratch.0)).contains("not a plain file"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_stamps_are_read_back(stamps in proptest::collection::vec(any::<[u64; 5]>(), 0..50)) {
        let mut round = realistic_round(3, 4, stamps.len() as u64);
        for (sample, stamps) in round.samples.iter_mut().zip(stamps) {
            *sample = Sample::new(sample.sequence, 64, stamps.map(f64::from_bits), sample.flags);
        }
        let scratch = Scratch::new();
        let mut writer = sample_writer(&scratch.join(SAMPLES));
        writer.append(&round).unwrap();
        writer.finish().unwrap();
        prop_assert_eq!(bits(&read_all(&scratch.join(SAMPLES)).unwrap()), bits(&[round]));
    }
}
