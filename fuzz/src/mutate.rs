//! Runs targets on their seeds and on random mutations of these, without coverage. It tries far
//! fewer inputs than libFuzzer, but within a second, in any build, and with every test run.
//!
//! `FUZZ_SEED` gives other mutations, and `FUZZ_SECONDS` more of them:
//! `FUZZ_SEED=2 FUZZ_SECONDS=60 cargo test -p wiregauge-fuzz sweep`.

use crate::{TARGETS, Target, dictionary, find, valid_text};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Mutations of a target, unless `FUZZ_SECONDS` bounds it alone.
const MAX_INPUTS: u64 = 20_000;
/// Time of a target. A fast machine reaches `MAX_INPUTS` in most targets, so that two runs differ
/// by how far they get at most.
const MAX_TIME: Duration = Duration::from_secs(1);
/// One input takes milliseconds. Far above that on a busy machine, it grows with something else
/// than the input.
const MAX_INPUT_TIME: Duration = Duration::from_secs(20);
/// Mutations that are made of one input before it is run.
const MAX_STEPS: usize = 4;
/// Bytes that one step inserts or removes.
const MAX_CHUNK: usize = 64;

/// Bytes that parsers treat in another way than their neighbours.
const SPECIAL: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t \"'\\,.:;-+*/=<>()[]{}#09aAeE";

/// Runs a target on its seeds and their mutations.
///
/// # Panics
/// The target panics. The input is then in `target/artifacts`.
pub(crate) fn run_mutations(name: &str) {
    let target = find(name).expect("the table has the target");
    let seeds = read_seeds(target);
    let words = dictionary::read(&root().join(target.dictionary));
    let seed = number_of("FUZZ_SEED").unwrap_or(1);
    let seconds = number_of("FUZZ_SECONDS");
    let max_inputs = if seconds.is_some() { u64::MAX } else { MAX_INPUTS };
    let max_time = seconds.map_or(MAX_TIME, Duration::from_secs);
    for (number, input) in seeds.iter().enumerate() {
        run_one(target, input, &format!("seed-{number}"));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let start = Instant::now();
    let mut count = 0;
    while count < max_inputs && start.elapsed() < max_time {
        run_one(target, &mutated(&seeds, &words, &mut rng), &format!("mutation-{seed}-{count}"));
        count += 1;
    }
    println!("{name}: {} seeds, {count} mutations with FUZZ_SEED={seed}", seeds.len());
}

fn number_of(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no whole number")))
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("fuzz/ is in the root")
}

/// Reads the files below a target's folders of seeds.
fn read_seeds(target: &Target) -> Vec<Vec<u8>> {
    let mut files = BTreeSet::new();
    for folder in target.seeds {
        collect_files(&root().join(folder), &mut files);
    }
    assert!(!files.is_empty(), "there are no seeds in {:?}", target.seeds);
    files.iter().map(|file| fs::read(file).expect("a seed is readable")).collect()
}

fn collect_files(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|entry| entry.expect("a folder is readable").path()) {
        if path.is_dir() {
            collect_files(&path, files);
        } else {
            files.insert(path);
        }
    }
}

/// Runs a target on one input; keeps the input if it fails.
fn run_one(target: &Target, input: &[u8], origin: &str) {
    let start = Instant::now();
    let is_sound = catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok();
    let took = start.elapsed();
    if is_sound && took < MAX_INPUT_TIME {
        return;
    }
    let folder = root().join("target/artifacts").join(target.name);
    fs::create_dir_all(&folder).expect("target/ is writable");
    let file = folder.join(origin);
    fs::write(&file, input).expect("target/ is writable");
    panic!("{} fails after {took:?} on the input in {}", target.name, file.display());
}

/// Returns a seed after a few random steps.
fn mutated(seeds: &[Vec<u8>], words: &[Vec<u8>], rng: &mut impl Rng) -> Vec<u8> {
    let mut input = pick(seeds, rng);
    for _ in 0..rng.random_range(1..=MAX_STEPS) {
        let other = pick(seeds, rng);
        let word = words.choose(rng).map_or(&[][..], Vec::as_slice);
        step(&mut input, &other, word, rng);
    }
    input
}

