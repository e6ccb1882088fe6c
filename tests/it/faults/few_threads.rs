//! A system that starts no further thread or process, at each number that it may allow: a sentence,
//! no panic, and nothing that stays. A user whom nobody else is has the limit; root sets it.

use crate::support::controller::{Controller, Ended, PublicCopy, Scratch, words};
use crate::support::daemon::{Daemon, HERE, driven, pair};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use wiregauge_test_support::bounded::{self, SOON, until};

/// Runs that each start more threads than the one before.
const RUNS: [&str; 4] = [
    "latency --transport tcp --wait block --count 200 --rounds 1",
    "load --threads 2 --clients 2 --time 200ms --wait block --rounds 1",
    "rpc --workload 100B --rps 1000 --no-unloaded --ports 2 --receivers 1 --time 200ms --rounds 1",
    "noise --time 100ms",
];
/// More threads and processes than a run has.
const MAX_THREADS: u32 = 22;

/// A user of this test alone, whose threads are limited.
struct Limited {
    copy: PublicCopy,
    uid: u32,
}

impl Limited {
    /// `None`: only root can become another user.
    fn new(scratch: &Scratch) -> Option<Limited> {
        if !geteuid().is_root() {
            return None;
        }
        fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o777)).unwrap();
        let uid = 0x4000_0000 + std::process::id();
        Some(Limited { copy: PublicCopy::new(), uid })
    }

    fn program(&self, limit: u32) -> Command {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nproc={limit}")).arg("setpriv");
        limited.args([format!("--reuid={}", self.uid), format!("--regid={}", self.uid)]);
        limited.args(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
        limited.arg(&self.copy.0);
        limited
    }

    /// The processes of the user, ended ones that nobody has waited for included.
    fn processes(&self) -> Vec<String> {
        let all = fs::read_dir("/proc").unwrap();
        let texts =
            all.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("status")).ok());
        let own = format!("\nUid:\t{}\t", self.uid);
        texts.filter(|text| text.contains(&own)).collect()
    }
}

/// Returns true if what was said names the limit, and checks that the end was orderly.
fn names_limit(ended: &Ended) -> bool {
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(![None, Some(101)].contains(&ended.code), "{ended:?}");
    assert!(!said.contains("panicked"), "{ended:?}");
    said.contains("of this user (ulimit -u)")
}

#[test]
fn a_run_with_any_number_of_threads_ends_in_order() {
    let scratch = Scratch::new();
    let Some(limited) = Limited::new(&scratch) else { return };
    for run in RUNS {
        let mut refused = 0;
        for limit in 1..=MAX_THREADS {
            let mut command = limited.program(limit);
            command.args(words(run));
            // Noise alone keeps no record.
            if !run.starts_with("noise") {
                command.args(["--out", &format!("{}-{limit}", &run[..3])]);
            }
            let ended = Controller::of(&scratch, command).end();
            refused += u32::from(names_limit(&ended));
            assert!(ended.survivors.is_empty(), "{run} {limit}: {ended:?}");
            until("its processes end", SOON, || limited.processes().is_empty());
        }
        assert!(refused >= 1, "{run}: no limit was met");
        println!("{run}: {refused} of {MAX_THREADS} limits were named");
    }
}

#[test]
fn a_daemon_short_of_threads_refuses_and_keeps_no_process() {
    let scratch = Scratch::new();
    let Some(limited) = Limited::new(&scratch) else { return };
    let mut refused = 0;
    // The daemon itself is the first.
    for limit in 2..=10 {
        let options = format!("--listen 127.0.0.1:0 {HERE}");
        let daemon = Daemon::of(&scratch, limited.program(limit), &options);
        let mut offering = limited.program(MAX_THREADS);
        offering.args(["agent", "--pair", "--identity"]).arg(&daemon.folder);
        let offer = String::from_utf8(bounded::output(&mut offering).stdout).unwrap();
        let (code, said) = pair(&scratch, daemon.at, &offer);
        assert_eq!(code, Some(0), "{said}");
        for attempt in 0..3 {
            let line = format!("{} --out {limit}-{attempt}", RUNS[0]);
            let ended = driven(&scratch, &daemon.host(), &line);
            refused += u32::from(names_limit(&ended));
            // What one run has used is there for the next.
            until("only the daemon is left", SOON, || limited.processes().len() == 1);
            assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
        }
    }
    assert!(refused >= 6, "{refused} runs met the limit");
    println!("{refused} of 27 runs met the limit");
}
