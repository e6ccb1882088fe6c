//! The transport `mpi`: launches of this program by whichever launcher is installed, ranks that a
//! user has launched, and ranks that die. What is not installed is passed over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod controller;

use controller::bounded::{LIMIT, SOON, output, until};
use controller::{Controller, Ended, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};
use wiregauge::record::read_record;
use wiregauge::record::schema::Record;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wiregauge");
/// In the environment of all processes of a test.
const MARK: &str = "WIREGAUGE_TEST_MARK";
/// Each launcher with what a user of root needs, and what its library calls itself.
const LAUNCHERS: [(&str, &str); 2] =
    [("mpirun.openmpi --allow-run-as-root --oversubscribe", "Open MPI"), ("mpirun.mpich", "MPICH")];

fn installed() -> Vec<(&'static str, &'static str)> {
    let is_installed = |(launcher, _): &(&str, &str)| {
        let program = launcher.split(' ').next().unwrap();
        let found = output(Command::new("sh").args(["-c", &format!("command -v {program}")]));
        if !found.status.success() {
            eprintln!("skipped: {program} is not installed");
        }
        found.status.success()
    };
    LAUNCHERS.into_iter().filter(is_installed).collect()
}

fn mark(scratch: &Scratch) -> String {
    scratch.0.display().to_string()
}

/// Runs these words; the input stays open, whose end kills MPICH's launcher.
fn started(scratch: &Scratch, words: &[&str]) -> Controller {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env(MARK, mark(scratch));
    Controller::with_input(scratch, command, Stdio::piped())
}

fn measured(scratch: &Scratch, more: &str) -> Ended {
    let words: Vec<&str> = more.split(' ').collect();
    started(scratch, &[&[PROGRAM][..], &words].concat()).end()
}

fn record(scratch: &Scratch) -> Record {
    read_record(&scratch.join("run")).unwrap()
}

/// The setting of this name that was in effect in each round.
fn effective(record: &Record, name: &str) -> Vec<String> {
    let rounds = record.runs.iter().flat_map(|run| &run.rounds);
    rounds.map(|round| round.client.effective_settings[name].clone()).collect()
}

/// Agents of a test: their processes.
fn agents(scratch: &Scratch) -> Vec<i32> {
    let own = format!("{MARK}={}", mark(scratch));
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let of_test = String::from_utf8_lossy(&read("environ")).split('\0').any(|one| one == own);
        let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
        // A launcher's command ends in the same words.
        let words: Vec<&str> = line.split_terminator('\0').collect();
        of_test && matches!(words[..], [program, "run-role"] if program.ends_with("wiregauge"))
    })
    .collect()
}

#[test]
fn each_round_is_a_launch_of_its_own() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "latency --transport mpi --mpirun {launcher} --count 200 --rounds 2 --check --out run"
        );
        let ended = measured(&scratch, &line);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete && record.runs[0].counts.received == 440, "{ended:?}");
        assert!(effective(&record, "mpi").iter().all(|one| one.starts_with(name)), "{record:?}");
        assert_eq!(effective(&record, "mpi_rank"), ["0 of 2"; 2]);
        assert_eq!(effective(&record, "rounds_of_process"), ["1"; 2]);
        assert!(agents(&scratch).is_empty());
    }
}

#[test]
fn streams_are_held_back_by_their_receivers_and_lose_nothing() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "bandwidth --transport mpi --mpirun {launcher} --size 8,100kB --direction bi \
             --count 2000 --rounds 1 --check --out run"
        );
        let ended = measured(&scratch, &line);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete, "{ended:?}");
        for run in &record.runs {
            assert_eq!((run.counts.lost, run.counts.sent), (0, run.counts.received), "{ended:?}");
        }
    }
}

