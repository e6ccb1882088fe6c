//! Commands that real runs print work when they are pasted: the shell takes each as it stands.
//! Those in sentences, help and documents are parsed in `src/cli/tests/printed.rs`.

use crate::support::controller::{Controller, Scratch, wiregauge};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use wiregauge::record::read_record;
use wiregauge_test_support::bounded::{Bound, output};
use wiregauge_test_support::printed::commands;

/// The commands in what was printed.
fn printed(text: &str) -> Vec<String> {
    commands(text, |_| true).commands
}

/// Has a shell run a command, as somebody who pastes it does; its exit code and output.
fn pasted(scratch: &Scratch, command: &str) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_wiregauge"));
    let own = program.parent().unwrap().display().to_string();
    let path = format!("{own}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path).current_dir(&scratch.0);
    let ended = output(&mut shell);
    let text = [ended.stdout, ended.stderr].concat();
    (ended.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Names of directories that a shell would read otherwise, and one that begins as an option does.
const NAMES: [&str; 3] = ["two words", "it's [a] $(b) *", "--json"];

#[test]
fn the_command_that_recovers_a_killed_run_works_in_directories_of_any_name() {
    let scratch = Scratch::new();
    for name in NAMES {
        let out = format!("--out={name}");
        let line = ["latency", "--transport", "tcp", "--count", "3000", "--rounds", "100"];
        let controller = Controller::start(&scratch, &[&line[..], &[&out]].concat());
        controller.await_round();
        controller.signal(Signal::KILL);
        let hidden = controller.end().hidden(&scratch);
        let shown = format!("./{hidden}");
        let refused = wiregauge(&scratch, &["report", &shown]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let [command] = &printed(&refused.stderr)[..] else { panic!("{refused:?}") };
        let (code, said) = pasted(&scratch, command);
        // The samples of a round are there before its line in the journal.
        if said.contains("has no finished round") {
            assert!(said.contains(&hidden), "{command}: {said}");
            continue;
        }
        assert!(matches!(code, Some(0 | 3)), "{command}: {said}");
        let record = read_record(&scratch.join(name));
        assert!(record.is_ok_and(|record| !record.complete), "{command}: {said}");
    }
}

#[test]
fn the_command_that_pairs_names_the_identity_that_was_given() {
    let _bound = Bound::new();
    let scratch = Scratch::new();
    for name in NAMES {
        let identity = format!("--identity={name}");
        let offered = wiregauge(&scratch, &["agent", "--pair", &identity]);
        assert_eq!(offered.code, Some(0), "{offered:?}");
        assert_eq!(printed(&offered.stderr), ["wiregauge pair HOST"]);
        let mut agent = Command::new("timeout");
        agent.args(["-s", "INT", "2", env!("CARGO_BIN_EXE_wiregauge"), "agent", &identity]);
        agent.args(["--listen", "127.0.0.1:0"]).current_dir(&scratch.0);
        let said = String::from_utf8_lossy(&output(&mut agent).stderr).into_owned();
        let [command] = &printed(&said)[..] else { panic!("{said}") };
        let before = std::fs::read_dir(scratch.join(name)).unwrap().count();
        let (code, said) = pasted(&scratch, command);
        assert_eq!(code, Some(0), "{command}: {said}");
        assert!(said.contains("enter this secret"), "{command}: {said}");
        let after = std::fs::read_dir(scratch.join(name)).unwrap().count();
        assert_eq!(after, before, "the offer is renewed, at the same place: {command}");
    }
}

/// Refusals say what is to be typed instead, and that is taken.
#[test]
fn commands_in_refusals_are_taken() {
    let scratch = Scratch::new();
    for (line, expected) in [
        ("help tcp extra", "wiregauge help tcp"),
        ("latncy", "wiregauge --help"),
        ("latency --wrong", "wiregauge help latency"),
        ("list extra", "wiregauge help list"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let refused = wiregauge(&scratch, &words);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert_eq!(printed(&refused.stderr), [expected], "{refused:?}");
        let (code, said) = pasted(&scratch, expected);
        assert_eq!(code, Some(0), "{expected}: {said}");
    }
}

#[test]
fn help_on_what_is_explained_is_that_of_its_command() {
    let scratch = Scratch::new();
    for (line, first) in [
        ("explain packets --help", "How long packets of the kernel's Homa live"),
        ("explain latency --help", "Measure round-trip latency"),
        ("explain --help", "Split the time of each message into stages"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let told = wiregauge(&scratch, &words);
        assert_eq!((told.code, told.stdout.starts_with(first)), (Some(0), true), "{told:?}");
    }
}
