//! The warnings of a record for a reader: the worst first, those of one kind together.

use crate::options::{self, each_once};
use crate::record::schema::{Record, RecordedWarning, Subject};
use std::cmp::Reverse;

/// Labels of runs or hosts that are named in a line of text before the others are counted.
const NAMED: usize = 3;

/// Warnings of one kind.
pub struct Group<'a> {
    /// Those that differ in their sentences.
    pub entries: Vec<Entry<'a>>,
}

/// A warning, and the runs or hosts that share it; none where it is about the whole record.
pub struct Entry<'a> {
    /// The warning.
    pub warning: &'a RecordedWarning,
    /// Runs, or hosts as `on node07`.
    pub labels: Vec<String>,
}

/// All warnings of a record, and `more` that are found beside it.
pub fn of_record<'a>(record: &'a Record, more: &'a [RecordedWarning]) -> Vec<Group<'a>> {
    let whole = more.iter().chain(&record.warnings).map(|warning| (warning, None));
    let runs = record.runs.iter().flat_map(|run| {
        run.warnings.iter().map(move |warning| (warning, Some(run.label.as_str())))
    });
    grouped(whole.chain(runs))
}

/// A warning with the label of its run, or of its host.
type Labelled<'a> = (&'a RecordedWarning, Option<String>);

/// Warnings by their kinds, each with the label of its run.
pub fn grouped<'a>(
    warnings: impl IntoIterator<Item = (&'a RecordedWarning, Option<&'a str>)>,
) -> Vec<Group<'a>> {
    let labelled = warnings.into_iter().map(|(warning, run)| {
        let host = match &warning.subject {
            Some(Subject::Host(host)) => Some(format!("on {host}")),
            _ => None,
        };
        (warning, run.map(str::to_string).or(host))
    });
    let entry = |alike: Vec<Labelled<'a>>| {
        let warning = alike[0].0;
        Entry { warning, labels: alike.into_iter().filter_map(|(_, label)| label).collect() }
    };
    let group = |kind: Vec<Labelled<'a>>| {
        let sentences = options::grouped(kind, |(a, of_a), (b, of_b)| {
            a.sentence == b.sentence && of_a.is_none() == of_b.is_none()
        });
        Group { entries: sentences.into_iter().map(entry).collect() }
    };
    let kinds = options::grouped(labelled, |(a, _), (b, _)| a.kind == b.kind);
    let mut groups: Vec<Group<'a>> = kinds.into_iter().map(group).collect();
    groups.sort_by_key(|group| Reverse(group.first().severity));
    groups
}

impl<'a> Entry<'a> {
    /// Whether its labels are those of hosts.
    pub fn is_of_hosts(&self) -> bool {
        matches!(self.warning.subject, Some(Subject::Host(_)))
    }
}

impl<'a> Group<'a> {
    /// Stands for the kind, its severity and advice.
    pub fn first(&self) -> &'a RecordedWarning {
        self.entries[0].warning
    }

    /// Of all runs or hosts, each once.
    pub fn labels(&self) -> Vec<&str> {
        each_once(self.entries.iter().flat_map(|entry| &entry.labels).map(String::as_str))
    }

    /// Lines of text: what is about the whole record one by one, what is about runs or hosts once
    /// with their labels, and the advice.
    fn text(&self) -> String {
        let line = |entry: &Entry<'_>, labels: &str| {
            let RecordedWarning { severity, sentence, .. } = entry.warning;
            format!("{}: {labels}{}\n", severity.name(), sentence.replace('\n', " "))
        };
        let mut text = String::new();
        for entry in self.entries.iter().filter(|entry| entry.labels.is_empty()) {
            text += &line(entry, "");
        }
        if let Some(entry) = self.entries.iter().find(|entry| !entry.labels.is_empty()) {
            text += &line(entry, &format!("{}: ", named(&self.labels())));
        }
        match self.first().advice.as_str() {
            "" => text,
            advice => text + &format!("  advice: {}\n", advice.replace('\n', " ")),
        }
    }
}

/// Groups as lines of text.
pub fn text(groups: &[Group<'_>]) -> String {
    groups.iter().map(Group::text).collect()
}

/// The first few labels, and how many others there are.
pub fn named(labels: &[&str]) -> String {
    let first = labels.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match labels.len().saturating_sub(NAMED) {
        0 => first,
        others => format!("{first} and {others} more"),
    }
}
