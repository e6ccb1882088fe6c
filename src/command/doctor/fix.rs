//! Changes what is wrong, after a yes, and leaves a script that takes it back.

use crate::command::CommandError;
use crate::command::console::{complain, print_text};
use crate::host::doctor::Finding;
use crate::options::{Given, UsageError};
use crate::run::RunSide;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Shows what would be done, does it after a yes, and writes the script before it does.
pub fn fix(findings: &[Finding], given: &Given) -> Result<(), CommandError> {
    let all = changes(findings, given.is_given("check"));
    if all.is_empty() {
        print_text("fix: no command changes anything here; see the advice above\n")?;
        return Ok(());
    }
    let mut shown = String::from("fix: these commands would run:\n");
    for (command, _) in &all {
        let _ = writeln!(shown, "  {command}");
    }
    print_text(&shown)?;
    if !is_wanted(given.flag("yes"))? {
        print_text("fix: nothing was changed\n")?;
        return Ok(());
    }
    let script = match given.text("undo") {
        Some(path) => PathBuf::from(path),
        None => {
            let now = wiregauge_base::wall_clock::now().strftime("%Y%m%dT%H%M%SZ");
            PathBuf::from(format!("wiregauge-undo-{now}.sh"))
        }
    };
    write(&script, &all)?;
    let mut failed = 0;
    for (command, _) in &all {
        let side = RunSide { prepare: Some(command.clone()), program: None };
        if let Err(fault) = side.prepare(&AtomicBool::new(false)) {
            failed += 1;
            complain(&format!("not changed: {fault}"));
        }
    }
    let done = all.len() - failed;
    print_text(&format!(
        "fix: {done} of {} commands succeeded; to take them back: sh {}\n",
        all.len(),
        script.display()
    ))?;
    Ok(())
}

/// Commands with what takes each back: of what is wrong, or of all that was named. What two checks
/// would do is done once.
fn changes(findings: &[Finding], with_notes: bool) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.is_wrong() || with_notes) {
        if let (Some(command), Some(undo)) = (&finding.command, &finding.undo)
            && !all.iter().any(|(known, _)| known == command)
        {
            all.push((command.clone(), undo.clone()));
        }
    }
    all
}

/// Asks, unless the answer was given already.
fn is_wanted(yes: bool) -> Result<bool, CommandError> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let why = "--fix asks before it changes anything, and stdin is no terminal: use --yes";
        return Err(UsageError(why.into()).into());
    }
    write!(std::io::stderr(), "Run these commands? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Writes the script; the last change is taken back first.
fn write(path: &Path, all: &[(String, String)]) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        let why = format!("nothing was changed: writing {}: {error}", path.display());
        CommandError::Unable(why)
    };
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(script(all).as_bytes()).map_err(failed)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
    file.sync_all().map_err(failed)
}

fn script(all: &[(String, String)]) -> String {
    let mut text = String::from("#!/bin/sh\n# Takes back what `wiregauge doctor --fix` changed.\n");
    for (command, undo) in all.iter().rev() {
        let _ = write!(text, "# {command}\n{undo}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warning::Severity;

    fn finding(severity: Severity, command: &str) -> Finding {
        Finding {
            check: "c".into(),
            severity,
            subject: String::new(),
            sentence: "s".into(),
            cost: "c".into(),
            source: String::new(),
            command: Some(command.into()),
            undo: Some(format!("un{command}")),
            advice: String::new(),
        }
    }

    #[test]
    fn only_what_is_wrong_is_changed_unless_a_note_was_named() {
        let without = Finding { command: None, undo: None, ..finding(Severity::Severe, "x") };
        let all = [
            finding(Severity::Warning, "one"),
            without,
            finding(Severity::Warning, "one"),
            finding(Severity::Note, "two"),
        ];
        let pair = |name: &str| (name.to_owned(), format!("un{name}"));
        assert_eq!(changes(&all, false), [pair("one")]);
        assert_eq!(changes(&all, true), [pair("one"), pair("two")]);
    }

    #[test]
    fn the_script_takes_back_the_last_change_first() {
        let pair = |name: &str| (name.to_owned(), format!("un{name}"));
        let text = script(&[pair("one"), pair("two")]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, ["# two", "untwo", "# one", "unone"]);
    }
}
