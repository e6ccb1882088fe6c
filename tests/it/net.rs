//! `testbed net`: hosts are made, found by name, shaped, and always taken away again.
//!
//! Skipped with a reason where the tests do not run as root.

use crate::support::controller::{Controller, Ended, PublicCopy, Scratch, wiregauge};
use rustix::process::Signal;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use wiregauge::record::read_record;
use wiregauge_test_support::bounded::{LIMIT, SOON, output, until};

fn scratch() -> Option<Scratch> {
    match rustix::process::geteuid().is_root() {
        true => Some(Scratch::new()),
        false => {
            eprintln!("skipped: a network namespace needs root");
            None
        }
    }
}

/// A command in the first of several hosts.
fn inside(scratch: &Scratch, options: &str, command: &[&str]) -> Ended {
    let words: Vec<&str> = ["testbed", "net"].into_iter().chain(options.split(' ')).collect();
    wiregauge(scratch, &[&words[..], &["--"], command].concat())
}

/// What is left of the testbed of this owner; of all where none is named.
fn left(owner: &str) -> Vec<PathBuf> {
    let temporary = std::env::temp_dir();
    let all = [("/run/netns", "wgnet-"), ("/etc/netns", "wgnet-")]
        .map(|(folder, prefix)| (PathBuf::from(folder), prefix))
        .into_iter()
        .chain([(temporary, "wiregauge-net-")]);
    let entries = all.flat_map(|(folder, prefix)| {
        let begin = format!("{prefix}{owner}-");
        let found = fs::read_dir(folder).into_iter().flatten().flatten().map(|one| one.path());
        found.filter(move |path| path.file_name().unwrap().to_string_lossy().starts_with(&begin))
    });
    entries.collect()
}

/// The number of the process that made a namespace.
fn owner(namespace: &str) -> String {
    namespace.split('-').nth(1).unwrap().to_string()
}

#[test]
fn a_command_runs_in_the_first_host_and_reaches_the_others_by_name() {
    let Some(scratch) = scratch() else { return };
    let line = "hostname; for h in wg-h2 wg-h3; do ssh $h 'hostname; command -v wiregauge'; done; \
                echo $WIREGAUGE_TESTBED_HOSTS; echo $WIREGAUGE_TESTBED_NAMESPACES; \
                sleep 1000 & echo beside >&2; exit 7";
    let ended = inside(&scratch, "--hosts 3", &["sh", "-c", line]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert_eq!(ended.stderr, "beside\n");
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let told: Vec<&str> = ended.stdout.lines().collect();
    let expected = ["wg-h1", "wg-h2", program, "wg-h3", program, "wg-h1,wg-h2,wg-h3"];
    assert_eq!(told[..6], expected, "{ended:?}");
    assert_eq!(left(&owner(told[6])), Vec::<PathBuf>::new());
    // The machine itself has kept its name and its names.
    assert!(!fs::read_to_string("/etc/hosts").unwrap().contains("wg-h1"));
    assert_ne!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim(), "wg-h1");
}

#[test]
fn in_every_topology_every_host_reaches_every_other() {
    let Some(scratch) = scratch() else { return };
    for (options, hosts) in [
        ("--topology pair --hosts 2", 2),
        ("--topology star --hosts 4", 4),
        ("--topology ring --hosts 5", 5),
    ] {
        let line = "all=$(echo $WIREGAUGE_TESTBED_HOSTS | tr , ' '); for a in $all; do \
                    ssh $a \"for b in $all; do echo >/dev/tcp/\\$b/22 && echo $a \\$b; done\"; \
                    done";
        let ended = inside(&scratch, options, &["bash", "-c", line]);
        assert_eq!(ended.code, Some(0), "{options}: {ended:?}");
        assert_eq!(ended.stdout.lines().count(), hosts * hosts, "{options}: {ended:?}");
    }
}

#[test]
fn a_link_carries_the_rate_that_was_asked_for() {
    let Some(scratch) = scratch() else { return };
    for topology in ["pair", "star"] {
        let options = format!("--topology {topology} --rate 50mbit");
        let line = "wiregauge bandwidth --transport tcp --wait block --size 16KiB --time 1s \
                    --rounds 1 --to wg-h2 --out";
        let out = scratch.join(topology).display().to_string();
        let words: Vec<&str> = line.split_whitespace().chain([out.as_str()]).collect();
        let ended = inside(&scratch, &options, &words);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record = read_record(&scratch.join(topology)).unwrap();
        // 50 Mb/s are 6.25 MB/s; headers take a share. Without a shape it is a hundred times.
        let rate = record.runs[0].rates[0].rate.value;
        assert!((3e6..6.3e6).contains(&rate), "{topology}: {rate} B/s");
    }
}

