//! The rows that judge what leaves the program: a run through agents, directory, report and
//! exports.

use super::simulate::{ping_pong_plan, run};
use super::{Fallible, Outcome};
use crate::host::private_folder::PrivateFolder;
use crate::pattern::registry;
use crate::record::directory::{REPORT_FILE, SAMPLES_FILE};
use crate::record::schema::{Metric, Record};
use crate::record::{RunDirectory, SampleReader, read_record};
use crate::report::export::{Format, Rows, Selection, export_to};
use crate::report::table::Layout;
use crate::report::{html, table};
use crate::sample::{Flags, RoundSamples, Sample};
use crate::units::Bytes;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A run of a synthetic case, kept in a directory of the test's own, which goes with this.
struct Kept {
    _base: PrivateFolder,
    dir: PathBuf,
    record: Record,
    injected: Vec<RoundSamples>,
}

fn keep(spec: &str, count: u64) -> Fallible<Kept> {
    let base = PrivateFolder::new("selftest")?;
    let dir = base.path().join("run");
    let mut writer = RunDirectory::create(&dir, Bytes(count * 64))?;
    let mut injected = Vec::new();
    let record = run(&ping_pong_plan(spec, count)?, &mut |round: &RoundSamples| {
        injected.push(round.clone());
        writer.append(round)
    })?;
    let rounds = injected.iter().cloned().map(Ok::<_, String>);
    writer.finish(&record, |record| html::render(record, &registry::views(), rounds))?;
    Ok(Kept { _base: base, dir, record, injected })
}

/// T2: one stall, in every form of output.
pub fn t2_stall() -> Outcome {
    let kept = keep("normal(1100ns,50ns) stall(5ms@500)", 1000)?;
    let run = kept.record.runs.first().ok_or("no run")?;
    let summary = run.summary(Metric::Rtt).ok_or("no round trips")?;
    let unseen = forms_without_stall(&kept)?;
    let is_right = summary.max.0 == 5e6 && (summary.mean - 6098.9).abs() < 10.0;
    let measured = format!(
        "max {} ms, mean {:.3} us, unseen in {}",
        summary.max.0 / 1e6,
        summary.mean / 1e3,
        if unseen.is_empty() { "none".to_owned() } else { unseen.join(", ") }
    );
    Ok(("max 5 ms, mean 6.099 us".into(), measured, is_right && unseen.is_empty()))
}

/// The forms of output in which the stall of 5 ms is not seen.
fn forms_without_stall(kept: &Kept) -> Fallible<Vec<&'static str>> {
    let record = read_record(&kept.dir)?;
    let json = record.runs.first().and_then(|run| run.summary(Metric::Rtt));
    let page = std::fs::read_to_string(kept.dir.join(REPORT_FILE))?;
    let table = table::runs(&record, &registry::views(), &Layout::default());
    let table = table.to_string();
    let mut forms = vec![
        // The table shows half of a round trip, in us.
        ("table", table.split_whitespace().any(|field| field == "2500")),
        ("record.json", json.is_some_and(|summary| summary.max.0 == 5e6)),
        // The page's table holds the exact value in ns beside the one that is shown; it shows
        // half_rtt.
        ("report.html", page.contains("value=\"2500000\"")),
    ];
    for (name, samples) in read_back(&kept.dir)? {
        let stalled = samples.iter().filter(|one| one.receive_ns - one.submit_ns == 5e6);
        forms.push((name, stalled.count() == 1));
    }
    // In s, and in ms of a class that is 0.1 % wide; in us.
    for (format, shown) in [
        (Format::Openmetrics, "\"} 0.005\n"),
        (Format::Hlog, ":rtt,0.000,0.006,5.00"),
        (Format::Trace, "\"dur\":5000.0,"),
    ] {
        let text = exported(&kept.dir, format, Rows::Values)?;
        forms.push((format.name(), String::from_utf8(text)?.contains(shown)));
    }
    Ok(forms.into_iter().filter(|(_, seen)| !seen).map(|(name, _)| name).collect())
}

