//! The rows that judge what leaves the program: a run through agents, directory, report and
//! exports.

use super::Row;
use super::simulate::ping_pong;
use crate::pattern::registry;
use crate::plan::{Plan, Rounds};
use crate::record::directory::SAMPLES_FILE;
use crate::record::schema::{Metric, Record};
use crate::record::{RunDirectory, SampleReader, read_record};
use crate::report::export::{CSV_HEADER, Format, Selection, export_to};
use crate::report::{html, table};
use crate::run::{RunContext, Silent, run};
use crate::sample::{RoundSamples, Sample};
use crate::units::{Bytes, Span};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A run of a synthetic case, kept in a directory of the test's own.
struct Kept {
    base: PathBuf,
    dir: PathBuf,
    record: Record,
    injected: Vec<RoundSamples>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Nothing can be done about a directory that will not go.
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn keep(spec: &str, count: u64) -> Result<Kept, String> {
    let say = |error: &dyn std::fmt::Display| error.to_string();
    let plan = Plan {
        name: "selftest".into(),
        cases: vec![ping_pong(spec, count)?],
        rounds: Rounds { least: 1, most: 1, until: None },
        cpus: Vec::new(),
        hosts: Vec::new(),
        pairs: None,
        concurrent: Vec::new(),
        injected_clock_error: None,
        seed: 1,
        threshold: Span(10_000),
        study: None,
    };
    let name = crate::control::secret::to_hex(crate::control::secret::fresh::<32>()?);
    let base = std::env::temp_dir().join(format!("wiregauge-selftest-{}", &name[..16]));
    let dir = base.join("run");
    let mut writer = RunDirectory::create(&dir, Bytes(count * 64)).map_err(|e| say(&e))?;
    let interrupted = AtomicBool::new(false);
    let stage = RunContext {
        program: std::env::current_exe().map_err(|e| say(&e))?,
        command: vec!["wiregauge".into(), "selftest".into()],
        clock: None,
        interrupted: &interrupted,
        hosts: &[],
        unavailable: Vec::new(),
        patterns: registry::FOR_RUNS,
    };
    let mut injected = Vec::new();
    let mut take = |round: &RoundSamples| {
        injected.push(round.clone());
        writer.append(round)
    };
    let record = run(&plan, &stage, &mut take, &mut Silent).map_err(|e| say(&e))?;
    let page =
        html::render(&record, &registry::views(), injected.iter().cloned().map(Ok::<_, String>));
    writer.finish(&record, &page).map_err(|e| say(&e))?;
    Ok(Kept { base, dir, record, injected })
}

/// T2: one stall, in every form of output.
pub fn t2_stall() -> Row {
    let what = (
        "T2",
        "one 5 ms stall in 1000 samples of about 1.1 us",
        "max 5 ms, mean 6.1 us, visible in every output",
    );
    let done = || -> Result<Row, String> {
        let kept = keep("normal(1100ns,50ns) stall(5ms@500)", 1000)?;
        let run = kept.record.runs.first().ok_or("no run")?;
        let summary = run.summary(Metric::Rtt).ok_or("no round trips")?;
        let forms = forms_with_stall(&kept)?;
        let passes = summary.max.0 == 5e6
            && (summary.mean - 6098.9).abs() < 10.0
            && forms.iter().all(|(_, seen)| *seen);
        let unseen: Vec<&str> = forms.iter().filter(|f| !f.1).map(|f| f.0).collect();
        let measured = format!(
            "max {} ms, mean {:.3} us, unseen in {}",
            summary.max.0 / 1e6,
            summary.mean / 1e3,
            if unseen.is_empty() { "none".to_string() } else { unseen.join(", ") }
        );
        Ok(Row::new(what, "max 5 ms, mean 6.099 us", measured, passes))
    };
    done().unwrap_or_else(|why| Row::broken(what, why))
}

/// Each form of output, and whether the stall of 5 ms is seen in it.
fn forms_with_stall(kept: &Kept) -> Result<Vec<(&'static str, bool)>, String> {
    let stalled = |samples: &[Sample]| {
        samples.iter().filter(|s| s.receive_ns - s.submit_ns == 5e6).count() == 1
    };
    let record = read_record(&kept.dir).map_err(|error| error.to_string())?;
    let json = record.runs.first().and_then(|run| run.summary(Metric::Rtt));
    let page = std::fs::read_to_string(kept.dir.join("report.html")).map_err(|e| e.to_string())?;
    Ok(vec![
        // The table tells a round trip by its half, in us.
        (
            "table",
            table::runs(&record, &registry::views())
                .split_whitespace()
                .any(|field| field == "2500"),
        ),
        ("record.json", json.is_some_and(|summary| summary.max.0 == 5e6)),
        // The page's table holds the exact value in ns beside the one that is shown; it shows
        // half_rtt.
        ("report.html", page.contains("value=\"2500000\"")),
        ("csv", stalled(&read_csv(&exported(&kept.dir, Format::Csv)?)?)),
        ("json", stalled(&read_json(&exported(&kept.dir, Format::Json)?)?)),
        ("parquet", stalled(&read_parquet(&kept.dir.join(SAMPLES_FILE))?)),
    ])
}

fn exported(dir: &Path, format: Format) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    export_to(dir, format, &Selection::default(), Path::new("memory"), &mut text)
        .map_err(|error| error.to_string())?;
    Ok(text)
}

