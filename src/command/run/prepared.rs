//! Shell commands of a study: before the rounds of a series, and when the run is over.

use crate::cli::StudyOptions;

use crate::options::UsageError;
use crate::plan::study::file::StudyFile;
use crate::plan::{Plan, Request};
use crate::run::RunSide;

/// Stands for the interface of this end.
const INTERFACE: &str = "{interface}";

/// The commands of the series that are run.
#[derive(Debug, Default)]
pub struct Commands {
    /// Series, command.
    before: Vec<(String, String)>,
    after: Option<String>,
}

/// The commands of these series, which must be allowed.
pub fn commands(
    parsed: &StudyFile,
    requests: &[(String, Request)],
    asked: &StudyOptions,
) -> Result<Commands, UsageError> {
    let interface = asked.interface.as_ref().map(|both| both.client.to_string());
    of(parsed, |name| requests.iter().any(|(series, _)| series == name), asked.prepare, interface)
}

fn of(
    parsed: &StudyFile,
    runs: impl Fn(&str) -> bool,
    allowed: bool,
    interface: Option<String>,
) -> Result<Commands, UsageError> {
    let mut before: Vec<(String, String)> = Vec::new();
    for entry in parsed.entries.iter().filter(|entry| runs(&entry.series)) {
        let Some(command) = &entry.prepare else { continue };
        let other =
            before.iter().find(|(series, other)| *series == entry.series && other != command);
        let differ = || format!("series '{}' has two commands: use one prepare", entry.series);
        ensure!(other.is_none(), UsageError(differ()));
        before.push((entry.series.clone(), with_interface(command, interface.as_deref())?));
    }
    let Some((_, first)) = before.first() else {
        ensure!(!allowed, UsageError("--prepare has no effect: the study has no commands".into()));
        return Ok(Commands::default());
    };
    ensure!(
        allowed,
        UsageError(format!(
            "this study runs shell commands before its rounds, such as '{first}': allow them with \
             --prepare"
        ))
    );
    let after = parsed.restore.as_ref();
    let after = after.map(|text| with_interface(text, interface.as_deref())).transpose()?;
    Ok(Commands { before, after })
}

/// A command with the name of the interface in it.
fn with_interface(text: &str, interface: Option<&str>) -> Result<String, UsageError> {
    if !text.contains(INTERFACE) {
        return Ok(text.to_owned());
    }
    let need = || UsageError("this study changes an interface: name it with --interface".into());
    let name = interface.ok_or_else(need)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    let refused = || format!("--interface {name}: such a name cannot stand in a shell command");
    ensure!(name.chars().all(is_plain) && !name.starts_with('-'), UsageError(refused()));
    Ok(text.replace(INTERFACE, name))
}

impl Commands {
    /// What each series of a plan has.
    pub fn sides(&self, plan: &Plan) -> Vec<RunSide> {
        let all = plan.study.iter().flat_map(|study| &study.series);
        let command = |name: &str| {
            let own = self.before.iter().find(|(series, _)| series == name);
            own.map(|(_, command)| command.clone())
        };
        all.map(|series| RunSide { prepare: command(&series.name), program: None }).collect()
    }

    /// The command for the end of the run.
    pub fn restore(&self) -> Option<&str> {
        self.after.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::registry;
    use crate::plan::study::file;

    const STUDY: &str = "title = 'T?'\nrestore = 'on {interface}'\n\
        [[latency]]\nseries = 'a'\nprepare = 'off {interface}'\n\
        [[latency]]\nseries = 'b'\n";

    fn asked(only: &str, allowed: bool, interface: Option<&str>) -> Result<Commands, String> {
        let parsed = file::parse(&registry::names(), "s.toml", STUDY).unwrap();
        let runs = |name: &str| only.contains(name);
        of(&parsed, runs, allowed, interface.map(String::from)).map_err(|error| error.0)
    }

    #[test]
    fn commands_run_only_where_they_are_allowed_and_name_the_interface() {
        assert!(asked("ab", false, Some("eth0")).unwrap_err().contains("'off eth0'"));
        assert!(asked("ab", true, None).unwrap_err().contains("--interface"));
        assert!(asked("ab", true, Some("eth0; reboot")).unwrap_err().contains("shell command"));
        let commands = asked("ab", true, Some("eth0")).unwrap();
        assert_eq!(commands.before, [("a".to_string(), "off eth0".to_string())]);
        assert_eq!(commands.after.as_deref(), Some("on eth0"));
        assert!(asked("b", false, None).unwrap().before.is_empty(), "series without commands");
        assert!(asked("b", true, None).unwrap_err().contains("no effect"));
    }
}
