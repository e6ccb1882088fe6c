//! A run that cannot end: what it had saved becomes a record, and never less than whole rounds.

use super::*;
use std::path::PathBuf;
use wiregauge::record::journal::JOURNAL_FILE;
use wiregauge::record::{SampleReader, read_record};

/// Many short rounds.
const MANY: &str = "latency --transport tcp --wait block --count 1000 --rounds 500 --out run";

/// The directory under a hidden name that a run has left, or is writing.
fn hidden(scratch: &Scratch) -> Option<PathBuf> {
    let mut all = fs::read_dir(&scratch.0).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    all.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".run")))
}

/// Lines of the journal so far: one for the record, one for each round.
fn lines(scratch: &Scratch) -> usize {
    let text = hidden(scratch).and_then(|dir| fs::read_to_string(dir.join(JOURNAL_FILE)).ok());
    text.map_or(0, |text| text.lines().count())
}

/// Asserts that the record of a run that could not end has the rounds that its samples have.
fn is_partial(dir: &std::path::Path, least: usize) {
    let record = read_record(dir).unwrap();
    assert!(!record.complete && record.faults[0].contains("was recovered"), "{:?}", record.faults);
    let [run] = record.runs.as_slice() else { panic!("{} runs", record.runs.len()) };
    assert!(run.rounds.len() >= least && !run.complete, "{} rounds", run.rounds.len());
    assert!(run.warnings.iter().any(|warning| warning.kind == "incomplete"));
    let received: u64 = run.rounds.iter().map(|round| round.counts.received).sum();
    assert_eq!(run.counts.received, received);
    let figure = &run.figures[0];
    assert_eq!(figure.metric.name(), run.headline);
    assert!(figure.summary.quantile(0.5).unwrap().value.unwrap().0 > 0.0);
    assert!(run.rates.iter().all(|figure| figure.rate.value > 0.0), "{:?}", run.rates);
    assert_eq!(run.rates.is_empty(), run.case.pattern == "latency");
    let rounds = SampleReader::open(&dir.join("samples.parquet")).unwrap();
    let rows: u64 = rounds.map(|round| round.unwrap().samples.len() as u64).sum();
    assert_eq!(rows, run.rounds.iter().map(|round| round.samples).sum::<u64>());
    assert!(!dir.join(JOURNAL_FILE).exists() && dir.join("report.html").exists());
}

#[test]
fn the_rounds_of_a_killed_controller_are_recovered() {
    let scratch = Scratch::new();
    let scheduled = MANY.replace("latency", "oneway --rate 10k");
    let controller = Controller::start(&scratch, &words(&scheduled));
    wiregauge_test_support::bounded::until("4 lines are written", SOON, || lines(&scratch) >= 4);
    let name = hidden(&scratch).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let busy = wiregauge(&scratch, &["recover", &name]);
    assert!(busy.code == Some(2) && busy.stderr.contains("still running"), "{busy:?}");
    controller.signal(Signal::KILL);
    let ended = controller.end();
    assert!(ended.survivors.is_empty(), "{ended:?}");
    // A line that was being written does not count.
    let journal = scratch.join(&name).join(JOURNAL_FILE);
    let mut text = fs::read(&journal).unwrap();
    text.extend(b"{\"round\":{\"saved\":{\"run\":0,\"rou");
    fs::write(&journal, text).unwrap();
    let recovered = wiregauge(&scratch, &["recover", &name]);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert!(recovered.stdout.ends_with("kept in run\n"), "{recovered:?}");
    is_partial(&scratch.join("run"), 3);
    retold(&scratch);
    assert!(hidden(&scratch).is_none());
    let again = wiregauge(&scratch, &["recover", &name]);
    assert_eq!(again.code, Some(2), "{again:?}");
}

/// A study that changes a setting, which here is a file.
const CHANGES: &str = "title = 'Does it stay?'\nrestore = 'rm changed'\n\
    [all]\nrounds = 500\n[[latency]]\nseries = 'a'\nprepare = 'touch changed'\n\
    transport = 'unix'\nwait = 'block'\ncount = 2000\n";

