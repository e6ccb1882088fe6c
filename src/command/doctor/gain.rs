//! The gain of each change that can be made at once: the host as it is against the host as changed,
//! round by round in turns.

use super::examine::{Wanted, is_interrupted};
use crate::cli::{self, Command};
use crate::command::ab;
use crate::command::console::print_text;
use crate::command::measure::take_back;
use crate::command::{CommandError, Exit};
use crate::host::doctor::{Checkup, Finding};

use crate::units::counted;
use std::ffi::OsString;

/// Changes that act at once, on what runs afterwards, and end with their undo. Idle states stand
/// for PM QoS, which only a program that keeps a file open can ask for.
const AT_ONCE: [&str; 12] = [
    "governor",
    "turbo",
    "idle_states",
    "aspm",
    "device_interrupts",
    "coalescing",
    "offloads",
    "busy_poll",
    "packet_steering",
    "watchdogs",
    "huge_pages",
    "numa_balancing",
];
/// What is measured where --for names nothing.
const USUAL: [&str; 5] = ["latency", "--transport", "tcp", "--wait", "block"];

/// Measures each change that a finding names; the state is as before afterwards.
pub fn measure(checkup: &Checkup, wanted: &Wanted) -> Result<(), CommandError> {
    let all = checkup.findings.iter().filter(|one| AT_ONCE.contains(&one.check.as_str()));
    let all: Vec<&Finding> = all.filter(|one| one.command.is_some()).collect();
    if all.is_empty() {
        print_text("measure: nothing was found that can be changed at once\n")?;
        return Ok(());
    }
    let usual = USUAL.map(String::from).to_vec();
    let words = if wanted.words.is_empty() { &usual } else { &wanted.words };
    print_text(&format!(
        "measure: {}, each by `{}`, as it is (A) and changed (B) in turns\n",
        counted(all.len() as u64, "change"),
        words.join(" ")
    ))?;
    for finding in all {
        if is_interrupted()? {
            break;
        }
        match gain(finding, words) {
            Ok(sentence) => print_text(&format!("gain: {}: {sentence}\n", finding.check))?,
            Err(error) => print_text(&format!("gain: {}: not measured: {error}\n", finding.check))?,
        };
        // What it says goes to the user; the next measurement runs all the same.
        let _ = take_back(finding.undo.as_deref());
    }
    Ok(())
}

/// What the change gains, in a sentence with its interval, and where its record is.
fn gain(finding: &Finding, words: &[String]) -> Result<String, CommandError> {
    let state = |text: &Option<String>| text.clone().unwrap_or_default();
    let (as_is, changed) = (state(&finding.undo), state(&finding.command));
    let sides = ["wiregauge", "ab", "--prepare-a", &as_is, "--prepare-b", &changed];
    let typed = sides.iter().map(OsString::from).chain(words.iter().map(OsString::from));
    let Command::Ab(typed) = cli::parse(&typed.collect::<Vec<_>>())? else {
        return Err(CommandError::Unable("the command could not be compared".into()));
    };
    let (compared, kept, exit) = ab::compared(&typed)?;
    let incomplete = if exit == Exit::RIGHT { "" } else { " (incomplete)" };
    let answers: Vec<String> = compared.answers.iter().map(|one| one.sentence.clone()).collect();
    let kept = kept.map_or_else(String::new, |path| format!("; kept in {}", path.display()));
    Ok(format!("{}{incomplete}{kept}", answers.join(" ")))
}
