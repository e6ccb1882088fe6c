//! `--live` on a terminal, made by script(1).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::process::Command;
use support::Scratch;
use support::bounded::output;
use support::program::PROGRAM;

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

#[test]
fn without_a_terminal_it_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    let ended = support::program::wiregauge(&scratch.0, &["latency", "--live", "--out", "run"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(!scratch.join("run").exists());
}
