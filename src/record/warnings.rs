//! A warning as it stands in the record.

use crate::options::each_once;
use crate::warning::{Severity, Subject, Warning};
use serde::{Deserialize, Serialize};

/// Something that weakens a figure. Docs: `docs/warnings.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedWarning {
    /// A stable name, e.g. `unpinned`.
    pub kind: String,
    /// How much it weakens the figure.
    pub severity: Severity,
    /// The figure, role, CPU or host that it weakens, where one is known.
    pub subject: Option<Subject>,
    /// What weakens which figure, with the numbers.
    pub sentence: String,
    /// What to do.
    pub advice: String,
}

impl From<&Warning> for RecordedWarning {
    fn from(warning: &Warning) -> Self {
        RecordedWarning {
            kind: warning.kind().into(),
            severity: warning.severity(),
            subject: warning.subject(),
            sentence: warning.sentence(),
            advice: warning.advice(),
        }
    }
}

impl RecordedWarning {
    /// A warning about another host.
    pub fn on_host(warning: &Warning, host: &str) -> Self {
        RecordedWarning { subject: Some(Subject::Host(host.into())), ..warning.into() }
    }

    /// Of warnings, each once.
    pub fn each_once(warnings: &[Warning]) -> Vec<Self> {
        each_once(warnings.iter().map(Self::from))
    }
}
