//! Ranks that are killed, abort, do not come or never return, and launches that are ended.

use super::*;
use std::path::PathBuf;

/// The rank of the controller is its child: nobody else would end it, and it may stay in MPI for
/// ever.
#[test]
fn a_launch_that_is_ended_leaves_no_rank_behind() {
    for (launcher, _) in installed() {
        let scratch = Scratch::new();
        let line = format!("{launcher} -n 2 {PROGRAM} collective --time 60s --rounds 1 --out run");
        let controller = started(&scratch, &line.split(' ').collect::<Vec<_>>());
        until("both ranks run", LIMIT, || agents(&scratch).len() == 2);
        // MPICH's launcher may pass a signal on to nobody while it starts its ranks.
        controller.await_hidden_directory();
        std::thread::sleep(Duration::from_millis(1500));
        controller.signal(Signal::TERM);
        until("no rank is left", LIMIT, || agents(&scratch).is_empty());
        assert_ne!(controller.end().code, Some(0), "{launcher}");
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
        std::thread::sleep(Duration::from_millis(700));
        let owner = controller.pid();
        let [memory] = &memory_of(owner)[..] else { panic!("{:?}", memory_of(owner)) };
        let has_files = fs::read_dir(memory).unwrap().next().is_some();
        assert!(has_files || !launcher.contains("openmpi"), "{}", memory.display());
        let pid = Pid::from_raw(agents(&scratch)[0]).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let ended = controller.end();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(launcher), "{ended:?}");
        until("all end", SOON, || agents(&scratch).is_empty());
        assert!(memory_of(owner).is_empty(), "{:?}", memory_of(owner));
    }
}

/// The folder for shared memory that a controller has given to its launch.
fn memory_of(controller: Pid) -> Vec<PathBuf> {
    let begin = format!("wiregauge-mpi-{}-", controller.as_raw_pid());
    let paths = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&begin)).collect()
}

/// The others do not exit by themselves: that is no cause. In MPI_Init the launcher has an answer
/// for the rank that is killed. A library is left for 12 s before it is given up, so that several
/// launches run at once.
#[test]
fn a_launched_rank_that_is_killed_is_named_before_those_that_had_to_be() {
    for (launcher, _) in installed() {
        std::thread::scope(|scope| {
            for moment in [0, 30, 100, 700] {
                scope.spawn(move || a_rank_is_killed_at(launcher, Duration::from_millis(moment)));
            }
        });
    }
}

fn a_rank_is_killed_at(launcher: &str, moment: Duration) {
    let scratch = Scratch::new();
    let line = format!(
        "{launcher} -n 2 {PROGRAM} collective --collective allreduce,bcast --time 60s --rounds 3 \
         --out run"
    );
    let controller = started(&scratch, &line.split(' ').collect::<Vec<_>>());
    // Rank 1 has another that answers clock exchanges.
    until("both ranks run", LIMIT, || agents(&scratch).len() == 3);
    std::thread::sleep(moment);
    let is_rank_1 = |pid: &i32| rank_of(*pid).as_deref() == Some("1");
    let of_rank_1: Vec<i32> = agents(&scratch).into_iter().filter(is_rank_1).collect();
    assert!(!of_rank_1.is_empty());
    for pid in of_rank_1 {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    until("no rank is left", LIMIT, || agents(&scratch).is_empty());
    let ended = controller.end();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let named = said.find("node 1").or(said.find("rank:1")).or(said.find("rank 1"));
    let others = said.find("did not exit").unwrap_or(said.len());
    assert!(named.is_some_and(|named| named < others), "{ended:?}");
    // No round can begin without them: that is said once.
    let faults = record(&scratch).faults;
    let is_lost = |fault: &String| fault.starts_with("1 case was not measured to the end");
    assert!(faults.len() == 2 && faults.iter().any(is_lost), "{faults:?}");
}

/// An MPI library that does something else in rank 1, linked with the one of a launcher.
fn shim(scratch: &Scratch, name: &str) -> String {
    let soname = if name == "MPICH" { "libmpich.so.12" } else { "libmpi.so.40" };
    let (source, made) = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mpi/shim.c"), "shim.so");
    let file = scratch.join(made).display().to_string();
    let words = ["-shared", "-fPIC", source, "-o", &file, &format!("-l:{soname}")];
    let built = output(Command::new("cc").args(words));
    assert!(built.status.success(), "{built:?}");
    file
}

/// A run by these words, whose rank 1 does this.
fn run_with_rank_1(scratch: &Scratch, line: &str, does: &str) -> Ended {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).env(MARK, mark(scratch)).env("WIREGAUGE_TEST_RANK_1", does);
    let ended = Controller::with_input(scratch, command, Stdio::piped()).end();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    ended
}

/// A launch of this program's, whose rank 1 does this, and what it said.
fn with_rank_1(scratch: &Scratch, (launcher, name): (&str, &str), does: &str) -> (Ended, String) {
    let launcher = launcher.split(' ').next().unwrap();
    let library = shim(scratch, name);
    let line = format!(
        "{PROGRAM} latency --transport mpi --mpirun {launcher} --mpi-library {library} \
         --timeout 3s --count 100000 --rounds 1 --out run"
    );
    let ended = run_with_rank_1(scratch, &line, does);
    until("all end", SOON, || agents(scratch).is_empty());
    let said = format!("{}{}", ended.stdout, ended.stderr);
    (ended, said)
}

#[test]
fn a_rank_that_aborts_is_named_and_what_was_measured_is_kept() {
    for (launcher, name) in installed() {
        in_spite_of(ForeignFault::LauncherLosesOutput, || {
            let scratch = Scratch::new();
            let (ended, said) = with_rank_1(&scratch, (launcher, name), "abort");
            assert_eq!(ended.code, Some(3), "{ended:?}");
            let program = launcher.split(' ').next().unwrap();
            assert!(said.contains(&format!("{program} ended with code 7")), "{ended:?}");
            let is_named = said.contains("(rank 1") && said.contains("the server was gone first");
            assert!(is_named || (name != "MPICH" && said.contains(" first")), "{ended:?}");
            let record = record(&scratch);
            let samples = record.runs[0].rounds[0].samples;
            assert!(!record.complete && samples > 100, "{samples} samples: {ended:?}");
        });
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

/// What is measured there is sent once the round is over, which that rank does not come to.
#[test]
fn what_a_rank_that_never_returns_had_measured_is_kept() {
    for (launcher, name) in installed() {
        let scratch = Scratch::new();
        let library = shim(&scratch, name);
        let line = format!(
            "{launcher} -n 2 {PROGRAM} oneway --transport mpi --mpi-library {library} --timeout 3s \
             --count 100000 --rounds 1 --out run"
        );
        let ended = run_with_rank_1(&scratch, &line, "stay");
        until("all end", LIMIT, || agents(&scratch).is_empty());
        let record = record(&scratch);
        let counts = &record.runs[0].counts;
        assert!(!record.complete && counts.received > 1000, "{counts:?}: {ended:?}");
    }
}
