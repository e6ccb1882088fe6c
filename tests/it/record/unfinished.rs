//! What a run leaves that did not end, changed in every way: it is recovered, or refused and left
//! as it was.

use super::*;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use wiregauge::record::journal::{JOURNAL_FILE, SavedRound, sealed};
use wiregauge::record::schema::Round;
use wiregauge::run::recovered;

const ROUNDS: u32 = 5;
/// How many bytes are changed, one at a time.
const FLIPS: usize = 100;
/// Bits of the samples that are flipped, one at a time.
const SAMPLE_FLIPS: usize = 200;

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
    let (_, record) = recovered_record(dir)?;
    Ok(record.runs[0].rounds.len())
}

/// Makes the record as [`recover`] does; gives its directory, too.
fn recovered_record(dir: &Path) -> Result<(PathBuf, Record), RecordError> {
    let (writer, saved) = RunDirectory::recover(dir)?;
    let samples = SampleReader::open(&writer.samples_file())?;
    let record = recovered::record(saved, samples)?;
    let kept = writer.finish(&record, |_| "<!doctype html>".into())?;
    let record = read_record(&kept)?;
    Ok((kept, record))
}

/// The rounds of a samples' file by their numbers, bit by bit.
fn rounds_by_number(dir: &Path) -> BTreeMap<u32, Vec<[u64; 11]>> {
    let rounds = read_all(&dir.join(SAMPLES)).unwrap();
    rounds.iter().map(|round| (round.round, bits(std::slice::from_ref(round)))).collect()
}

#[test]
fn a_flipped_bit_of_the_samples_costs_its_round_and_is_said() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let before = content(&dir);
    let whole = &before[SAMPLES];
    let journal = &before[JOURNAL_FILE];
    let kept = scratch.join("run");
    assert_eq!(recover(&dir).unwrap(), ROUNDS as usize);
    let truth = rounds_by_number(&kept);
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(41);
    let mut left_out = 0;
    let mut without_loss = 0;
    for flip in 0..SAMPLE_FLIPS {
        fs::remove_dir_all(&kept).unwrap();
        fs::create_dir(&dir).unwrap();
        let at = random.random_range(0..whole.len());
        let bit = random.random_range(0..8);
        let mut changed = whole.clone();
        changed[at] ^= 1 << bit;
        fs::write(dir.join(SAMPLES), &changed).unwrap();
        fs::write(dir.join(JOURNAL_FILE), journal).unwrap();
        let (_, record) = recovered_record(&dir).unwrap();
        let found = rounds_by_number(&kept);
        let numbers: Vec<u32> = record.runs[0].rounds.iter().map(|round| round.index).collect();
        assert_eq!(numbers, found.keys().copied().collect::<Vec<_>>(), "flip {flip}");
        assert!(found.iter().all(|(number, rows)| truth[number] == *rows), "bit {bit} of {at}");
        match (0..ROUNDS).find(|number| !found.contains_key(number)) {
            // It was in the round that was not over.
            None => without_loss += 1,
            Some(missing) => {
                left_out += 1;
                assert_eq!(found.len(), ROUNDS as usize - 1, "bit {bit} of {at}");
                let says = format!("the samples of round {missing} of ");
                let said = record.faults.iter().any(|fault| fault.starts_with(&says));
                assert!(said && !record.complete, "{:?}", record.faults);
            }
        }
    }
    println!("{SAMPLE_FLIPS} flips: {left_out} cost a round, {without_loss} none");
    assert!(left_out > SAMPLE_FLIPS / 2, "{left_out}");
}

#[test]
fn samples_that_are_damaged_in_every_round_or_gone_are_refused() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let whole = fs::read(dir.join(SAMPLES)).unwrap();
    for changed in [vec![0; whole.len()], whole[..100].to_vec(), Vec::new()] {
        fs::write(dir.join(SAMPLES), &changed).unwrap();
        let said = sentence(recover(&dir));
        assert!(said.contains("damaged in each of its 5 rounds"), "{said}");
        assert_eq!(fs::read(dir.join(SAMPLES)).unwrap(), changed);
    }
    fs::remove_file(dir.join(SAMPLES)).unwrap();
    assert!(sentence(recover(&dir)).contains("No such file"));
}

#[test]
fn a_journal_without_hashes_of_the_samples_is_refused_and_the_reason_named() {
    let scratch = Scratch::new();
    let dir = unfinished(&scratch, None);
    let text = fs::read_to_string(dir.join(JOURNAL_FILE)).unwrap();
    let mut sum = String::new();
    let older = text.lines().map(|line| {
        // Without its checksum, which begins the line, and without that of the samples.
        let line = format!("{{{}", &line[77..]);
        let hash = line.rfind("\"sha256\":\"").filter(|_| line.starts_with("{\"round\""));
        let without = hash.map(|at| format!("{}{}", &line[..at], &line[at + 76..]));
        sealed(&mut sum, &without.unwrap_or(line))
    });
    fs::write(dir.join(JOURNAL_FILE), older.collect::<String>()).unwrap();
    let said = sentence(recover(&dir));
    assert!(said.contains("older wiregauge, which kept no checksum of the samples"), "{said}");
}

