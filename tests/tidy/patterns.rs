//! A pattern knows no transport by name, and few files know a pattern by its own.

use super::{Source, none, root, sources, words};

#[test]
fn patterns_know_no_transport_by_name() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|s| s.package == "patterns") {
        for (number, line) in source.code.iter().enumerate() {
            let named = line.split("TransportKind::").skip(1);
            if named.into_iter().any(|rest| !rest.starts_with("ALL")) {
                let place = format!("{}:{}", source.path, number + 1);
                broken.push(format!("{place}: a pattern is generic over the endpoint"));
            }
        }
    }
    none(&broken);
}

/// Most source files outside a pattern's folder, the registry among them, that name it.
const MOST_FILES_OF_A_PATTERN: usize = 3;

/// Patterns that are called as the quantity that they measure, so that not each text of that name
/// means the pattern.
const QUANTITIES: [&str; 2] = ["latency", "bandwidth"];

/// Files that name a pattern for another reason: forms of older records.
const OLDER_FORMS: [&str; 1] = ["crates/figures/src/record/upgrade/case1.rs"];

#[test]
fn few_files_know_a_pattern_by_name() {
    let folder = root().join("crates/patterns/src");
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut broken = Vec::new();
    for path in folders.filter(|path| path.is_dir()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let own = format!("crates/patterns/src/{name}/");
        let mut known = vec![format!("pattern::{name}"), format!("patterns::{name}")];
        if !QUANTITIES.contains(&&*name) {
            known.push(format!("\"{name}\""));
        }
        let in_list = |line: &str| {
            ["pattern::{", "patterns::{"].iter().any(|list| line.contains(list))
                && words(line).contains(&&*name)
        };
        let names_it = |source: &Source| {
            let lines = source.lines.iter().zip(&source.code);
            lines
                .filter(|(_, code)| !code.trim().is_empty())
                .any(|(line, _)| known.iter().any(|known| line.contains(known)) || in_list(line))
        };
        let files: Vec<String> = sources()
            .iter()
            .filter(|source| !source.path.starts_with("crates/patterns/src/"))
            .filter(|source| !OLDER_FORMS.contains(&source.path.as_str()) && names_it(source))
            .map(|source| source.path.clone())
            .collect();
        if files.len() > MOST_FILES_OF_A_PATTERN {
            broken.push(format!("{own}: {} files know it by name: {files:?}", files.len()));
        }
    }
    none(&broken);
}