fn pick(seeds: &[Vec<u8>], rng: &mut impl Rng) -> Vec<u8> {
    seeds.choose(rng).cloned().unwrap_or_default()
}

/// Changes an input once; some steps use a part of another one, or a word of the dictionary.
fn step(input: &mut Vec<u8>, other: &[u8], word: &[u8], rng: &mut impl Rng) {
    let position = rng.random_range(0..=input.len());
    let chunk = random_range(input.len(), rng);
    match rng.random_range(0..11) {
        0 => overwrite(input, position, |byte| byte ^ (1 << rng.random_range(0..8))),
        1 => overwrite(input, position, |_| rng.random()),
        2 => overwrite(input, position, |_| *SPECIAL.choose(rng).unwrap_or(&0)),
        3 => input.insert(position, *SPECIAL.choose(rng).unwrap_or(&0)),
        4 => drop(input.drain(chunk)),
        5 => input.truncate(position),
        6 => drop(input.splice(position..position, other[random_range(other.len(), rng)].to_vec())),
        7 => drop(input.splice(chunk, other[random_range(other.len(), rng)].to_vec())),
        8 => drop(input.splice(position..position, word.to_vec())),
        9 => {
            let end = input.len().min(position + word.len());
            drop(input.splice(position..end, word.to_vec()));
        }
        // The beginning of this one and the end of the other.
        _ => {
            let from = rng.random_range(0..=other.len());
            input.truncate(position);
            input.extend(&other[from..]);
        }
    }
}

fn overwrite(input: &mut [u8], position: usize, mut new: impl FnMut(u8) -> u8) {
    if let Some(byte) = input.get_mut(position) {
        *byte = new(*byte);
    }
}

/// Chooses at most `MAX_CHUNK` neighbouring positions below a length.
fn random_range(length: usize, rng: &mut impl Rng) -> Range<usize> {
    let start = rng.random_range(0..=length);
    let end = rng.random_range(start..=length.min(start + MAX_CHUNK));
    start..end
}

#[test]
fn the_table_lists_every_file_of_a_target_in_order() {
    let mut files = BTreeSet::new();
    collect_files(&root().join("fuzz/src/targets"), &mut files);
    let stems = files.iter().filter_map(|file| file.file_stem()?.to_str());
    let names: Vec<&str> = stems.filter(|stem| *stem != "mod").collect();
    assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), names);
}

#[test]
fn an_input_that_fails_is_kept() {
    let broken = Target {
        name: "broken",
        run: |input| assert!(input != b"bad"),
        seeds: &[],
        dictionary: "",
    };
    run_one(&broken, b"good", "seed-0");
    assert!(catch_unwind(|| run_one(&broken, b"bad", "seed-1")).is_err());
    let folder = root().join("target/artifacts/broken");
    assert_eq!(fs::read(folder.join("seed-1")).expect("the input is kept"), b"bad");
    assert!(!folder.join("seed-0").exists());
    fs::remove_dir_all(folder).expect("target/ is writable");
}

#[test]
fn mutations_depend_on_the_seed_alone() {
    let seeds = [b"8..64KiB*2".to_vec(), b"1,2,3".to_vec()];
    let words = [b"KiB".to_vec()];
    let first = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..50).map(|_| mutated(&seeds, &words, &mut rng)).collect::<Vec<_>>()
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    let distinct: BTreeSet<Vec<u8>> = first(1).into_iter().collect();
    assert!(distinct.len() > 40, "{} different inputs of 50", distinct.len());
}

#[test]
fn text_ends_before_the_first_wrong_byte() {
    assert_eq!(valid_text(b"ab\xffc"), "ab");
    assert_eq!(valid_text("aµ".as_bytes()), "aµ");
}