/// T12: every format gives back what was injected, to the bit.
pub fn t12_formats() -> Outcome {
    let kept = keep("exponential(1us,1us) loss(2%) duplicate(2%)", 5000)?;
    let truth: Vec<Sample> = kept.injected.iter().flat_map(|r| r.samples.clone()).collect();
    // The hash of the samples is added when they are written.
    let read = Record { samples: None, ..read_record(&kept.dir)? };
    let same_record =
        serde_json::to_string_pretty(&read)? == serde_json::to_string_pretty(&kept.record)?;
    let forms = read_back(&kept.dir)?.into_iter().filter(|(_, read)| !same(read, &truth));
    let wrong: Vec<&str> = forms.map(|(name, _)| name).collect();
    let passes = wrong.is_empty() && same_record && truth.len() == 5000;
    let measured = match passes {
        true => "the same, to the bit".to_owned(),
        false => format!("record {same_record}, differs in {}", wrong.join(", ")),
    };
    let truth = format!("{} rows in csv, json, parquet, and record.json", truth.len());
    Ok((truth, measured, passes))
}

fn same(read: &[Sample], truth: &[Sample]) -> bool {
    let bits = |s: &Sample| {
        let stamps = s.stamps().map(|ns| (!ns.is_nan()).then_some(ns.to_bits()));
        (s.thread, s.sequence, stamps, s.flags)
    };
    read.iter().map(bits).eq(truth.iter().map(bits))
}

fn exported(dir: &Path, format: Format, rows: Rows) -> Fallible<Vec<u8>> {
    let mut text = Vec::new();
    let selection = Selection { rows, ..Selection::default() };
    export_to(dir, format, &selection, Path::new("memory"), &mut text)?;
    Ok(text)
}

/// The samples of a run directory by each table's format.
fn read_back(dir: &Path) -> Fallible<Vec<(&'static str, Vec<Sample>)>> {
    let read = |format: &Format| {
        let text = exported(dir, *format, Rows::Stamps)?;
        let samples = match format {
            Format::Csv => read_csv(std::str::from_utf8(&text)?),
            Format::Json => read_json(&text),
            _ => read_parquet(&dir.join(SAMPLES_FILE)),
        };
        Ok((format.name(), samples?))
    };
    [Format::Csv, Format::Json, Format::Parquet].iter().map(read).collect()
}

fn read_parquet(path: &Path) -> Fallible<Vec<Sample>> {
    let rounds = SampleReader::open(path)?.map(|round| Ok(round?.samples));
    Ok(rounds.collect::<Fallible<Vec<_>>>()?.concat())
}

/// A strict reader of objects: every field is there, and of its type. A stamp that was not taken
/// is null.
fn read_row(row: &Value) -> Option<Sample> {
    let whole = |name: &str| row.get(name)?.as_u64();
    let short = |name: &str| u32::try_from(whole(name)?).ok();
    let stamp = |name: &str| match row.get(name)? {
        Value::Null => Some(f64::NAN),
        number => number.as_f64(),
    };
    let stamps = ["intended_ns", "submit_ns", "send_ns", "receive_ns", "complete_ns"].map(stamp);
    let [Some(a), Some(b), Some(c), Some(d), Some(e)] = stamps else { return None };
    let flags = Flags(short("flags")?);
    let sample = Sample::new(whole("sequence")?, short("size_bytes")?, [a, b, c, d, e], flags);
    Some(sample.of_thread(short("thread")?))
}

fn read_rows(rows: &[Value]) -> Fallible<Vec<Sample>> {
    let read = |row| read_row(row).ok_or_else(|| format!("a wrong row: {row}").into());
    rows.iter().map(read).collect()
}

/// A strict reader: the header as expected, every row whole, every field a number or empty.
fn read_csv(text: &str) -> Fallible<Vec<Sample>> {
    let mut lines = text.split_terminator('\n');
    let head = lines.next().unwrap_or_default();
    let names: Vec<&str> = head.split(',').collect();
    ensure!(names == Rows::Stamps.names(), "the CSV begins with '{head}'");
    let row = |line: &str| -> Fallible<Value> {
        let number = |cell: &str| match cell {
            "" => Value::Null,
            cell => serde_json::from_str(cell).unwrap_or_else(|_| cell.into()),
        };
        let cells: Vec<Value> = line.split(',').map(number).collect();
        ensure!(cells.len() == names.len(), "a CSV row of {} fields", cells.len());
        Ok(names.iter().map(|name| name.to_string()).zip(cells).collect())
    };
    read_rows(&lines.map(row).collect::<Fallible<Vec<_>>>()?)
}

fn read_json(text: &[u8]) -> Fallible<Vec<Sample>> {
    let whole: Value = serde_json::from_slice(text)?;
    read_rows(whole["samples"].as_array().ok_or("no samples in JSON")?)
}
