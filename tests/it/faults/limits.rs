//! Limits of stacks and of open files, and memory that another process of the same user can reach.

use super::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Runs a script in which `$0` is the program, in the scratch's directory.
fn script(scratch: &Scratch, text: &str) -> Ended {
    let mut shell = Command::new("sh");
    shell.args(["-c", text, env!("CARGO_BIN_EXE_wiregauge")]);
    Controller::of(scratch, shell).end()
}

#[test]
fn a_stack_of_256_kib_is_enough_for_a_run_its_report_and_its_exports() {
    let scratch = Scratch::new();
    const RUN: &str = "latency --transport tcp,unix --wait block --count 1000 --rounds 2 --out run";
    for command in [
        RUN,
        "load --transport synthetic --rate 1k,2k --time 50ms --rounds 2 --out load",
        "stream --transport synthetic --count 100 --rounds 1 --out stream",
        "report run",
        "report run load --no-html",
        "compare run@wait=block run",
        "export run --format csv",
        "export run --format json",
        "export run --format parquet --out run.parquet",
        "export run --format hlog",
        "export run --format openmetrics",
        "export run --format trace --run 0 --round 0",
        "selftest",
    ] {
        let ended = script(&scratch, &format!("ulimit -s 256; exec \"$0\" {command}"));
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
    }
}

/// The files that a process has open and whose size another process could change.
fn shared_memory_of(pid: u32) -> BTreeMap<PathBuf, PathBuf> {
    // A thread may have descriptors of its own.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let open = threads.filter_map(|thread| fs::read_dir(thread.path().join("fd")).ok());
    let all = open.flatten().flatten();
    let links = all.filter_map(|fd| Some((fd.path(), fs::read_link(fd.path()).ok()?)));
    links.filter(|(_, target)| target.to_string_lossy().contains("memfd:wiregauge-")).collect()
}

#[test]
fn no_process_of_the_same_user_can_shrink_the_memory_of_a_round() {
    let scratch = Scratch::new();
    let controller = under_way(&scratch, "shm", "block", &[]);
    let agents = controller.agents();
    let all = agents.iter().map(|agent| agent.pid as u32).chain([controller.id()]);
    let mut names = Vec::new();
    for (path, target) in all.flat_map(shared_memory_of) {
        let file = fs::File::options().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        for bytes in [0, length / 2, length + 4096] {
            assert!(file.set_len(bytes).is_err(), "{} became {bytes} B", target.display());
        }
        names.push(target.to_string_lossy().into_owned());
    }
    for name in ["wiregauge-samples", "wiregauge-ring"] {
        assert!(names.iter().any(|one| one.contains(name)), "no {name} in {names:?}");
    }
    controller.signal(Signal::INT);
    let ended = controller.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.survivors.is_empty(), "{ended:?}");
}

/// What a command says with so few open files.
fn with_files(scratch: &Scratch, files: u32, command: &str) -> Ended {
    script(scratch, &format!("ulimit -n {files}; exec \"$0\" {command}"))
}

#[test]
fn too_few_open_files_are_named_and_never_called_damage() {
    let scratch = Scratch::new();
    let run = "latency --transport unix --wait block --count 500 --rounds 1 --out run";
    assert_eq!(wiregauge(&scratch, &words(run)).code, Some(0));
    for command in [
        "report run",
        "compare run@wait=block run",
        "export run --format csv",
        "export run --format hlog",
        "history .",
    ] {
        let mut is_named = false;
        let mut is_done = false;
        for files in 3..12 {
            let ended = with_files(&scratch, files, command);
            let said = format!("{}{}", ended.stderr, ended.stdout);
            assert!(!said.contains("damaged") && !said.contains("panicked"), "{files}: {said}");
            is_named |= said.contains("as many files open as it may");
            is_done |= ended.code == Some(0);
        }
        assert!(is_named, "{command} never named the limit");
        assert!(is_done || command == "history .", "{command} never had enough");
    }
}

/// Waits until a directory with this begin of its name is there.
fn hidden_of(scratch: &Scratch, pid: u32) -> PathBuf {
    let path = scratch.join(&format!(".run.partial-{pid}"));
    wiregauge_test_support::bounded::until("the hidden directory", SOON, || path.exists());
    path
}

#[test]
fn the_same_out_twice_at_once_gives_both_records() {
    let scratch = Scratch::new();
    let run = "latency --transport unix --wait block --count 4000 --rounds 3 --out run";
    let first = Controller::start(&scratch, &words(run));
    hidden_of(&scratch, first.id());
    let second = Controller::start(&scratch, &words(run));
    let hidden = [first.id(), second.id()].map(|pid| format!(".run.partial-{pid}"));
    let ended = [first.end(), second.end()];
    let mut codes: Vec<_> = ended.iter().map(|one| one.code).collect();
    let late = ended.iter().zip(&hidden).find(|(one, _)| one.code != Some(0));
    let (late, hidden) = late.unwrap_or_else(|| panic!("{ended:?}"));
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(3)], "{ended:?}");
    let names = format!("`wiregauge recover ./{hidden}` publishes it as another");
    assert!(late.stderr.contains(&names), "{late:?}");
    let recovered = wiregauge(&scratch, &["recover", hidden]);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert!(recovered.stdout.ends_with("kept in run-2\n"), "{recovered:?}");
    for name in ["run", "run-2"] {
        assert!(wiregauge::record::read_record(&scratch.join(name)).unwrap().complete, "{name}");
    }
}

/// A run whose hidden directory becomes this one while it goes on; `None`: it is removed.
fn moved(to: Option<&str>) -> (Scratch, Ended) {
    let scratch = Scratch::new();
    let run = "latency --transport unix --wait block --count 4000 --rounds 4 --out run";
    let controller = Controller::start(&scratch, &words(run));
    let hidden = hidden_of(&scratch, controller.id());
    controller.await_round();
    match to {
        Some(name) => fs::rename(&hidden, scratch.join(name)).unwrap(),
        None => fs::remove_dir_all(&hidden).unwrap(),
    }
    let ended = controller.end();
    (scratch, ended)
}

#[test]
fn a_hidden_directory_that_is_renamed_or_removed_during_a_run_is_no_wrong_use() {
    let (scratch, ended) = moved(Some("renamed-by-a-cleaner"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("kept in run\n"), "{ended:?}");
    assert!(wiregauge::record::read_record(&scratch.join("run")).unwrap().complete);
    assert!(!Path::new(&scratch.join("renamed-by-a-cleaner")).exists());
    // The next one has its turn when this one is over.
    drop(scratch);
    let (_, ended) = moved(None);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("was removed while the run went on"), "{said}");
    assert!(ended.stdout.contains("unix"), "its tables are printed: {ended:?}");
}