/// Each one-sided operation, by what asks for it. A write is seen by the other end, but in
/// `bandwidth`; the others only by their completion.
#[test]
fn operations_on_the_other_rank_s_memory_complete_once_each() {
    const LINES: [&str; 8] = [
        "latency --operation write --size 8,100kB --check",
        "latency --operation read --size 8,100kB",
        "latency --operation fetch_add --size 8",
        "bandwidth --operation write --size 8,100kB",
        "bandwidth --operation read --size 8,100kB",
        "bandwidth --operation fetch_add --size 8",
        "oneway --operation write --size 300 --rate 20k --check",
        "load --operation write --rate 10k --time 50ms",
    ];
    for (launcher, name) in installed() {
        let launcher = launcher.split(' ').next().unwrap();
        for line in LINES {
            let scratch = Scratch::new();
            let count = if line.contains("--time") { "" } else { "--count 500" };
            let line =
                format!("{line} {count} --transport mpi --mpirun {launcher} --rounds 2 --out run");
            let words: Vec<&str> = line.split_whitespace().collect();
            let ended = started(&scratch, &[&[PROGRAM][..], &words].concat()).end();
            assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
            let record = record(&scratch);
            assert!(record.complete, "{line}: {ended:?}");
            for run in &record.runs {
                let counts = &run.counts;
                assert_eq!((counts.lost, counts.corrupt), (0, 0), "{line}: {ended:?}");
                assert!(counts.sent >= 500 || line.contains("--time"), "{line}: {ended:?}");
                assert_eq!(counts.received, counts.sent, "{line}: {ended:?}");
            }
            assert!(effective(&record, "mpi").iter().all(|one| one.starts_with(name)), "{line}");
            let operation = line.split(' ').skip_while(|word| *word != "--operation").nth(1);
            let effective = effective(&record, "operation");
            assert!(effective.iter().all(|one| Some(&**one) == operation), "{line}");
            assert!(agents(&scratch).is_empty(), "{line}");
        }
    }
}

#[test]
fn ranks_that_a_user_has_launched_share_their_processes_and_say_so() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let line = format!(
            "{launcher} -n 2 {PROGRAM} latency --transport mpi --size 8,1KiB --count 200 \
             --rounds 2 --out run"
        );
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout.matches("kept in").count(), 1, "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete, "{ended:?}");
        assert!(effective(&record, "mpi").iter().all(|one| one.starts_with(name)), "{record:?}");
        let mut rounds = effective(&record, "rounds_of_process");
        rounds.sort();
        assert_eq!(rounds, ["1", "2", "3", "4"], "one process for all rounds of both cases");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

#[test]
fn a_rank_that_is_killed_ends_its_launch_which_is_named() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "latency --transport mpi --mpirun {launcher} --count 3000000 --pause 100us --rounds 2 \
             --out run"
        );
        let words: Vec<&str> = line.split(' ').collect();
        let controller = started(&scratch, &[&[PROGRAM][..], &words].concat());
        until("both ranks run", LIMIT, || agents(&scratch).len() == 2);
        // Until it measures: a launch whose ranks do not come says so.
        std::thread::sleep(std::time::Duration::from_millis(700));
        let pid = Pid::from_raw(agents(&scratch)[0]).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let ended = controller.end();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(launcher), "{ended:?}");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

/// An MPI library that does something else in rank 1, linked with the one of a launcher.
fn shim(scratch: &Scratch, name: &str) -> String {
    let soname = if name == "MPICH" { "libmpich.so.12" } else { "libmpi.so.40" };
    let (source, made) = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpi/shim.c"), "shim.so");
    let file = scratch.join(made).display().to_string();
    let words = ["-shared", "-fPIC", source, "-o", &file, &format!("-l:{soname}")];
    let built = output(Command::new("cc").args(words));
    assert!(built.status.success(), "{built:?}");
    file
}

/// A run whose rank 1 does this, and what it said.
fn with_rank_1(scratch: &Scratch, (launcher, name): (&str, &str), does: &str) -> (Ended, String) {
    let launcher = launcher.split(' ').next().unwrap();
    let library = shim(scratch, name);
    let line = format!(
        "latency --transport mpi --mpirun {launcher} --mpi-library {library} --timeout 3s --count \
         100000 --rounds 1 --out run"
    );
    let mut command = Command::new(PROGRAM);
    command.args(line.split(' ')).env(MARK, mark(scratch)).env("WIREGAUGE_TEST_RANK_1", does);
    let ended = Controller::with_input(scratch, command, Stdio::piped()).end();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    until("all end", SOON, || agents(scratch).is_empty());
    let said = format!("{}{}", ended.stdout, ended.stderr);
    (ended, said)
}