#[test]
fn samples_that_change_before_the_run_ends_are_not_sealed() {
    let scratch = Scratch::new();
    let mut writer = RunDirectory::create(&scratch.join("run"), Bytes(1 << 20)).unwrap();
    let rounds: Vec<_> = (0..ROUNDS).map(|round| realistic_round(0, round, 100)).collect();
    let mut head = record_of(&rounds[..1]);
    head.runs[0].rounds.clear();

    writer.begin(&head).unwrap();
    for round in &rounds {
        writer.append(round).unwrap();
        writer.save(&saved_round(round, None)).unwrap();
    }
    let path = writer.close_samples().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let said = sentence(writer.finish(&record_of(&rounds), |_| String::new()));
    assert!(
        said.contains("is not as it was written") && said.contains("wiregauge recover"),
        "{said}"
    );
    assert!(!scratch.join("run").exists());
    assert_eq!(recover(path.parent().unwrap()).unwrap(), ROUNDS as usize - 1);
}

#[test]
fn a_directory_that_is_renamed_while_it_is_written_is_found_again() {
    let scratch = Scratch::new();
    let target = scratch.join("run");
    let mut writer = RunDirectory::create(&target, Bytes(1 << 20)).unwrap();
    let rounds = [realistic_round(0, 0, 100)];
    writer.append(&rounds[0]).unwrap();
    let [hidden] = names(&scratch.0).try_into().unwrap();
    fs::rename(scratch.join(&hidden), scratch.join("cleaned")).unwrap();
    assert_eq!(writer.finish(&record_of(&rounds), |_| String::new()).unwrap(), target);
    assert_eq!(read_all(&target.join(SAMPLES)).unwrap().len(), 1);
    // One that is removed cannot be kept, and one that nothing is in is not left behind.
    let mut writer = RunDirectory::create(&scratch.join("other"), Bytes(1 << 20)).unwrap();
    let [hidden] = names(&scratch.0)
        .iter()
        .filter(|n| n.contains("other"))
        .cloned()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    fs::remove_dir_all(scratch.join(&hidden)).unwrap();
    let error = writer.append(&rounds[0]).unwrap_err();
    assert!(matches!(error, RecordError::Disk { .. }), "{error}");
    assert!(error.to_string().contains("was removed while the run went on"), "{error}");
}

#[test]
fn a_record_that_could_not_appear_is_complete_and_recovered_as_another() {
    let scratch = Scratch::new();
    let target = scratch.join("run");
    let mut writer = RunDirectory::create(&target, Bytes(1 << 20)).unwrap();
    let rounds = [realistic_round(0, 0, 100)];
    writer.append(&rounds[0]).unwrap();
    fs::create_dir(&target).unwrap();
    let error = writer.finish(&record_of(&rounds), |_| "page".into()).unwrap_err();
    assert!(matches!(error, RecordError::Disk { .. }), "{error}");
    let hidden = names(&scratch.0).into_iter().find(|name| name.starts_with('.')).unwrap();
    let says = format!("{hidden}` publishes it as another");
    assert!(error.to_string().contains(&says), "{error}");
    let (record, kept) = RunDirectory::recover_complete(&scratch.join(&hidden)).unwrap().unwrap();
    assert_eq!((kept, record.runs[0].rounds.len()), (scratch.join("run-2"), 1));
    let kept = scratch.join("run-2");
    assert_eq!(names(&kept), ["record.json", "report.html", SAMPLES]);
    assert_eq!(names(&scratch.0), ["run", "run-2"]);
    // Without a record there is nothing that could appear.
    let other = Scratch::new();
    let unfinished = unfinished(&other, None);
    assert!(RunDirectory::recover_complete(&unfinished).unwrap().is_none());
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

/// Lines of a journal with the hashes of samples that are all sevens, as the fuzz target has them.
fn seed(lines: &[String]) -> String {
    let mut begin = 0;
    let one = |line: &String| {
        if !line.starts_with("{\"round\"") {
            return format!("{line}\n");
        }
        let (head, rest) = line.rsplit_once("\"bytes\":").unwrap();
        let (bytes, rest) = rest.split_once(",\"sha256\":\"").unwrap();
        let end: usize = bytes.parse().unwrap();
        let hash = ring::digest::digest(&ring::digest::SHA256, &vec![7; end - begin]);
        begin = end;
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{head}\"bytes\":{bytes},\"sha256\":\"{hash}{}\n", &rest[64..])
    };
    lines.iter().map(one).collect()
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
        fs::write(folder.join("two-rounds"), seed(&lines[..3])).unwrap();
    }
    assert!(again == text, "a line is sealed otherwise");
    let number = |line: &str| {
        let (_, rest) = line.rsplit_once("\"bytes\":").unwrap();
        rest[..rest.find(',').unwrap()].parse::<u64>().unwrap()
    };
    let end = number(lines.last().unwrap());
    for wrong in [end / 2, 5, 0] {
        let mut sum = String::new();
        let changed = lines.iter().map(|line| {
            let own = format!("\"bytes\":{end},");
            sealed(&mut sum, &line.replace(&own, &format!("\"bytes\":{wrong},")))
        });
        fs::write(dir.join(JOURNAL_FILE), changed.collect::<String>()).unwrap();
        assert!(sentence(recover(&dir)).contains("its lengths do not rise"), "{wrong}");
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
