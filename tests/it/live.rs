//! `--live` on a terminal, made by script(1); lines of a running round, and rounds without an end.

use crate::support;
use crate::support::Scratch;
use crate::support::program::PROGRAM;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use wiregauge_test_support::bounded::{LIMIT, output, start};

const ENTERS: &str = "\x1b[?1049h";
const LEAVES: &str = "\x1b[?1049l";

#[test]
fn the_terminal_is_restored_before_the_report() {
    let scratch = Scratch::new();
    let line = format!(
        "stty cols 100 rows 30; {PROGRAM} latency --transport synthetic --count 2000 --rounds 3 \
         --live --out run"
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").current_dir(&scratch.0);
    let ended = output(&mut script);
    let text = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{text}");
    let (before, rest) = text.split_once(ENTERS).unwrap_or_else(|| panic!("{text}"));
    let (screen, report) = rest.split_once(LEAVES).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(before, "");
    // Cells are drawn one by one, so only single words stay together.
    assert!(screen.contains("so") && screen.contains("cases"), "{screen}");
    assert!(report.contains("kept in run"), "{report}");
}

/// Messages that are kept and not timed, where nothing else was asked for.
const WARMUP: f64 = 1000.0;

/// The lines of a running round that have data, as numbers; `None`: a field is not known.
fn periods(stdout: &str) -> Vec<Vec<Option<f64>>> {
    let lines = stdout.lines().filter(|line| line.starts_with(' '));
    let lines = lines.map(|line| line.split_whitespace().map(|word| word.parse().ok()).collect());
    // The report's own tables follow.
    lines.take_while(|fields: &Vec<Option<f64>>| fields.len() == 6 && fields[0].is_some()).collect()
}

/// Returns what a program has printed into a file of this name so far.
fn printed(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.join("printed")).unwrap_or_default()
}

#[test]
fn an_endless_round_prints_a_line_a_second_and_an_interrupt_is_its_planned_end() {
    for (line, is_timed) in [
        ("latency --transport unix --wait block", true),
        ("load --transport unix --wait block --rate 5k", true),
        ("bandwidth --transport unix --wait block", false),
    ] {
        let scratch = Scratch::new();
        let mut command = Command::new("sh");
        let own = ["--forever", "--report-every", "1s", "--out", "run"];
        command.args(["-c", "exec \"$0\" \"$@\" > printed", PROGRAM]);
        command.args(line.split(' ')).args(own).current_dir(&scratch.0);
        let mut running = start(&mut command);
        running.until("two periods", LIMIT, || periods(&printed(&scratch)).len() >= 2);
        kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
        let ended = running.end(LIMIT);
        let text = printed(&scratch);
        assert_eq!(ended.status.code(), Some(0), "{line}: {text}");
        let periods = periods(&text);
        assert!(periods.len() >= 2, "{line}: {text}");
        let mut before = 0.0;
        for fields in &periods {
            let [at, rate, bandwidth] = [0, 1, 2].map(|field| fields[field].unwrap());
            assert!(at >= 1.0 && rate > 0.0 && bandwidth > 0.0, "{line}: {text}");
            // The warm-up has no times, and a busy machine sends little in a second.
            let timed = rate * 1e3 * (at - before) - WARMUP;
            assert!(!is_timed || timed < 100.0 || fields[3].is_some(), "{line}: {text}");
            assert!(!is_timed || timed < 1100.0 || fields[4].is_some(), "{line}: {text}");
            assert!(is_timed || fields[3].or(fields[4]).is_none(), "{line}: {text}");
            assert!(fields[4].is_none() || fields[4] >= fields[3], "{line}: {text}");
            before = at;
        }
        assert!(!is_timed || periods.iter().any(|fields| fields[3].is_some()), "{line}: {text}");
        let record = wiregauge::record::read_record(&scratch.join("run")).unwrap();
        assert!(record.complete && record.faults.is_empty(), "{line}: {:?}", record.faults);
        let run = &record.runs[0];
        assert_eq!((run.rounds.len(), run.counts.unfinished), (1, 0), "{line}");
        assert!(run.counts.received > 0 && run.counts.sent >= run.counts.received, "{line}");
        let figures = run.figures.iter().all(|figure| figure.summary.max.0.is_finite());
        assert!(figures, "{line}: what was under way is no sample at infinity");
    }
}

#[test]
fn with_json_each_line_is_an_object_and_the_last_is_the_record() {
    let scratch = Scratch::new();
    let line =
        "latency --transport unix --wait block --time 3s --rounds 1 --report-every 1s --json";
    let words: Vec<&str> = line.split(' ').collect();
    let ended = support::program::wiregauge(&scratch.0, &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let objects = ended.stdout.lines().map(serde_json::from_str::<serde_json::Value>);
    let mut objects: Vec<_> = objects.collect::<Result<_, _>>().unwrap();
    let record = objects.pop().unwrap();
    assert_eq!(record["schema"], "wiregauge.record");
    assert!(!objects.is_empty(), "{}", ended.stdout);
    for object in &objects {
        assert_eq!((&object["schema"], &object["round"]), (&"wiregauge.period".into(), &0.into()));
        assert_eq!(object["label"], record["runs"][0]["label"]);
        assert!(object["at_s"].as_f64().unwrap() >= 1.0, "{object}");
        assert!(object["messages"].as_u64().unwrap() > 0, "{object}");
        assert!(object["messages_per_s"].as_f64().unwrap() > 0.0, "{object}");
    }
}

#[test]
fn what_cannot_run_for_ever_or_has_no_lines_is_refused() {
    let scratch = Scratch::new();
    for (line, says) in [
        ("oneway --forever", "oneway keeps a row for each message"),
        ("latency --forever --size 64,128", "--forever measures one case, and these are 2"),
        ("latency --forever --time 1s", "--forever and --time exclude each other"),
        ("latency --forever --transport null", "null simulates both ends"),
        ("latency --report-every 100ms", "--report-every: use 1s or more"),
        ("latency --report-every 1s --transport synthetic", "simulates time"),
        ("latency --report-every 1s --live", "exclude each other"),
        ("latency --report-every 1s --hosts a,b", "reports every 5 s"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let ended = support::program::wiregauge(&scratch.0, &words);
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(says), "{line}: {ended:?}");
    }
}

#[test]
fn without_a_terminal_it_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    let ended = support::program::wiregauge(&scratch.0, &["latency", "--live", "--out", "run"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(!scratch.join("run").exists());
}
