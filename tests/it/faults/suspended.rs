//! A run that is suspended as a whole: all of its processes are stopped, as a debugger, a laptop's
//! lid or a paused virtual machine do; and one of which the user stops the controller alone.

use crate::support::controller::{Controller, Process, Scratch, wiregauge, words};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use wiregauge::record::read_record;
use wiregauge::record::schema::Record;

/// Time for which processes are stopped.
const STOPPED: Duration = Duration::from_millis(1500);
/// The controller waits for so long at most where nothing comes.
const CHECK_NS: f64 = 250e6;
/// A busy machine may take this long until all have gone on.
const MAX_STOPPED_NS: f64 = 60e9;

fn record(scratch: &Scratch) -> Record {
    read_record(&scratch.join("run")).unwrap()
}

/// Starts a run of rounds that last, whatever a busy machine takes for a message.
fn under_way(scratch: &Scratch, more: &str) -> Controller {
    let line = format!("latency --transport tcp --wait block --warmup 0 --out run {more}");
    let controller = Controller::start(scratch, &words(&line));
    controller.await_messages(20);
    controller
}

/// Stops the controller for a time, and agents of its; nothing can be awaited, since all that could
/// be is stopped.
fn stop_for(controller: &Controller, agents: &[Process], time: Duration) {
    controller.signal_group(Signal::STOP);
    agents.iter().for_each(|agent| agent.signal(Signal::STOP));
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::thread::sleep(time.saturating_sub(begin.elapsed()));
    }
    agents.iter().for_each(|agent| agent.signal(Signal::CONT));
    controller.signal_group(Signal::CONT);
}

#[test]
fn a_run_that_was_stopped_as_a_whole_says_so_and_marks_the_round() {
    let scratch = Scratch::new();
    let controller = under_way(&scratch, "--time 3s --rounds 2");
    stop_for(&controller, &controller.agents(), STOPPED);
    let ended = controller.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = record(&scratch);
    let [first, second] = record.runs[0].rounds.as_slice() else { panic!("two rounds") };
    let least = STOPPED.as_nanos() as f64 - CHECK_NS;
    assert!((least..MAX_STOPPED_NS).contains(&first.suspended_ns), "{}", first.suspended_ns);
    assert_eq!(second.suspended_ns, 0.0);
    let warnings = record.runs[0].warnings.iter().filter(|one| one.kind == "suspended");
    let [said] = Vec::from_iter(warnings)[..] else { panic!("{:?}", record.runs[0].warnings) };
    assert!(said.sentence.contains("was suspended for") && said.sentence.contains("in round 0"));
    assert!(ended.stderr.contains(&said.sentence) || ended.stdout.contains(&said.sentence));
    assert_eq!(said.magnitude, Some(first.suspended_ns));
    let told = wiregauge(&scratch, &["report", "run"]);
    assert!(told.stderr.contains(&said.sentence) || told.stdout.contains(&said.sentence));
}

/// The stop is longer than the time without progress that is a stall: no agent is at fault.
#[test]
fn a_stop_that_is_longer_than_the_timeout_is_no_stall() {
    let scratch = Scratch::new();
    let controller = under_way(&scratch, "--time 8s --rounds 1 --timeout 3s");
    stop_for(&controller, &controller.agents(), 3 * STOPPED);
    let ended = controller.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = record(&scratch);
    assert!(record.runs[0].rounds[0].suspended_ns > 3e9, "{ended:?}");
    assert!(record.faults.is_empty(), "{:?}", record.faults);
}

/// Stops it as Ctrl-Z does: the ends are in process groups of their own and measure on.
#[test]
fn a_stop_of_the_controller_alone_is_none_of_the_round() {
    let scratch = Scratch::new();
    let controller = under_way(&scratch, "--time 3s --rounds 1 --timeout 1s");
    stop_for(&controller, &[], STOPPED);
    let ended = controller.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = &record(&scratch).runs[0];
    assert_eq!(run.rounds[0].suspended_ns, 0.0, "{ended:?}");
    assert!(run.warnings.iter().all(|one| one.kind != "suspended"), "{:?}", run.warnings);
}
