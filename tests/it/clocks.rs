//! Clocks of two hosts whose truth is known: the other one's is made wrong by an offset, a drift
//! and a step, and what a real comparison finds is held against what was put in.
//!
//! Both hosts are networks of this machine (`testbed net`) and read one counter, so that nothing
//! but what is put in parts their clocks. `bench/clocks` does the same a thousand times.

use crate::support::controller::{Scratch, wiregauge, words};
use std::fs;
use std::process::Command;
use std::time::Duration;
use wiregauge::record::read_record;
use wiregauge::record::schema::{ClockHistory, ClockPoint, Record};
use wiregauge_test_support::bounded::start;

/// What conversions between ticks and nanoseconds round, several times over.
const ROUNDING_NS: f64 = 1.0;
/// How long the trials of one testbed may take.
const LIMIT: Duration = Duration::from_secs(480);

fn scratch() -> Option<Scratch> {
    match rustix::process::geteuid().is_root() {
        true => Some(Scratch::new()),
        false => {
            eprintln!("skipped: a network namespace needs root");
            None
        }
    }
}

/// Lines of shell in the first of two hosts, all in one testbed; each trial keeps its record in a
/// folder of its number.
fn trials(scratch: &Scratch, options: &str, load: Option<&str>, lines: &[String]) {
    let words: Vec<&str> = ["testbed", "net"].into_iter().chain(options.split(' ')).collect();
    let mut script = String::from("set -e\n");
    if let Some(load) = load {
        script += &format!("( while :; do {load} >/dev/null 2>&1 || sleep 0.1; done ) &\n");
    }
    for (number, line) in lines.iter().enumerate() {
        script += &format!("wiregauge {line} --to wg-h2 --out {number} >/dev/null\n");
    }
    let file = scratch.join("trials.sh");
    fs::write(&file, script).unwrap();
    let file = file.display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    command.args(words).args(["--", "sh", &file]).current_dir(&scratch.0);
    let output = start(&mut command).end(LIMIT);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn record(scratch: &Scratch, number: usize) -> Record {
    let record = read_record(&scratch.join(&number.to_string())).unwrap();
    assert!(record.complete, "{:?}", record.faults);
    record
}

/// Every statement of a comparison against the truth.
fn assert_true(record: &Record, spec: &str) -> ClockHistory {
    let [history] = record.clocks.as_slice() else { panic!("{:?}", record.clocks) };
    for known in &history.known {
        let truth = known.true_offset_ns.expect("a known truth");
        let off = (known.clock.offset_ns - truth).abs();
        assert!(off <= known.clock.bound_ns + ROUNDING_NS, "{spec}: off by {off} ns: {known:?}");
        // A drift of the last piece; in the row in which a step lies it may be of either.
        if known.clock.steps == 0 {
            let off = (known.clock.drift_ppm - known.true_drift_ppm.unwrap()).abs();
            assert!(off <= known.clock.drift_bound_ppm, "{spec}: off by {off} ppm: {known:?}");
        }
    }
    for point in &history.points {
        let off = (point.offset_ns - point.true_offset_ns.unwrap()).abs();
        assert!(off <= point.bound_ns + ROUNDING_NS, "{spec}: off by {off} ns: {point:?}");
    }
    let off = (history.later.offset_ns - history.later.true_offset_ns.unwrap()).abs();
    assert!(off <= history.later.bound_ns, "{spec}: off by {off} ns: {:?}", history.later);
    assert!(record.warnings.iter().any(|warning| warning.kind == "injected_clock_error"));
    history.clone()
}

/// Clocks that run evenly: offsets up to a day, drifts of up to 50 ppm.
const EVEN: [&str; 6] = [
    "offset(0s)",
    "offset(1s) drift(50ppm)",
    "offset(-1s) drift(-50ppm)",
    "offset(20h) drift(7ppm)",
    "offset(-3us) drift(-0.1ppm)",
    "drift(20ppm)",
];

fn lines(specs: &[&str]) -> Vec<String> {
    specs
        .iter()
        .map(|spec| format!("clocks --time 500ms --injected-clock-error '{spec}'"))
        .collect()
}

#[test]
fn an_offset_and_a_drift_that_were_put_in_are_found_within_the_bound() {
    let Some(scratch) = scratch() else { return };
    let specs = EVEN;
    trials(&scratch, "--topology pair", None, &lines(&specs));
    for (number, spec) in specs.iter().enumerate() {
        let history = assert_true(&record(&scratch, number), spec);
        assert_eq!(history.known.last().unwrap().clock.steps, 0, "{spec}");
    }
}

#[test]
fn under_load_that_delays_one_way_alone_the_bound_is_wider_and_true() {
    let Some(scratch) = scratch() else { return };
    // Queues stand before the exchanges' datagrams on the way there and not on the way back.
    let load = "wiregauge bandwidth --transport udp --wait block --size 1200 --window 8 --time 5s \
                --rounds 1 --to wg-h2 --json";
    trials(&scratch, "--topology pair --rate 20mbit", Some(load), &lines(&EVEN));
    for (number, spec) in EVEN.iter().enumerate() {
        assert_true(&record(&scratch, number), spec);
    }
}

#[test]
fn a_clock_that_is_set_in_mid_run_is_noticed() {
    let Some(scratch) = scratch() else { return };
    let specs = [
        "step(1s@3s)",
        "offset(5s) drift(30ppm) step(-20ms@3s)",
        "drift(-50ppm) step(-1s@3s)",
        "step(5ms@3s)",
    ];
    let lines: Vec<String> = specs
        .iter()
        .map(|spec| format!("clocks --time 4s --injected-clock-error '{spec}'"))
        .collect();
    trials(&scratch, "--topology star", None, &lines);
    let mut set = 0;
    for (number, spec) in specs.iter().enumerate() {
        let record = record(&scratch, number);
        let history = assert_true(&record, spec);
        // On a busy machine the exchanges may begin after the step.
        let of = |point: &ClockPoint| point.true_offset_ns.unwrap();
        let [first, last] = [0, history.points.len() - 1].map(|at| of(&history.points[at]));
        let is_set = (first - last).abs() > 1e6;
        let steps = history.known.last().unwrap().clock.steps;
        assert_eq!(steps >= 1, is_set, "{spec}: {steps} steps");
        let warned = record.warnings.iter().any(|warning| warning.kind == "clock_stepped");
        assert_eq!(warned, is_set, "{spec}");
        set += u32::from(is_set);
    }
    assert!(set > 0, "no clock was set while it was watched");
}

#[test]
fn one_way_times_by_a_wrong_clock_are_put_right() {
    let Some(scratch) = scratch() else { return };
    let specs = ["offset(3s) drift(40ppm)", "offset(-3s) drift(-40ppm)"];
    let line = "oneway --transport tcp --wait block --count 2000 --rounds 2 --injected-clock-error";
    let lines: Vec<String> = specs.iter().map(|spec| format!("{line} '{spec}'")).collect();
    trials(&scratch, "--topology pair", None, &lines);
    for (number, spec) in specs.iter().enumerate() {
        let record = record(&scratch, number);
        for round in &record.runs[0].rounds {
            let clock = round.clock.as_ref().unwrap();
            // What the controller's and the far side's calibration differ by is some ppm.
            let put_in = if spec.contains("(-") { -40.0 } else { 40.0 };
            let off = (clock.drift_ppm - put_in).abs();
            assert!(off <= clock.drift_bound_ppm + 5.0, "{spec}: {clock:?}");
            assert_eq!(clock.traffic.unwrap().beyond_ns, 0.0, "{spec}: {clock:?}");
        }
        assert!(record.runs[0].warnings.iter().all(|warning| warning.kind != "clocks_disagree"));
        let cost = record.hosts[0].clock_cost.expect("what the comparison took");
        assert!(cost.exchanges >= 200 && cost.server_cpu_ns.is_some(), "{cost:?}");
    }
}

#[test]
fn a_run_whose_clock_is_off_against_the_kernels_makes_no_figure() {
    let scratch = Scratch::new();
    let line = "oneway --transport shm --count 100 --rounds 1 --out run --injected-clock-error";
    let with = |spec| wiregauge(&scratch, &[&words(line)[..], &[spec]].concat());
    let ended = with("scale(2500ppm)");
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("differs from CLOCK_MONOTONIC by"), "{ended:?}");
    assert!(!scratch.join("run").exists());
    // A daemon slews by up to 500 ppm.
    assert_eq!(with("scale(100ppm)").code, Some(0));
}