#[test]
fn a_rank_that_aborts_is_named_and_what_was_measured_is_kept() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let (ended, said) = with_rank_1(&scratch, (launcher, name), "abort");
        assert_eq!(ended.code, Some(3), "{ended:?}");
        let program = launcher.split(' ').next().unwrap();
        assert!(said.contains(&format!("{program} ended with code 7")), "{ended:?}");
        // Open MPI's launcher may end before it has passed on what the rank said.
        let is_named = said.contains("(rank 1") && said.contains("the server was gone first");
        assert!(is_named || (name != "MPICH" && said.contains(" first")), "{ended:?}");
        let record = record(&scratch);
        let samples = record.runs[0].rounds[0].samples;
        assert!(!record.complete && samples > 100, "{samples} samples: {ended:?}");
    }
}

#[test]
fn a_rank_that_dies_in_mpi_init_ends_the_round() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let (ended, said) = with_rank_1(&scratch, (launcher, name), "die");
        let program = launcher.split(' ').next().unwrap();
        assert!(said.contains(&format!("{program} ended with code")), "{ended:?}");
        // MPICH's launcher does not say which.
        let by_launcher = "the server was gone first";
        let first = if name == "MPICH" { "was seen to end first" } else { by_launcher };
        assert!(said.contains(first), "{ended:?}");
    }
}

#[test]
fn a_rank_that_stays_in_mpi_init_ends_the_round_and_is_killed() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let (ended, said) = with_rank_1(&scratch, (launcher, name), "wait");
        let late = "the client and the server did not finish opening endpoints within 3 s";
        assert!(said.contains(late), "{ended:?}");
    }
}

#[test]
fn a_launch_with_a_rank_missing_says_which() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let file = scratch.join("one-rank");
        // Of the words `-n 2 PROGRAM ...`.
        let script = format!("#!/bin/sh\nshift 2\nexec {launcher} -n 1 \"$@\"\n");
        fs::write(&file, script).unwrap();
        let command = format!("sh {}", file.display());
        let words =
            [PROGRAM, "latency", "--transport", "mpi", "--mpirun", &command, "--rounds", "1"];
        let ended = started(&scratch, &words).end();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let sentence = "sh started 1 of 2 ranks: rank 1 did not come within 8 s";
        assert!(said.contains(sentence), "{ended:?}");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

/// All operations, in one run each.
const OPERATIONS: &str = "barrier,bcast,reduce,allreduce,reduce+bcast,gather,gatherv,scatter,\
                          scatterv,allgather,allgatherv,alltoall,alltoallv,reduce_scatter,\
                          reduce_scatter_block,scan";

#[test]
fn every_collective_operation_gives_what_it_must_by_both_forms() {
    for (launcher, _) in installed() {
        let launcher = launcher.split(' ').next().unwrap();
        let nonblocking = OPERATIONS.replace("reduce+bcast,", "");
        let forms = [(OPERATIONS.to_string(), 16), (format!("{nonblocking} --nonblocking"), 15)];
        for (operations, count) in forms {
            let scratch = Scratch::new();
            let line = format!(
                "collective --mpirun {launcher} --collective {operations} --size 72 --count 30 \
                 --warmup 5 --rounds 1 --out run"
            );
            let ended = measured(&scratch, &line);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let record = record(&scratch);
            assert!(record.complete && record.runs.len() == count, "{ended:?}");
            for run in &record.runs {
                let counts = &run.counts;
                let found = (counts.sent, counts.received, counts.corrupt, counts.warmup);
                assert_eq!(found, (35, 35, 0, 5), "{}: {ended:?}", run.label);
                assert_eq!(run.rounds[0].samples, 35, "{}", run.label);
            }
        }
    }
}

