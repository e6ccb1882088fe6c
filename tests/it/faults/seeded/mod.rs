//! Faults drawn from seeds, by class: each is one fault in one run of the program, and is followed
//! by the same questions. Is the exit code one of those that the documents list? Did nothing panic?
//! Is no process left, and no file but the record, or the hidden directory that `recover` takes?
//! Does the record read back, or is it refused in one sentence? Did it end soon?
//!
//! `FAULTS` is how many there are in all, 100 by default; each class has its share. A fault that
//! fails is repeated by its seed: `FAULT_SEED=17 cargo test --test it faults::seeded::signals`.

mod damage;
mod files;
mod limits;
mod peers;
mod signals;
mod values;

use crate::support::Scratch;
use crate::support::program::PROGRAM;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use wiregauge::record::SampleReader;
use wiregauge::record::read_record;
use wiregauge_test_support::bounded::{self, Bound, SOON, is_soon};

/// Faults of `./test`. A longer run has a multiple of each class.
const FAULTS: u64 = 100;
/// Longest text on standard error, and longest refusal, in which a long word is cut.
const MAX_SAID_BYTES: usize = 100_000;
const MAX_REFUSAL_BYTES: usize = 6000;
/// The variable by which all processes of a fault are known.
const TAG: &str = "WIREGAUGE_TEST_FAULT";

/// Makes one fault after the other, with what they share.
type Makes = Box<dyn FnMut(&mut Fault)>;

/// A class of faults.
struct Class {
    name: &'static str,
    /// Share of [`FAULTS`].
    count: u64,
    /// Column of the table of docs/reliability.md that says what is done.
    what: &'static str,
    /// Column that says what is right.
    right: &'static str,
    make: fn() -> Makes,
}

/// Declares the classes, and a test for each.
macro_rules! classes {
    ($($name:ident $count:literal $make:path: $what:literal => $right:literal;)+) => {
        const CLASSES: &[Class] = &[$(Class {
            name: stringify!($name),
            count: $count,
            what: $what,
            right: $right,
            make: $make,
        }),+];

        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )+
    };
}

classes! {
    signals 10 signals::of_controller:
        "INT, TERM, QUIT or HUP at the controller at any instant, once or twice"
        => "complete, or incomplete with the rounds before (exit 0, 3, 4)";
    deaths 8 signals::deaths:
        "KILL, SEGV, STOP and CONT at the controller at any instant"
        => "no agent stays; `recover` takes what was saved, or says that nothing was";
    agents 10 signals::of_agents:
        "KILL, SEGV, TERM, INT, QUIT, HUP, STOP with and without CONT at an agent at any instant"
        => "the fault names the agent, the rounds before are kept (exit 0, 3, 4)";
    records 14 damage::records:
        "a finished run with bits flipped, parts cut off, doubled, zeroed, files exchanged"
        => "refused in a sentence; no number of damaged samples is shown";
    journals 10 damage::journals:
        "the same of a killed run's journal and samples, then `recover`"
        => "refused and left as it was, or a record whose samples are those of the run";
    inputs 14 files::inputs:
        "directories, FIFOs, devices, sockets, noise, 8 GiB of nothing as each file of an option"
        => "refused in a sentence, at once";
    disks 6 files::disks:
        "a disk of 16 KiB to 4 MiB, or a limit on the size of files"
        => "exit 0, 2, 3 or 4; `recover` takes the rest when there is room";
    limits 8 limits::resources:
        "`ulimit` of descriptors, stack, locked and virtual memory, processes at any value"
        => "a figure, or a sentence (exit 0, 2, 3, 4)";
    hostile_agents 4 peers::agents:
        "an agent whose frames are flipped, cut off, doubled, or noise, at any step"
        => "refused by name (exit 0, 2, 3, 4)";
    hostile_controllers 4 peers::controllers:
        "noise, cuts and silence at an agent daemon, and a paired controller's frames so changed"
        => "the session ends, the daemon stays and leaves no process";
    strangers 4 peers::strangers:
        "noise, cuts and silence at all ports that a run listens at"
        => "the round goes on (exit 0)";
    values 8 values::options:
        "values that are too long, too large, no number or no text for any option"
        => "refused in a sentence, or measured";
}

/// One fault.
struct Fault {
    random: ChaCha8Rng,
    scratch: Scratch,
    tag: String,
    /// Steps so far, to be read where it fails.
    did: Vec<String>,
}

