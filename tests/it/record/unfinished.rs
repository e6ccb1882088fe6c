//! What a run leaves that did not end, changed in every way: it is recovered, or refused and left
//! as it was.

use super::*;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use wiregauge::record::journal::{JOURNAL_FILE, Saved, SavedRound, sealed};
use wiregauge::record::schema::Round;
use wiregauge::run::recovered;

const ROUNDS: u32 = 5;
/// How many bytes are changed, one at a time.
const FLIPS: usize = 100;

fn saved_round(samples: &RoundSamples, clock_fault: Option<&str>) -> SavedRound {
    let [run] = record_of(std::slice::from_ref(samples)).runs.try_into().unwrap();
    let round: Round = run.rounds[0].clone();
    SavedRound {
        run: samples.run,
        round,
        at: "2026-11-21T12:00:00Z".into(),
        metrics: Vec::new(),
        rates: Vec::new(),
        warnings: Vec::new(),
        clock_fault: clock_fault.map(Into::into),
        enough: None,
        stopped: None,
    }
}

/// A run of some rounds that did not end: its hidden directory.
fn unfinished(scratch: &Scratch, clock_fault: Option<&str>) -> PathBuf {
    let mut writer = RunDirectory::create(&scratch.join("run"), Bytes(1 << 20)).unwrap();
    let rounds: Vec<_> = (0..ROUNDS).map(|round| realistic_round(0, round, 100)).collect();
    let mut head = record_of(&rounds[..1]);
    head.runs.iter_mut().for_each(|run| run.rounds.clear());
    writer.begin(&head).unwrap();
    for round in &rounds {
        writer.append(round).unwrap();
        writer.save(&saved_round(round, clock_fault)).unwrap();
    }
    // Of a round that is not over.
    writer.append(&realistic_round(0, ROUNDS, 100)).unwrap();
    drop(writer);
    let name = names(&scratch.0).into_iter().find(|name| name.contains(".partial-")).unwrap();
    scratch.join(&name)
}

/// All files of a directory with what they hold.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir).into_iter().map(|name| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

/// Makes the record of a run that did not end, as `recover` does; how many rounds it has.
fn recover(dir: &Path) -> Result<usize, RecordError> {
    let (writer, Saved { record, rounds }) = RunDirectory::recover(dir)?;
    let samples = SampleReader::open(&writer.samples_file())?;
    let record = recovered::record(Saved { record, rounds }, samples)?;
    let kept = writer.finish(&record, |_| "<!doctype html>".into())?;
    Ok(read_record(&kept)?.runs[0].rounds.len())
}

#[test]
fn rounds_that_were_saved_are_recovered_and_what_came_after_is_not() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    // What the end of a run had begun to write, and an attempt to recover it.
    for name in ["record.json", "report.html", "samples.parquet.recovered"] {
        fs::write(dir.join(name), "half").unwrap();
    }
    assert_eq!(recover(&dir).unwrap(), ROUNDS as usize);
    assert_eq!(names(&scratch.0), ["run"]);
    assert_eq!(names(&scratch.join("run")), ["record.json", "report.html", SAMPLES]);
}

#[test]
fn a_changed_byte_in_a_journal_is_refused_and_nothing_is_lost() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let before = content(&dir);
    let journal = &before[JOURNAL_FILE];
    let last = journal[..journal.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    for _ in 0..FLIPS {
        // Without its line feed the last line counts as written in part.
        let at = random.random_range(0..journal.len() - 1);
        let mut changed = journal.clone();
        changed[at] ^= 1 << random.random_range(0..8);
        fs::write(dir.join(JOURNAL_FILE), &changed).unwrap();
        let wrong = sentence(recover(&dir));
        assert!(wrong.contains("damaged"), "byte {at}: {wrong}");
        fs::write(dir.join(JOURNAL_FILE), journal).unwrap();
        assert_eq!(content(&dir), before, "byte {at}");
    }
    // A line that is missing, or is there twice.
    let lines: Vec<&[u8]> = journal.split_inclusive(|byte| *byte == b'\n').collect();
    let mut without = lines.clone();
    without.remove(2);
    for changed in [without.concat(), [&lines[..3], &lines[2..]].concat().concat()] {
        fs::write(dir.join(JOURNAL_FILE), changed).unwrap();
        assert!(sentence(recover(&dir)).contains("is damaged in line"));
    }
    // The last line may have been written in part.
    fs::write(dir.join(JOURNAL_FILE), &journal[..last + 10]).unwrap();
    assert_eq!(recover(&dir).unwrap(), ROUNDS as usize - 1);
}

