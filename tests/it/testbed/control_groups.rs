//! Runs in control groups of version 2, which the emulated machine has.

use super::{MACHINE_LIMIT, said, turn, wiregauge};
use wiregauge_test_support::bounded::start;

/// Tests of `containers.rs` that make a group, and take less than a minute where each instruction
/// is emulated.
const IN_GROUPS: [&str; 2] = [
    "containers::a_round_beyond_the_memory_of_its_group_is_refused_before_it_runs",
    "containers::threads_beyond_the_limit_of_the_group_are_refused_before_the_run",
];

#[test]
fn limits_of_control_groups_of_version_two_hold_as_those_of_version_one() {
    let Some(_turn) = turn() else { return };
    let tests = std::env::current_exe().unwrap();
    let mut command = wiregauge(&["--timeout", "400s", "--"]);
    command.arg(tests).args(IN_GROUPS).args(["--exact", "--test-threads", "1", "--nocapture"]);
    let ended = start(&mut command).end(MACHINE_LIMIT);
    let (stdout, stderr) = said(&ended);
    assert_eq!(ended.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("2 passed"), "{stdout}{stderr}");
    assert!(!stderr.contains("skipped: "), "{stdout}{stderr}");
}
