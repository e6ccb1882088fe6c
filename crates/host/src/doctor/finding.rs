//! What a check finds: what is, what it costs, and what changes it.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use wiregauge_base::warning::{RecordedWarning, Severity};

/// A setting or a state of a host that weakens what is measured on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The check, by its stable name.
    pub check: String,
    /// How much it weakens a figure; of notes the exit code knows nothing.
    pub severity: Severity,
    /// The CPUs, device or interface that it is about; empty: the host.
    pub subject: String,
    /// What is.
    pub sentence: String,
    /// What it costs.
    pub cost: String,
    /// Who says so: this host's own files, or a publication.
    pub source: String,
    /// The shell command that changes it at once, where there is one.
    pub command: Option<String>,
    /// The command that takes it back.
    pub undo: Option<String>,
    /// What to do where no command does it, or beside the command.
    pub advice: String,
}

/// The cost of what nobody has measured.
const UNKNOWN: &str = "not known: measure it";

impl Finding {
    /// A finding without a cost, a command and advice. Its check is entered by the table of checks.
    pub(super) fn new(
        severity: Severity,
        subject: impl Into<String>,
        sentence: impl Into<String>,
    ) -> Finding {
        Finding {
            check: String::new(),
            severity,
            subject: subject.into(),
            sentence: sentence.into(),
            cost: UNKNOWN.into(),
            source: String::new(),
            command: None,
            undo: None,
            advice: String::new(),
        }
    }

    /// What a record would be warned of.
    pub(super) fn of_warning(warning: RecordedWarning) -> Finding {
        let RecordedWarning { severity, sentence, advice, .. } = warning;
        Finding { advice, ..Finding::new(severity, "", sentence) }
    }

    /// With what it costs, and who says so.
    pub(super) fn costs(self, cost: impl Into<String>, source: impl Into<String>) -> Finding {
        Finding { cost: cost.into(), source: source.into(), ..self }
    }

    /// With the command that changes it, and the one that takes that back.
    pub(super) fn change(self, command: impl Into<String>, undo: impl Into<String>) -> Finding {
        Finding { command: Some(command.into()), undo: Some(undo.into()), ..self }
    }

    /// With the files that are written to change it, each with the new and the old contents. A name
    /// that a shell would read as more than a name gets into no command.
    pub(super) fn writes(self, files: &[(String, String, String)]) -> Finding {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.:@,- ".contains(c);
        let all = files.iter().flat_map(|(path, new, old)| [path, new, old]);
        let mut texts = all.flat_map(|text| text.chars());
        if files.is_empty() || !texts.all(is_plain) || files.iter().any(|file| file.0.contains(' '))
        {
            return self;
        }
        let all = |pick: fn(&(String, String, String)) -> &String| {
            let each = files.iter().map(|file| format!("echo '{}' > {}", pick(file), file.0));
            each.collect::<Vec<_>>().join(" && ")
        };
        self.change(all(|file| &file.1), all(|file| &file.2))
    }

    pub(super) fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { advice: advice.into(), ..self }
    }

    /// Whether something is wrong, and not only to be known.
    pub fn is_wrong(&self) -> bool {
        self.severity > Severity::Note
    }

    /// Returns what is, of what.
    pub fn what(&self) -> String {
        match self.subject.as_str() {
            "" => self.sentence.clone(),
            subject => format!("{subject}: {}", self.sentence),
        }
    }

    /// Returns what it costs, and who says so.
    pub fn cost_and_source(&self) -> String {
        match self.source.as_str() {
            "" => self.cost.clone(),
            source => format!("{} ({source})", self.cost),
        }
    }

    /// Returns what changes it: a command, what else can be done, or both.
    pub fn remedy(&self) -> String {
        match (&self.command, self.advice.as_str()) {
            (None, advice) => advice.to_owned(),
            (Some(command), "") => command.clone(),
            (Some(command), advice) => format!("{command}; or {advice}"),
        }
    }
}

/// The worst first; of those alike in the order of the checks.
pub(super) fn worst_first(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}