impl Fault {
    fn new(class: &str, seed: u64) -> Fault {
        let own = class.bytes().fold(seed, |all, byte| all.wrapping_mul(257) + u64::from(byte));
        let tag = format!("{class}-{seed}-{}", std::process::id());
        let scratch = Scratch::new();
        fs::create_dir(scratch.join("tmp")).unwrap();
        Fault { random: ChaCha8Rng::seed_from_u64(own), scratch, tag, did: Vec::new() }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit.max(1))
    }

    /// Draws a number so that each order of magnitude is as likely.
    fn log_uniform(&mut self, from: f64, to: f64) -> u64 {
        let share: f64 = self.random.random();
        (from * (to / from).powf(share)) as u64
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let number = self.below(all.len());
        &all[number]
    }

    fn noise(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most);
        let mut bytes = vec![0; length];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    fn did(&mut self, what: impl Into<String>) {
        self.did.push(what.into());
    }

    /// The program in this fault's folder, behind the words of another one.
    fn behind(&mut self, before: &[&str], words: &[&str]) -> Command {
        let mut all = before.iter().chain([&PROGRAM]).chain(words);
        let mut command = Command::new(all.next().unwrap());
        command.args(all).current_dir(&self.scratch.0);
        self.own(&mut command);
        self.did(format!("{command:?}"));
        command
    }

    fn program(&mut self, words: &[&str]) -> Command {
        self.behind(&[], words)
    }

    /// Has a command's processes known, and their files here.
    fn own(&self, command: &mut Command) {
        let home = self.scratch.join("home");
        command.env(TAG, &self.tag).env("TMPDIR", self.scratch.join("tmp")).env("HOME", &home);
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    }

    /// Runs the program to its end.
    fn run(&mut self, words: &[&str]) -> Output {
        bounded::output(&mut self.program(words))
    }

    /// Keeps the files of a fault that failed.
    fn keep(&self, class: &str, seed: u64) {
        let kept = self.scratch.0.with_file_name(format!("failed-{class}-{seed}"));
        let _ = fs::remove_dir_all(&kept);
        // Its folder goes with it.
        if fs::rename(&self.scratch.0, &kept).is_ok() {
            eprintln!("its files are kept in {}", kept.display());
        }
    }

    /// All processes of this fault.
    fn processes(&self) -> Vec<i32> {
        let tag = format!("{TAG}={}\0", self.tag).into_bytes();
        let all = fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid: &i32| {
                let own = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                own.windows(tag.len()).any(|part| part == tag)
            })
            .collect()
    }

    /// Checks how a command ended: by one of these codes or signals, with nothing said that is no
    /// sentence.
    #[track_caller]
    fn ended(&self, output: &Output, codes: &[i32], signals: &[i32]) {
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        let is_right = status.code().is_some_and(|code| codes.contains(&code))
            || status.signal().is_some_and(|signal| signals.contains(&signal));
        assert!(is_right, "it ended by {status}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        assert!(said.len() < MAX_SAID_BYTES, "{} B on standard error", said.len());
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
        if status.code() == Some(2) {
            assert!((1..MAX_REFUSAL_BYTES).contains(&said.trim().len()), "no sentence: {said:?}");
        }
    }

    /// Checks that no process is left, and no file but those that belong here; returns true if
    /// there is a record.
    #[track_caller]
    fn left(&mut self, inputs: &[&str]) -> bool {
        assert!(is_soon(SOON, || self.processes().is_empty()), "left: {:?}", self.processes());
        let temporary: Vec<_> = fs::read_dir(self.scratch.join("tmp")).unwrap().collect();
        assert!(temporary.is_empty(), "{temporary:?}");
        let folder = self.scratch.0.clone();
        for name in names(&folder) {
            let is_input = ["tmp", "home", "run"].contains(&&*name) || inputs.contains(&&*name);
            let is_hidden = name.starts_with(".run.partial-");
            assert!(is_input || is_hidden, "{name} was left");
            if is_hidden {
                self.recover(&name);
            }
        }
        self.read_back(&folder.join("run"))
    }

    /// Recovers what a run has left under its hidden name.
    #[track_caller]
    fn recover(&mut self, name: &str) {
        let output = self.run(&["recover", name]);
        self.ended(&output, &[0, 2, 3], &[]);
    }

    /// Reads a record and all of its samples, if there is one.
    #[track_caller]
    fn read_back(&self, dir: &Path) -> bool {
        if !dir.exists() {
            return false;
        }
        let record = read_record(dir).unwrap_or_else(|error| panic!("the record: {error}"));
        let samples: u64 =
            record.runs.iter().flat_map(|run| &run.rounds).map(|round| round.samples).sum();
        let rounds = SampleReader::open(&dir.join("samples.parquet"));
        let rounds = rounds.unwrap_or_else(|error| panic!("the samples: {error}"));
        let rows: u64 = rounds.map(|round| round.unwrap().samples.len() as u64).sum();
        assert_eq!(rows, samples, "rows and samples of the record");
        true
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        // Nothing is left but where the fault fails.
        for pid in self.processes() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

/// The names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let all = fs::read_dir(folder).unwrap();
    all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Reads a whole number from the environment.
fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no whole number")))
}

/// Makes all faults of a class, or the one that `FAULT_SEED` names.
fn run(name: &str) {
    let class = CLASSES.iter().find(|class| class.name == name).unwrap();
    let all = number_of("FAULTS").unwrap_or(FAULTS);
    let seeds = match number_of("FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..(class.count * all).div_ceil(FAULTS),
    };
    let count = seeds.end - seeds.start;
    let mut make = (class.make)();
    let mut failed = Vec::new();
    for seed in seeds {
        let _bound = Bound::new();
        let mut fault = Fault::new(name, seed);
        if catch_unwind(AssertUnwindSafe(|| make(&mut fault))).is_err() {
            let did = fault.did.join("\n  ");
            eprintln!(
                "{name}, seed {seed}, fails after\n  {did}\nRepeat it: FAULT_SEED={seed} cargo \
                 test --profile ci --test it faults::seeded::{name}"
            );
            fault.keep(name, seed);
            failed.push(seed);
        }
    }
    println!("{name}: {count} faults, {} failed", failed.len());
    assert!(failed.is_empty(), "{name}: seeds {failed:?} of {count} faults fail");
}

/// Options of a short run over a transport that every machine has.
fn short_run(fault: &mut Fault) -> String {
    let transport = fault.pick(&["shm", "unix", "tcp", "udp", "unixgram", "synthetic"]);
    let wait = fault.pick(&["block", "block", "busy"]);
    let wait = if *transport == "synthetic" { "busy" } else { wait };
    let command = fault.pick(&["latency", "oneway --rate 20k", "bandwidth --size 1KiB"]);
    format!(
        "{command} --transport {transport} --wait {wait} --count 400 --warmup 5 --rounds 3 \
         --timeout 2s --out run"
    )
}

/// A short time, in which a run of [`short_run`] comes to any of its steps.
fn instant(fault: &mut Fault) -> Duration {
    Duration::from_micros(fault.below(1_200_000) as u64)
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reliability.md")
}

/// The lines around the table of docs/reliability.md.
const MARKS: [&str; 2] = ["<!-- classes of faults -->\n", "<!-- end of the classes -->\n"];

/// The table of the classes, with the faults of each level of `./test`.
fn table() -> String {
    let mut text = "| class | what is done | `./test` | `--full` | `--release` | what is right |\n\
         |---|---|---|---|---|---|\n"
        .to_owned();
    for Class { name, what, count, right, .. } in CLASSES {
        let full = 10 * count;
        let release = 100 * count;
        writeln!(text, "| {name} | {what} | {count} | {full} | {release} | {right} |").unwrap();
    }
    let all: u64 = CLASSES.iter().map(|class| class.count).sum();
    writeln!(text, "| all | | {all} | {} | {} | 0 fail |", 10 * all, 100 * all).unwrap();
    text
}

#[test]
fn the_document_lists_the_classes() {
    assert_eq!(CLASSES.iter().map(|class| class.count).sum::<u64>(), FAULTS);
    let text = fs::read_to_string(document()).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).unwrap();
    let (listed, after) = rest.split_once(MARKS[1]).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = [before, MARKS[0], &table(), MARKS[1], after].concat();
        return fs::write(document(), text).unwrap();
    }
    assert_eq!(listed, table(), "UPDATE_DOCS=1 cargo test --test it faults::seeded:: writes it");
}