/// T12: every format gives back what was injected, to the bit.
pub fn t12_formats() -> Row {
    let what = ("T12", "every output format", "strict readers read back what was injected");
    let done = || -> Result<Row, String> {
        let kept = keep("exponential(1us,1us) loss(2%) duplicate(2%)", 5000)?;
        let truth: Vec<Sample> = kept.injected.iter().flat_map(|r| r.samples.clone()).collect();
        let record = read_record(&kept.dir).map_err(|error| error.to_string())?;
        let same_record =
            serde_json::to_value(&record).ok() == serde_json::to_value(&kept.record).ok();
        let forms = [
            ("csv", read_csv(&exported(&kept.dir, Format::Csv)?)?),
            ("json", read_json(&exported(&kept.dir, Format::Json)?)?),
            ("parquet", read_parquet(&kept.dir.join(SAMPLES_FILE))?),
        ];
        let wrong: Vec<&str> =
            forms.iter().filter(|(_, read)| !same(read, &truth)).map(|(name, _)| *name).collect();
        let passes = wrong.is_empty() && same_record && truth.len() == 5000;
        let measured = match passes {
            true => "the same, to the bit".to_string(),
            false => format!("record {same_record}, differs in {}", wrong.join(", ")),
        };
        let truth = format!("{} rows in csv, json, parquet, and record.json", truth.len());
        Ok(Row::new(what, truth, measured, passes))
    };
    done().unwrap_or_else(|why| Row::broken(what, why))
}

fn same(read: &[Sample], truth: &[Sample]) -> bool {
    let bits = |s: &Sample| {
        let stamps = s.stamps();
        (
            s.thread,
            s.sequence,
            stamps.map(|ns| if ns.is_nan() { None } else { Some(ns.to_bits()) }),
            s.flags,
        )
    };
    read.iter().map(bits).eq(truth.iter().map(bits))
}

fn read_parquet(path: &Path) -> Result<Vec<Sample>, String> {
    let mut reader = SampleReader::open(path).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(round) = reader.next_round() {
        all.extend(round.map_err(|error| error.to_string())?.samples);
    }
    Ok(all)
}

/// A strict reader: the header as expected, every row whole, every field a number or empty.
fn read_csv(text: &[u8]) -> Result<Vec<Sample>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "the CSV is not UTF-8")?;
    let mut lines = text.split_terminator("\r\n");
    let head = lines.next().unwrap_or_default();
    if head != CSV_HEADER {
        return Err(format!("the CSV begins with '{head}'"));
    }
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != CSV_HEADER.split(',').count() {
                return Err(format!("a CSV row of {} fields", cells.len()));
            }
            let stamp = |at: usize| match cells[at] {
                "" => Ok(f64::NAN),
                text => text.parse::<f64>().map_err(|_| format!("'{text}' in the CSV")),
            };
            let whole = |at: usize| {
                cells[at].parse::<u64>().map_err(|_| "no number in the CSV".to_string())
            };
            let stamps = [stamp(5)?, stamp(6)?, stamp(7)?, stamp(8)?, stamp(9)?];
            sample([whole(2)?, whole(3)?, whole(4)?], stamps, whole(10)?)
        })
        .collect()
}

fn read_json(text: &[u8]) -> Result<Vec<Sample>, String> {
    let whole: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| format!("the JSON export: {error}"))?;
    let rows = whole.get("samples").and_then(|rows| rows.as_array()).ok_or("no samples in JSON")?;
    rows.iter()
        .map(|row| {
            let stamp = |name: &str| match row.get(name) {
                Some(serde_json::Value::Null) | None => Ok(f64::NAN),
                Some(value) => value.as_f64().ok_or_else(|| format!("{name} is no number")),
            };
            let whole = |name: &str| {
                row.get(name).and_then(|v| v.as_u64()).ok_or_else(|| format!("no {name} in JSON"))
            };
            let stamps = [
                stamp("intended_ns")?,
                stamp("submit_ns")?,
                stamp("send_ns")?,
                stamp("receive_ns")?,
                stamp("complete_ns")?,
            ];
            let named = [whole("thread")?, whole("sequence")?, whole("size_bytes")?];
            sample(named, stamps, whole("flags")?)
        })
        .collect()
}

fn sample(
    [thread, sequence, size]: [u64; 3],
    stamps: [f64; 5],
    flags: u64,
) -> Result<Sample, String> {
    let narrow =
        |what: &str, value: u64| u32::try_from(value).map_err(|_| format!("{what} beyond 32 bits"));
    let flags = crate::sample::Flags(narrow("flags", flags)?);
    let sample = Sample::new(sequence, narrow("a size", size)?, stamps, flags);
    Ok(sample.of_thread(narrow("a thread", thread)?))
}
