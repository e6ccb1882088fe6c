//! Files of finished and of killed runs, damaged.

use super::{Fault, Makes, names};
use crate::support::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge::record::journal::JOURNAL_FILE;
use wiregauge::report::export::{Format, Selection, export_to};
use wiregauge_test_support::bounded::{self, LIMIT};

const RECORD: &str = "record.json";
const SAMPLES: &str = "samples.parquet";
/// A run whose rounds are many and short.
const MANY: &str =
    "oneway --transport synthetic --rate 50k --count 200 --warmup 5 --rounds 500 --out run";
/// Lines of the journal of the run that is killed: one for the record, one for each round.
const LINES: usize = 6;
/// Bits that are flipped at once.
const MAX_FLIPS: usize = 4;
/// Bytes that are doubled, zeroed or added.
const MAX_PART: usize = 4096;

/// Changes bytes in one of several ways.
fn damage(fault: &mut Fault, bytes: &mut Vec<u8>) {
    let at = fault.below(bytes.len());
    let end = (at + 1 + fault.below(MAX_PART)).min(bytes.len());
    let how = fault.below(8);
    fault.did(format!("way {how} at {at} to {end} of {} B", bytes.len()));
    match how {
        0..=2 => {
            for _ in 0..=fault.below(MAX_FLIPS) {
                let place = fault.below(bytes.len());
                let bit = fault.below(8);
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << bit;
                }
            }
        }
        3 => bytes.truncate(at),
        4 => drop(bytes.splice(at..at, bytes[at..end].to_vec()).collect::<Vec<_>>()),
        5 => bytes[at..end].fill(0),
        6 => drop(bytes.drain(at..end)),
        _ => bytes.extend(fault.noise(MAX_PART)),
    }
}

/// Copies the files of a run.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// Returns the samples of a run as lines, or the refusal.
fn lines(dir: &Path) -> Result<BTreeSet<String>, String> {
    let mut csv = Vec::new();
    let file = Path::new("memory");
    export_to(dir, Format::Csv, &Selection::default(), file, &mut csv)
        .map_err(|e| e.to_string())?;
    Ok(String::from_utf8(csv).unwrap().lines().map(str::to_owned).collect())
}

/// Measures in a folder, to the end.
fn finished(scratch: &Scratch) -> PathBuf {
    let line = MANY.replace("500", "3");
    let mut command = Command::new(crate::support::program::PROGRAM);
    let output = bounded::output(command.args(line.split(' ')).current_dir(&scratch.0));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scratch.join("run")
}

/// Returns the hidden name of a run in a folder.
fn hidden(scratch: &Scratch) -> Option<String> {
    names(&scratch.0).into_iter().find(|name| name.contains(".partial-"))
}

/// Returns how many lines the journal of a run in a folder has.
fn saved_lines(scratch: &Scratch) -> usize {
    let journal = hidden(scratch).map(|name| scratch.join(&name).join(JOURNAL_FILE));
    let text = journal.and_then(|journal| fs::read_to_string(journal).ok());
    text.map_or(0, |text| text.lines().count())
}

/// Measures in a folder until a few rounds are saved, and is killed.
fn killed(scratch: &Scratch) -> PathBuf {
    let mut command = Command::new(crate::support::program::PROGRAM);
    let mut running = bounded::start(command.args(MANY.split(' ')).current_dir(&scratch.0));
    running.until("rounds are saved", LIMIT, || saved_lines(scratch) >= LINES);
    kill_process(Pid::from_child(&running.child), Signal::KILL).unwrap();
    running.end(LIMIT);
    scratch.join(&hidden(scratch).unwrap())
}

pub fn records() -> Makes {
    let scratch = Scratch::new();
    let truth = finished(&scratch);
    Box::new(move |fault| {
        // It lives as long as the runs that are copied from it.
        let _ = &scratch.0;
        let dir = fault.scratch.join("run");
        copied(&truth, &dir);
        let name = *fault.pick(&[RECORD, SAMPLES, SAMPLES]);
        fault.did(format!("damages {name}"));
        let file = dir.join(name);
        match fault.below(20) {
            0 => fs::remove_file(&file).unwrap(),
            1 => drop(fs::copy(dir.join(RECORD), dir.join(SAMPLES)).unwrap()),
            _ => {
                let mut bytes = fs::read(&file).unwrap();
                damage(fault, &mut bytes);
                fs::write(&file, bytes).unwrap();
            }
        }
        // `compare` needs no samples where there are none.
        let samples = fs::read(dir.join(SAMPLES)).ok();
        let is_changed =
            samples.is_some_and(|samples| samples != fs::read(truth.join(SAMPLES)).unwrap());
        let words =
            *fault.pick(&["report run", "export run --format csv", "compare run@wait=busy run"]);
        let output = fault.run(&words.split(' ').collect::<Vec<_>>());
        fault.ended(&output, &[0, 2, 3], &[]);
        let code = output.status.code();
        assert!(!is_changed || code == Some(2), "damaged samples are shown: {code:?}");
    })
}

pub fn journals() -> Makes {
    let scratch = Scratch::new();
    let left = killed(&scratch);
    let name = left.file_name().unwrap().to_str().unwrap().to_owned();
    // All that was measured, by an undamaged copy.
    let whole = scratch.join(&format!("copy/{name}"));
    copied(&left, &whole);
    let mut recover = Command::new(crate::support::program::PROGRAM);
    let output = bounded::output(recover.arg("recover").arg(&whole));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let truth = lines(&scratch.join("copy/run")).unwrap();
    Box::new(move |fault| {
        let _ = &scratch.0;
        let dir = fault.scratch.join(&name);
        copied(&left, &dir);
        let file = *fault.pick(&[JOURNAL_FILE, JOURNAL_FILE, SAMPLES]);
        fault.did(format!("damages {file}"));
        let mut bytes = fs::read(dir.join(file)).unwrap();
        damage(fault, &mut bytes);
        fs::write(dir.join(file), &bytes).unwrap();
        let before = [JOURNAL_FILE, SAMPLES].map(|file| fs::read(dir.join(file)).unwrap());
        let output = fault.run(&["recover", &name]);
        fault.ended(&output, &[0, 2, 3], &[]);
        let run = fault.scratch.join("run");
        if output.status.code() == Some(2) && dir.exists() {
            let after = [JOURNAL_FILE, SAMPLES].map(|file| fs::read(dir.join(file)).unwrap());
            assert!(before == after, "what was refused was changed");
            assert!(!run.exists(), "refused, and a record all the same");
            return;
        }
        let found = lines(&run).unwrap_or_else(|refused| panic!("its record: {refused}"));
        assert!(found.is_subset(&truth), "the record has other samples than the run");
        fault.read_back(&run);
    })
}