#[test]
fn a_launch_of_three_ranks_measures_what_all_of_them_do() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        // Three ranks on two CPUs are late.
        let line = format!(
            "{launcher} -n 3 {PROGRAM} collective --collective allreduce,gather --size 32 \
             --count 20 --warmup 0 --rounds 2 --max-late 10s --out run"
        );
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = record(&scratch);
        assert!(record.complete && record.runs.len() == 2, "{ended:?}");
        for run in &record.runs {
            assert_eq!((run.counts.received, run.counts.corrupt), (40, 0), "{ended:?}");
            assert_eq!(run.figures[0].metric.name(), "collective");
            assert_eq!(run.figures[0].summary.count, 40, "{ended:?}");
        }
        let mut rounds = effective(&record, "rounds_of_process");
        rounds.sort();
        assert_eq!(rounds, ["1", "2", "3", "4"], "one process for all rounds of both cases");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

#[test]
fn a_rank_that_is_killed_in_an_operation_ends_it_and_what_was_measured_is_kept() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "collective --mpirun {launcher} --compute 2ms --time 60s --rounds 2 --max-late 10s \
             --out run"
        );
        let words: Vec<&str> = line.split(' ').collect();
        let controller = started(&scratch, &[&[PROGRAM][..], &words].concat());
        until("both ranks run", LIMIT, || agents(&scratch).len() == 2);
        // Until it measures: a launch whose ranks do not come says so.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let pid = Pid::from_raw(agents(&scratch)[0]).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let ended = controller.end();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(launcher) && said.contains("node"), "{ended:?}");
        let record = record(&scratch);
        assert!(!record.complete && record.runs[0].rounds[0].samples > 0, "{ended:?}");
        until("all end", SOON, || agents(&scratch).is_empty());
    }
}

#[test]
fn what_cannot_be_launched_is_refused_in_a_sentence() {
    let scratch = Scratch::new();
    for (line, says) in [
        ("latency --transport mpi --wait block", "MPI has no descriptor to sleep on"),
        ("latency --transport mpi --to node1", "start wiregauge by mpirun or srun"),
        ("latency --transport mpi --operation write_imm", "operations carry no immediate value"),
        ("latency --transport mpi --operation fetch_add --size 16", "the size of an atomic"),
        ("oneway --transport mpi --operation read --rate 1k", "which the other end does not see"),
        ("latency --transport tcp --mpirun mpirun", "tcp does not support --mpirun"),
        ("collective --transport tcp", "tcp does not support collective"),
        ("collective --size 12", "allreduce adds numbers of 8 B: use a multiple of it"),
        ("collective --collective reduce+bcast --nonblocking", "reduce+bcast is two calls"),
    ] {
        let ended = measured(&scratch, line);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
    }
    for (line, says) in [
        ("latency --transport mpi --mpirun no-such-mpirun", "no-such-mpirun is not installed"),
        ("latency --transport mpi --mpi-library libc.so.6", "has no MPI_Get_library_version"),
    ] {
        let ended = measured(&scratch, line);
        assert!(ended.code.is_some_and(|code| code == 4 || code == 2), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(says) || said.contains("no MPI library"), "{ended:?}");
    }
    for (launcher, name) in installed() {
        let launcher = launcher.split(' ').next().unwrap();
        let line = format!(
            "latency --operation compare_swap --size 8 --transport mpi --mpirun {launcher} \
             --count 100 --rounds 1 --out {launcher}"
        );
        let ended = measured(&scratch, &line);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        // Open MPI 5 is not refused.
        let is_refused = said.contains("crashes in MPI_Compare_and_swap");
        assert!(is_refused || ended.code == Some(0), "{ended:?}");
        assert!(!is_refused || name == "Open MPI", "{ended:?}");
    }
    for (launcher, _) in installed() {
        let line = format!("{launcher} -n 3 {PROGRAM} latency --transport mpi --out run");
        let ended = started(&scratch, &line.split(' ').collect::<Vec<_>>()).end();
        let says = "needs a launch of two ranks, and this one has 3";
        assert_eq!(ended.stderr.matches(says).count(), 1, "{ended:?}");
    }
}
