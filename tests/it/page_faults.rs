//! No loop takes a page fault for memory that it could have had before: sample memory, tables,
//! buffers, stacks and its own code are touched before the first message. Counted by the kernel, so
//! that it holds on a busy machine.

use crate::support::controller::{Scratch, wiregauge};
use std::path::Path;
use wiregauge::pattern::registry;
use wiregauge::record::read_record;
use wiregauge::record::schema::Usage;
use wiregauge::transport::TransportKind;

/// Page faults of an end in the quietest of the rounds. Its own are 0. The kernel takes pages of
/// any process away to compact memory or to move it, a few at a time; a table of 1.5 MiB that a
/// loop writes first has 384, code that is reached for the first time 5 to 70.
const MAX_FAULTS: u64 = 4;
/// One of them is without the kernel's own work.
const ROUNDS: &str = "2";

/// Options of a pattern with which a round is short.
fn short(pattern: &str) -> &'static [&'static str] {
    match pattern {
        "latency" => &["--count", "300"],
        "oneway" => &["--rate", "5k", "--count", "300"],
        "bandwidth" => &["--size", "4KiB", "--time", "20ms"],
        "stream" => &["--rate", "2k", "--count", "300"],
        "load" => &["--rate", "5k", "--count", "300"],
        "rpc" => &["--clients", "4", "--count", "300"],
        "exchange" => &["--nodes", "2", "--size", "4KiB", "--time", "20ms"],
        other => panic!("{other}: say how a short round of it is asked for"),
    }
}

/// Transports whose loops this program has as a whole: a library's own memory is its own, and
/// simulated rounds take theirs as they go.
fn is_own(transport: TransportKind) -> bool {
    let descriptor = transport.descriptor();
    let is_library = descriptor.launcher.is_some() || transport.has_setting("device");
    !is_library && !transport.simulates_time() && !descriptor.samples_only
}

/// The words before a command whose memory may not be locked. Root has to lay down the capability
/// that frees it from the limit.
fn unlocked() -> Vec<&'static str> {
    let mut words = vec!["prlimit", "--memlock=0"];
    if rustix::process::geteuid().is_root() {
        words.extend(["setpriv", "--bounding-set", "-ipc_lock"]);
    }
    words
}

/// The page faults of each end in the quietest round of each run.
fn fewest(directory: &Path) -> Vec<(String, u64)> {
    let record = read_record(directory).unwrap();
    let mut found = Vec::new();
    for run in &record.runs {
        let clients: Vec<&Usage> = run.rounds.iter().map(|round| &round.client).collect();
        let servers: Vec<&Usage> = run.rounds.iter().map(|round| &round.server).collect();
        assert!(clients.iter().all(|usage| !usage.locked), "{}: memory is locked", run.label);
        for (end, all) in [("client", clients), ("server", servers)] {
            let fewest = all.iter().map(|usage| usage.page_faults).min();
            found.push((format!("{} {end}", run.label), fewest.unwrap()));
        }
    }
    found
}

/// Measures a pattern over a transport; the page faults of each end.
fn measure(
    scratch: &Scratch,
    name: &str,
    over: TransportKind,
    more: &[&str],
) -> Vec<(String, u64)> {
    let _ = std::fs::remove_dir_all(scratch.join("run"));
    let line =
        [name, "--transport", over.name(), "--rounds", ROUNDS, "--timeout", "60s", "--out", "run"];
    let ended = wiregauge(scratch, &[&line, short(name), more].concat());
    assert_eq!(ended.code, Some(0), "{name} {over}: {ended:?}");
    fewest(&scratch.join("run"))
}

#[test]
fn loops_take_no_page_faults_of_their_own_over_memory_that_may_not_be_locked() {
    let scratch = Scratch::new();
    scratch.run_behind(&unlocked());
    let mut found = Vec::new();
    for pattern in registry::all().iter().filter(|one| one.name() != "collective") {
        for transport in TransportKind::ALL.iter().filter(|one| is_own(**one)) {
            let descriptor = transport.descriptor();
            let is_there = (descriptor.available)(&Default::default()).is_ok();
            if pattern.is_carried_by(descriptor) && is_there {
                found.extend(measure(&scratch, pattern.name(), *transport, &[]));
            }
        }
    }
    for name in ["latency", "load", "rpc"] {
        found.extend(measure(&scratch, name, TransportKind::Tcp, &["--connections", "50"]));
    }
    let more = ["--connections", "4", "--receivers", "1", "--wait", "block"];
    found.extend(measure(&scratch, "rpc", TransportKind::Tcp, &more));
    assert!(found.len() > 60, "{found:?}");
    let many: Vec<_> = found.iter().filter(|(_, faults)| *faults > MAX_FAULTS).collect();
    assert!(many.is_empty(), "{many:?}");
}