#[test]
fn a_killed_run_says_how_its_settings_are_restored() {
    let scratch = Scratch::new();
    fs::write(scratch.join("changes.toml"), CHANGES).unwrap();
    let run = ["run", "changes.toml", "--prepare", "--out", "run"];
    let controller = Controller::start(&scratch, &run);
    wiregauge_test_support::bounded::until("4 lines are written", SOON, || lines(&scratch) >= 4);
    controller.signal(Signal::KILL);
    let ended = controller.end();
    let name = ended.hidden(&scratch);
    assert!(scratch.join("changed").exists(), "{ended:?}");
    let says = "the run's settings were not restored: run `rm changed`";
    // The next start in the same directory.
    let next = "latency --transport synthetic --count 100 --rounds 1 --out other";
    let next = wiregauge(&scratch, &words(next));
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.stderr.contains(&name) && next.stderr.contains(says), "{next:?}");
    let recovered = wiregauge(&scratch, &["recover", &name]);
    assert!(recovered.code == Some(0) && recovered.stderr.contains(says), "{recovered:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    assert!(record.faults.iter().any(|fault| fault == says), "{:?}", record.faults);
    fs::remove_file(scratch.join("changed")).unwrap();
    // A run that came to its end has restored them, and says nothing.
    let short = CHANGES.replace("rounds = 500", "rounds = 2");
    fs::write(scratch.join("changes.toml"), short).unwrap();
    let whole = wiregauge(&scratch, &["run", "changes.toml", "--prepare", "--out", "whole"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(!scratch.join("changed").exists() && !whole.stderr.contains(says), "{whole:?}");
    assert!(!scratch.join("whole").join(JOURNAL_FILE).exists());
}

#[test]
fn what_a_run_has_not_left_is_refused() {
    let scratch = Scratch::new();
    for (name, journal, says) in [
        ("run", None, "is not the directory of an unfinished run"),
        (".run.partial-1", None, "it has no rounds.jsonl"),
        (".run.partial-2", Some(""), "has no record, since the run ended before its first round"),
        (".run.partial-3", Some("{\"record\":{}}\n"), "is damaged in line 1"),
        (".run.partial-4", Some("{\"record\":{}}"), "its first line is not a record"),
    ] {
        fs::create_dir(scratch.join(name)).unwrap();
        if let Some(text) = journal {
            fs::write(scratch.join(name).join(JOURNAL_FILE), text).unwrap();
        }
        let ended = wiregauge(&scratch, &["recover", name]);
        assert!(ended.code == Some(2) && ended.stderr.contains(says), "{name}: {ended:?}");
    }
}

/// Runs the program on a disk of 64 MiB that is filled when three rounds are saved, frees the disk
/// and recovers. Arguments: the disk's folder, the program, a folder for what is left, the command.
const FILLED: &str = r#"
mount -t tmpfs -o size=64m tmpfs "$1" && cd "$1" || exit 99
"$2" $4 >"$3/stdout" 2>"$3/stderr" &
pid=$!
for i in $(seq 300); do
    [ "$(cat .run.partial-*/rounds.jsonl 2>/dev/null | wc -l)" -ge 4 ] && break
    sleep 0.1
done
dd if=/dev/zero of=filler bs=64k 2>/dev/null
wait $pid
echo $? >"$3/code"
rm filler
"$2" recover .run.partial-* >"$3/recovered" 2>&1 || exit 98
cp -r run "$3/run"
"#;

#[test]
fn a_disk_that_fills_during_a_run_keeps_the_rounds_before() {
    let scratch = Scratch::new();
    let disk = scratch.join("disk");
    fs::create_dir(&disk).unwrap();
    let root = rustix::process::geteuid().is_root();
    let mut command = Command::new("unshare");
    command
        .args(if root { &["-m"][..] } else { &["-r", "-m"][..] })
        .args(["sh", "-c", FILLED, "sh"])
        .args([&disk, &PathBuf::from(env!("CARGO_BIN_EXE_wiregauge")), &scratch.0])
        .arg(MANY);
    let ended = wiregauge_test_support::bounded::output(&mut command);
    let left = |name: &str| fs::read_to_string(scratch.join(name)).unwrap_or_default();
    let said = format!("{ended:?}\n{}\n{}\n{}", left("stdout"), left("stderr"), left("recovered"));
    assert!(ended.status.success(), "{said}");
    assert_eq!(left("code"), "3\n", "{said}");
    // The tables of what was measured are shown all the same, and how to get at it.
    let (shown, errors) = (left("stdout"), left("stderr"));
    assert!(shown.contains("tcp") && shown.contains("INCOMPLETE"), "{said}");
    assert!(shown.contains("is full") && shown.contains("wiregauge recover "), "{said}");
    assert!(errors.contains("abandoned") && !errors.contains("panicked"), "{said}");
    is_partial(&scratch.join("run"), 3);
}