/// A testbed whose command waits, after it has started one that leaves its session; its owner's
/// number.
fn waiting(scratch: &Scratch) -> (Controller, String) {
    let told = scratch.join("told");
    let line = format!(
        "setsid -f sleep 1000.{1}; \
         echo $WIREGAUGE_TESTBED_NAMESPACES >{0}.new; mv {0}.new {0}; exec sleep 1000",
        told.display(),
        std::process::id()
    );
    let controller = Controller::start(scratch, &["testbed", "net", "--", "sh", "-c", &line]);
    until("the command begins", LIMIT, || told.exists());
    let owner = owner(&fs::read_to_string(&told).unwrap());
    fs::remove_file(&told).unwrap();
    (controller, owner)
}

/// The processes that a command of [`waiting`] has left to themselves.
fn stray() -> usize {
    let own = format!("sleep\01000.{}\0", std::process::id());
    let all = fs::read_dir("/proc").unwrap();
    let lines = all.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| *line == own.as_bytes()).count()
}

#[test]
fn a_slow_link_warms_up_by_the_time_and_a_stream_that_is_cut_off_loses_nothing() {
    let Some(scratch) = scratch() else { return };
    // 1000 messages of 64 KiB take 17 s at this rate.
    let line = "wiregauge bandwidth --transport tcp --wait block --time 1s --rounds 1 --to wg-h2 \
                --out";
    let out = scratch.join("slow").display().to_string();
    let words: Vec<&str> = line.split(' ').chain([out.as_str()]).collect();
    let ended = inside(&scratch, "--rate 30mbit", &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = read_record(&scratch.join("slow")).unwrap();
    let round = &record.runs[0].rounds[0];
    let counts = round.counts;
    assert!(counts.warmup < counts.received, "{counts:?}");
    assert!(counts.sent < 500, "a tenth of 1 s, and 1 s: {counts:?}");
    assert_eq!(counts.lost, 0);
    assert_eq!(counts.unfinished, counts.sent - counts.received);
    let rate = record.runs[0].rates[0].rate.value;
    assert!((1.8e6..3.8e6).contains(&rate), "{rate} B/s");
}

#[test]
fn everything_goes_with_a_signal() {
    let Some(scratch) = scratch() else { return };
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let (controller, owner) = waiting(&scratch);
        assert!(!left(&owner).is_empty());
        // As a terminal does it.
        controller.signal_group(signal);
        let ended = controller.end();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.survivors.is_empty(), "{ended:?}");
        assert_eq!(left(&owner), Vec::<PathBuf>::new(), "{signal:?}");
    }
}

#[test]
fn what_a_killed_owner_left_is_taken_away_by_the_next_start() {
    let Some(scratch) = scratch() else { return };
    let (controller, killed) = waiting(&scratch);
    let (other, living) = waiting(&scratch);
    until("both strays run", LIMIT, || stray() == 2);
    controller.signal(Signal::KILL);
    let ended = controller.end();
    assert_eq!(ended.code, None);
    assert!(ended.survivors.is_empty(), "its command and its sshds die with it: {ended:?}");
    assert!(!left(&killed).is_empty(), "nobody has cleaned up yet");
    until("what its command has started ends, too", SOON, || stray() == 1);
    let next = inside(&scratch, "--hosts 2", &["true"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.stderr.contains("removed what a killed testbed had left"));
    assert_eq!(left(&killed), Vec::<PathBuf>::new());
    assert!(left(&living).len() >= 5, "one that lives is left alone: {:?}", left(&living));
    other.signal(Signal::TERM);
    other.end();
    until("nobody is left", SOON, || stray() == 0);
    assert_eq!(left(&living), Vec::<PathBuf>::new());
}

#[test]
fn who_is_not_root_is_told_so() {
    let Some(scratch) = scratch() else { return };
    let copy = PublicCopy::new();
    let mut command = Command::new(&copy.0);
    command.args(["testbed", "net", "--", "true"]).uid(65_534).gid(65_534).current_dir("/");
    let output = output(&mut command);
    drop(scratch);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("needs root") && said.lines().count() == 1, "{said}");
}