#[test]
fn a_journal_that_does_not_fit_the_samples_is_refused_and_they_stay() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let before = content(&dir);
    let text = String::from_utf8(before[JOURNAL_FILE].clone()).unwrap();
    // Without their checksums, which begin each line.
    let lines: Vec<String> = text.lines().map(|line| format!("{{{}", &line[77..])).collect();
    let mut sum = String::new();
    let again: String = lines.iter().map(|line| sealed(&mut sum, line)).collect();
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/journal");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("two-rounds"), lines[..3].join("\n") + "\n").unwrap();
    }
    assert!(again == text, "a line is sealed otherwise");
    let number = |line: &str| {
        let (_, rest) = line.rsplit_once("\"bytes\":").unwrap();
        rest[..rest.find(',').unwrap()].parse::<u64>().unwrap()
    };
    let end = number(lines.last().unwrap());
    for wrong in [end - 1, end / 2, 5] {
        let mut sum = String::new();
        let changed = lines.iter().map(|line| {
            let own = format!("\"bytes\":{end},");
            sealed(&mut sum, &line.replace(&own, &format!("\"bytes\":{wrong},")))
        });
        fs::write(dir.join(JOURNAL_FILE), changed.collect::<String>()).unwrap();
        sentence(recover(&dir));
        assert_eq!(fs::read(dir.join(SAMPLES)).unwrap(), before[SAMPLES], "{wrong}");
        assert_eq!(names(&dir), [JOURNAL_FILE, SAMPLES]);
    }
}

#[test]
fn the_file_behind_a_symbolic_link_is_not_touched() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let elsewhere = scratch.join("precious");
    fs::rename(dir.join(SAMPLES), &elsewhere).unwrap();
    symlink(&elsewhere, dir.join(SAMPLES)).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    assert!(sentence(recover(&dir)).contains("is a symbolic link"));
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
}

#[test]
fn a_run_whose_clock_was_wrong_makes_no_record_later_either() {
    const WHY: &str = "the clock tsc differs from CLOCK_MONOTONIC";
    let scratch = Scratch::new();
    // It was killed after its last round.
    let killed = unfinished(&scratch, Some(WHY));
    assert!(sentence(recover(&killed)).ends_with(WHY));
    // It found out at its end.
    let mut writer = RunDirectory::create(&scratch.join("other"), Bytes(1 << 20)).unwrap();
    let round = realistic_round(0, 0, 10);
    writer.begin(&record_of(std::slice::from_ref(&round))).unwrap();
    assert_eq!(writer.refuse_clock(WHY), None, "nothing is saved");
    writer.append(&round).unwrap();
    writer.save(&saved_round(&round, None)).unwrap();
    let left = writer.refuse_clock(WHY).unwrap();
    drop(writer);
    assert!(sentence(recover(&left)).ends_with(WHY));
}

#[test]
fn one_process_at_a_time_recovers_a_run() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let first = RunDirectory::recover(&dir).unwrap();
    assert!(sentence(RunDirectory::recover(&dir)).contains("another `wiregauge recover`"));
    drop(first);
    assert_eq!(recover(&dir).unwrap(), ROUNDS as usize);
}

#[test]
fn a_record_that_no_reader_would_take_is_not_written() {
    let scratch = Scratch::new();
    let rounds = [realistic_round(0, 0, 10)];
    let mut wrong = record_of(&rounds);
    wrong.runs[0].counts.sent = 7;
    let mut more = record_of(&rounds);
    more.runs[0].rounds[0].samples = 11;
    let mut large = record_of(&rounds);
    large.faults = vec!["x".repeat(1 << 20); 64];
    for (record, says) in [(wrong, "sent is 7"), (more, "10 rows"), (large, "above the limit")] {
        let dir = scratch.join("run");
        let mut writer = RunDirectory::create(&dir, Bytes(1 << 20)).unwrap();
        writer.append(&rounds[0]).unwrap();
        let said = writer.finish(&record, |_| String::new()).unwrap_err().to_string();
        assert!(said.contains("would not be readable") && said.contains(says), "{said}");
        assert!(!dir.exists());
        let left = names(&scratch.0).remove(0);
        fs::remove_dir_all(scratch.join(&left)).unwrap();
    }
}
