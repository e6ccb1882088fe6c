//! Records and samples in which something was changed: refused in a sentence, or read as they were.

use super::*;
use rand::{RngExt, SeedableRng};
use wiregauge::record::directory::parse_record;
use wiregauge::record::sample_reader::groups_of;
use wiregauge::record::samples::{GROUP_ROWS, MAX_ROUND_ROWS, footer, properties};
use wiregauge::report::export::{Format, Selection, export_to};

/// A small `samples.parquet` and `record.json` as bytes.
fn small_files() -> (Vec<u8>, Vec<u8>) {
    let mut writer = SampleWriter::new(Vec::new(), Path::new("memory"), "a test").unwrap();
    awkward_rounds()[..3].iter().for_each(|r| writer.append(r).unwrap());
    writer.append(&realistic_round(0, 1, 300)).unwrap();
    (writer.finish().unwrap(), serde_json::to_vec_pretty(&full_record()).unwrap())
}

/// What was read from damaged bytes, or a sentence; a panic fails the test.
fn read_damaged(bytes: &[u8]) -> Option<usize> {
    let scratch = Scratch::new();
    let path = scratch.join(SAMPLES);
    fs::write(&path, bytes).unwrap();
    match read_all(&path) {
        Ok(rounds) => Some(rounds.iter().map(|r| r.samples.len()).sum()),
        Err(e) => {
            sentence::<()>(Err(e));
            None
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn truncated_samples_are_refused(part in 0.0..1.0f64) {
        let (samples, _) = small_files();
        let length = (samples.len() as f64 * part) as usize;
        prop_assert_eq!(read_damaged(&samples[..length]), None);
    }

    #[test]
    fn flipped_bits_in_samples_never_panic(
        flips in proptest::collection::vec((0.0..1.0f64, 0..8u32), 1..4),
        near_the_end in any::<bool>(),
    ) {
        let (mut samples, _) = small_files();
        let length = samples.len();
        let span = if near_the_end { length.min(3000) } else { length };
        for (part, bit) in flips {
            samples[length - 1 - (span as f64 * part) as usize] ^= 1 << bit;
        }
        // Without its record, a flip inside a page may read as other numbers.
        read_damaged(&samples);
    }

    #[test]
    fn truncated_records_are_refused(part in 0.0..1.0f64) {
        let (_, record) = small_files();
        let length = (record.len() as f64 * part) as usize;
        sentence(parse_record(Path::new("record.json"), &record[..length]));
    }

    #[test]
    fn flipped_bits_in_records_never_panic(
        flips in proptest::collection::vec((0.0..1.0f64, 0..8u32), 1..4),
    ) {
        let (_, mut record) = small_files();
        for (part, bit) in flips {
            let at = (record.len() as f64 * part) as usize;
            record[at] ^= 1 << bit;
        }
        if let Err(e) = parse_record(Path::new("record.json"), &record) {
            sentence::<()>(Err(e));
        }
    }
}

/// How many bits are flipped, one at a time.
const FLIPS: u32 = 600;

/// What a reader gets of a run directory: the record, and the samples by an export.
fn as_read(dir: &Path) -> Result<(serde_json::Value, Vec<u8>), String> {
    let record = read_record(dir).map_err(|error| error.to_string())?;
    let mut csv = Vec::new();
    export_to(dir, Format::Csv, &Selection::default(), Path::new("memory"), &mut csv)
        .map_err(|error| error.to_string())?;
    Ok((serde_json::to_value(record).unwrap(), csv))
}

#[test]
fn no_flipped_bit_of_the_samples_gives_other_numbers() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    written(&dir, &[realistic_round(0, 0, 300), realistic_round(0, 1, 300)]);
    let truth = as_read(&dir).unwrap();
    let path = dir.join(SAMPLES);
    let whole = fs::read(&path).unwrap();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(12);
    for _ in 0..FLIPS {
        let (at, bit) = (random.random_range(0..whole.len()), random.random_range(0..8));
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        match as_read(&dir) {
            Err(why) => assert!(why.contains(SAMPLES), "bit {bit} of byte {at}: {why}"),
            Ok(read) => assert!(read == truth, "bit {bit} of byte {at} gives other numbers"),
        }
    }
}

/// The record of two rounds after a change to its JSON, as a reader gets it without the samples.
fn changed(change: impl Fn(&mut serde_json::Value)) -> Result<Record, RecordError> {
    changed_beside(false, |record| {
        let figures = serde_json::to_value(&full_record().runs[0].figures).unwrap();
        record["runs"][0]["figures"] = figures;
        change(record);
    })
}

/// The record of two rounds without figures after a change to its JSON, with its samples or
/// without.
fn changed_beside(
    samples: bool,
    change: impl Fn(&mut serde_json::Value),
) -> Result<Record, RecordError> {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    written(&dir, &[realistic_round(0, 0, 700), realistic_round(0, 1, 700)]);
    let path = dir.join("record.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut record);
    if !samples {
        fs::remove_file(dir.join(SAMPLES)).unwrap();
    }
    fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
    read_record(&dir)
}

#[test]
fn figures_that_no_run_can_have_left_are_refused_by_name() {
    let run = |field: &'static str, value: serde_json::Value| (field, value);
    assert!(changed(|_| ()).is_ok());
    for ((pointer, value), says) in [
        (run("/figures/0/summary/quantiles/0/value", (-5).into()), "rtt: p99 is -5e0"),
        (run("/figures/0/summary/quantiles/0/value", 1e300.into()), "rtt: p99 is 1e300"),
        (
            run("/figures/0/summary/quantiles/0/value", 2.into()),
            "outside of all samples (9.0625 ns",
        ),
        (run("/figures/0/summary/quantiles/0/p", 7.into()), "there is no quantile 7"),
        (run("/figures/0/summary/min", (-5).into()), "rtt: min is -5e0"),
        (run("/figures/0/summary/mean", 1e300.into()), "rtt: mean is 1e300"),
        (run("/figures/0/summary/count", 1401.into()), "1401 samples, but the rounds have 1400"),
        (
            run("/figures/0/summary/lost", 1001.into()),
            "1001 samples are lost, but there are only 1000",
        ),
        (run("/rates/0/rate/value", (-1).into()), "achieved_rate: the rate is -1e0"),
        (run("/rates/0/rate/rounds/0", 1e300.into()), "achieved_rate: the rate is 1e300"),
        (run("/counts/sent", 5.into()), "sent is 5, but the rounds add up to 0"),
    ] {
        let change = |record: &mut serde_json::Value| {
            *record["runs"][0].pointer_mut(pointer).unwrap() = value.clone();
        };
        let text = sentence(changed(change));
        assert!(text.contains(says), "{pointer}: {text}");
    }
    for (pointer, value, says) in [
        ("/rounds/0/samples", 701, "round 0 of tcp 64 B has 700 rows, but 701 in"),
        ("/rounds/1/index", 2, "round 2 of tcp 64 B has 0 rows, but 700 in"),
    ] {
        let change = |record: &mut serde_json::Value| {
            *record["runs"][0].pointer_mut(pointer).unwrap() = value.into();
        };
        let text = sentence(changed_beside(true, change));
        assert!(text.contains(says), "{pointer}: {text}");
    }
    let text = sentence(changed(|record| record["runs"][0]["rounds"] = serde_json::json!([])));
    assert!(text.contains("1000 samples, but the rounds have 0"), "{text}");
}

#[test]
fn a_record_without_a_hash_and_samples_that_are_gone_are_read() {
    let older =
        changed_beside(true, |record| drop(record.as_object_mut().unwrap().remove("samples")));
    assert_eq!(older.unwrap().samples, None);
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    written(&dir, &[realistic_round(0, 0, 10)]);
    fs::remove_file(dir.join(SAMPLES)).unwrap();
    assert!(read_record(&dir).is_ok());
}

#[test]
fn a_round_beyond_the_limit_of_rows_is_refused_by_all_readers_alike() {
    let scratch = Scratch::new();
    let path = scratch.join(SAMPLES);
    let mut writer = SampleWriter::new(Vec::new(), &path, "a test").unwrap();
    writer.append(&realistic_round(0, 0, GROUP_ROWS as u64)).unwrap();
    let (bytes, group) = writer.save().unwrap();
    let mut file = writer.sink().clone();
    assert_eq!(file.len() as u64, bytes);
    // The same rows again and again: one row group more than a round may have.
    let group = groups_of(&path, &group).unwrap();
    let times = MAX_ROUND_ROWS as usize / GROUP_ROWS + 1;
    let groups = vec![group[0].clone(); times];
    file.extend(footer(&groups, &properties("a test")).unwrap());
    fs::write(&path, file).unwrap();
    let reader = SampleReader::open(&path).unwrap();
    let said = sentence(reader.rows_by_round());
    assert!(said.contains("round 0 of run 0 has 17825792 rows, more than the 16777216"), "{said}");
}

#[test]
fn a_file_of_another_length_is_refused_before_it_is_hashed() {
    let scratch = Scratch::new();
    let dir = scratch.join("run");
    written(&dir, &[realistic_round(0, 0, 300)]);
    let path = dir.join(SAMPLES);
    // Sparse, and far too long to be read in the time of a test.
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let said = sentence(read_record(&dir));
    assert!(said.contains("it has 1099511627776 bytes, but"), "{said}");
    fs::write(&path, "").unwrap();
    let said = sentence(read_record(&dir));
    assert!(
        said.contains("is empty: restore it from a copy") && !said.contains("damaged"),
        "{said}"
    );
}
