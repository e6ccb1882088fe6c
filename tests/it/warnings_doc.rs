//! `docs/warnings.md` explains every kind of warning and no other.

use std::collections::BTreeMap;
use wiregauge::warning::{KINDS, Severity};

/// The severity of a row, by its heading and its first words.
fn documented(text: &str) -> BTreeMap<&str, Severity> {
    let (mut found, mut heading) = (BTreeMap::new(), "");
    for line in text.lines() {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        let Some(row) = line.strip_prefix("| `") else { continue };
        let (kind, rest) = row.split_once("` | ").expect("a row of three columns");
        let severity = match heading {
            "Severe" => Severity::Severe,
            _ if rest.starts_with("A note") => Severity::Note,
            _ => Severity::Warning,
        };
        assert_eq!(rest.split(" | ").count(), 2, "{kind} has no advice");
        assert_eq!(found.insert(kind, severity), None, "{kind} stands there twice");
    }
    found
}

#[test]
fn every_kind_is_explained_with_its_severity_and_no_other() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/warnings.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(documented(&text), KINDS.iter().copied().collect());
}
